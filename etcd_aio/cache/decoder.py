"""Decoder: the values of changed keys, decoded by a function of the application, with pauses for the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from etcd_aio import KeyValue
from etcd_aio.base import log_for
from etcd_aio.types import shown_key

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.cache")

_PAUSE_AFTER: Final = 0.002  # seconds at a time
_MOST_LOGGED: Final = 1000  # keys that are remembered as logged: then all are forgotten, so that memory is bounded


class Decoder(Generic[T]):
    """Decodes values.

    Args:
        decode: turns a value into what users read.
        on_error: called with a key and the exception that its value has raised; None logs the first one of each key.
        what: what is read, for logs.
        store: what the values are read from; the lines in logs have its name.

    Attributes:
        errors: how many values could not be decoded.
    """

    def __init__(
        self,
        decode: Callable[[bytes], T],
        on_error: Callable[[bytes, Exception], None] | None,
        what: str,
        store: object = None,
    ) -> None:
        self._log = log_for(logger, store)
        self._decode = decode
        self._on_error = on_error
        self._what = what
        self._logged: set[bytes] = set()
        self.errors = 0

    async def decode_all(self, kvs: Iterable[KeyValue]) -> dict[bytes, T]:
        """The decoded values by key: of each key the first one that can be decoded."""
        decoded: dict[bytes, T] = {}
        failed: set[bytes] = set()
        began = time.perf_counter()
        for kv in kvs:
            if kv.key in decoded:
                continue
            try:
                decoded[kv.key] = self._decode(kv.value)
            except Exception as error:
                failed.add(kv.key)
                self._failed(kv.key, error)
            else:
                if kv.key not in failed:
                    self._logged.discard(kv.key)
            if time.perf_counter() - began > _PAUSE_AFTER:
                await asyncio.sleep(0)
                began = time.perf_counter()
        return decoded

    def _failed(self, key: bytes, error: Exception) -> None:
        self.errors += 1
        if self._on_error is None:
            if key not in self._logged:
                if len(self._logged) >= _MOST_LOGGED:
                    self._logged.clear()
                self._logged.add(key)
                # The text of the exception may have the value.
                text = "%s: the value of %s cannot be decoded (%s); an earlier one is kept"
                self._log.warning(text, self._what, shown_key(key), type(error).__name__)
            return
        try:
            self._on_error(key, error)
        except Exception as raised:  # a bug of the application, which must not keep the cache from following
            context = {"message": "etcd_aio: the on_error function of a cache raised an exception", "exception": raised}
            asyncio.get_running_loop().call_exception_handler(context)
