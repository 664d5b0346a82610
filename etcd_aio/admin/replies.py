"""Replies that have enums of etcd, made into results."""

from collections.abc import Mapping
from typing import Final

from etcd_aio import pb
from etcd_aio.codec import header_of
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import ActiveAlarm, Alarm, AlarmResult, KeyPermission, Permission, Role

PERMISSION_TYPES: Final[Mapping[Permission, pb.PermissionType]] = {
    kind: pb.PermissionType[kind.name] for kind in Permission
}
ALARM_TYPES: Final[Mapping[Alarm, pb.AlarmType]] = {kind: pb.AlarmType[kind.name] for kind in Alarm}
_PERMISSIONS: Final[Mapping[int, Permission]] = {sent: kind for kind, sent in PERMISSION_TYPES.items()}
_ALARMS: Final[Mapping[int, Alarm]] = {sent: kind for kind, sent in ALARM_TYPES.items()}


def role_result(name: str, reply: "pb.AuthRoleGetResponse") -> Role:
    """Make a role of its reply, which does not repeat the name.

    Raises:
        MalformedReplyError: a permission is of a kind that this client does not know.
    """
    for sent in reply.perm:
        if sent.perm_type not in _PERMISSIONS:
            raise MalformedReplyError(f"role {name!r} has a permission of kind {int(sent.perm_type)}, which is unknown")
    permissions = tuple(KeyPermission(_PERMISSIONS[sent.perm_type], sent.key, sent.range_end) for sent in reply.perm)
    return Role(header_of(reply.header), name, permissions)


def alarm_result(reply: "pb.AlarmResponse") -> AlarmResult:
    """Make the result of a reply to an alarm request.

    Raises:
        MalformedReplyError: an alarm is of a kind that this client does not know. Leaving it out would hide it.
    """
    for sent in reply.alarms:
        if sent.alarm not in _ALARMS:
            raise MalformedReplyError(f"member {sent.member_id:x} has raised alarm {int(sent.alarm)}, which is unknown")
    alarms = tuple(ActiveAlarm(sent.member_id, _ALARMS[sent.alarm]) for sent in reply.alarms)
    return AlarmResult(header_of(reply.header), alarms)
