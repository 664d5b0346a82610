"""Watches: the iterator behind `Client.watch`, and `Watcher`, which calls functions with the events."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio import Client as AioClient
from etcd_aio import ClientClosedError, EtcdError, EtcdTimeoutError, EventType, WatchFilter
from etcd_aio import Event as AioEvent
from etcd_aio import KeyValue as AioKeyValue
from etcd_aio.base import start_task
from etcd_aio.compat._limits import OUTAGE_SECONDS
from etcd_aio.compat._ranges import named_keys
from etcd_aio.compat.aetcd.exceptions import ClientError, RevisionCompactedError, WatchTimeoutError, translated
from etcd_aio.compat.aetcd.rtypes import Event, EventKind
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import CompactedError, PermissionDeniedError

if TYPE_CHECKING:
    import asyncio

    from etcd_aio import Watcher as AioWatcher

_log: Final = logging.getLogger("aetcd.watcher")  # as programs that configure logging know it
_FILTERS: Final = {EventKind.PUT: WatchFilter.NO_DELETE, EventKind.DELETE: WatchFilter.NO_PUT}
_NUMBERS: Final = {EventType.PUT: 0, EventType.DELETE: 1}
_NOTHING: Final = AioKeyValue(b"")  # aetcd's value for a key that did not exist before
_ids: Final = count(1)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """The arguments of a watch, as of `Client.watch`."""

    key: bytes
    range_end: bytes | None = None
    start_revision: int | None = None
    progress_notify: bool = False
    kind: EventKind | None = None
    prev_kv: bool = False
    watch_id: int | None = None
    fragment: bool = False


class OpenWatch:
    """A watch on a server, as an iterator.

    Args:
        watcher: that of etcd_aio, which is entered.
        request: of the watch.
        compacted: the oldest revision that can be watched, if the wanted one is older.
    """

    def __init__(self, watcher: "AioWatcher", request: WatchRequest, compacted: int = 0) -> None:
        self.watch_id = request.watch_id or next(_ids)
        self._watcher = watcher
        self._has_prev_kv = request.prev_kv
        self._compacted = compacted

    def __aiter__(self) -> "OpenWatch":
        return self

    async def __anext__(self) -> Event:
        if self._compacted:
            raise RevisionCompactedError(self._compacted)
        try:
            return self._shown(await anext(self._watcher))
        except ClientClosedError:  # closing the client ends every watch, without an error
            raise StopAsyncIteration from None
        except CompactedError as error:
            raise RevisionCompactedError(error.compact_revision) from error
        except EtcdError as error:
            raise translated(error) from error

    def _shown(self, event: AioEvent) -> Event:
        before = (event.prev_kv or _NOTHING) if self._has_prev_kv else None
        return Event(_NUMBERS[event.type], event.kv, before)

    async def cancel(self) -> None:
        """End the watch."""
        self._compacted = 0
        await self._watcher.aclose()


async def open_watch(client: AioClient, request: WatchRequest) -> OpenWatch:
    """Create a watch on a server.

    Args:
        client: that of etcd_aio. Its timeout counts.
        request: of the watch.

    Raises:
        WatchTimeoutError: it was not created in time.
        ClientError: it cannot be created.
        TypeError: the kind is no `EventKind`.
    """
    kind = request.kind
    if kind is not None and not isinstance(kind, EventKind):
        raise TypeError(f"kind must be an EventKind, got {type(kind).__name__}")
    compacted = 0
    try:
        await _check_reachable(client)
        watcher = client.watch(
            **named_keys(request.key, request.range_end),
            start_revision=request.start_revision or 0,
            progress_notify=request.progress_notify,
            filters=() if kind is None else (_FILTERS[kind],),
            prev_kv=request.prev_kv,
            fragment=request.fragment or None,
            max_outage=OUTAGE_SECONDS,
        )
        try:
            await watcher.__aenter__()
        except CompactedError as error:  # aetcd raises it when the events are taken
            compacted = error.compact_revision
    except EtcdTimeoutError as error:
        raise WatchTimeoutError(str(error)) from error
    except EtcdError as error:
        raise translated(error) from error
    return OpenWatch(watcher, request, compacted)


async def _check_reachable(client: AioClient) -> None:
    """Raise the error of a server that cannot be reached: a watch would wait for it."""
    if not any(endpoint.state.name == "READY" for endpoint in client.statistics()):
        with suppress(PermissionDeniedError):
            await client.get(b"\0", serializable=True, keys_only=True)


Callback: TypeAlias = Callable[[Event | ClientError], Awaitable[None]]


class WatcherCallback:
    """A function that is called with the events of a watch.

    Attributes:
        callback: the function.
        watch_id: the number of the watch.
        prev_kv: whether events have the key before the change.
        error: the error that has ended the watch.
    """

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.watch_id: int | None = None
        self.prev_kv = False
        self.error: ClientError | None = None


class Watcher:
    """Calls async functions with the events of watches, in order, each watch in a task of its own.

    A function gets the error that ends its watch, too. What it raises is logged, and the watch goes on.

    Args:
        client: a client of etcd_aio, in the place of the stub that aetcd has here.
        timeout: not used: that of the client counts.
        metadata: not used.
    """

    def __init__(self, client: AioClient, timeout: float | None = None, metadata: object = None) -> None:
        self._client = client
        self._open: dict[int, OpenWatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def setup(self) -> None:
        """Do nothing: the first watch sets up what it needs."""

    async def add_callback(
        self,
        key: bytes,
        callback: Callback,
        range_end: bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        kind: EventKind | None = None,
        prev_kv: bool = False,
        watch_id: int | None = None,
        fragment: bool = False,
    ) -> WatcherCallback:
        """Watch keys, and call an async function with each event.

        Raises:
            WatchTimeoutError: the watch was not created in time.
            ClientError: it cannot be created.
        """
        request = WatchRequest(key, range_end, start_revision, progress_notify, kind, prev_kv, watch_id, fragment)
        opened = await open_watch(self._client, request)
        made = WatcherCallback(callback)
        made.watch_id, made.prev_kv = opened.watch_id, prev_kv
        self._open[opened.watch_id] = opened
        task = start_task(self._deliver(opened, made), name=f"aetcd watch {opened.watch_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return made

    async def _deliver(self, opened: OpenWatch, made: WatcherCallback) -> None:
        try:
            async for event in opened:
                await _call(made.callback, event)
        except ClientError as error:
            made.error = error
            await _call(made.callback, error)
        finally:
            self._open.pop(opened.watch_id, None)
            await opened.cancel()

    async def cancel(self, watch_id: int) -> None:
        """End a watch; a call of its function that has begun ends as usual."""
        opened = self._open.pop(watch_id, None)
        if opened is not None:
            await opened.cancel()

    async def shutdown(self) -> None:
        """End all watches."""
        for watch_id in list(self._open):
            await self.cancel(watch_id)


async def _call(callback: Callback, event: Event | ClientError) -> None:
    try:
        await callback(event)
    except Exception:  # of the user; the watch goes on
        _log.exception("the callback of a watch failed")
