"""The service KV."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from etcd_aio import pb
from etcd_aio.codec import encode
from etcd_aio.fake.alarms import puts_something
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.guard import PermissionGuard
from etcd_aio.fake.node import MOST_BYTES, MemberCall
from etcd_aio.fake.ranges import answer_range, check_range, check_stream, stream_range
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.txns import check_delete, check_put, check_txn

_OVERHEAD: Final = 18  # bytes that the log entry has besides the request


class KVService:
    """Answers the calls of the service."""

    def __init__(self, cluster: FakeCluster, guard: PermissionGuard) -> None:
        self._cluster = cluster
        self._guard = guard

    def check(self, call: MemberCall, request: pb.Message) -> None:
        """Check a request as far as a member does before it looks for a leader."""
        match request:
            case pb.RangeRequest():
                check_range(request, self._cluster.release)
            case pb.PutRequest():
                check_put(request)
                _check_size(call)
            case pb.DeleteRangeRequest():
                check_delete(request)
                _check_size(call)
            case pb.TxnRequest():
                check_txn(request, self._cluster.release)
                if writes(request):
                    _check_size(call)

    def range(self, call: MemberCall, request: pb.RangeRequest) -> pb.RangeResponse:
        self.check(call, request)
        self._guard.read(call, request.key, request.range_end)
        reply = answer_range(call.node.store, request, self._cluster.release)
        self._cluster.header(call.node, reply.header)
        return reply

    def range_stream(self, call: MemberCall, request: pb.RangeRequest) -> Iterator[pb.RangeStreamResponse]:
        self.check(call, request)
        check_stream(request)
        self._guard.read(call, request.key, request.range_end)
        chunks = stream_range(
            call.node.store, request, self._cluster.release, lambda chunk: len(encode(chunk)), MOST_BYTES
        )
        for chunk in chunks:
            if chunk.header is not None:
                self._cluster.header(call.node, chunk.header)
            yield pb.RangeStreamResponse(range_response=chunk)

    def put(self, call: MemberCall, request: pb.PutRequest) -> pb.PutResponse:
        self.check(call, request)
        self._guard.put(call, request)
        self._cluster.alarms.check(needs_space=True)
        reply, changes = self._cluster.writer.put(request)
        self._end(call, reply.header, changes)
        return reply

    def delete_range(self, call: MemberCall, request: pb.DeleteRangeRequest) -> pb.DeleteRangeResponse:
        self.check(call, request)
        self._guard.delete(call, request)
        self._cluster.alarms.check(needs_space=False)
        reply, changes = self._cluster.writer.delete(request)
        self._end(call, reply.header, changes)
        return reply

    def txn(self, call: MemberCall, request: pb.TxnRequest) -> pb.TxnResponse:
        self.check(call, request)
        self._guard.txn(call, request)
        if not writes(request):
            reply, _ = replace(self._cluster.writer, store=call.node.store).txn(request)
            self._cluster.header(call.node, reply.header)
            return reply
        ops = (*request.success, *request.failure)
        self._cluster.alarms.check(needs_space=puts_something(ops, self._cluster.release))
        reply, changes = self._cluster.writer.txn(request)
        self._end(call, reply.header, changes)
        return reply

    def compact(self, call: MemberCall, request: pb.CompactionRequest) -> pb.CompactionResponse:
        if self._cluster.release.guards_compaction:
            self._guard.admin(call)
        self._guard.user(call)
        self._cluster.alarms.check(needs_space=False)
        self._cluster.store.compact(request.revision)
        return pb.CompactionResponse(header=self._cluster.header(call.node))

    def _end(self, call: MemberCall, header: pb.ResponseHeader | None, changes: Sequence[pb.KeyValue]) -> None:
        self._cluster.header(call.node, header)
        self._cluster.committed(changes)


def writes(request: pb.TxnRequest) -> bool:
    """Whether a transaction is written to the log: unless its operations are all ranges, whatever it changes."""
    return any(one.request_range is None for one in (*request.success, *request.failure))


def _check_size(call: MemberCall) -> None:
    if call.size + _OVERHEAD > MOST_BYTES:
        raise Refusal(Reason.REQUEST_TOO_LARGE)
