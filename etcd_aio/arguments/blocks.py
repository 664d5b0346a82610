"""Arguments of blocks that hold something: when it is lost, and the effect of that."""

from typing import Final

from etcd_aio.arguments.checks import one_of
from etcd_aio.errors import InvalidRequestError

_LARGEST_DEFAULT_MARGIN: Final = 1.0  # seconds


def checked_margin(margin: float | None, ttl: int) -> float:
    """The seconds before the local deadline at which a block is lost; by default a tenth of the TTL, at most 1 s.

    Raises:
        InvalidRequestError: it is more than a third of the TTL. Renewals come when about two thirds are left, or more.
        TypeError: it is not a number.
    """
    if margin is None:
        return min(ttl / 10, _LARGEST_DEFAULT_MARGIN)
    if isinstance(margin, bool) or not isinstance(margin, int | float):
        raise TypeError(f"margin must be a number of seconds or None, got {type(margin).__name__}")
    if not 0 <= margin <= ttl / 3:
        raise InvalidRequestError(
            f"margin must be at least 0 and at most a third of the ttl of {ttl} s, got {margin!r}"
        )
    return float(margin)


def cancels_block(on_lost: str) -> bool:
    """Whether a loss cancels the task in the block: it does for `"cancel"`, and does not for `"signal"`.

    Raises:
        InvalidRequestError: it is neither.
    """
    return one_of(("cancel", "signal"), on_lost, "on_lost") == "cancel"
