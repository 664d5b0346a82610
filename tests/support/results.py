"""Results, as one would build them from their messages: what the codec that decodes into them is compared with."""

from collections.abc import Callable
from typing import Any

from etcd_aio import pb
from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    Event,
    EventType,
    Header,
    KeyValue,
    OpResult,
    PutResult,
    RangeChunk,
    RangeResult,
    Result,
    TxnResult,
    WatchReply,
)


def header(message: pb.ResponseHeader | None) -> Header:
    if message is None:
        return Header()
    return Header(message.cluster_id, message.member_id, message.revision, message.raft_term)


def key_value(kv: pb.KeyValue) -> KeyValue:
    return KeyValue(kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease)


def put(reply: pb.PutResponse) -> PutResult:
    return PutResult(header(reply.header), None if reply.prev_kv is None else key_value(reply.prev_kv))


def found(reply: pb.RangeResponse) -> RangeResult:
    return RangeResult(header(reply.header), tuple(map(key_value, reply.kvs)), reply.more, reply.count)


def chunk(reply: pb.RangeStreamResponse) -> RangeChunk:
    return RangeChunk(None if reply.range_response is None else found(reply.range_response))


def delete(reply: pb.DeleteRangeResponse) -> DeleteResult:
    return DeleteResult(header(reply.header), reply.deleted, tuple(map(key_value, reply.prev_kvs)))


def txn(reply: pb.TxnResponse) -> TxnResult:
    return TxnResult(reply.succeeded, header(reply.header), tuple(map(response, reply.responses)))


def response(reply: pb.ResponseOp) -> OpResult:
    if reply.response_put is not None:
        return put(reply.response_put)
    if reply.response_range is not None:
        return found(reply.response_range)
    if reply.response_delete_range is not None:
        return delete(reply.response_delete_range)
    return None if reply.response_txn is None else txn(reply.response_txn)


def compact(reply: pb.CompactionResponse) -> CompactResult:
    return CompactResult(header(reply.header))


def watch_reply(reply: pb.WatchResponse) -> WatchReply:
    """Raises KeyError if an event is of an unknown kind, which the codec refuses."""
    return WatchReply(
        header(reply.header),
        reply.watch_id,
        reply.created,
        reply.canceled,
        reply.compact_revision,
        reply.cancel_reason,
        reply.fragment,
        tuple(
            Event(
                {0: EventType.PUT, 1: EventType.DELETE}[int(event.type)],
                KeyValue(b"") if event.kv is None else key_value(event.kv),
                None if event.prev_kv is None else key_value(event.prev_kv),
            )
            for event in reply.events
        ),
    )


# Each result as one would build it from the message.
RESULTS: dict[type[Result], tuple[type[pb.Message], Callable[[Any], Result]]] = {
    Header: (pb.ResponseHeader, header),
    KeyValue: (pb.KeyValue, key_value),
    PutResult: (pb.PutResponse, put),
    RangeResult: (pb.RangeResponse, found),
    RangeChunk: (pb.RangeStreamResponse, chunk),
    DeleteResult: (pb.DeleteRangeResponse, delete),
    TxnResult: (pb.TxnResponse, txn),
    CompactResult: (pb.CompactionResponse, compact),
}
