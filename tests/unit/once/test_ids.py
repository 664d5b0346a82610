"""The lease of ids: which lease is lost, when it is granted, and for how long."""

import asyncio

import pytest

from etcd_aio import Header, LeaseGrantResult, LeaseTimeToLiveResult, op
from etcd_aio.once.guarded import SingleWrite
from etcd_aio.once.ids import Ids

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

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
    return Ids(store, prefix=b"ids/", window=100, timeout=timeout)  # type: ignore[arg-type]


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
