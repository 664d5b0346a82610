"""The gate of dials: of many clients that dial one target, a few begin at a time.

Handshakes compute, here and in the member. If hundreds begin together, all of them end late, and none in time. So the
others wait, in the order in which they came. Each target has its own turns, and a turn ends after `HOLD` at the latest,
since a dial that lasts longer only waits: a dead endpoint delays no other endpoint, and its own dials little.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Final

from etcd_aio.base.aio import start_timer, wake
from etcd_aio.dataclass import dataclass

WIDTH: Final = 16
"""Dials to one target that may begin together: enough to keep a member busy, and each is done within milliseconds."""

HOLD: Final = 0.25
"""Seconds after which a dial no longer counts."""


class DialGate:
    """The turns of all targets, of one event loop."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}

    def __len__(self) -> int:
        return len(self._queues)

    @asynccontextmanager
    async def turn(self, target: Hashable) -> AsyncIterator[None]:
        """Wait for a turn to dial `target`; the block is the dial."""
        has_ended = False

        def end() -> None:
            nonlocal has_ended
            if not has_ended:
                has_ended = True
                self.release(target)

        queue = self._queues.setdefault(target, _Queue())
        if queue.taken < WIDTH:
            queue.taken += 1
        else:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.waiters.append(waiter)
            try:
                await waiter
            except BaseException:  # a cancellation
                if waiter.done() and not waiter.cancelled():  # the turn came together with the cancellation
                    end()
                raise
        timer = start_timer(HOLD, end)
        try:
            yield
        finally:
            timer.cancel()
            end()

    def release(self, target: Hashable) -> None:
        """Give a turn to the dial that has waited longest."""
        queue = self._queues[target]
        while queue.waiters:
            waiter = queue.waiters.popleft()
            if not waiter.done():
                wake(waiter)
                return
        queue.taken -= 1
        if not queue.taken:
            del self._queues[target]


@dataclass(slots=True)
class _Queue:
    """The dials to one target: those that have a turn, and those that wait for one."""

    taken: int = 0
    waiters: deque[asyncio.Future[None]] = field(default_factory=deque)
