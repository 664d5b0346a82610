"""Deadline timer: says that an instant has passed, once what had come before it was read.

Knows: the loop's timers. Never knows: what is due.

Theory. A timer that fires late does so because the loop was held up, and what the peer said in time still lies in the
socket: a loop that runs its timers first has read nothing of it, others take 256 KiB a turn. So a late judgement is put
off once, by as long as it was late, and by `_MOST` at most.
"""

import asyncio
from collections.abc import Callable
from typing import Final

_LATE: Final = 0.005  # seconds; less is no stall
_MOST: Final = 0.1  # seconds; enough to read what a socket holds
_SHORTEST: Final = 0.001  # seconds; uvloop counts in milliseconds, and runs at once what is due in less


class DeadlineTimer:
    """One timer.

    Args:
        loop: whose timers it uses.
        on_due: called when the instant has passed.
    """

    __slots__ = ("_due", "_handle", "_loop", "_on_due", "_was_put_off")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._was_put_off = False

    def set(self, due: float) -> None:
        """Set the instant, or move it."""
        self._due = due
        self._was_put_off = False
        self._start(due, self._loop.time())

    def close(self) -> None:
        """Say nothing any more, and hold nobody."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._on_due = _nothing

    def _start(self, at: float, now: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(max(at, now + _SHORTEST), self._fired)

    def _fired(self) -> None:
        self._handle = None
        now = self._loop.time()
        late = now - self._due
        if late < 0:  # uvloop's may be early
            self._start(self._due, now)
        elif late > _LATE and not self._was_put_off:
            self._was_put_off = True
            self._start(now + min(late, _MOST), now)
        else:
            self._on_due()


def _nothing() -> None:
    """What a closed timer calls."""
