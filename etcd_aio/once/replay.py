"""Replay: what the operations of a txn returned, computed from the store as it was one revision before. Pure.

etcd's rules: every comparison of a txn, also of one within it, is judged on the state before the txn. Operations run in
order, and each sees what stands before it. All changes have the txn's revision.

`Range` of the header inside a txn has the revision before the txn until the first change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import eq, gt, lt, ne
from typing import Any, Final

from etcd_aio import (
    Compare,
    DeleteResult,
    Header,
    KeyRange,
    KeyValue,
    PutResult,
    RangeResult,
    SortBy,
    SortOrder,
    TxnResult,
    op,
)
from etcd_aio.types import OpResult

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"==": eq, "!=": ne, "<": lt, ">": gt}


def ranges_to_read(operations: Iterable[op.Op]) -> tuple[KeyRange, ...]:
    """The ranges whose state before the txn its results depend on; none if they are known without."""
    ranges = dict.fromkeys(_ranges(operations))
    return tuple(ranges) if any(_returns_state(operation) for operation in operations) else ()


def needs_values(operations: Iterable[op.Op]) -> bool:
    """Whether values or leases of these ranges are needed: reads of keys alone have neither, on all releases."""
    return any(
        not isinstance(operation, op.PutOp | op.DeleteOp) or operation.prev_kv or _keeps_something(operation)
        for operation in operations
    )


def replay(operations: Iterable[op.Op], before: Iterable[KeyValue], header: Header) -> tuple[OpResult, ...]:
    """Compute the results of the operations of a txn.

    Args:
        operations: of the branch that ran.
        before: the key-values of `ranges_to_read`, one revision before the txn.
        header: the header of the txn's answer; its revision is that of the txn.
    """
    return _Replay(before, header).run(operations)


class _Replay:
    def __init__(self, before: Iterable[KeyValue], header: Header) -> None:
        self._before = {kv.key: kv for kv in before}
        self._now = dict(self._before)
        self._header = header
        self._has_changed = False

    def run(self, operations: Iterable[op.Op]) -> tuple[OpResult, ...]:
        return tuple(self._result(operation) for operation in operations)

    def _result(self, operation: op.Op) -> OpResult:
        match operation:
            case op.PutOp():
                return self._put(operation)
            case op.DeleteOp():
                return self._delete(operation)
            case op.GetOp():
                kv = self._now.get(operation.key)
                return kv if kv is None or not operation.keys_only else replace(kv, value=b"")
            case op.RangeOp():
                return self._range(operation)
            case op.TxnOp():
                return self._txn(operation)

    def _inner_header(self) -> Header:
        return Header(revision=self._header.revision - (not self._has_changed))

    def _put(self, put: op.PutOp) -> PutResult:
        old = self._now.get(put.key)
        revision = self._header.revision
        value = old.value if put.ignore_value and old is not None else put.value
        lease = old.lease if put.ignore_lease and old is not None else put.lease
        created, version = (revision, 0) if old is None else (old.create_revision, old.version)
        self._now[put.key] = KeyValue(put.key, value, created, revision, version + 1, lease)
        self._has_changed = True
        return PutResult(self._inner_header(), old if put.prev_kv else None)

    def _delete(self, delete: op.DeleteOp) -> DeleteResult:
        gone = self._in_order(delete.keys)
        for kv in gone:
            del self._now[kv.key]
        self._has_changed = self._has_changed or bool(gone)
        return DeleteResult(self._inner_header(), len(gone), tuple(gone) if delete.prev_kv else ())

    def _range(self, read: op.RangeOp) -> RangeResult:
        found = self._in_order(read.keys)
        count = len(found)
        if read.count_only:
            return RangeResult(self._inner_header(), (), more=False, count=count)
        kept = [kv for kv in found if _is_within_bounds(kv, read)]
        is_descending = read.sort_order is SortOrder.DESCEND
        kept.sort(key=_SORT_KEYS[read.sort_by], reverse=is_descending)
        more = 0 < read.limit < len(kept)
        if read.limit:
            kept = kept[: read.limit]
        if read.keys_only:
            kept = [replace(kv, value=b"") for kv in kept]
        return RangeResult(self._inner_header(), tuple(kept), more=more, count=count)

    def _txn(self, txn: op.TxnOp) -> TxnResult:
        succeeded = all(_holds(compare, self._before) for compare in txn.when)
        operations = txn.then if succeeded else txn.otherwise
        if not operations:
            return TxnResult(succeeded, self._header)
        return TxnResult(succeeded, self._header, self.run(operations), operations)

    def _in_order(self, keys: KeyRange) -> list[KeyValue]:
        return [kv for key, kv in sorted(self._now.items()) if key in keys]


_SORT_KEYS: Final[Mapping[SortBy, Callable[[KeyValue], Any]]] = {
    SortBy.KEY: lambda kv: kv.key,
    SortBy.VERSION: lambda kv: kv.version,
    SortBy.CREATE_REVISION: lambda kv: kv.create_revision,
    SortBy.MOD_REVISION: lambda kv: kv.mod_revision,
    SortBy.VALUE: lambda kv: kv.value,
}


def _is_within_bounds(kv: KeyValue, read: op.RangeOp) -> bool:
    return read.min_mod_revision <= kv.mod_revision <= (
        read.max_mod_revision or kv.mod_revision
    ) and read.min_create_revision <= kv.create_revision <= (read.max_create_revision or kv.create_revision)


def _holds(compare: Compare, store: Mapping[bytes, KeyValue]) -> bool:
    found = [kv for key, kv in store.items() if key in compare.keys]
    target = compare.target.value
    if not found:
        if target == "value":
            return False
        found = [KeyValue(b"")]
    return all(_OPERATORS[compare.operator.value](getattr(kv, target), compare.operand) for kv in found)


def _ranges(operations: Iterable[op.Op]) -> Iterable[KeyRange]:
    for operation in operations:
        match operation:
            case op.PutOp() | op.GetOp():
                yield KeyRange(operation.key)
            case op.RangeOp() | op.DeleteOp():
                yield operation.keys
            case op.TxnOp():
                yield from (compare.keys for compare in operation.when)
                yield from _ranges(operation.then + operation.otherwise)


def _returns_state(operation: op.Op) -> bool:
    return not isinstance(operation, op.PutOp) or operation.prev_kv


def _keeps_something(operation: op.PutOp | op.DeleteOp) -> bool:
    return isinstance(operation, op.PutOp) and (operation.ignore_value or operation.ignore_lease)
