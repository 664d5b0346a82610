"""recipes/: at every await: an item is in the queue or with its taker, and no key, lease or task stays.

Takes, transactions, counters, double barriers, schedules and workers as a whole have such tests in their own files.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from etcd_aio import Client, op
from etcd_aio.errors import EtcdTimeoutError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Barrier, Group, IdAllocator, Job, PriorityQueue, Queue, Worker, WorkQueue
from etcd_aio.services import OnConflict
from tests.support.turns import ends_within
from tests.support.virtual_time import tasks

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

_MOST: Final = 400  # turns; every action has ended by then


async def sweep(act: Callable[[Client, FakeEtcd, int], Awaitable[bool]]) -> None:
    """Run an action on new fakes, with each number of turns after which it cancels something, until that has ended."""
    for turns in range(_MOST):
        async with FakeEtcd(seed=turns) as fake, fake.client() as client:
            await client.get("warm")
            ended = await act(client, fake, turns)
            await asyncio.sleep(5.0)  # what ends in the background
            stay = [one.get_name() for one in tasks() if any(word in one.get_name() for word in ("queue", "watch of"))]
            assert stay == [], turns
            assert len(fake.watchers) == 0, turns
        if ended:
            assert turns > 1, "the action never waited: the test proves nothing"
            return
    raise AssertionError("it does not end")


@pytest.mark.parametrize("kind", [Queue, PriorityQueue])
async def test_items_are_all_put_or_none(kind: type[Queue] | type[PriorityQueue]) -> None:
    seen = set()

    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = kind(client, "q")
        ended = await ends_within(turns, queue.put_all(["a", "b"]))
        await queue.put("c")
        found = [item.text() for item in await queue.peek(10)]
        assert found in (["c"], ["a", "b", "c"])
        seen.add(len(found))
        for text in found:
            assert (await queue.get(timeout=1.0)).text() == text
        assert not fake.keys("q/")
        return ended

    await sweep(act)
    assert seen == {1, 3}


async def test_a_put_that_is_cancelled_leaves_those_that_are_sent_with_it() -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = PriorityQueue(client, "q")
        other = asyncio.ensure_future(queue.put("b"))
        ended = await ends_within(turns, queue.put("a"))
        key = await other
        assert fake.keys("q/")[key] == b"b"
        assert sorted(fake.keys("q/").values()) in ([b"b"], [b"a", b"b"])
        return ended

    await sweep(act)


async def test_a_job_is_put_with_all_its_keys_or_not() -> None:
    seen = set()

    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = WorkQueue(client, "w")
        ended = await ends_within(turns, queue.put("a", id="x", delay=1.0))
        seen.add(len(fake.keys("w/")))
        key = await queue.put("a", id="x", delay=1.0)
        assert {name.split(b"/")[1] for name in fake.keys("w/")} == {b"items", b"ids", b"delays"}
        assert list(fake.keys("w/items/")) == [key]
        return ended

    await sweep(act)
    assert seen == {0, 3}


@pytest.mark.parametrize("how", ["complete", "retry", "reject"])
async def test_the_end_of_a_job_is_made_once(how: str) -> None:
    """It was made or not; made again, it finds out."""
    ends: dict[str, Callable[[Job], Awaitable[None]]] = {
        "complete": lambda job: job.complete(op.put("done", job.value)),
        "retry": lambda job: job.retry(delay=1.0),
        "reject": lambda job: job.reject("why"),
    }
    seen = set()

    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = WorkQueue(client, "w")
        await queue.put("a", id="x")
        async with queue.worker() as worker:
            job = await anext(worker)
            ended = await ends_within(turns, ends[how](job))
            await asyncio.sleep(0.1)
            seen.add(not fake.keys("w/claims/"))
            if not job.is_ended:
                await ends[how](job)
            assert (job.is_ended, job.is_lost) == (True, False)
            kinds = {key.split(b"/")[1] for key in fake.keys("w/")} - {b"workers"}
            if how == "complete":
                done = await client.get("done")
                assert done is not None
                assert (done.version, kinds) == (1, set())
            elif how == "reject":
                assert kinds == {b"dead", b"reasons"}
                assert [dead.value for dead in await queue.dead()] == [b"a"]
            else:
                assert kinds == {b"items", b"tries", b"ids", b"delays"}
        return ended

    await sweep(act)
    assert seen == {True, False}


async def test_a_block_that_is_cancelled_while_it_ends_frees_its_job_or_has_ended_it() -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await anext(worker)
            entered = asyncio.Event()

            async def work() -> None:
                async with job:
                    entered.set()
                    await asyncio.sleep(0)

            ended = await ends_within(turns, work())
            await asyncio.sleep(2.0)
            if not entered.is_set():
                await job.complete()
            if await queue.size():
                async with asyncio.timeout(10), await anext(worker) as job:
                    assert job.tries == 2
        assert not fake.keys("w/")
        return ended

    await sweep(act)


async def test_a_dead_job_is_revived_or_still_dead() -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = WorkQueue(client, "w")
        await queue.put("a", id="x")
        async with queue.worker() as worker, await anext(worker) as job:
            await job.reject()
        (dead,) = await queue.dead()
        ended = await ends_within(turns, queue.revive(dead))
        kinds = {key.split(b"/")[1] for key in fake.keys("w/")}
        assert kinds in ({b"dead", b"reasons"}, {b"items", b"ids"})
        return ended

    await sweep(act)


@pytest.mark.parametrize("what", ["hold", "release", "force", "wait"])
async def test_a_barrier_is_held_or_not(what: str) -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        barrier = Barrier(client, "b")
        if what != "hold":
            await barrier.hold()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "hold": barrier.hold,
            "release": barrier.release,
            "force": lambda: Barrier(client, "b").release(force=True),
            "wait": lambda: asyncio.gather(Barrier(client, "b").wait_released(), asyncio.shield(barrier.release())),
        }
        ended = await ends_within(turns, calls[what]())
        await asyncio.sleep(0.1)
        assert len(fake.keys("b")) <= 1
        await barrier.release(force=True)
        assert not fake.keys("b")
        assert await barrier.hold()
        return ended

    await sweep(act)


async def test_ids_are_given_once() -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        ids = IdAllocator(client, "i", block=2)
        other = asyncio.ensure_future(ids.next())
        ended = await ends_within(turns, ids.next())
        given = [await other, *[await ids.next() for _ in range(3)]]
        assert given == sorted(set(given))
        return ended

    await sweep(act)


@pytest.mark.parametrize("on_conflict", ["keep", "replace"])
async def test_a_member_that_is_cancelled_leaves_no_key_and_no_lease(on_conflict: OnConflict) -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        group = Group(client, "g", ttl=60)
        if on_conflict == "replace":
            await client.put("g/m", "of a process that has crashed", lease=await client.leases.grant(600))

        async def take_part() -> None:
            async with group.join("m", value="v", on_conflict=on_conflict) as membership:
                await membership.update("w")

        ended = await ends_within(turns, take_part())
        await asyncio.sleep(2.0)
        assert fake.keys("g/") in ({}, {b"g/m": b"of a process that has crashed"})
        assert len(fake.leases) <= (on_conflict == "replace")
        return ended

    await sweep(act)


@pytest.mark.parametrize("what", ["observe", "ring"])
async def test_who_looks_at_a_group_leaves_nothing(what: str) -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        async def look() -> None:
            group = Group(client, "g")
            if what == "observe":
                async with group.cache() as members:
                    assert members.view.names == ()
            else:
                async with group.ring():
                    pass

        return await ends_within(turns, look())

    await sweep(act)


async def test_a_worker_that_is_cancelled_while_it_claims_leaves_the_job() -> None:
    async def act(client: Client, fake: FakeEtcd, turns: int) -> bool:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            jobs: list[Job] = []

            async def take(worker: Worker = worker, jobs: list[Job] = jobs) -> None:
                jobs.append(await anext(worker))

            ended = await ends_within(turns, take())
            if not jobs:
                async with asyncio.timeout(10):
                    jobs.append(await anext(worker))
            assert jobs[0].tries == 1
            await jobs[0].complete()
        assert not fake.keys("w/")
        return ended

    await sweep(act)


@pytest.mark.parametrize("asks_again", [True, False])
async def test_a_job_whose_end_was_not_answered_is_not_lost_and_leaves_its_place(asks_again: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        await queue.put("b")
        async with queue.worker(concurrency=1) as worker:
            job = await anext(worker)
            with fake.fault("KV/Txn", hang=True), pytest.raises(EtcdTimeoutError):
                await job.complete(op.put("done", "a"), timeout=1.0)
            async with asyncio.timeout(10), await anext(worker) as other:
                assert other.text() == "b"
                if asks_again:
                    await job.complete(op.put("done", "again"))
            assert (job.is_lost, job.is_ended) == (False, asks_again)
        assert fake.keys() == {b"done": b"a"}
