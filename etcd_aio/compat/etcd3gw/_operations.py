"""Requests of etcd's gateway about keys as operations of etcd_aio. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from etcd_aio import Compare, Key, KeyRange, Op, SortBy, SortOrder, op
from etcd_aio.compat._ranges import named_keys
from etcd_aio.compat.etcd3gw._json import Fields

# In the order of etcd's numbers.
_ORDERS: Final = ("NONE", "ASCEND", "DESCEND")
_TARGETS: Final = ("KEY", "VERSION", "CREATE", "MOD", "VALUE")
_SORT_BY: Final = tuple(SortBy)
_COMPARED: Final = ("VERSION", "CREATE", "MOD", "VALUE", "LEASE")
_RESULTS: Final = ("EQUAL", "GREATER", "LESS", "NOT_EQUAL")


def put(request: Fields) -> op.PutOp:
    """A put."""
    return op.PutOp(
        request.data("key"),
        request.data("value"),
        request.number("lease"),
        request.flag("prev_kv"),
        request.flag("ignore_value"),
        request.flag("ignore_lease"),
    )


def get(request: Fields) -> op.RangeOp:
    """A read of a key or a range."""
    is_descending = request.word("sort_order", _ORDERS) == "DESCEND"
    return op.RangeOp(
        _keys(request),
        limit=request.number("limit"),
        revision=request.number("revision"),
        sort_by=_SORT_BY[_TARGETS.index(request.word("sort_target", _TARGETS))],
        sort_order=SortOrder.DESCEND if is_descending else SortOrder.ASCEND,
        serializable=request.flag("serializable"),
        keys_only=request.flag("keys_only"),
        count_only=request.flag("count_only"),
        min_mod_revision=request.number("min_mod_revision"),
        max_mod_revision=request.number("max_mod_revision"),
        min_create_revision=request.number("min_create_revision"),
        max_create_revision=request.number("max_create_revision"),
    )


def delete(request: Fields) -> op.DeleteOp:
    """A delete of a key or a range."""
    return op.DeleteOp(_keys(request), request.flag("prev_kv"))


def txn(request: Fields) -> op.TxnOp:
    """A transaction.

    Raises:
        ValueError: an operation is unknown.
    """
    return op.txn(
        when=[_compare(one) for one in request.messages("compare")],
        then=[_operation(one) for one in request.messages("success")],
        otherwise=[_operation(one) for one in request.messages("failure")],
    )


_OPERATIONS: Final[Mapping[str, Callable[[Fields], Op]]] = {
    "request_put": put,
    "request_range": get,
    "request_delete_range": delete,
    "request_txn": txn,
}


def _operation(request: Fields) -> Op:
    for name, make in _OPERATIONS.items():
        found = request.message(name)
        if found is not None:
            return make(found)
    raise ValueError(f"an operation of a transaction is one of {', '.join(_OPERATIONS)}")


def _compare(request: Fields) -> Compare:
    key = Key(**named_keys(request.data("key"), request.data("range_end")))
    target = request.word("target", _COMPARED)
    left, operand = _comparand(key, target, request)
    match request.word("result", _RESULTS):
        case "EQUAL":
            found = left == operand
        case "NOT_EQUAL":
            found = left != operand
        case "LESS":
            found = left < operand
        case _:
            found = left > operand
    compare: Compare = found
    return compare


def _comparand(key: Key, target: str, request: Fields) -> tuple[Any, Any]:
    match target:
        case "VERSION":
            return key.version, request.number("version")
        case "CREATE":
            return key.create_revision, request.number("create_revision")
        case "MOD":
            return key.mod_revision, request.number("mod_revision")
        case "LEASE":
            return key.lease, request.number("lease")
        case _:
            return key.value, request.data("value")


def _keys(request: Fields) -> KeyRange:
    return KeyRange(request.data("key"), request.data("range_end"))
