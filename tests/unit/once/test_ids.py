"""once/ids.py: the lease of ids: which lease is lost, when it is granted, and for how long."""

import asyncio

import pytest

from etcd_aio import Header, op
from etcd_aio.base.deadline import NEVER
from etcd_aio.lease import LeaseGrantResult, LeaseTimeToLiveResult
from etcd_aio.once.guarded import SingleWrite
from etcd_aio.once.ids import Ids

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

WINDOW = 100
WRITE = SingleWrite((op.put("k", "v"),))


class FakeStore:
    """Grants leases 1, 2, and so on; those in `expired` are gone."""

    def __init__(self) -> None:
        self.granted: list[int] = []
        self.expired: set[int] = set()
        self.asked: list[int] = []
        self.failures: list[Exception] = []
        self.leases = self

    async def grant(self, ttl: int, *, timeout: float | None) -> LeaseGrantResult:
        await asyncio.sleep(0.1)
        if self.failures:
            raise self.failures.pop(0)
        self.granted.append(ttl)
        return LeaseGrantResult(Header(), len(self.granted), ttl)

    async def time_to_live(self, lease: int, *, timeout: float | None) -> LeaseTimeToLiveResult:
        self.asked.append(lease)
        await asyncio.sleep(0.1)
        return LeaseTimeToLiveResult(Header(), lease, -1 if lease in self.expired else 5)


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore()


def ids_of(store: FakeStore, timeout: float | None = 5.0) -> Ids:
    return Ids(store, prefix=b"ids/", window=WINDOW, timeout=timeout)  # type: ignore[arg-type]


def in_a_while() -> float:
    return asyncio.get_running_loop().time() + 10


async def test_the_lease_of_each_write_is_judged_by_itself(store: FakeStore) -> None:
    ids = ids_of(store)
    old = await ids.key("a", WRITE, in_a_while())
    assert not await ids.is_lost(old, in_a_while())
    store.expired.add(old.lease)
    assert await asyncio.gather(*(ids.is_lost(old, in_a_while()) for _ in range(3))) == [True] * 3
    assert await ids.is_lost(old, in_a_while()), "another write has found out before"
    new = await ids.key("a", WRITE, in_a_while())
    assert (old.lease, new.lease) == (1, 2)
    asked = len(store.asked)
    assert await ids.is_lost(old, in_a_while()), "there is a new one already"
    assert len(store.asked) == asked, "the server need not be asked"
    assert not await ids.is_lost(new, in_a_while())


@pytest.mark.parametrize("seconds", [0.5, 30.0, 3600.0])
async def test_the_window_begins_at_the_latest_end_of_the_call(store: FakeStore, seconds: float) -> None:
    """Also if one lease serves calls of all lengths, and is nearly used up."""
    ids, loop = ids_of(store), asyncio.get_running_loop()
    began = loop.time()
    granted: list[float] = []  # when, at the earliest
    for number in range(300):
        deadline = loop.time() + (seconds if number % 3 else 0.2)
        begins = loop.time()
        lease = (await ids.key("a", WRITE, deadline)).lease
        if lease > len(granted):
            granted.append(begins)
        assert granted[lease - 1] + store.granted[lease - 1] >= deadline + WINDOW
        await asyncio.sleep(1)
    assert len(store.granted) <= (loop.time() - began) / WINDOW + 2, "a lease serves for a window"


async def test_calls_of_different_lengths_share_a_grant_that_is_long_enough_for_them(store: FakeStore) -> None:
    ids, now = ids_of(store), asyncio.get_running_loop().time()
    short = asyncio.create_task(ids.key("a", WRITE, now + 1))
    await asyncio.sleep(0.05)
    long = asyncio.create_task(ids.key("b", WRITE, now + 1000))
    assert ((await short).lease, (await long).lease) == (1, 2)
    assert store.granted == [2 * WINDOW + 1, 2 * WINDOW + 1000]
    assert (await ids.key("c", WRITE, now + 1)).lease == 2


async def test_a_call_without_a_limit_counts_as_one_of_a_day(store: FakeStore) -> None:
    ids = ids_of(store)
    await ids.key("a", WRITE, NEVER)
    await ids.key("a", WRITE, asyncio.get_running_loop().time() + 1e12)
    assert store.granted == [2 * WINDOW + 24 * 3600]
