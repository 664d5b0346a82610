"""Sums: what each of several additions, made one after the other, makes of a number with limits. Pure."""

from collections.abc import Sequence

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """An addition that was left out, since it would have left the limits.

    Attributes:
        value: the number that it met.
    """

    value: int


@dataclass(frozen=True, slots=True)
class Sums:
    """What additions make of a number.

    Attributes:
        outcomes: for each addition the number after it, or why it was left out.
        total: the number after all of them.
        is_changed: whether one of them was made.
    """

    outcomes: tuple[int | Refusal, ...]
    total: int
    is_changed: bool


def sums(before: int, additions: Sequence[int], minimum: int | None, maximum: int | None) -> Sums:
    """Make additions one after the other.

    An addition towards the limits is made although the number is still outside of them.

    Args:
        before: the number at first.
        additions: what is added, in this order.
        minimum: the smallest number that a subtraction may leave; None if there is none.
        maximum: the largest number that an addition may leave; None if there is none.
    """
    outcomes: list[int | Refusal] = []
    total = before
    for addition in additions:
        after = total + addition
        is_below = addition < 0 and minimum is not None and after < minimum
        is_above = addition > 0 and maximum is not None and after > maximum
        if is_below or is_above:
            outcomes.append(Refusal(total))
        else:
            total = after
            outcomes.append(total)
    return Sums(tuple(outcomes), total, any(isinstance(outcome, int) for outcome in outcomes))
