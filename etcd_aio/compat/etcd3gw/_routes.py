"""The routes of etcd's gateway that `Etcd3Client.post` serves, each by a call of etcd_aio."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from etcd_aio.compat.etcd3gw import _operations
from etcd_aio.compat.etcd3gw._json import Fields, to_json
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.sync import Client

Route: TypeAlias = Callable[[Client, Fields, float], dict[str, Any]]


def _operated(make: Callable[[Fields], Any]) -> Route:
    def serve(client: Client, request: Fields, timeout: float) -> dict[str, Any]:
        found: dict[str, Any] = to_json(client.do(make(request), timeout=timeout))
        return found

    return serve


def _compact(client: Client, request: Fields, timeout: float) -> Any:
    result = client.compact(request.number("revision"), physical=request.flag("physical"), timeout=timeout)
    return to_json(result)


def _grant(client: Client, request: Fields, timeout: float) -> Any:
    return to_json(client.leases.grant(request.number("TTL"), request.number("ID") or None, timeout=timeout))


def _revoke(client: Client, request: Fields, timeout: float) -> Any:
    return to_json(client.leases.revoke(request.number("ID"), timeout=timeout))


def _time_to_live(client: Client, request: Fields, timeout: float) -> Any:
    return to_json(client.leases.time_to_live(request.number("ID"), request.flag("keys"), timeout=timeout))


def _keep_alive(client: Client, request: Fields, timeout: float) -> Any:
    lease = request.number("ID")
    try:
        return {"result": to_json(client.leases.keep_alive_once(lease, timeout=timeout))}
    except LeaseNotFoundError:  # etcd answers with a TTL of 0, which is absent
        return {"result": {"header": {}, "ID": str(lease)}}


def _leases(client: Client, _: Fields, timeout: float) -> Any:
    return to_json(client.leases.list(timeout=timeout))


def _status(client: Client, _: Fields, timeout: float) -> Any:
    found = to_json(client.maintenance.status(client.endpoints[0], timeout=timeout))
    if term := found.pop("raft_term", None):
        found["raftTerm"] = term  # a header has the other name
    return found


def _members(client: Client, _: Fields, timeout: float) -> Any:
    return to_json(client.cluster.members(timeout=timeout))


ROUTES: Final[Mapping[str, Route]] = {
    "kv/put": _operated(_operations.put),
    "kv/range": _operated(_operations.get),
    "kv/deleterange": _operated(_operations.delete),
    "kv/txn": _operated(_operations.txn),
    "kv/compaction": _compact,
    "lease/grant": _grant,
    "lease/revoke": _revoke,
    "lease/timetolive": _time_to_live,
    "lease/leases": _leases,
    "lease/keepalive": _keep_alive,
    "maintenance/status": _status,
    "cluster/member/list": _members,
}
"""By the path behind `/v3/`. Those of leases are below `kv/`, too."""

AUTHENTICATE: Final = "auth/authenticate"


def route_of(url: str) -> str:
    """The name of the route that a URL has, as in `ROUTES`."""
    path = url.partition("://")[2].partition("/")[2].partition("/")[2]  # without the host, and `v3`
    return path.removeprefix("kv/") if path.startswith("kv/lease/") else path
