"""Clients: the open clients of an observer, whose statistics can be read from any thread.

Metrics are collected by threads of their own, and a client belongs to its event loop. So the loop is asked, and
a client whose loop does not answer in time is left out of that collection.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import chain
from threading import Lock
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from etcd_aio.observing import ObservedClient
from etcd_aio.types import ConnectivityState, EndpointStatistics, StreamStatistics

T = TypeVar("T")

_PATIENCE: Final = 1.0  # seconds for all loops together; the usual limit of a collection is 10


class Clients:
    """The open clients of an observer, or of several that share their gauges, by weak references."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loops: WeakKeyDictionary[ObservedClient, tuple[asyncio.AbstractEventLoop, int]] = WeakKeyDictionary()
        self._observers: WeakKeyDictionary[ObservedClient, int] = WeakKeyDictionary()

    def add(self, client: ObservedClient) -> None:
        """A client begins to work in the running loop, as an observer has seen."""
        with self._lock:
            self._loops[client] = (asyncio.get_running_loop(), os.getpid())
            self._observers[client] = self._observers.get(client, 0) + 1

    def discard(self, client: ObservedClient) -> None:
        """A client is closed, or an observer that has added it sees it no longer."""
        with self._lock:
            left = self._observers.pop(client, 0) - 1
            if left > 0:
                self._observers[client] = left
            else:
                self._loops.pop(client, None)

    def names(self) -> frozenset[str]:
        """The names of the clients."""
        with self._lock:
            return frozenset(client.name for client in self._loops)

    def read(self, take: Callable[[ObservedClient], T]) -> list[T]:
        """Take something of each client, in the client's loop. Waits at most a second for the loops of other threads.

        Args:
            take: called with each client. It must return at once.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        with self._lock:
            loops = list(self._loops.items())
        taken: list[T] = []
        asked: list[Future[T]] = []
        for client, (loop, process) in loops:
            if process != os.getpid():
                continue  # made before a fork: the loop is that of the parent
            if loop is running:
                taken.append(take(client))
            elif loop.is_running():
                future: Future[T] = Future()
                with suppress(RuntimeError):  # closed meanwhile
                    loop.call_soon_threadsafe(_answer, future, take, client)
                    asked.append(future)
        until = time.monotonic() + _PATIENCE
        for future in asked:
            with suppress(TimeoutError, CancelledError):
                taken.append(future.result(max(until - time.monotonic(), 0.0)))
            future.cancel()
        return taken


def _answer(future: Future[T], take: Callable[[ObservedClient], T], client: ObservedClient) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(take(client))
        except Exception as error:  # it is raised where the future is awaited
            future.set_exception(error)


def ready_endpoints(
    read: Iterable[Iterable[EndpointStatistics]],
) -> dict[tuple[str, str], list[EndpointStatistics]]:
    """The connections that are ready, by the names of the endpoint and of the client; empty if none is."""
    found: dict[tuple[str, str], list[EndpointStatistics]] = {}
    for endpoint in chain.from_iterable(read):
        ready = found.setdefault((endpoint.endpoint, endpoint.client), [])
        if endpoint.state is ConnectivityState.READY:
            ready.append(endpoint)
    return found


def stream_counts(read: Iterable[Iterable[StreamStatistics]]) -> list[tuple[tuple[str, str, str], int]]:
    """How many streams there are of each method, state ("open" or "waiting") and client, sorted."""
    streams = chain.from_iterable(read)
    kinds = ((stream.method, "open" if stream.is_open else "waiting", stream.client) for stream in streams)
    return sorted(Counter(kinds).items())
