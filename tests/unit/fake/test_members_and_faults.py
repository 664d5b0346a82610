"""fake/member.py, fake/cluster.py, fake/faults.py, fake/outcomes.py: members that stop, freeze and lose each other, and
scripted faults, with whole clients.
"""

import asyncio

import pytest

from etcd_aio import Client, ConfigError
from etcd_aio.errors import (
    EtcdError,
    EtcdTimeoutError,
    NoLeaderError,
    RequestDeadlineExceededError,
    UnavailableError,
)
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_a_client_goes_on_when_the_leader_is_killed() -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client:
        await client.put("a", "1")
        assert [member.is_leader for member in fake.members] == [True, False, False]
        fake.members[0].stop()
        await client.put("a", "2")
        assert fake.keys() == {b"a": b"2"}
        assert sum(member.is_leader for member in fake.members[1:]) == 1
        fake.members[0].start()
        async with Client(fake.members[0].endpoint, engine=fake.engine) as other:
            assert (await other.get("a")) is not None


async def test_without_a_majority_nothing_is_written() -> None:
    async with FakeEtcd(members=3) as fake, fake.client(timeout=1.0) as client:
        await client.put("a", "1")
        fake.members[0].stop()
        fake.members[1].stop()
        with pytest.raises(NoLeaderError):
            await client.put("a", "2", retry="never")
        assert fake.keys() == {b"a": b"1"}
        fake.members[1].start()
        await client.put("a", "3", timeout=5.0)
        assert fake.keys() == {b"a": b"3"}


async def test_an_isolated_member_serves_what_it_had_and_its_watches_catch_up() -> None:
    async with FakeEtcd(members=3) as fake, Client(fake.members[2].endpoint, engine=fake.engine) as alone:
        fake.load({"a": "1"})
        alone_too = Client(fake.members[2].endpoint, engine=fake.engine, require_leader=False)
        async with alone_too, alone_too.watch("a") as watch:
            await alone_too.get("a")
            fake.members[2].isolate()
            fake.load({"a": "2"})
            stale = await alone.get("a", serializable=True)
            assert stale is not None
            assert stale.value == b"1"
            with pytest.raises(NoLeaderError):
                await alone.get("a", retry="never", timeout=0.5)
            with pytest.raises(RequestDeadlineExceededError):
                await alone_too.put("a", "3", retry="never", timeout=10.0)
            fake.members[2].heal()
            assert (await anext(watch)).value == b"2"
        found = await alone.get("a")
        assert found is not None
        assert found.value == b"2"


async def test_a_frozen_member_answers_when_it_goes_on() -> None:
    async with FakeEtcd() as fake, fake.client(timeout=None) as client:
        await client.put("a", "1")
        fake.members[0].pause()
        call = asyncio.ensure_future(client.put("a", "2"))
        await asyncio.sleep(1.0)
        assert not call.done()
        fake.members[0].resume()
        await call
        assert fake.keys() == {b"a": b"2"}


async def test_events_wait_for_a_frozen_member_and_come_when_it_goes_on() -> None:
    async with FakeEtcd(members=3) as fake:
        patient = Client(fake.members[2].endpoint, engine=fake.engine, keepalive_time=600.0)
        async with patient, patient.watch("a") as watch:
            fake.members[2].pause()
            fake.load({"a": "1"})
            event = asyncio.ensure_future(anext(watch))
            await asyncio.sleep(1.0)
            assert not event.done()
            fake.members[2].resume()
            await asyncio.sleep(1.0)
            assert event.done()
            assert (await event).value == b"1"


async def test_a_new_leader_renews_all_leases() -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client:
        granted = await client.leases.grant(10)
        await fake.advance(8.0)
        fake.elect(fake.members[1])
        await fake.advance(8.0)
        assert (await client.leases.time_to_live(granted.id)).ttl == 2
        await fake.advance(3.0)
        assert (await client.leases.list()).leases == ()


async def test_a_write_whose_answer_is_lost_says_that_it_may_be_applied() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        with (
            fake.fault("KV/Put", status="UNAVAILABLE", after_apply=True, times=1) as fault,
            pytest.raises(UnavailableError) as caught,
        ):
            await client.put("a", "2", retry="never")
        assert caught.value.maybe_applied
        assert fault.hits == 1
        assert fake.keys() == {b"a": b"2"}
        with fake.fault("KV/Put", reset=True, times=1), pytest.raises(EtcdError) as lost:
            await client.put("a", "3", retry="never")
        assert lost.value.maybe_applied
        assert fake.keys() == {b"a": b"2"}


async def test_a_reason_of_etcd_may_be_injected_and_ends_with_the_block() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with fake.fault("KV/Range", status="NO_LEADER"), pytest.raises(NoLeaderError):
            await client.get("a", timeout=0.5)
        assert await client.get("a") is None
        with pytest.raises(ConfigError, match="neither a gRPC status nor"), fake.fault("KV/Put", status="BROKEN"):
            pass


async def test_late_answers_none_and_goaway() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        loop = asyncio.get_running_loop()
        await client.put("a", "1")
        with fake.fault("KV/Put", delay=3.0):
            begun = loop.time()
            await client.put("a", "2")
            assert loop.time() - begun >= 2.99
        with fake.fault("KV/Put", hang=True), pytest.raises(EtcdTimeoutError):
            await client.put("a", "3", retry="never", timeout=1.0)
        assert fake.keys() == {b"a": b"3"}
        with fake.fault("KV/Put", goaway=True, times=1):
            await client.put("a", "4")
        await client.put("a", "5")
        assert fake.keys() == {b"a": b"5"}


async def test_a_watch_whose_stream_is_cut_misses_nothing() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with fake.fault("Watch/Watch", cut_after=3, times=4) as fault:
            async with client.watch("a") as watch:
                for number in range(10):
                    await client.put("a", f"{number}")
                seen: list[bytes] = []
                while len(seen) < 10:
                    seen.append((await anext(watch)).value)
        assert seen == [b"%d" % number for number in range(10)]
        assert fault.hits >= 2


@pytest.mark.virtual_time
async def test_a_member_without_a_leader_renews_no_lease() -> None:
    async with FakeEtcd(members=3) as fake:
        network = fake.network()
        async with fake.client(engine=network.engine, timeout=1.0) as client:
            lease = await client.leases.grant(5)
            await client.put("a", "1", lease=lease.id)
            fake.members[2].isolate()
            for link in network.links[:2]:
                link.refuse()
            with pytest.raises(EtcdError):
                await client.leases.keep_alive_once(lease.id)
            await asyncio.sleep(5.5)
            assert fake.keys() == {}


async def test_streams_that_hang_or_are_cut_before_their_first_message() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.wait_ready()
        with fake.fault("Watch/Watch", hang=True, times=1) as hang:
            late = asyncio.ensure_future(client.watch("a").__aenter__())
            await asyncio.sleep(1.0)
            assert (late.done(), hang.hits, fake.watchers) == (False, 1, ())
            late.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late
        with fake.fault("Watch/Watch", reset=True, times=2) as reset:
            async with client.watch("a") as watch:
                fake.load({"a": "1"})
                assert (await anext(watch)).value == b"1"
        assert reset.hits == 2
