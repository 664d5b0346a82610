"""The format `json`: the JSON of etcdctl byte for byte. Pure.

Numbers are bare, bytes are base64, and fields that are zero are absent, as in the structs of Go.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias

from etcd_aio import Event, KeyValue, RangeResult
from etcd_aio.cli.messages import NUMBERS, RESPONSES, is_message, items_of
from etcd_aio.cli.results import (
    ClusterHealth,
    EndpointHealth,
    HashReport,
    HealthReport,
    LeaseShown,
    MembersChanged,
    OwnWord,
    Shown,
    StatusReport,
    Watched,
)
from etcd_aio.cli.style import Style
from etcd_aio.types import (
    ActiveAlarm,
    AuthStatus,
    DowngradeInfo,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    Member,
    MemberListResult,
    SnapshotStatus,
    StatusResult,
)

Json: TypeAlias = bool | int | str | Sequence["Json"] | Mapping[str, "Json"] | None

_CAMEL_CASED: Final = (ActiveAlarm, AuthStatus, DowngradeInfo, Member, StatusResult)  # whose fields have such names
_SPECIAL_NAMES: Final = {"id": "ID", "member_id": "memberID", "peer_urls": "peerURLs", "client_urls": "clientURLs"}
_IDS: Final = frozenset({"cluster_id", "member_id", "id"})
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
        case RangeResult() if style.decodes:
            shown = _struct(result)
            return {**shown, "kvs": [_decoded(kv) for kv in result.kvs]} if result.kvs else shown
        case Watched():
            return {
                "Header": _struct(result.header),
                "Events": None if result.is_canceled else [_event(event, style) for event in result.events],
                "CompactRevision": result.compact_revision,
                "Canceled": result.is_canceled,
                "Created": False,
                "CancelReason": "",
            }
        case MemberListResult() | MembersChanged():
            return _struct(result, is_hex=style.is_hex)
        case HealthReport():
            return [_health(row) for row in result.rows] or None
        case ClusterHealth():
            return {"healthy": result.is_healthy, "endpoints": _value(HealthReport(result.endpoints), style)}
        case StatusReport():
            return [{"Endpoint": endpoint, "Status": _struct(status)} for endpoint, status in result.rows] or None
        case SnapshotStatus():
            counts: dict[str, Json] = {"hash": result.hash, "revision": result.revision, "totalKey": result.total_keys}
            return {**counts, "totalSize": result.total_size, "version": result.version}
        case HashReport():
            return [{"Endpoint": endpoint, "HashKV": _struct(found)} for endpoint, found in result.rows] or None
        case LeaseGrantResult():
            return {**_struct(result.header), "ID": result.id, "TTL": result.ttl, "Error": ""}
        case LeaseKeepAliveResult():
            return {**_struct(result.header), "ID": result.id, "TTL": result.ttl}
        case LeaseListResult():
            return {**_struct(result.header), "leases": [{"id": lease} for lease in result.ids]}
        case LeaseShown(result=lease):
            keys = [_base64(key) for key in lease.keys] or None
            numbers = {"id": lease.id, "ttl": lease.ttl, "granted-ttl": lease.granted_ttl}
            return {**_struct(lease.header), **numbers, "keys": keys}
        case _:
            return _struct(result)


def _event(event: Event, style: Style) -> Json:
    shown = _struct(event)
    if style.decodes:
        shown["kv"] = _decoded(event.kv)
        if event.prev_kv is not None:
            shown["prev_kv"] = _decoded(event.prev_kv)
    return shown


def _decoded(kv: KeyValue) -> Json:
    """A key-value with what its value says as an object of Kubernetes, which etcdctl does not have."""
    from etcd_aio.cli.kubernetes import value_json  # few commands decode

    return {**_struct(kv), "decoded": value_json(kv.value)} if kv.value else _struct(kv)


def _health(row: EndpointHealth) -> Json:
    shown: dict[str, Json] = {"endpoint": row.endpoint, "health": row.is_healthy, "took": row.took}
    if row.error:
        shown["error"] = row.error
    return shown | {said.asked: _own_word(said) for said in row.words}


def _own_word(said: OwnWord) -> Json:
    if said.health is None:
        return {"error": said.error}
    checks: list[Json] = [{"name": one.name, "ok": one.is_ok, "reason": one.reason} for one in said.health.checks]
    return {"path": said.health.path, "ok": said.health.is_ok, "checks": checks}


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _struct(result: Any, *, is_hex: bool = False) -> dict[str, Json]:
    """The message that a result was read from, as a struct of Go.

    Args:
        result: the result.
        is_hex: ids as text in hexadecimal.
    """
    found: dict[str, Json] = {}
    for field, value in items_of(result):
        shown = f"{value:x}" if is_hex and field in _IDS else _shown(field, value, is_hex)
        if shown or isinstance(shown, dict):
            found[_go_name(field, is_camel_cased=isinstance(result, _CAMEL_CASED))] = shown
    return found


def _shown(field: str, value: Any, is_hex: bool) -> Json:
    match value:
        case bytes():
            return _base64(value)
        case Enum():
            return NUMBERS[value]
        case tuple() if field == "responses":
            return [{"Response": {RESPONSES[type(one)]: _struct(one)}} for one in value]
        case tuple():
            return [_shown(field, one, is_hex) for one in value]
    return _struct(value, is_hex=is_hex) if is_message(value) else value


@cache
def _go_name(field: str, *, is_camel_cased: bool) -> str:
    """The name of a field in the .proto file, which is not always the one in snake case."""
    if is_camel_cased:
        return _SPECIAL_NAMES.get(field) or re.sub("_(.)", lambda found: found[1].upper(), field)
    return "permType" if field == "perm_type" else field
