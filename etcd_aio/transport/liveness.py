"""Liveness: when to ping a quiet peer, and when to call it dead. A pure machine.

Knows: instants and two counters. Never knows: sockets, frames, clocks; `now` is an argument.

Theory. Any byte from the peer proves it alive. A peer may be quiet for two reasons:
  - calls wait for their answers: after `silence_time` it is pinged, `silence_timeout` later it is dead;
  - only streams are open (an idle watch): after `keepalive_time` it is pinged, `keepalive_timeout` later it is dead.
With nothing open it is neither pinged nor judged: etcd counts pings without streams as abuse.
A member that hashes the passwords of many clients answers pings late too. While a call waits that is heavy in this way,
the peer has `HEAVY_TIMEOUT` to answer one: a login that is given up and made again costs it one more hash.
What large requests have written is life too, as long as it may still be draining (`uploads`): until then the peer is
neither pinged nor judged. Pings that wait behind such bytes reach the peer close together, which is abuse again.

Pings are `MIN_PING_INTERVAL` apart, as etcd asks. But a member that was pinged a moment ago, answered, and froze then,
would go unnoticed as long. Go's servers forget what they count once they have answered a call, and forgive two pings
that come too early until they do; so one early ping is made between two answered calls, and no more. To a server that
has complained of pings (`ping_pace`) there are no early ones, and the others are further apart.

A judgement that comes late (the loop stalled, the machine slept) is put off once by `STALL_GRACE`, so that bytes which
already arrived are read before the peer is judged by their absence.
"""

from enum import Enum
from math import inf
from typing import Final

from etcd_aio.transport.interface import TransportOptions
from etcd_aio.transport.uploads import Upload, Uploads

MIN_PING_INTERVAL: Final = 5.0  # etcd's keepalive enforcement (embed: GRPCKeepAliveMinTime)
EARLY_PING_INTERVAL: Final = 1.0  # the one that is forgiven
HEAVY_TIMEOUT: Final = 4.0  # seconds; 160 logins at once kept members on two cores from their pings for up to 3
STALL_GRACE: Final = 0.1  # a timer this late says more about our loop than about the peer


class Action(Enum):
    """What the connection must do now."""

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
        self._heard = True  # something, since the waiting began
        self._open_streams = 0

    def on_received(self, now: float) -> None:
        """Bytes came from the peer."""
        self._last_received = now
        self._heard = True
        self._ping_pending = False
        self._put_off_until = None

    def call_started(self, now: float) -> None:
        """A unary call begins to wait."""
        if not self._waiting:
            self._begin_waiting(now)
        self._waiting += 1

    def call_ended(self, is_answered: bool) -> None:
        """A unary call no longer waits; its server has answered, or has not."""
        self._waiting -= 1
        if is_answered:
            self._has_early_ping = self._may_be_early

    def heavy_began(self) -> None:
        """A unary call that waits is heavy."""
        self._heavy += 1

    def heavy_ended(self) -> None:
        """Such a call waits no longer."""
        self._heavy -= 1

    def upload_began(self, upload: Upload, size: int, now: float) -> None:
        """A unary call that waits has a large request."""
        self._uploads.began(upload, size, now)

    def upload_ended(self, upload: Upload, now: float, *, is_answered: bool) -> None:
        """Such a call waits no longer; harmless for any other."""
        self._uploads.ended(upload, now, self._last_received, is_answered=is_answered)

    def stream_opened(self, now: float) -> None:
        """A stream was opened."""
        if not self.is_needed:
            self._begin_waiting(now)
        self._open_streams += 1

    def stream_closed(self) -> None:
        """A stream was closed."""
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
        """Judge the silence. To be called at `next_check()`; early or late calls are harmless."""
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
        # A flag, since instants cannot tell: in one millisecond, which is all that some clocks see, much may happen.
        if self._heard:
            self._heard = False
            self._waiting_since = now
