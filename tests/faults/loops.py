"""An event loop whose clock runs faster or slower than the machine's, and a log of when it stood still."""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any, Final

from tests.faults.account import SHORTEST

_TICK: Final = 0.01


class _Selector(selectors.DefaultSelector):
    """Waits in the time of a loop with another rate."""

    rate = 1.0

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout if timeout is None or timeout <= 0 else timeout / self.rate)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, rate: float) -> None:
        selector = _Selector()
        selector.rate = rate
        super().__init__(selector)
        self._rate = rate
        self._zero = time.monotonic()

    def time(self) -> float:
        return self._zero + (time.monotonic() - self._zero) * self._rate


def new_loop(rate: float) -> Callable[[], asyncio.AbstractEventLoop]:
    """Make loops whose clock has this rate: 1.1 is a clock that is 10 % too fast."""
    return lambda: _Loop(rate)


async def tell_stalls(tell: Callable[[float, float], None]) -> None:
    """Tell the beginning and the end of each time in which the loop did nothing for longer than `SHORTEST`."""
    before = time.monotonic()
    while True:
        await asyncio.sleep(_TICK)
        now = time.monotonic()
        if now - before > SHORTEST:
            tell(before, now)
        before = now
