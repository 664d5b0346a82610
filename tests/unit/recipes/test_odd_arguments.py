"""recipes/: arguments of recipes that are wrong or extreme: each has an error of its own, and leaves nothing behind."""

import asyncio

import pytest

from etcd_aio.errors import JobLostError, ScheduleError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Schedule, Tick, WorkQueue

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.mark.parametrize("grace", [1e11, 1e15, 1e300])
async def test_a_grace_may_be_longer_than_the_calendar(grace: float) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("s/last", "2000-01-01T00:00:00Z")
        ran: list[Tick] = []

        async def work(tick: Tick) -> None:
            ran.append(tick)

        running = asyncio.ensure_future(Schedule(client, "s", every=60, grace=grace).run(work))
        await asyncio.sleep(1.0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert len(ran) == 1


async def test_work_that_is_no_async_function_is_named() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("s/last", "2000-01-01T00:00:00Z")
        with pytest.raises(TypeError, match=r"^run\(\) takes an async function of a Tick: it returned int"):
            await Schedule(client, "s", every=60, catch_up="last").run(lambda _: 5)  # type: ignore[arg-type,return-value]
        with pytest.raises(TypeError, match=r"^run\(\) takes an async function of a Tick, got int"):
            await Schedule(client, "s", every=60).run(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [float("nan"), 1e20, -1e13])
async def test_a_clock_that_is_outside_of_the_calendar_ends_a_schedule(seconds: float) -> None:
    async with FakeEtcd() as fake, fake.client() as client:

        async def work(tick: Tick) -> None: ...

        with pytest.raises(ScheduleError, match="no time of the calendar"):
            await Schedule(client, "s", every=60, clock=lambda: seconds).run(work)


async def test_only_a_dead_job_is_revived() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(TypeError, match="DeadJob"):
            await WorkQueue(client, "w").revive(b"w/dead/1")  # type: ignore[arg-type]


async def test_a_call_with_a_wrong_timeout_is_not_taken_for_one_that_was_sent() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await anext(worker)
            with pytest.raises(TypeError, match="timeout"):
                await job.complete(timeout="5")  # type: ignore[arg-type]
            for key in (job.key, next(iter(fake.keys("w/claims/")))):
                await client.delete(key)
            with pytest.raises(JobLostError) as caught:
                await job.complete()
            assert not caught.value.maybe_applied
