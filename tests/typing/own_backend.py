import asyncio
from typing import TypeVar

from etcd_aio import UNSET, Client, EtcdError, KeyRange, RetryMode, Store
from etcd_aio import Operation, Timeout, WatchBatch, Watcher
from etcd_aio.backend import Backend, ChunkReader, WatchCall
from etcd_aio.base import time_left
from etcd_aio.errors import EtcdTimeoutError

R = TypeVar("R")


class Limited:
    """A backend for which at most `limit` calls are under way."""

    def __init__(self, backend: Backend, limit: int) -> None:
        self._backend = backend
        self._places = asyncio.Semaphore(limit)
        self.shared = backend.shared
        self.key_space = backend.key_space
        self.leases = backend.leases
        self.events = 0

    async def do(
        self,
        operation: Operation[R],
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> R:
        deadline = self.shared.deadline(timeout)
        try:
            async with asyncio.timeout_at(deadline):
                await self._places.acquire()
        except TimeoutError:
            raise EtcdTimeoutError("too many calls are under way") from None
        try:
            left = time_left(deadline, self.shared.clock())
            return await self._backend.do(operation, timeout=left, retry=retry)
        finally:
            self._places.release()

    def chunks(self) -> ChunkReader:
        return self._backend.chunks()

    def watch(self, call: WatchCall) -> Watcher:
        return self._backend.watch(call.shown_by(Counted(self, call)))


class Counted:
    """The view of one watch."""

    def __init__(self, backend: Limited, call: WatchCall) -> None:
        self._backend = backend
        self.keys: KeyRange = call.options.keys

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        self._backend.events += len(batch)
        return batch

    def explain(self, error: EtcdError) -> None:
        """The keys in errors are those that the user wrote."""
