"""The service Auth."""

from collections.abc import Callable, Iterator
from string import ascii_letters
from typing import Any, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.guard import PermissionGuard
from etcd_aio.fake.node import MemberCall
from etcd_aio.fake.refusals import Refusal

_Answer: TypeAlias = Callable[[MemberCall, Any], pb.Message]

_LETTERS = 16  # of a token


class AuthService:
    """Answers the calls of the service."""

    def __init__(self, cluster: FakeCluster, guard: PermissionGuard) -> None:
        self._cluster = cluster
        self._users = cluster.users
        self._guard = guard

    def rows(self) -> Iterator[tuple[methods.AnyMethod, _Answer]]:
        """The methods, each with its handler."""
        users, for_root = self._users, self._for_root
        yield methods.AUTH_ENABLE, for_root(pb.AuthEnableResponse, lambda request: users.enable())
        yield methods.AUTH_DISABLE, for_root(pb.AuthDisableResponse, self._disable)
        if self._cluster.release.has_auth_status:
            yield methods.AUTH_STATUS, self._status
        yield methods.AUTHENTICATE, self._authenticate
        yield methods.USER_ADD, for_root(pb.AuthUserAddResponse, self._user_add)
        yield methods.USER_GET, self._user_get
        yield methods.USER_LIST, for_root(pb.AuthUserListResponse, lambda request: {"users": users.users()})
        yield methods.USER_DELETE, for_root(pb.AuthUserDeleteResponse, self._user_delete)
        yield methods.USER_CHANGE_PASSWORD, for_root(pb.AuthUserChangePasswordResponse, self._user_change_password)
        yield (
            methods.USER_GRANT_ROLE,
            for_root(pb.AuthUserGrantRoleResponse, lambda request: users.grant_role(request.user, request.role)),
        )
        yield (
            methods.USER_REVOKE_ROLE,
            for_root(pb.AuthUserRevokeRoleResponse, lambda request: users.revoke_role(request.name, request.role)),
        )
        yield methods.ROLE_ADD, for_root(pb.AuthRoleAddResponse, lambda request: users.add_role(request.name))
        yield methods.ROLE_GET, self._role_get
        yield methods.ROLE_LIST, for_root(pb.AuthRoleListResponse, lambda request: {"roles": users.roles()})
        yield methods.ROLE_DELETE, for_root(pb.AuthRoleDeleteResponse, lambda request: users.delete_role(request.role))
        yield (
            methods.ROLE_GRANT_PERMISSION,
            for_root(
                pb.AuthRoleGrantPermissionResponse,
                lambda request: users.grant_permission(request.name, request.perm),
            ),
        )
        yield (
            methods.ROLE_REVOKE_PERMISSION,
            for_root(
                pb.AuthRoleRevokePermissionResponse,
                lambda request: users.revoke_permission(request.role, request.key, request.range_end),
            ),
        )

    def _for_root(self, reply: Callable[..., pb.Message], run: Callable[[Any], dict[str, list[str]] | None]) -> _Answer:
        """The handler of a method that is for root only, once users are enabled.

        Args:
            reply: the class of the reply.
            run: runs a request; returns the fields of the reply besides its header.
        """

        def answer(call: MemberCall, request: Any) -> pb.Message:
            self._guard.admin(call)
            fields = run(request) or {}
            return reply(header=self._cluster.header(call.node), **fields)

        return answer

    def _disable(self, request: pb.AuthDisableRequest) -> None:
        """Disable users; all tokens die."""
        self._users.disable()
        self._forget(None)

    def _status(self, call: MemberCall, request: pb.AuthStatusRequest) -> pb.AuthStatusResponse:
        self._guard.user(call)  # also of a release that needs none: a token must be valid
        if self._cluster.release.guards_auth_status:
            self._guard.admin(call)
        return pb.AuthStatusResponse(
            header=self._cluster.header(call.node),
            enabled=self._users.is_enabled,
            auth_revision=self._users.revision,
        )

    def _authenticate(self, call: MemberCall, request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
        """Log in; every member learns the token."""
        self._users.log_in(request.name, request.password)
        letters = "".join(ascii_letters[self._cluster.random_bits(16) % len(ascii_letters)] for _ in range(_LETTERS))
        token = f"{letters}.{self._cluster.index}"
        self._cluster.committed(())
        for node in self._cluster.nodes:
            if node.is_running:
                node.tokens.assign(token, request.name, call.now)
        return pb.AuthenticateResponse(header=self._cluster.header(call.node), token=token)

    def _user_add(self, request: pb.AuthUserAddRequest) -> None:
        has_password = request.options is None or not request.options.no_password
        self._users.add_user(request.name, request.password if has_password else None)

    def _user_get(self, call: MemberCall, request: pb.AuthUserGetRequest) -> pb.AuthUserGetResponse:
        """Answer root, and users about themselves."""
        user = self._guard.user(call)
        try:
            self._users.check_admin(user)
        except Refusal:
            if request.name != (user or ""):
                raise
        roles = self._users.roles_of(request.name)
        return pb.AuthUserGetResponse(header=self._cluster.header(call.node), roles=roles)

    def _user_delete(self, request: pb.AuthUserDeleteRequest) -> None:
        """Delete a user; the tokens of the user die."""
        self._users.delete_user(request.name)
        self._forget(request.name)

    def _user_change_password(self, request: pb.AuthUserChangePasswordRequest) -> None:
        """Change a password; the tokens of the user die."""
        self._users.change_password(request.name, request.password)
        self._forget(request.name)

    def _role_get(self, call: MemberCall, request: pb.AuthRoleGetRequest) -> pb.AuthRoleGetResponse:
        """Answer root, and users about their own roles."""
        user = self._guard.user(call)
        try:
            self._users.check_admin(user)
        except Refusal:
            if not self._users.has_role(user, request.role):
                raise
        permissions = self._users.permissions_of(request.role)
        return pb.AuthRoleGetResponse(header=self._cluster.header(call.node), perm=permissions)

    def _forget(self, user: str | None) -> None:
        for node in self._cluster.nodes:
            node.tokens.forget(user)
