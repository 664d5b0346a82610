"""Every example runs unchanged, prints what it should, and leaves the store as it was."""

import anyio
import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.examples.paths import ROOT, Run

pytestmark = pytest.mark.cluster

FOLDER = ROOT / "examples"

# What each example must print, besides exiting with 0.
PRINTS = {
    "ambiguous_write": (
        "unknown:",
        "the order is ours",
        "the key was written 1 time since",
        "exactly once: the reply was lost, True and the key was written 1 time since",
    ),
    "config_reload": ("log level: info", "log level: debug", "settings left: 0"),
    "exactly_once": (
        "step 5: the reply was lost; it was applied at revision",
        "the counter is 20",
        "in doubt; settled: applied is True",
        "the second is a replay of the first: True",
    ),
    "failover_tour": ("all proxies are open", "is cut: 40 calls", "READY"),
    "follow_prefix": ("the snapshot is of revision", "the copy is the store: 51 keys"),
    "kv": ("it was hello at revision", "a scan gave 30 keys", "deleted 31 keys"),
    "lock": ("the counter is 30", "the lock is taken by one", "it was not free within half a second"),
    "leader_tasks": (
        "the leader is web-1",
        "the leader is web-3",
        "no instance leads",
        "written: report",
        "lost: election",
    ),
    "mirror": (
        "the copy has 100 keys",
        "copied after the restart: 1 put and 50 deletes",
        "the copy is the source: True",
    ),
    "service_registration": (
        "now registered: 10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80",
        "the next request goes to 10.0.0.1:80",
        "now registered: none",
    ),
    "txn_compare_and_swap": ("the counter is 50",),
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"demo"} == set(PRINTS)


@pytest.mark.parametrize("name", sorted(PRINTS))
def test_an_example_is_short(name: str) -> None:
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) < 70


@pytest.mark.parametrize("name", sorted(PRINTS))
def test_an_example_runs_and_cleans_up(name: str, server: EtcdServer, run: Run) -> None:
    output = run(str(FOLDER / f"{name}.py"), server.endpoint)
    for text in PRINTS[name]:
        assert text in output

    async def remaining() -> list[bytes]:
        async with Client(server.endpoint) as client:
            return [kv.key for kv in await client.range(prefix="example/", keys_only=True)]

    assert anyio.run(remaining) == []


def test_endpoints_can_come_from_the_environment(server: EtcdServer, run: Run) -> None:
    output = run(str(FOLDER / "kv.py"), ETCD_ENDPOINTS=server.endpoint)
    assert "deleted 31 keys" in output
