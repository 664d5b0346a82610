"""Deadline: the one absolute instant that bounds a call and everything done for it.

Knows: an instant on a monotonic clock. Never knows: which clock, or what time it is; `now` is always an argument.
A timeout is the relative number a user gives; it becomes a deadline once, at the door, and is only ever compared after.
"""

from math import inf, isnan
from typing import Final

from etcd_aio.errors import InvalidRequestError

NEVER: Final = inf
"""The deadline of a call without a timeout."""


def deadline_after(timeout: float | None, now: float) -> float:
    """The instant `timeout` seconds after `now`; None means never.

    Raises:
        InvalidRequestError: `timeout` is negative or not a number.
    """
    if timeout is None:
        return NEVER
    if timeout < 0 or isnan(timeout):
        raise InvalidRequestError(f"timeout must be a number of seconds that is not negative, or None; got {timeout!r}")
    return now + timeout
