"""The format `protobuf`: the bytes of etcd's reply, as text that is printed as these bytes. Pure."""

from typing import Final

from etcd_aio import DeleteResult, Event, Header, KeyValue, PutResult, RangeResult, TxnResult, pb
from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.results import Done, MembersChanged, Shown, Style, Watched
from etcd_aio.types import (
    Alarm,
    AlarmResult,
    AuthStatus,
    KeyPermission,
    Member,
    MemberListResult,
    OpResult,
    Permission,
    Role,
    RoleListResult,
    User,
    UserListResult,
)

_PERMISSIONS: Final = {
    Permission.READ: pb.PermissionType.READ,
    Permission.WRITE: pb.PermissionType.WRITE,
    Permission.READWRITE: pb.PermissionType.READWRITE,
}
_ALARMS: Final = {Alarm.NOSPACE: pb.AlarmType.NOSPACE, Alarm.CORRUPT: pb.AlarmType.CORRUPT}


def protobuf(result: Shown, style: Style) -> str | None:
    """The message of the result; None if etcdctl has none for it."""
    message = _message(result)
    return None if message is None else as_text(bytes(message))


def _message(result: Shown) -> pb.Message | None:
    match result:
        case PutResult():
            return _put(result)
        case DeleteResult():
            return _delete(result)
        case RangeResult():
            return _range(result)
        case TxnResult():
            return _txn(result)
        case Watched():
            return pb.WatchResponse(
                header=_header(result.header),
                events=[_event(event) for event in result.events],
                canceled=result.is_canceled,
                compact_revision=result.compact_revision,
            )
        case MemberListResult():
            return pb.MemberListResponse(header=_header(result.header), members=[_member(one) for one in result])
        case MembersChanged():
            return _members(result)
        case _:
            return _admin(result)


def _header(header: Header) -> pb.ResponseHeader:
    return pb.ResponseHeader(
        cluster_id=header.cluster_id,
        member_id=header.member_id,
        revision=header.revision,
        raft_term=header.raft_term,
    )


def _kv(kv: KeyValue) -> pb.KeyValue:
    return pb.KeyValue(
        key=kv.key,
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        value=kv.value,
        lease=kv.lease,
    )


def _put(result: PutResult) -> pb.PutResponse:
    before = None if result.prev_kv is None else _kv(result.prev_kv)
    return pb.PutResponse(header=_header(result.header), prev_kv=before)


def _delete(result: DeleteResult) -> pb.DeleteRangeResponse:
    before = [_kv(kv) for kv in result.prev_kvs]
    return pb.DeleteRangeResponse(header=_header(result.header), deleted=result.deleted, prev_kvs=before)


def _range(result: RangeResult) -> pb.RangeResponse:
    kvs = [_kv(kv) for kv in result.kvs]
    return pb.RangeResponse(header=_header(result.header), kvs=kvs, more=result.more, count=result.count)


def _txn(result: TxnResult) -> pb.TxnResponse:
    responses = [_response(one) for one in result.responses]
    return pb.TxnResponse(header=_header(result.header), succeeded=result.succeeded, responses=responses)


def _response(result: OpResult) -> pb.ResponseOp:
    match result:
        case PutResult():
            return pb.ResponseOp(response_put=_put(result))
        case DeleteResult():
            return pb.ResponseOp(response_delete_range=_delete(result))
        case RangeResult():
            return pb.ResponseOp(response_range=_range(result))
        case TxnResult():
            return pb.ResponseOp(response_txn=_txn(result))
        case _:
            return pb.ResponseOp()


def _event(event: Event) -> pb.Event:
    return pb.Event(
        type=pb.EventEventType.DELETE if event.is_delete else pb.EventEventType.PUT,
        kv=_kv(event.kv),
        prev_kv=None if event.prev_kv is None else _kv(event.prev_kv),
    )


def _member(member: Member) -> pb.Member:
    return pb.Member(
        id=member.id,
        name=member.name,
        peer_urls=list(member.peer_urls),
        client_urls=list(member.client_urls),
        is_learner=member.is_learner,
    )


def _members(result: MembersChanged) -> pb.Message:
    header, members = _header(result.header), [_member(one) for one in result.members]
    if result.member is None:  # all these replies have the same fields
        return pb.MemberListResponse(header=header, members=members)
    return pb.MemberAddResponse(header=header, member=_member(result.member), members=members)


def _admin(result: Shown) -> pb.Message | None:
    match result:
        case Done():  # a reply that is only a header
            return pb.LeaseRevokeResponse(header=_header(result.header))
        case AlarmResult():
            alarms = [pb.AlarmMember(member_id=one.member_id, alarm=_ALARMS[one.alarm]) for one in result.alarms]
            header = None if result.header == Header() else _header(result.header)
            return pb.AlarmResponse(header=header, alarms=alarms)
        case User():
            return pb.AuthUserGetResponse(header=_header(result.header), roles=list(result.roles))
        case UserListResult():
            return pb.AuthUserListResponse(header=_header(result.header), users=list(result.users))
        case RoleListResult():
            return pb.AuthRoleListResponse(header=_header(result.header), roles=list(result.roles))
        case Role():
            permissions = [_permission(one) for one in result.permissions]
            return pb.AuthRoleGetResponse(header=_header(result.header), perm=permissions)
        case AuthStatus():
            revision = result.auth_revision
            return pb.AuthStatusResponse(header=_header(result.header), enabled=result.enabled, auth_revision=revision)
        case _:  # of leases, etcdctl has no messages
            return None


def _permission(one: KeyPermission) -> pb.Permission:
    return pb.Permission(perm_type=_PERMISSIONS[one.permission], key=one.key, range_end=one.range_end)
