"""recipes/: keys that an operator deletes or overwrites: a clear error or they go on, nothing twice."""

import asyncio

import pytest

from etcd_aio import Client, op
from etcd_aio.errors import BarrierTimeoutError, CounterError, JobLostError, MemberConflictError, ScheduleError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import (
    Barrier,
    Counter,
    DoubleBarrier,
    Group,
    IdAllocator,
    PriorityQueue,
    Queue,
    Schedule,
    Tick,
    WorkQueue,
)

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

KINDS = pytest.mark.parametrize("kind", [Queue, PriorityQueue])
Kind = type[Queue] | type[PriorityQueue]


# Queues.


@KINDS
async def test_items_that_are_overwritten_or_deleted_are_taken_as_they_are(kind: Kind) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        queue = kind(client, "q")
        keys = await queue.put_all(["a", "b", "c", "d"])
        assert (await queue.get()).text() == "a"  # it knows of the others now
        await operator.put(keys[1], "B")
        await operator.delete(keys[2])
        found = [(await queue.get(timeout=5.0)).text() for _ in range(2)]
        assert sorted(found) == ["B", "d"]
        assert await queue.size() == 0


@pytest.mark.parametrize("base", [None, b"", b"garbage", b"-1 0011223344556677", b"1 0011223344556677"])
async def test_a_base_key_that_is_not_what_it_was_lets_no_put_overwrite_an_item(base: bytes | None) -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as operator:
        queue = PriorityQueue(client, "q")
        for number in range(5):
            await queue.put(f"{number}")
        if base is None:
            await operator.delete("__q/00100")
        else:
            await operator.put("__q/00100", base)
        async with asyncio.timeout(60):
            await asyncio.gather(queue.put("5"), PriorityQueue(operator, "q").put("6"))
            await queue.put("7")
        items = [item.text() for item in await queue.peek(10)]
        assert sorted(items) == [f"{number}" for number in range(8)]
        assert items[:5] == [f"{number}" for number in range(5)]


# Work queues.


