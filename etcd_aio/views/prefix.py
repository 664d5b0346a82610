"""PrefixView: the keys that begin with a prefix, as a backend of their own: what a namespace stands on."""

import asyncio
from collections.abc import Generator
from typing import TypeVar, cast

from etcd_aio import KeyRange, KeyValue, Leases, WatchBatch, op
from etcd_aio.backend import Backend, WatchCall
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.kv import ChunkReader
from etcd_aio.types import LeaseLike, LeaseTimeToLiveResult, Operation, OpResult, shown_keys
from etcd_aio.views import translate
from etcd_aio.views.translate import Translation, renamed
from etcd_aio.watch import Watcher

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
        self.leases = _PrefixLeases(backend.leases, self._translation)

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
        return _PrefixChunks(self._translation, self._backend.chunks())

    def watch(self, call: WatchCall) -> Watcher:
        """A watch of the keys beneath, whose events are shown without the prefix."""
        keys = call.options.keys
        return self._backend.watch(
            call.shown_by(_PrefixWatchView(self._translation, keys), self._translation.keys(keys))
        )


class _PrefixLeases(Leases):
    """The lease calls in a namespace.

    Args:
        leases: those of the store beneath.
        translation: of the namespace.
    """

    def __init__(self, leases: Leases, translation: Translation) -> None:
        super().__init__(leases)
        self._beneath = leases
        self._translation = translation

    async def time_to_live(
        self, lease: LeaseLike, keys: bool = False, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseTimeToLiveResult:
        """Get how long a lease still lasts, and which keys of the namespace it has."""
        return self._translation.lease(await self._beneath.time_to_live(lease, keys, timeout=timeout, retry=retry))


class _PrefixChunks:
    """Reads the rest of a scan in a namespace: a `ChunkReader`.

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


class _PrefixWatchView:
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
