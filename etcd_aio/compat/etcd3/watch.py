"""Watches: each with a thread for its callback, or read by the thread that waits for one response."""

import logging
import os
import threading
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from etcd_aio import EtcdTimeoutError, Header, WatchBatch, WatchFilter
from etcd_aio import Event as AioEvent
from etcd_aio.compat.etcd3 import etcdrpc, events, utils
from etcd_aio.compat.etcd3._translation import rpc_error, translated
from etcd_aio.compat.etcd3.exceptions import RevisionCompactedError, WatchTimedOut
from etcd_aio.errors import ClientClosedError, CompactedError, ForkedError

if TYPE_CHECKING:
    from etcd_aio import sync

LIMIT: Final = 30.0
"""Seconds for calls, and for the creation of watches, of a client without a `timeout`."""
MAX_OUTAGE: Final = 10.0
"""Seconds without any server after which a watch ends with an error. Shorter outages go unnoticed."""

_MAX_WAITING: Final = 100  # responses that an iterator has not taken; the watch waits then, and the server too
_FILTERS: Final = (WatchFilter.NO_PUT, WatchFilter.NO_DELETE)  # by their numbers

_log: Final = logging.getLogger("etcd3.watch")  # as programs that configure logging know it


class WatchResponse:
    """The events of one or more revisions; none if the server reports only how far the watch is.

    Attributes:
        header: its `revision` is the last one that the response covers; nothing else is known.
        events: the events, in their order.
    """

    def __init__(self, header: Header, events: Sequence[events.Event]) -> None:
        self.header = header
        self.events = events


class Callback(Protocol):
    """A function that is called with each response of a watch, and with the error that has ended it."""

    def __call__(self, response: WatchResponse | Exception, /) -> object:
        """Take a response."""
        ...


class Watch:
    """A watch id, with a method to cancel it."""

    def __init__(self, watch_id: int, iterator: Any = None, etcd_client: Any = None) -> None:
        self.watch_id = watch_id
        self.iterator = iterator
        self.etcd_client = etcd_client

    def cancel(self) -> None:
        """Cancel the watch."""
        self.etcd_client.cancel_watch(self.watch_id)


class Watcher:
    """The watches of a client. Each has a thread of its own for its callback, which ends with it.

    A watch outlives the loss of its server: it continues at another one, or at the same, without losing an event.

    Args:
        client: opens the watches.
        timeout: seconds for the creation of a watch. Default: None, `LIMIT` seconds.
    """

    def __init__(self, client: "sync.Client", timeout: float | None = None) -> None:
        self.timeout = timeout
        self._client = client
        self._ids = count(1)
        self._watches: dict[int, sync.Watcher] = {}

    def add_callback(
        self,
        key: str | bytes,
        callback: Callback,
        range_end: str | bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        filters: Iterable[int] | None = None,
        prev_kv: bool = False,
    ) -> int:
        """Create a watch, and call `callback` with each response, in a thread of its own, one call at a time.

        An exception of the callback is logged by the logger `etcd3.watch`, and does not end the watch. The error that
        ends the watch is the last thing that the callback is called with.

        Returns:
            int: the id, for `cancel`.

        Raises:
            WatchTimedOut: the watch was not created in time.
        """
        watch_id = next(self._ids)
        target: Callable[..., None]
        work: tuple[Any, ...]
        try:
            watch = self._entered(key, range_end, start_revision, progress_notify, filters, prev_kv)
        except CompactedError as error:
            target, work = _call, (callback, _as_given(error))
        else:
            self._watches[watch_id] = watch
            target, work = self._deliver, (watch_id, watch, callback)
        try:
            threading.Thread(target=target, args=work, name=f"etcd3_watch_{watch_id}", daemon=True).start()
        except BaseException:  # there can be no more threads; or a signal handler has raised
            self.cancel(watch_id)
            raise
        return watch_id

    def once(
        self,
        key: str | bytes,
        timeout: float | None = None,
        range_end: str | bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        filters: Iterable[int] | None = None,
        prev_kv: bool = False,
    ) -> WatchResponse:
        """Create a watch, wait for its first response with events, and cancel it.

        Args:
            timeout: seconds to wait for the response; None waits for ever.

        Raises:
            WatchTimedOut: the watch was not created in time, or no response came.
        """
        ends = None if timeout is None else monotonic() + timeout
        try:
            watch = self._entered(key, range_end, start_revision, progress_notify, filters, prev_kv)
        except CompactedError as error:
            raise _as_given(error) from error
        try:
            batches = watch.batches()
            while True:
                batch = batches.next(timeout=None if ends is None else max(0.0, ends - monotonic()))
                if batch:
                    return _response(batch)
        except EtcdTimeoutError:
            raise WatchTimedOut from None
        except CompactedError as error:
            raise _as_given(error) from error
        finally:
            _leave(watch)

    def cancel(self, watch_id: int) -> None:
        """Cancel a watch. Its callback is not called again, but may be running. An unknown id is ignored."""
        watch = self._watches.pop(watch_id, None)
        if watch is not None:
            _leave(watch)

    def close(self) -> None:
        """Cancel every watch."""
        for watch_id in tuple(self._watches):
            self.cancel(watch_id)

    def _entered(
        self,
        key: str | bytes,
        range_end: str | bytes | None,
        start_revision: int | None,
        progress_notify: bool,
        filters: Iterable[int] | None,
        prev_kv: bool,
    ) -> "sync.Watcher":
        limit = LIMIT if self.timeout is None else self.timeout
        first, end = utils.to_bytes(key), b"" if range_end is None else utils.to_bytes(range_end)
        is_endless = end == b"\0"
        watch = self._client.watch(
            None if is_endless else first,
            range_end=None if is_endless or not end else end,
            from_key=first if is_endless else None,
            start_revision=start_revision or 0,
            progress_notify=progress_notify,
            filters=[_FILTERS[number] for number in filters or ()],
            prev_kv=prev_kv,
            max_outage=MAX_OUTAGE,
            timeout=limit,
        )
        try:
            if not any(record.state.name == "READY" for record in self._client.statistics()):
                self._client.ping(limit)  # fails at once where every server refuses the connection; a watch would wait
            return watch.__enter__()
        except EtcdTimeoutError:
            raise WatchTimedOut from None

    def _deliver(self, watch_id: int, watch: "sync.Watcher", callback: Callback) -> None:
        """Call the callback until the watch has ended: the work of the thread of a watch."""
        try:
            for batch in watch.batches():
                if watch_id not in self._watches:
                    return
                _call(callback, _response(batch))
        except (ClientClosedError, CancelledError):  # the program has closed the client, or ends
            return
        except Exception as error:  # ends the watch, and this thread: the callback learns it
            if self._watches.pop(watch_id, None) is not None:
                _call(callback, _as_given(error))
        finally:
            with suppress(ClientClosedError, CancelledError):
                self.cancel(watch_id)


