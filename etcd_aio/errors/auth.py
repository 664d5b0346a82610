"""Errors about authentication: passwords, tokens, users, roles and permissions.

Knows: etcd's text for each, and what it proves. Never knows: credentials, or how an answer finds its class
(`table.py`). etcd checks permissions before it proposes, or refuses on every member alike when it applies: all of these
are definite.
"""

from etcd_aio.errors.families import AuthError, FailedPreconditionError, InvalidArgumentError, UnauthenticatedError
from etcd_aio.errors.retry_hint import RetryHint


class AuthenticationFailedError(AuthError, InvalidArgumentError):
    """The user does not exist, the password is wrong, or the user has none."""

    default_message = "etcdserver: authentication failed, invalid user ID or password"


class InvalidTokenError(UnauthenticatedError):
    """The token is not one that this member knows, or has expired."""

    default_message = "etcdserver: invalid auth token"


class AuthOldRevisionError(AuthError, InvalidArgumentError):
    """The token is older than the last change of users or roles."""

    default_message = "etcdserver: revision of auth store is old"
    retry_hint = RetryHint.REFRESH_TOKEN


class UserEmptyError(AuthError, InvalidArgumentError):
    """The call carries no token though the cluster wants one; or a user without a name was to be added."""

    default_message = "etcdserver: user name is empty"
    retry_hint = RetryHint.REFRESH_TOKEN


class AuthNotEnabledError(AuthError, FailedPreconditionError):
    """Authentication is not enabled, so there is nothing to log in to."""

    default_message = "etcdserver: authentication is not enabled"
    is_definite = True


class InvalidAuthManagementError(AuthError, InvalidArgumentError):
    """The user or role `root` must stay while authentication is enabled; or the range of a permission is no range."""

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
    """A user of this name exists already."""

    default_message = "etcdserver: user name already exists"
    is_definite = True


class UserNotFoundError(AuthError, FailedPreconditionError, LookupError):
    """No user has this name."""

    default_message = "etcdserver: user name not found"
    is_definite = True


class RoleAlreadyExistsError(AuthError, FailedPreconditionError):
    """A role of this name exists already."""

    default_message = "etcdserver: role name already exists"
    is_definite = True


class RoleNotFoundError(AuthError, FailedPreconditionError, LookupError):
    """No role has this name."""

    default_message = "etcdserver: role name not found"
    is_definite = True


class RoleEmptyError(AuthError, InvalidArgumentError):
    """The role's name is empty."""

    default_message = "etcdserver: role name is empty"


class RoleNotGrantedError(AuthError, FailedPreconditionError):
    """The user does not have the role that was to be taken away."""

    default_message = "etcdserver: role is not granted to the user"
    is_definite = True


class PermissionNotGivenError(AuthError, InvalidArgumentError):
    """A permission was to be granted, but the request holds none."""

    default_message = "etcdserver: permission not given"


class PermissionNotGrantedError(AuthError, FailedPreconditionError):
    """The role does not have the permission that was to be taken away."""

    default_message = "etcdserver: permission is not granted to the role"
    is_definite = True
