"""Deadlines: which of many calls expire next, and a timer that lets pending data be read first.

Almost every call ends long before its deadline, so a heap of all calls would contain mostly finished ones, and keep
their replies alive. `Deadlines` therefore costs one comparison for a call that is not the earliest, and looks at all
calls only when the earliest deadline has passed. Those that expire within `SPAN` are then sorted, and no others are
looked at before these are done: in a wave of expiries each costs next to nothing.

When a timer fires late, the loop was blocked, and answers that came in time may still be in the socket: some loops run
timers before they read, others read 256 KiB a turn. So `DeadlineTimer` puts a late check off once, by as long as it was
late, and by `_MOST` at most.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Generic, Protocol, TypeVar

_LATE: Final = 0.005  # seconds; smaller delays are normal
_MOST: Final = 0.1  # seconds; enough to read what a socket holds
_SHORTEST: Final = 0.001  # seconds; uvloop counts milliseconds, and runs timers of less at once
SPAN: Final = 0.05  # seconds; also how long a finished call may be kept alive


class Timed(Protocol):
    """A call with a deadline, which may move to a later time."""

    deadline: float


T = TypeVar("T", bound=Timed)


class Deadlines(Generic[T]):
    """The earliest deadlines of a set of calls.

    Attributes:
        limit: a call with an earlier deadline must be added; no other call expires before this time.
    """

    def __init__(self) -> None:
        self._near: list[tuple[float, int, T]] = []  # a heap of the calls that expire before the horizon
        self._horizon = -inf
        self._numbers = count()  # calls cannot be compared
        self.limit = inf

    @property
    def next(self) -> float:
        """The instant at which to call `expired`; infinity if nothing expires."""
        return self._near[0][0] if self._near else self.limit

    def add(self, call: T) -> None:
        """Add a call that is new or has a new deadline. Does nothing harmful if its deadline is not below `limit`."""
        if call.deadline < self._horizon:
            heappush(self._near, (call.deadline, next(self._numbers), call))
        elif call.deadline < self.limit:
            self.limit = call.deadline

    def expired(self, now: float, calls: Callable[[], Iterable[T]]) -> list[T]:
        """The calls whose deadlines have passed, the earliest first; some may have ended meanwhile.

        Args:
            now: the current time.
            calls: returns all open calls.
        """
        if self.limit <= now:
            self._look(now, calls())
        near = self._near
        expired = []
        while near and near[0][0] <= now:
            call = heappop(near)[2]
            if call.deadline <= now:
                expired.append(call)
            else:  # its deadline was moved
                self.add(call)
        return expired

    def _look(self, now: float, calls: Iterable[T]) -> None:
        self._horizon = now + SPAN
        self._near = []
        self.limit = inf
        for call in calls:
            if call.deadline < self._horizon:
                self._near.append((call.deadline, next(self._numbers), call))
            elif call.deadline < self.limit:
                self.limit = call.deadline
        heapify(self._near)


class DeadlineTimer:
    """A timer that fires only after pending data could be read.

    Args:
        loop: the event loop.
        on_due: called when the time has passed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._was_put_off = False

    def set(self, due: float) -> None:
        """Start the timer, or move it."""
        self._due = due
        self._was_put_off = False
        self._start(due, self._loop.time())

    def close(self) -> None:
        """Stop for good, and release the callback."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._on_due = lambda: None

    def _start(self, at: float, now: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(max(at, now + _SHORTEST), self._fired, context=Context())

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
