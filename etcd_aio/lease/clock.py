"""Lease clock: the clock that leases expire by, which goes on while this machine is suspended.

etcd counts a lease down while the machine of its holder sleeps. The event loop does not, so a machine that wakes after
an hour would consider a lease of ten seconds still valid. The lease clock is the loop's time plus the seconds that the
machine has slept (see `suspension`).

Every instant of a lease (when a renewal was sent, when it is due, the deadline) is one of the lease clock, and is
compared with the lease clock only. Deadlines of calls stay on the loop's. Timers can only be set on the loop's clock,
so `LeaseClockAdapter` translates: the schedule gets lease time, and the supervisor instants of the loop. A sleep
makes that instant earlier while a timer is already set for the old one; therefore the timer is never set for more than
`LOOK_EVERY` ahead. So `Lease.is_lost` and `Lease.remaining`, which read the clock, are right as soon as the machine is
awake, whatever the loop has to read first; the holder is cancelled within `LOOK_EVERY`, or sooner if a reply comes.

On a system that does not report how long it slept, the lease clock is the loop's time.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Final, Generic

from etcd_aio.base.suspension import IS_KNOWN
from etcd_aio.error_handler import StreamHandler
from etcd_aio.errors import EtcdError
from etcd_aio.methods import Reply, Request

LOOK_EVERY: Final = 1.0 if IS_KNOWN else inf
"""Seconds between two readings of the lease clock while a lease is held."""

_NOTICED: Final = 0.1  # seconds; less is not a sleep, but the time between two readings


class LeaseClock:
    """The clock of all instants of leases; see above.

    Args:
        loop_time: the loop's clock.
        suspended: returns how long the machine has been suspended so far.

    Attributes:
        suspended: the same.
    """

    __slots__ = ("_loop_time", "_seen", "_slept", "_slept_at", "suspended")

    def __init__(self, loop_time: Callable[[], float], suspended: Callable[[], float]) -> None:
        self._loop_time = loop_time
        self.suspended = suspended
        self._seen: float | None = None
        self._slept = 0.0
        self._slept_at = -inf

    def now(self) -> float:
        """The time. Called from the client's loop."""
        awake = self._loop_time()
        suspended = self.suspended()
        if self._seen is not None and suspended - self._seen > _NOTICED:
            self._slept, self._slept_at = suspended - self._seen, awake + suspended
        self._seen = suspended
        return awake + suspended

    def on_loop(self, instant: float) -> float:
        """The instant of the loop's clock at which to read this clock again, for a timer that is due at `instant`."""
        return instant if instant == inf else min(instant - self.suspended(), self._loop_time() + LOOK_EVERY)

    def slept_within(self, seconds: float) -> float:
        """Return the seconds of a suspension of the machine that was noticed in the last `seconds`; else 0."""
        now = self.now()
        return self._slept if self._slept_at >= now - seconds else 0.0


class LeaseClockAdapter(Generic[Request, Reply]):
    """Gives a `StreamHandler` the time of the lease clock, and its supervisor that of the loop."""

    __slots__ = ("_clock", "_handler")

    def __init__(self, handler: StreamHandler[Request, Reply], clock: LeaseClock) -> None:
        self._handler = handler
        self._clock = clock

    @property
    def is_needed(self) -> bool:
        return self._handler.is_needed

    @property
    def due(self) -> float:
        return self._clock.on_loop(self._handler.due)

    def requests(self, now: float) -> Iterable[Request]:
        return self._handler.requests(self._clock.now())

    def on_open(self, endpoint: str, now: float) -> None:
        self._handler.on_open(endpoint, self._clock.now())

    def on_reply(self, reply: Reply, now: float) -> None:
        self._handler.on_reply(reply, self._clock.now())

    def on_time(self, now: float) -> str | None:
        return self._handler.on_time(self._clock.now())

    def on_lost(self, error: EtcdError, now: float) -> bool:
        return self._handler.on_lost(error, self._clock.now())

    def on_refused(self, error: EtcdError, now: float) -> bool:
        return self._handler.on_refused(error, self._clock.now())

    def on_end(self, error: EtcdError) -> None:
        self._handler.on_end(error)