@pytest.mark.parametrize("is_running", [True, False])
async def test_a_claim_that_is_overwritten_does_not_hold_its_job_for_ever(is_running: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        queue, second = WorkQueue(client, "w"), WorkQueue(operator, "w")
        await queue.put("a")
        async with second.worker() as other:
            async with queue.worker() as worker:
                job = await anext(worker)
                (claim,) = fake.keys("w/claims/")
                await operator.put(claim, "of an operator")
                if is_running:
                    await asyncio.sleep(1.0)
                    with pytest.raises(JobLostError):
                        await job.complete(op.put("done", "first"))
            async with asyncio.timeout(120):
                again = await anext(other)
            assert again.fencing_token > job.fencing_token
            await again.complete(op.put("done", "second"))
        assert fake.keys() == {b"done": b"second"}


async def test_a_claim_of_garbage_for_a_job_that_waits_is_removed() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        queue = WorkQueue(client, "w")
        key = await queue.put("a")
        await operator.put(key.replace(b"/items/", b"/claims/"), "of an operator")
        async with queue.worker() as worker, asyncio.timeout(120), await anext(worker) as job:
            assert job.text() == "a"
        assert not fake.keys("w/")


@pytest.mark.parametrize("kind", ["items", "claims", "tries", "workers"])
async def test_a_key_of_a_running_job_that_is_deleted_lets_it_end_once(kind: str) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await anext(worker)
            await operator.delete(prefix=f"w/{kind}/")
            try:
                await job.complete(op.put("done", "a"))
            except JobLostError:
                assert kind == "claims"
                async with asyncio.timeout(60), await anext(worker) as job:
                    await job.complete(op.put("done", "a"))
            done = await client.get("done")
            assert done is not None
            assert done.version == 1
        assert fake.keys() == {b"done": b"a"}


# Barriers.


async def test_a_barrier_that_is_overwritten_is_released() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as operator:
        barrier = Barrier(client, "b")
        await barrier.hold()
        waiting = asyncio.ensure_future(Barrier(operator, "b").wait_released(timeout=60))
        await asyncio.sleep(1.0)
        await operator.put("b", "garbage")
        await asyncio.sleep(1.0)
        assert not waiting.done()
        assert await barrier.release()
        await waiting
        assert not fake.keys()


async def take_part(client: Client, log: list[str], name: str, seconds: float = 30.0) -> None:
    async with DoubleBarrier(client, "d", count=3, ttl=60):  # renewals take up to three seconds here
        log.append(f"in {name}")
        await asyncio.sleep(seconds)
    log.append(f"out {name}")


@pytest.mark.parametrize("late", ["KV/Txn", "Watch"])
async def test_a_ready_that_is_deleted_at_once_holds_no_participant(late: str) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        log: list[str] = []
        running = [asyncio.ensure_future(take_part(client, log, "a"))]
        await asyncio.sleep(1.0)
        network = fake.network()
        async with fake.client(engine=network.engine) as slow:
            running.append(asyncio.ensure_future(take_part(slow, log, "b")))
            await asyncio.sleep(1.0)
            for link in network.links:
                link.latency = 0.5
            running.append(asyncio.ensure_future(take_part(client, log, "c")))
            async with operator.watch("d/ready", start_revision=1) as watcher:
                await anext(watcher)
            if late == "Watch":
                network.refuse()
            await operator.delete("d/ready")
            if late == "Watch":
                await asyncio.sleep(1.0)
                fake.compact(fake.revision)
                network.heal()
            async with asyncio.timeout(120):
                await asyncio.gather(*running)
        assert sorted(log[:3]) == ["in a", "in b", "in c"]
        assert not fake.keys("d/waiters/")


async def test_a_lease_grant_that_hangs_ends_with_the_timeout_of_a_double_barrier() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        began = asyncio.get_running_loop().time()
        with fake.fault("Lease/LeaseGrant", hang=True), pytest.raises(BarrierTimeoutError):
            async with DoubleBarrier(client, "d", count=1, timeout=2.0):
                pass
        assert asyncio.get_running_loop().time() - began < 6.0
        await asyncio.sleep(60.0)
        assert not fake.keys()
        assert not [lease for lease in fake.leases if lease.keys]


# Counters and ids.


@pytest.mark.parametrize("value", ["garbage", "", "--1", "1.5", "9" * 1001, "-", "٣"])
async def test_a_counter_with_garbage_says_so_and_is_set_anew(value: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as operator:
        counter = Counter(client, "n")
        await counter.add(5)
        await operator.put("n", value)
        for call in (counter.add(), counter.get(), counter.set(1, expected=5)):
            with pytest.raises(CounterError, match="not a whole number"):
                await call
        assert fake.keys() == {b"n": value.encode()}
        await counter.set(7)
        assert await counter.add() == 8


async def test_a_counter_that_is_deleted_begins_again() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as operator:
        counter = Counter(client, "n")
        await counter.add(5)
        await operator.delete("n")
        assert await counter.add(2) == 2


@pytest.mark.parametrize("value", [None, "0", "3"])
async def test_ids_that_were_set_back_are_not_given_again(value: str | None) -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as operator:
        ids = IdAllocator(client, "ids", block=2)
        given = [await ids.next() for _ in range(10)]
        if value is None:
            await operator.delete("ids")
        else:
            await operator.put("ids", value)
        with pytest.raises(CounterError, match="set back"):
            await ids.next()
        await Counter(client, "ids").set(1000)  # what the error asks for
        given += [await ids.next() for _ in range(3)]
        assert given == [*range(1, 11), 1001, 1002, 1003]


# Groups and schedules.


async def test_a_member_that_is_replaced_is_no_member() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        async with Group(client, "g").join("m", value="1") as first:
            async with Group(other, "g").join("m", value="2", on_conflict="replace") as second:
                await asyncio.sleep(1.0)
                assert (first.is_registered, second.is_registered) == (False, True)
                assert isinstance(first.error, MemberConflictError)
                await asyncio.sleep(60.0)
                assert fake.keys() == {b"g/m": b"2"}
            await asyncio.sleep(60.0)
            assert first.is_registered, "its place is free again"
            assert fake.keys() == {b"g/m": b"1"}
        assert not fake.keys()
        assert not [lease for lease in fake.leases if lease.keys]


@pytest.mark.parametrize("overwrites", [True, False])
async def test_a_member_whose_key_is_deleted_or_overwritten_is_put_again(overwrites: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        async with Group(client, "g").join("m", value="1", on_conflict="replace") as membership:
            await membership.update("2")
            await asyncio.sleep(5.0)
            if overwrites:
                await operator.put("g/m", "garbage")
            else:
                await operator.delete("g/m")
            await asyncio.sleep(5.0)
            assert membership.is_registered
            assert fake.keys() == {b"g/m": b"2"}
        assert not fake.keys()


@pytest.mark.parametrize("claim", [True, False])
@pytest.mark.parametrize("value", [None, b"garbage", b""])
async def test_a_schedule_whose_key_is_gone_or_garbage(claim: bool, value: bytes | None) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as operator:
        loop = asyncio.get_running_loop()
        ticks: list[Tick] = []

        async def work(tick: Tick) -> None:
            ticks.append(tick)

        schedule = Schedule(client, "s", every=10, claim=claim, clock=lambda: 1_900_000_000 + loop.time())
        running = asyncio.ensure_future(schedule.run(work))
        await asyncio.sleep(25.0)
        if value is None:
            await operator.delete("s/last")
        else:
            await operator.put("s/last", value)
        await asyncio.sleep(60.0)
        if value is None:
            assert not running.done()
            times = [tick.time for tick in ticks]
            assert len(times) == len(set(times)) > 5
            running.cancel()
            await asyncio.wait([running])
        else:
            with pytest.raises(ScheduleError, match="not a tick"):
                await running
