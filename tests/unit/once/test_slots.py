"""once/slots.py: SlotPool: turns, places and leases, in virtual time, on a store that only creates slots."""

import asyncio
from typing import TYPE_CHECKING, Any, Self

import pytest

from etcd_aio import Header, TxnResult
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ClientUsageError, EtcdTimeoutError, LeaseLostError, LeaseNotFoundError, NoLeaderError
from etcd_aio.lease import LeaseTimeToLiveResult
from etcd_aio.once.slot import Slot, SlotState
from etcd_aio.once.slots import SlotPool
from tests.support.virtual_time import tasks, turns

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class FakeLease:
    def __init__(self, store: "FakeStore", number: int) -> None:
        self.id = number
        self._store = store
        self.on_end: Callable[[LeaseLostError | None], None] = lambda _: None

    async def begin(self) -> Self:
        await asyncio.sleep(0.1)
        if self._store.failures:
            raise self._store.failures.pop(0)
        self._store.granted.append(self)
        return self

    async def close(self) -> None:
        self.on_end(None)
        self._store.revoked.append(self.id)

    def lose(self) -> None:
        self.on_end(LeaseLostError("lost in this test"))

    async def revoke(self, *, timeout: float) -> None:
        self._store.revoked.append(self.id)


class FakeStore:
    """`failures` are raised by the next calls, in turn."""

    def __init__(self) -> None:
        self.granted: list[FakeLease] = []
        self.revoked: list[int] = []
        self.failures: list[Exception] = []
        self.created: list[bytes] = []
        self.is_expired = False
        self._revision = 10
        self.leases = self

    def kept(self, ttl: int, *, timeout: float | None) -> FakeLease:
        assert ttl == 300
        return FakeLease(self, 7 + len(self.granted))

    async def time_to_live(self, lease: int, *, timeout: float | None) -> LeaseTimeToLiveResult:
        return LeaseTimeToLiveResult(Header(), lease, -1 if self.is_expired else 5)

    async def do(self, operation: Any, *, timeout: float | None, retry: str) -> TxnResult:
        await asyncio.sleep(0.1)
        if self.failures:
            raise self.failures.pop(0)
        self._revision += 1
        self.created.append(operation.then[0].key)
        return TxnResult(True, Header(revision=self._revision))


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore()


def pool(store: FakeStore, limit: int = 2) -> SlotPool:
    return SlotPool(store, limit=limit, ttl=300, prefix=b"p/", timeout=5.0)  # type: ignore[arg-type]


def written(slots: SlotPool, slot: Slot, revision: int = 50) -> None:
    slot.move(SlotState.FREE, revision)
    slots.put_back(slot)


async def test_slots_are_created_when_they_are_needed_and_used_again(store: FakeStore) -> None:
    slots = pool(store)
    assert slots.take_free() is None
    first, second = await slots.take(NEVER), await slots.take(NEVER)
    assert store.created == [b"p/7/0", b"p/7/1"]
    assert (first.state, first.number, first.lease) == (SlotState.BUSY, 1, 7)
    written(slots, second)
    assert (slots.count, slots.free_count) == (2, 1)
    assert slots.take_free() is second
    assert (second.number, second.revision, len(store.granted)) == (2, 50, 1)


async def test_those_who_wait_get_slots_in_turn(store: FakeStore) -> None:
    slots = pool(store, limit=1)
    slot = await slots.take(NEVER)
    order: list[int] = []

    async def write(number: int) -> None:
        taken = await slots.take(NEVER)
        order.append(number)
        await turns()
        written(slots, taken)

    writes = [asyncio.create_task(write(number)) for number in range(5)]
    await turns()
    written(slots, slot)
    await asyncio.gather(*writes)
    assert order == [0, 1, 2, 3, 4]
    assert (slots.count, slots.free_count) == (1, 1)


async def test_a_caller_that_is_cancelled_with_a_slot_in_hand_passes_it_on(store: FakeStore) -> None:
    slots = pool(store, limit=1)
    slot = await slots.take(NEVER)
    first, second = (asyncio.create_task(slots.take(NEVER)) for _ in range(2))
    await turns()
    written(slots, slot)
    first.cancel()  # in the same turn: it has got the slot, and has not run yet
    assert await second is slot
    assert first.cancelled()


