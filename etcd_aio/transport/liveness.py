"""The state machine that decides when to ping a silent peer, and when to declare it dead. Pure.

Any byte from the peer proves that it is alive. How long it may be silent depends on what is open:
  - with calls in flight, it is pinged after `silence_time`, and dead `silence_timeout` later;
  - with streams only (an idle watch), it is pinged after `keepalive_time`, and dead `keepalive_timeout` later;
  - with nothing open, it is never pinged: etcd counts pings without streams as abuse.
Two exceptions. A member that hashes the passwords of many clients answers pings late, so while a login is in flight it
has `HEAVY_TIMEOUT` for the answer: a second login would cost one more hash. And while a large request may still be on
its way (`uploads`), the peer is neither pinged nor declared dead: pings behind such bytes arrive close together, which
is abuse too.

Pings are at least `MIN_PING_INTERVAL` apart, as etcd demands. A member that freezes just after it has answered a ping
would stay undetected for that long. grpc-go resets its count of early pings whenever it has answered a call, and
tolerates two; so one early ping is sent between two answered calls. A server that has complained about pings
(`ping_pace`) gets no early ones, and the interval is longer.

If a check runs late (the loop stalled, the machine slept), the verdict is postponed once, by `STALL_GRACE`, so that
bytes that have already arrived are read first.
"""

from enum import Enum
from math import inf
from typing import Final

from etcd_aio.transport.interface import TransportOptions
from etcd_aio.transport.uploads import Upload, Uploads

MIN_PING_INTERVAL: Final = 5.0  # etcd's keepalive enforcement (embed: GRPCKeepAliveMinTime)
EARLY_PING_INTERVAL: Final = 1.0  # seconds; for the early ping that servers tolerate
HEAVY_TIMEOUT: Final = 4.0  # seconds; with 160 simultaneous logins, members on two cores answered pings up to 3 s late
STALL_GRACE: Final = 0.1  # seconds; a later timer proves a stalled loop, not a silent peer


class Action(Enum):
    """The next step of the connection."""

    NONE = "none"
    PING = "ping"
    DEAD = "dead"


class Liveness:
    """The state of one connection's liveness.

    Args:
        now: the instant at which the connection is made.
        options: the times of the connection.
        slower: factor for the time between pings.
    """

    def __init__(self, now: float, options: TransportOptions, slower: int = 1) -> None:
        self._options = options
        self._keepalive_time = options.keepalive_time * slower
        self._ping_interval = MIN_PING_INTERVAL * slower
        self._may_be_early = slower == 1
        self._uploads = Uploads()
        self._heavy = 0
        self._last_received = now
        self._last_ping = now - self._ping_interval
        self._ping_pending = False
        self._has_early_ping = False
        self._put_off_until: float | None = None
        self._waiting = 0
        self._waiting_since = -inf
        self._heard = True  # whether any byte has come since `_waiting_since`
        self._open_streams = 0

    def on_received(self, now: float) -> None:
        """Note that bytes came from the peer."""
        self._last_received = now
        self._heard = True
        self._ping_pending = False
        self._put_off_until = None

    def call_started(self, now: float) -> None:
        """Note that a unary call begins to wait."""
        if not self._waiting:
            self._begin_waiting(now)
        self._waiting += 1

    def call_ended(self, is_answered: bool) -> None:
        """Note that a unary call no longer waits, and whether the server has answered it."""
        self._waiting -= 1
        if is_answered:
            self._has_early_ping = self._may_be_early

    def heavy_began(self) -> None:
        """Note that a waiting unary call is a login."""
        self._heavy += 1

    def heavy_ended(self) -> None:
        """Note that such a call no longer waits."""
        self._heavy -= 1

    def upload_began(self, upload: Upload, size: int, now: float) -> None:
        """Note that a waiting unary call has a large request."""
        self._uploads.began(upload, size, now)

    def upload_ended(self, upload: Upload, now: float, *, is_answered: bool) -> None:
        """Note that such a call no longer waits. Other calls may be passed too."""
        self._uploads.ended(upload, now, self._last_received, is_answered=is_answered)

    def stream_opened(self, now: float) -> None:
        """Note that a stream was opened."""
        if not self.is_needed:
            self._begin_waiting(now)
        self._open_streams += 1

    def stream_closed(self) -> None:
        """Note that a stream was closed."""
        self._open_streams -= 1

    @property
    def is_needed(self) -> bool:
        """Whether anything is open, so that silence means something."""
        return self._waiting > 0 or self._open_streams > 0

    def next_check(self) -> float:
        """The instant of the next `check`; only meaningful while `is_needed`."""
        return max(self._next_step(), self._uploads.drained_by(self._last_received))

    def _next_step(self) -> float:
        if self._ping_pending:
            timeout = self._options.silence_timeout if self._waiting else self._options.keepalive_timeout
            if self._heavy:
                timeout = max(timeout, HEAVY_TIMEOUT)
            return max(self._last_ping + timeout, self._put_off_until or 0.0)
        time = self._options.silence_time if self._waiting else self._keepalive_time
        quiet_since = max(self._last_received, self._waiting_since)
        interval = EARLY_PING_INTERVAL if self._waiting and self._has_early_ping else self._ping_interval
        return max(quiet_since + time, self._last_ping + interval)

    def check(self, now: float) -> Action:
        """Decide what to do now. To be called at `next_check()`; earlier and later calls are harmless."""
        if not self.is_needed:
            return Action.NONE
        due = self.next_check()
        if now < due:
            return Action.NONE
        if not self._ping_pending:
            self._ping_pending = True
            self._put_off_until = None
            if now < self._last_ping + self._ping_interval:
                self._has_early_ping = False
            self._last_ping = now
            return Action.PING
        if self._put_off_until is None and now - due > STALL_GRACE:
            self._put_off_until = now + STALL_GRACE
            return Action.NONE
        return Action.DEAD

    def _begin_waiting(self, now: float) -> None:
        # A flag instead of a comparison of instants: some clocks have a resolution of a millisecond.
        if self._heard:
            self._heard = False
            self._waiting_since = now
