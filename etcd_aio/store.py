"""Store and Writer: what the layers above the client need of it, as Protocols, and which writer goes with a store.

Locks, elections, exactly-once writes and caches take a `Store`, so they also work on top of a wrapper of a client that
changes the keys or the reads, and in tests on a fake.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.key_space import key_space_of
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv import DEFAULT_PAGE_SIZE, Scan, Txn
from etcd_aio.lease import Lease, Leases, OnLost
from etcd_aio.types import (
    DeleteResult,
    EndpointVersions,
    KeyLike,
    KeyValue,
    LeaseLike,
    OnCompaction,
    OnCompactionLike,
    Operation,
    PutResult,
    RangeResult,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    ValueLike,
    WatchFilterLike,
)
from etcd_aio.watch import Watcher

_R = TypeVar("_R")


class Writer(Protocol):
    """An object that writes: a client, the fenced writer of a lock, or exactly-once writes.

    The arguments, results and errors are those of the client's methods with the same names.

    If it has a `key_space`, as all of this library have, recipes refuse it unless it is that of their store. One that
    forwards to another writer may forward this too. One without is taken to name the keys as the store does.
    """

    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        """Put a value under a key."""
        ...

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        """Delete a key or a range."""
        ...

    def txn(self) -> Txn:
        """Build a txn."""
        ...


class Store(Writer, Protocol):
    """An object that serves as a client for the layers above it: a `Client`, or a wrapper of one.

    The arguments, results and errors are those of the client's methods with the same names. Less common options of
    single calls are those of the operations that `do` takes. If it has a `name`, as a client may have, lines
    in logs begin with it.
    """

    async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation."""
        ...

    async def get(
        self,
        key: KeyLike,
        *,
        revision: int = 0,
        serializable: bool = False,
        keys_only: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> KeyValue | None:
        """Get one key."""
        ...

    async def range(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        limit: int = 0,
        revision: int = 0,
        sort_by: SortByLike = SortBy.KEY,
        sort_order: SortOrderLike = SortOrder.ASCEND,
        serializable: bool = False,
        keys_only: bool = False,
        count_only: bool = False,
        min_mod_revision: int = 0,
        max_mod_revision: int = 0,
        min_create_revision: int = 0,
        max_create_revision: int = 0,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> RangeResult:
        """Get the keys of a range in one reply."""
        ...

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
        """Iterate over a range of any size at one revision."""
        ...

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
        on_compaction: OnCompactionLike = OnCompaction.RAISE,
        max_outage: float | None = None,
        stream: str = "",
        timeout: Timeout = UNSET,
    ) -> Watcher:
        """Follow the changes of keys."""
        ...

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> Lease:
        """A lease for a block of code."""
        ...

    @property
    def leases(self) -> Leases:
        """The single lease calls."""
        ...

    async def versions(self, timeout: Timeout = UNSET) -> tuple[EndpointVersions, ...]:
        """The release of etcd at each endpoint."""
        ...


def writer_for(store: Store, writer: Writer | None) -> Writer:
    """The writer of what reads through a store: the store itself, if none is given.

    Raises:
        InvalidRequestError: the writer names other keys than the store: it is of another namespace or client.
    """
    if writer is None:
        return store
    read, written = key_space_of(store), key_space_of(writer)
    if read is None or written is None or read == written:
        return writer
    if read.client is not written.client:
        reason = "the writer is of another client than the one that reads"
    else:
        reason = f"the writer is of another namespace: it writes to {written}; this reads from {read}"
    raise InvalidRequestError(f"{reason}: make it of the same store, as in `tenant.exactly_once()`")
