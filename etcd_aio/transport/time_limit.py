"""A time limit that the delays of the loop itself do not use up.

A loop that is blocked, by an import or by the dials of many clients, runs an expired timer before it has read what came
meanwhile. A limit that judged by the clock alone would call a peer silent that has answered. So the time is counted in
slices, each with a timer of its own: a slice counts as long as it was meant to be, however late its timer fires. After
a late timer the last judgement is put off, so that what has come can be read and answered first.
"""

import asyncio
from types import TracebackType
from typing import Final, Self

from etcd_aio.base.aio import start_timer_at

_SLICES: Final = 8  # a loop that is blocked once, for however long, costs the limit one of these
_LATE: Final = 0.005  # seconds; smaller delays are normal
_MOST_PUT_OFF: Final = 8  # times that the last judgement is put off: a loop may be late always


class Countdown:
    """Counts the time in which the loop could run. `now` is an argument.

    Args:
        seconds: the time until the end.
        now: the beginning.

    Attributes:
        due: when to call `tick` next.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._left = seconds
        self._slice = seconds / _SLICES
        self._length = self._slice
        self._put_off = 0
        self.due = now + self._length

    def extend(self, seconds: float) -> None:
        """Add to the time that is left."""
        self._left += seconds

    def tick(self, now: float) -> bool:
        """Note the end of a slice: it returns whether the time is over; if not, the next slice has begun."""
        late = now - self.due
        self._left -= self._length
        if self._left > 0:
            self._length = min(self._left, self._slice)
        elif late > _LATE and self._put_off < _MOST_PUT_OFF:
            self._put_off += 1
            self._length = min(late, self._slice)
        else:
            return True
        self.due = now + self._length
        return False


class TimeLimit:
    """An `asyncio.timeout` of this kind: leaving the block raises TimeoutError if the time was over.

    Args:
        seconds: the limit, of time in which the loop could run.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._countdown = Countdown(seconds, self._loop.time())
        self._timeout = asyncio.timeout(None)
        self._handle: asyncio.TimerHandle | None = None

    def extend(self, seconds: float) -> None:
        """Add to the time that is left."""
        self._countdown.extend(seconds)

    def expired(self) -> bool:
        """Whether the time was over before the block ended."""
        return self._timeout.expired()

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        await self._timeout.__aexit__(kind, error, traceback)

    def _start(self) -> None:
        self._handle = start_timer_at(self._countdown.due, self._fired)

    def _fired(self) -> None:
        self._handle = None
        now = self._loop.time()
        if now < self._countdown.due or not self._countdown.tick(now):  # uvloop's timers may be early
            self._start()
        else:
            self._timeout.reschedule(now)
