"""Probe: one linearizable read of the store's revision for all callers that need one.

A caller may join a read only if that is sent after its call: an earlier one may have been answered from a state before
a write that the caller knows to be finished. So there is at most one read under way, and one next, which all callers
join meanwhile. However many there are, they cost one round trip after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from etcd_aio.base import Unwinding, resolve, start_background_task, wait_until
from etcd_aio.cache.waiting import raised_again
from etcd_aio.errors import CacheError

_Callers: TypeAlias = "set[asyncio.Future[int | Exception | None]]"


class SharedProbe:
    """Reads the revision of the store for any number of callers.

    Args:
        read: the read; it is bounded in time by itself.

    Attributes:
        reads: how many were sent.
    """

    def __init__(self, read: Callable[[], Awaitable[int]]) -> None:
        self._read = read
        self._now: _Callers = set()  # of the read that is under way
        self._next: _Callers | None = None
        self._task: asyncio.Task[None] | None = None
        self.reads = 0

    async def revision(self, deadline: float) -> int | None:
        """The revision of the store at an instant after this call; None at the deadline.

        Raises:
            EtcdError: the read failed, or the probe was closed.

        Cancellation: the read goes on for the others.
        """
        joined = self._next
        if joined is None:
            joined = self._next = set()
            if self._task is None:
                self._task = start_background_task(self._run(), name="etcd_aio cache probe")
        waiter: asyncio.Future[int | Exception | None] = asyncio.get_running_loop().create_future()
        joined.add(waiter)
        try:
            answer = await wait_until(waiter, deadline, None)
        finally:
            joined.discard(waiter)
        if isinstance(answer, Exception):
            raise raised_again(answer)
        return answer

    def close(self, reason: Exception) -> Unwinding:
        """End the read that is under way. All callers raise the reason."""
        self._end(reason)
        return () if self._task is None or not self._task.cancel() else (self._task,)

    async def _run(self) -> None:
        try:
            while self._next is not None:
                self._now, self._next = self._next, None  # from here on callers need the next one
                if self._now:
                    self.reads += 1
                    answer: int | Exception
                    try:
                        answer = await self._read()
                    except Exception as error:  # also of the application's own policies: the callers must see it
                        answer = error
                    for waiter in self._now:
                        resolve(waiter, answer)
        finally:
            self._end(CacheError("the task that asks for the revision was cancelled"))  # if callers wait still
            self._now, self._task = set(), None

    def _end(self, error: Exception) -> None:
        for waiter in (*self._now, *(self._next or ())):
            resolve(waiter, error)
        self._next = None
