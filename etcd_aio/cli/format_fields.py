"""The format `fields`: a line for each field, `"Name" : value`. Pure."""

from collections.abc import Iterable, Iterator

from etcd_aio import DeleteResult, Header, KeyValue, PutResult, RangeResult, TxnResult
from etcd_aio.cli.format_simple import lease_word
from etcd_aio.cli.go_text import quoted
from etcd_aio.cli.results import Done, HashReport, HealthReport, LeaseShown, Shown, StatusReport, Watched
from etcd_aio.cli.rows import verdict, word
from etcd_aio.cli.style import Style
from etcd_aio.errors import printable
from etcd_aio.types import (
    AlarmResult,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    MemberListResult,
    OpResult,
    Role,
    RoleListResult,
    SnapshotStatus,
    StatusResult,
)


def fields(result: Shown, style: Style) -> str | None:
    """The result as lines, one for each field; None if etcdctl has none for it."""
    lines = _lines(result, style)
    return None if lines is None else "".join(f"{line}\n" for line in lines)


def _lines(result: Shown, style: Style) -> Iterable[str] | None:
    match result:
        case PutResult() | DeleteResult() | RangeResult() | TxnResult():
            return _operation(result, style)
        case Watched():
            return _watched(result, style)
        case Done():
            return _header(result.header, style) if result.has_fields else None
        case LeaseGrantResult() | LeaseKeepAliveResult():
            return (*_header(result.header, style), _lease(result.id, style), f'"TTL" : {result.ttl}')
        case LeaseShown():
            return _lease_shown(result, style)
        case LeaseListResult():
            return (*_header(result.header, style), *(_lease(lease, style) for lease in result.ids))
        case MemberListResult():
            return _members(result, style)
        case HealthReport() | StatusReport() | HashReport():
            return _endpoints(result, style)
        case SnapshotStatus():
            return _file(result)
        case AlarmResult():
            return _alarms(result, style)
        case Role():
            return _role(result, style)
        case RoleListResult():
            return (*_header(result.header, style), '"Roles" :' + "".join(f" {quoted(name)}" for name in result.roles))
        case _:
            return None


def _id(number: int, style: Style) -> str:
    return f"{number:x}" if style.is_hex else f"{number}"


def _lease(lease: int, style: Style) -> str:
    return f'"ID" : {lease_word(lease) if style.is_hex else lease}'


def _header(header: Header, style: Style) -> Iterator[str]:
    yield f'"ClusterID" : {_id(header.cluster_id, style)}'
    yield f'"MemberID" : {_id(header.member_id, style)}'
    if header.revision > 0:
        yield f'"Revision" : {header.revision}'
    yield f'"RaftTerm" : {header.raft_term}'


def _kv(kv: KeyValue, style: Style, prefix: str = "") -> Iterator[str]:
    yield f'"{prefix}Key" : {quoted(kv.key)}'
    yield f'"{prefix}CreateRevision" : {kv.create_revision}'
    yield f'"{prefix}ModRevision" : {kv.mod_revision}'
    yield f'"{prefix}Version" : {kv.version}'
    yield f'"{prefix}Value" : {quoted(kv.value)}'
    yield f'"{prefix}Lease" : {lease_word(kv.lease) if style.is_hex else kv.lease}'


def _operation(result: OpResult, style: Style) -> Iterator[str]:
    match result:
        case PutResult():
            yield from _header(result.header, style)
            if result.prev_kv is not None:
                yield from _kv(result.prev_kv, style, "Prev")
        case DeleteResult():
            yield from _header(result.header, style)
            yield f'"Deleted" : {result.deleted}'
            for kv in result.prev_kvs:
                yield from _kv(kv, style, "Prev")
        case RangeResult():
            yield from _header(result.header, style)
            for kv in result.kvs:
                yield from _kv(kv, style)
            yield f'"More" : {word(result.more)}'
            yield f'"Count" : {result.count}'
        case TxnResult():
            yield from _header(result.header, style)
            yield f'"Succeeded" : {word(result.succeeded)}'
            for response in result.responses:
                yield from _operation(response, style)


