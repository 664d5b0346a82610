"""Watched: the keys of a cluster, kept in memory by a watch, in a thread that wakes Patroni's loop.

The thread lives as long as the client. If etcd ends the cache, as when the user may not read the keys any more, it
makes another one.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from etcd_aio import EtcdError, KeyValue
from etcd_aio.contrib.patroni.wakes import wakes
from etcd_aio.errors import CacheError
from etcd_aio.sync import Client
from etcd_aio.sync.cache import Cache

_log: Final = logging.getLogger("etcd_aio.contrib.patroni")
_PAUSE: Final = 1.0  # seconds between two tries to begin a cache
_END_SECONDS: Final = 1.0


class Watched:
    """The keys.

    Args:
        client: the client.
        prefix: of the keys.
        own: the part of them that is this node's cluster: all, or one group of several.
        name: of this node.
        wake: wakes Patroni's loop.
    """

    def __init__(self, client: Client, prefix: str, own: str, name: str, wake: Callable[[], None]) -> None:
        self._client = client
        self._prefix = prefix
        self._own = own
        self._name = name
        self._wake = wake
        self._cache: Cache[KeyValue] | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="etcd_aio.patroni", daemon=True)
        self._thread.start()

    def current(self, prefix: str, timeout: float) -> list[KeyValue] | None:
        """The keys of a prefix, with every write that was finished before this call.

        Args:
            prefix: the prefix.
            timeout: seconds.

        Returns:
            None if the cache does not have them, or not in time.

        Raises:
            EtcdError: etcd refuses it.
        """
        cache = self._cache
        if cache is None or not prefix.startswith(self._prefix):
            return None
        try:
            cache.wait_current(timeout=timeout)
            return list(cache.range(prefix=prefix).values())
        except CacheError:
            return None

    def close(self) -> None:
        """End the thread. If it waits for etcd, it ends when the client is closed."""
        self._is_closed.set()
        cache = self._cache
        if cache is not None:
            cache.close()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._is_closed.is_set():
            try:
                with self._client.cache(prefix=self._prefix) as cache:
                    self._follow(cache)
            except EtcdError as error:
                if not self._is_closed.is_set():
                    _log.warning("cannot watch %s: %s", self._prefix, error)
            finally:
                self._cache = None
            self._is_closed.wait(_PAUSE)

    def _follow(self, cache: Cache[KeyValue]) -> None:
        changes = cache.changes()
        values = {self._short(kv.key): _text(kv) for kv in cache.range().values()}
        self._cache = cache
        self._wake()  # what has changed before is not known
        for _, changed in changes:
            found = {self._short(key): None if kv is None else _text(kv) for key, kv in changed.items()}
            is_reason = wakes(found, values, self._name)
            for key, value in found.items():
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
            if is_reason:
                self._wake()
            if self._is_closed.is_set():
                return

    def _short(self, key: bytes) -> str:
        return key.decode(errors="replace").removeprefix(self._own)


def _text(kv: KeyValue) -> str:
    """The value, to be compared: another program may have written what is no text."""
    return kv.value.decode(errors="replace")
