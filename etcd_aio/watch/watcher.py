"""Watcher: one watch as its user holds it: entering, iterating, leaving."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Final, Literal, NoReturn, Self, TypeAlias

from etcd_aio.base.aio import wait_until
from etcd_aio.base.call_options import Timeout
from etcd_aio.base.not_awaitable import NotAwaitable
from etcd_aio.base.reprs import when_constructed
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ClientUsageError
from etcd_aio.types import Event, WatchBatch, WatchFilter
from etcd_aio.watch.compaction_resync import KnownKeys
from etcd_aio.watch.event_source import EventSource
from etcd_aio.watch.service import WatchService
from etcd_aio.watch.state import Phase, WatchOptions, WatchState

_NOT_ENTERED: Final = "the watch is not entered: write `async with client.watch(...) as watcher:`"


def two_tasks_error() -> ClientUsageError:
    """The error of a task that iterates over a watch while another one does."""
    return ClientUsageError("two tasks iterate over one watch: use a watch for each of them")


@dataclass(frozen=True, slots=True)
class WatchStatistics:
    """Counters of a watch.

    Attributes:
        is_connected: whether the watch is on a server now.
        seconds: how long that has been so.
        pending_events: events that were received and not delivered yet.
        pending_bytes: the memory they take, estimated.
        delivered: events that were delivered.
        reconnects: how often the watch lost its server.
        pauses: how often it was cancelled on the server for a time, because its consumer was too slow.
    """

    is_connected: bool
    seconds: float
    pending_events: int
    pending_bytes: int
    delivered: int
    reconnects: int
    pauses: int


_Mode: TypeAlias = Literal["events", "batches"]
"""The way in which a consumer takes the events of its watch."""


class Watcher(EventSource, NotAwaitable, AsyncIterator[Event]):
    """A watch. Entering it creates it on a server; iterating yields `Event`s, or `WatchBatch`es by `batches()`.

    It is entered and iterated over once, by one task at a time. However it is left (by a break, an exception, a
    cancellation), it is cancelled on the server at once, without waiting for the answer. So is a watch that is garbage
    collected without being left, with a ResourceWarning. Cancelling a step of the iteration loses no event: the next
    step returns it.

    Iterating raises, after everything that was received, the reason why the watch has ended, every time:

    - `CompactedError`: the next revision was compacted; `compact_revision` is the oldest that can be watched.
    - `PermissionDeniedError`: the user may not read the range.
    - `AuthenticationFailedError`: the login was refused, or `InvalidTokenError`: a new token was.
    - `StoreRolledBackError`: a backup was restored, or data wiped, so that the store is behind the delivered events.
    - `WatchCancelledError`: the server has ended the watch for another reason.
    - `NoAvailableEndpointsError`: there was no member to watch on, or no token, for `max_outage` seconds.
    - `NotSupportedByServerError`: none of the endpoints serves watches.
    - `ReplyTooLargeError`, `MalformedReplyError`: the server sent a message that cannot be received.
    - `ClientClosedError`: the client was closed.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    __slots__ = (
        "__weakref__",
        "_before",
        "_delivered",
        "_is_closed",
        "_is_entered",
        "_is_taking",
        "_last_revision",
        "_loop",
        "_mode",
        "_notifier",
        "_service",
        "_state",
        "_timeout",
    )

    def __init__(self, service: WatchService, options: WatchOptions, start_revision: int, timeout: Timeout) -> None:
        self._service = service
        self._notifier = _Notifier()
        self._state = WatchState(options, start_revision, self._notifier.notify)
        self._timeout = timeout
        self._mode: _Mode | None = None  # not decided
        self._batch: tuple[Event, ...] = ()  # the source of single events
        self._at = 0
        self._before = 0  # the last revision before this batch
        self._delivered = 0  # events of earlier batches
        self._loop: asyncio.AbstractEventLoop | None = None  # that it was entered in
        self._last_revision = 0  # that was delivered, once the watch is closed
        self._is_entered = False
        self._is_closed = False
        self._is_taking = False

    @when_constructed
    def __repr__(self) -> str:
        return f"<Watcher {self._state.options.keys} {self._state.phase.value} after revision {self.revision}>"

    def __del__(self, ended: Phase = Phase.ENDED, warn: Callable[..., None] = warnings.warn) -> None:
        # At exit the module may be gone. The collector may run in any thread. A closed loop has no open streams.
        if self._is_entered and not self._is_closed and self._state.phase is not ended:
            if self._loop is not None and not self._loop.is_closed():
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._service.close, self._state)
            warn(f"watch was not closed: {self!r}", ResourceWarning, stacklevel=1, source=self)

    # Lifetime.

    async def __aenter__(self) -> Self:
        """Wait until the watch is on a server: everything that is written from now on will be delivered.

        Raises:
            EtcdTimeoutError: the server did not answer in time.
            NoAvailableEndpointsError: no member could be connected to in time; `errors` has every endpoint's reason.
            PermissionDeniedError: the user may not read the range.
            RequestTooLargeError: the keys are larger than every server accepts; nothing was sent.
            ClientUsageError: it was entered before, or the client is closed, or belongs to another loop or process.

        Cancellation leaves nothing behind.
        """
        if self._is_entered or self._is_closed:
            raise ClientUsageError("a watch can only be entered once: create another one")
        state, service = self._state, self._service
        if state.options.resync and WatchFilter.NO_DELETE not in state.options.filters:
            state.known = KnownKeys()
        began, deadline = service.clock(), service.deadline(self._timeout)
        service.add(state)  # if it raises, there is nothing to close
        self._is_entered, self._loop = True, asyncio.get_running_loop()
        try:
            while not state.created_revision:
                if state.error is not None:
                    raise state.error
                if service.clock() >= deadline:
                    raise service.timeout_error(state, began)
                await wait_until(self._notifier.next_change(), deadline, None)
            await service.list_first_keys(state, deadline)
        except BaseException:  # a cancellation too: nothing else would cancel it on the server
            self._close()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch: cancel it on the server, and forget the events that were not delivered. Safe to repeat.

        It never waits; it is a coroutine as every `aclose` is.
        """
        self._close()

    def _close(self) -> None:
        if not self._is_closed:
            self._last_revision = self.revision
            self._is_closed = True
            self._batch, self._at, self._delivered = (), 0, self._delivered + self._at
            if self._is_entered:
                self._service.close(self._state)
            self._notifier.notify()

    # Iteration.

    def __aiter__(self) -> Self:
        self._require_mode("events")
        return self

    async def _next_event(self) -> Event:
        at = self._at
        while at == len(self._batch):
            self._require_mode("events")
            events = (await self._next_batch()).events
            self._delivered += len(self._batch)
            self._batch, at = events, 0
            self._at = 0
        self._at = at + 1
        return self._batch[at]

    def take_ready(self) -> Event | None:
        """The next event, if it has come with the one before; the only method that another thread may call."""
        batch, at = self._batch, self._at
        if at >= len(batch):
            return None
        self._at = at + 1
        return batch[at]

    def batches(self) -> "WatchBatches":
        """Iterate over the same watch by batches, each of one or more whole revisions.

        Raises:
            ClientUsageError: single events were iterated over before, so that the rest of a batch would be lost.
        """
        self._require_mode("batches")
        return WatchBatches(self)

    async def next_batch(self) -> WatchBatch:
        """Wait for the next batch of `batches()`.

        Raises:
            StopAsyncIteration: the watch was left.
            EtcdError: the reason why the watch has ended.
        """
        self._require_mode("batches")
        batch = await self._next_batch()
        self._delivered += len(batch.events)
        return batch

    async def _next_batch(self) -> WatchBatch:
        if self._is_taking:
            raise two_tasks_error()
        state = self._state
        self._is_taking = True
        try:
            while not state.pending:
                if self._is_closed or state.phase is Phase.ENDED:
                    self._raise_end()
                await self._notifier.next_change()
        finally:
            self._is_taking = False
        self._before = state.taken_revision
        batch = state.take()
        if state.phase is Phase.PAUSED:
            self._service.resume(state)
        return batch

    def _require_mode(self, mode: _Mode) -> None:
        if not self._is_entered:
            raise ClientUsageError(_NOT_ENTERED)
        if self._mode not in (None, mode):
            raise ClientUsageError(f"this watch is iterated over by {self._mode}: use events or batches, not both")
        self._mode = mode

    def _raise_end(self) -> NoReturn:
        error = self._state.error
        if self._is_closed or error is None:
            raise StopAsyncIteration
        raise error.with_traceback(None)  # it is raised repeatedly, and the traceback would grow

    # State.

    @property
    def revision(self) -> int:
        """The last revision that was delivered completely, also after the end; 0 before a watch from now is entered.

        A new watch from `revision + 1` misses and repeats nothing.
        """
        if self._is_closed:
            return self._last_revision
        state = self._state
        if self._at < len(self._batch):
            event = self._batch[self._at]
            # The deletes of a resync come last, whenever they were: none of it is complete before all is delivered.
            return self._before if event.is_resync else event.kv.mod_revision - 1
        if state.pending:
            return state.taken_revision
        return max(state.taken_revision, state.next_revision - 1)

    async def request_progress(self) -> None:
        """Request the progress of the watch. The answer comes as a batch without events, behind everything before it.

        It advances `revision`, too. This never waits: it is a coroutine so that it may wait in a later version, and the
        answer comes by iterating. etcd answers when no watch of this client is behind; the request is repeated until
        then, over lost connections too.

        A proxy in between may never answer. Releases of etcd before 3.4.25 and 3.5.8 can answer too early: events at or
        before that revision may follow. This watch still delivers them, but a new one from `revision + 1` would not. If
        that cannot be excluded, the batch has `may_be_early`; so has the first answer of each member, since its release
        is asked for only then.

        Raises:
            ClientUsageError: the watch is not entered.
            EtcdError: the reason why the watch has ended.
        """
        if not self._is_entered or self._is_closed:
            raise ClientUsageError("the watch is not entered, or closed")
        if self._state.error is not None:
            self._raise_end()
        self._service.request_progress(self._state)

    def statistics(self) -> WatchStatistics:
        """A snapshot of the counters."""
        state = self._state
        return WatchStatistics(
            is_connected=state.phase is Phase.LIVE,
            seconds=self._service.clock() - state.since if self._is_entered else 0.0,
            pending_events=state.pending_events + len(self._batch) - self._at,
            pending_bytes=state.pending_bytes,
            delivered=self._delivered + self._at,
            reconnects=state.reconnects,
            pauses=state.pauses,
        )


class _Notifier:
    """Wakes the task that waits for a change of a watch.

    It holds no reference to the watcher, so that the service, which holds every watch, does not keep a watcher alive.
    Only a waiting task is kept alive, by the future that it waits for, and the watcher by that task.
    """

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """The watch has changed."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def next_change(self) -> "asyncio.Future[None]":
        """A future that is resolved by the next change."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter


class WatchBatches(AsyncIterator[WatchBatch]):
    """A watch by batches; see `Watcher.batches`."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        return await self._watcher.next_batch()

    async def aclose(self) -> None:
        """End the watch. Safe to repeat."""
        await self._watcher.aclose()
