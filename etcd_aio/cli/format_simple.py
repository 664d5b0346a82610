"""The format `simple`: for people, and for scripts that read lines. Pure."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from etcd_aio import DeleteResult, KeyValue, PutResult, RangeResult, TxnResult, types
from etcd_aio.cli.go_text import as_text, hex_bytes
from etcd_aio.cli.style import Style
from etcd_aio.errors import printable

if TYPE_CHECKING:
    from etcd_aio.cli import results

_64_BITS = 2**64 - 1


def simple(result: "results.Shown", style: Style) -> str | None:
    """The result as lines; None if it has none."""
    return "".join(f"{line}\n" for line in _lines(result, style))


def lease_word(lease: int) -> str:
    """The id of a lease, as etcdctl prints it."""
    return f"{lease & _64_BITS:016x}" if lease >= 0 else f"-{-lease:015x}"


def _lines(result: "results.Shown", style: Style) -> Iterable[str]:
    if isinstance(result, PutResult | DeleteResult | RangeResult | TxnResult):
        return _operation(result, style)
    from etcd_aio.cli import results, rows  # a get needs none of them

    match result:
        case results.Watched():
            return _watched(result, style)
        case results.Done():
            return (printable(result.text),)
        case results.MembersChanged():  # some lines, in which names are quoted
            return (result.text,)
        case types.LeaseGrantResult():
            return (f"lease {lease_word(result.id)} granted with TTL({result.ttl}s)",)
        case types.LeaseKeepAliveResult():
            return (f"lease {lease_word(result.id)} keepalived with TTL({result.ttl})",)
        case results.LeaseShown():
            return (_lease(result),)
        case types.LeaseListResult():
            ids = result.ids
            return (f"found {len(ids)} leases", *map(lease_word, ids))
        case types.MemberListResult():
            return (", ".join(row) for row in rows.member_rows(result.members))
        case results.HealthReport():
            return _healths(result.rows)
        case results.ClusterHealth():
            return (_health(result), *(line for row in result.endpoints for line in rows.check_lines(row)))
        case results.StatusReport():
            return (", ".join(row) for row in rows.status_rows(result))
        case results.HashReport():
            return (", ".join(row) for row in rows.hash_rows(result))
        case types.SnapshotStatus():
            return (", ".join(rows.file_row(result)),)
        case types.AlarmResult():
            return (f"memberID:{one.member_id} alarm:{one.alarm.name}" for one in result.alarms)
        case types.UserListResult():
            return map(printable, result.users)
        case types.RoleListResult():
            return map(printable, result.roles)
        case types.User():
            return (printable(f"User: {result.name}"), printable(" ".join(("Roles:", *result.roles))))
        case types.Role():
            return _role(result)
        case types.AuthStatus():
            return (f"Authentication Status: {rows.word(result.enabled)}", f"AuthRevision: {result.auth_revision}")


def _operation(result: "types.OpResult", style: Style) -> Iterator[str]:
    match result:
        case PutResult():
            yield "OK"
            if result.prev_kv is not None:
                yield from _kv(result.prev_kv, style)
        case DeleteResult():
            yield f"{result.deleted}"
            for kv in result.prev_kvs:
                yield from _kv(kv, style)
        case RangeResult():
            for kv in result.kvs:
                yield from _kv(kv, style)
        case TxnResult():
            yield "SUCCESS" if result.succeeded else "FAILURE"
            for response in result.responses:
                yield ""
                yield from _operation(response, style)


def _kv(kv: KeyValue, style: Style) -> Iterator[str]:
    show = hex_bytes if style.is_hex else as_text
    if not style.value_only:
        yield show(kv.key)
    if style.decodes and kv.value:
        from etcd_aio.cli.kubernetes import value_lines  # few commands decode

        yield from value_lines(kv.value, value_only=style.value_only)
    else:
        yield show(kv.value)


def _watched(result: "results.Watched", style: Style) -> Iterator[str]:
    for event in result.events:
        yield event.type.name
        if event.prev_kv is not None:
            yield from _kv(event.prev_kv, style)
        yield from _kv(event.kv, style)


def _healths(found: Iterable["results.EndpointHealth"]) -> Iterator[str]:
    from etcd_aio.cli.rows import check_lines

    for row in found:
        if not row.error:
            yield f"{row.endpoint} is healthy: successfully committed proposal: took = {row.took}"
        yield from check_lines(row)


def _health(result: "results.ClusterHealth") -> str:
    healthy = sum(row.is_healthy for row in result.endpoints)
    return f"{'healthy' if result.is_healthy else 'unhealthy'}: {healthy} of {len(result.endpoints)} endpoints"


def _lease(shown: "results.LeaseShown") -> str:
    lease = shown.result
    if lease.granted_ttl == 0 and lease.ttl == -1:
        return f"lease {lease_word(lease.id)} already expired"
    text = f"lease {lease_word(lease.id)} granted with TTL({lease.granted_ttl}s), remaining({lease.ttl}s)"
    return f"{text}, attached keys([{' '.join(map(as_text, lease.keys))}])" if shown.has_keys else text


def _role(role: "types.Role") -> Iterator[str]:
    yield printable(f"Role {role.name}")
    for title, other in (("KV Read:", types.Permission.WRITE), ("KV Write:", types.Permission.READ)):
        yield title
        if role.name == "root" and not role.permissions:
            yield "\t[, <open ended>"
        for one in role.permissions:
            if one.permission is not other:
                yield f"\t{_keys(one)}"


def _keys(permission: "types.KeyPermission") -> str:
    key, end = as_text(permission.key), as_text(permission.range_end)
    if not end:
        return key
    text = f"[{key}, <open ended>" if end == "\0" else f"[{key}, {end})"
    return f"{text} (prefix {key})" if key and types.prefix_end(permission.key) == permission.range_end else text
