"""Virtual time: an event loop whose clock jumps to the next timer as soon as nothing else is left to do.

Hours pass in microseconds, in the same order every time. A test that waits for an event that cannot happen fails at
once instead of hanging.
"""

import asyncio
import selectors
from typing import Final

from tests.support.loops import Backend, with_tasks

_START: Final = 1000.0  # not 0, which a test could take for "no value"
_END: Final = _START + 10 * 365 * 86400.0  # a longer wait counts as endless


class _JumpingSelector(selectors.SelectSelector):
    """Reports ready files; instead of waiting it moves the clock."""

    now = _START

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector.select`."""
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: nothing is ready and no timer is set")
            self.now += max(timeout, 0.0)
            if self.now > _END:
                raise RuntimeError("deadlock: only timers without an end are left")
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop. Tests marked `virtual_time` run on it."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        with_tasks(self)

    def time(self) -> float:
        """The virtual instant."""
        return self._jumping.now

    def block(self, seconds: float) -> None:
        """Let time pass in which nothing else runs."""
        self._jumping.now += seconds


BACKEND: Final[Backend] = ("asyncio", {"loop_factory": VirtualTimeLoop})


async def turns(number: int = 3) -> None:
    """Let everything run that is ready, without letting time pass."""
    for _ in range(number):
        await asyncio.sleep(0)


def timers() -> int:
    """How many timers are still to come."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    scheduled: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
    return sum(not handle.cancelled() for handle in scheduled)


def tasks() -> set["asyncio.Task[object]"]:
    """Every task but the one that asks and those of the test runner."""
    current = asyncio.current_task()
    return {
        task
        for task in asyncio.all_tasks()
        if task is not current and not getattr(task.get_coro(), "__qualname__", "").startswith("TestRunner.")
    }
