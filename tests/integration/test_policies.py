"""Policies and health on real members: the connections and the calls of each policy, and unhealthy members last."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from etcd_aio import Client
from etcd_aio.balancer import PolicyName
from etcd_aio.observing import EndpointStatistics
from etcd_aio.testing import EtcdCluster

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]


async def until(is_true: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(0.02)


def ready(client: Client) -> list[str]:
    return [one.endpoint for one in client.statistics() if one.state.name == "READY"]


def found(client: Client, endpoint: str) -> EndpointStatistics:
    return next(one for one in client.statistics() if one.endpoint == endpoint)


def leads(client: Client, endpoint: str) -> bool:
    """Whether the client has seen that this member leads."""
    return found(client, endpoint).is_leader


def attempts(client: Client) -> Counter[str]:
    return Counter({one.endpoint: one.attempts for one in client.statistics()})


@pytest.mark.parametrize(
    ("policy", "connections"),
    [("round_robin", 3), ("power_of_two", 3), ("leader_first", 3), ("pinned", 1), ("random_pinned", 1)],
)
async def test_how_many_connections_a_policy_keeps(cluster: EtcdCluster, policy: PolicyName, connections: int) -> None:
    async with Client(cluster.endpoints, policy=policy) as client:
        await client.put("k", "v")
        await until(lambda: len(ready(client)) == connections)
        for _ in range(20):
            await client.get("k")
        assert len(ready(client)) == connections
        if connections == 1:  # it switches when that one fails
            [kept] = ready(client)
            await next(member for member in cluster.members if member.endpoint == kept).kill()
            await client.get("k")
            await until(lambda: len(ready(client)) == 1)
            assert ready(client) != [kept]


async def test_leader_first_asks_the_leader_and_follows_it(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints, policy="leader_first", timeout=20) as client:
        await client.get("k")
        while True:
            leader = await cluster.leader()
            await until(partial(leads, client, leader.endpoint))
            before = attempts(client)
            for _ in range(30):
                await client.get("k")
            if await cluster.leader() is leader:  # one that stands still for a moment is replaced
                break
        assert (attempts(client) - before)[leader.endpoint] >= 30
        await leader.kill()
        await client.get("k")
        await until(lambda: any(one.is_leader for one in client.statistics()))
        assert next(one.endpoint for one in client.statistics() if one.is_leader) != leader.endpoint


async def test_a_frozen_member_is_used_last_and_comes_back(cluster: EtcdCluster) -> None:
    leader = await cluster.leader()
    frozen = next(member for member in cluster.members if member is not leader)
    async with Client(cluster.endpoints, timeout=20) as client:
        await client.put("k", "v")
        await until(lambda: len(ready(client)) == 3)
        frozen.pause()
        try:
            seen: list[str] = []
            end = time.monotonic() + 4
            while time.monotonic() < end:
                await asyncio.gather(*(client.get("k") for _ in range(6)))
                one = found(client, frozen.endpoint)
                seen.append(one.health.value if one.state.name == "READY" else one.state.name)
                await asyncio.sleep(0.02)
            assert seen[0] == "silent", "its reads moved before its connection was given up"
        finally:
            frozen.resume()
        await until(lambda: len(ready(client)) == 3 and found(client, frozen.endpoint).health.value == "healthy")


async def test_a_short_pause_costs_no_error_and_no_place(cluster: EtcdCluster) -> None:
    leader = await cluster.leader()
    paused = next(member for member in cluster.members if member is not leader)
    async with Client(cluster.endpoints, timeout=20) as client:
        await client.put("k", "v")
        await until(lambda: len(ready(client)) == 3)
        connects = found(client, paused.endpoint).connects
        paused.pause()
        # Another process ends the pause, since this one may stand still for longer.
        ending = await asyncio.create_subprocess_shell(f"sleep 0.6; kill -CONT {paused.pid}")
        calls = [asyncio.ensure_future(call) for _ in range(9) for call in (client.get("k"), client.put("k", "v"))]
        await ending.wait()
        paused.resume()
        await asyncio.gather(*calls)
        await until(lambda: found(client, paused.endpoint).health.value == "healthy")
        assert found(client, paused.endpoint).connects == connects, "the connection was kept"


async def test_a_member_that_lost_its_leader_serves_serializable_reads_only(cluster: EtcdCluster) -> None:
    leader = await cluster.leader()
    [survivor, *others] = sorted(cluster.members, key=lambda member: member is leader)
    async with Client(cluster.endpoints, timeout=1) as client:
        await client.put("k", "v", timeout=20)
        await until(lambda: len(ready(client)) == 3)
        for member in others:
            await member.kill()

        async def refused() -> bool:
            try:
                await client.get("k")
            except Exception:
                return found(client, survivor.endpoint).health.value == "no leader"
            return False

        async with asyncio.timeout(20):
            while not await refused():  # noqa: ASYNC110 - other processes do it
                await asyncio.sleep(0.1)
        assert found(client, survivor.endpoint).local_health.value == "healthy"
        assert await client.get("k", serializable=True, timeout=20)
        await others[0].restart()
        await until(lambda: found(client, survivor.endpoint).health.value == "healthy", 30)
