"""The schedule of dials that renew one connection, before its certificates expire or after their files changed. Pure.

Knows: whether files have changed, when the first certificate of the connection expires, and how dials ended. Never
knows: certificates, connections, or other connections.

A server checks a certificate in the handshake only, so a connection may outlive its certificates by months.

    reason                    a dial is due
    ------                    -----------------------------------------------------------------------------------
    files have changed        at a random instant of the next `SPREAD`: the clients of a fleet get their files at once
    a certificate expires     when about a quarter of the time is left that was left at the last dial, but not earlier
                              than an hour (with jitter 1.5) before the end: often the files are replaced late
    a dial was in vain        for changed files after a backoff, since the member may not trust the new certificate yet;
                              for an end by the rule above, so more often the nearer it is
    a certificate has expired after a half of the time that has passed since, so less and less often; five minutes at
                              most. The clocks of both sides may differ, so the connection may still be useful

Between two dials for one connection there is always a second.

The end is an instant of the wall clock, which may be set. So what is kept of it is of that clock, and is compared anew
each time; what is kept for changed files is of the loop's.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from etcd_aio.base.backoff import Backoff

SPREAD: Final = 10.0
"""Seconds. A thousand clients of three members then cost each member a hundred handshakes a second."""

MARGIN: Final = 3600.0
"""Seconds before the end, at most; with jitter a half more."""

LEAST: Final = 1.0
"""Seconds between two dials."""

LONGEST: Final = 300.0
"""Seconds between two dials after the end."""

RENEWAL_BACKOFF: Final = Backoff(initial=1.5, multiplier=2.0, maximum=60.0, jitter=0.3)
"""Waits after dials in vain for files that have changed."""

_PART_LEFT: Final = 0.25


class RenewalSchedule:
    """The schedule of one connection, from its dial to its end.

    Args:
        expires: when the first of its certificates expires, on the wall clock; infinity if that is not known.
        wall: now, on the wall clock.
        random: returns a number in [0, 1).

    Attributes:
        vain: dials in vain so far.
    """

    def __init__(self, expires: float, wall: float, random: Callable[[], float]) -> None:
        self.vain = 0
        self._random = random
        self._expires = expires
        self._at_end = self._before_end(wall)  # on the wall clock
        self._at_change = inf  # on the loop's clock

    def due(self, is_current: bool, expires: float, now: float, wall: float) -> float:
        """The instant of the next dial, on the loop's clock.

        Args:
            is_current: no file has changed since the connection was dialled.
            expires: as above; it may have become earlier.
            now: the instant, on the loop's clock.
            wall: the same on the wall clock.
        """
        if not is_current and self._at_change == inf:
            self._at_change = now + SPREAD * self._random()
        if expires != self._expires:
            self._expires = expires
            self._at_end = self._before_end(wall)
        return min(self._at_change, now + (self._at_end - wall))

    def in_vain(self, now: float, wall: float) -> None:
        """A dial has failed, or has brought nothing better.

        Args:
            now: the instant, on the loop's clock.
            wall: the same on the wall clock.
        """
        if self._at_change != inf:
            self._at_change = now + RENEWAL_BACKOFF.wait(self.vain, self._random)
        # One for the end that is near has the distance all the same.
        self._at_end = self._before_end(wall) if wall >= self._at_end else max(self._at_end, wall + LEAST)
        self.vain += 1

    def _before_end(self, wall: float) -> float:
        """When to dial for the end, if the last dial is now."""
        left = self._expires - wall
        if left == inf:
            return inf
        if left < 0:
            wait = min(-left / 2, LONGEST) * (1 + self._random() / 2)
        else:
            wait = left - min(left * _PART_LEFT, MARGIN) * (1 + self._random() / 2)
        return wall + max(wait, LEAST)
