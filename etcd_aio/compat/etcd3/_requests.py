"""Requests about keys, made of the arguments of the client: as messages."""

from collections.abc import Iterable
from typing import Any, Final

from etcd_aio.compat.etcd3 import etcdrpc, transactions, utils

_SORT_ORDERS: Final = {
    None: etcdrpc.RangeRequest.NONE,
    "ascend": etcdrpc.RangeRequest.ASCEND,
    "descend": etcdrpc.RangeRequest.DESCEND,
}
_SORT_TARGETS: Final = {
    None: etcdrpc.RangeRequest.KEY,
    "key": etcdrpc.RangeRequest.KEY,
    "version": etcdrpc.RangeRequest.VERSION,
    "create": etcdrpc.RangeRequest.CREATE,
    "mod": etcdrpc.RangeRequest.MOD,
    "value": etcdrpc.RangeRequest.VALUE,
}


def range_request(
    key: str | bytes,
    range_end: str | bytes | None = None,
    limit: int | None = None,
    revision: int | None = None,
    sort_order: str | None = None,
    sort_target: str | None = "key",
    serializable: bool = False,
    keys_only: bool = False,
    count_only: bool | None = None,
    min_mod_revision: int | None = None,
    max_mod_revision: int | None = None,
    min_create_revision: int | None = None,
    max_create_revision: int | None = None,
) -> etcdrpc.RangeRequest:
    """A read of a key, or of a range.

    Raises:
        ValueError: the order, or what the keys are sorted by, is none that etcd has.
    """
    if sort_order not in _SORT_ORDERS:
        raise ValueError(f'sort_order must be "ascend", "descend" or None, got {sort_order!r}')
    if sort_target not in _SORT_TARGETS:
        raise ValueError(f'sort_target must be "key", "version", "create", "mod" or "value", got {sort_target!r}')
    return etcdrpc.RangeRequest(
        key=utils.to_bytes(key),
        range_end=end_of(range_end),
        limit=limit or 0,
        revision=revision or 0,
        sort_order=_SORT_ORDERS[sort_order],
        sort_target=_SORT_TARGETS[sort_target],
        serializable=serializable,
        keys_only=keys_only,
        count_only=bool(count_only),
        min_mod_revision=min_mod_revision or 0,
        max_mod_revision=max_mod_revision or 0,
        min_create_revision=min_create_revision or 0,
        max_create_revision=max_create_revision or 0,
    )


def put_request(put: transactions.Put) -> etcdrpc.PutRequest:
    """A put."""
    key, value = utils.to_bytes(put.key), utils.to_bytes(put.value)
    return etcdrpc.PutRequest(key, value, utils.lease_to_id(put.lease), put.prev_kv)


def delete_request(delete: transactions.Delete) -> etcdrpc.DeleteRangeRequest:
    """A delete of a key, or of a range."""
    return etcdrpc.DeleteRangeRequest(utils.to_bytes(delete.key), end_of(delete.range_end), delete.prev_kv)


def txn_request(compare: Iterable[Any], success: Any, failure: Any) -> etcdrpc.TxnRequest:
    """A txn of conditions and operations."""
    conditions = [condition.build_message() for condition in compare]
    return etcdrpc.TxnRequest(conditions, request_ops(success), request_ops(failure))


def request_ops(ops: Iterable[Any]) -> list[etcdrpc.RequestOp]:
    """The operations of a txn.

    Raises:
        TypeError: there are no operations, or one is none.
    """
    return [_request_op(operation) for operation in ops]


def _request_op(operation: Any) -> etcdrpc.RequestOp:
    match operation:
        case transactions.Put():
            return etcdrpc.RequestOp(request_put=put_request(operation))
        case transactions.Get():
            return etcdrpc.RequestOp(request_range=range_request(operation.key, operation.range_end))
        case transactions.Delete():
            return etcdrpc.RequestOp(request_delete_range=delete_request(operation))
        case transactions.Txn():
            txn = txn_request(operation.compare, operation.success, operation.failure)
            return etcdrpc.RequestOp(request_txn=txn)
        case _:
            raise TypeError(f"a transaction has put, get, delete and txn, got {type(operation).__name__}")


def end_of(range_end: str | bytes | None) -> bytes:
    """The end of a range as etcd encodes it: empty for a key alone."""
    return b"" if range_end is None else utils.to_bytes(range_end)
