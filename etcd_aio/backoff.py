"""Backoff: how long to wait before trying again, growing, capped and jittered.

Knows: a geometric series. Never knows: clocks, sleeping, or where chance comes from; randomness is an argument.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Backoff:
    """A growing wait.

    Attributes:
        initial: seconds before the first repetition.
        multiplier: growth from one wait to the next.
        maximum: seconds that no wait exceeds before its jitter.
        jitter: fraction by which a wait is spread to both sides, so that clients which failed together part.
    """

    initial: float
    multiplier: float
    maximum: float
    jitter: float

    def __post_init__(self) -> None:
        # Written so that NaN fails too.
        if not 0 <= self.initial <= self.maximum < inf:
            raise ValueError("backoff needs 0 <= initial <= maximum, and both finite")
        if not 1 <= self.multiplier < inf:
            raise ValueError("backoff multiplier must be finite and at least 1")
        if not 0 <= self.jitter <= 1:
            raise ValueError("backoff jitter is a fraction between 0 and 1")

    def wait(self, repetition: int, random: Callable[[], float]) -> float:
        """Seconds before repetition number `repetition` (0 is the first).

        Args:
            repetition: how many waits came before this one.
            random: returns a number in [0, 1).
        """
        try:
            grown = self.initial * self.multiplier**repetition
        except OverflowError:  # long past the cap
            grown = self.maximum if self.initial else 0.0
        return self._jittered(min(grown, self.maximum), random)

    def longest(self, random: Callable[[], float]) -> float:
        """Seconds of the longest wait, to which the series grows.

        Args:
            random: returns a number in [0, 1).
        """
        return self._jittered(self.maximum, random)

    def _jittered(self, seconds: float, random: Callable[[], float]) -> float:
        return seconds * (1 + self.jitter * (2 * random() - 1))
