"""What a reply means for the operation that it answers.

The codec has read it into a result already; a get and a txn need the operation besides.
"""

from typing import Final

from etcd_aio.errors import MalformedReplyError
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.types import DeleteResult, Header, KeyValue, OpResult, PutResult, RangeResult, TxnResult

_NO_HEADER: Final = Header()


def get_result(reply: RangeResult) -> KeyValue | None:
    """The result of a get: the key-value, or None if there is no such key."""
    return reply.kvs[0] if reply.kvs else None


def txn_result(reply: TxnResult, txn: TxnOp, outer: Header = _NO_HEADER) -> TxnResult:
    """The result of a txn.

    Args:
        reply: what etcd answered.
        txn: what it was asked: it tells a get from a range, which are one message to etcd.
        outer: the header of the txn around this one. etcd gives a nested txn no revision: it is that of the outer.

    Raises:
        MalformedReplyError: the reply does not answer this txn.
    """
    own = reply.header if reply.header.revision else outer
    asked = txn.then if reply.succeeded else txn.otherwise
    if not asked:
        return TxnResult(reply.succeeded, own)
    if len(reply.responses) != len(asked):
        raise MalformedReplyError(f"a txn of {len(asked)} operations was answered by {len(reply.responses)} responses")
    responses = tuple(_op_result(one, operation, own) for one, operation in zip(reply.responses, asked, strict=True))
    return TxnResult(reply.succeeded, own, responses, asked)


def _op_result(reply: OpResult, operation: Op, outer: Header) -> OpResult:
    match operation, reply:
        case (PutOp(), PutResult()) | (RangeOp(), RangeResult()) | (DeleteOp(), DeleteResult()):
            return reply
        case GetOp(), RangeResult():
            return get_result(reply)
        case TxnOp(), TxnResult():
            return txn_result(reply, operation, outer)
        case _:
            raise MalformedReplyError(f"the response to a {type(operation).__name__} is of another kind")