async def test_a_caller_that_is_cancelled_with_a_place_in_hand_passes_it_on(store: FakeStore) -> None:
    slots = pool(store, limit=1)
    slot = await slots.take(NEVER)
    first, second = (asyncio.create_task(slots.take(NEVER)) for _ in range(2))
    await turns()
    slot.move(SlotState.UNSETTLED)
    slot.move(SlotState.GONE)
    slots.put_back(slot)
    first.cancel()
    assert (await second).key == b"p/7/1", "a key is never used for two slots"
    assert slots.count == 1


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_a_creation_that_does_not_end_well_leaves_its_place(store: FakeStore, how: str) -> None:
    slots = pool(store, limit=1)
    first, second = (asyncio.create_task(slots.take(NEVER)) for _ in range(2))
    await asyncio.sleep(0.15)
    if how == "cancelled":
        first.cancel()
    else:
        store.failures.append(NoLeaderError())
    assert (await second).key == b"p/7/1"
    [result] = await asyncio.gather(first, return_exceptions=True)
    assert isinstance(result, asyncio.CancelledError | NoLeaderError)
    assert slots.count == 1


async def test_a_wait_ends_at_its_deadline(store: FakeStore) -> None:
    slots = pool(store, limit=1)
    slot = await slots.take(NEVER)
    now = asyncio.get_running_loop().time()
    with pytest.raises(EtcdTimeoutError, match="none of the 1 slots"):
        await slots.take(now + 1)
    assert asyncio.get_running_loop().time() == pytest.approx(now + 1)
    written(slots, slot)
    assert slots.take_free() is slot


async def test_a_lost_lease_ends_its_slots(store: FakeStore) -> None:
    slots = pool(store)
    busy, free = await slots.take(NEVER), await slots.take(NEVER)
    written(slots, free)
    store.granted[0].lose()
    await turns()
    assert free.state is SlotState.GONE
    assert (slots.count, slots.lease_losses, slots.take_free()) == (1, 1, None)
    assert store.revoked == [7], "it may still be there"
    assert await slots.is_lost(busy, NEVER)
    new = await slots.take(NEVER)
    assert (new.key, new.lease) == (b"p/8/0", 8)
    written(slots, busy)
    assert busy.state is SlotState.GONE
    assert slots.count == 1


async def test_a_lease_that_the_server_does_not_have_is_lost(store: FakeStore) -> None:
    slots = pool(store)
    slot = await slots.take(NEVER)
    assert not await slots.is_lost(slot, NEVER)
    store.is_expired = True
    assert await slots.is_lost(slot, NEVER)
    assert slots.lease_losses == 1
    store.failures.append(LeaseNotFoundError())
    store.granted[0].lose()
    await turns()
    assert slots.lease_losses == 1, "it is counted once"


async def test_a_slot_is_created_under_another_lease_if_its_own_is_gone(store: FakeStore) -> None:
    slots = pool(store)
    await slots.take(NEVER)
    store.failures.append(LeaseNotFoundError())
    assert (await slots.take(NEVER)).key == b"p/8/0"
    assert slots.lease_losses == 1


async def test_the_close_ends_all_waits_and_revokes_the_lease(store: FakeStore) -> None:
    slots = pool(store, limit=2)
    busy, free = await slots.take(NEVER), await slots.take(NEVER)
    written(slots, free)
    taken = await slots.take(NEVER)
    waiting = asyncio.create_task(slots.take(NEVER))
    await turns()
    await slots.close()
    for wait in (waiting, slots.take(NEVER)):
        with pytest.raises(ClientUsageError, match="has ended"):
            await wait
    assert store.revoked == [7]
    for slot in (busy, taken):
        written(slots, slot)
    assert slots.count == 0
    await turns()
    assert not tasks()


async def test_the_close_ends_a_grant(store: FakeStore) -> None:
    slots = pool(store)
    waiting = asyncio.create_task(slots.take(NEVER))
    await asyncio.sleep(0.05)
    await slots.close()
    with pytest.raises(ClientUsageError, match="has ended"):
        await waiting
    assert slots.count == 0
