"""When a source of endpoints is asked: at its TTL, after failures, and while none of its endpoints is connected. Pure.

A source is asked before its TTL expires, never after, so that a new address is used within one TTL. The fraction by
which it is earlier is random, so that clients that started together do not ask in step.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from etcd_aio.base.backoff import Backoff

OUTAGE_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=15.0, jitter=0.5)
"""Waits between questions to a source without a connection. The first wait leaves time for dialling. The jitter is
large, since all clients of a member that ends begin to wait at one instant."""

RETRY_BACKOFF: Final = Backoff(initial=0.5, multiplier=2.0, maximum=30.0, jitter=0.2)
"""Waits after a failure; never longer than those after a success."""

EARLIER: Final = 0.2  # fraction of a TTL


class Schedule:
    """The schedule of one source.

    Args:
        due: when to ask for the first time.
        random: returns a number in [0, 1).
    """

    def __init__(self, due: float, random: Callable[[], float]) -> None:
        self._due = due
        self._random = random
        self._failures = 0  # in a row
        self._outage_due = inf
        self._outage_requests = 0

    @property
    def due(self) -> float:
        """When to ask next."""
        return min(self._due, self._outage_due)

    def answered(self, now: float, seconds: float) -> None:
        """Note a success; ask again in so many seconds."""
        self._failures = 0
        self._asked(now + seconds)

    def failed(self, now: float, seconds: float) -> None:
        """Note a failure; ask again after a backoff, at the latest in so many seconds."""
        wait = min(seconds, RETRY_BACKOFF.wait(self._failures, self._random))
        self._failures += 1
        self._asked(now + wait)

    def _asked(self, due: float) -> None:
        self._due = due
        if self._outage_due < inf:
            self._outage_due = inf
            self._outage_requests += 1

    def note_outage(self, now: float) -> None:
        """Note that none of the endpoints of the source is connected, and ask soon. Safe to repeat."""
        if self._outage_due == inf:
            self._outage_due = now + OUTAGE_BACKOFF.wait(self._outage_requests, self._random)

    def note_connected(self) -> None:
        """Note that an endpoint of the source is connected."""
        self._outage_due, self._outage_requests = inf, 0


def before_ttl(ttl: float, shortest: float, longest: float, random: Callable[[], float]) -> float:
    """Seconds after which to ask again, within a TTL that is brought between two limits."""
    return min(max(ttl, shortest), longest) * (1 - EARLIER * random())
