"""Follow: all keys of a prefix and then every change of them, as one iterator that can be resumed.

It joins a scan and a watch: pages of the keys at one revision, then batches of whole revisions from the next one on.
Each batch has the revision that the receiver has reached with it, from which a later follow continues.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import ClassVar, Final, Self

from etcd_aio import UNSET, Event, EventType, KeyLike, KeyRange, KeyValue, Scan, Timeout, Watcher, op
from etcd_aio.arguments import to_bytes, whole_number
from etcd_aio.base import NotAwaitable, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ClientUsageError, CompactedError, StoreRolledBackError
from etcd_aio.mirror.reconcile import Merge, changed_since
from etcd_aio.mirror.sorting import sorted_keys
from etcd_aio.types import Header

_STREAM: Final = "etcd_aio mirror"
"""A stream of their own, so that no other watch requests progress on it: before etcd 3.4.25 and 3.5.8 the answer can
come ahead of events, and a revision that was taken from it would lose them."""

_NOT_ENTERED: Final = "follow() is not entered: write `async with follow(...) as batches:`"


@dataclass(frozen=True, slots=True, repr=False)
class MirrorBatch:
    """A step of a follow.

    Attributes:
        changes: puts and deletes. Those of one revision are in one batch, except in the base.
        revision: of the receiver, once it has applied the batch: `follow(..., since=revision)` continues from here. It
            is 0, or what it was before, until the base is complete.
        is_base: whether the changes come from a list of the keys, and not from their history.
    """

    changes: tuple[Event, ...]
    revision: int
    is_base: bool = False

    def __repr__(self) -> str:
        base = ", is_base=True" if self.is_base else ""
        return f"MirrorBatch(<{len(self.changes)} changes>, revision={self.revision}{base})"


class Follow(NotAwaitable, AsyncIterator[MirrorBatch]):
    """The keys of a prefix and all their changes: see `follow`.

    It is entered and iterated over once, by one task at a time. Cancelling a step of the iteration loses nothing: the
    next step returns the same batch. So does a step after an error that is `retryable`.

    Iterating raises:

    - `CompactedError`: the changes after `since` are compacted, or the base took longer than a compaction, and `known`
      is not given.
    - `StoreRolledBackError`: the store is behind `since`, or went back meanwhile, and `known` is not given; or it is
      behind what a `client.ordered()` that is followed has seen.
    - `EtcdError`: as every scan and watch.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    def __init__(
        self, store: StoreCalls, prefix: KeyLike, *, since: int, known: Collection[KeyLike] | None, timeout: Timeout
    ) -> None:
        check_store(store, "store")
        self._store = store
        self._prefix = to_bytes(prefix, "prefix")
        self._keys = KeyRange.of(prefix=self._prefix)
        if known is not None and (isinstance(known, str | bytes) or not isinstance(known, Collection)):
            raise TypeError(f"known must be a collection of keys, got {type(known).__name__}")
        self._known = known
        self._timeout: Timeout = timeout
        self._revision = whole_number(since, "since")
        self._must_list = since == 0
        self._base: _Base | None = None
        self._watcher: Watcher | None = None
        self._error: CompactedError | StoreRolledBackError | None = None  # that has ended it
        self._is_entered = False
        self._is_closed = False
        self._is_taking = False

    @when_constructed
    def __repr__(self) -> str:
        return f"<Follow {self._keys} after revision {self._revision}>"

    # Lifetime.

    async def __aenter__(self) -> Self:
        if self._is_entered or self._is_closed:
            raise ClientUsageError("follow() can only be entered once: call it again")
        self._is_entered = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End it, and close its scan and its watch at once. Safe to repeat."""
        self._is_closed = True
        await self._stop()

    async def _stop(self) -> None:
        base, self._base = self._base, None
        watcher, self._watcher = self._watcher, None
        if base is not None:
            await base.aclose()
        if watcher is not None:
            await watcher.aclose()

    # Iteration.

    @property
    def revision(self) -> int:
        """The `revision` of the last batch; at first `since`."""
        return self._revision

    @property
    def pending(self) -> int:
        """How many changes were received and not taken yet: if it is not 0, the next step does not wait."""
        return 0 if self._watcher is None else self._watcher.statistics().pending_events

    @property
    def is_connected(self) -> bool:
        """Whether changes arrive: its watch is on a server now. False during the base."""
        return self._watcher is not None and self._watcher.statistics().is_connected

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MirrorBatch:
        if not self._is_entered:
            raise ClientUsageError(_NOT_ENTERED)
        if self._is_taking:
            raise ClientUsageError("two tasks iterate over one follow(): give each its own")
        self._is_taking = True
        try:
            batch = None
            while batch is None and not self._is_closed:
                batch = await self._next()
            if batch is None or self._is_closed:
                raise StopAsyncIteration
        finally:
            self._is_taking = False
        self._revision = batch.revision
        return batch

    async def _next(self) -> MirrorBatch | None:
        """The next batch; None if another step comes before it."""
        if self._error is not None:
            raise self._error.with_traceback(None)  # it is raised repeatedly, and the traceback would grow
        try:
            if self._must_list:
                await self._begin_base(self._revision)
            if (base := self._base) is not None:
                batch = await base.next(self._revision)
                if base.is_complete:
                    self._base = None
                return batch
            if self._is_closed:
                return None
            if self._watcher is None:
                await self._begin_watch()
                return None
            received = await self._watcher.next_batch()
        except (CompactedError, StoreRolledBackError) as error:
            await self._list_again(error)
            return None
        return MirrorBatch(received.events, received.revision)

    async def _list_again(self, error: CompactedError | StoreRolledBackError) -> None:
        """The history is not there: continue with the difference to the known keys.

        Raises:
            CompactedError, StoreRolledBackError: they are not known, or cannot be listed.
        """
        was_listing = self._base is not None
        await self._stop()
        # A list goes back only in a store that has seen more, such as `client.ordered()`: the next list would, too.
        if self._known is None or (was_listing and isinstance(error, StoreRolledBackError)):
            self._error = error
            raise error
        if isinstance(error, StoreRolledBackError):
            self._revision = 0
        self._must_list = True

    # The base.

    async def _begin_base(self, complete_to: int) -> None:
        keys = await sorted_keys(() if self._known is None else self._known, "known")
        if not self._is_closed:
            self._must_list = False
            self._base = _Base(self._store.scan(prefix=self._prefix, timeout=self._timeout), keys, complete_to)

    # The changes.

    async def _begin_watch(self) -> None:
        watcher = self._store.watch(
            prefix=self._prefix,
            start_revision=self._revision + 1,
            progress_notify=True,
            stream=_STREAM,
            timeout=self._timeout,
        )
        await watcher.__aenter__()
        try:
            # A watch from the future waits: only a read shows that the store is behind. It comes second, since a watch
            # notices by itself if the store goes back later.
            head = await head_of(self._store, self._keys, self._timeout)
            if head.revision < self._revision:
                raise StoreRolledBackError(revision=head.revision, seen=self._revision)
        except BaseException:  # a cancellation too
            await watcher.aclose()
            raise
        if self._is_closed:
            await watcher.aclose()
        else:
            self._watcher = watcher


class _Base:
    """The keys as they are, by pages, without those that the receiver has up to a revision.

    Attributes:
        is_complete: whether the last page was read.
    """

    def __init__(self, scan: Scan, known: Collection[bytes], complete_to: int) -> None:
        self._pages = scan.pages()
        self._complete_to = complete_to
        self.is_complete = False
        self._merge: Merge[KeyValue, None] | None = None
        if known:
            self._merge = Merge()
            self._merge.destination.add(tuple(known), (None,) * len(known), is_last=True)

    async def next(self, before: int) -> MirrorBatch:
        """The changes of the next page; all but the last one have the revision before."""
        page = await anext(self._pages)
        revision = self._pages.revision
        self.is_complete = not page.more
        puts: Sequence[KeyValue] = page.kvs
        gone: list[bytes] = []
        if self._merge is not None:
            self._merge.source.add([kv.key for kv in page.kvs], page.kvs, is_last=self.is_complete)
            puts, gone = changed_since(*self._merge.take(), self._complete_to)
        changes = [Event(EventType.PUT, kv) for kv in puts]
        changes += [Event(EventType.DELETE, KeyValue(key, mod_revision=revision)) for key in gone]
        return MirrorBatch(tuple(changes), revision if self.is_complete else before, is_base=True)

    async def aclose(self) -> None:
        """Close the scan."""
        await self._pages.aclose()


async def head_of(store: StoreCalls, keys: KeyRange, timeout: Timeout = UNSET) -> Header:
    """The cluster and its revision now, by a read of one key: a prefix itself is a key that the user may read."""
    return (await store.do(op.range(keys.key, count_only=True), timeout=timeout)).header


def follow(
    store: StoreCalls,
    prefix: KeyLike,
    *,
    since: int = 0,
    known: Collection[KeyLike] | None = None,
    timeout: Timeout = UNSET,
) -> Follow:
    """Read all keys of a prefix, and then every change of them.

        async with follow(client, "svc/") as batches:
            async for batch in batches:
                for event in batch.changes: ...
                save(batch.revision)

    Args:
        store: a client, or what serves as one.
        prefix: of the keys; empty is every key.
        since: the `revision` of the last batch that was applied, to continue after it. 0 begins with the base: all keys
            at one revision, page by page.
        known: the keys that the receiver has. If the history after `since` is compacted, or the store went back, the
            iteration continues with a base that has the difference: the keys that were put since, or are not known, and
            deletes of the known ones that are gone. It is read when it is needed, so give the dict or set that the
            batches are applied to. Default: None, that is an error.
        timeout: seconds for each request; the client's default if it is not given.

    Returns:
        Follow: nothing is sent before it is entered and iterated over.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """
    return Follow(store, prefix, since=since, known=known, timeout=timeout)
