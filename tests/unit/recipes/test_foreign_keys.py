"""recipes/: keys and values of others below their names, or own keys that an operator has deleted."""

import asyncio

import pytest

from etcd_aio.errors import EtcdTimeoutError, LockLostError, QueueError, ScheduleError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import DoubleBarrier, IdAllocator, PriorityQueue, Queue, Schedule, Tick, WorkQueue

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

FIRST = b"q/00100/0000000000000000"


async def test_keys_of_another_queue_do_not_hide_items_from_peek() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q")
        for number in range(5):
            await client.put(f"q/1/{number}", "foreign")
        keys = [await queue.put(f"{number}") for number in range(3)]
        assert [item.key for item in await queue.peek(2)] == keys[:2]
        assert [item.key for item in await queue.peek(100)] == keys


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("__q/00100", b"1" * 5000 + b" mark"),
        ("q/00100/" + "1" * 5000, b""),
        ("q/00100/99999999999999999", b""),
        ("q/00100/9x", b""),
    ],
)
async def test_keys_that_are_no_numbers_do_not_disturb_a_priority_queue(key: str, value: bytes) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        await client.put(key, value)
        assert await queue.put("a") == FIRST
        assert (await queue.get(timeout=5.0)).text() == "a"


async def test_a_key_that_is_no_number_does_not_let_a_put_overwrite_an_item_of_go() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put(FIRST, "of Go")
        for number in range(6):
            await client.put(f"q/00100/9x{number}", "foreign")
        assert await PriorityQueue(client, "q").put("a") == FIRST[:-1] + b"1"
        assert fake.keys()[FIRST] == b"of Go"


async def test_a_priority_queue_without_numbers_says_so() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("q/00100/9999999999999999", "last")
        queue = PriorityQueue(client, "q")
        with pytest.raises(QueueError, match="no numbers left"):
            await queue.put("a")
        await queue.put("a", priority=1)


async def test_an_id_whose_job_an_operator_has_deleted_is_free() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await client.delete(await queue.put("a", id="x"))
        await client.put("w/ids/y", "no job")
        async with queue.worker() as worker, asyncio.timeout(60):
            for ident in ("x", "y"):
                key = await queue.put("b", id=ident)
                assert await queue.put("c", id=ident) == key
                async with await anext(worker) as job:
                    assert (job.key, job.text()) == (key, "b")
                    await client.delete(key)
                    assert await queue.put("c", id=ident) == key, "it is running"
        assert not fake.keys("w/")


async def test_a_double_barrier_with_a_strange_ready_is_entered() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("d/ready", b"9" * 5000)
        async with DoubleBarrier(client, "d", count=1, timeout=5.0):
            pass


async def test_a_participant_whose_key_an_operator_deletes_does_not_wait_for_ever() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        entering = asyncio.ensure_future(DoubleBarrier(client, "d", count=2).__aenter__())
        await asyncio.sleep(1.0)
        (key,) = fake.keys("d/waiters/")
        await client.delete(key)
        with pytest.raises(LockLostError, match="its key is gone"):
            async with asyncio.timeout(60):
                await entering


@pytest.mark.parametrize("catch_up", ["none", "last", "all"])
async def test_a_schedule_at_the_end_of_the_calendar_says_so(catch_up: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("s/last", "9999-12-31T23:59:59Z")

        async def work(tick: Tick) -> None: ...

        with pytest.raises(ScheduleError, match="end of the calendar"):
            await Schedule(client, "s", every=3600, catch_up=catch_up).run(work)  # type: ignore[arg-type]


async def test_work_that_is_no_function_is_refused_before_anything_is_sent() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(TypeError, match="async function"):
            await Schedule(client, "s", every=1).run("work")  # type: ignore[arg-type]
        assert not fake.keys()


async def test_ids_whose_blocks_are_not_answered_do_not_run_through_the_numbers() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        ids = IdAllocator(client, "ids", block=10)
        with fake.fault("KV/Txn", status="UNAVAILABLE", after_apply=True) as lost, pytest.raises(EtcdTimeoutError):
            await ids.next()
        assert 1 < lost.hits < 100
        assert await ids.next() == 10 * lost.hits + 1
