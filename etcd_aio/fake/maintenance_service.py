"""The services Maintenance, Cluster and Health. Hashes, sizes and snapshots are the fake's own."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final
from zlib import crc32

from etcd_aio import pb
from etcd_aio.errors import StatusCode
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.guard import PermissionGuard
from etcd_aio.fake.node import MemberCall, Node
from etcd_aio.fake.refusals import Reason, Refusal

_PAGE: Final = 4096
_QUOTA: Final = 2 * 2**30  # bytes; etcd's default
_EMPTY_SIZE: Final = 5 * _PAGE
_SERVING: Final = pb.health.HealthCheckResponseServingStatus.SERVING
_NOT_SERVING: Final = pb.health.HealthCheckResponseServingStatus.NOT_SERVING
_UNKNOWN_SERVICE: Final = pb.health.HealthCheckResponseServingStatus.SERVICE_UNKNOWN


class MaintenanceService:
    """Answers the calls of the services."""

    def __init__(self, cluster: FakeCluster, guard: PermissionGuard) -> None:
        self._cluster = cluster
        self._guard = guard

    def status(self, call: MemberCall, request: pb.StatusRequest) -> pb.StatusResponse:
        if self._cluster.release.guards_status:
            self._guard.known(call)
        leader = self._cluster.leader_of(call.node)
        size = _EMPTY_SIZE + _PAGE * (1 + call.node.store.revision // 20)
        header = self._cluster.header(call.node)
        reply = pb.StatusResponse(
            header=header,
            version=self._cluster.release.version,
            db_size=size,
            leader=0 if leader is None else leader.id,
            raft_index=self._cluster.index_of(call.node),
            raft_term=self._cluster.term_of(call.node),
            raft_applied_index=self._cluster.index_of(call.node),
            errors=([] if leader else ["etcdserver: no leader"]) + self._cluster.alarms.texts(),
            db_size_in_use=size,
        )
        if self._cluster.release.has_storage_version:
            reply.storage_version = f"{self._cluster.release.name}.0"
            reply.db_size_quota = _QUOTA
            reply.downgrade_info = pb.DowngradeInfo()
        return reply

    def alarm(self, call: MemberCall, request: pb.AlarmRequest) -> pb.AlarmResponse:
        if not self._cluster.release.guards_status:
            self._named(self._guard.user, call)
        elif request.action == pb.AlarmRequestAlarmAction.GET:
            self._guard.known(call)
        else:
            self._guard.admin(call)
        found = self._cluster.alarms.answer(request)
        header = self._cluster.header(call.node) if self._cluster.release.has_alarm_header else None
        return pb.AlarmResponse(header=header, alarms=found)

    def defragment(self, call: MemberCall, request: pb.DefragmentRequest) -> pb.DefragmentResponse:
        self._named(self._guard.admin, call)
        return pb.DefragmentResponse()

    def hash(self, call: MemberCall, request: pb.HashRequest) -> pb.HashResponse:
        self._named(self._guard.admin, call)
        return pb.HashResponse(header=self._cluster.header(call.node), hash=self._hash(call, 0))

    def hash_kv(self, call: MemberCall, request: pb.HashKvRequest) -> pb.HashKvResponse:
        self._named(self._guard.admin, call)
        revision = call.node.store.check(request.revision)
        reply = pb.HashKvResponse(
            header=self._cluster.header(call.node),
            hash=self._hash(call, revision),
            compact_revision=call.node.store.compacted,
        )
        if self._cluster.release.has_storage_version:
            reply.hash_revision = revision
        return reply

    def snapshot(self, call: MemberCall, request: pb.SnapshotRequest) -> Iterator[pb.SnapshotResponse]:
        """Answer Snapshot: pages that no etcd can read, and their checksum."""
        self._named(self._guard.admin, call)
        version = f"{self._cluster.release.name}.0" if self._cluster.release.has_storage_version else ""
        content = b"fake etcd".ljust(_PAGE, b"\x00") * 2
        yield pb.SnapshotResponse(header=None, remaining_bytes=0, blob=content, version=version)
        yield pb.SnapshotResponse(header=None, remaining_bytes=0, blob=sha256(content).digest(), version=version)

    def move_leader(self, call: MemberCall, request: pb.MoveLeaderRequest) -> pb.MoveLeaderResponse:
        if self._cluster.release.guards_leader:
            self._guard.admin(call)
        if self._cluster.leader_of(call.node) is not call.node:
            raise Refusal(Reason.NOT_LEADER)
        for node in self._cluster.nodes:
            if node.id == request.target_id and node.is_available:
                self._cluster.elect(node, call.now)
                return pb.MoveLeaderResponse()
        raise Refusal(Reason.BAD_LEADER_TRANSFEREE)

    def member_list(self, call: MemberCall, request: pb.MemberListRequest) -> pb.MemberListResponse:
        if self._cluster.release.guards_status:
            self._guard.known(call)
        members = [
            pb.Member(id=node.id, name=node.name, peer_urls=[node.peer_url], client_urls=list(node.client_urls))
            for node in self._cluster.nodes
        ]
        header = self._cluster.header(call.node)
        header.revision = 0  # the members are not in the store
        return pb.MemberListResponse(header=header, members=members)

    def health_check(self, call: MemberCall, request: pb.health.HealthCheckRequest) -> pb.health.HealthCheckResponse:
        """Answer Check of gRPC's health service."""
        if request.service:
            raise Refusal.other(StatusCode.NOT_FOUND, "unknown service")
        return self.health_status(call.node, request)

    def health_status(self, node: Node, request: pb.health.HealthCheckRequest) -> pb.health.HealthCheckResponse:
        """The status that Watch of gRPC's health service tells."""
        status = _SERVING if node.is_serving else _NOT_SERVING
        return pb.health.HealthCheckResponse(status=_UNKNOWN_SERVICE if request.service else status)

    def refuse(self, call: MemberCall, request: pb.Message) -> pb.Message:
        """Refuse a call that the fake does not imitate."""
        name = type(request).__name__.removesuffix("Request")
        raise Refusal.other(StatusCode.UNIMPLEMENTED, f"fake etcd: {name} is not imitated")

    def _named(self, check: Callable[[MemberCall], object], call: MemberCall) -> None:
        """Run a check; older releases forget to translate its refusal."""
        try:
            check(call)
        except Refusal as refusal:
            if self._cluster.release.names_maintenance_errors:
                raise
            raise Refusal.other(StatusCode.UNKNOWN, refusal.text.replace("etcdserver:", "auth:")) from None

    def _hash(self, call: MemberCall, revision: int) -> int:
        found = call.node.store.read(b"\x00", b"\x00", revision)
        return crc32(b"".join(b"%b=%b@%d" % (one.key, one.value, one.mod_revision) for one in found))
