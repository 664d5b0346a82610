"""Backoff: how long to wait before the next attempt; growing, capped and jittered.

Randomness is an argument: each function takes `random`, which returns a number in [0, 1).
"""

from collections.abc import Callable
from math import inf

from etcd_aio.dataclass import dataclass


def jittered(seconds: float, jitter: float, random: Callable[[], float]) -> float:
    """Return `seconds`, spread by the fraction `jitter` to both sides, so that many clients do not act in step."""
    return seconds * (1 + jitter * (2 * random() - 1))


@dataclass(frozen=True, slots=True)
class Backoff:
    """A growing series of waits.

    Attributes:
        initial: seconds before the first repetition.
        multiplier: growth from one wait to the next.
        maximum: seconds of the longest wait, before its jitter.
        jitter: fraction by which a wait is spread to both sides.
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
        """Seconds to wait before repetition number `repetition`; 0 is the first."""
        try:
            grown = self.initial * self.multiplier**repetition
        except OverflowError:  # far above the maximum
            grown = self.maximum if self.initial else 0.0
        return jittered(min(grown, self.maximum), self.jitter, random)

    def longest(self, random: Callable[[], float]) -> float:
        """Seconds of the longest wait of the series."""
        return jittered(self.maximum, self.jitter, random)
