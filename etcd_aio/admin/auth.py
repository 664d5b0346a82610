"""`client.auth`: the calls about users, roles and permissions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from etcd_aio import methods, pb
from etcd_aio.admin import replies
from etcd_aio.call_options import UNSET, RetryMode, Timeout
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
    check_text,
    parse_word,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_PERMISSION_TYPES: Final[Mapping[Permission, pb.PermissionType]] = {
    Permission.READ: pb.PermissionType.READ,
    Permission.WRITE: pb.PermissionType.WRITE,
    Permission.READWRITE: pb.PermissionType.READWRITE,
}

_Headed: TypeAlias = (
    pb.AuthEnableResponse
    | pb.AuthDisableResponse
    | pb.AuthUserAddResponse
    | pb.AuthUserDeleteResponse
    | pb.AuthUserChangePasswordResponse
    | pb.AuthUserGrantRoleResponse
    | pb.AuthUserRevokeRoleResponse
    | pb.AuthRoleAddResponse
    | pb.AuthRoleDeleteResponse
    | pb.AuthRoleGrantPermissionResponse
    | pb.AuthRoleRevokePermissionResponse
)
_HeadedReply = TypeVar("_HeadedReply", bound=_Headed)


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

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is never sent twice unless
    `retry="always"` says so: if its error has `maybe_applied`, look before you try again. Cancelling one may come too
    late. Names are texts that are not empty; what cannot be right is refused before anything is sent.

    etcd refuses whom it does not know (`UserEmptyError`), who has logged in wrongly (`AuthenticationFailedError`) and
    whom it does not permit it (`PermissionDeniedError`). A change of users or roles outdates the tokens of JWT
    authentication; clients renew theirs by themselves.

    Args:
        invoker: runs the calls.
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    # Authentication itself.

    async def enable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Enable authentication: from now on every call must say who makes it.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            RootUserNotExistError: there is no user `root`.
            RootRoleNotExistError: the user `root` does not have the role `root`.
            EtcdError: as every call.
        """
        return await self._change(methods.AUTH_ENABLE, pb.AuthEnableRequest(), timeout, retry)

    async def disable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Disable authentication: from now on everybody may do everything. Users and roles are kept.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            EtcdError: as every call.
        """
        return await self._change(methods.AUTH_DISABLE, pb.AuthDisableRequest(), timeout, retry)

    async def status(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthStatus:
        """Whether authentication is enabled. Before etcd 3.7 only `root` may ask while it is.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            AuthStatus: true if it is.

        Raises:
            EtcdError: as every call.
        """
        return replies.auth_status(
            await self._invoker.unary(methods.AUTH_STATUS, pb.AuthStatusRequest(), timeout=timeout, retry=retry)
        )

    async def authenticate(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthenticateResult:
        """Log in: get a token for a user. A client with `auth=` logs in by itself.

        Args:
            name: the user.
            password: the user's password.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            AuthenticateResult: `token` is for `Client(token=...)`, or for another client of etcd.

        Raises:
            AuthNotEnabledError: there is nothing to log in to.
            AuthenticationFailedError: there is no such user, or the password is wrong, or the user has none.
            EtcdError: as every call.
        """
        request = pb.AuthenticateRequest(name=_name(name, "name"), password=_password(password))
        return replies.authenticate_result(
            await self._invoker.unary(methods.AUTHENTICATE, request, timeout=timeout, retry=retry)
        )

    # Users.

    async def user_add(
        self, name: str, password: str | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Add a user, who has no roles yet.

        Args:
            name: the user's name.
            password: the user's password. None is a user who cannot log in, and is known by the common name in a
                client's certificate.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserAlreadyExistsError: there is one of this name.
            EtcdError: as every call.
        """
        request = pb.AuthUserAddRequest(
            name=_name(name, "name"),
            password="" if password is None else _password(password),
            options=pb.UserAddOptions(no_password=password is None),
        )
        return await self._change(methods.USER_ADD, request, timeout, retry)

    async def user_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> User:
        """A user and the user's roles. Users may ask for themselves.

        Args:
            name: the user's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserNotFoundError: there is no such user.
            EtcdError: as every call.
        """
        request = pb.AuthUserGetRequest(name=_name(name, "name"))
        return replies.user(name, await self._invoker.unary(methods.USER_GET, request, timeout=timeout, retry=retry))

    async def user_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> UserListResult:
        """The names of all users.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            EtcdError: as every call.
        """
        return replies.user_list(
            await self._invoker.unary(methods.USER_LIST, pb.AuthUserListRequest(), timeout=timeout, retry=retry)
        )

    async def user_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a user. The user's tokens are worth nothing from now on.

        Args:
            name: the user's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserNotFoundError: there is no such user.
            InvalidAuthManagementError: it is `root`, and authentication is enabled.
            EtcdError: as every call.
        """
        request = pb.AuthUserDeleteRequest(name=_name(name, "name"))
        return await self._change(methods.USER_DELETE, request, timeout, retry)

    async def user_change_password(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user another password. The user's tokens are worth nothing from now on.

        A client that logs in with the old one is refused at its next call; make one with the new password.

        Args:
            name: the user's name.
            password: the new password.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserNotFoundError: there is no such user.
            EtcdError: as every call.
        """
        request = pb.AuthUserChangePasswordRequest(name=_name(name, "name"), password=_password(password))
        return await self._change(methods.USER_CHANGE_PASSWORD, request, timeout, retry)

    async def user_grant_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user a role. One who has it already keeps it.

        Args:
            name: the user's name.
            role: the role's name; `root` may do everything.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotFoundError: there is no such role.
            EtcdError: as every call.
        """
        request = pb.AuthUserGrantRoleRequest(user=_name(name, "name"), role=_name(role, "role"))
        return await self._change(methods.USER_GRANT_ROLE, request, timeout, retry)

    async def user_revoke_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Take a role from a user. Watches that are open go on, until they have to be opened anew.

        Args:
            name: the user's name.
            role: the role's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotGrantedError: the user does not have the role.
            InvalidAuthManagementError: it is the role `root` of `root`, and authentication is enabled.
            EtcdError: as every call.
        """
        request = pb.AuthUserRevokeRoleRequest(name=_name(name, "name"), role=_name(role, "role"))
        return await self._change(methods.USER_REVOKE_ROLE, request, timeout, retry)

    # Roles.

    async def role_add(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Add a role, which permits nothing yet.

        Args:
            name: the role's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            RoleAlreadyExistsError: there is one of this name.
            EtcdError: as every call.
        """
        return await self._change(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=_name(name, "name")), timeout, retry)

    async def role_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Role:
        """A role and what it permits. Users may ask for their own roles.

        Args:
            name: the role's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            RoleNotFoundError: there is no such role.
            EtcdError: as every call.
        """
        request = pb.AuthRoleGetRequest(role=_name(name, "name"))
        return replies.role(name, await self._invoker.unary(methods.ROLE_GET, request, timeout=timeout, retry=retry))

    async def role_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> RoleListResult:
        """The names of all roles.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            EtcdError: as every call.
        """
        return replies.role_list(
            await self._invoker.unary(methods.ROLE_LIST, pb.AuthRoleListRequest(), timeout=timeout, retry=retry)
        )

    async def role_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a role, and take it from all who have it.

        Args:
            name: the role's name.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            RoleNotFoundError: there is no such role.
            InvalidAuthManagementError: it is `root`, and authentication is enabled.
            EtcdError: as every call.
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
        """Permit a role something. A permission that it has for the very same keys is replaced.

        The keys are named by exactly one form.

        Args:
            role: the role's name.
            key: this key alone, or with `range_end` the first key of an interval.
            permission: what it may do: `"read"`, `"write"`, `"readwrite"`, or a `Permission`.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this; the empty prefix is every key.
            from_key: every key from this one on.
            all_keys: every key.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            InvalidRequestError: an argument cannot be right. Nothing was sent.
            RoleNotFoundError: there is no such role.
            InvalidAuthManagementError: the interval ends before it begins.
            EtcdError: as every call.
        """
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        kind = parse_word(Permission, permission, "permission")
        granted = pb.Permission(perm_type=_PERMISSION_TYPES[kind], key=keys.key, range_end=keys.range_end)
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
        """Take a permission from a role. The keys are those that it was granted for, and no others.

        Args:
            role: the role's name.
            key: as with `role_grant_permission`.
            range_end: as with `role_grant_permission`.
            prefix: as with `role_grant_permission`.
            from_key: as with `role_grant_permission`.
            all_keys: as with `role_grant_permission`.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            InvalidRequestError: an argument cannot be right. Nothing was sent.
            RoleNotFoundError: there is no such role.
            PermissionNotGrantedError: it has no permission for these very keys.
            EtcdError: as every call.
        """
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        request = pb.AuthRoleRevokePermissionRequest(role=_name(role, "role"), key=keys.key, range_end=keys.range_end)
        return await self._change(methods.ROLE_REVOKE_PERMISSION, request, timeout, retry)

    async def _change(
        self, method: Method[Request, _HeadedReply], request: Request, timeout: Timeout, retry: RetryMode | None
    ) -> AuthResult:
        reply = await self._invoker.unary(method, request, timeout=timeout, retry=retry)
        return replies.auth_result(reply.header)


def _name(name: str, what: str) -> str:
    """A name of a user or role, checked.

    Raises:
        InvalidRequestError: it is empty, or UTF-8 cannot encode it.
        TypeError: it is no str.
    """
    if not name and isinstance(name, str):
        raise InvalidRequestError(f"{what} is empty")
    return check_text(name, what)


def _password(password: str) -> str:
    """A password, checked. Errors never show it.

    Raises:
        InvalidRequestError: it is empty, or UTF-8 cannot encode it.
        TypeError: it is no str.
    """
    if not password and isinstance(password, str):
        raise InvalidRequestError("password is empty: a user without one is added with password=None")
    return check_text(password, "password")
