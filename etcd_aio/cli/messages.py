"""Results as etcd's replies: the message that a result was read from, and its fields. Pure."""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from etcd_aio import DeleteResult, Event, EventType, Header, KeyValue, PutResult, RangeResult, TxnResult, pb
from etcd_aio.cli.results import Done, MembersChanged, Watched
from etcd_aio.codec import fields_of
from etcd_aio.types import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    AuthStatus,
    DowngradeInfo,
    HashKVResult,
    KeyPermission,
    Member,
    MemberListResult,
    Permission,
    Role,
    RoleListResult,
    StatusResult,
    User,
    UserListResult,
)

_MESSAGES: Final[Mapping[type, type[pb.Message]]] = {
    ActiveAlarm: pb.AlarmMember,
    AlarmResult: pb.AlarmResponse,
    AuthStatus: pb.AuthStatusResponse,
    DeleteResult: pb.DeleteRangeResponse,
    Done: pb.LeaseRevokeResponse,  # a reply that is only a header
    DowngradeInfo: pb.DowngradeInfo,
    Event: pb.Event,
    HashKVResult: pb.HashKvResponse,
    Header: pb.ResponseHeader,
    KeyPermission: pb.Permission,
    KeyValue: pb.KeyValue,
    Member: pb.Member,
    MemberListResult: pb.MemberListResponse,
    MembersChanged: pb.MemberAddResponse,
    PutResult: pb.PutResponse,
    RangeResult: pb.RangeResponse,
    Role: pb.AuthRoleGetResponse,
    RoleListResult: pb.AuthRoleListResponse,
    StatusResult: pb.StatusResponse,
    TxnResult: pb.TxnResponse,
    User: pb.AuthUserGetResponse,
    UserListResult: pb.AuthUserListResponse,
    Watched: pb.WatchResponse,
}
_ATTRIBUTES: Final = {"perm": "permissions", "perm_type": "permission", "canceled": "is_canceled"}
_NO_HEADER: Final = Header()
_LEFT_OUT: Final = frozenset({"watch_id", "created", "cancel_reason", "fragment"})  # of a WatchResponse: always zero

NUMBERS: Final[Mapping[Enum, int]] = {
    EventType.PUT: pb.EventEventType.PUT,
    EventType.DELETE: pb.EventEventType.DELETE,
    Permission.READ: pb.PermissionType.READ,
    Permission.WRITE: pb.PermissionType.WRITE,
    Permission.READWRITE: pb.PermissionType.READWRITE,
    Alarm.NOSPACE: pb.AlarmType.NOSPACE,
    Alarm.CORRUPT: pb.AlarmType.CORRUPT,
}
"""The numbers of the enums."""

RESPONSES: Final[Mapping[type, str]] = {
    PutResult: "response_put",
    DeleteResult: "response_delete_range",
    RangeResult: "response_range",
    TxnResult: "response_txn",
}
"""The field that the result of an operation is in the reply of a txn."""


def is_message(value: object) -> bool:
    """Whether a value was read from a message."""
    return value.__class__ in _MESSAGES


def items_of(result: Any) -> Iterator[tuple[str, Any]]:
    """The fields of the message that a result was read from, in its order, each with the value that the result has."""
    for field, attribute in _fields(_MESSAGES[result.__class__]):
        value = getattr(result, attribute)
        # A header that is zero is of several replies, or of one without a header.
        if value is not None and not (value == _NO_HEADER and isinstance(result, Done | AlarmResult)):
            yield field, value


@cache
def _fields(message: type[pb.Message]) -> tuple[tuple[str, str], ...]:
    names = (field.name for field in fields_of(message).values() if field.name not in _LEFT_OUT)
    return tuple((name, _ATTRIBUTES.get(name, name)) for name in names)


def message_of(result: Any) -> pb.Message:
    """The message that a result was read from."""
    if isinstance(result, MembersChanged) and result.member is None:  # all these replies have the same fields
        result = MemberListResult(result.header, result.members)
    return _MESSAGES[result.__class__](**{field: _wire(field, value) for field, value in items_of(result)})


def _wire(field: str, value: Any) -> Any:
    match value:
        case tuple() if field == "responses":
            return [_response(one) for one in value]
        case tuple():
            return [_wire(field, one) for one in value]
        case Enum():
            return NUMBERS[value]
    return message_of(value) if is_message(value) else value


def _response(result: Any) -> pb.ResponseOp:
    found: dict[str, Any] = {RESPONSES[type(result)]: message_of(result)}
    return pb.ResponseOp(**found)
