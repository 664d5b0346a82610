"""Namespace: the keys that begin with a prefix, as a store of their own."""

import asyncio
from collections.abc import Generator, Iterable
from typing import TypeVar, cast

from etcd_aio import KeyRange, KeyValue, Leases, Scan, WatchBatch, Watcher, op
from etcd_aio.arguments import encode_key
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.key_space import KeySpace, key_space_of
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import EtcdError
from etcd_aio.kv import DEFAULT_PAGE_SIZE, ChunkReader
from etcd_aio.shortcuts import ClientLike, StoreCalls
from etcd_aio.types import (
    KeyLike,
    OnCompaction,
    OnCompactionLike,
    Operation,
    OpResult,
    WatchFilterLike,
    range_arguments,
    shown_keys,
)
from etcd_aio.views import translate
from etcd_aio.views.translate import Translation, renamed
from etcd_aio.watch import DEFAULT_MAX_PENDING

_R = TypeVar("_R")


class Namespace(StoreCalls):
    """The keys that begin with a prefix, as a store of their own: `client.namespace("app/")`.

    It has the calls of a client about keys, watches and leases, and its shortcuts, such as `lock`; see there. Keys are
    without the prefix everywhere: in arguments, results, events, and errors. `all_keys=True` is every key of the
    namespace, and an interval without an end ends with it. The key that is the prefix itself is outside: etcd has no
    empty key that could stand for it.

    Not on it, since they are about the whole cluster, are `compact`, `cluster`, `maintenance` and `auth`; the last also
    names keys with the prefix. Leases belong to the cluster too: `leases.list` has all of them, and revoking a lease
    deletes its keys everywhere. `leases.time_to_live(lease, keys=True)` has those in the namespace.

    Every key costs the bytes of the prefix in etcd's store, in requests and in replies.

    Args:
        store: the client, or a store that wraps it.
        prefix: of the keys in `store`.

    Raises:
        EmptyKeyError: the prefix is empty.
        InvalidRequestError, TypeError: it is not a key.
    """

    def __init__(self, store: ClientLike, prefix: KeyLike) -> None:
        super().__init__(store)
        self._translation = Translation(encode_key(prefix, "the namespace"))
        self._leases = store.leases.through(self._translation.lease)

    @when_constructed
    def __repr__(self) -> str:
        return f"<Namespace {shown_keys(self.prefix)} of {self._store!r}>"

    @property
    def prefix(self) -> bytes:
        """What the keys begin with in the store that this is a namespace of; in the client, if namespaces nest."""
        return self._translation.name

    @property
    def key_space(self) -> KeySpace | None:
        """Whose keys these are; see `Client.key_space`."""
        space = key_space_of(self._store)
        return None if space is None else space.within(self.prefix)

    def namespace(self, prefix: KeyLike) -> "Namespace":
        """A namespace within this one: that of both prefixes, so it costs no more than one. See `Client.namespace`."""
        return Namespace(self._store, self.prefix + encode_key(prefix, "the namespace"))

    @property
    def leases(self) -> Leases:
        """The single lease calls; see `Client.leases`. The keys of a lease are those in the namespace."""
        return self._leases

    async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation with the keys of the namespace; see `Client.do`.

        Raises:
            EmptyKeyError, InvalidRequestError: the operation was not made by `op`, and its keys cannot be translated.
                Nothing was sent.
            TypeError: it is not an operation.
            EtcdError: as `Client.do`.
        """
        asked = cast("op.Op", operation)  # checked by the translation
        inner = self._translation.operation(asked)
        try:
            result: OpResult = await self._store.do(inner, timeout=timeout, retry=retry)
        except EtcdError as error:
            error.call = renamed(error.call, self._translation.names(asked))
            raise
        return cast("_R", await _cut(self._translation.result(asked, result)))

    def scan(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        revision: int = 0,
        keys_only: bool = False,
        serializable: bool = False,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> Scan:
        """Iterate over a range of any size at one revision; see `Client.scan`."""
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        first, end, rest = range_arguments(self._translation.keys(keys))
        scan = self._store.scan(
            first,
            range_end=end,
            from_key=rest,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
            page_size=page_size,
            timeout=timeout,
            retry=retry,
        )
        whole = op.RangeOp(keys, revision=revision, keys_only=keys_only, serializable=serializable)
        return scan.through(whole, self.do, lambda reader: _Chunks(self._translation, reader))

    def watch(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress_notify: bool = False,
        filters: Iterable[WatchFilterLike] = (),
        fragment: bool | None = None,
        on_compaction: OnCompactionLike = OnCompaction.RAISE,
        max_pending: int = DEFAULT_MAX_PENDING,
        max_outage: float | None = None,
        stream: str = "",
        timeout: Timeout = UNSET,
    ) -> Watcher:
        """Follow the changes of keys, on the streams of the client; see `Client.watch`."""
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        first, end, rest = range_arguments(self._translation.keys(keys))
        watcher = self._store.watch(
            first,
            range_end=end,
            from_key=rest,
            start_revision=start_revision,
            prev_kv=prev_kv,
            progress_notify=progress_notify,
            filters=filters,
            fragment=fragment,
            on_compaction=on_compaction,
            max_pending=max_pending,
            max_outage=max_outage,
            stream=stream,
            timeout=timeout,
        )
        return watcher.through(_View(self._translation, keys))


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
