"""Pauses: the waits between the tries of one thing: longer after each failure, and short again after a success."""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from etcd_aio.base.backoff import Backoff

SOON: Final = Backoff(initial=0.05, multiplier=2.0, maximum=1.0, jitter=0.2)
"""For what others wait for: a lock must follow the cluster back within a second."""

STEADY: Final = Backoff(initial=0.1, multiplier=2.0, maximum=5.0, jitter=0.2)
"""For what goes on in the background."""

PATIENT: Final = Backoff(initial=0.5, multiplier=2.0, maximum=10.0, jitter=0.2)
"""For what may fail for hours, such as an entry that is to be there for as long as its process runs."""


class Pauses:
    """The pauses between the tries of one thing.

    Args:
        backoff: how they grow.
        random: returns a number in [0, 1); by default `random.random`.

    Attributes:
        backoff: the same; it may be changed, and the failures go on.
        failures: since the last success.
    """

    __slots__ = ("_random", "backoff", "failures")

    def __init__(self, backoff: Backoff = STEADY, random: Callable[[], float] | None = None) -> None:
        self.backoff = backoff
        self._random = random
        self.failures = 0

    def next(self) -> float:
        """A try has failed: seconds until the next one."""
        seconds = self.backoff.wait(self.failures, self._random or random.random)
        self.failures += 1
        return seconds

    def reset(self) -> None:
        """A try has succeeded."""
        self.failures = 0

    async def wait(self) -> None:
        """A try has failed: wait until it is time for the next one."""
        await asyncio.sleep(self.next())
