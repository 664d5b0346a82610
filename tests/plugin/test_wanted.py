"""The arguments of the marker, and which calls a client of a shared server refuses."""

import inspect

import pytest

from etcd_aio import Client
from pytest_etcd_aio.guard import HARMLESS, GuardedClient
from pytest_etcd_aio.wanted import Wanted, merged, wanted_from


def test_arguments_become_what_is_wanted() -> None:
    options = {"max_txn_ops": 10, "pre_vote": True}
    wanted = wanted_from({"nodes": 3, "version": "3.6", "tls": True, "private": True, "options": options})
    assert wanted.is_cluster
    assert wanted.flags == ["--max-txn-ops=10", "--pre-vote=true"]
    assert (wanted.size, wanted.tls, wanted.auth, wanted.private) == (3, True, False, True)
    assert wanted_from({}) == Wanted()
    assert wanted_from({}, is_cluster=True).size == 3
    assert not wanted_from({"nodes": 1}).is_cluster
    assert wanted_from({"options": {"b": 1, "a": 2}}) == wanted_from({"options": {"a": 2, "b": 1}})


@pytest.mark.parametrize(
    "arguments",
    [{"node": 3}, {"nodes": 0}, {"nodes": True}, {"nodes": "3"}, {"version": 3.6}, {"tls": "yes"}, {"options": "a=b"}],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(arguments))}"):
        wanted_from(arguments)


def test_the_closest_marker_counts() -> None:
    assert merged([{"tls": True}, {"tls": False, "nodes": 3}]) == {"tls": True, "nodes": 3}


def calls(group: object) -> set[str]:
    return {name for name, value in inspect.getmembers(group, callable) if not name.startswith("_")}


READS = {
    "auth": {"authenticate", "role_get", "role_list", "status", "user_get", "user_list"},
    "cluster": {"members"},
    "maintenance": {"alarms", "hash", "hash_kv", "metrics", "save_snapshot", "snapshot", "status"},
}


@pytest.mark.parametrize("group", READS)
def test_calls_that_change_the_cluster_are_refused(group: str) -> None:
    client, guarded = Client(), getattr(GuardedClient(), group)
    names = calls(getattr(client, group))
    assert READS[group] == HARMLESS[group] <= names
    assert len(names - READS[group]) >= 4
    for name in names:
        if name in READS[group]:
            assert callable(getattr(guarded, name))
            continue
        with pytest.raises(pytest.UsageError, match=rf"client.{group}.{name}\(\) concerns the whole cluster"):
            getattr(guarded, name)
    with pytest.raises(AttributeError):
        _ = guarded.unknown
