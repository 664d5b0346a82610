"""lease/pool.py: no two share a lease, and one in doubt is revoked."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from etcd_aio.errors import ClientClosedError, EtcdError, LeaseLostError, NoSpaceError, UnavailableError
from etcd_aio.lease import pool as pool_module
from etcd_aio.lease.pool import LeasePool
from tests.support.leases import FakeLeases
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

if TYPE_CHECKING:
    from etcd_aio.lease import Loan

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

ROUNDS = 60


@pytest.fixture
async def members() -> FakeLeases:
    return FakeLeases()


@pytest.fixture
async def pool(members: FakeLeases) -> AsyncIterator[LeasePool]:
    pool = LeasePool(members.keeper)
    yield pool
    await pool.aclose()


async def test_a_clean_lease_is_lent_again(members: FakeLeases, pool: LeasePool) -> None:
    first = await pool.borrow(10)
    id_ = first.id
    first.give_back()
    second = await pool.borrow(10)
    assert second.id == id_
    assert members.calls.count("Grant") == 1


async def test_leases_of_different_ttls_are_kept_apart(pool: LeasePool) -> None:
    first = await pool.borrow(10)
    first.give_back()
    second = await pool.borrow(20)
    assert (second.ttl, second.id == first.id) == (20, False)


async def test_a_discarded_lease_is_revoked(members: FakeLeases, pool: LeasePool) -> None:
    first = await pool.borrow(10)
    await first.revoke()
    assert members.leases == {}
    assert (await pool.borrow(10)).id != first.id


async def test_a_revocation_that_fails_is_repeated(
    members: FakeLeases, pool: LeasePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await pool.borrow(10)
    members.failures.extend([UnavailableError("a"), UnavailableError("b")])
    await first.revoke()
    assert members.calls.count("Revoke") == 3
    assert members.leases == {}


async def test_a_lost_lease_is_told_to_its_holder_and_never_lent_again(members: FakeLeases, pool: LeasePool) -> None:
    told: list[LeaseLostError] = []
    first = await pool.borrow(10)
    first.on_loss(told.append)
    del members.leases[first.id]
    await asyncio.sleep(10)
    assert len(told) == 1
    assert first.is_lost
    assert first.remaining == 0
    again: list[LeaseLostError] = []
    first.on_loss(again.append)
    assert again == told, "who asks late is told at once"
    first.give_back()
    assert (await pool.borrow(10)).id != first.id


async def test_an_idle_lease_that_is_lost_is_not_lent(members: FakeLeases, pool: LeasePool) -> None:
    first = await pool.borrow(10)
    first.give_back()
    del members.leases[first.id]
    await asyncio.sleep(10)
    assert (await pool.borrow(10)).id != first.id


async def test_an_idle_lease_is_not_lent_after_a_stop_of_the_loop(members: FakeLeases, pool: LeasePool) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    first = await pool.borrow(10)
    first.give_back()
    loop.block(20)
    assert (await pool.borrow(10)).id != first.id


async def test_an_idle_lease_whose_renewal_is_overdue_is_lent_when_it_is_renewed(pool: LeasePool) -> None:
    first = await pool.borrow(10)
    first.give_back()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.block(6.5)  # nothing ran meanwhile: 3.5 s are left, and a block may be lost 3.3 s before the end
    second = await pool.borrow(10)
    assert second.id != first.id
    assert not first.is_lost
    await asyncio.sleep(0.1)
    third = await pool.borrow(10)
    assert third.id == first.id


async def test_idle_leases_are_few_and_end_after_a_while(members: FakeLeases, pool: LeasePool) -> None:
    leases = [await pool.borrow(10) for _ in range(12)]
    for lease in leases:
        lease.give_back()
    await asyncio.sleep(1)
    assert len(members.leases) == pool_module.MAX_IDLE
    await asyncio.sleep(pool_module.IDLE_SECONDS - 2)
    used = await pool.borrow(10)
    assert len(members.leases) == pool_module.MAX_IDLE, "they are renewed"
    used.give_back()
    await asyncio.sleep(2)
    assert list(members.leases) == [used.id]
    await asyncio.sleep(pool_module.IDLE_SECONDS)
    assert members.leases == {}


async def test_a_refused_grant_is_raised_and_one_of_a_member_in_trouble_repeated(
    members: FakeLeases, pool: LeasePool
) -> None:
    members.failures.append(NoSpaceError())
    with pytest.raises(NoSpaceError):
        await pool.borrow(10)
    members.failures.extend([UnavailableError("a"), UnavailableError("b")])
    assert (await pool.borrow(10)).ttl == 10
    members.failures.extend([UnavailableError(str(number)) for number in range(100)])
    with pytest.raises(UnavailableError):
        await pool.borrow(10)
    members.failures.clear()


async def test_a_lease_whose_borrower_is_cancelled_becomes_an_idle_one(members: FakeLeases, pool: LeasePool) -> None:
    task = asyncio.create_task(pool.borrow(10))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(1)
    (granted,) = members.leases
    assert (await pool.borrow(10)).id == granted


async def test_an_adoption_that_is_cancelled_leaves_the_lease_alone(members: FakeLeases, pool: LeasePool) -> None:
    members.leases[7] = (10, members.now() + 10)
    adoption = asyncio.create_task(pool.adopt(7))
    await asyncio.sleep(members.latency / 2)
    adoption.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adoption
    await asyncio.sleep(60)
    assert members.calls.count("KeepAlive") <= 1, "it is not kept alive"
    assert members.ttl_of(7) == 0
    assert "Revoke" not in members.calls


async def test_closing_revokes_idle_leases_and_tells_the_holders(members: FakeLeases, pool: LeasePool) -> None:
    idle, lent = await pool.borrow(10), await pool.borrow(10)
    idle.give_back()
    told: list[LeaseLostError] = []
    lent.on_loss(told.append)
    await pool.aclose()
    assert list(members.leases) == [lent.id]
    (error,) = told
    assert isinstance(error.__cause__, ClientClosedError)
    with pytest.raises(ClientClosedError):
        await pool.borrow(10)
    await lent.revoke()
    assert members.leases == {}
    await asyncio.sleep(1)
    assert tasks() == set()


async def test_a_lease_that_is_given_back_while_the_pool_closes_is_revoked(
    members: FakeLeases, pool: LeasePool
) -> None:
    """Its holder had begun to release, so being told changes nothing for it."""

    async def release() -> None:
        lease = await pool.borrow(10)
        lease.on_loss(None)
        releases.set()
        await asyncio.sleep(0.1)  # the key is being deleted
        lease.give_back()

    releases = asyncio.Event()
    task = asyncio.create_task(release())
    await releases.wait()
    await pool.aclose()
    await task
    assert members.leases == {}


async def test_closing_waits_for_other_tasks_but_not_for_its_own(members: FakeLeases, pool: LeasePool) -> None:
    loop = asyncio.get_running_loop()

    async def hold() -> None:
        lease = await pool.borrow(10)
        lost = loop.create_future()
        lease.on_loss(lost.set_result)
        holds.set()
        await lost
        again.append(asyncio.create_task(pool.aclose()))
        await asyncio.sleep(0.1)
        await lease.revoke()

    holds, again = asyncio.Event(), list[asyncio.Task[None]]()
    task = asyncio.create_task(hold())
    await holds.wait()
    own = await pool.borrow(10)
    began = loop.time()
    await pool.aclose()
    await again[0]
    assert task.done()
    assert 0.1 <= loop.time() - began < pool_module.CLOSE_SECONDS, "it waited for its own"
    assert list(members.leases) == [own.id]


async def test_a_lease_that_is_granted_while_closing_is_not_lent(members: FakeLeases, pool: LeasePool) -> None:
    task = asyncio.create_task(pool.borrow(10))
    await turns()
    await pool.aclose()
    with pytest.raises(ClientClosedError):
        await task
    await asyncio.sleep(1)
    assert members.leases == {}


async def test_closing_is_bounded(members: FakeLeases, pool: LeasePool) -> None:
    lease = await pool.borrow(10)
    lease.give_back()
    members.latency = 60.0
    began = asyncio.get_running_loop().time()
    await pool.aclose()
    assert asyncio.get_running_loop().time() - began == pytest.approx(pool_module.CLOSE_SECONDS)


async def test_the_timer_of_idle_leases_does_not_come_back_at_the_same_instant(
    members: FakeLeases, pool: LeasePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of a time and the idle seconds may be rounded down: then less than the idle seconds have passed at it."""
    loop = asyncio.get_running_loop()
    lease = await pool.borrow(10)
    while (loop.time() + pool_module.IDLE_SECONDS) - pool_module.IDLE_SECONDS >= loop.time():  # noqa: ASYNC110 - time is searched
        await asyncio.sleep(0.0123)
    turns = 0
    retire = pool._revoke_idle

    def counted() -> None:
        nonlocal turns
        turns += 1
        assert turns < 9, "a busy loop"
        retire()

    monkeypatch.setattr(pool, "_revoke_idle", counted)
    lease.give_back()
    await asyncio.sleep(pool_module.IDLE_SECONDS + 1)
    assert (turns, members.leases) == (1, {})


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_no_two_holders_share_a_lease_and_none_in_doubt_comes_back(seed: int, members: FakeLeases) -> None:
    """Random borrowers that end cleanly, in doubt, cancelled or lost, on a cluster with random trouble."""
    chance = random.Random(seed)
    pool = LeasePool(members.keeper)
    held: dict[int, Loan] = {}
    in_doubt: set[int] = set()

    async def borrower() -> None:
        for _ in range(chance.randrange(1, 6)):
            await asyncio.sleep(chance.choice([0, 0.01, 1.0, 7.0, 31.0]))
            lease = await pool.borrow(chance.choice([4, 10]))
            assert lease.id not in held
            assert lease.id not in in_doubt
            held[lease.id] = lease
            try:
                await asyncio.sleep(chance.choice([0, 0.01, 3.0, 12.0]))
            finally:
                del held[lease.id]
                if lease.is_lost or chance.random() < 0.3:
                    in_doubt.add(lease.id)
                    pool.run(lease.revoke(), "discard")
                else:
                    lease.give_back()

    async def trouble() -> None:
        for _ in range(20):
            await asyncio.sleep(chance.uniform(0, 5))
            match chance.randrange(4):
                case 0 if members.leases:
                    del members.leases[chance.choice(list(members.leases))]
                case 1:
                    members.failures.append(UnavailableError("trouble"))
                case 2:
                    chance.choice(workers).cancel()
                case _:
                    pass

    workers = [asyncio.create_task(borrower()) for _ in range(8)]
    troubled = asyncio.create_task(trouble())
    with suppress(EtcdError):
        await asyncio.wait([*workers, troubled])
    for worker in workers:
        assert worker.cancelled() or worker.exception() is None or isinstance(worker.exception(), EtcdError)
    members.failures.clear()
    await asyncio.sleep(pool_module.IDLE_SECONDS + 60)
    assert not held
    assert not [one for one in members.leases if members.ttl_of(one)], "every lease is revoked or has expired"
    await pool.aclose()
    await asyncio.sleep(1)
    assert tasks() == set()
    assert timers() == 0


async def test_leases_of_a_store_that_may_be_another_one_are_not_lent_again(
    members: FakeLeases, pool: LeasePool
) -> None:
    idle, lent = await pool.borrow(10), await pool.borrow(10)
    idle.give_back()
    told: list[str] = []
    lent.on_doubt(lambda: told.append("lent"))
    members.doubts.tell()
    await asyncio.sleep(1)
    assert told == ["lent"]
    assert set(members.leases) == {lent.id}
    lent.give_back()
    await asyncio.sleep(1)
    assert not members.leases
    assert not members.doubts
    again = await pool.borrow(10)
    again.give_back()
    assert (await pool.borrow(10)).id == again.id, "of the same store"
