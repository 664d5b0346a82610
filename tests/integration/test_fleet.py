"""Fleets and slow starts: each connection is dialled once, however long it takes, and a blocked loop loses none."""

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.observing import EndpointChange, Observer
from etcd_aio.testing import EtcdCluster, EtcdServer

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


class Dials(Observer):
    """Counts the dials of clients."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: Counter[str] = Counter()

    def endpoint_changed(self, change: EndpointChange) -> None:
        self.count += change.state == "CONNECTING"
        if change.state == "TRANSIENT_FAILURE":
            self.failures["refused" if "refused" in change.reason else "other"] += 1


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_a_loop_that_is_blocked_while_it_dials_dials_once(shared_server: EtcdServer, turns: int) -> None:
    dials = Dials()
    async with Client(shared_server.endpoint, observers=[dials], connect_timeout=1.0) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        time.sleep(1.2)  # noqa: ASYNC251 - it must block
        await client.get("k")
    assert dials.count == 1
    assert not dials.failures


CLIENTS = 400


@pytest.mark.nightly
async def test_a_fleet_connects_with_one_dial_for_each_connection_though_a_wave_takes_longer_than_the_timeout(
    cluster: EtcdCluster,
) -> None:
    """The timeout is short, so that every machine is too slow for the wave."""
    dials, wanted = Dials(), CLIENTS * len(cluster.members)

    async def served(client: Client) -> None:
        while True:
            try:
                await client.get("k")
            except EtcdError:
                continue
            if all(one.state.name == "READY" for one in client.statistics()):
                return
            await asyncio.sleep(0.1)

    async def all_served() -> None:
        async with asyncio.timeout(120):
            await asyncio.gather(*map(served, clients))

    async with AsyncExitStack() as stack:
        clients = [Client(cluster.endpoints, observers=[dials], connect_timeout=0.1) for _ in range(CLIENTS)]
        for client in clients:
            stack.push_async_callback(client.aclose)
        await all_served()
        assert dials.count <= 1.3 * wanted
        for member in cluster.members:
            await member.kill()
        await asyncio.sleep(5)
        await asyncio.gather(*(member.restart() for member in cluster.members))
        before = dials.failures["other"]
        await all_served()
        assert dials.failures["other"] - before <= 0.5 * wanted, dials.failures
