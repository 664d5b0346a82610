"""fake/fake_etcd.py, fake/engine.py, fake/dispatch.py, fake/kv_service.py: FakeEtcd with whole clients."""

import asyncio

import pytest

from etcd_aio import ConfigError, Key, KeyValue, SortBy, op
from etcd_aio.errors import KeyNotFoundError
from etcd_aio.fake import FakeEtcd
from tests.support.loops import IS_EAGER

pytestmark = pytest.mark.anyio


async def test_a_client_writes_and_the_test_looks_inside() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        assert fake.keys() == {b"a": b"1"}
        assert fake.load({"b/1": "2", "b/2": "3"}) == fake.revision == 3
        assert await client.get("b/2") == KeyValue(b"b/2", b"3", 3, 3, 1, 0)
        assert fake.keys("b/") == {b"b/1": b"2", b"b/2": b"3"}
        outcome = await client.txn().when(Key("a").version == 1).then(op.put("a", "2"), op.get("b/1")).commit()
        assert outcome.succeeded
        assert fake.keys("a") == {b"a": b"2"}
        (versions,) = await client.versions()
        assert (versions.server, versions.cluster) == ("3.7.3", "3.7.0")


async def test_two_fakes_never_meet() -> None:
    async with FakeEtcd() as one, FakeEtcd() as other, one.client() as first, other.client() as second:
        await first.put("a", "1")
        assert await second.get("a") is None
        assert other.revision == 1


async def test_leases_expire_when_the_test_lets_time_pass() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        granted = await client.leases.grant(5)
        await client.put("a", "1", lease=granted.id)
        await fake.advance(4.9)
        assert fake.keys() == {b"a": b"1"}
        await fake.advance(0.6)
        assert fake.keys() == {}


@pytest.mark.virtual_time
async def test_leases_expire_by_the_clock_of_the_loop_too() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        async with client.lease(5) as lease:
            await client.put("a", "1", lease=lease.id)
            await asyncio.sleep(3600)
            assert fake.keys() == {b"a": b"1"}, "the client renews it"
        assert fake.keys() == {}
        granted = await client.leases.grant(5)
        await client.put("b", "1", lease=granted.id)
        await asyncio.sleep(5.5)
        assert fake.keys() == {}


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a fake etcd can be 3\.4, 3\.5, 3\.6, 3\.7; got '2\.3'"):
        FakeEtcd("2.3")


async def test_errors_are_those_of_etcd() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(KeyNotFoundError, match="etcdserver: key not found"):
            await client.put("a", ignore_value=True)


async def test_what_is_in_flight_at_once_is_served_in_an_order_that_the_seed_decides() -> None:
    async def order(seed: int) -> tuple[bytes, ...]:
        async with FakeEtcd(seed=seed) as fake, fake.client() as client:
            await client.put("warm", "up")
            await asyncio.gather(*(client.put(f"{number}", "") for number in range(8)))
            found = await client.range("0", range_end="9", sort_by=SortBy.MOD_REVISION)
            return tuple(one.key for one in found)

    orders = [await order(seed) for seed in (1, 2, 3, 1)]
    assert orders[0] == orders[3]
    assert len(set(orders)) == 3


async def test_no_answer_comes_in_the_step_of_its_request() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        call = asyncio.ensure_future(client.put("a", "2"))
        if not IS_EAGER:  # then it has sent its request by now
            await asyncio.sleep(0)
        assert fake.keys() == {b"a": b"1"}
        await call
        assert fake.keys() == {b"a": b"2"}


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_ten_thousand_leases_expire_one_after_the_other() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(client.leases.grant(10) for _ in range(10_000)))
        granted_at = loop.time()
        left = [10_000]
        while left[-1]:
            await asyncio.sleep(0.5)
            left.append(len(fake._cluster.leases.all()))
            assert left[-1] == 10_000 or loop.time() >= granted_at + 10, "never early"
            assert left[-1] >= left[max(len(left) - 3, 0)] - 1000, "at most a thousand in a second"
        assert 19.5 <= loop.time() - granted_at <= 21


@pytest.mark.virtual_time
async def test_a_lease_is_never_gone_before_its_ttl_and_always_a_second_later() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        loop = asyncio.get_running_loop()
        ends = {}
        for number in range(40):
            granted = await client.leases.grant(2 + number % 5)
            await client.put(f"{number}", "", lease=granted.id)
            ends[b"%d" % number] = loop.time() + granted.ttl
            await asyncio.sleep(0.13)
        while fake.keys():
            found = fake.keys()
            assert all(loop.time() <= ends[key] + 1 for key in found)
            assert all(key in found for key, end in ends.items() if loop.time() < end - 0.2)
            await asyncio.sleep(0.1)
