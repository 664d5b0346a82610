"""Contention: how long a writer waits before it changes what other processes change too. Pure.

A txn has the condition that the state is still as it was read; if another process was faster, its answer tells the new
state, and it is sent again. The process that has just won is the first one to know the new state: if it goes on at
once, it mostly wins again, and does all of its work while the others stand still. Waits that grow with the conflicts
make this worse, since those that have waited longest try most seldom. So here

- a process that has met conflicts lately also waits before its next change, and for twice as long as after a conflict;
- an attempt waits the less, the more often it has failed;
- the waits are a few round trips, by the round trips that were measured. With more processes on one machine or link
  these get longer, and so do the waits.

The first conflict of a change costs no wait: the answer that tells of it is the newest knowledge there is.
"""

from collections.abc import Callable
from typing import Final

MOST: Final = 16.0
"""Round trips of the longest window. In a simulation of 2 to 64 writers larger ones are slower in all, and smaller ones
send more txns for each that succeeds."""

REMEMBERED: Final = 1.0
"""Seconds without a change by this process; after these, nothing is known of the contention."""

_FIRST: Final = 0.5  # round trips of the first window
_GROWTH: Final = 1.5
_SHRINKING: Final = 0.75  # by a change that met no conflict
_OLDEST: Final = 8  # the most by which earlier conflicts of a change divide its waits
_SHORTEST_ROUND_TRIP: Final = 0.0005  # seconds
_LONGEST_ROUND_TRIP: Final = 0.05  # seconds; what takes longer waited for something else, such as an election
_WEIGHT: Final = 0.25  # of the newest round trip in the average


class Contention:
    """The contention for one state, as one process has seen it.

    Args:
        window: in round trips, at first.
    """

    __slots__ = ("_round_trip", "_window")

    def __init__(self, window: float = 0.0) -> None:
        self._window = window
        self._round_trip = 0.0

    @property
    def is_over(self) -> bool:
        """Whether no conflict was met lately."""
        return not self._window

    def measured(self, seconds: float) -> None:
        """A txn took so long."""
        seconds = min(max(seconds, _SHORTEST_ROUND_TRIP), _LONGEST_ROUND_TRIP)
        self._round_trip += (seconds - self._round_trip) * (_WEIGHT if self._round_trip else 1.0)

    def before_change(self, random: Callable[[], float]) -> float:
        """Seconds to wait before the first attempt of a change; 0 without contention."""
        return 2 * self._window * self._round_trip * random()

    def after_conflict(self, conflicts: int, random: Callable[[], float]) -> float:
        """Seconds to wait after an attempt that met a conflict; `conflicts` counts those of the change, from 1."""
        self._window = min(max(self._window * _GROWTH, _FIRST), MOST)
        if conflicts == 1:
            return 0.0
        return self._window * self._round_trip * random() / min(conflicts - 1, _OLDEST)

    def succeeded(self, conflicts: int) -> None:
        """A change was made, after so many conflicts."""
        if not conflicts:
            self._window = self._window * _SHRINKING if self._window > _FIRST / 2 else 0.0
