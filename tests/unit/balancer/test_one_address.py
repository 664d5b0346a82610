"""balancer/redialler.py: a client with one address leaves a member that is cut off, and none that serves."""

import asyncio
import random
from itertools import pairwise

import pytest

from etcd_aio import Client
from etcd_aio.balancer.redial_schedule import REDIAL_BACKOFF
from etcd_aio.errors import EtcdError
from etcd_aio.fake import FakeEtcd
from tests.support.one_address import OneAddress

pytestmark = pytest.mark.anyio

ADDRESS = "http://etcd"


async def write_until(client: Client, stop: asyncio.Event) -> list[float]:
    """Write ten times a second; returns the instants at which a write was acknowledged."""
    acknowledged = []
    while not stop.is_set():
        try:
            await client.put("k", "v", timeout=1.0)
            acknowledged.append(asyncio.get_running_loop().time())
        except EtcdError:
            pass
        await asyncio.sleep(0.1)
    return acknowledged


@pytest.mark.parametrize("seed", range(20))
async def test_a_member_that_is_cut_off_is_left_within_seconds(seed: int) -> None:
    source = random.Random(seed)
    clock = asyncio.get_running_loop().time
    async with FakeEtcd(members=3, seed=seed) as fake:
        balancer = OneAddress(fake.endpoints, fake.engine, lambda number: source.randrange(3) if number else 0)
        fake.elect(fake.members[source.randrange(3)])
        async with (
            fake.client() as other,
            Client(ADDRESS, engine=balancer.engine) as client,
            client.lease(ttl=10) as lease,
            client.watch("w") as watcher,
        ):
            stop = asyncio.Event()
            writes = asyncio.ensure_future(write_until(client, stop))
            await asyncio.sleep(source.uniform(1, 5))
            cut_off_at = clock()
            fake.members[0].isolate()
            await asyncio.sleep(3)
            await other.put("w", "after")
            async with asyncio.timeout(9):
                assert (await anext(watcher)).value == b"after"
            await asyncio.sleep(20)
            stop.set()
            served = [instant - cut_off_at for instant in await writes if instant > cut_off_at + 0.2]
            assert served[0] < 15.0, "a balancer that draws may choose the same member a few times"
            assert max(later - earlier for earlier, later in pairwise(served)) < 1.0
            assert not lease.is_lost
            assert balancer.chosen[-1] != fake.endpoints[0]
            assert set(balancer.chosen[:-1]) == {fake.endpoints[0]}, "the first that serves is kept"
            assert fake.members[0].connections == 1, "that of the other client; the old one has drained"


async def test_the_members_of_a_healthy_cluster_are_not_changed_by_an_election() -> None:
    async with FakeEtcd(members=3) as fake:
        balancer = OneAddress(fake.endpoints, fake.engine)
        async with Client(ADDRESS, engine=balancer.engine) as client:
            stop = asyncio.Event()
            writes = asyncio.ensure_future(write_until(client, stop))
            for leader in (1, 2, 1, 2):
                fake.elect(fake.members[leader])
                await asyncio.sleep(5)
                fake.members[leader].pause()
                await asyncio.sleep(5)
                fake.members[leader].resume()
            stop.set()
            await writes
            assert len(balancer.chosen) == 1


async def test_without_a_quorum_dials_are_few_and_their_connections_are_closed() -> None:
    async with FakeEtcd(members=3) as fake:
        balancer = OneAddress(fake.endpoints, fake.engine)
        async with Client(ADDRESS, engine=balancer.engine) as client:
            await client.put("k", "v")
            fake.members[1].stop()
            fake.members[2].stop()
            stop = asyncio.Event()
            writes = asyncio.ensure_future(write_until(client, stop))
            await asyncio.sleep(120)
            assert 6 <= len(balancer.chosen) <= 11
            assert fake.members[0].connections == 1
            fake.members[1].start()
            await asyncio.sleep(REDIAL_BACKOFF.maximum)
            stop.set()
            assert await writes, "it serves again"
