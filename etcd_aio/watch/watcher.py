"""Watcher: one watch as its user holds it, from entering to leaving.

Knows: how events are handed to whoever iterates. Never knows: streams, revisions to resume from, or retries.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn, Self
from weakref import ref

from etcd_aio.aio import start_background_task
from etcd_aio.call_options import Timeout
from etcd_aio.errors import ClientUsageError
from etcd_aio.types import Event, WatchBatch, WatchFilter
from etcd_aio.watch.resync import KnownKeys
from etcd_aio.watch.service import WatchService
from etcd_aio.watch.state import Phase, WatchOptions, WatchState

_NOT_ENTERED: Final = "the watch is not entered: write `async with client.watch(...) as watcher:`"


@dataclass(frozen=True, slots=True)
class WatchStatistics:
    """What a watch has seen.

    Attributes:
        is_connected: whether it is on a server now.
        seconds: how long it has been so.
        pending_events: events that came and were not delivered yet.
        pending_bytes: what they take in memory, estimated.
        delivered: events that were delivered.
        reconnects: how often it lost its server.
        pauses: how often it was taken off the server since its consumer was too slow.
    """

    is_connected: bool
    seconds: float
    pending_events: int
    pending_bytes: int
    delivered: int
    reconnects: int
    pauses: int


class _Taken(Enum):
    """By what a consumer takes its events."""

    NOT_YET = "not yet"
    SINGLY = "singly"
    BY_BATCH = "by batch"


class Watcher(AsyncIterator[Event]):
    """A watch. Entered, it is on the server; iterated over, it gives `Event`s, or `WatchBatch`es by `batches()`.

    It is entered and iterated over once, by one task at a time. However it is left (by a break, an exception, a
    cancellation), it is cancelled on the server at once, without waiting for the answer. One that is dropped without
    being left is too, once it is collected, with a ResourceWarning. Cancelling a step of the iteration loses no event:
    the next step gives it.

    Iterating raises, behind everything that was received, why the watch has ended, and again if it is asked again:

    - `CompactedError`: the next revision was compacted; `compact_revision` is the oldest that can be watched.
    - `PermissionDeniedError`: the user may not read the range.
    - `AuthenticationFailedError`: the login was refused, or `InvalidTokenError`: a new token was.
    - `StoreRolledBackError`: a backup was restored, or data wiped, so that the store is behind what was delivered.
    - `WatchCancelledError`: the server has ended the watch for another reason.
    - `NoAvailableEndpointsError`: there was no member to watch on, or no token to do so, for `max_outage` seconds.
    - `NotSupportedByServerError`: none of the endpoints serves watches.
    - `ReplyTooLargeError`, `MalformedReplyError`: the server sent what cannot be received.
    - `ClientClosedError`: the client was closed.
    """

    __slots__ = (
        "__weakref__",
        "_at",
        "_batch",
        "_before",
        "_bell",
        "_delivered",
        "_hub",
        "_is_closed",
        "_is_entered",
        "_is_taking",
        "_last_revision",
        "_loop",
        "_state",
        "_taken",
        "_task",
        "_timeout",
    )

    def __init__(self, hub: WatchService, options: WatchOptions, start_revision: int, timeout: Timeout) -> None:
        self._hub = hub
        self._bell = _Bell(self)
        self._state = WatchState(options, start_revision, self._bell.ring)
        self._timeout = timeout
        self._taken = _Taken.NOT_YET
        self._batch: tuple[Event, ...] = ()  # what single events are given from
        self._at = 0
        self._before = 0  # the revision that was delivered wholly before this batch
        self._delivered = 0  # events of earlier batches
        self._loop: asyncio.AbstractEventLoop | None = None  # that it was entered in
        self._task: asyncio.Task[None] | None = None  # lists the keys for a resync
        self._last_revision = 0  # that was delivered, once it is closed
        self._is_entered = False
        self._is_closed = False
        self._is_taking = False

    def __repr__(self) -> str:
        return f"<Watcher {self._state.options.keys} {self._state.phase.value} after revision {self.revision}>"

    def __del__(self) -> None:
        # The collector may run in any thread. A loop that is closed has nothing open any more.
        if self._is_entered and not self._is_closed and self._state.phase is not Phase.ENDED:
            if self._loop is not None:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(_abandon, self._hub, self._state, self._task)
            warnings.warn(f"dropped without being left: {self!r}", ResourceWarning, stacklevel=1, source=self)

    # Lifetime.

    if not TYPE_CHECKING:  # a type checker finds it, and says so

        def __await__(self) -> NoReturn:
            raise ClientUsageError(_NOT_ENTERED)

    async def __aenter__(self) -> Self:
        """Wait until the watch is on a server: everything that is written from now on will be delivered.

        Raises:
            EtcdTimeoutError: the server did not answer in time.
            NoAvailableEndpointsError: none could be connected to in time; `errors` has every endpoint's reason.
            PermissionDeniedError: the user may not read the range.
            RequestTooLargeError: its keys are larger than any server takes; nothing was sent.
            ClientUsageError: it was entered before, or the client is closed, or belongs to another loop or process.

        Cancellation leaves nothing behind.
        """
        if self._is_entered or self._is_closed:
            raise ClientUsageError("a watch is entered once: make another one")
        state, hub = self._state, self._hub
        if state.options.resync and WatchFilter.NO_DELETE not in state.options.filters:
            state.known = KnownKeys()
        began, deadline = hub.clock(), hub.deadline(self._timeout)
        hub.add(state)  # if it raises, there is nothing to close
        self._is_entered, self._loop = True, asyncio.get_running_loop()
        try:
            while not state.created_revision:
                if state.error is not None:
                    raise state.error
                if hub.clock() >= deadline:
                    raise hub.timeout_error(state, began)
                await self._wait(deadline)
            await hub.begin_known(state, deadline)
        except BaseException:  # a cancellation too: nobody else could take it from the server
            self._close()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch, and cancel it on the server at once. What was not delivered is forgotten. Safe to repeat."""
        self._close()

    def _close(self) -> None:
        if not self._is_closed:
            self._last_revision = self.revision
            self._is_closed = True
            self._batch, self._at, self._delivered = (), 0, self._delivered + self._at
            if self._is_entered:
                self._hub.close(self._state)
            self._on_change()

    # Iteration.

    def __aiter__(self) -> Self:
        self._take(_Taken.SINGLY)
        return self

    async def __anext__(self) -> Event:
        at = self._at
        if at == len(self._batch):
            at = await self._next_events()
        self._at = at + 1
        return self._batch[at]

    async def _next_events(self) -> int:
        self._take(_Taken.SINGLY)
        while True:
            events = (await self._next_batch()).events
            self._delivered += len(self._batch)
            self._batch, self._at = events, 0
            if events:
                return 0

    def batches(self) -> "WatchBatches":
        """The same watch by batches, each of one or more whole revisions, for whoever wants them.

        Raises:
            ClientUsageError: single events were already iterated over, so that the rest of a batch would be lost.
        """
        self._take(_Taken.BY_BATCH)
        return WatchBatches(self)

    async def next_batch(self) -> WatchBatch:
        """The next batch: what `batches()` would give.

        Raises:
            StopAsyncIteration: the watch was left.
            EtcdError: it has ended, and why.
        """
        self._take(_Taken.BY_BATCH)
        batch = await self._next_batch()
        self._delivered += len(batch.events)
        return batch

    async def _next_batch(self) -> WatchBatch:
        if self._is_taking:
            raise ClientUsageError("two tasks iterate over one watch: give each its own")
        state = self._state
        self._is_taking = True
        try:
            while not state.pending:
                if self._is_closed or state.phase is Phase.ENDED:
                    self._raise_end()
                await self._wait(inf)
        finally:
            self._is_taking = False
        self._before = state.taken_revision
        batch = state.take()
        self._hub.after_take(state)
        return batch

    def _take(self, taken: _Taken) -> None:
        if not self._is_entered:
            raise ClientUsageError(_NOT_ENTERED)
        if self._taken is not _Taken.NOT_YET and self._taken is not taken:
            raise ClientUsageError("the watch already gives the other: take events or batches, not both")
        self._taken = taken

    def _raise_end(self) -> NoReturn:
        error = self._state.error
        if self._is_closed or error is None:
            raise StopAsyncIteration
        raise error.with_traceback(None)  # it is raised whenever it is asked for, and would remember each time

    # What it tells.

    @property
    def revision(self) -> int:
        """The last revision that was delivered wholly, also after the end.

        A new watch from `revision + 1` misses and repeats nothing.

        0 before a watch from now is entered.
        """
        if self._is_closed:
            return self._last_revision
        state = self._state
        if self._at < len(self._batch):
            event = self._batch[self._at]
            # Of a resync the deletes come last, whenever they were: nothing is whole before all of it is delivered.
            return self._before if event.is_resync else event.kv.mod_revision - 1
        if state.pending:
            return state.taken_revision
        return max(state.taken_revision, state.next_revision - 1)

    async def request_progress(self) -> None:
        """Ask how far the watch is. The answer comes as a batch without events, behind everything before it.

        It moves `revision` on, too. This returns once it is asked, since the answer comes by iterating; etcd answers
        when no watch of this client is behind, and is asked again until then, over lost connections too.

        A proxy in between may never answer. Releases of etcd before 3.4.25 and 3.5.8 can answer too early: events at or
        before that revision may follow. This watch still delivers them, but a new one from `revision + 1` would not.

        Raises:
            ClientUsageError: the watch is not entered.
            EtcdError: the watch has ended, and why.
        """
        if not self._is_entered or self._is_closed:
            raise ClientUsageError("the watch is not entered, or closed")
        if self._state.error is not None:
            self._raise_end()
        self._hub.ask_for_mark(self._state)

    def statistics(self) -> WatchStatistics:
        """A snapshot of what the watch has seen."""
        state = self._state
        return WatchStatistics(
            is_connected=state.phase is Phase.LIVE,
            seconds=self._hub.clock() - state.since if self._is_entered else 0.0,
            pending_events=state.pending_events + len(self._batch) - self._at,
            pending_bytes=state.pending_bytes,
            delivered=self._delivered + self._at,
            reconnects=state.reconnects,
            pauses=state.pauses,
        )

    # Waiting.

    def _on_change(self) -> None:
        phase = self._state.phase
        if self._bell.waiter is not None:
            _wake(self._bell.waiter)
        if phase is Phase.LISTING:
            if self._task is None or self._task.done():
                self._task = start_background_task(self._hub.resync(self._state), name="etcd_aio watch resync")
        elif phase is Phase.ENDED and self._task is not None:
            self._task.cancel()

    async def _wait(self, deadline: float) -> None:
        """Wait for a change, but not beyond the deadline."""
        loop = asyncio.get_running_loop()
        waiter = self._bell.waiter = loop.create_future()
        timer = None if deadline == inf else loop.call_at(deadline, _wake, waiter)
        try:
            await waiter
        finally:
            self._bell.waiter = None
            if timer is not None:
                timer.cancel()


class _Bell:
    """By what the hub, which knows every watch, reaches a watcher, which it must not keep alive.

    Only a task that waits is kept, and by it its watcher: asyncio itself keeps no task that nobody will wake.
    """

    __slots__ = ("_watcher", "waiter")

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = ref(watcher)
        self.waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Tell the watcher that something changed."""
        watcher = self._watcher()
        if watcher is not None:
            watcher._on_change()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _abandon(hub: WatchService, state: WatchState, listing: "asyncio.Task[None] | None") -> None:
    """Nobody will take anything from this watch any more."""
    hub.close(state)
    if listing is not None:
        listing.cancel()


class WatchBatches(AsyncIterator[WatchBatch]):
    """A watch by batches; see `Watcher`, which it ends with."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        return await self._watcher.next_batch()

    async def aclose(self) -> None:
        """End the watch. Safe to repeat."""
        await self._watcher.aclose()
