"""Patience: when the renewal of a lease is due, and how long its answer may take. Pure.

Two members may be silent one after the other, and a leader that freezes is replaced only after 1 to 2 s (by default),
in which no member answers. So the renewal is due early, and what stays unanswered moves to another member soon.

Due. A renewal is due when a quarter of the TTL has passed since the last one was sent. A client with many leases
spares the servers, and waits for a third, as Go's client does. The instants are rounded down to a grid, so that leases
share a turn of the loop; thousands cost less this way than if each had a turn of its own.

Patience. In the upper part of its TTL a lease has room for many attempts, so each may take a sixteenth of the TTL. A
request that went to a frozen leader, or to a member that waits for one, is answered late or never, and the next attempt
is answered at once if there is a leader by then. As soon as one lease is below, and still nothing was answered, perhaps
all members are slow: then the attempts for all leases may take a quarter of their TTL, or three quarters of what is
left. It must be all of them, since the most impatient request decides how long a stream is kept.

Slow members. If the last two answers took long, the next may take twice as long as the quicker of them. So a cluster
that is far away or busy is not left again and again, while a single late answer, as after an election, changes nothing,
unless it is the first of all. Only answers count that were awaited alone: the others stand in a queue of this client's
own.
"""

from math import floor, inf
from typing import Final

_EARLY: Final = 1 / 4  # of the TTL
_SPARING: Final = 1 / 3
FEW: Final = 64
"""Leases of a client that are renewed early."""
_GRID: Final = 64  # instants in a TTL

_QUICK: Final = 1 / 16  # of the TTL
_LATE: Final = 5 / 12  # of the TTL is left: no time for many further attempts
_PATIENT: Final = 1 / 4  # of the TTL
_SHARE_OF_REST: Final = 3 / 4
_SHORTEST: Final = 0.25  # seconds; less would mistake a distant or busy member for a silent one
_LONGEST: Final = 7.0  # seconds; etcd itself gives a request up after 5 s and two election timeouts of 1 s
_SINGLE: Final = 1.0  # seconds, for a lease of unknown deadline; doubled after each silent stream


def due_at(ttl: float, deadline: float, leases: int) -> float:
    """When to renew a lease that was acknowledged.

    Args:
        ttl: of the acknowledgement.
        deadline: of the lease.
        leases: how many leases the client has.
    """
    waited = _EARLY if leases <= FEW else _SPARING
    step = ttl / _GRID
    return floor((deadline - ttl * (1 - waited)) / step) * step


class Patience:
    """The time that answers may take, by those of the past."""

    __slots__ = ("_before", "_last", "_quick_until", "_silences")

    def __init__(self) -> None:
        self._last: float | None = None  # seconds that the last answer took; None before the first one
        self._before = 0.0  # and the one before
        self._quick_until = inf  # of the requests since the last answer
        self._silences = 0  # streams in a row that were given up

    def on_answer(self, took: float | None) -> None:
        """An answer came; `took` is None if it was not awaited alone."""
        self._silences = 0
        self._quick_until = inf
        if took is not None:
            self._before, self._last = took if self._last is None else self._last, took

    def on_silence(self) -> None:
        """A stream was given up."""
        self._silences += 1

    def held(self, ttl: float, left: float, now: float) -> float:
        """Seconds for the renewal of a lease that is sent now, and has so many seconds left."""
        self._quick_until = min(self._quick_until, now + left - _LATE * ttl)
        seconds = max(_QUICK * ttl, 2 * min(self._last or 0.0, self._before), _SHORTEST)
        if now + seconds > self._quick_until:
            seconds = _SHARE_OF_REST * left
        seconds = min(seconds, _PATIENT * ttl)
        return min(max(seconds, _SHORTEST), _LONGEST)

    def single(self) -> float:
        """Seconds for a renewal whose caller waits for it."""
        return min(_SINGLE * 2.0 ** min(self._silences, 3), _LONGEST)
