"""Followers: the changes of a cache, as a difference from one step to the next, batch by batch, or those of its keys.

A follower begins at the content that is read in the same turn of the loop in which it is made, so it needs no history.
The cache holds followers weakly: one that is dropped is forgotten.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from etcd_aio import Event, KeyValue, WatchBatch
from etcd_aio.base import wake
from etcd_aio.cache.conflation import Conflation, resync_events
from etcd_aio.cache.steps import ContentStep
from etcd_aio.cache.waiting import raised_again
from etcd_aio.errors import ClientUsageError, WrongLoopError

_EVENT_BYTES: Final = 400  # memory of an event without its key and value, as `client.watch()` estimates it


class Follower:
    """The base of the followers: waiting for something to take, and the end.

    Args:
        forget: called when it is closed.
        loop: of the cache.
    """

    __slots__ = ("__weakref__", "_error", "_forget", "_has_ended", "_is_closed", "_is_taking", "_loop", "_waiter")

    def __init__(self, forget: "Callable[[Follower], None]", loop: asyncio.AbstractEventLoop) -> None:
        self._forget = forget
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._has_ended = self._is_closed = False
        self._is_taking = False
        self._error: Exception | None = None

    def add(self, step: ContentStep) -> None:
        """The content has changed."""
        raise NotImplementedError  # every follower below has its own

    def end(self, error: Exception | None) -> None:
        """The changes have ended: the iteration ends, or raises this error, behind what is not taken yet."""
        if not self._has_ended:
            self._has_ended, self._error = True, error
            wake(self._waiter)

    async def aclose(self) -> None:
        """End the iteration. Safe to repeat."""
        self._forget(self)
        self._is_closed = True
        self.end(None)

    async def _next(self, is_there: Callable[[], bool]) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise WrongLoopError  # no change of the cache would wake this
        if self._is_taking:
            raise ClientUsageError("two tasks iterate over the same changes: let each of them ask the cache")
        self._is_taking = True
        try:
            while self._is_closed or not is_there():
                if self._error is not None:
                    raise raised_again(self._error)
                if self._has_ended:
                    raise StopAsyncIteration
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        finally:
            self._is_taking = False


class CacheChanges(Follower, AsyncIterator[tuple[int, dict[bytes, KeyValue | None]]]):
    """The changes of a cache, conflated: made by `Cache.changes`, and iterated over by one task.

    However slow that task is, a step takes no more memory than the keys it is about. Cancelling a step loses nothing.
    """

    __slots__ = ("_conflation", "_revision")

    def __init__(self, forget: Callable[[Follower], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(forget, loop)
        self._conflation = Conflation()
        self._revision = 0

    def add(self, step: ContentStep) -> None:
        """The content has changed."""
        if step.changes:
            self._conflation.add(step)
            self._revision = step.revision
            wake(self._waiter)

    async def __anext__(self) -> tuple[int, dict[bytes, KeyValue | None]]:
        await self._next(lambda: bool(self._conflation.changes))
        return self._revision, self._conflation.take()


class KeySetChanges(Follower, AsyncIterator[int]):
    """The revisions at which keys came or went, conflated: made by `Cache.key_set_changes`.

    A key that comes and goes between two steps, or whose deletion is known only now, counts too: the events do, and not
    the difference between two contents.

    Cancelling a step loses nothing.

    Attributes:
        revision: the newest of them. If the content was read anew, that of the read: what came and went before is not
            known then.
    """

    __slots__ = ("_counts", "_has_moved", "revision")

    def __init__(
        self,
        forget: Callable[[Follower], None],
        loop: asyncio.AbstractEventLoop,
        counts: Callable[[bytes], bool],
        revision: int,
    ) -> None:
        super().__init__(forget, loop)
        self._counts = counts
        self._has_moved = False
        self.revision = revision

    def add(self, step: ContentStep) -> None:
        """The content has changed, or was read anew; of a store that went back to a backup, at a lower revision."""
        if step.is_load:
            self._move(step.revision)
            return
        for event in reversed(step.events):
            kv = event.kv
            if kv.mod_revision <= self.revision:
                return
            if (kv.version == 1 or not event.is_put) and self._counts(kv.key):
                self._move(kv.mod_revision)
                return

    def _move(self, revision: int) -> None:
        self.revision = revision
        self._has_moved = True  # to the same number, if the store was replaced
        wake(self._waiter)

    async def __anext__(self) -> int:
        await self._next(lambda: self._has_moved)
        self._has_moved = False
        return self.revision


class CacheBatches(Follower, AsyncIterator[WatchBatch]):
    """The changes of a cache, batch by batch: made by `Cache.batches`, and iterated over by one task.

    Cancelling a step loses nothing.
    """

    __slots__ = ("_bytes", "_conflation", "_max_pending", "_pending", "_revision")

    def __init__(self, forget: Callable[[Follower], None], loop: asyncio.AbstractEventLoop, max_pending: int) -> None:
        super().__init__(forget, loop)
        self._max_pending = max_pending
        self._pending: deque[tuple[WatchBatch, int]] = deque()  # with their sizes
        self._bytes = 0
        self._conflation: Conflation | None = None  # behind `_pending`, which is empty then
        self._revision = 0  # of the conflation

    def add(self, step: ContentStep) -> None:
        """The content has changed, or there is history that has changed nothing."""
        if step.changes and not step.events:
            self._overflow()
        if self._conflation is not None:
            self._conflation.add(step)
            self._revision = step.revision
            wake(self._waiter)
        elif step.events:
            self._append(step.events)

    def _append(self, events: tuple[Event, ...]) -> None:
        size = _EVENT_BYTES * (len(events) + 1) + sum(len(event.kv.key) + len(event.kv.value) for event in events)
        self._pending.append((WatchBatch(events, events[-1].kv.mod_revision), size))
        self._bytes += size
        if self._bytes > self._max_pending and len(self._pending) > 1:
            self._overflow()
        wake(self._waiter)

    async def __anext__(self) -> WatchBatch:
        await self._next(self._has_something)
        if self._conflation is not None:
            changes, self._conflation = self._conflation.take(), None
            return WatchBatch(resync_events(changes, self._revision), self._revision)
        batch, size = self._pending.popleft()
        self._bytes -= size
        return batch

    def _has_something(self) -> bool:
        if self._conflation is not None and not self._conflation.changes:
            self._conflation = None  # everything has cancelled itself out
        return self._conflation is not None or bool(self._pending)

    def _overflow(self) -> None:
        """From here on there is one difference, until it is taken."""
        if self._conflation is None:
            self._conflation = Conflation()
        for batch, _ in self._pending:
            self._conflation.add_events(batch.events)
            self._revision = max(self._revision, batch.revision)
        self._pending.clear()
        self._bytes = 0
