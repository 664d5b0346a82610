"""The calls about keys as messages: `client.kvstub.Range(etcdrpc.RangeRequest(key=b"k"))`."""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from etcd_aio import (
    Compare,
    DeleteResult,
    Key,
    KeyRange,
    Op,
    PutResult,
    RangeResult,
    SortBy,
    SortOrder,
    TxnResult,
    op,
)
from etcd_aio.compat.etcd3 import etcdrpc
from etcd_aio.compat.etcd3._translation import rpc_errors

if TYPE_CHECKING:
    from etcd_aio.sync import Client

_SORT_TARGETS: Final = (SortBy.KEY, SortBy.VERSION, SortBy.CREATE_REVISION, SortBy.MOD_REVISION, SortBy.VALUE)
_OPERANDS: Final = ("version", "create_revision", "mod_revision", "value", "lease")  # by `Compare.target`
_OPERATORS: Final[tuple[Callable[[Any, Any], Compare], ...]] = (operator.eq, operator.gt, operator.lt, operator.ne)


class KVStub:
    """Sends messages about keys, with the signatures of a stub of gRPC.

    Each call raises `RpcError` if it fails. `metadata` and `credentials` are not used: the client has logged in.

    Args:
        client: sends the calls.
        limit: gives the seconds for calls without a `timeout`.
    """

    def __init__(self, client: "Client", limit: Callable[[], float]) -> None:
        self._client = client
        self._limit = limit

    def Range(
        self, request: etcdrpc.RangeRequest, timeout: float | None = None, metadata: Any = None, credentials: Any = None
    ) -> etcdrpc.RangeResponse:
        """Read a range."""
        return _range_response(self._do(_range_op(request), timeout))

    def Put(
        self, request: etcdrpc.PutRequest, timeout: float | None = None, metadata: Any = None, credentials: Any = None
    ) -> etcdrpc.PutResponse:
        """Put a key."""
        return _put_response(self._do(_put_op(request), timeout))

    def DeleteRange(
        self,
        request: etcdrpc.DeleteRangeRequest,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
    ) -> etcdrpc.DeleteRangeResponse:
        """Delete a range."""
        return _delete_response(self._do(_delete_op(request), timeout))

    def Txn(
        self, request: etcdrpc.TxnRequest, timeout: float | None = None, metadata: Any = None, credentials: Any = None
    ) -> etcdrpc.TxnResponse:
        """Run a txn."""
        return _txn_response(self._do(_txn_op(request), timeout))

    def _do(self, operation: Any, timeout: float | None) -> Any:
        with rpc_errors:
            return self._client.do(operation, timeout=self._limit() if timeout is None else timeout)


# Requests.


def _range_op(request: etcdrpc.RangeRequest) -> op.RangeOp:
    is_descending = request.sort_order == etcdrpc.RangeRequest.DESCEND
    return op.RangeOp(
        KeyRange(request.key, request.range_end),
        request.limit,
        request.revision,
        _SORT_TARGETS[request.sort_target],
        SortOrder.DESCEND if is_descending else SortOrder.ASCEND,  # the order of etcd without one, too
        request.serializable,
        request.keys_only,
        request.count_only,
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    )


def _put_op(request: etcdrpc.PutRequest) -> op.PutOp:
    return op.PutOp(
        request.key, request.value, request.lease, request.prev_kv, request.ignore_value, request.ignore_lease
    )


def _delete_op(request: etcdrpc.DeleteRangeRequest) -> op.DeleteOp:
    return op.DeleteOp(KeyRange(request.key, request.range_end), request.prev_kv)


def _txn_op(request: etcdrpc.TxnRequest) -> op.TxnOp:
    return op.txn(
        when=map(_compare, request.compare), then=map(_op, request.success), otherwise=map(_op, request.failure)
    )


def _op(request: etcdrpc.RequestOp) -> Op:
    if request.request_range is not None:
        return _range_op(request.request_range)
    if request.request_put is not None:
        return _put_op(request.request_put)
    if request.request_delete_range is not None:
        return _delete_op(request.request_delete_range)
    if request.request_txn is not None:
        return _txn_op(request.request_txn)
    raise ValueError("the operation is empty")


def _compare(compare: etcdrpc.Compare) -> Compare:
    operand = _OPERANDS[compare.target]
    return _OPERATORS[compare.result](getattr(_key(compare.key, compare.range_end), operand), getattr(compare, operand))


def _key(key: bytes, range_end: bytes) -> Key:
    if not range_end:
        return Key(key)
    return Key(from_key=key) if range_end == b"\0" else Key(key, range_end=range_end)


# Responses.


def _range_response(result: RangeResult) -> etcdrpc.RangeResponse:
    return etcdrpc.RangeResponse(result.header, list(result.kvs), result.more, result.count)


def _put_response(result: PutResult) -> etcdrpc.PutResponse:
    return etcdrpc.PutResponse(result.header, result.prev_kv or etcdrpc.NO_KEY_VALUE)


def _delete_response(result: DeleteResult) -> etcdrpc.DeleteRangeResponse:
    return etcdrpc.DeleteRangeResponse(result.header, result.deleted, list(result.prev_kvs))


def _txn_response(result: TxnResult) -> etcdrpc.TxnResponse:
    return etcdrpc.TxnResponse(result.header, result.succeeded, [_response_op(each) for each in result.responses])


def _response_op(result: object) -> etcdrpc.ResponseOp:
    match result:
        case RangeResult():
            return etcdrpc.ResponseOp(response_range=_range_response(result))
        case PutResult():
            return etcdrpc.ResponseOp(response_put=_put_response(result))
        case DeleteResult():
            return etcdrpc.ResponseOp(response_delete_range=_delete_response(result))
        case TxnResult():
            return etcdrpc.ResponseOp(response_txn=_txn_response(result))
        case _:
            raise TypeError(f"no operation here has a {type(result).__name__} as its result")
