"""Stream timer: a timer that fires only after pending socket data has been read.

After a stall of the loop a timer fires late, while data that the peer sent in time still lies in the socket. So when
the timer fires, the loop gets a few turns to read, and as many again as long as that brings something. Only if the
instant has still passed then is `on_due` called.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from etcd_aio.base.aio import start_timer_at
from etcd_aio.base.deadline import NEVER

_TURNS: Final = 8  # of the loop, from the socket through either engine to the stream's handler
_ROUNDS: Final = 50  # of so many turns at most, so that a flood of replies cannot put off the timer for ever
_SHORTEST: Final = 0.001  # seconds before the timer fires, even if the instant has passed when it is set


class ReadThenFireTimer:
    """A timer for an instant that may change at any time.

    Args:
        due: the instant; infinity for never.
        progress: a number that changes whenever something was read.
        on_due: called when the instant has passed. It must move the instant, or it is called again.
    """

    def __init__(self, due: Callable[[], float], progress: Callable[[], int], on_due: Callable[[], None]) -> None:
        self._due = due
        self._progress = progress
        self._on_due = on_due
        self._handle: asyncio.Handle | None = None
        self._at = NEVER

    def watch(self) -> None:
        """The instant may have changed."""
        due = self._due()
        if due < self._at:  # a later one is seen when the timer fires, so that moving it costs nothing
            self.stop()
            loop = asyncio.get_running_loop()
            self._at = due
            self._handle = start_timer_at(max(due, loop.time() + _SHORTEST), self._fired)

    def stop(self) -> None:
        """Do not fire until the next `watch`."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._at = None, NEVER

    def _fired(self) -> None:
        if self._due() <= asyncio.get_running_loop().time():
            self._at = -NEVER  # `watch` sets no other timer meanwhile
            self._let_read(_TURNS, _ROUNDS, self._progress())
        else:
            self.stop()
            self.watch()

    def _let_read(self, turns: int, rounds: int, progress: int) -> None:
        if not turns and rounds and progress != self._progress():
            turns, rounds, progress = _TURNS, rounds - 1, self._progress()
        loop = asyncio.get_running_loop()
        if turns:
            self._handle = loop.call_soon(self._let_read, turns - 1, rounds, progress)
            return
        self.stop()
        if self._due() <= loop.time():
            self._on_due()
        else:
            self.watch()
