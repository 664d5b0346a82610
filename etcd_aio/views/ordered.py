"""Ordered: a store whose reads never go back, although each may be answered by another member.

Theory. The mark is the newest revision of all answers so far. A linearizable answer is never below it: etcd has
confirmed that the member has applied everything that was acknowledged before the read began, so also whatever was read
before. Only a serializable read can be answered by a member that is behind. Its header says so, and it is repeated
once, linearizably.

The mark of a read is the one at its beginning: two reads at the same time have no order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from etcd_aio import (
    EtcdError,
    Header,
    KeyLike,
    KeyRange,
    Leases,
    OnCompaction,
    Operation,
    RangeResult,
    Scan,
    SortBy,
    SortOrder,
    TxnResult,
    WatchBatch,
    Watcher,
    op,
)
from etcd_aio.arguments import whole_number
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import NEVER, time_left
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import FutureRevisionError, StoreRolledBackError
from etcd_aio.kv import DEFAULT_PAGE_SIZE
from etcd_aio.shortcuts import ClientLike, StoreCalls
from etcd_aio.types import OnCompactionLike, WatchFilterLike, mutable_twin
from etcd_aio.watch import DEFAULT_MAX_PENDING

R = TypeVar("R")

# Filling a twin takes a third of the time of the frozen class's own constructor.
_MutableRangeOp: Final = mutable_twin(op.RangeOp)


@dataclass(frozen=True, slots=True)
class OrderedStatistics:
    """Counters of an ordered store.

    Attributes:
        revision: the newest revision that was seen.
        repeated: reads that were sent a second time.
        behind: answers that were older than the mark, by the id of the member that gave them: see
            `client.cluster.members()`. A member that is behind a pinned revision answers without its id.
    """

    revision: int
    repeated: int
    behind: Mapping[int, int]


class Ordered(StoreCalls):
    """A store whose reads never go back: `view = client.ordered()`.

    Without it, a serializable read may be answered by a member that is behind the one that answered the read before,
    and show an older state. Here the newest revision of all answers is remembered. A serializable read that is older is
    repeated once, linearizably, so it costs a second call only if its member is behind. Linearizable reads and writes
    are sent as they are; a write is never repeated for this.

    It has the calls of a client about keys, watches and leases, and its shortcuts, such as `cache`; see there. What
    watches deliver raises the mark too. Tasks may share it. Reads that run at the same time are not compared with each
    other, only with what was seen before they began.

    Args:
        store: the client, or a store that wraps it.
    """

    def __init__(self, store: ClientLike) -> None:
        super().__init__(store)
        self._revision = 0
        self._repeated = 0
        self._behind: Counter[int] = Counter()

    @when_constructed
    def __repr__(self) -> str:
        return f"<Ordered from revision {self._revision}>"

    # The mark.

    @property
    def revision(self) -> int:
        """The newest revision that was seen: no read that begins now returns an older state.

        Assign one that another process has seen, and reads here are not older than its reads were. One that is lower
        than what was seen here changes nothing.

        Raises:
            InvalidRequestError: it is negative, or does not fit 64 bits.
        """
        return self._revision

    @revision.setter
    def revision(self, revision: int) -> None:
        self._see(whole_number(revision, "revision"))

    def _see(self, revision: int) -> None:
        if revision > self._revision:
            self._revision = revision

    def statistics(self) -> OrderedStatistics:
        """A snapshot of the counters."""
        return OrderedStatistics(self._revision, self._repeated, MappingProxyType(dict(self._behind)))

    # Calls.

    async def do(self, operation: Operation[R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> R:
        """Send one operation; see `Client.do`.

        Raises:
            StoreRolledBackError: the store itself is older than what was seen: a backup was restored, or `revision` was
                assigned from another cluster.
            EtcdError: as of `Client.do`. The second call of a read gets the time that the first one has left.
        """
        result: Any
        if isinstance(operation, op.GetOp):
            found = await self._read(_with_header(operation), timeout, retry)
            result = found.kvs[0] if found.kvs else None
        elif isinstance(operation, (op.RangeOp, op.TxnOp)) and operation.is_read_only:
            result = await self._read(operation, timeout, retry)
        else:
            result = await self._store.do(operation, timeout=timeout, retry=retry)
            self._see(result.header.revision)
        return result  # type: ignore[no-any-return] # the result of this operation

    async def _read(self, read: op.RangeOp | op.TxnOp, timeout: Timeout, retry: RetryMode | None) -> Any:
        mark = self._revision
        result: RangeResult | TxnResult
        if read.serializable:
            deadline = self._invoker.deadline(timeout, self._invoker.clock())
            try:
                result = await self._store.do(read, timeout=timeout, retry=retry)
            except FutureRevisionError:  # at a pinned revision that this member has not reached
                pass
            else:
                if self._is_current(result.header, mark):
                    return result
                self._behind[result.header.member_id] += 1
            self._repeated += 1
            timeout = None if deadline == NEVER else time_left(deadline, self._invoker.clock())
            newest = await self._newest(_linearizable(read), mark, timeout, retry)
            if isinstance(newest, TxnResult) and isinstance(read, op.TxnOp):  # whose operations the caller looks up
                return replace(newest, operations=read.then if newest.succeeded else read.otherwise)
            return newest
        return await self._newest(read, mark, timeout, retry)

    async def _newest(self, read: op.RangeOp | op.TxnOp, mark: int, timeout: Timeout, retry: RetryMode | None) -> Any:
        result: RangeResult | TxnResult = await self._store.do(read, timeout=timeout, retry=retry)
        if not self._is_current(result.header, mark):
            raise StoreRolledBackError(revision=result.header.revision, seen=mark)
        return result

    def _is_current(self, header: Header, mark: int) -> bool:
        """Whether an answer is not below the mark at the beginning of its read. It raises the mark."""
        self._see(header.revision)
        return header.revision >= mark

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
        """Iterate over a range of any size at one revision; see `Client.scan`. Its first page is guarded."""
        first = op.range(
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
        )
        scan = self._store.scan(
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
            page_size=page_size,
            timeout=timeout,
            retry=retry,
        )
        return scan.through(first, self.do, lambda reader: reader)

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
        """Follow the changes of keys; see `Client.watch`. No read that follows an event is older than the event."""
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        watcher = self._store.watch(
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
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
        return watcher.through(_Seen(keys, self._see))

    @property
    def leases(self) -> Leases:
        """The single lease calls; see `Client.leases`. The revision of a revocation is not seen."""
        return self._store.leases


class _Seen:
    """A watch that tells what it delivers: a `WatchView`.

    Args:
        keys: the range.
        see: called with the revision of each batch, before the caller has it.
    """

    def __init__(self, keys: KeyRange, see: Callable[[int], None]) -> None:
        self.keys = keys
        self._see = see

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        """Tell its revision."""
        self._see(batch.revision)
        return batch

    def explain(self, error: EtcdError) -> None:
        """The keys are what they are in the store."""


def _with_header(get: op.GetOp) -> op.RangeOp:
    """The same read; its result has a header."""
    made: Any = _MutableRangeOp()
    made.keys = KeyRange(get.key)
    made.revision = get.revision
    made.serializable = get.serializable
    made.keys_only = get.keys_only
    made.sort_by, made.sort_order = SortBy.KEY, SortOrder.ASCEND
    made.limit = made.min_mod_revision = made.max_mod_revision = 0
    made.min_create_revision = made.max_create_revision = 0
    made.count_only = False
    made.__class__ = op.RangeOp
    return made  # type: ignore[no-any-return] # a RangeOp by now


def _linearizable(read: op.RangeOp | op.TxnOp) -> op.RangeOp | op.TxnOp:
    """The same read; the member that answers it first catches up with what is acknowledged."""
    if isinstance(read, op.RangeOp):
        return replace(read, serializable=False)
    return op.TxnOp(read.when, _all_linearizable(read.then), _all_linearizable(read.otherwise))


def _all_linearizable(operations: Iterable[op.Op]) -> tuple[op.Op, ...]:
    return tuple(
        replace(operation, serializable=False) if isinstance(operation, op.GetOp | op.RangeOp) else operation
        for operation in operations
    )
