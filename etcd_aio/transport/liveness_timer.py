"""The timer of a connection's liveness, the same for every engine."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final

from etcd_aio.base.aio import start_timer_at
from etcd_aio.errors import ConnectionLostError
from etcd_aio.transport.liveness import Action, Liveness

_SHORTEST: Final = 0.001  # seconds; uvloop runs shorter timers at once, again and again


class LivenessTimer:
    """Runs the checks of a `Liveness` when they are due.

    Args:
        liveness: decides when to ping the peer, and when it is dead.
        ping: sends a ping.
        abort: ends the connection to a dead peer, for this reason.

    Attributes:
        due: when the next check runs; infinity if there is none.
    """

    def __init__(
        self, liveness: Liveness, ping: Callable[[], None], abort: Callable[[ConnectionLostError], None]
    ) -> None:
        self.due = inf
        self._liveness = liveness
        self._ping = ping
        self._abort = abort
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Set the timer. Call it after every start of a call or stream, and after every end of an upload."""
        if not self._liveness.is_needed:
            return
        due = self._liveness.next_check()
        if due < self.due:
            self._stop()
            self.due = due
            self._handle = start_timer_at(max(due, self._loop.time() + _SHORTEST), self._check)

    def close(self) -> None:
        """Stop for good, and release the callbacks."""
        self._stop()
        self.due = -inf
        self._ping, self._abort = lambda: None, lambda error: None

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check(self) -> None:
        self._handle, self.due = None, inf
        action = self._liveness.check(self._loop.time())
        if action is Action.DEAD:
            self._abort(ConnectionLostError("the peer is silent: it answered neither calls nor a ping"))
            return
        if action is Action.PING:
            self._ping()
        self.watch()
