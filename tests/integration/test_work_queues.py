"""Work queues on real servers: workers of two clients, a stopped worker, a full store. Most tests run on the fake."""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from random import Random

import pytest

from etcd_aio import Client, op
from etcd_aio.errors import EtcdError, ItemInDoubtError, NoSpaceError
from etcd_aio.recipes import Job, WorkQueue
from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.support.full_store import skip_if_full_store_keeps_all
from tests.support.stopped_worker import TTL

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_workers_of_two_clients_do_each_job_once(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    name = f"{prefix}w"
    async with Client(shared_server.endpoint) as other:
        queue = WorkQueue(client, name)
        for number in range(40):
            await queue.put(f"{number}", id=f"{number}", priority=number % 3)
        done: list[str] = []

        async def work(own: Client) -> None:
            async with WorkQueue(own, name).worker(concurrency=4) as worker, asyncio.TaskGroup() as group:

                async def consume() -> None:
                    async for job in worker:
                        async with job:
                            await job.complete(op.put(f"{prefix}done/{job.text()}", "ok"))
                        done.append(job.text())

                consuming = [group.create_task(consume()) for _ in range(4)]
                async with asyncio.timeout(60):
                    while len(done) < 40:  # noqa: ASYNC110 - by both
                        await asyncio.sleep(0.05)
                for one in consuming:
                    one.cancel()

        await asyncio.gather(work(client), work(other))
        assert sorted(done, key=int) == [f"{number}" for number in range(40)]
        results = await client.range(prefix=f"{prefix}done/")
        assert {kv.version for kv in results} == {1}
        assert len(results) == 40
        assert len(await client.range(prefix=name)) == 0


async def test_a_delayed_job_is_claimed_when_it_is_due(client: Client, prefix: str) -> None:
    queue = WorkQueue(client, f"{prefix}w")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await queue.put("later", delay=0.5)
    async with queue.worker() as worker, asyncio.timeout(60):
        async with await anext(worker) as job:
            assert job.text() == "later"
        assert loop.time() - began >= 0.49


@pytest.mark.nightly
@pytest.mark.whole_store
async def test_a_worker_that_was_stopped_for_three_ttls_cannot_complete(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    name = f"{prefix}w"
    queue = WorkQueue(client, name, ttl=TTL)
    await queue.put("a")
    command = [sys.executable, "-m", "tests.support.stopped_worker", shared_server.endpoint, name]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await child.stdout.readline() == b"claimed\n"
            child.send_signal(signal.SIGSTOP)
            async with queue.worker() as worker, await anext(worker) as job:
                assert job.tries == 2
                await asyncio.sleep(2.0 * TTL)
                child.send_signal(signal.SIGCONT)
                found = json.loads(await child.stdout.readline())
                assert found == {"is_lost": True, "completed": "lost", "raised": "JobLostError"}
                await job.complete(op.put(f"{name}/result", "in time"))
            await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    kv = await client.get(f"{name}/result")
    assert kv is not None
    assert (kv.text(), kv.version) == ("in time", 1)


async def test_in_a_full_store_a_job_is_completed_and_none_is_claimed(caplog: pytest.LogCaptureFixture) -> None:
    async with EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server, Client(server.endpoint) as client:
        queue = WorkQueue(client, "w", ttl=60)
        for number in range(4):
            await queue.put(f"{number}")

        async def fill() -> None:
            for number in range(500):
                await client.put(f"k{number}", b"x" * 100_000)

        async with queue.worker(concurrency=3) as worker:
            jobs: list[Job] = [await anext(worker) for _ in range(3)]
            with pytest.raises(NoSpaceError):
                await fill()
            await skip_if_full_store_keeps_all(client)
            with pytest.raises(NoSpaceError):
                await jobs[0].complete(op.put("result", "ok"))
            await jobs[0].complete()
            await jobs[1].retry(delay=1000)  # the delay needs space, which it does not wait for
            with pytest.raises(NoSpaceError):
                await jobs[2].reject("why")
            await jobs[2].complete()
            assert await queue.size() == 2
            waiting = asyncio.ensure_future(anext(worker))
            await asyncio.sleep(1.0)
            # These let puts of nested txns through (etcd-io/etcd#22139).
            if not server.version.startswith(("3.4.", "3.8.0-alpha.0")):
                assert not waiting.done()
                assert "no job is claimed while the store is full" in caplog.text
            waiting.cancel()
        assert len(await client.range(prefix="w/claims/")) == 0


@pytest.mark.nightly
async def test_every_effect_is_applied_once_while_members_and_workers_are_killed(cluster: EtcdCluster) -> None:
    draw = Random(3)

    async def kills() -> None:
        while True:
            member = draw.choice(cluster.members)
            await member.kill()
            await asyncio.sleep(draw.random())
            await member.restart()
            await asyncio.sleep(1 + draw.random())

    async def handle(job: Job) -> None:
        try:
            async with job:
                await asyncio.sleep(draw.random() * 0.1)
                await job.complete(op.put(b"done/" + job.value, "ok"))
        except EtcdError:
            pass

    async def work() -> None:
        while True:
            async with Client(cluster.endpoints, timeout=60.0) as own:
                try:
                    async with (
                        asyncio.timeout(1 + draw.random() * 10),
                        WorkQueue(own, "w", ttl=3, max_tries=1000, timeout=60.0).worker(concurrency=8) as worker,
                        asyncio.TaskGroup() as group,
                    ):
                        async for job in worker:
                            group.create_task(handle(job))
                except (TimeoutError, EtcdError):
                    pass

    async with Client(cluster.endpoints, timeout=60.0) as client:
        queue = WorkQueue(client, "w", timeout=60.0)
        killing = asyncio.ensure_future(kills())
        working = [asyncio.ensure_future(work()) for _ in range(4)]
        put = 0
        for number in range(2_000):
            with suppress(ItemInDoubtError):
                await queue.put(f"{number}")
                put += 1
        killing.cancel()
        await asyncio.wait([killing])
        for member in cluster.members:
            if not member.is_running:
                await member.restart()
        async with asyncio.timeout(120):
            while await queue.size():  # noqa: ASYNC110 - by other tasks
                await asyncio.sleep(0.5)
        for one in working:
            one.cancel()
        await asyncio.wait(working)
        done = await client.range(prefix="done/", keys_only=True)
        assert len(done) >= put
        assert {kv.version for kv in done} == {1}
        await asyncio.sleep(5.0)
        assert len(await client.range(prefix="w/")) == 0
