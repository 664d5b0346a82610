"""Errors of authentication: passwords, tokens, users, roles and permissions.

etcd checks permissions before it proposes a request, or rejects it on every member alike: all of these are definite.
"""

from etcd_aio.errors.attempt import RetryHint
from etcd_aio.errors.families import AuthError, FailedPreconditionError, InvalidArgumentError, UnauthenticatedError


class AuthenticationFailedError(AuthError, InvalidArgumentError):
    """Unknown user, wrong password, or a user without a password."""

    default_message = "etcdserver: authentication failed, invalid user ID or password"


class InvalidTokenError(UnauthenticatedError):
    """The token is unknown to this member, or has expired."""

    default_message = "etcdserver: invalid auth token"


class AuthOldRevisionError(AuthError, InvalidArgumentError):
    """The token is older than the last change of users or roles."""

    default_message = "etcdserver: revision of auth store is old"
    retry_hint = RetryHint.REFRESH_TOKEN


class UserEmptyError(AuthError, InvalidArgumentError):
    """The call has no token, and the cluster requires one; or a user to add has no name."""

    default_message = "etcdserver: user name is empty"
    retry_hint = RetryHint.REFRESH_TOKEN


class AuthNotEnabledError(AuthError, FailedPreconditionError):
    """Authentication is not enabled on the cluster."""

    default_message = "etcdserver: authentication is not enabled"
    is_definite = True


class InvalidAuthManagementError(AuthError, InvalidArgumentError):
    """The user or role `root` cannot be removed while authentication is enabled; or a permission's range is invalid."""

    default_message = "etcdserver: invalid auth management"


class RootUserNotExistError(AuthError, FailedPreconditionError):
    """Authentication cannot be enabled without the user `root`."""

    default_message = "etcdserver: root user does not exist"
    is_definite = True


class RootRoleNotExistError(AuthError, FailedPreconditionError):
    """Authentication cannot be enabled before the user `root` has the role `root`."""

    default_message = "etcdserver: root user does not have root role"
    is_definite = True


class UserAlreadyExistsError(AuthError, FailedPreconditionError):
    """A user with this name already exists."""

    default_message = "etcdserver: user name already exists"
    is_definite = True


class UserNotFoundError(AuthError, FailedPreconditionError, LookupError):
    """No user has this name."""

    default_message = "etcdserver: user name not found"
    is_definite = True


class RoleAlreadyExistsError(AuthError, FailedPreconditionError):
    """A role with this name already exists."""

    default_message = "etcdserver: role name already exists"
    is_definite = True


class RoleNotFoundError(AuthError, FailedPreconditionError, LookupError):
    """No role has this name."""

    default_message = "etcdserver: role name not found"
    is_definite = True


class RoleEmptyError(AuthError, InvalidArgumentError):
    """The role name is empty."""

    default_message = "etcdserver: role name is empty"


class RoleNotGrantedError(AuthError, FailedPreconditionError):
    """The user does not have the role to revoke."""

    default_message = "etcdserver: role is not granted to the user"
    is_definite = True


class PermissionNotGivenError(AuthError, InvalidArgumentError):
    """The request to grant a permission contains none."""

    default_message = "etcdserver: permission not given"


class PermissionNotGrantedError(AuthError, FailedPreconditionError):
    """The role does not have the permission to revoke."""

    default_message = "etcdserver: permission is not granted to the role"
    is_definite = True
