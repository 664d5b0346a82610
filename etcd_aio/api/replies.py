"""Replies: the one place that turns etcd's replies into results.

Knows: etcd's reply messages. Never knows: who asked. Everything is copied: no result keeps a message.
"""

from collections.abc import Iterable
from typing import Final

from etcd_aio import pb
from etcd_aio.api.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.errors import MalformedReplyError
from etcd_aio.results import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    OpResult,
    PutResult,
    RangeResult,
    TxnResult,
)

_NO_HEADER: Final = Header()


def header(message: pb.ResponseHeader | None) -> Header:
    """The header of a reply; all zero if the reply has none."""
    if message is None:
        return _NO_HEADER
    return Header(message.cluster_id, message.member_id, message.revision, message.raft_term)


def key_value(message: pb.KeyValue) -> KeyValue:
    """One key-value."""
    return KeyValue(
        message.key,
        message.value,
        message.create_revision,
        message.mod_revision,
        message.version,
        message.lease,
    )


def put_result(reply: pb.PutResponse) -> PutResult:
    """The result of a put."""
    return PutResult(header(reply.header), None if reply.prev_kv is None else key_value(reply.prev_kv))


def get_result(reply: pb.RangeResponse) -> KeyValue | None:
    """The result of a get: the key-value, or None if there is no such key."""
    return key_value(reply.kvs[0]) if reply.kvs else None


def range_result(reply: pb.RangeResponse) -> RangeResult:
    """The result of a range."""
    return RangeResult(header(reply.header), _key_values(reply.kvs), reply.more, reply.count)


def delete_result(reply: pb.DeleteRangeResponse) -> DeleteResult:
    """The result of a delete."""
    return DeleteResult(header(reply.header), reply.deleted, _key_values(reply.prev_kvs))


def compact_result(reply: pb.CompactionResponse) -> CompactResult:
    """The result of a compaction."""
    return CompactResult(header(reply.header))


def txn_result(reply: pb.TxnResponse, txn: TxnOp, outer: Header = _NO_HEADER) -> TxnResult:
    """The result of a txn.

    Args:
        reply: what etcd answered.
        txn: what it was asked: it tells a get from a range, which are one message to etcd.
        outer: the header of the txn around this one. etcd gives a nested txn no revision: it is that of the outer.

    Raises:
        MalformedReplyError: the reply does not answer this txn.
    """
    own = header(reply.header)
    if not own.revision:
        own = outer
    asked = txn.then if reply.succeeded else txn.otherwise
    if not asked:
        return TxnResult(reply.succeeded, own)
    if len(reply.responses) != len(asked):
        raise MalformedReplyError(f"a txn of {len(asked)} operations was answered by {len(reply.responses)} responses")
    responses = tuple(_op_result(one, operation, own) for one, operation in zip(reply.responses, asked, strict=True))
    return TxnResult(reply.succeeded, own, responses)


def _key_values(messages: Iterable[pb.KeyValue]) -> tuple[KeyValue, ...]:
    return tuple(map(key_value, messages))


def _op_result(reply: pb.ResponseOp, operation: Op, outer: Header) -> OpResult:
    match operation:
        case PutOp() if reply.response_put is not None:
            return put_result(reply.response_put)
        case GetOp() if reply.response_range is not None:
            return get_result(reply.response_range)
        case RangeOp() if reply.response_range is not None:
            return range_result(reply.response_range)
        case DeleteOp() if reply.response_delete_range is not None:
            return delete_result(reply.response_delete_range)
        case TxnOp() if reply.response_txn is not None:
            return txn_result(reply.response_txn, operation, outer)
        case _:
            raise MalformedReplyError(f"the response to a {type(operation).__name__} is of another kind")
