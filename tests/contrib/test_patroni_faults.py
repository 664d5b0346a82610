"""contrib/patroni/: each of three members is frozen and killed; the primary stays one, and no call is late."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.contrib.patroni_node import Loop, node
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

ROUNDS = 8  # of the loop, while a member is away
SLACK = 2.0  # seconds beyond a limit: for a machine that is slow


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def cluster() -> AsyncIterator[EtcdCluster]:
    async with EtcdCluster(peer_proxies=True) as cluster:
        yield cluster


async def go_away(cluster: EtcdCluster, member: EtcdServer, how: str) -> None:
    if how == "frozen":
        member.pause()
    elif how == "killed":
        await member.kill()
    else:
        cluster.isolate(member)  # from the others: clients reach it


async def come_back(cluster: EtcdCluster, member: EtcdServer, how: str) -> None:
    if how == "frozen":
        member.resume()
    elif how == "killed":
        await member.restart()
    else:
        cluster.reconnect(member)


@pytest.mark.parametrize("retry_timeout", [6, pytest.param(10, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("how", ["frozen", "killed", "isolated"])
async def test_a_primary_stays_while_a_quorum_lives(cluster: EtcdCluster, how: str, retry_timeout: int) -> None:
    leader = await cluster.leader()
    order = [*(member for member in cluster.members if member is not leader), leader]  # the leader last
    async with node(cluster.endpoints, retry_timeout=retry_timeout, loop_wait=1, scope=f"{how}{retry_timeout}") as dcs:
        loop = Loop(dcs, period=0.3)
        async with loop.running():
            for member in order:
                before = loop.rounds
                await go_away(cluster, member, how)
                await until(lambda: loop.rounds >= before + ROUNDS)  # noqa: B023 # awaited here
                await come_back(cluster, member, how)
                await cluster.wait_healthy()
        assert not loop.demotions
        assert all(seconds < retry_timeout + SLACK for seconds in loop.longest.values()), loop.longest


async def test_a_node_that_knows_one_member_uses_all(cluster: EtcdCluster) -> None:
    first = cluster.members[0]
    async with node(first.endpoint, scope="discovery", loop_wait=1) as dcs:
        loop = Loop(dcs, period=0.3)
        async with loop.running():
            await until(lambda: loop.rounds > 1)
            await first.kill()
            try:
                before = loop.rounds
                await until(lambda: loop.rounds >= before + ROUNDS)
            finally:
                await first.restart()
        assert not loop.demotions


async def test_a_full_outage_ends_each_call_at_its_limit(cluster: EtcdCluster) -> None:
    async with node(cluster.endpoints, retry_timeout=3, loop_wait=1, scope="outage") as dcs:
        loop = Loop(dcs, period=0.3)
        async with loop.running():
            await until(lambda: loop.rounds > 2)
            for member in cluster.members:
                member.pause()
            before = loop.rounds
            try:
                await until(lambda: loop.rounds > before + 2)
            finally:
                for member in cluster.members:
                    member.resume()
            assert loop.demotions
            assert all(text.startswith("Etcd3AioError") for text in loop.demotions), loop.demotions
            assert all(seconds < 3 + SLACK for seconds in loop.longest.values()), loop.longest
            await cluster.wait_healthy()
            before = loop.rounds
            await until(lambda: loop.rounds > before + 3)
            loop.demotions.clear()
            await asyncio.sleep(0)
            before = loop.rounds
            await until(lambda: loop.rounds > before + 2)
            assert not loop.demotions
