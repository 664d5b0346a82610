"""`client.auth`: the calls about users, roles and permissions."""

from typing import TYPE_CHECKING, Any

from etcd_aio import methods, pb
from etcd_aio.admin.replies import PERMISSION_TYPES, role_result
from etcd_aio.arguments import check_text, parse_word
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.codec import header_of
from etcd_aio.errors import InvalidRequestError
from etcd_aio.methods import Method, Request
from etcd_aio.types import (
    AuthenticateResult,
    AuthResult,
    AuthStatus,
    KeyLike,
    KeyRange,
    Permission,
    PermissionLike,
    Role,
    RoleListResult,
    User,
    UserListResult,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker


class Auth:
    """The authentication API: `client.auth`. All calls but `status` and `authenticate` need the role `root`.

        async with Client(endpoints) as client:  # authentication is still off
            await client.auth.role_add("app")
            await client.auth.role_grant_permission("app", prefix="app/", permission="readwrite")
            await client.auth.user_add("web", password)
            await client.auth.user_grant_role("web", "app")
            await client.auth.user_add("root", root_password)
            await client.auth.user_grant_role("root", "root")  # a role that needs no adding
            await client.auth.enable()
        async with Client(endpoints, auth=("web", password)) as client:
            await client.put("app/greeting", "hello")

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is applied at most once,
    unless `retry="always"`: if its error has `maybe_applied`, list the users and roles before trying again. A cancelled
    change may have been applied. Names and passwords must not be empty: `InvalidRequestError`, and nothing is sent.

    etcd refuses a call without a user (`UserEmptyError`), a wrong password (`AuthenticationFailedError`), and a user
    without the permission (`PermissionDeniedError`). A change of users or roles invalidates the tokens of JWT
    authentication; clients renew theirs automatically.

    Args:
        invoker: runs the calls.
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    # Authentication itself.

    async def enable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Enable authentication: from now on every call must carry the token of a user.

        Raises:
            RootUserNotExistError: there is no user `root`.
            RootRoleNotExistError: the user `root` does not have the role `root`.
        """
        return await self._change(methods.AUTH_ENABLE, pb.AuthEnableRequest(), timeout, retry)

    async def disable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Disable authentication: from now on every client may do everything. Users and roles are kept."""
        return await self._change(methods.AUTH_DISABLE, pb.AuthDisableRequest(), timeout, retry)

    async def status(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthStatus:
        """Get whether authentication is enabled. While it is, servers before etcd 3.7 answer only to `root`.

        Returns:
            AuthStatus: true if authentication is enabled.
        """
        return await self._invoker.unary(methods.AUTH_STATUS, pb.AuthStatusRequest(), timeout=timeout, retry=retry)

    async def authenticate(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthenticateResult:
        """Log in: get a token for a user. A client with `auth=` does this automatically.

        Returns:
            AuthenticateResult: `token` is for `Client(token=...)`, or for another client of etcd.

        Raises:
            AuthNotEnabledError: authentication is not enabled.
            AuthenticationFailedError: there is no such user, or the password is wrong, or the user has none.
        """
        request = pb.AuthenticateRequest(name=_name(name, "name"), password=_password(password))
        return await self._invoker.unary(methods.AUTHENTICATE, request, timeout=timeout, retry=retry)

    # Users.

    async def user_add(
        self, name: str, password: str | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Add a user without roles.

        Args:
            name: the user's name.
            password: the user's password. Default: none. Such a user cannot log in, but is authenticated by the common
                name of a client certificate.

        Raises:
            UserAlreadyExistsError: there is a user of this name.
        """
        request = pb.AuthUserAddRequest(
            name=_name(name, "name"),
            password="" if password is None else _password(password),
            options=pb.UserAddOptions(no_password=password is None),
        )
        return await self._change(methods.USER_ADD, request, timeout, retry)

    async def user_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> User:
        """Get a user with the user's roles. Users may get themselves.

        Raises:
            UserNotFoundError: there is no such user.
        """
        request = pb.AuthUserGetRequest(name=_name(name, "name"))
        reply = await self._invoker.unary(methods.USER_GET, request, timeout=timeout, retry=retry)
        return User(header_of(reply.header), name, tuple(reply.roles))  # the reply does not repeat the name

    async def user_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> UserListResult:
        """List the names of all users."""
        return await self._invoker.unary(methods.USER_LIST, pb.AuthUserListRequest(), timeout=timeout, retry=retry)

    async def user_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a user. The user's tokens become invalid.

        Raises:
            UserNotFoundError: there is no such user.
            InvalidAuthManagementError: the user is `root`, and authentication is enabled.
        """
        request = pb.AuthUserDeleteRequest(name=_name(name, "name"))
        return await self._change(methods.USER_DELETE, request, timeout, retry)

    async def user_change_password(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user another password. The user's tokens become invalid.

        A client that has the old password is refused at its next call; make a client with the new one.

        Raises:
            UserNotFoundError: there is no such user.
        """
        request = pb.AuthUserChangePasswordRequest(name=_name(name, "name"), password=_password(password))
        return await self._change(methods.USER_CHANGE_PASSWORD, request, timeout, retry)

    async def user_grant_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user a role; no error if the user has it already. The role `root` may do everything.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotFoundError: there is no such role.
        """
        request = pb.AuthUserGrantRoleRequest(user=_name(name, "name"), role=_name(role, "role"))
        return await self._change(methods.USER_GRANT_ROLE, request, timeout, retry)

    async def user_revoke_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Take a role from a user. Open watches continue until their stream has to be opened again.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotGrantedError: the user does not have the role.
            InvalidAuthManagementError: user and role are `root`, and authentication is enabled.
        """
        request = pb.AuthUserRevokeRoleRequest(name=_name(name, "name"), role=_name(role, "role"))
        return await self._change(methods.USER_REVOKE_ROLE, request, timeout, retry)

    # Roles.

    async def role_add(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Add a role without permissions.

        Raises:
            RoleAlreadyExistsError: there is a role of this name.
        """
        return await self._change(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=_name(name, "name")), timeout, retry)

    async def role_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Role:
        """Get a role with its permissions. Users may get their own roles.

        Raises:
            RoleNotFoundError: there is no such role.
        """
        request = pb.AuthRoleGetRequest(role=_name(name, "name"))
        return role_result(name, await self._invoker.unary(methods.ROLE_GET, request, timeout=timeout, retry=retry))

    async def role_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> RoleListResult:
        """List the names of all roles."""
        return await self._invoker.unary(methods.ROLE_LIST, pb.AuthRoleListRequest(), timeout=timeout, retry=retry)

    async def role_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a role, and take it from all users that have it.

        Raises:
            RoleNotFoundError: there is no such role.
            InvalidAuthManagementError: the role is `root`, and authentication is enabled.
        """
        request = pb.AuthRoleDeleteRequest(role=_name(name, "name"))
        return await self._change(methods.ROLE_DELETE, request, timeout, retry)

    async def role_grant_permission(
        self,
        role: str,
        key: KeyLike | None = None,
        *,
        permission: PermissionLike,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> AuthResult:
        """Give a role a permission. It replaces the role's permission for exactly the same keys, if there is one.

        The keys are named as in `client.range()`.

        Args:
            role: the role's name.
            permission: the kind of access: `"read"`, `"write"`, `"readwrite"`, or a `Permission`.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or there is no such permission. Nothing was sent.
            RoleNotFoundError: there is no such role.
            InvalidAuthManagementError: the interval ends before it begins.
        """
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        kind = parse_word(Permission, permission, "permission")
        granted = pb.Permission(perm_type=PERMISSION_TYPES[kind], key=keys.key, range_end=keys.range_end)
        request = pb.AuthRoleGrantPermissionRequest(name=_name(role, "role"), perm=granted)
        return await self._change(methods.ROLE_GRANT_PERMISSION, request, timeout, retry)

    async def role_revoke_permission(
        self,
        role: str,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> AuthResult:
        """Take a permission from a role. The keys must be exactly those of the permission.

        Raises:
            InvalidRequestError: not exactly one form names the keys. Nothing was sent.
            RoleNotFoundError: there is no such role.
            PermissionNotGrantedError: the role has no permission for exactly these keys.
        """
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        request = pb.AuthRoleRevokePermissionRequest(role=_name(role, "role"), key=keys.key, range_end=keys.range_end)
        return await self._change(methods.ROLE_REVOKE_PERMISSION, request, timeout, retry)

    async def _change(
        self, method: Method[Request, Any], request: Request, timeout: Timeout, retry: RetryMode | None
    ) -> AuthResult:
        """Run a call whose reply has nothing but a header. Each of them has its own, equal message class."""
        reply = await self._invoker.unary(method, request, timeout=timeout, retry=retry)
        return AuthResult(header_of(reply.header))


def _name(name: str, what: str) -> str:
    """Return the name of a user or role, checked."""
    if not name and isinstance(name, str):
        raise InvalidRequestError(f"{what} is empty")
    return check_text(name, what)


def _password(password: str) -> str:
    """Return a password, checked. Errors never show it."""
    if not password and isinstance(password, str):
        raise InvalidRequestError("password is empty: a user without one is added with password=None")
    return check_text(password, "password")
