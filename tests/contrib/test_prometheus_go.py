"""contrib/prometheus.py: the counters are those of Go's interceptors: the same workload by both clients gives the same
names, labels, values.

Needs a Go toolchain, which builds the Go program once.
"""

import asyncio
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from etcd_aio import Client, EtcdError, op
from etcd_aio.contrib.prometheus import instrument
from etcd_aio.testing import EtcdServer
from tests.support.recipes import built

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

COUNTERS = ("started", "handled", "msg_sent", "msg_received")


def counters(text: str) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The counters that are not 0, by name and labels."""
    names = {f"grpc_client_{name}_total" for name in COUNTERS}
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in names and sample.value
    }


async def work(client: Client, prefix: str) -> None:
    """What `gometrics/main.go` does."""
    for number in range(3):
        await client.put(f"{prefix}{number}", "v")
    await client.range(prefix=prefix)
    with pytest.raises(EtcdError):
        await client.get(prefix, revision=1 << 40)
    granted = await client.leases.grant(60, id=1234567)
    await client.leases.revoke(granted.id)
    with pytest.raises(EtcdError):
        await client.leases.revoke(granted.id)
    await client.do(op.txn(then=[op.delete(prefix=prefix)]))
    await client.maintenance.status(client.endpoints[0])
    await client.cluster.members()


async def test_the_counters_are_those_of_go() -> None:
    program = built("tests/contrib/gometrics")
    async with EtcdServer() as server:
        go = await asyncio.create_subprocess_exec(*program, server.endpoint, "go/", stdout=asyncio.subprocess.PIPE)
        printed, _ = await go.communicate()
        assert go.returncode == 0
        registry = CollectorRegistry()
        async with Client(server.endpoint, observers=[instrument(registry)]) as client:
            await work(client, "aio/")
    theirs, ours = counters(printed.decode()), counters(generate_latest(registry).decode())
    received = "grpc_client_msg_received_total"
    assert {name for name, _ in theirs} == {f"grpc_client_{name}_total" for name in COUNTERS}
    assert {key: ours[key] for key in ours if key[0] != received} == {
        key: theirs[key] for key in theirs if key[0] != received
    }
    # Go counts a message for an attempt that failed, too.
    refused = {"Range": 1, "LeaseRevoke": 1}
    assert {key: ours[key] + refused.get(dict(key[1])["grpc_method"], 0) for key in ours if key[0] == received} == {
        key: theirs[key] for key in theirs if key[0] == received
    }
