"""Deadline: the one absolute instant that bounds a call and everything done for it.

Knows: an instant on a monotonic clock. Never knows: which clock, or what time it is; `now` is always an argument.
A timeout is the relative number a user gives; it becomes a deadline once, at the door, and is only ever compared after.
"""

from math import inf
from typing import Final

from etcd_aio.errors import InvalidRequestError

NEVER: Final = inf
"""The deadline of a call without a timeout."""

_LONGEST: Final = 1e9  # seconds, three decades; beyond it clocks and wire formats begin to disagree


def deadline_after(timeout: float | None, now: float) -> float:
    """The instant `timeout` seconds after `now`; None means never.

    Raises:
        InvalidRequestError: `timeout` is negative, not a number, or beyond every clock.
        TypeError: it is neither a number nor None.
    """
    if timeout is None:
        return NEVER
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout must be a number of seconds or None, got {type(timeout).__name__}")
    if not 0 <= timeout <= _LONGEST and timeout != inf:
        text = f"timeout must be a number of seconds between 0 and {_LONGEST:g}, or None for no limit; got {timeout!r}"
        raise InvalidRequestError(text)
    return now + timeout
