"""Watches: events as etcd3gw shows them, and `Watcher`, which calls a function with them in a thread of its own."""

import logging
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread
from typing import Any, Final, Protocol, Self
from weakref import finalize

from etcd_aio import ClientClosedError, EtcdError, Event, WatchFilter
from etcd_aio.compat._limits import OUTAGE_SECONDS
from etcd_aio.compat._ranges import named_keys
from etcd_aio.compat.etcd3gw import types
from etcd_aio.compat.etcd3gw._errors import translated, translating
from etcd_aio.compat.etcd3gw._json import to_json
from etcd_aio.compat.etcd3gw.utils import to_bytes
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.sync import Client as SyncClient
from etcd_aio.sync import Watcher as SyncWatcher

_log: Final = logging.getLogger("etcd3gw.watch")  # as programs that configure logging know it
_FILTERS: Final = {
    "NOPUT": WatchFilter.NO_PUT,
    0: WatchFilter.NO_PUT,
    "NODELETE": WatchFilter.NO_DELETE,
    1: WatchFilter.NO_DELETE,
}


class WatchCalls(Protocol):
    """The client of etcd_aio that a client has, and the time of a call."""

    @property
    def sync(self) -> SyncClient:
        """The client of etcd_aio."""
        ...

    @property
    def seconds(self) -> float:
        """The time that a call has."""
        ...


def warn_of(unknown: Iterable[str]) -> None:
    """Tell of arguments that no request of etcd has."""
    if names := ", ".join(unknown):
        warnings.warn(f"unknown arguments: {names}", DeprecationWarning, stacklevel=3)


def open_watch(
    client: WatchCalls,
    key: str | bytes,
    *,
    start_revision: int | None = None,
    progress_notify: bool | None = None,
    filters: Iterable[str | int] | None = None,
    prev_kv: bool | None = None,
    range_end: str | bytes | None = None,
    watch_id: int | None = None,
    fragment: bool | None = None,
    **unknown: Any,
) -> SyncWatcher:
    r"""Create a watch on a server: what is written from now on will be delivered.

    Args:
        client: sends the request.
        key: the key, or the first one of a range.
        start_revision: the first revision of interest.
        progress_notify: let the server report progress, which keeps a quiet watch from falling behind.
        filters: events that the server leaves out: `NOPUT`, `NODELETE`.
        prev_kv: each event has the key as it was before.
        range_end: the end of the range; "\0" is no end.
        watch_id: not used: etcd_aio numbers its watches itself, and no event shows the number.
        fragment: let the server split large messages.
        unknown: arguments that etcd does not have; they are told of.

    Raises:
        Etcd3Exception: the watch cannot be created.
    """
    warn_of(unknown)
    aio, timeout = client.sync, client.seconds
    with translating():
        if not any(endpoint.state.name == "READY" for endpoint in aio.statistics()):
            # The error of a server that cannot be reached comes at once: a watch would wait for it.
            with suppress(PermissionDeniedError):
                aio.get(b"\0", serializable=True, keys_only=True, timeout=timeout)
        watcher = aio.watch(
            **named_keys(to_bytes(key), None if range_end is None else to_bytes(range_end)),
            start_revision=start_revision or 0,
            progress_notify=bool(progress_notify),
            filters=[_FILTERS[one] for one in filters or ()],
            prev_kv=bool(prev_kv),
            fragment=fragment,
            max_outage=OUTAGE_SECONDS,
            timeout=timeout,
        )
        return watcher.__enter__()


def shown(event: Event) -> types.Event:
    """An event as etcd3gw shows it."""
    kv = to_json(event.kv)
    kv["key"] = event.kv.key
    if event.kv.value:
        kv["value"] = event.kv.value
    found: types.Event = {"kv": kv}
    if event.is_delete:
        found["type"] = "DELETE"
    if event.prev_kv is not None:
        found["prev_kv"] = to_json(event.prev_kv)
    return found


def leave(watcher: SyncWatcher) -> None:
    """End a watch. Safe to repeat."""
    with suppress(ClientClosedError, CancelledError):
        watcher.__exit__(None, None, None)


class Events:
    """The events of a watch, one after the other, until it is cancelled. A watch that is dropped is cancelled, too.

    Iterating raises `Etcd3Exception` if the watch has ended for another reason.

    Args:
        watcher: the watch, which is entered.
    """

    def __init__(self, watcher: SyncWatcher) -> None:
        self._watcher = watcher
        self._dropped = finalize(self, _leave_apart, watcher)
        self._dropped.atexit = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> types.Event:
        try:
            return shown(next(self._watcher))
        except CancelledError:  # the program ends
            raise StopIteration from None
        except EtcdError as error:
            raise translated(error) from error

    @property
    def cancel(self) -> Callable[[], None]:
        """A function that cancels the watch, from any thread. It does not keep the watch."""
        dropped, watcher = self._dropped, self._watcher

        def cancel() -> None:
            dropped.detach()
            leave(watcher)

        return cancel


def _leave_apart(watcher: SyncWatcher) -> None:
    """End a watch that was dropped: the thread that collects it may be that of the loop, which must not wait."""
    Thread(target=leave, args=(watcher,), name="etcd3gw dropped", daemon=True).start()


class Watcher:
    """Calls a function with each event, in a thread of its own. What the function raises is logged.

    The arguments are those of `Etcd3Client.watch`, and the function.
    """

    def __init__(
        self, client: WatchCalls, key: str | bytes, callback: Callable[[types.Event], object], **options: Any
    ) -> None:
        self._watcher = open_watch(client, key, **options)
        self._callback = callback
        Thread(target=self._run, name="etcd3gw watch", daemon=True).start()

    def _run(self) -> None:
        try:
            for event in self._watcher:
                self._call(shown(event))
        except (ClientClosedError, CancelledError):  # the program has closed the client, or ends
            return
        except EtcdError as error:
            _log.warning("a watch has ended: %s", error)
        finally:
            leave(self._watcher)

    def _call(self, event: types.Event) -> None:
        try:
            self._callback(event)
        except Exception:  # of the user; the watch goes on
            _log.exception("the callback of a watch failed")

    def stop(self) -> None:
        """End the watch. A call of the function that has begun ends as usual."""
        leave(self._watcher)
