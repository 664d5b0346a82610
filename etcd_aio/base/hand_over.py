"""HandOver: gives values to waiting tasks, each to the task that has waited longest. A value is never lost."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from etcd_aio.base.aio import wait_until

T = TypeVar("T")


class HandOver(Generic[T]):
    """Tasks that wait for values; its length is how many wait.

    Args:
        take_back: gets a value whose task was cancelled before it could use it.
    """

    __slots__ = ("_take_back", "_waiters")

    def __init__(self, take_back: Callable[[T], object]) -> None:
        self._take_back = take_back
        self._waiters: deque[asyncio.Future[T]] = deque()

    def __len__(self) -> int:
        return sum(not waiter.done() for waiter in self._waiters)

    def give(self, value: T) -> bool:
        """Give a value to the task that has waited longest; False if none waits."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(value)
                return True
        return False

    async def wait(self, deadline: float, late: T) -> T:
        """Wait for a value; `late` at the deadline.

        Cancellation: a value that was given already goes to `take_back`.
        """
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await wait_until(waiter, deadline, late)
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._take_back(waiter.result())
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