class Responses:
    """The iterator of `watch_response`: takes what the callback of a watch is given.

    It ends by `close`. It raises the error that has ended the watch, once, as python-etcd3 names it. If it is not read,
    the watch waits after a hundred responses. After a fork the child has none of it: reading it raises `ForkedError`.

    Attributes:
        is_closed: whether it has ended.
    """

    def __init__(self) -> None:
        self._waiting: deque[WatchResponse | Exception] = deque()
        self._changed = threading.Condition()
        self._process = os.getpid()
        self.is_closed = False

    def put(self, response: WatchResponse | Exception) -> None:
        """Add a response: the callback of the watch. It waits while there are too many."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or len(self._waiting) < _MAX_WAITING)
            self._waiting.append(response)
            self._changed.notify_all()

    def close(self) -> None:
        """End the iteration."""
        self.is_closed = True
        if self._is_forked:  # the lock may be held by a thread of the parent
            return
        with self._changed:
            self._changed.notify_all()

    def __iter__(self) -> Self:
        return self

    @property
    def _is_forked(self) -> bool:
        return os.getpid() != self._process

    def __next__(self) -> WatchResponse:
        if self._is_forked:
            raise ForkedError("the watch was made before os.fork(): make a new one in the child process")
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._waiting)
            if self.is_closed:
                raise StopIteration
            response = self._waiting.popleft()
            self._changed.notify_all()
            if isinstance(response, Exception):
                self.is_closed = True
                raise translated(response)
            return response


def events_of(responses: Responses) -> Iterator[events.Event]:
    """The events of the responses, until these are closed."""
    for response in responses:
        for event in response.events:
            if responses.is_closed:
                return
            yield event


def _leave(watch: "sync.Watcher") -> None:
    watch.__exit__(None, None, None)


def _call(callback: Callback, response: WatchResponse | Exception) -> None:
    try:
        callback(response)
    except Exception:  # of the user; the watch goes on
        _log.exception("the callback of a watch has failed")


def _as_given(error: Exception) -> Exception:
    """An error as callbacks get it."""
    if isinstance(error, CompactedError):
        return RevisionCompactedError(error.compact_revision)
    return rpc_error(error)


def _response(batch: WatchBatch) -> WatchResponse:
    return WatchResponse(Header(revision=batch.revision), [_event(event) for event in batch])


def _event(event: AioEvent) -> events.Event:
    kind = etcdrpc.Event.DELETE if event.is_delete else etcdrpc.Event.PUT
    return events.new_event(etcdrpc.Event(kind, event.kv, event.prev_kv or etcdrpc.NO_KEY_VALUE))
