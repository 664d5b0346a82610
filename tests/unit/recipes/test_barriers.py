"""recipes/barrier/: barriers and double barriers, on a fake."""

import asyncio
from typing import Any

import pytest

from etcd_aio import UNSET, Client, InvalidRequestError, RetryMode, Timeout, op
from etcd_aio.errors import (
    BarrierError,
    BarrierTimeoutError,
    ClientUsageError,
    EmptyKeyError,
    EtcdError,
    LockLostError,
    NotHeldError,
    TooManyParticipantsError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Barrier, DoubleBarrier
from etcd_aio.recipes.barrier import double_barrier
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_waiting_ends_with_the_release() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        barrier = Barrier(client, "b")
        await Barrier(other, "b").wait_released()
        assert await barrier.hold(value="host-1")
        assert not await Barrier(other, "b").hold()
        assert fake.keys() == {b"b": b"host-1"}
        waiting = [asyncio.ensure_future(Barrier(other, "b").wait_released(timeout=60)) for _ in range(100)]
        await asyncio.sleep(1.0)
        fake.load({"b2": "a key with the same beginning"})
        fake.compact(fake.revision)
        assert not any(one.done() for one in waiting)
        assert await barrier.release()
        await asyncio.gather(*waiting)
        assert not fake.watchers or not [one for one in fake.watchers if one.key == b"b"]


async def test_a_look_without_an_answer_does_not_hold_it_up_for_ever() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        assert await Barrier(other, "b").hold()
        with fake.fault("KV/Range", hang=True, times=1) as fault:
            waits = [asyncio.create_task(Barrier(client, "b").wait_released())]
            await asyncio.sleep(1.0)
            assert fault.hits == 1
        with fake.fault("KV/Range", hang=True, times=1) as fault:
            waits.append(asyncio.create_task(client.wait_deleted("b")))
            await asyncio.sleep(100.0)
            assert fault.hits == 1
        assert not any(wait.done() for wait in waits)
        await other.delete("b")
        async with asyncio.timeout(60):
            await asyncio.gather(*waits)


async def test_who_may_release() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        one, two = Barrier(client, "b"), Barrier(client, "b")
        with pytest.raises(BarrierError, match="force=True"):
            await two.release()
        assert not await two.release(force=True)
        await one.hold()
        with pytest.raises(BarrierError):
            await two.release()
        assert await two.release(force=True)
        await two.hold()
        assert not await one.release(), "what it held is over, and the present holder's key stays"
        assert fake.keys() == {b"b": b""}
        with pytest.raises(BarrierError):
            await one.release()
        with pytest.raises(BarrierTimeoutError, match="not released in time"):
            await one.wait_released(timeout=0.5)


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_lost_answer_of_hold(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client(retry="always") as client, client.exactly_once() as once:
        barrier = Barrier(client, "b")
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1), pytest.raises(EtcdError) as raised:
            await barrier.hold()
        assert raised.value.maybe_applied
        assert await barrier.hold() is not is_applied
        await barrier.release(force=True)
        exact = Barrier(client, "b", writer=once)
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            assert await exact.hold()
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            assert await exact.release() is not is_applied, "a repeated release cannot tell its first copy"
        assert fake.keys("b") == {}


async def test_with_a_lease_it_ends_with_its_holder_and_finds_its_own_key() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        barrier = Barrier(client, "b")
        async with client.lease(10) as lease:
            with fake.fault("KV/Txn", reset=True, after_apply=True, times=1), pytest.raises(EtcdError):
                await barrier.hold(lease=lease)
            assert await barrier.hold(lease=lease)
            assert not await barrier.hold(lease=lease)
        await barrier.wait_released(timeout=1)
        assert not await barrier.release()


# Double barriers.


async def take_part(client: Client, count: int, log: list[str], name: str = "d", **options: Any) -> None:
    async with DoubleBarrier(client, name, count=count, **options):
        log.append("in")
    log.append("out")


async def test_they_enter_and_leave_together() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        for _ in range(3):  # the same name, again and again
            log: list[str] = []
            first = [asyncio.ensure_future(take_part(client, 5, log)) for _ in range(4)]
            await asyncio.sleep(5.0)
            assert log == []
            inside = asyncio.Event()
            async with DoubleBarrier(client, "d", count=5):
                inside.set()
                await asyncio.sleep(5.0)
                assert log == ["in"] * 4
            await asyncio.gather(*first)
            assert log == ["in"] * 4 + ["out"] * 4
            assert fake.keys() == {}


async def test_a_hundred() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        log: list[str] = []
        await asyncio.gather(*(take_part(client, 100, log) for _ in range(100)))
        assert log == ["in"] * 100 + ["out"] * 100
        assert fake.keys() == {}


async def test_one_that_comes_while_ready_is_on_its_way_does_not_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        put_ready = double_barrier._Participation._open
        slow = asyncio.Event()

        async def late(self: Any, others: Any) -> None:
            await slow.wait()
            await put_ready(self, others)

        monkeypatch.setattr(double_barrier._Participation, "_open", late)
        look = double_barrier._Participation._enter_once
        third = asyncio.Event()

        async def slow_look(self: Any) -> bool:
            if third.is_set():
                third.clear()
                await asyncio.sleep(5)
            return await look(self)

        monkeypatch.setattr(double_barrier._Participation, "_enter_once", slow_look)
        inside: list[int] = []
        may_go = asyncio.Event()

        async def stay(number: int) -> None:
            async with DoubleBarrier(client, "d", count=2):
                inside.append(number)
                await may_go.wait()

        two = [asyncio.ensure_future(stay(number)) for number in range(2)]
        await asyncio.sleep(1)
        third.set()
        more = asyncio.ensure_future(stay(3))  # its key is there, and it looks later
        await asyncio.sleep(1)
        assert len(fake.keys("d/waiters/")) == 3
        slow.set()
        await asyncio.sleep(10)
        assert sorted(inside) == [0, 1]
        with pytest.raises(TooManyParticipantsError):
            await more
        may_go.set()
        await asyncio.gather(*two)
        assert fake.keys() == {}


async def test_one_more_than_the_count_is_refused_and_the_rest_enters() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        log: list[str] = []
        results = await asyncio.gather(*(take_part(client, 4, log) for _ in range(9)), return_exceptions=True)
        refused = [one for one in results if isinstance(one, TooManyParticipantsError)]
        assert len(log) == 2 * (9 - len(refused))
        assert len(log) // 2 in (4, 8)
        await turns(50)
        assert fake.keys() == {}


async def test_an_old_ready_lets_no_one_in() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("d/ready", "")
        with pytest.raises(BarrierTimeoutError, match="double barrier 'd' was not complete in time"):
            await take_part(client, 2, [], timeout=1.0)
        assert fake.keys() == {b"d/ready": b""}
        log: list[str] = []
        await asyncio.gather(*(take_part(client, 2, log) for _ in range(2)))
        assert log == ["in", "in", "out", "out"]


async def test_a_participant_that_gives_up_while_entering_frees_its_place() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        log: list[str] = []
        gone = asyncio.ensure_future(take_part(client, 3, log))
        rest = [asyncio.ensure_future(take_part(client, 3, log)) for _ in range(1)]
        await asyncio.sleep(1.0)
        gone.cancel()
        await asyncio.wait([gone])
        assert len(fake.keys("d/waiters/")) == 1
        rest.append(asyncio.ensure_future(take_part(client, 3, log)))
        await asyncio.sleep(1.0)
        assert log == [], "two of three"
        await take_part(client, 3, log)
        await asyncio.gather(*rest)
        assert sorted(log) == ["in"] * 3 + ["out"] * 3


async def test_ready_is_not_put_if_a_participant_has_gone_since_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        log: list[str] = []
        first = asyncio.ensure_future(take_part(client, 2, log))
        await asyncio.sleep(1.0)
        put_ready = double_barrier._Participation._open

        async def late(self: Any, others: Any) -> None:
            first.cancel()
            await asyncio.wait([first])
            await put_ready(self, others)

        monkeypatch.setattr(double_barrier._Participation, "_open", late)
        second = asyncio.ensure_future(take_part(client, 2, log))
        await asyncio.sleep(1.0)
        monkeypatch.undo()
        assert (log, fake.keys("d/ready")) == ([], {})
        await asyncio.gather(second, take_part(client, 2, log))


async def test_late_copies_of_requests_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        sent: list[op.TxnOp] = []
        send = client.do

        async def do(operation: Any, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Any:
            if isinstance(operation, op.TxnOp):
                sent.append(operation)
            return await send(operation, timeout=timeout, retry=retry)

        monkeypatch.setattr(client, "do", do)
        await asyncio.gather(*(take_part(client, 2, []) for _ in range(2)))
        monkeypatch.undo()
        # A creation is repeated only after an answer was lost, and then its lease is not used again.
        late = [one for one in sent if not any(isinstance(part, op.PutOp) and part.lease for part in one.then)]
        assert any(isinstance(part, op.PutOp) for one in late for part in one.then)
        assert any(isinstance(part, op.DeleteOp) for one in late for part in one.then)
        log: list[str] = []
        waiting = asyncio.ensure_future(take_part(client, 2, log))
        await asyncio.sleep(1.0)
        before = fake.keys()
        for one in late:
            await client.do(one)
        await asyncio.sleep(1.0)
        assert (log, fake.keys()) == ([], before)
        await asyncio.gather(waiting, take_part(client, 2, log))


async def test_a_participant_that_fails_inside_does_not_hold_the_others() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        log: list[str] = []

        async def fail() -> None:
            async with DoubleBarrier(client, "d", count=3):
                raise LookupError

        results = await asyncio.gather(fail(), *(take_part(client, 3, log) for _ in range(2)), return_exceptions=True)
        assert isinstance(results[0], LookupError)
        assert sorted(log) == ["in", "in", "out", "out"]
        await turns(50)
        assert fake.keys("d/waiters/") == {}


@pytest.mark.parametrize("is_oldest", [True, False])
async def test_a_participant_that_dies_counts_as_gone(is_oldest: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as doomed:
        log: list[str] = []
        order = [doomed, client, client] if is_oldest else [client, client, doomed]
        running = []
        for one in order:
            running.append(asyncio.ensure_future(self_destruct(one, log) if one is doomed else take_part(one, 3, log)))
            await asyncio.sleep(1.0)
        dying = running[order.index(doomed)]
        await asyncio.wait([one for one in running if one is not dying], timeout=60)
        assert log == ["in", "in", "out", "out"]
        with pytest.raises(LockLostError):
            await dying


async def self_destruct(client: Client, log: list[str]) -> None:
    """Lose the lease inside, as if the process was stopped."""
    async with DoubleBarrier(client, "d", count=3) as barrier:
        for lease in (await client.leases.list()).leases:
            status = await client.leases.time_to_live(lease, keys=True)
            if barrier.key in status.keys:
                await client.leases.revoke(lease)
        await asyncio.sleep(1e6)


async def test_a_lost_lease_cancels_the_block() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:

        async def lose() -> None:
            async with DoubleBarrier(client, "d", count=1):
                await client.leases.revoke(fake.leases[0].id)
                await asyncio.sleep(1e6)

        with pytest.raises(LockLostError, match="double barrier 'd' is lost"):
            await lose()


@pytest.mark.parametrize("is_applied", [False, True])
async def test_lost_answers_of_any_step(is_applied: bool) -> None:
    for nth in range(12):
        async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
            log: list[str] = []
            running = [asyncio.ensure_future(take_part(client, 3, log)) for _ in range(3)]
            await asyncio.sleep(0.001 * nth)
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
                await asyncio.gather(*running)
            assert sorted(log) == ["in"] * 3 + ["out"] * 3
            await asyncio.sleep(60.0)
            assert fake.keys() == {}


async def test_cancelled_at_any_await_nothing_stays() -> None:
    at, ended = 0, False
    while not ended:
        async with FakeEtcd() as fake, fake.client() as client:
            await client.get("n")
            log: list[str] = []
            running = [asyncio.ensure_future(take_part(client, 2, log)) for _ in range(2)]
            for _ in range(at):
                await asyncio.sleep(0)
            ended = running[0].done()
            running[0].cancel()
            await asyncio.wait([running[0]])
            await asyncio.sleep(1.0)
            running[1].cancel()
            await asyncio.wait(running)
            await asyncio.sleep(60.0)
            assert fake.keys("d/waiters/") == {}, at
            assert len(fake.watchers) == 0, at
            assert len(fake.leases) <= 2, at
        assert not [task for task in tasks() if task.get_name().startswith("etcd_aio")], at
        at += 1 if at < 40 else 7


async def test_a_block_shows_its_state_and_its_loss_can_be_awaited() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        barrier = DoubleBarrier(client, "d", count=1, on_lost="signal")
        with pytest.raises(NotHeldError, match="double barrier 'd' is not held"):
            await barrier.lost()
        async with barrier:
            assert (barrier.name, barrier.ttl, barrier.is_held, barrier.is_lost) == (b"d", 10, True, False)
            assert fake.keys(barrier.key) == {barrier.key: b""}
            assert await client.txn().when(barrier.held_condition()).commit()
            left = asyncio.create_task(barrier.lost())
            await turns(5)
        assert (await left, barrier.is_held) == (None, False)
        with pytest.raises(LockLostError):  # noqa: PT012 - the block is what is tested
            async with barrier:
                await client.leases.revoke(fake.leases[0].id)
                assert isinstance(await barrier.lost(), LockLostError)
                assert (barrier.is_held, barrier.is_lost) == (False, True)


async def test_use_by_two_tasks_and_wrong_arguments_are_refused() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        barrier = DoubleBarrier(client, "d", count=1)
        async with barrier:
            with pytest.raises(ClientUsageError, match="in use"):
                await barrier.__aenter__()
        async with barrier:  # again
            assert not barrier.is_lost
        made: Any = DoubleBarrier
        for wrong in ({"count": 0}, {"count": 1, "ttl": 0}, {"count": 1, "timeout": 0}, {"count": 1, "on_lost": "x"}):
            with pytest.raises(InvalidRequestError):
                made(client, "d", **wrong)
        with pytest.raises(EmptyKeyError):
            made(client, "", count=1)
        with pytest.raises(ClientUsageError, match="async with"):
            await made(client, "d", count=1)
        assert fake.keys() == {}
