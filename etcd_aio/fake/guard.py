"""Permissions: etcd's checks of each kind of call, for the user that the token of the call stands for. Pure."""

from collections.abc import Sequence

from etcd_aio import pb
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.node import MemberCall
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.transport import token_of


class PermissionGuard:
    """Checks calls. Every method raises `Refusal`, and does nothing while users are not enabled."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._users = cluster.users
        self._leases = cluster.leases
        self._release = cluster.release

    def user(self, call: MemberCall) -> str | None:
        """The user of a call; None if it has no token."""
        if not self._users.is_enabled:
            return None
        token = token_of(call.metadata)
        if not token:
            return None
        user = call.node.tokens.user_of(token, call.now)
        if user is None:
            raise Refusal(Reason.INVALID_AUTH_TOKEN)
        return user

    def known(self, call: MemberCall) -> None:
        """Check that the call has a user at all."""
        if self._users.is_enabled and self.user(call) is None:
            raise Refusal(Reason.USER_EMPTY)

    def admin(self, call: MemberCall) -> None:
        """Check that the user has the role of root."""
        self._users.check_admin(self.user(call))

    def read(self, call: MemberCall, key: bytes, end: bytes) -> None:
        """Check a read of an interval."""
        self._users.check_read(self.user(call), key, end)

    def put(self, call: MemberCall, request: pb.PutRequest) -> None:
        """Check a put."""
        self._put(self.user(call), request)

    def delete(self, call: MemberCall, request: pb.DeleteRangeRequest) -> None:
        """Check a delete."""
        user = self.user(call)
        self._users.check_write(user, request.key, request.range_end)
        if request.prev_kv:
            self._users.check_read(user, request.key, request.range_end)

    def txn(self, call: MemberCall, request: pb.TxnRequest) -> None:
        """Check a transaction, in both branches."""
        self._txn(self.user(call), request)

    def lease_writes(self, call: MemberCall, lease: int) -> None:
        """Check that the user may write all keys of a lease."""
        self._lease_writes(self.user(call), lease)

    def lease_reads(self, call: MemberCall, leases: Sequence[int]) -> None:
        """Check that the user may read all keys of some leases."""
        self.known(call)
        user = self.user(call)
        if not self._is_admin(user):
            for lease in leases:
                for key in self._keys_of(lease):
                    self._users.check_read(user, key, b"")

    def _put(self, user: str | None, request: pb.PutRequest) -> None:
        self._users.check_write(user, request.key, b"")
        self._lease_writes(user, request.lease)
        if request.prev_kv:
            self._users.check_read(user, request.key, b"")

    def _txn(self, user: str | None, request: pb.TxnRequest) -> None:
        for compare in request.compare:
            self._users.check_read(user, compare.key, compare.range_end)
        for one in (*request.success, *request.failure):
            if one.request_range is not None:
                self._users.check_read(user, one.request_range.key, one.request_range.range_end)
            elif one.request_put is not None:
                if self._release.checks_whole_txns:
                    self._put(user, one.request_put)
                else:
                    self._users.check_write(user, one.request_put.key, b"")
            elif one.request_delete_range is not None:
                delete = one.request_delete_range
                if delete.prev_kv:
                    self._users.check_read(user, delete.key, delete.range_end)
                self._users.check_write(user, delete.key, delete.range_end)
            elif one.request_txn is not None and self._release.checks_whole_txns:
                self._txn(user, one.request_txn)

    def _lease_writes(self, user: str | None, lease: int) -> None:
        """Ending a lease deletes its keys, so it needs the permission to write them."""
        if not self._is_admin(user):
            for key in self._keys_of(lease):
                self._users.check_write(user, key, b"")

    def _keys_of(self, lease: int) -> list[bytes]:
        return sorted(self._leases.get(lease).keys) if lease in self._leases else []

    def _is_admin(self, user: str | None) -> bool:
        try:
            self._users.check_admin(user)
        except Refusal:
            return False
        return True
