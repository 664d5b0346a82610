"""One address that leads to three real members, as a load balancer has it: the client leaves one that is cut off."""

import asyncio
from functools import partial

import pytest

from etcd_aio import Client
from etcd_aio.errors import EtcdError
from etcd_aio.testing import EtcdCluster, EtcdServer
from etcd_aio.transport import EngineName, create_engine
from tests.support.one_address import OneAddress
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def serve_again(client: Client) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.put("k", "after", timeout=3.0)
            except EtcdError:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.parametrize("engine", ["native", "grpclib"])
@pytest.mark.parametrize("leads", [True, False])
async def test_writes_a_watch_and_a_lease_leave_a_member_that_is_cut_off(engine: EngineName, *, leads: bool) -> None:
    async with EtcdCluster(size=3, peer_proxies=True, **QUICK_ELECTIONS) as cluster:
        leader = await cluster.leader()
        victim: EtcdServer = leader if leads else next(one for one in cluster.members if one is not leader)
        others = [one.endpoint for one in cluster.members if one is not victim]
        balancer = OneAddress([victim.endpoint, *others], partial(create_engine, engine))
        async with (
            Client("http://etcd", engine=balancer.engine) as client,
            Client(others) as other,
            client.lease(ttl=60) as lease,
            client.watch("k") as watcher,
        ):
            await client.put("k", "before", lease=lease)
            async with asyncio.timeout(PATIENCE):
                assert (await anext(watcher)).value == b"before"
            assert balancer.chosen == [victim.endpoint]
            cluster.isolate(victim)
            await serve_again(client)
            async with asyncio.timeout(PATIENCE):
                while (await anext(watcher)).value != b"after":
                    pass
                while len([one for one in client.streams() if one.is_open]) != 2:  # noqa: ASYNC110 - a server does it
                    await asyncio.sleep(0.02)
            assert not lease.is_lost
            found_elsewhere = await other.get("k")
            assert found_elsewhere is not None
            assert found_elsewhere.value == b"after"
            assert balancer.chosen[-1] in others
            await until(  # it may be without a leader for a moment, if another member stands still
                lambda: [(one.state.name, one.health.name) for one in client.statistics()] == [("READY", "HEALTHY")]
            )
            assert client.statistics()[0].connects >= 2
            cluster.reconnect(victim)


@pytest.mark.parametrize("engine", ["native", "gateway"])
async def test_a_lease_alone_leaves_a_member_that_is_cut_off(engine: EngineName) -> None:
    """No other call shows that the member does not serve."""
    async with EtcdCluster(size=3, peer_proxies=True, **QUICK_ELECTIONS) as cluster:
        leader = await cluster.leader()
        victim = next(one for one in cluster.members if one is not leader)
        others = [one.endpoint for one in cluster.members if one is not victim]
        balancer = OneAddress([victim.endpoint, *others], partial(create_engine, engine))
        async with Client("http://etcd", engine=balancer.engine) as client, client.lease(ttl=20) as lease:
            cluster.isolate(victim)
            async with asyncio.timeout(PATIENCE):
                while balancer.chosen[-1] == victim.endpoint or lease.remaining < 15:  # noqa: ASYNC110 - a server does it
                    await asyncio.sleep(0.02)
            assert not lease.is_lost
            cluster.reconnect(victim)
