"""PrefixView: the keys that begin with a prefix, as a backend of their own: what a namespace stands on."""

import asyncio
from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar, cast

from etcd_aio import KeyRange, KeyValue, WatchBatch, op
from etcd_aio.backend import Backend
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.kv import ChunkReader
from etcd_aio.types import Operation, OpResult, WatchView, shown_keys
from etcd_aio.views import translate
from etcd_aio.views.translate import Translation, renamed
from etcd_aio.watch import Watcher, WatchOptions

_R = TypeVar("_R")


class PrefixView:
    """The keys that begin with a prefix; they are without it in operations, results, events and errors.

    Leases belong to the whole cluster, but the keys of a lease are those in here.

    Args:
        backend: the one beneath.
        prefix: of the keys there.

    Raises:
        EmptyKeyError: the prefix is empty.
    """

    def __init__(self, backend: Backend, prefix: bytes) -> None:
        if isinstance(backend, PrefixView):  # a namespace of a namespace costs no more than one
            prefix = backend._translation.name + prefix
            backend = backend._backend
        self._backend: Backend = backend
        self._translation: Translation = Translation(prefix)
        self.shared = backend.shared
        self.key_space = backend.key_space.within(prefix)
        self.leases = backend.leases.through(self._translation.lease)

    def __repr__(self) -> str:
        return f"<Namespace {shown_keys(self._translation.name)} of {self._backend!r}>"

    async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation with the keys beneath.

        Raises:
            EmptyKeyError, InvalidRequestError: the operation was not made by `op`, and its keys cannot be translated.
                Nothing was sent.
            TypeError: it is not an operation.
            EtcdError: as of the backend.
        """
        asked = cast("op.Op", operation)  # checked by the translation
        inner = self._translation.operation(asked)
        try:
            result: OpResult = await self._backend.do(inner, timeout=timeout, retry=retry)
        except EtcdError as error:
            error.call = renamed(error.call, self._translation.names(asked))
            raise
        return cast("_R", await _cut(self._translation.result(asked, result)))

    def chunks(self) -> ChunkReader:
        """A reader of the rest of one scan."""
        return _Chunks(self._translation, self._backend.chunks())

    def watch(
        self,
        options: WatchOptions,
        start_revision: int,
        timeout: Timeout,
        stream: str,
        views: tuple[WatchView, ...] = (),
    ) -> Watcher:
        """A watch of the keys beneath, whose events are shown without the prefix."""
        inner = replace(options, keys=self._translation.keys(options.keys))
        view = _View(self._translation, options.keys)
        return self._backend.watch(inner, start_revision, timeout, stream, (view, *views))


class _Chunks:
    """What reads the rest of a scan in a namespace: a `ChunkReader`.

    Args:
        translation: of the namespace.
        reader: reads it in the store.
    """

    def __init__(self, translation: Translation, reader: ChunkReader) -> None:
        self._translation = translation
        self._reader = reader
        self._uncut: tuple[KeyValue, ...] = ()  # read, and not returned yet

    async def read(self, rest: op.RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        """Return the next chunk, cut."""
        if not self._uncut:
            inner = self._translation.operation(rest)
            try:
                chunk = await self._reader.read(cast("op.RangeOp", inner), timeout, retry)
            except EtcdError as error:
                error.call = renamed(error.call, self._translation.names(rest))
                raise
            if chunk is None:
                return None
            self._uncut = chunk
        kvs = await _cut(self._translation.key_values(self._uncut))
        self._uncut = ()
        return kvs

    def cancel(self) -> None:
        """Close the stream at once."""
        self._uncut = ()
        self._reader.cancel()


class _View:
    """A watch in a namespace: a `WatchView`.

    Args:
        translation: of the namespace.
        keys: the range, as the user named it.
    """

    def __init__(self, translation: Translation, keys: KeyRange) -> None:
        self._translation = translation
        self.keys = keys

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        """Cut a batch of events."""
        if len(batch.events) <= translate.STEP:
            return self._translation.short_batch(batch)
        return await _cut(self._translation.batch(batch))

    def explain(self, error: EtcdError) -> None:
        """Let an error name the keys as the user did."""
        error.call = renamed(error.call, self._translation.names_of_ranges((self.keys,)))


async def _cut(steps: Generator[None, None, _R]) -> _R:
    """Cut a result. Other tasks run after each step."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("_R", end.value)
        await asyncio.sleep(0)
