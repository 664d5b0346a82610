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
        # The loop, the process, and how many observers have added it.
        self._of: WeakKeyDictionary[ObservedClient, tuple[asyncio.AbstractEventLoop, int, int]] = WeakKeyDictionary()

    def add(self, client: ObservedClient) -> None:
        """A client begins to work in the running loop, as an observer has seen."""
        with self._lock:
            observers = self._of[client][2] if client in self._of else 0
            self._of[client] = (asyncio.get_running_loop(), os.getpid(), observers + 1)

    def discard(self, client: ObservedClient) -> None:
        """A client is closed, or an observer that has added it sees it no longer."""
        with self._lock:
            known = self._of.pop(client, None)
            if known is not None and known[2] > 1:
                self._of[client] = (known[0], known[1], known[2] - 1)

    def names(self) -> frozenset[str]:
        """The names of the clients."""
        with self._lock:
            return frozenset(client.name for client in self._of)

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
            known = list(self._of.items())
        taken: list[T] = []
        asked: list[Future[T]] = []
        for client, (loop, process, _) in known:
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
