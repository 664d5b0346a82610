"""SingleFlight: one call for all tasks that need its result, which none of them cancels."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from etcd_aio import EtcdTimeoutError
from etcd_aio.base import NEVER, start_background_task, time_left
from etcd_aio.errors import ClientUsageError

T = TypeVar("T")


def seconds_left(deadline: float) -> float | None:
    """The timeout of a call that must end by an instant of the running loop; None if that is never."""
    return None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())


class SingleFlight(Generic[T]):
    """Runs a call in a background task, for all tasks that wait for it.

    Args:
        call: the call; it is bounded in time by itself.
        what: what it returns, for the name of the task and the error.
    """

    __slots__ = ("_call", "_task", "_what")

    def __init__(self, call: Callable[[], Coroutine[object, object, T]], what: str) -> None:
        self._call = call
        self._what = what
        self._task: asyncio.Task[T] | None = None

    async def result(self, deadline: float) -> T:
        """Wait for the result of the call that is under way; if there is none, begin one.

        Raises:
            EtcdTimeoutError: there was no result by the deadline.
            ClientUsageError: the call was cancelled by `cancel`.
            EtcdError: the call failed.
        """
        task = self._task
        if task is None or task.done():
            task = self._task = start_background_task(self._call(), name=f"etcd_aio once {self._what}")
            task.add_done_callback(_look_at)
        await asyncio.wait([task], timeout=seconds_left(deadline))
        if not task.done():
            raise EtcdTimeoutError(f"there was no {self._what} for exactly-once writes in time")
        if task.cancelled():
            raise ClientUsageError("the block of exactly_once() has ended")
        return task.result()

    def cancel(self) -> None:
        """Cancel the call that is under way."""
        if self._task is not None:
            self._task.cancel()


def _look_at(task: "asyncio.Task[T]") -> None:
    """No task may be left that waits for the error: asyncio need not report it."""
    if not task.cancelled():
        task.exception()
