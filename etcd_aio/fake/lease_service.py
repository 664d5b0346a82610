"""The service Lease."""

from typing import Final

from etcd_aio import pb
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.guard import PermissionGuard
from etcd_aio.fake.node import MemberCall
from etcd_aio.fake.refusals import Refusal

_MISSING: Final = -1  # the TTL of a lease that does not exist


class LeaseService:
    """Answers the calls of the service."""

    def __init__(self, cluster: FakeCluster, guard: PermissionGuard) -> None:
        self._cluster = cluster
        self._guard = guard

    def grant(self, call: MemberCall, request: pb.LeaseGrantRequest) -> pb.LeaseGrantResponse:
        """An id of 0 lets the server choose one."""
        self._known(call)
        self._guard.user(call)  # also of a release that needs none: a token must be valid
        wanted = request.id
        while not wanted:
            wanted = self._cluster.random_bits(63)
        self._cluster.alarms.check(needs_space=True)
        lease = self._cluster.leases.grant(wanted, request.ttl, call.now)
        return pb.LeaseGrantResponse(header=self._cluster.header(call.node), id=lease.id, ttl=lease.ttl)

    def revoke(self, call: MemberCall, request: pb.LeaseRevokeRequest) -> pb.LeaseRevokeResponse:
        self._known(call)
        self._guard.lease_writes(call, request.id)
        self._cluster.alarms.check(needs_space=False)
        self._cluster.revoke(request.id)
        return pb.LeaseRevokeResponse(header=self._cluster.header(call.node))

    def time_to_live(self, call: MemberCall, request: pb.LeaseTimeToLiveRequest) -> pb.LeaseTimeToLiveResponse:
        """A missing lease is no error."""
        self._known(call)
        if request.keys and self._cluster.release.guards_leases:
            self._guard.lease_reads(call, [request.id])
        header = self._cluster.header(call.node)
        try:
            lease = self._cluster.leases.get(request.id)
        except Refusal:
            return pb.LeaseTimeToLiveResponse(header=header, id=request.id, ttl=_MISSING)
        return pb.LeaseTimeToLiveResponse(
            header=header,
            id=lease.id,
            ttl=lease.remaining(call.now),
            granted_ttl=lease.ttl,
            keys=sorted(lease.keys) if request.keys else [],
        )

    def leases(self, call: MemberCall, request: pb.LeaseLeasesRequest) -> pb.LeaseLeasesResponse:
        if self._cluster.release.guards_leases:
            self._guard.lease_reads(call, [lease.id for lease in self._cluster.leases.all()])
        found = [pb.LeaseStatus(id=lease.id) for lease in self._cluster.leases.all()]
        return pb.LeaseLeasesResponse(header=self._cluster.header(call.node), leases=found)

    def keep_alive(self, call: MemberCall, request: pb.LeaseKeepAliveRequest) -> pb.LeaseKeepAliveResponse:
        """Answer one message of LeaseKeepAlive. The TTL of a missing lease is 0."""
        self._known(call)
        if self._cluster.release.guards_leases:
            self._guard.lease_writes(call, request.id)
        header = self._cluster.header(call.node)
        try:
            ttl = self._cluster.leases.renew(request.id, call.now).ttl
        except Refusal:
            ttl = 0
        return pb.LeaseKeepAliveResponse(header=header, id=request.id, ttl=ttl)

    def _known(self, call: MemberCall) -> None:
        if self._cluster.release.guards_leases:
            self._guard.known(call)
