"""Auth, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.admin.auth`: do not edit.
"""

from typing import ClassVar

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.portal import Facade
from etcd_aio.types import (
    AuthenticateResult,
    AuthResult,
    AuthStatus,
    PermissionLike,
    Role,
    RoleListResult,
    User,
    UserListResult,
)


class Auth(Facade):
    """The authentication API: `client.auth`. All calls but `status` and `authenticate` need the role `root`.

        with Client(endpoints) as client:  # authentication is still off
            client.auth.role_add("app")
            client.auth.role_grant_permission("app", prefix="app/", permission="readwrite")
            client.auth.user_add("web", password)
            client.auth.user_grant_role("web", "app")
            client.auth.user_add("root", root_password)
            client.auth.user_grant_role("root", "root")  # a role that needs no adding
            client.auth.enable()
        with Client(endpoints, auth=("web", password)) as client:
            client.put("app/greeting", "hello")

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is applied at most once,
    unless `retry="always"`: if its error has `maybe_applied`, list the users and roles before trying again. A change
    that Ctrl-C interrupts may have been applied. Names and passwords must not be empty: `InvalidRequestError`, and
    nothing is sent.

    etcd refuses a call without a user (`UserEmptyError`), a wrong password (`AuthenticationFailedError`), and a user
    without the permission (`PermissionDeniedError`). A change of users or roles invalidates the tokens of JWT
    authentication; clients renew theirs automatically.
    """

    _survives_fork: ClassVar[bool] = True

    def enable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Enable authentication: from now on every call must carry the token of a user.

        Raises:
            RootUserNotExistError: there is no user `root`.
            RootRoleNotExistError: the user `root` does not have the role `root`.
        """
        return self._run(self._aio.enable, timeout=timeout, retry=retry)

    def disable(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Disable authentication: from now on every client may do everything. Users and roles are kept."""
        return self._run(self._aio.disable, timeout=timeout, retry=retry)

    def status(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthStatus:
        """Get whether authentication is enabled. While it is, servers before etcd 3.7 answer only to `root`.

        Returns:
            AuthStatus: true if authentication is enabled.
        """
        return self._run(self._aio.status, timeout=timeout, retry=retry)

    def authenticate(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthenticateResult:
        """Log in: get a token for a user. A client with `auth=` does this automatically.

        Returns:
            AuthenticateResult: `token` is for `Client(token=...)`, or for another client of etcd.

        Raises:
            AuthNotEnabledError: authentication is not enabled.
            AuthenticationFailedError: there is no such user, or the password is wrong, or the user has none.
        """
        return self._run(self._aio.authenticate, name, password, timeout=timeout, retry=retry)

    def user_add(
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
        return self._run(self._aio.user_add, name, password, timeout=timeout, retry=retry)

    def user_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> User:
        """Get a user with the user's roles. Users may get themselves.

        Raises:
            UserNotFoundError: there is no such user.
        """
        return self._run(self._aio.user_get, name, timeout=timeout, retry=retry)

    def user_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> UserListResult:
        """List the names of all users."""
        return self._run(self._aio.user_list, timeout=timeout, retry=retry)

    def user_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a user. The user's tokens become invalid.

        Raises:
            UserNotFoundError: there is no such user.
            InvalidAuthManagementError: the user is `root`, and authentication is enabled.
        """
        return self._run(self._aio.user_delete, name, timeout=timeout, retry=retry)

    def user_change_password(
        self, name: str, password: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user another password. The user's tokens become invalid.

        A client that has the old password is refused at its next call; make a client with the new one.

        Raises:
            UserNotFoundError: there is no such user.
        """
        return self._run(self._aio.user_change_password, name, password, timeout=timeout, retry=retry)

    def user_grant_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Give a user a role; no error if the user has it already. The role `root` may do everything.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotFoundError: there is no such role.
        """
        return self._run(self._aio.user_grant_role, name, role, timeout=timeout, retry=retry)

    def user_revoke_role(
        self, name: str, role: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> AuthResult:
        """Take a role from a user. Open watches continue until their stream has to be opened again.

        Raises:
            UserNotFoundError: there is no such user.
            RoleNotGrantedError: the user does not have the role.
            InvalidAuthManagementError: user and role are `root`, and authentication is enabled.
        """
        return self._run(self._aio.user_revoke_role, name, role, timeout=timeout, retry=retry)

    def role_add(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Add a role without permissions.

        Raises:
            RoleAlreadyExistsError: there is a role of this name.
        """
        return self._run(self._aio.role_add, name, timeout=timeout, retry=retry)

    def role_get(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Role:
        """Get a role with its permissions. Users may get their own roles.

        Raises:
            RoleNotFoundError: there is no such role.
        """
        return self._run(self._aio.role_get, name, timeout=timeout, retry=retry)

    def role_list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> RoleListResult:
        """List the names of all roles."""
        return self._run(self._aio.role_list, timeout=timeout, retry=retry)

    def role_delete(self, name: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AuthResult:
        """Delete a role, and take it from all users that have it.

        Raises:
            RoleNotFoundError: there is no such role.
            InvalidAuthManagementError: the role is `root`, and authentication is enabled.
        """
        return self._run(self._aio.role_delete, name, timeout=timeout, retry=retry)

    def role_grant_permission(
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
        return self._run(
            self._aio.role_grant_permission,
            role,
            key,
            permission=permission,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            timeout=timeout,
            retry=retry,
        )

    def role_revoke_permission(
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
        return self._run(
            self._aio.role_revoke_permission,
            role,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            timeout=timeout,
            retry=retry,
        )
