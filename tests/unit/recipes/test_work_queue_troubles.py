"""recipes/work_queue/job.py, recipes/work_queue/worker.py: work queues whose requests fail at the end of a block: no
job stays with a worker that does not run it any more.
"""

import asyncio
from contextlib import ExitStack

import pytest

from etcd_aio.errors import EtcdTimeoutError, PermissionDeniedError, RequestTooLargeError, UnavailableError
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.releases import RELEASES
from etcd_aio.recipes import Job, Worker, WorkQueue

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def first(worker: Worker, timeout: float = 60.0) -> Job:
    async with asyncio.timeout(timeout):
        return await anext(worker)


async def fails(job: Job) -> None:
    async with job:
        raise LookupError


async def does_nothing(job: Job) -> None:
    async with job:
        pass


async def takes_long(job: Job) -> None:
    async with job:
        await asyncio.sleep(100)


@pytest.mark.parametrize("is_applied", [True, False])
async def test_a_job_whose_block_fails_in_an_outage_is_free_afterwards(is_applied: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            status = None if is_applied else "UNAVAILABLE"
            with fake.fault("KV/Txn", hang=is_applied, status=status), pytest.raises(LookupError) as caught:
                await fails(job)
            assert "Meanwhile" in caught.value.__notes__[0]
            async with await first(worker) as job:
                assert job.tries == 2
        assert not fake.keys("w/")


async def test_a_job_that_could_not_be_completed_at_the_end_of_its_block_is_free_afterwards() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            with fake.fault("KV/Txn", status="UNAVAILABLE"), pytest.raises(UnavailableError):
                await does_nothing(job)
            async with await first(worker) as job:
                assert job.tries == 2


async def test_a_job_that_was_completed_without_an_answer_leaves_its_place_to_the_next() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        await queue.put("b")
        async with queue.worker() as worker:
            job = await first(worker)
            with fake.fault("KV/Txn", hang=True), pytest.raises(EtcdTimeoutError):
                await does_nothing(job)
            async with await first(worker) as job:
                assert (job.text(), job.tries) == ("b", 1)
        assert not fake.keys("w/")


@pytest.mark.parametrize("is_in_retry", [True, False])
async def test_a_job_whose_block_is_cancelled_in_an_outage_is_free_afterwards(is_in_retry: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            with fake.fault("KV/Txn", status="UNAVAILABLE"):
                working = asyncio.ensure_future(fails(job) if is_in_retry else takes_long(job))
                await asyncio.sleep(1.0)
                working.cancel()
                await asyncio.wait([working])
                assert working.cancelled()
                await asyncio.sleep(3.0)
            async with await first(worker) as job:
                assert job.tries == 2


async def put_largest(queue: WorkQueue) -> None:
    """Put the largest payload that etcd accepts."""
    size = 1_572_864
    while True:
        try:
            await queue.put(b"x" * size)
        except RequestTooLargeError:
            size -= 40
        else:
            return


async def test_a_job_that_is_too_large_to_be_given_up_does_not_keep_a_worker_busy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", max_tries=1)
        await put_largest(queue)
        async with queue.worker() as worker:
            await first(worker)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time", asyncio.get_running_loop().time)
            async with queue.worker() as worker:
                waiting = asyncio.ensure_future(anext(worker))
                await asyncio.sleep(1.0)
                revision = fake.revision
                await asyncio.sleep(50.0)
                assert fake.revision == revision
                await queue.put("another")
                assert (await waiting).text() == "another"
    assert "could not be given up" in caplog.text


async def test_a_job_that_was_claimed_for_a_cancelled_consumer_is_free_if_none_comes() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        queue = WorkQueue(client, "w")
        async with queue.worker() as worker, WorkQueue(other, "w").worker() as second:
            waiting = asyncio.ensure_future(anext(worker))
            await asyncio.sleep(1.0)
            with fake.fault("KV/Txn", times=1), fake.fault("KV/Txn", delay=1.0, times=1):
                await queue.put("a")
                await asyncio.sleep(0.5)
                assert len(fake.keys("w/claims/")) == 1
                waiting.cancel()
                await asyncio.wait([waiting])
                assert waiting.cancelled()
            async with await first(second) as job:
                assert job.tries == 1, "it had not begun"
        assert not fake.keys("w/")


async def test_a_lease_that_is_near_its_end_when_the_worker_begins_is_not_kept() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", ttl=6, timeout=60.0)
        await queue.put("a")
        with ExitStack() as silence:
            silence.enter_context(fake.fault("Lease/LeaseKeepAlive", hang=True))
            asyncio.get_running_loop().call_later(5.0, silence.close)
            with fake.fault("KV/Txn", delay=4.5, times=1):
                async with queue.worker(margin=2.0) as worker:
                    await asyncio.sleep(20.0)
                    assert len(fake.keys("w/workers/")) == 1
                    await (await first(worker)).complete()
        assert not fake.keys("w/")


async def test_a_job_whose_end_is_refused_for_a_while_is_free_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            with fake.fault("KV/Txn", status="PERMISSION_DENIED"):
                with pytest.raises(PermissionDeniedError):
                    await does_nothing(job)
                await asyncio.sleep(30)
            async with await first(worker, timeout=15) as again:
                assert again.tries == 2
        assert not fake.keys("w/")
    assert sum("cannot be released" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("version", RELEASES)
async def test_claims_of_other_workers_are_left_alone(version: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also by a worker that begins later, and has to list them."""
    async with FakeEtcd(version, latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        for number in range(8):
            await queue.put(f"{number}")
        async with queue.worker(concurrency=8) as busy:
            jobs = [await first(busy) for _ in range(8)]
            before = len(fake.calls)
            async with queue.worker():
                await asyncio.sleep(5)
                assert sum(call.method == "KV/Txn" for call in fake.calls[before:]) < 5
            assert not any(job.is_lost for job in jobs)
            for job in jobs:
                await job.complete()
    assert not caplog.records


async def test_a_claim_without_a_lease_is_told_once_it_is_deleted(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        key = await queue.put("a")
        await client.put(key.replace(b"/items/", b"/claims/"), "garbage")
        async with queue.worker() as worker, await first(worker) as job:
            assert job.text() == "a"
    assert [record.message.endswith("had no lease: deleted") for record in caplog.records] == [True]


async def test_the_deletion_of_a_claim_that_is_refused_is_tried_again_in_an_idle_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        key = await queue.put("a", delay=20)
        async with queue.worker() as worker:
            await asyncio.sleep(1)
            with fake.fault("KV/Txn", status="PERMISSION_DENIED"):
                await client.put(key.replace(b"/items/", b"/claims/"), "garbage")  # without a lease: of no worker
                await client.delete(key.replace(b"/items/", b"/delays/"))
                await asyncio.sleep(3)
            async with await first(worker, timeout=30) as job:
                assert job.text() == "a"
    assert sum("cannot be deleted" in record.message for record in caplog.records) == 1


async def test_a_claim_that_a_worker_does_not_run_is_freed_when_it_lists_again() -> None:
    """As after a restore: the claim is there with the worker's lease, and no task knows of it."""
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        key = await queue.put("a", delay=20)
        async with queue.worker() as worker:
            await asyncio.sleep(1)
            (lease,) = fake.leases
            await client.put(key.replace(b"/items/", b"/claims/"), "", lease=lease.id)
            await client.delete(key.replace(b"/items/", b"/delays/"))
            fake.members[0].stop()
            await asyncio.sleep(0.5)
            fake.members[0].start()
            fake.elect(fake.members[0])
            async with await first(worker, timeout=10) as job:
                assert job.text() == "a"


async def test_a_job_whose_claim_is_of_another_store_is_lost() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", ttl=20)
        await queue.put("a")
        async with queue.worker() as worker:
            await asyncio.sleep(1)
            backup = fake.back_up()
            job = await first(worker)
            fake.members[0].stop()
            fake.restore(backup)
            fake.members[0].start()
            fake.elect(fake.members[0])
            await asyncio.sleep(5)
            assert job.is_lost
            async with await first(worker, timeout=10) as again:
                assert again.text() == "a"
