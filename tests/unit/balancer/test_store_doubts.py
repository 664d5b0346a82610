"""balancer/store_doubts.py: who is told when the store may be another one, and when that is."""

import asyncio

import pytest

from etcd_aio.balancer import StoreDoubts
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def test_listeners_are_told_in_order_until_they_are_removed() -> None:
    doubts, told = StoreDoubts(), list[str]()

    def first() -> None:
        told.append("first")
        doubts.remove(first)

    doubts.add(first)
    doubts.add(lambda: told.append("second"))
    doubts.tell()
    doubts.tell()
    doubts.remove(first)
    assert told == ["first", "second", "second"]
    assert len(doubts) == 1


async def test_the_loss_of_all_connections_is_a_doubt_and_the_loss_of_one_is_none() -> None:
    async with FakeEtcd(members=3, latency=0.001) as fake, fake.client() as client:
        told = list[int]()
        await client.put("a", "")
        client._balancer.doubts.add(lambda: told.append(fake.revision))
        fake.members[0].stop()
        await asyncio.sleep(5)
        fake.members[0].start()
        await asyncio.sleep(5)
        assert not told
        for member in fake.members:
            member.stop()
        await asyncio.sleep(5)
        assert not told
        for member in fake.members:
            member.start()
        await client.put("a", "", timeout=30)
        assert told == [2], "before a call is answered by the store that may be another one"


async def test_a_member_whose_revision_goes_back_is_a_doubt() -> None:
    """As behind a proxy, which keeps its connections."""
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, client.lease(5):
        told = list[int]()
        client._balancer.doubts.add(lambda: told.append(1))
        for _ in range(3):
            await client.put("a", "")
        await asyncio.sleep(5)
        fake._cluster.store.revision = 2
        await asyncio.sleep(5)
        assert told == [1]
