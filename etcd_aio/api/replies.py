"""Replies: what an answer means to the one who asked.

Knows: which operation a result answers. Never knows: bytes; the codec reads nearly all replies into results by itself.
"""

from collections.abc import Mapping
from typing import Final

from etcd_aio.api.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.auth_results import (
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
from etcd_aio.cluster_results import ActiveAlarm, Alarm, AlarmResult
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
    LeaseGrantResponse,
    PermissionType,
    ResponseHeader,
)
from etcd_aio.results import (
    DeleteResult,
    Header,
    KeyValue,
    LeaseGrantResult,
    OpResult,
    PutResult,
    RangeResult,
    TxnResult,
)

_NO_HEADER: Final = Header()
_PERMISSIONS: Final[Mapping[int, Permission]] = {
    PermissionType.READ: Permission.READ,
    PermissionType.WRITE: Permission.WRITE,
    PermissionType.READWRITE: Permission.READWRITE,
}
_ALARMS: Final[Mapping[int, Alarm]] = {AlarmType.NOSPACE: Alarm.NOSPACE, AlarmType.CORRUPT: Alarm.CORRUPT}


def get_result(reply: RangeResult) -> KeyValue | None:
    """The result of a get: the key-value, or None if there is no such key."""
    return reply.kvs[0] if reply.kvs else None


def txn_result(reply: TxnResult, txn: TxnOp, outer: Header = _NO_HEADER) -> TxnResult:
    """The result of a txn.

    Args:
        reply: what etcd answered.
        txn: what it was asked: it tells a get from a range, which are one message to etcd.
        outer: the header of the txn around this one. etcd gives a nested txn no revision: it is that of the outer.

    Raises:
        MalformedReplyError: the reply does not answer this txn.
    """
    own = reply.header if reply.header.revision else outer
    asked = txn.then if reply.succeeded else txn.otherwise
    if not asked:
        return TxnResult(reply.succeeded, own)
    if len(reply.responses) != len(asked):
        raise MalformedReplyError(f"a txn of {len(asked)} operations was answered by {len(reply.responses)} responses")
    responses = tuple(_op_result(one, operation, own) for one, operation in zip(reply.responses, asked, strict=True))
    return TxnResult(reply.succeeded, own, responses, asked)


def lease_grant_result(reply: LeaseGrantResponse) -> LeaseGrantResult:
    """The result of a grant. The message has an `error` besides, which etcd never fills."""
    return LeaseGrantResult(_header(reply.header), reply.id, reply.ttl)


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
    return AlarmResult(_header(reply.header), alarms)


def auth_result(header: ResponseHeader | None) -> AuthResult:
    """What an answer says that has nothing but a header."""
    return AuthResult(_header(header))


def auth_status(reply: AuthStatusResponse) -> AuthStatus:
    """Whether authentication is enabled."""
    return AuthStatus(_header(reply.header), reply.enabled, reply.auth_revision)


def authenticate_result(reply: AuthenticateResponse) -> AuthenticateResult:
    """The token of a login."""
    return AuthenticateResult(_header(reply.header), reply.token)


def user(name: str, reply: AuthUserGetResponse) -> User:
    """A user; the reply does not repeat the name."""
    return User(_header(reply.header), name, tuple(reply.roles))


def user_list(reply: AuthUserListResponse) -> UserListResult:
    """The names of all users."""
    return UserListResult(_header(reply.header), tuple(reply.users))


def role(name: str, reply: AuthRoleGetResponse) -> Role:
    """A role; the reply does not repeat the name.

    Raises:
        MalformedReplyError: a permission is of a kind that this client does not know.
    """
    for one in reply.perm:
        if one.perm_type not in _PERMISSIONS:
            raise MalformedReplyError(f"role {name!r} has a permission of kind {int(one.perm_type)}, which is unknown")
    permissions = tuple(KeyPermission(_PERMISSIONS[one.perm_type], one.key, one.range_end) for one in reply.perm)
    return Role(_header(reply.header), name, permissions)


def role_list(reply: AuthRoleListResponse) -> RoleListResult:
    """The names of all roles."""
    return RoleListResult(_header(reply.header), tuple(reply.roles))


def _header(sent: ResponseHeader | None) -> Header:
    found = sent or ResponseHeader()
    return Header(found.cluster_id, found.member_id, found.revision, found.raft_term)


def _op_result(reply: OpResult, operation: Op, outer: Header) -> OpResult:
    match operation, reply:
        case (PutOp(), PutResult()) | (RangeOp(), RangeResult()) | (DeleteOp(), DeleteResult()):
            return reply
        case GetOp(), RangeResult():
            return get_result(reply)
        case TxnOp(), TxnResult():
            return txn_result(reply, operation, outer)
        case _:
            raise MalformedReplyError(f"the response to a {type(operation).__name__} is of another kind")
