"""The whole server without IO: from a path and an encoded request to an encoded reply, or to a refusal.

Each RPC is a row that names its method and its handler; what all calls have in common is checked before.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode
from etcd_aio.errors import MalformedReplyError, StatusCode
from etcd_aio.fake.auth_service import AuthService
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.guard import PermissionGuard
from etcd_aio.fake.kv_service import KVService, writes
from etcd_aio.fake.lease_service import LeaseService
from etcd_aio.fake.maintenance_service import MaintenanceService
from etcd_aio.fake.node import MOST_BYTES, MemberCall, Node
from etcd_aio.fake.outcomes import PendingCall
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.server_streams import EchoStream, HealthStream, ReplyStream, ServerStream, Waits
from etcd_aio.fake.watch_stream import ServerWatchStream
from etcd_aio.transport import Metadata

_Unary: TypeAlias = Callable[[MemberCall, Any], pb.Message]
_Stream: TypeAlias = Callable[[MemberCall, Any], Iterator[pb.Message]]

_SERVED_ALONE: Final = frozenset(
    method.path
    for method in (
        *(methods.STATUS, methods.HASH, methods.HASH_KV, methods.DEFRAGMENT, methods.SNAPSHOT),
        *(methods.HEALTH_CHECK, methods.LEASE_LEASES, methods.MOVE_LEADER),
    )
)
"""The methods that a member without a leader answers."""
_GIVEN_UP: Final[Mapping[str, Refusal]] = {
    **dict.fromkeys((methods.LEASE_TIME_TO_LIVE.path, methods.LEASE_KEEP_ALIVE.path), Refusal(Reason.NO_LEADER)),
    **dict.fromkeys(
        (methods.RANGE.path, methods.RANGE_STREAM.path, methods.MEMBER_LIST.path, methods.AUTHENTICATE.path),
        Refusal(Reason.TIMEOUT),
    ),
}
"""The answers to requests that have waited for a leader in vain; all others are such that are written to the log."""
_NOT_IMITATED: Final = frozenset({"v3lockpb.Lock", "v3electionpb.Election"})  # services of etcd
_PROGRESS: Final = 600.0  # seconds between two reports of the progress of watches, and up to a tenth more
_GRPC_MOST_BYTES: Final = MOST_BYTES + 2**19  # of any message


class Dispatcher:
    """Answers calls."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self._guard = guard = PermissionGuard(cluster)
        maintenance = MaintenanceService(cluster, guard)
        kv, lease, auth = KVService(cluster, guard), LeaseService(cluster, guard), AuthService(cluster, guard)
        self._unary: Mapping[str, tuple[type[pb.Message], _Unary]] = _rows(
            (methods.RANGE, kv.range),
            (methods.PUT, kv.put),
            (methods.DELETE_RANGE, kv.delete_range),
            (methods.TXN, kv.txn),
            (methods.COMPACT, kv.compact),
            (methods.LEASE_GRANT, lease.grant),
            (methods.LEASE_REVOKE, lease.revoke),
            (methods.LEASE_TIME_TO_LIVE, lease.time_to_live),
            (methods.LEASE_LEASES, lease.leases),
            (methods.STATUS, maintenance.status),
            (methods.ALARM, maintenance.alarm),
            (methods.DEFRAGMENT, maintenance.defragment),
            (methods.HASH, maintenance.hash),
            (methods.HASH_KV, maintenance.hash_kv),
            (methods.MOVE_LEADER, maintenance.move_leader),
            *([(methods.DOWNGRADE, maintenance.refuse)] if cluster.release.has_auth_status else []),
            (methods.MEMBER_LIST, maintenance.member_list),
            (methods.MEMBER_ADD, maintenance.refuse),
            (methods.MEMBER_REMOVE, maintenance.refuse),
            (methods.MEMBER_UPDATE, maintenance.refuse),
            (methods.MEMBER_PROMOTE, maintenance.refuse),
            (methods.HEALTH_CHECK, maintenance.health_check),
            *auth.rows(),
        )
        self._reply_streams: Mapping[str, tuple[type[pb.Message], _Stream]] = _rows(
            (methods.SNAPSHOT, maintenance.snapshot),
            *([(methods.RANGE_STREAM, kv.range_stream)] if cluster.release.has_range_stream else []),
        )
        self._keep_alive = lease.keep_alive
        self._check = kv.check
        self._health_status = maintenance.health_status

    def unary(self, node: Node, path: str, payload: bytes, metadata: Metadata, now: float) -> bytes | PendingCall:
        """Answer a unary call that a member got, unless it waits for a leader.

        Raises:
            Refusal: the status, if it is not OK.
        """
        row = self._unary.get(path)
        if row is None:
            raise _unknown(path)
        request, answer = row
        if len(payload) > _GRPC_MOST_BYTES:
            text = f"grpc: received message larger than max ({len(payload)} vs. {_GRPC_MOST_BYTES})"
            raise Refusal.other(StatusCode.RESOURCE_EXHAUSTED, text)
        message = _decoded(request, payload)
        if self.cluster.leader_of(node) is None:
            if _needs_leader(metadata):
                raise Refusal(Reason.NO_LEADER)
            if not (path in _SERVED_ALONE or self._is_local(message)):
                return self._wait(answer, MemberCall(node, metadata, len(payload), now), path, message)
        return encode(answer(MemberCall(node, metadata, len(payload), now), message))

    def _wait(self, answer: _Unary, call: MemberCall, path: str, message: pb.Message) -> PendingCall:
        """Let a call wait for a leader; it is run when there is one, unless its caller has given up."""
        self._check(call, message)
        pending = PendingCall()

        def go_on(now: float) -> None:
            if pending.is_wanted():
                try:
                    reply: bytes | Refusal = encode(answer(replace(call, now=now), message))
                except Refusal as refusal:
                    reply = refusal
                pending.on_answer(reply)

        refusal = self._given_up(path, message)
        self.cluster.wait_for_leader(call.node, call.now, go_on, lambda: pending.on_answer(refusal))
        return pending

    def _waits(self, node: Node, path: str) -> Waits:
        """How the requests of a stream wait; see `Waits`."""

        def wait(
            request: pb.Message, now: float, go_on: Callable[[float], None], end: Callable[[Refusal], None]
        ) -> bool:
            if self.cluster.leader_of(node) is not None or self._is_local(request):
                return False
            self.cluster.wait_for_leader(node, now, go_on, lambda: end(self._given_up(path, request)))
            return True

        return wait

    def _is_local(self, message: pb.Message) -> bool:
        """Whether the member answers from what it has."""
        match message:
            case pb.RangeRequest():
                return message.serializable
            case pb.MemberListRequest():
                return not (message.linearizable and self.cluster.release.has_linearizable_members)
            case pb.TxnRequest():
                ops = (*message.success, *message.failure)
                return all(one.request_range is not None and one.request_range.serializable for one in ops)
            case pb.SnapshotRequest():
                return True
        return False

    def _given_up(self, path: str, message: pb.Message) -> Refusal:
        """The answer to a request that has waited for a leader in vain."""
        if isinstance(message, pb.TxnRequest) and not writes(message):
            path = methods.RANGE.path
        code = StatusCode.DEADLINE_EXCEEDED if self.cluster.release.names_deadlines else StatusCode.UNKNOWN
        return _GIVEN_UP.get(path) or Refusal.other(code, "context deadline exceeded")

    def stream(self, node: Node, path: str, metadata: Metadata, now: float) -> ServerStream:
        """Open a stream; see `unary`.

        Raises:
            Refusal: there is no such stream.
        """
        needs_leader = _needs_leader(metadata)
        if needs_leader and self.cluster.leader_of(node) is None:
            raise Refusal(Reason.NO_LEADER)
        if path == methods.LEASE_KEEP_ALIVE.path:
            return EchoStream(
                methods.LEASE_KEEP_ALIVE.request,
                lambda request, at: self._keep_alive(MemberCall(node, metadata, 0, at), request),
                self._waits(node, path),
                node.streams,
                needs_leader=needs_leader,
            )
        if path == methods.WATCH.path:
            jitter = _PROGRESS / 10 * self.cluster.random_bits(20) / 2**20
            return ServerWatchStream(
                self.cluster,
                node,
                lambda at, key, end: self._guard.read(MemberCall(node, metadata, 0, at), key, end),
                _PROGRESS + jitter,
                now,
                needs_leader=needs_leader,
            )
        if path == methods.HEALTH_WATCH.path:
            return HealthStream(lambda request: self._health_status(node, request), node.streams)
        row = self._reply_streams.get(path)
        if row is None:
            raise _unknown(path)
        kind, answer = row
        return ReplyStream(
            kind, lambda request, at: answer(MemberCall(node, metadata, 0, at), request), self._waits(node, path)
        )


def _rows(*rows: tuple[methods.AnyMethod, Any]) -> Mapping[str, tuple[type[pb.Message], Any]]:
    return {method.path: (method.request, answer) for method, answer in rows}


def _needs_leader(metadata: Metadata) -> bool:
    return ("hasleader", "true") in metadata


def _decoded(request: type[pb.Message], payload: bytes) -> pb.Message:
    try:
        return decode(request, payload)
    except MalformedReplyError:
        pass
    raise Refusal.other(StatusCode.INTERNAL, "grpc: error unmarshalling request: proto: cannot parse invalid data")


def _unknown(path: str) -> Refusal:
    service, _, method = path.removeprefix("/").partition("/")
    if service in _NOT_IMITATED:
        return Refusal.other(StatusCode.UNIMPLEMENTED, f"fake etcd: {service} is not imitated")
    known = any(row.path.startswith(f"/{service}/") for row in methods.ALL)
    text = f"unknown method {method} for service {service}" if known else f"unknown service {service}"
    return Refusal.other(StatusCode.UNIMPLEMENTED, text)
