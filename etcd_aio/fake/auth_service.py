"""The service Auth."""

from string import ascii_letters

from etcd_aio import pb
from etcd_aio.fake.cluster import Cluster
from etcd_aio.fake.guard import Guard
from etcd_aio.fake.node import Call
from etcd_aio.fake.refusals import Refusal

_LETTERS = 16  # of a token


class AuthService:
    """Answers the calls of the service. Those that change something are for root only, once users are enabled."""

    def __init__(self, cluster: Cluster, guard: Guard) -> None:
        self._cluster = cluster
        self._users = cluster.users
        self._guard = guard

    def enable(self, call: Call, request: pb.AuthEnableRequest) -> pb.AuthEnableResponse:
        """Answer AuthEnable."""
        self._guard.admin(call)
        self._users.enable()
        return pb.AuthEnableResponse(header=self._cluster.header(call.node))

    def disable(self, call: Call, request: pb.AuthDisableRequest) -> pb.AuthDisableResponse:
        """Answer AuthDisable. All tokens die."""
        self._guard.admin(call)
        self._users.disable()
        self._forget(None)
        return pb.AuthDisableResponse(header=self._cluster.header(call.node))

    def status(self, call: Call, request: pb.AuthStatusRequest) -> pb.AuthStatusResponse:
        """Answer AuthStatus."""
        self._guard.user(call)  # also of a release that needs none: a token must be valid
        if self._cluster.release.guards_auth_status:
            self._guard.admin(call)
        return pb.AuthStatusResponse(
            header=self._cluster.header(call.node),
            enabled=self._users.is_enabled,
            auth_revision=self._users.revision,
        )

    def authenticate(self, call: Call, request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
        """Answer Authenticate. Every member learns the token."""
        self._users.log_in(request.name, request.password)
        letters = "".join(ascii_letters[self._cluster.random_bits(16) % len(ascii_letters)] for _ in range(_LETTERS))
        token = f"{letters}.{self._cluster.index}"
        self._cluster.committed(())
        for node in self._cluster.nodes:
            if node.is_running:
                node.tokens.assign(token, request.name, call.now)
        return pb.AuthenticateResponse(header=self._cluster.header(call.node), token=token)

    def user_add(self, call: Call, request: pb.AuthUserAddRequest) -> pb.AuthUserAddResponse:
        """Answer UserAdd."""
        self._guard.admin(call)
        has_password = request.options is None or not request.options.no_password
        self._users.add_user(request.name, request.password if has_password else None)
        return pb.AuthUserAddResponse(header=self._cluster.header(call.node))

    def user_get(self, call: Call, request: pb.AuthUserGetRequest) -> pb.AuthUserGetResponse:
        """Answer UserGet: for root, and for users about themselves."""
        user = self._guard.user(call)
        try:
            self._users.check_admin(user)
        except Refusal:
            if request.name != (user or ""):
                raise
        roles = self._users.roles_of(request.name)
        return pb.AuthUserGetResponse(header=self._cluster.header(call.node), roles=roles)

    def user_list(self, call: Call, request: pb.AuthUserListRequest) -> pb.AuthUserListResponse:
        """Answer UserList."""
        self._guard.admin(call)
        return pb.AuthUserListResponse(header=self._cluster.header(call.node), users=self._users.users())

    def user_delete(self, call: Call, request: pb.AuthUserDeleteRequest) -> pb.AuthUserDeleteResponse:
        """Answer UserDelete. The tokens of the user die."""
        self._guard.admin(call)
        self._users.delete_user(request.name)
        self._forget(request.name)
        return pb.AuthUserDeleteResponse(header=self._cluster.header(call.node))

    def user_change_password(
        self, call: Call, request: pb.AuthUserChangePasswordRequest
    ) -> pb.AuthUserChangePasswordResponse:
        """Answer UserChangePassword. The tokens of the user die."""
        self._guard.admin(call)
        self._users.change_password(request.name, request.password)
        self._forget(request.name)
        return pb.AuthUserChangePasswordResponse(header=self._cluster.header(call.node))

    def user_grant_role(self, call: Call, request: pb.AuthUserGrantRoleRequest) -> pb.AuthUserGrantRoleResponse:
        """Answer UserGrantRole."""
        self._guard.admin(call)
        self._users.grant_role(request.user, request.role)
        return pb.AuthUserGrantRoleResponse(header=self._cluster.header(call.node))

    def user_revoke_role(self, call: Call, request: pb.AuthUserRevokeRoleRequest) -> pb.AuthUserRevokeRoleResponse:
        """Answer UserRevokeRole."""
        self._guard.admin(call)
        self._users.revoke_role(request.name, request.role)
        return pb.AuthUserRevokeRoleResponse(header=self._cluster.header(call.node))

    def role_add(self, call: Call, request: pb.AuthRoleAddRequest) -> pb.AuthRoleAddResponse:
        """Answer RoleAdd."""
        self._guard.admin(call)
        self._users.add_role(request.name)
        return pb.AuthRoleAddResponse(header=self._cluster.header(call.node))

    def role_get(self, call: Call, request: pb.AuthRoleGetRequest) -> pb.AuthRoleGetResponse:
        """Answer RoleGet: for root, and for users about their own roles."""
        user = self._guard.user(call)
        try:
            self._users.check_admin(user)
        except Refusal:
            if not self._users.has_role(user, request.role):
                raise
        permissions = self._users.permissions_of(request.role)
        return pb.AuthRoleGetResponse(header=self._cluster.header(call.node), perm=permissions)

    def role_list(self, call: Call, request: pb.AuthRoleListRequest) -> pb.AuthRoleListResponse:
        """Answer RoleList."""
        self._guard.admin(call)
        return pb.AuthRoleListResponse(header=self._cluster.header(call.node), roles=self._users.roles())

    def role_delete(self, call: Call, request: pb.AuthRoleDeleteRequest) -> pb.AuthRoleDeleteResponse:
        """Answer RoleDelete."""
        self._guard.admin(call)
        self._users.delete_role(request.role)
        return pb.AuthRoleDeleteResponse(header=self._cluster.header(call.node))

    def role_grant_permission(
        self, call: Call, request: pb.AuthRoleGrantPermissionRequest
    ) -> pb.AuthRoleGrantPermissionResponse:
        """Answer RoleGrantPermission."""
        self._guard.admin(call)
        self._users.grant_permission(request.name, request.perm)
        return pb.AuthRoleGrantPermissionResponse(header=self._cluster.header(call.node))

    def role_revoke_permission(
        self, call: Call, request: pb.AuthRoleRevokePermissionRequest
    ) -> pb.AuthRoleRevokePermissionResponse:
        """Answer RoleRevokePermission."""
        self._guard.admin(call)
        self._users.revoke_permission(request.role, request.key, request.range_end)
        return pb.AuthRoleRevokePermissionResponse(header=self._cluster.header(call.node))

    def _forget(self, user: str | None) -> None:
        for node in self._cluster.nodes:
            node.tokens.forget(user)
