"""Every example runs as it stands, says what it promises, and leaves the store as it was."""

import anyio
import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.examples.paths import ROOT, Run

pytestmark = pytest.mark.cluster

FOLDER = ROOT / "examples"

# What each example must say, besides ending well.
SAYS = {
    "ambiguous_write": ("unknown:", "the order is ours", "the key was written 1 time since"),
    "config_reload": ("log level: info", "log level: debug", "settings left: 0"),
    "failover_tour": ("all roads are open", "is cut: 40 calls", "READY"),
    "follow_prefix": ("the snapshot is of revision", "the copy is the store: 51 keys"),
    "kv": ("it was hello at revision", "a scan gave 30 keys", "deleted 31 keys"),
    "service_registration": ("now registered: web-1, web-2, web-3", "now registered: none"),
    "txn_compare_and_swap": ("the counter is 50",),
}


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"demo"} == set(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_is_short(name: str) -> None:
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) < 70


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_runs_and_cleans_up(name: str, server: EtcdServer, run: Run) -> None:
    said = run(str(FOLDER / f"{name}.py"), server.endpoint)
    for words in SAYS[name]:
        assert words in said

    async def left() -> list[bytes]:
        async with Client(server.endpoint) as client:
            return [kv.key for kv in await client.range(prefix="example/", keys_only=True)]

    assert anyio.run(left) == []


def test_the_environment_names_the_endpoints_too(server: EtcdServer, run: Run) -> None:
    said = run(str(FOLDER / "kv.py"), ETCD_ENDPOINTS=server.endpoint)
    assert "deleted 31 keys" in said
