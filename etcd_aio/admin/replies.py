"""Results of the calls on authentication and alarms, made from their replies."""

from collections.abc import Mapping
from typing import Final

from etcd_aio.codec import header_of
from etcd_aio.errors import MalformedReplyError
from etcd_aio.pb import (
    AlarmResponse,
    AlarmType,
    AuthenticateResponse,
    AuthRoleGetResponse,
    AuthRoleListResponse,
    AuthStatusResponse,
    AuthUserGetResponse,
    AuthUserListResponse,
    PermissionType,
    ResponseHeader,
)
from etcd_aio.types import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    AuthenticateResult,
    AuthResult,
    AuthStatus,
    KeyPermission,
    Permission,
    Role,
    RoleListResult,
    User,
    UserListResult,
)

_PERMISSIONS: Final[Mapping[int, Permission]] = {
    PermissionType.READ: Permission.READ,
    PermissionType.WRITE: Permission.WRITE,
    PermissionType.READWRITE: Permission.READWRITE,
}
_ALARMS: Final[Mapping[int, Alarm]] = {AlarmType.NOSPACE: Alarm.NOSPACE, AlarmType.CORRUPT: Alarm.CORRUPT}


def auth_result(header: ResponseHeader | None) -> AuthResult:
    """What an answer says that has nothing but a header."""
    return AuthResult(header_of(header))


def auth_status(reply: AuthStatusResponse) -> AuthStatus:
    """Whether authentication is enabled."""
    return AuthStatus(header_of(reply.header), reply.enabled, reply.auth_revision)


def authenticate_result(reply: AuthenticateResponse) -> AuthenticateResult:
    """The token of a login."""
    return AuthenticateResult(header_of(reply.header), reply.token)


def user(name: str, reply: AuthUserGetResponse) -> User:
    """A user; the reply does not repeat the name."""
    return User(header_of(reply.header), name, tuple(reply.roles))


def user_list(reply: AuthUserListResponse) -> UserListResult:
    """The names of all users."""
    return UserListResult(header_of(reply.header), tuple(reply.users))


def role(name: str, reply: AuthRoleGetResponse) -> Role:
    """A role; the reply does not repeat the name.

    Raises:
        MalformedReplyError: a permission is of a kind that this client does not know.
    """
    for one in reply.perm:
        if one.perm_type not in _PERMISSIONS:
            raise MalformedReplyError(f"role {name!r} has a permission of kind {int(one.perm_type)}, which is unknown")
    permissions = tuple(KeyPermission(_PERMISSIONS[one.perm_type], one.key, one.range_end) for one in reply.perm)
    return Role(header_of(reply.header), name, permissions)


def role_list(reply: AuthRoleListResponse) -> RoleListResult:
    """The names of all roles."""
    return RoleListResult(header_of(reply.header), tuple(reply.roles))


def alarm_result(reply: AlarmResponse) -> AlarmResult:
    """The alarms of a reply.

    Raises:
        MalformedReplyError: an alarm is of a kind that this client does not know. To leave it out would be to say that
            all is well.
    """
    for one in reply.alarms:
        if one.alarm not in _ALARMS:
            raise MalformedReplyError(f"member {one.member_id:x} has raised alarm {int(one.alarm)}, which is unknown")
    alarms = tuple(ActiveAlarm(one.member_id, _ALARMS[one.alarm]) for one in reply.alarms)
    return AlarmResult(header_of(reply.header), alarms)
