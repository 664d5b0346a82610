"""fake/network.py, fake/link.py: what it does to calls and streams of its client, and to nothing else."""

import asyncio

import pytest

from etcd_aio.errors import ConnectionLostError, EtcdError
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_a_black_hole_swallows_calls_of_one_client_until_it_is_healed() -> None:
    async with FakeEtcd() as fake:
        network = fake.network()
        async with fake.client(engine=network.engine, timeout=1.0) as client, fake.client() as other:
            await client.put("a", "1")
            network.black_hole()
            with pytest.raises(TimeoutError):
                await client.get("a")
            await other.put("a", "2")
            network.heal()
            assert (await client.range("a")).kvs[0].value == b"2"


async def test_events_that_came_in_a_black_hole_are_received_when_it_is_healed() -> None:
    async with FakeEtcd() as fake:
        network = fake.network()
        async with (
            fake.client(engine=network.engine) as client,
            fake.client() as other,
            client.watch("a") as watcher,
        ):
            network.black_hole()
            await other.put("a", "1")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(watcher), 0.5)
            network.heal()
            assert (await asyncio.wait_for(anext(watcher), 0.5)).value == b"1"
            assert watcher.statistics().reconnects == 0


async def test_events_that_came_while_a_member_was_paused_are_received_when_it_goes_on() -> None:
    async with FakeEtcd(members=3) as fake, fake.client(policy="pinned") as client, client.watch("a") as watcher:
        await client.put("b", "1")
        (connected,) = [member for member in fake.members if member.connections]
        fake.elect(next(member for member in fake.members if member is not connected))
        connected.pause()
        fake.load({"a": "1"})
        waiting = asyncio.ensure_future(anext(watcher))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        connected.resume()
        assert (await asyncio.wait_for(waiting, 0.5)).value == b"1"


async def test_a_reset_breaks_what_is_under_way_and_nothing_after_it() -> None:
    async with FakeEtcd(latency=0.1) as fake:
        network = fake.network()
        async with fake.client(engine=network.engine) as client:
            await client.put("a", "1")
            putting = asyncio.ensure_future(client.put("a", "2"))
            await asyncio.sleep(0.05)
            network.reset()
            with pytest.raises(ConnectionLostError) as caught:
                await putting
            assert caught.value.maybe_applied
            await client.put("a", "3")


async def test_a_link_that_refuses_leaves_the_others() -> None:
    async with FakeEtcd(members=3) as fake:
        network = fake.network()
        async with fake.client(engine=network.engine, timeout=1.0) as client:
            for link in network.links[1:]:
                link.refuse()
            await client.put("a", "1")
            network.refuse()
            with pytest.raises(EtcdError):
                await client.put("a", "2")
            network.heal()
            await asyncio.sleep(30.0)  # as long as the client waits between two attempts to connect
            await client.put("a", "3")
        assert fake.keys() == {b"a": b"3"}


async def test_latency_delays_requests_and_answers_and_keeps_the_order_of_events() -> None:
    async with FakeEtcd() as fake:
        network = fake.network()
        (link,) = network.links
        async with fake.client(engine=network.engine) as client, client.watch("a") as watcher:
            link.latency = 0.2
            began = asyncio.get_running_loop().time()
            await client.get("a")
            took = asyncio.get_running_loop().time() - began
            assert 0.0 < took <= 0.8
            for number in range(20):
                fake.load({"a": str(number)})
            assert [int((await anext(watcher)).value) for _ in range(20)] == list(range(20))
            assert asyncio.get_running_loop().time() > began + took


async def test_a_stream_that_ended_unheard_ends_when_its_connection_is_given_up() -> None:
    async with FakeEtcd(members=3) as fake:
        network = fake.network()
        async with fake.client(engine=network.engine) as client, client.watch("a") as watcher:
            network.black_hole()
            for member in fake.members:
                member.isolate()  # the member ends the stream, unheard
            await asyncio.sleep(60.0)  # until the connection is given up
            for member in fake.members:
                member.heal()
            network.heal()
            await asyncio.sleep(30.0)
            fake.load({"a": "1"})
            assert (await asyncio.wait_for(anext(watcher), 30.0)).value == b"1"


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_an_answer_that_is_late_does_not_come_through_silence(is_frozen: bool) -> None:
    """The answer was on its way when the network, or the member, went silent."""
    async with FakeEtcd() as fake:
        network = fake.network()
        async with fake.client(engine=network.engine, timeout=None) as client:
            with fake.fault("KV/Put", delay=1.0):
                putting = asyncio.ensure_future(client.put("a", "1"))
                await asyncio.sleep(0.5)
            fail, heal = network.black_hole, network.heal
            if is_frozen:
                fail, heal = fake.members[0].pause, fake.members[0].resume
            fail()
            await asyncio.sleep(1.0)
            assert not putting.done()
            heal()
            await asyncio.wait_for(putting, 0.5)
            assert fake.keys() == {b"a": b"1"}
