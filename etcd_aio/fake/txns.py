"""Transactions: what etcd checks before it runs one, and how it runs one. Pure.

A single put or delete is a transaction of one operation that is checked in its own way.

etcd first checks the request alone (`check_*`). Then it evaluates the comparisons of the transaction, and of the inner
ones that the outcome selects, on the state before: `_choose`. It checks the selected operations on that state, and
runs them: so a transaction either fails as a whole, or succeeds as a whole.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.ranges import answer_range, check_range
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import Release
from etcd_aio.fake.store import MvccStore, MvccTxn

MOST_OPS: Final = 128

_Result: Final = pb.CompareCompareResult
_Target: Final = pb.CompareCompareTarget


# --- the request alone ---


def check_put(request: pb.PutRequest) -> None:
    """Check a put without the store."""
    if not request.key:
        raise Refusal(Reason.EMPTY_KEY)
    if request.ignore_value and request.value:
        raise Refusal(Reason.VALUE_PROVIDED)
    if request.ignore_lease and request.lease:
        raise Refusal(Reason.LEASE_PROVIDED)


def check_delete(request: pb.DeleteRangeRequest) -> None:
    """Check a delete without the store."""
    if not request.key:
        raise Refusal(Reason.EMPTY_KEY)


def check_txn(request: pb.TxnRequest, release: Release) -> None:
    """Check a transaction without the store: its keys, the number of its operations, keys that it writes twice."""
    _check_ops(request, release, MOST_OPS)
    _check_overlaps(request.success)
    _check_overlaps(request.failure)


def _check_ops(request: pb.TxnRequest, release: Release, budget: int) -> None:
    """Check the operations. An inner transaction has what its outer one leaves of the budget."""
    most = max(len(request.compare), len(request.success), len(request.failure))
    if most > budget:
        raise Refusal(Reason.TOO_MANY_OPS)
    if not all(compare.key for compare in request.compare):
        raise Refusal(Reason.EMPTY_KEY)
    for one in (*request.success, *request.failure):
        if one.request_range is not None:
            check_range(one.request_range, release)
        elif one.request_put is not None:
            check_put(one.request_put)
        elif one.request_delete_range is not None:
            check_delete(one.request_delete_range)
        elif one.request_txn is not None:
            _check_ops(one.request_txn, release, budget - most)
        else:
            raise Refusal(Reason.KEY_NOT_FOUND)


@dataclass(frozen=True, slots=True)
class _DeletedKeys:
    """The keys of a delete.

    A zero byte as the end means all keys from `begin` on. etcd's own check does not know that: it lets such a delete
    pass beside a put that it covers, and then crashes (see `kv/endless_deletes.py`). The fake refuses that.
    """

    begin: bytes
    end: bytes

    def contains(self, key: bytes) -> bool:
        return self.begin <= key and (self.end == b"\x00" or key < self.end)


def _check_overlaps(ops: Sequence[pb.RequestOp]) -> tuple[set[bytes], list[_DeletedKeys]]:
    """Check that no key is put twice, or put and deleted. The branches of an inner transaction exclude each other.

    Deletes of inner transactions are not compared with the puts of earlier ones: etcd does not, either.
    """
    deleted = [
        _DeletedKeys(delete.key, delete.range_end or delete.key + b"\x00")
        for one in ops
        if (delete := one.request_delete_range) is not None
    ]
    put: set[bytes] = set()
    for one in ops:
        if one.request_txn is None:
            continue
        puts_then, deletes_then = _check_overlaps(one.request_txn.success)
        puts_else, deletes_else = _check_overlaps(one.request_txn.failure)
        _check_puts(puts_then, put, deleted)
        _check_puts(puts_else, put - puts_then, deleted)
        put |= puts_then | puts_else
        deleted += deletes_then + deletes_else
    for one in ops:
        if one.request_put is not None:
            _check_puts((one.request_put.key,), put, deleted)
            put.add(one.request_put.key)
    return put, deleted


def _check_puts(keys: Collection[bytes], put: set[bytes], deleted: Sequence[_DeletedKeys]) -> None:
    for key in keys:
        if key in put or any(interval.contains(key) for interval in deleted):
            raise Refusal(Reason.DUPLICATE_KEY)


# --- the request and the store ---


@dataclass(slots=True)
class _ChosenBranch:
    """The branch of a transaction that its comparisons select, with those of the inner transactions in it."""

    succeeded: bool
    ops: Sequence[pb.RequestOp]
    inner: dict[int, "_ChosenBranch"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreWriter:
    """Runs writes on a store; `has_lease` tells whether a lease exists."""

    store: MvccStore
    release: Release
    has_lease: Callable[[int], bool]

    def put(self, request: pb.PutRequest) -> tuple[pb.PutResponse, Sequence[pb.KeyValue]]:
        """Run a put that was checked. Returns the reply, whose header has the revision only, and the changes."""
        self._check_put(request)
        batch = self.store.begin()
        reply = _put(batch, request)
        return reply, batch.commit()

    def delete(self, request: pb.DeleteRangeRequest) -> tuple[pb.DeleteRangeResponse, Sequence[pb.KeyValue]]:
        """Run a delete that was checked; as `put`."""
        batch = self.store.begin()
        reply = _delete(batch, request)
        return reply, batch.commit()

    def txn(self, request: pb.TxnRequest) -> tuple[pb.TxnResponse, Sequence[pb.KeyValue]]:
        """Run a transaction that was checked; as `put`."""
        branch = self._choose(request)
        if self.release.checks_puts_first:
            self._check(branch, puts=True)
            self._check(branch, ranges=True)
        else:
            self._check(branch, puts=True, ranges=True)
        batch = self.store.begin()
        reply = self._run(batch, branch)
        reply.header = pb.ResponseHeader(revision=batch.revision)
        return reply, batch.commit()

    def _choose(self, request: pb.TxnRequest) -> _ChosenBranch:
        succeeded = all(self._holds(compare) for compare in request.compare)
        ops = request.success if succeeded else request.failure
        inner = {number: self._choose(one.request_txn) for number, one in enumerate(ops) if one.request_txn is not None}
        return _ChosenBranch(succeeded, ops, inner)

    def _holds(self, compare: pb.Compare) -> bool:
        found = self.store.read(compare.key, compare.range_end)
        if not found:
            # A missing key is equal to 0 in everything but its value, which nothing is equal to.
            return compare.target != _Target.VALUE and _compare(compare, pb.KeyValue())
        return all(_compare(compare, one) for one in found)

    def _check(self, branch: _ChosenBranch, *, puts: bool = False, ranges: bool = False) -> None:
        for number, one in enumerate(branch.ops):
            if one.request_txn is not None:
                self._check(branch.inner[number], puts=puts, ranges=ranges)
            elif puts and one.request_put is not None:
                self._check_put(one.request_put)
            elif ranges and one.request_range is not None:
                self._check_revision(one.request_range.revision)

    def _check_put(self, request: pb.PutRequest) -> None:
        if request.lease and not self.has_lease(request.lease):
            raise Refusal(Reason.LEASE_NOT_FOUND)
        if (request.ignore_value or request.ignore_lease) and self.store.get(request.key) is None:
            raise Refusal(Reason.KEY_NOT_FOUND)

    def _check_revision(self, revision: int) -> None:
        """As `MvccStore.check`, but negative revisions are compared like others."""
        if revision > self.store.revision:
            raise Refusal(Reason.FUTURE_REVISION)
        if revision and revision < self.store.compacted:
            raise Refusal(Reason.COMPACTED)

    def _run(self, batch: MvccTxn, branch: _ChosenBranch) -> pb.TxnResponse:
        reply = pb.TxnResponse(succeeded=branch.succeeded)
        for number, one in enumerate(branch.ops):
            if one.request_range is not None:
                answer = pb.ResponseOp(response_range=answer_range(batch, one.request_range, self.release))
            elif one.request_put is not None:
                answer = pb.ResponseOp(response_put=_put(batch, one.request_put))
            elif one.request_delete_range is not None:
                answer = pb.ResponseOp(response_delete_range=_delete(batch, one.request_delete_range))
            else:
                inner = self._run(batch, branch.inner[number])
                inner.header = pb.ResponseHeader()
                answer = pb.ResponseOp(response_txn=inner)
            reply.responses.append(answer)
        return reply


def _put(batch: MvccTxn, request: pb.PutRequest) -> pb.PutResponse:
    needs_before = request.prev_kv or request.ignore_value or request.ignore_lease
    before = batch.get(request.key) if needs_before else None
    value, lease = request.value, request.lease
    if before is not None:
        value = before.value if request.ignore_value else value
        lease = before.lease if request.ignore_lease else lease
    revision = batch.put(request.key, value, lease)
    reply = pb.PutResponse(header=pb.ResponseHeader(revision=revision))
    if request.prev_kv:
        reply.prev_kv = before
    return reply


def _delete(batch: MvccTxn, request: pb.DeleteRangeRequest) -> pb.DeleteRangeResponse:
    before = batch.delete(request.key, request.range_end)
    header = pb.ResponseHeader(revision=batch.revision)
    return pb.DeleteRangeResponse(header=header, deleted=len(before), prev_kvs=before if request.prev_kv else [])


def _compare(compare: pb.Compare, found: pb.KeyValue) -> bool:
    """Compare a key. A value of another kind than the target counts as 0 or empty; an unknown operator holds."""
    match compare.target:
        case _Target.VALUE:
            wanted_value = compare.value or b""
            order = (found.value > wanted_value) - (found.value < wanted_value)
        case _Target.VERSION:
            order = _order(found.version, compare.version)
        case _Target.CREATE:
            order = _order(found.create_revision, compare.create_revision)
        case _Target.MOD:
            order = _order(found.mod_revision, compare.mod_revision)
        case _Target.LEASE:
            order = _order(found.lease, compare.lease)
        case _:
            order = 0
    match compare.result:
        case _Result.EQUAL:
            return order == 0
        case _Result.NOT_EQUAL:
            return order != 0
        case _Result.GREATER:
            return order > 0
        case _Result.LESS:
            return order < 0
        case _:
            return True


def _order(found: int, wanted: int | None) -> int:
    return (found > (wanted or 0)) - (found < (wanted or 0))
