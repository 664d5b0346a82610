"""Operations of the client and their results, in the words of etcd's model. Pure.

The model knows single keys and intervals, puts and deletes of one key, and conditions on `mod_revision` and `version`.
What it does not know is refused here, so that no traffic can contain it unseen.
"""

from typing import Any, Final

from etcd_aio import Compare, DeleteResult, KeyRange, KeyValue, RangeResult, op
from etcd_aio.kv.compare import CompareOperator, CompareTarget
from tests.evidence import model
from tests.evidence.model import Json

LONE: Final = "\0"
"""Begins the end of an interval that holds its first key alone, and has the mark of a delete behind it."""


def lone_range(key: str, mark: str) -> str:
    """The end of the interval that holds `key` alone; the mark makes the delete of it unlike any other."""
    return f"{key}{LONE}{mark}"


class UnknownToTheModelError(TypeError):
    """An operation that etcd's model has no word for."""


def request_of(operation: Any, prefix: str = "") -> Json:
    """The request that an operation is.

    Args:
        operation: the operation.
        prefix: that a namespace puts before its keys.
    """
    match operation:
        case op.RangeOp():
            return model.read(_options(operation, prefix), operation.revision)
        case op.PutOp() | op.DeleteOp():
            return model.txn([_operation(operation, prefix)])
        case op.TxnOp():
            then, otherwise = (
                [_operation(one, prefix) for one in part] for part in (operation.then, operation.otherwise)
            )
            return model.txn(then, [_condition(one, prefix) for one in operation.when], otherwise)
    raise UnknownToTheModelError(repr(operation))


def answer_of(operation: Any, result: Any, prefix: str = "") -> Json:
    """The answer that the result of an operation is."""
    revision = result.header.revision
    match operation:
        case op.RangeOp():
            return model.range_answer(found_by(operation, result, prefix), revision)
        case op.PutOp() | op.DeleteOp():
            return model.txn_answer([_result(operation, result, prefix)], revision)
        case op.TxnOp():
            ran = operation.then if result.succeeded else operation.otherwise
            results = [_result(one, got, prefix) for one, got in zip(ran, result.responses, strict=True)]
            return model.txn_answer(results, revision, succeeded=result.succeeded)
    raise UnknownToTheModelError(repr(operation))


def found_by(operation: op.RangeOp, result: RangeResult, prefix: str = "") -> Json:
    """The keys that a range has found."""
    keys_only = operation.keys_only
    return model.found((model.key_value(kv, prefix=prefix, keys_only=keys_only) for kv in result.kvs), result.count)


def mark_of(operation: Any) -> str | None:
    """The name of a write, by which it is found in a log; None if it has none of its own."""
    match operation:
        case op.PutOp():
            return f"put:{operation.value.decode()}"
        case op.DeleteOp():
            _, _, mark = operation.keys.range_end.decode().partition(LONE)
            return f"delete:{mark}" if mark else None
        case op.TxnOp():
            puts = [one for one in (*operation.then, *operation.otherwise) if isinstance(one, op.PutOp)]
            return mark_of(puts[0]) if puts else None
    return None


def _options(operation: Any, prefix: str) -> Json:
    keys: KeyRange = KeyRange(operation.key) if isinstance(operation, op.GetOp) else operation.keys
    end = prefix + keys.range_end.decode() if keys.range_end else ""
    limit = 0 if isinstance(operation, op.GetOp) else operation.limit
    return model.options(prefix + keys.key.decode(), end, limit, operation.keys_only)


def _operation(operation: Any, prefix: str) -> Json:
    match operation:
        case op.RangeOp() | op.GetOp() if not operation.revision:
            return model.look(_options(operation, prefix))
        case op.PutOp(ignore_value=False, ignore_lease=False):
            return model.put(prefix + operation.key.decode(), operation.value.decode(), operation.lease)
        case op.DeleteOp() if _is_lone(operation.keys):
            return model.delete(prefix + operation.keys.key.decode())
    raise UnknownToTheModelError(repr(operation))


def _is_lone(keys: KeyRange) -> bool:
    return not keys.range_end or keys.range_end.startswith(keys.key + LONE.encode())


def _condition(condition: Compare, prefix: str) -> Json:
    key = prefix + condition.keys.key.decode()
    if condition.operator is CompareOperator.EQUAL and not condition.keys.range_end:
        match condition.target, condition.operand:
            case CompareTarget.MOD_REVISION, int(revision):
                return model.unchanged(key, revision)
            case CompareTarget.VERSION, 0:
                return model.unchanged(key, 0)
            case CompareTarget.VERSION, int(version) if version > 0:
                return model.of_version(key, version)
    raise UnknownToTheModelError(repr(condition))


def _result(operation: Any, result: Any, prefix: str) -> Json:
    match operation, result:
        case op.RangeOp(), RangeResult():
            return {**found_by(operation, result, prefix), "Deleted": 0}
        case op.GetOp(), KeyValue() | None:
            kvs = [] if result is None else [model.key_value(result, prefix=prefix, keys_only=operation.keys_only)]
            return {**model.found(kvs), "Deleted": 0}
        case op.DeleteOp(), DeleteResult():
            return model.result(result.deleted)
    return model.result()
