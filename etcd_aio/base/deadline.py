"""Deadlines: the one absolute instant that bounds a call and everything done for it.

A timeout is a number of seconds that the caller gives. It becomes a deadline once, at the start of the call; after that
deadlines are only compared. No clock is read here: `now` is always an argument.
"""

from math import inf
from typing import Final

from etcd_aio.errors import InvalidRequestError

NEVER: Final = inf
"""The deadline of a call without a timeout."""

_LONGEST: Final = 1e9  # seconds, three decades; beyond it clocks and wire formats begin to disagree


def deadline_after(timeout: float | None, now: float) -> float:
    """Return the instant `timeout` seconds after `now`; None means never.

    Raises:
        InvalidRequestError: `timeout` is negative, not a number, or too large for a clock.
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


def time_left(deadline: float, now: float) -> float:
    """Return the seconds from `now` until `deadline`; 0 once it has passed."""
    return max(0.0, deadline - now)


def check_timeout(timeout: float | None, instead: str = "") -> None:
    """Check the seconds that an acquisition may take: even a free lock takes a round trip.

    Args:
        timeout: the seconds.
        instead: a method that does not wait, for the error.

    Raises:
        InvalidRequestError: they are not above 0.
        TypeError: they are no number.
    """
    deadline_after(timeout, 0.0)
    if timeout == 0:
        text = "timeout must be above 0 seconds, or None for no limit"
        raise InvalidRequestError(f"{text}; {instead}" if instead else f"{text}; got {timeout!r}")
