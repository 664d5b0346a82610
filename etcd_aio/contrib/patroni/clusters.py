"""Clusters: the keys of a cluster as Patroni's objects.

A version is the revision at which a key was changed, a session the id of its lease.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from etcd_aio import KeyValue
from etcd_aio.contrib.missing import missing

try:
    from patroni.dcs import (
        AbstractDCS,
        Cluster,
        ClusterConfig,
        Failover,
        Leader,
        Member,
        Status,
        SyncState,
        TimelineHistory,
    )
except ModuleNotFoundError as _error:
    raise missing(__name__, "patroni", _error, "patroni") from _error


def by_name(kvs: Iterable[KeyValue], path: str) -> dict[str, KeyValue]:
    """The keys below a path, by their names there."""
    return {kv.key.decode().removeprefix(path): kv for kv in kvs if kv.key.decode().startswith(path)}


def cluster_of(nodes: Mapping[str, KeyValue]) -> Cluster:
    """One cluster, of its keys by their names."""

    def value(name: str) -> str | None:
        return nodes[name].text() if name in nodes else None

    def versioned(name: str, make: Any) -> Any:
        return make(nodes[name].mod_revision, nodes[name].text()) if name in nodes else None

    members = [
        Member.from_node(kv.mod_revision, name.removeprefix(AbstractDCS._MEMBERS), kv.lease, kv.text())
        for name, kv in nodes.items()
        if name.startswith(AbstractDCS._MEMBERS) and name.count("/") == 1
    ]
    leader = None
    if AbstractDCS._LEADER in nodes:
        kv = nodes[AbstractDCS._LEADER]
        unknown = Member(-1, kv.text(), None, {})
        leader = Leader(
            kv.mod_revision, kv.lease, next((member for member in members if member.name == kv.text()), unknown)
        )
    status = value(AbstractDCS._STATUS) or value(AbstractDCS._LEADER_OPTIME)
    sync = nodes.get(AbstractDCS._SYNC)
    return Cluster(
        value(AbstractDCS._INITIALIZE),
        versioned(AbstractDCS._CONFIG, ClusterConfig.from_node),
        leader,
        Status.from_node(status),
        members,
        versioned(AbstractDCS._FAILOVER, Failover.from_node),
        SyncState.from_node(sync and sync.mod_revision, sync and sync.text()),
        versioned(AbstractDCS._HISTORY, TimelineHistory.from_node),
        _failsafe(value(AbstractDCS._FAILSAFE)),
    )


def _failsafe(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