def _watched(result: Watched, style: Style) -> Iterator[str]:
    yield from _header(result.header, style)
    for event in result.events:
        yield f'"Type" : {event.type.name}'
        if event.prev_kv is not None:
            yield from _kv(event.prev_kv, style, "Prev")
        yield from _kv(event.kv, style)


def _lease_shown(shown: LeaseShown, style: Style) -> Iterator[str]:
    lease = shown.result
    yield from _header(lease.header, style)
    yield _lease(lease.id, style)
    yield f'"TTL" : {lease.ttl}'
    yield f'"GrantedTTL" : {lease.granted_ttl}'
    for key in lease.keys:
        yield f'"Key" : {quoted(key)}'


def _members(result: MemberListResult, style: Style) -> Iterator[str]:
    yield from _header(result.header, style)
    for member in result.members:
        yield f'"ID" : {_id(member.id, style)}'
        yield f'"Name" : {quoted(member.name)}'
        yield from (f'"PeerURL" : {quoted(url)}' for url in member.peer_urls)
        yield from (f'"ClientURL" : {quoted(url)}' for url in member.client_urls)
        yield f'"IsLearner" : {word(member.is_learner)}'
        yield ""


def _endpoints(report: HealthReport | StatusReport | HashReport, style: Style) -> Iterator[str]:
    match report:
        case HealthReport():
            for row in report.rows:
                yield f'"Endpoint" : {quoted(row.endpoint)}'
                yield f'"Health" : {word(row.is_healthy)}'
                yield f'"Took" : {row.took}'
                yield f'"Error" : {printable(row.error)}'
                yield from (f'"{said.asked.capitalize()}" : {printable(verdict(said))}' for said in row.words)
                yield ""
        case StatusReport():
            for endpoint, status in report.rows:
                yield from _status(endpoint, status, style)
        case HashReport():
            for endpoint, result in report.rows:
                yield from _header(result.header, style)
                yield f'"Endpoint" : {quoted(endpoint)}'
                yield f'"Hash" : {result.hash}'
                yield f'"HashRevision" : {result.hash_revision}'
                yield ""


def _status(endpoint: str, status: StatusResult, style: Style) -> Iterator[str]:
    downgrade = status.downgrade_info
    yield from _header(status.header, style)
    yield f'"Version" : {quoted(status.version)}'
    yield f'"StorageVersion" : {quoted(status.storage_version)}'
    yield f'"DBSize" : {status.db_size}'
    yield f'"DBSizeInUse" : {status.db_size_in_use}'
    yield f'"DBSizeQuota" : {status.db_size_quota}'
    yield f'"Leader" : {status.leader}'
    yield f'"IsLearner" : {word(status.is_learner)}'
    yield f'"RaftIndex" : {status.raft_index}'
    yield f'"RaftAppliedIndex" : {status.raft_applied_index}'
    yield f'"Errors" : [{printable(" ".join(status.errors))}]'
    yield f'"Endpoint" : {quoted(endpoint)}'
    yield f'"DowngradeTargetVersion" : {quoted("" if downgrade is None else downgrade.target_version)}'
    yield f'"DowngradeEnabled" : {word(downgrade is not None and downgrade.enabled)}'
    yield ""


def _file(status: SnapshotStatus) -> Iterator[str]:
    yield f'"Hash" : {status.hash}'
    yield f'"Revision" : {status.revision}'
    yield f'"Keys" : {status.total_keys}'
    yield f'"Size" : {status.total_size}'
    yield f'"Version" : {status.version}'


def _alarms(result: AlarmResult, style: Style) -> Iterator[str]:
    yield from _header(result.header, style)
    for one in result.alarms:
        yield f'"MemberID" : {_id(one.member_id, style)}'
        yield f'"AlarmType" : {one.alarm.name}'
        yield ""


def _role(role: Role, style: Style) -> Iterator[str]:
    yield from _header(role.header, style)
    for one in role.permissions:
        yield f'"PermType" :  {one.permission.name}'
        yield f'"Key" : {quoted(one.key)}'
        yield f'"RangeEnd" : {quoted(one.range_end)}'
