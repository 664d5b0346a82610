"""Sums: the result of each of several additions, made one after the other to a number with limits. Pure."""

from collections.abc import Sequence

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RefusedAddition:
    """An addition that was left out, since it would have left the limits.

    Attributes:
        value: the number that it met.
    """

    value: int


def sums(
    before: int, additions: Sequence[int], minimum: int | None, maximum: int | None
) -> tuple[list[int | RefusedAddition], int | None]:
    """Make additions one after the other.

    An addition towards the limits is made although the number is still outside of them.

    Args:
        before: the number at first.
        additions: what is added, in this order.
        minimum: the smallest number that a subtraction may leave; None if there is none.
        maximum: the largest number that an addition may leave; None if there is none.

    Returns:
        For each addition the number after it, or why it was left out; and the last number, None if none was made.
    """
    outcomes: list[int | RefusedAddition] = []
    value, last = before, None
    for addition in additions:
        after = value + addition
        is_below = addition < 0 and minimum is not None and after < minimum
        is_above = addition > 0 and maximum is not None and after > maximum
        if is_below or is_above:
            outcomes.append(RefusedAddition(value))
        else:
            value = last = after
            outcomes.append(value)
    return outcomes, last
