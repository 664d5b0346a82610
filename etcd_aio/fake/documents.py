"""The documents that a member serves over HTTP beside gRPC: its version, its health, its metrics. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from etcd_aio import pb
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.node import Node

_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpDocument:
    """The answer to a request over HTTP; `kind` is its content type."""

    status: int
    kind: str
    body: bytes


def document(cluster: FakeCluster, node: Node, target: str) -> HttpDocument:
    """The answer of a member to GET; `target` is the path, and the query if there is one."""
    url = urlsplit(target)
    match url.path:
        case "/version":
            return HttpDocument(200, _JSON, _compact(_version(cluster)))
        case "/health":
            query = parse_qs(url.query)
            return _health(cluster, node, query.get("exclude", []), needs_leader=query.get("serializable") != ["true"])
        case "/livez" | "/readyz" if cluster.release.has_livez:
            query = parse_qs(url.query, keep_blank_values=True)
            checks = _checks(cluster, node, url.path)
            wanted = {name: reason for name, reason in checks.items() if name not in query.get("exclude", [])}
            return _checked(wanted, is_verbose="verbose" in query)
        case "/metrics":
            return HttpDocument(200, _METRICS, "".join(_metrics(cluster, node)).encode())
        case _:
            return HttpDocument(404, _TEXT, b"404 page not found\n")


def _version(cluster: FakeCluster) -> dict[str, str]:
    release = cluster.release
    versions = {"etcdserver": release.version, "etcdcluster": f"{release.name}.0"}
    return versions | ({"storage": f"{release.name}.0"} if release.has_storage_version else {})


def _health(cluster: FakeCluster, node: Node, excluded: list[str], *, needs_leader: bool) -> HttpDocument:
    reason = ""
    if needs_leader and cluster.leader_of(node) is None:
        reason = "RAFT NO LEADER"
    for alarm in cluster.alarms.active():
        name = pb.AlarmType(alarm.alarm).name
        if name not in excluded:
            reason = f"ALARM {name}"
            break
    answer = {"health": "false" if reason else "true"}
    if cluster.release.has_auth_status:  # since 3.5
        answer["reason"] = reason
    return HttpDocument(503 if reason else 200, _TEXT, _compact(answer))


def _checks(cluster: FakeCluster, node: Node, path: str) -> dict[str, str]:
    """The names of the checks, each with what it has found wrong."""
    if path == "/livez":
        return {"serializable_read": ""}
    alarms = {pb.AlarmType(alarm.alarm).name for alarm in cluster.alarms.active()}
    return {
        "serializable_read": "",
        "linearizable_read": "" if cluster.leader_of(node) is not None else "etcdserver: request timed out",
        "non_learner": "",
        "data_corruption": "alarm activated: CORRUPT" if "CORRUPT" in alarms else "",
    }


def _checked(checks: dict[str, str], *, is_verbose: bool) -> HttpDocument:
    lines = "".join(f"[-]{name} failed: {why}\n" if why else f"[+]{name} ok\n" for name, why in checks.items())
    if any(checks.values()):
        return HttpDocument(503, _TEXT, f"{lines}\n".encode())
    return HttpDocument(200, _TEXT, (f"{lines}ok\n" if is_verbose else "ok\n").encode())


def _metrics(cluster: FakeCluster, node: Node) -> Iterator[str]:
    """A few of etcd's gauges, under its names."""
    leader = cluster.leader_of(node)
    for name, labels, value in (
        ("etcd_server_version", f'{{server_version="{cluster.release.version}"}}', 1),
        ("etcd_server_has_leader", "", int(leader is not None)),
        ("etcd_server_is_leader", "", int(leader is node)),
        ("etcd_debugging_mvcc_current_revision", "", node.store.revision),
        ("etcd_debugging_mvcc_compact_revision", "", node.store.compacted),
        ("etcd_debugging_mvcc_keys_total", "", len(node.store.read(b"\x00", b"\x00"))),
        ("etcd_debugging_mvcc_watcher_total", "", len(node.hub)),
    ):
        yield f"# TYPE {name} gauge\n{name}{labels} {value}\n"


def _compact(answer: dict[str, str]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()
