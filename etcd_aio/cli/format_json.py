"""The format `json`: the JSON of etcdctl byte for byte. Pure.

Numbers are bare, bytes are base64, and fields that are zero are absent, as in the structs of Go.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from etcd_aio import DeleteResult, Event, Header, KeyValue, PutResult, RangeResult, TxnResult
from etcd_aio.cli.results import (
    ClusterHealth,
    Done,
    HashReport,
    HealthReport,
    LeaseShown,
    MembersChanged,
    Shown,
    StatusReport,
    Style,
    Watched,
)
from etcd_aio.types import (
    Alarm,
    AlarmResult,
    AuthStatus,
    HashKVResult,
    KeyPermission,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    Member,
    MemberListResult,
    OpResult,
    Permission,
    Role,
    RoleListResult,
    StatusResult,
    User,
    UserListResult,
)

Json: TypeAlias = bool | int | str | Sequence["Json"] | Mapping[str, "Json"] | None

_PERMISSIONS: Final = {Permission.READ: 0, Permission.WRITE: 1, Permission.READWRITE: 2}
_ALARMS: Final = {Alarm.NOSPACE: 1, Alarm.CORRUPT: 2}
# Go escapes the first within strings, so that the text may stand in HTML. A terminal may obey the rest.
_ESCAPED: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\u2028", "\u2029", *map(chr, range(0x7F, 0xA0)))}
)


def as_json(result: Shown, style: Style) -> str | None:
    """The result as one line of JSON; None if it has none."""
    text = json.dumps(_value(result, style), ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPED) + "\n"


def _value(result: Shown, style: Style) -> Json:
    match result:
        case PutResult() | DeleteResult() | RangeResult() | TxnResult():
            return _operation(result)
        case Watched():
            return _watched(result)
        case MemberListResult() | MembersChanged():
            return _members(result, style)
        case HealthReport() | StatusReport() | HashReport():
            return _endpoints(result)
        case ClusterHealth():
            return {"healthy": result.is_healthy, "endpoints": _endpoints(HealthReport(result.endpoints))}
        case LeaseGrantResult() | LeaseKeepAliveResult() | LeaseShown() | LeaseListResult():
            return _lease(result)
        case Done() | AlarmResult() | User() | UserListResult() | Role() | RoleListResult() | AuthStatus():
            return _some(header=_header(result.header) or None, **_admin(result))


def _some(**fields: Json) -> dict[str, Json]:
    """The fields that are not zero."""
    return {name: value for name, value in fields.items() if value or isinstance(value, Mapping)}


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _header(header: Header) -> dict[str, Json]:
    return _some(
        cluster_id=header.cluster_id,
        member_id=header.member_id,
        revision=header.revision,
        raft_term=header.raft_term,
    )


def _kv(kv: KeyValue | None) -> Json:
    if kv is None:
        return None
    return _some(
        key=_base64(kv.key),
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        value=_base64(kv.value),
        lease=kv.lease,
    )


def _operation(result: OpResult) -> Json:
    match result:
        case PutResult():
            return _some(header=_header(result.header), prev_kv=_kv(result.prev_kv))
        case DeleteResult():
            kvs = [_kv(kv) for kv in result.prev_kvs]
            return _some(header=_header(result.header), deleted=result.deleted, prev_kvs=kvs)
        case RangeResult():
            kvs = [_kv(kv) for kv in result.kvs]
            return _some(header=_header(result.header), kvs=kvs, more=result.more, count=result.count)
        case TxnResult():
            responses = [{"Response": {_name(one): _operation(one)}} for one in result.responses]
            return _some(header=_header(result.header), succeeded=result.succeeded, responses=responses)
        case KeyValue() | None:
            return _kv(result)


def _name(result: OpResult) -> str:
    match result:
        case PutResult():
            return "response_put"
        case DeleteResult():
            return "response_delete_range"
        case TxnResult():
            return "response_txn"
        case _:
            return "response_range"


def _watched(result: Watched) -> Json:
    return {
        "Header": _header(result.header),
        "Events": None if result.is_canceled else [_event(event) for event in result.events],
        "CompactRevision": result.compact_revision,
        "Canceled": result.is_canceled,
        "Created": False,
        "CancelReason": "",
    }


def _event(event: Event) -> Json:
    return _some(type=int(event.is_delete), kv=_kv(event.kv), prev_kv=_kv(event.prev_kv))


def _lease(result: LeaseGrantResult | LeaseKeepAliveResult | LeaseShown | LeaseListResult) -> Json:
    match result:
        case LeaseGrantResult():
            return {**_header(result.header), "ID": result.id, "TTL": result.ttl, "Error": ""}
        case LeaseKeepAliveResult():
            return {**_header(result.header), "ID": result.id, "TTL": result.ttl}
        case LeaseListResult():
            return {**_header(result.header), "leases": [{"id": lease} for lease in result.ids]}
        case LeaseShown(result=lease):
            keys = [_base64(key) for key in lease.keys] or None
            numbers = {"id": lease.id, "ttl": lease.ttl, "granted-ttl": lease.granted_ttl}
            return {**_header(lease.header), **numbers, "keys": keys}


def _members(result: MemberListResult | MembersChanged, style: Style) -> Json:
    header: dict[str, Json] = _header(result.header)
    added = result.member if isinstance(result, MembersChanged) else None
    if style.is_hex:
        header |= {"cluster_id": f"{result.header.cluster_id:x}", "member_id": f"{result.header.member_id:x}"}
    members = [_member(member, style) for member in result.members]
    return _some(header=header, member=None if added is None else _member(added, style), members=members)


def _member(member: Member, style: Style) -> Json:
    return _some(
        ID=f"{member.id:x}" if style.is_hex else member.id,
        name=member.name,
        peerURLs=member.peer_urls,
        clientURLs=member.client_urls,
        isLearner=member.is_learner,
    )


def _endpoints(report: HealthReport | StatusReport | HashReport) -> Json:
    match report:
        case HealthReport():
            return [
                {"endpoint": row.endpoint, "health": row.is_healthy, "took": row.took, **_some(error=row.error)}
                for row in report.rows
            ] or None
        case StatusReport():
            return [{"Endpoint": endpoint, "Status": _status(status)} for endpoint, status in report.rows] or None
        case HashReport():
            return [{"Endpoint": endpoint, "HashKV": _hash(result)} for endpoint, result in report.rows] or None


def _status(status: StatusResult) -> Json:
    downgrade = status.downgrade_info
    return _some(
        header=_header(status.header),
        version=status.version,
        dbSize=status.db_size,
        leader=status.leader,
        raftIndex=status.raft_index,
        raftTerm=status.raft_term,
        raftAppliedIndex=status.raft_applied_index,
        errors=status.errors,
        dbSizeInUse=status.db_size_in_use,
        isLearner=status.is_learner,
        storageVersion=status.storage_version,
        dbSizeQuota=status.db_size_quota,
        downgradeInfo=None
        if downgrade is None
        else _some(enabled=downgrade.enabled, targetVersion=downgrade.target_version),
    )


def _hash(result: HashKVResult) -> Json:
    return _some(
        header=_header(result.header),
        hash=result.hash,
        compact_revision=result.compact_revision,
        hash_revision=result.hash_revision,
    )


def _admin(result: Done | AlarmResult | User | UserListResult | Role | RoleListResult | AuthStatus) -> dict[str, Json]:
    match result:
        case Done():
            return {}
        case AlarmResult():
            return {"alarms": [_some(memberID=one.member_id, alarm=_ALARMS[one.alarm]) for one in result.alarms]}
        case User() | RoleListResult():
            return {"roles": result.roles}
        case UserListResult():
            return {"users": result.users}
        case Role():
            return {"perm": [_permission(one) for one in result.permissions]}
        case AuthStatus():
            return {"enabled": result.enabled, "authRevision": result.auth_revision}


def _permission(one: KeyPermission) -> Json:
    kind, key, end = _PERMISSIONS[one.permission], _base64(one.key), _base64(one.range_end)
    return _some(permType=kind, key=key, range_end=end)
