"""OrderedView: reads that never go back, although each may be answered by another member.

Theory. The mark is the newest revision of all answers so far. A linearizable answer is never below it: etcd has
confirmed that the member has applied everything that was acknowledged before the read began, so also whatever was read
before. Only a serializable read can be answered by a member that is behind. Its header says so, and it is repeated
once, linearizably.

The mark of a read is the one at its beginning: two reads at the same time have no order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from etcd_aio import EtcdError, Header, KeyRange, Operation, RangeResult, TxnResult, WatchBatch, op
from etcd_aio.backend import Backend, WatchCall
from etcd_aio.base import UNSET, RetryMode, Timeout, time_left
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import FutureRevisionError, StoreRolledBackError
from etcd_aio.watch import Watcher

R = TypeVar("R")


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


class OrderedView:
    """The backend of an `Ordered` store.

    Args:
        backend: the one beneath.

    Attributes:
        revision: the newest revision that was seen.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.shared = backend.shared
        self.key_space = backend.key_space
        self.leases = backend.leases
        self.chunks = backend.chunks
        self.revision = 0
        self._repeated = 0
        self._behind: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<Ordered from revision {self.revision} of {self._backend!r}>"

    def see(self, revision: int) -> None:
        """The store has reached a revision."""
        if revision > self.revision:
            self.revision = revision

    def statistics(self) -> OrderedStatistics:
        """A snapshot of the counters."""
        return OrderedStatistics(self.revision, self._repeated, MappingProxyType(dict(self._behind)))

    async def do(self, operation: Operation[R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> R:
        """Send one operation; see `Ordered`. The second call of a read gets the time that the first one has left."""
        result: Any
        if isinstance(operation, op.GetOp):
            found = await self._read(_with_header(operation), timeout, retry)
            result = found.kvs[0] if found.kvs else None
        elif isinstance(operation, (op.RangeOp, op.TxnOp)) and operation.is_read_only:
            result = await self._read(operation, timeout, retry)
        else:
            result = await self._backend.do(operation, timeout=timeout, retry=retry)
            self.see(result.header.revision)
        return result  # type: ignore[no-any-return] # the result of this operation

    async def _read(self, read: op.RangeOp | op.TxnOp, timeout: Timeout, retry: RetryMode | None) -> Any:
        mark = self.revision
        result: RangeResult | TxnResult
        if read.serializable:
            deadline = self.shared.deadline(timeout)
            try:
                result = await self._backend.do(read, timeout=timeout, retry=retry)
            except FutureRevisionError:  # at a pinned revision that this member has not reached
                pass
            else:
                if self._is_current(result.header, mark):
                    return result
                self._behind[result.header.member_id] += 1
            self._repeated += 1
            timeout = time_left(deadline, self.shared.clock())
            newest = await self._newest(_linearizable(read), mark, timeout, retry)
            if isinstance(newest, TxnResult) and isinstance(read, op.TxnOp):  # whose operations the caller looks up
                return replace(newest, operations=read.then if newest.succeeded else read.otherwise)
            return newest
        return await self._newest(read, mark, timeout, retry)

    async def _newest(self, read: op.RangeOp | op.TxnOp, mark: int, timeout: Timeout, retry: RetryMode | None) -> Any:
        result: RangeResult | TxnResult = await self._backend.do(read, timeout=timeout, retry=retry)
        if not self._is_current(result.header, mark):
            raise StoreRolledBackError(revision=result.header.revision, seen=mark)
        return result

    def _is_current(self, header: Header, mark: int) -> bool:
        """Whether an answer is not below the mark at the beginning of its read. It raises the mark."""
        self.see(header.revision)
        return header.revision >= mark

    def watch(self, call: WatchCall) -> Watcher:
        """A watch whose batches raise the mark before they are delivered."""
        return self._backend.watch(call.shown_by(_SeenBatches(call.options.keys, self.see)))


class _SeenBatches:
    """Raises the mark by the batches of a watch: a `WatchView`.

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
    """The read of this key as a range, whose result has a header."""
    return op.RangeOp(KeyRange(get.key), revision=get.revision, serializable=get.serializable, keys_only=get.keys_only)


def _linearizable(read: op.RangeOp | op.TxnOp) -> op.RangeOp | op.TxnOp:
    """This read, linearizable: the member first catches up with all that is acknowledged."""
    if isinstance(read, op.RangeOp):
        return replace(read, serializable=False)
    return op.TxnOp(read.when, _all_linearizable(read.then), _all_linearizable(read.otherwise))


def _all_linearizable(operations: Iterable[op.Op]) -> tuple[op.Op, ...]:
    return tuple(
        replace(operation, serializable=False) if isinstance(operation, op.GetOp | op.RangeOp) else operation
        for operation in operations
    )
