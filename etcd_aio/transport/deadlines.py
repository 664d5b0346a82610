"""Deadlines: which of many calls expire next, without sorting them all. Pure.

Knows: instants; that a call has a deadline. Never knows: clocks, timers, what a call is.

Theory. Nearly every call ends long before its deadline: a heap of all would be a heap of dead ones, and would hold
their replies. So a call that is not the earliest costs one comparison, and all of them are looked at only when the
earliest deadline has passed. Those that expire within `SPAN` are then sorted, and until they are through nothing is
looked at again: in a wave of expiries each costs next to nothing, however many calls are under way.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Generic, Protocol, TypeVar

SPAN: Final = 0.05  # seconds; also how long a call that has ended may be held


class Timed(Protocol):
    """Something with a deadline, which may move to later."""

    deadline: float


T = TypeVar("T", bound=Timed)


class Deadlines(Generic[T]):
    """The earliest deadlines of a set of calls.

    Attributes:
        limit: a call with an earlier deadline must be added; of the others none expires before this instant.
    """

    __slots__ = ("_horizon", "_near", "_numbers", "limit")

    def __init__(self) -> None:
        self._near: list[tuple[float, int, T]] = []  # a heap of all that expire before the horizon
        self._horizon = -inf
        self._numbers = count()  # calls themselves cannot be compared
        self.limit = inf

    @property
    def next(self) -> float:
        """The instant at which to ask what has expired; infinity if nothing will."""
        return self._near[0][0] if self._near else self.limit

    def add(self, call: T) -> None:
        """A call that is new, or has another deadline; harmless if its deadline is not below `limit`."""
        if call.deadline < self._horizon:
            heappush(self._near, (call.deadline, next(self._numbers), call))
        elif call.deadline < self.limit:
            self.limit = call.deadline

    def expired(self, now: float, calls: Callable[[], Iterable[T]]) -> list[T]:
        """Those whose deadlines have passed, the earliest first; some may have ended meanwhile.

        Args:
            now: the instant.
            calls: gives all that are under way.
        """
        if self.limit <= now:
            self._look(now, calls())
        near = self._near
        found = []
        while near and near[0][0] <= now:
            call = heappop(near)[2]
            if call.deadline <= now:
                found.append(call)
            else:  # it was put off
                self.add(call)
        return found

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
