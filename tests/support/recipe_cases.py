"""Each recipe in a few lines: used as a whole, by a user who may not, and in a store that is full."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pytest

from etcd_aio import Client, EtcdError, methods, op, pb
from etcd_aio.errors import BarrierTimeoutError, ItemInDoubtError, NoSpaceError, PermissionDeniedError
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
from tests.support.raw import send

_SECONDS: Final = 30.0

Step = Callable[[Client, str], Awaitable[object]]


async def use_queue(client: Client, name: str) -> None:
    queue = Queue(client, name)
    await queue.put_all(["a", "b"])
    assert (await queue.peek())[0].text() == (await queue.get()).text() == "a"
    assert (await queue.get()).text() == "b"
    assert await queue.size() == 0


async def use_priority_queue(client: Client, name: str) -> None:
    queue = PriorityQueue(client, name)
    await queue.put("b", priority=2)
    await queue.put("a", priority=1)
    assert [(await queue.get()).text() for _ in range(2)] == ["a", "b"]


async def use_work_queue(client: Client, name: str) -> None:
    queue = WorkQueue(client, name)
    await queue.put("a", id="x")
    async with queue.worker() as worker:
        async with await anext(worker) as job:
            await job.retry()
        async with await anext(worker) as job:
            await job.reject("why")
        (dead,) = await queue.dead()
        await queue.revive(dead)
        async with await anext(worker) as job:
            await job.complete(op.put(f"{name}/result", "ok"))


async def use_counter(client: Client, name: str) -> None:
    counter = Counter(client, name)
    assert await counter.add(2) == 2
    assert await counter.set(5, expected=2)
    assert await counter.get() == 5


async def use_ids(client: Client, name: str) -> None:
    assert await IdAllocator(client, name).next() == 1


async def use_barrier(client: Client, name: str) -> None:
    barrier = Barrier(client, name)
    await barrier.hold()
    waiting = asyncio.ensure_future(Barrier(client, name).wait_released(timeout=_SECONDS))
    try:
        await barrier.release()
        await waiting
    finally:
        waiting.cancel()


async def use_double_barrier(client: Client, name: str) -> None:
    async def take_part() -> None:
        async with DoubleBarrier(client, name, count=2, timeout=_SECONDS):
            pass

    await asyncio.gather(take_part(), take_part())


async def use_group(client: Client, name: str) -> None:
    group = Group(client, name)
    async with group.join("m", value="v") as membership, group.cache() as members:
        assert members.view.names == ("m",)
        await membership.update("w")
        assert (await group.members()).members[0].value == b"w"


def _at(hour: int) -> float:
    return datetime(2030, 1, 1, hour, tzinfo=UTC).timestamp()


def schedule(client: Client, name: str, *, claim: bool, hour: int = 1) -> Schedule:
    return Schedule(client, name, every=3600, claim=claim, catch_up="last", clock=lambda: _at(hour))


async def run_once(schedule: Schedule) -> list[datetime]:
    """Run a schedule until it has run one tick, and a little longer."""
    times: list[datetime] = []
    has_run = asyncio.Event()

    async def work(tick: Tick) -> None:
        times.append(tick.time)
        has_run.set()

    running = asyncio.ensure_future(schedule.run(work))
    waiting = asyncio.ensure_future(has_run.wait())
    await asyncio.wait([running, waiting], timeout=_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not running.done():
        await asyncio.sleep(0.5)
        running.cancel()
    await asyncio.wait([running])
    if not running.cancelled():
        running.result()
    return times


async def begin_schedule(client: Client, name: str) -> None:
    """Create its key, so that the next hour is a tick that is due."""
    await client.put(f"{name}/last", "2030-01-01T00:00:00Z")


async def use_schedule(client: Client, name: str) -> None:
    await begin_schedule(client, name)
    assert len(await run_once(schedule(client, name, claim=False, hour=1))) == 1
    assert len(await run_once(schedule(client, name, claim=True, hour=2))) == 1


async def join(client: Client, name: str) -> None:
    async with Group(client, name).join("m"):
        raise AssertionError("it is a member")


async def work(client: Client, name: str) -> None:
    async with WorkQueue(client, name).worker() as worker:
        await anext(worker)


async def meet(client: Client, name: str) -> None:
    async with DoubleBarrier(client, name, count=1, timeout=_SECONDS):
        raise AssertionError("it is entered")


@dataclass(frozen=True)
class RecipeCase:
    """A recipe.

    Attributes:
        name: of the recipe.
        use: everything that it has.
        calls: each of them is refused to a user who may not touch its keys.
        adds: of them, those that a full store refuses.
    """

    name: str
    use: Step
    calls: tuple[Step, ...]
    adds: tuple[Step, ...] = ()


CASES: Final = (
    RecipeCase(
        "queue",
        use_queue,
        (
            lambda client, name: Queue(client, name).put("a"),
            lambda client, name: Queue(client, name).get(timeout=_SECONDS),
            lambda client, name: Queue(client, name).size(),
            lambda client, name: Queue(client, name).peek(),
        ),
        (lambda client, name: Queue(client, name).put("a"),),
    ),
    RecipeCase(
        "priority queue",
        use_priority_queue,
        (
            lambda client, name: PriorityQueue(client, name).put("a"),
            lambda client, name: PriorityQueue(client, name).get(timeout=_SECONDS),
        ),
        (lambda client, name: PriorityQueue(client, name).put("a"),),
    ),
    RecipeCase(
        "work queue",
        use_work_queue,
        (
            lambda client, name: WorkQueue(client, name).put("a"),
            lambda client, name: WorkQueue(client, name).put("a", id="x", delay=1),
            lambda client, name: WorkQueue(client, name).size(),
            lambda client, name: WorkQueue(client, name).dead(),
            work,
        ),
        (lambda client, name: WorkQueue(client, name).put("a"), work),
    ),
    RecipeCase(
        "counter",
        use_counter,
        (
            lambda client, name: Counter(client, name).add(),
            lambda client, name: Counter(client, name).get(),
            lambda client, name: Counter(client, name).set(1),
            lambda client, name: Counter(client, name).set(1, expected=0),
        ),
        (
            lambda client, name: Counter(client, name).add(),
            lambda client, name: Counter(client, name).set(1),
            lambda client, name: Counter(client, name).set(1, expected=0),
        ),
    ),
    RecipeCase(
        "ids",
        use_ids,
        (lambda client, name: IdAllocator(client, name).next(),),
        (lambda client, name: IdAllocator(client, name).next(),),
    ),
    RecipeCase(
        "barrier",
        use_barrier,
        (
            lambda client, name: Barrier(client, name).hold(),
            lambda client, name: Barrier(client, name).release(force=True),
            lambda client, name: Barrier(client, name).wait_released(timeout=_SECONDS),
        ),
        (lambda client, name: Barrier(client, name).hold(),),
    ),
    RecipeCase("double barrier", use_double_barrier, (meet,), (meet,)),
    RecipeCase(
        "group",
        use_group,
        (
            join,
            lambda client, name: Group(client, name).members(),
            lambda client, name: Group(client, name).cache().__aenter__(),
            lambda client, name: Group(client, name).ring().__aenter__(),
        ),
        (join,),
    ),
    RecipeCase(
        "schedule",
        use_schedule,
        (
            lambda client, name: run_once(schedule(client, name, claim=False)),
            lambda client, name: run_once(schedule(client, name, claim=True)),
            lambda client, name: schedule(client, name, claim=False).last(),
        ),
    ),
)


async def left(client: Client) -> tuple[int, int]:
    """How many keys and leases there are."""
    return (await client.range(all_keys=True, count_only=True)).count, len((await client.leases.list()).ids)


async def is_refused_to(user: Callable[[], Client], root: Client, case: RecipeCase) -> None:
    """A user who may not touch the keys of a recipe gets an error that says so, and leaves nothing."""
    name = f"elsewhere/{case.name}"
    before = await left(root)
    async with user() as client:
        for call in case.calls:
            with pytest.raises(PermissionDeniedError):
                async with asyncio.timeout(_SECONDS):
                    await call(client, name)
    assert await left(root) == before  # closing the client has revoked its idle leases


async def fill(client: Client) -> None:
    """Raise the alarm of a full store; `client.maintenance.disarm()` ends it."""
    member = (await client.maintenance.status(client.endpoints[0])).header.member_id
    request = pb.AlarmRequest(action=pb.AlarmRequestAlarmAction.ACTIVATE, member_id=member, alarm=pb.AlarmType.NOSPACE)
    await send(client, methods.ALARM, request)


async def is_refused_when_full(client: Client, case: RecipeCase) -> None:
    """What adds to a full store raises an error that says so, and leaves nothing."""
    before = await left(client)
    for number, call in enumerate(case.adds):
        with pytest.raises(EtcdError) as raised:
            async with asyncio.timeout(_SECONDS):
                await call(client, f"full/{case.name}/{number}")
        error: BaseException | None = raised.value
        if isinstance(error, ItemInDoubtError):
            error = error.__cause__
        assert isinstance(error, NoSpaceError), f"{case.name}: {raised.value!r}"
    assert await left(client) == before


async def goes_on_in_a_full_store(client: Client) -> None:
    """What was begun before is ended although the store is full, and then nothing is left of it."""
    queue, priority, jobs = Queue(client, "q"), PriorityQueue(client, "p"), WorkQueue(client, "w", ttl=60)
    await queue.put("a")
    await priority.put("a")
    for _ in range(3):
        await jobs.put("a")
    barrier, group, counter = Barrier(client, "b"), Group(client, "g", ttl=60), Counter(client, "c")
    await barrier.hold()
    await counter.set(5)
    ids = IdAllocator(client, "i", block=10)
    assert await ids.next() == 1
    await begin_schedule(client, "s")
    async with jobs.worker(concurrency=3) as worker:
        held = [await anext(worker) for _ in range(3)]
        async with group.join("m"):
            inside = asyncio.Event()
            leave = asyncio.Event()

            async def take_part() -> None:
                async with DoubleBarrier(client, "d", count=2, ttl=60):
                    inside.set()
                    await leave.wait()

            meeting = [asyncio.ensure_future(take_part()) for _ in range(2)]
            await inside.wait()
            running = asyncio.ensure_future(run_once(schedule(client, "s", claim=False)))
            await fill(client)
            assert (await queue.get(timeout=_SECONDS)).text() == "a"
            assert (await priority.get(timeout=_SECONDS)).text() == "a"
            assert await queue.size() == await priority.size() == 0
            await held[0].complete()
            await held[1].retry(delay=1000)
            with pytest.raises(NoSpaceError):
                await held[2].complete(op.put("result", ""))
            await held[2].complete()
            with pytest.raises(BarrierTimeoutError):
                await Barrier(client, "b").wait_released(timeout=0.2)
            assert await barrier.release()
            await Barrier(client, "b").wait_released(timeout=_SECONDS)
            assert await counter.get() == 5
            assert await ids.next() == 2
            leave.set()
            async with asyncio.timeout(_SECONDS):
                await asyncio.gather(*meeting)
            assert (await group.members()).names == ("m",)
        assert not (await group.members()).members
        await client.maintenance.disarm()
        assert len(await running) == 1, "the tick has waited for space"
