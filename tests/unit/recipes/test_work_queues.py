"""recipes/work_queue/: claims, ends, lost leases and answers, dead letters, delays, dead workers."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from etcd_aio import Client, InvalidRequestError, op
from etcd_aio.errors import (
    ClientUsageError,
    EmptyKeyError,
    EtcdError,
    EtcdTimeoutError,
    ItemInDoubtError,
    JobLostError,
    PermissionDeniedError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.time import VirtualTimeLoop
from etcd_aio.recipes import Job, Worker, WorkQueue
from etcd_aio.recipes.work_queue import job as job_module
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def kept(fake: FakeEtcd, prefix: str = "w/") -> list[str]:
    """The keys, but those of workers."""
    return [key.decode() for key in fake.keys(prefix) if b"/workers/" not in key]


async def first(worker: Worker, timeout: float = 60.0) -> Job:
    async with asyncio.timeout(timeout):
        return await anext(worker)


async def none_comes(worker: Worker, seconds: float = 5.0) -> None:
    with pytest.raises(TimeoutError):
        await first(worker, seconds)


async def fails(job: Job) -> None:
    async with job:
        raise LookupError


async def takes_long(job: Job) -> None:
    async with job:
        await asyncio.sleep(100)


async def test_a_job_is_done_and_its_result_is_there_with_it() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        key = await queue.put("payload")
        assert await queue.size() == 1
        async with queue.worker() as worker:
            async for job in worker:
                assert (job.key, job.text(), job.tries) == (key, "payload", 1)
                claim = fake.changes()[-2] if fake.changes()[-1].key.startswith(b"w/tries") else fake.changes()[-1]
                assert job.fencing_token == claim.mod_revision
                async with job:
                    assert 20 < job.deadline - asyncio.get_running_loop().time() <= 30
                    await job.complete(op.put("result", "ok"))
                assert job.is_ended
                break
        assert fake.keys() == {b"result": b"ok"}
        assert not fake.leases


async def test_the_end_of_the_block_ends_the_job() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            with pytest.raises(LookupError):
                await fails(await first(worker))
            async with await first(worker) as job:
                assert job.tries == 2
            assert kept(fake) == []
            with pytest.raises(ClientUsageError, match="ended already"):
                await job.complete()


async def test_priorities_and_order() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        for value, priority in (("c", 100), ("d", 100), ("a", 1), ("e", 65535), ("b", 99)):
            await queue.put(value, priority=priority)
        async with queue.worker() as worker:
            done = []
            for _ in range(5):
                async with await first(worker) as job:
                    done.append(job.text())
        assert done == ["a", "b", "c", "d", "e"]


async def test_no_more_jobs_than_the_worker_may_have_at_a_time() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        for number in range(10):
            await queue.put(f"{number}")
        async with queue.worker(concurrency=3) as worker:
            consuming = [asyncio.ensure_future(first(worker)) for _ in range(5)]
            await asyncio.sleep(5.0)
            assert [one.done() for one in consuming] == [True] * 3 + [False] * 2
            assert len(fake.keys("w/claims/")) == 3
            await consuming[0].result().complete()
            await consuming[1].result().retry()
            await asyncio.sleep(5.0)
            assert all(one.done() for one in consuming)
        assert len(fake.keys("w/items/")) == 9
        assert fake.keys("w/claims/") == {}


async def test_an_id_is_queued_once_at_a_time() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        key = await queue.put("a", id="order/42")
        assert key.endswith(b"/order/42")
        assert await queue.put("b", id="order/42", priority=1) == key
        assert await queue.put("b", id="order/43") != key
        async with queue.worker(concurrency=2) as worker:
            job = await first(worker)
            assert await queue.put("b", id="order/42") == key, "it is running"
            await job.complete()
            again = await queue.put("c", id="order/42")
            assert again != key
            await (await first(worker)).complete()
            dead = await first(worker)
            await dead.reject("no")
        assert kept(fake) == [f"w/{what}/{again.decode().split('/', 2)[2]}" for what in ("dead", "reasons")]
        assert await queue.put("d", id="order/42")
        assert not await queue.revive((await queue.dead())[0]), "the id is in use"


async def test_a_delay_and_a_delayed_retry() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        clock = asyncio.get_running_loop().time
        queue = WorkQueue(client, "w")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time", clock)
            await queue.put("later", delay=60.0)
            async with queue.worker() as worker:
                await none_comes(worker, 59.0)
                job = await first(worker, 2.0)
                assert job.tries == 1
                await job.retry(delay=30.0)
                await queue.put("now")
                async with await first(worker) as job:
                    assert job.text() == "now"
                await none_comes(worker, 29.0)
                async with await first(worker, 2.0) as job:
                    assert (job.text(), job.tries) == ("later", 2)
        assert kept(fake) == []


async def test_a_job_that_always_fails_is_given_up_and_revived() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", max_tries=3)
        await queue.put("poison")
        tries = []
        async with queue.worker() as worker:
            for _ in range(3):
                job = await first(worker)
                tries.append(job.tries)
                with pytest.raises(LookupError):
                    await fails(job)
            await none_comes(worker)
            assert tries == [1, 2, 3]
            (dead,) = await queue.dead()
            assert (dead.value, dead.reason) == (b"poison", "attempt 3 of 3 has failed")
            assert await queue.size() == 0
            assert await queue.revive(dead)
            assert not await queue.revive(dead)
            async with await first(worker) as job:
                assert job.tries == 1
        assert kept(fake) == []


async def test_a_job_whose_workers_crash_is_given_up() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as survivor:
        queue = WorkQueue(survivor, "w", ttl=10, max_tries=2)
        await queue.put("poison")
        for _ in range(2):
            doomed = fake.client()
            worker = await WorkQueue(doomed, "w", ttl=10, max_tries=2).worker().__aenter__()
            await first(worker)
            await doomed.aclose()
            await fake.advance(15.0)
        async with queue.worker() as last:
            await none_comes(last)
        (dead,) = await queue.dead()
        assert dead.reason == "attempt 2 of 2 did not end"


async def test_a_lost_lease_cancels_the_jobs_and_the_worker_goes_on() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        for value in "ab":
            await queue.put(value)
        ended: list[str] = []

        async def work(worker: Worker) -> None:
            try:
                async with await first(worker) as job:
                    try:
                        await asyncio.sleep(100)
                    finally:
                        ended.append(job.text())
            except JobLostError:
                ended.append("lost")

        async with queue.worker(concurrency=2) as worker:
            working = [asyncio.ensure_future(work(worker)) for _ in range(2)]
            await asyncio.sleep(5.0)
            (lease,) = fake.leases
            await client.leases.revoke(lease.id)
            await asyncio.wait(working)
            assert sorted(ended) == ["a", "b", "lost", "lost"]
            for value in "ab":
                async with await first(worker) as job:
                    assert (job.text(), job.tries) == (value, 2)
        assert kept(fake) == []


async def test_a_claim_that_is_deleted_loses_the_job() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            working = asyncio.ensure_future(takes_long(await first(worker)))
            await asyncio.sleep(1.0)
            await client.delete(prefix="w/claims/")
            with pytest.raises(JobLostError, match="its claim was deleted"):
                await working


async def test_a_job_tells_when_it_is_lost() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker(on_lost="signal") as worker:
            job = await first(worker)
            waiting = asyncio.ensure_future(job.lost())
            await asyncio.sleep(1.0)
            assert not waiting.done()
            await client.delete(prefix="w/claims/")
            error = await waiting
            assert isinstance(error, JobLostError)
            assert "its claim was deleted" in error.message
            assert await job.lost() is error


async def test_a_look_for_the_loss_of_a_job_looks_at_the_clock_too() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", ttl=10)
        await queue.put("a")
        async with queue.worker(on_lost="signal") as worker:
            job = await first(worker)
            with pytest.raises(EtcdTimeoutError, match=r"^job .* was not lost in time$"):
                await job.lost(timeout=0)
            loop.block(60)
            assert job.is_lost
            error = await job.lost(timeout=0)
            assert isinstance(error, JobLostError)
            assert await job.lost() is error


async def test_a_job_that_is_ended_was_not_lost() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        await queue.put("b")
        async with queue.worker() as worker:
            for end in (Job.complete, Job.reject):
                job = await first(worker)
                waiting = asyncio.ensure_future(job.lost())
                await asyncio.sleep(1.0)
                await end(job)
                assert await waiting is None


async def test_a_job_that_is_lost_while_it_is_ended_may_be_ended_after_all() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            waiting = asyncio.ensure_future(job.lost())
            with fake.fault("KV/Txn", delay=1.0, times=1):
                ending = asyncio.ensure_future(job.complete())
                await asyncio.sleep(0.5)
                job._lose("the lease is lost while the request is under way")
                await asyncio.sleep(0.1)
                assert not waiting.done(), "the answer decides"
                await ending
            assert await waiting is None
            assert (job.is_ended, job.is_lost) == (True, False)


async def test_a_worker_that_was_stopped_cannot_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "_claim_deleted", lambda self: None)
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        queue = WorkQueue(client, "w", ttl=10)
        await queue.put("a")
        async with queue.worker() as worker, WorkQueue(other, "w", ttl=10).worker() as second:
            job = await first(worker)
            waiting = asyncio.ensure_future(anext(second))
            with fake.fault("Lease/LeaseKeepAlive", hang=True):
                await fake.advance(30.0)  # the server's clock alone: this worker takes its lease for good
                assert not job.is_lost
                taken = await waiting
                assert taken.tries == 2
                assert not job.is_lost, "its watch is behind"
                with pytest.raises(JobLostError) as raised:
                    await job.complete(op.put("result", "late"))
            assert not raised.value.maybe_applied
            assert taken.fencing_token > job.fencing_token
            await taken.complete(op.put("result", "in time"))
        assert fake.keys("result") == {b"result": b"in time"}


async def test_a_job_that_is_lost_may_have_been_ended_by_a_request_that_was_not_answered() -> None:
    async with FakeEtcd(latency=0.001) as fake:
        network = fake.network()
        async with fake.client(engine=network.engine) as client:
            queue = WorkQueue(client, "w", ttl=2)
            await queue.put("a")
            async with queue.worker() as worker:
                job = await first(worker)
                with fake.fault("KV/Txn", hang=True, times=1), suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await job.complete(op.put("result", "v"))
                network.black_hole()
                await asyncio.sleep(5.0)
                assert job.is_lost
                with pytest.raises(JobLostError) as raised:
                    await job.complete(op.put("result", "v"))
                assert raised.value.maybe_applied
                network.heal()
        assert fake.keys("result") == {b"result": b"v"}


# Answers that are lost.


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_put_whose_answer_is_lost_is_in_doubt(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client(retry="always") as client, client.exactly_once() as once:
        queue = WorkQueue(client, "w")
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1), pytest.raises(ItemInDoubtError):
            await queue.put("a", id="i")
        await queue.put("a", id="i")
        assert await queue.size() == 1
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=2):
            await WorkQueue(client, "w", writer=once).put("b")
        assert await queue.size() == 2


@pytest.mark.parametrize("is_applied", [False, True])
@pytest.mark.parametrize("how", ["complete", "retry", "reject", "delay"])
@pytest.mark.parametrize("exactly_once", [False, True])
async def test_an_end_whose_answer_is_lost_is_found_out(is_applied: bool, how: str, exactly_once: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.exactly_once() as once:
        queue = WorkQueue(client, "w", writer=once if exactly_once else None)
        await queue.put("a", id="i")
        async with queue.worker() as worker:
            job = await first(worker)
            await turns(50)
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
                match how:
                    case "complete":
                        await job.complete(op.put("result", "ok"))
                        assert kept(fake) == []
                        assert fake.changes()[-1].version == 1 or exactly_once
                        assert fake.keys("result")
                    case "retry":
                        await job.retry()
                        assert (await first(worker)).tries == 2
                    case "reject":
                        await job.reject("why")
                        assert [one.reason for one in await queue.dead()] == ["why"]
                    case _:
                        await job.retry(delay=1000)
                        assert len(fake.keys("w/delays/")) == 1
            assert job.is_ended
            assert sum(kv.key == b"result" for kv in fake.changes()) == (how == "complete")


async def test_an_end_without_an_answer_is_found_out_by_the_next_call() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = WorkQueue(client, "w", timeout=1.0)
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            await turns(50)
            with fake.fault("KV/Txn", hang=True), pytest.raises(EtcdError) as raised:
                await job.complete(op.put("result", "ok"))
            assert raised.value.maybe_applied
            await job.complete(op.put("result", "ok"))
            assert job.is_ended
        assert sum(kv.key == b"result" for kv in fake.changes()) == 1


async def test_a_job_that_another_has_done_after_a_revoke_was_not_done_by_this_worker() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            await turns(50)
            with fake.fault("KV/Txn", reset=True, delay=1.0, times=1):  # it was never applied
                completing = asyncio.ensure_future(job.complete(op.put("result", "mine")))
                await asyncio.sleep(0.2)
                worker_key = next(iter(fake.keys("w/workers/")))
                await other.do(op.txn(then=[op.delete(worker_key), op.delete(prefix="w/claims/")]))
                await other.do(op.txn(then=[op.delete(prefix="w/items/"), op.delete(prefix="w/tries/")]))
                with pytest.raises(JobLostError) as raised:
                    await completing
            assert raised.value.maybe_applied, "it cannot be known"


async def test_an_end_that_was_not_applied_is_not_taken_for_one_that_was() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker:
            job = await first(worker)
            await turns(50)
            with fake.fault("KV/Txn", reset=True, delay=1.0, times=1):
                completing = asyncio.ensure_future(job.complete(op.put("result", "mine")))
                await asyncio.sleep(0.2)
                await other.delete(prefix="w/claims/")
                with pytest.raises(JobLostError):
                    await completing
            async with await first(worker) as again:
                assert again.tries == 2


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_claim_whose_answer_is_lost_is_the_workers_own(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        async with queue.worker(concurrency=3) as worker:
            for value in "abc":
                await queue.put(value)
            await asyncio.sleep(1.0)
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
                jobs = await asyncio.gather(*(first(worker) for _ in range(3)))
            assert [(job.text(), job.tries) for job in jobs] == [("a", 1), ("b", 1), ("c", 1)]
            assert len(fake.keys("w/claims/")) == 3
            for job in jobs:
                await job.complete()
            assert kept(fake) == []


async def test_a_late_copy_of_a_claim_claims_nothing_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        sent: list[op.TxnOp] = []
        send = client.do

        async def do(operation: Any, **options: Any) -> Any:
            if isinstance(operation, op.TxnOp) and any(isinstance(part, op.TxnOp) for part in operation.then):
                sent.append(operation)
            return await send(operation, **options)

        monkeypatch.setattr(client, "do", do)
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker() as worker, fake.client() as other:
            await asyncio.sleep(1.0)
            with fake.fault("KV/Txn", reset=True, times=1):
                job = await first(worker)
            # It was in doubt, so a retry puts the item anew, and late copies do nothing.
            await job.retry()
            assert len(sent) >= 2
            await other.do(sent[0])
            assert fake.keys("w/claims/") == {}
            # If the item is as it was, the worker sees a claim of its own that no task has, and deletes it.
            job = await first(worker)
            name = job.key.removeprefix(b"w/items/")
            shift = worker._running.shift
            assert shift is not None
            await job.complete()
            await client.put(job.key, "again")
            await other.put(b"w/claims/" + name, "late", lease=shift.loan.id)
            shift.dirty.add(name)
            await asyncio.sleep(1.0)
            assert fake.keys("w/claims/") == {}
            assert (await first(worker)).text() == "again"


# Cancellation, ends and refusals.


@pytest.mark.parametrize("is_inside", [False, True])
async def test_cancelled_at_any_await_a_job_is_free_again(is_inside: bool) -> None:
    for at in range(0, 40, 2):
        async with FakeEtcd(seed=at) as fake, fake.client() as client:
            queue = WorkQueue(client, "w")
            await queue.put("a")

            async def work(queue: WorkQueue = queue) -> None:
                async with queue.worker() as worker:
                    async for job in worker:
                        async with job:
                            if is_inside:
                                await asyncio.sleep(100)

            task = asyncio.ensure_future(work())
            if is_inside:
                await asyncio.sleep(1.0)
            for _ in range(at if not is_inside else at % 3):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=10.0)
            assert task.cancelled()
            await asyncio.sleep(5.0)
            assert fake.keys("w/claims/") == fake.keys("w/workers/") == {}
            assert not [one for one in tasks() if "work queue" in one.get_name()]
            async with queue.worker() as worker:
                if await queue.size():
                    async with await first(worker, 10.0) as job:
                        assert job.text() == "a"
            assert kept(fake) == []


async def test_a_consumer_that_is_cancelled_leaves_its_job_to_the_next() -> None:
    for at in range(25):
        async with FakeEtcd(seed=at) as fake, fake.client() as client:
            queue = WorkQueue(client, "w")
            async with queue.worker() as worker:
                task = asyncio.ensure_future(anext(worker))
                await asyncio.sleep(1.0)
                await queue.put("a")
                for _ in range(at):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                job = await first(worker, 5.0) if task.cancelled() else task.result()
                assert job.tries == 1
                await job.complete()
            assert kept(fake) == []


async def test_leaving_the_worker_loses_the_jobs_that_still_run() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")

        async with queue.worker(concurrency=2) as worker:
            working = asyncio.ensure_future(takes_long(await first(worker)))
            waiting = asyncio.ensure_future(anext(worker))
            await asyncio.sleep(1.0)
        with pytest.raises(JobLostError, match="the block of the worker has ended"):
            await working
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert kept(fake)[0].startswith("w/items/")
        assert fake.keys("w/claims/") == {}
        with pytest.raises(ClientUsageError, match="entered once"):
            await worker.__aenter__()


async def test_closing_the_client_ends_the_worker() -> None:
    async with FakeEtcd() as fake:
        client = fake.client()
        async with WorkQueue(client, "w").worker() as worker:
            waiting = asyncio.ensure_future(anext(worker))
            await asyncio.sleep(1.0)
            await client.aclose()
            with pytest.raises(ClientUsageError):
                await waiting
            with pytest.raises(ClientUsageError):
                await anext(worker)
        await turns(20)
        assert not [one for one in tasks() if "work queue" in one.get_name()]


async def test_refusals_are_raised_by_the_iteration() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        with fake.fault("KV/Txn", status="PERMISSION_DENIED", times=1), pytest.raises(PermissionDeniedError):
            await queue.worker().__aenter__()
        await queue.put("a")
        async with queue.worker() as worker:
            await asyncio.sleep(1.0)
            with fake.fault("KV/Txn", status="PERMISSION_DENIED", times=1), pytest.raises(PermissionDeniedError):
                await anext(worker)
            async with await first(worker):
                pass


async def test_compaction_and_lost_watches_do_not_end_a_worker() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        async with queue.worker() as worker:
            for number in range(5):
                waiting = asyncio.ensure_future(anext(worker))
                await asyncio.sleep(1.0)
                with fake.fault("Watch/Watch", reset=True, times=2):
                    fake.members[0].stop()
                    fake.members[0].start()
                    await asyncio.sleep(1.0)
                await queue.put(f"{number}")
                fake.compact(fake.revision)
                async with asyncio.timeout(60), await waiting as job:
                    assert job.text() == f"{number}"


async def test_a_long_queue_is_listed_in_part() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        fake.load({f"w/items/00100/{number:020}": f"{number}" for number in range(900)})
        fake.load({f"w/delays/00100/{number:020}": "9e99" for number in range(500)})
        done = []
        async with queue.worker(concurrency=10) as worker:

            async def work() -> None:
                async for job in worker:
                    async with job:
                        done.append(int(job.value))
                    if len(done) == 400:
                        return

            working = [asyncio.ensure_future(work()) for _ in range(10)]
            await asyncio.wait(working, return_when="FIRST_COMPLETED")
            for one in working:
                one.cancel()
            await asyncio.wait(working)
        assert sorted(done) == list(range(500, 900))
        assert await queue.size() == 500


async def test_wrong_arguments_are_refused() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        make: Any = WorkQueue
        with pytest.raises(EmptyKeyError):
            make(client, "")
        wrong: Any
        for wrong in ({"ttl": 0}, {"max_tries": 0}, {"timeout": -1}):
            with pytest.raises(InvalidRequestError):
                make(client, "w", **wrong)
        queue = make(client, "w")
        for wrong in ({"priority": 65536}, {"priority": -1}, {"delay": -1}, {"delay": float("nan")}):
            with pytest.raises(InvalidRequestError):
                await queue.put("x", **wrong)
        with pytest.raises(EmptyKeyError):
            await queue.put("x", id="")
        for wrong in ({"concurrency": 0}, {"on_lost": "ignore"}, {"margin": 20.0}):
            with pytest.raises(InvalidRequestError):
                queue.worker(**wrong)
        with pytest.raises(TypeError):
            await queue.put(1)
        with pytest.raises(ClientUsageError, match="not entered"):
            await anext(queue.worker())
        assert not fake.calls
        assert repr(queue) == "<WorkQueue 'w'>"


# Histories.


async def trouble(fake: FakeEtcd, draw: Random) -> None:
    while True:
        await asyncio.sleep(draw.random() * 0.5)
        match draw.randrange(5):
            case 0:
                member = draw.choice(fake.members)
                member.stop()
                await asyncio.sleep(draw.random() * 0.5)
                member.start()
            case 1:
                fake.compact(fake.revision)
            case 2 | 3:
                with fake.fault("KV/Txn", reset=True, after_apply=draw.random() < 0.7, times=draw.randint(1, 3)):
                    await asyncio.sleep(0.05)
            case _:
                leases = fake.leases
                if leases:
                    async with fake.client() as client:
                        with suppress(EtcdError):
                            await client.leases.revoke(draw.choice(leases).id, timeout=5.0)


async def history(jobs: int, seed: int) -> None:
    """Workers that are killed at random count each job in etcd; every effect is there exactly once."""
    draw = Random(seed)
    async with FakeEtcd(members=3, seed=seed, latency=0.001) as fake, fake.client(timeout=30.0) as client:
        queue = WorkQueue(client, "w", max_tries=1000, timeout=30.0)
        begun: dict[bytes, int] = {}
        miscounted: list[Job] = []

        async def handle(own: Client, job: Job) -> None:
            try:
                async with job:
                    if job.tries <= begun.get(job.value, 0):
                        miscounted.append(job)
                    begun[job.value] = job.tries
                    await asyncio.sleep(draw.random() * 0.2)
                    if draw.random() < 0.1:
                        raise LookupError
                    kv = await own.get(b"done/" + job.value)
                    await job.complete(op.put(b"done/" + job.value, b"%d" % (1 if kv is None else int(kv.value) + 1)))
            except (LookupError, EtcdError):
                pass

        async def work() -> None:
            while True:
                lives = draw.random() * 5.0
                async with fake.client(timeout=30.0) as own:
                    try:
                        async with (
                            asyncio.timeout(lives),
                            WorkQueue(own, "w", ttl=5, max_tries=1000, timeout=30.0).worker(concurrency=4) as worker,
                            asyncio.TaskGroup() as group,
                        ):
                            async for job in worker:
                                group.create_task(handle(own, job))
                    except (TimeoutError, EtcdError, ExceptionGroup):
                        pass

        working = [asyncio.ensure_future(work()) for _ in range(3)]
        causing = asyncio.ensure_future(trouble(fake, Random(seed + 1)))
        put: set[bytes] = set()
        for number in range(jobs):
            await asyncio.sleep(0.02)
            try:
                await queue.put(b"%d" % number)
                put.add(b"%d" % number)
            except ItemInDoubtError:
                pass
        await asyncio.sleep(10.0)
        causing.cancel()
        async with asyncio.timeout(600):
            while await queue.size():  # noqa: ASYNC110 - it ends by other processes
                await asyncio.sleep(1.0)
        for one in working:
            one.cancel()
        await asyncio.wait(working)
        done = {key.removeprefix(b"done/"): value for key, value in fake.keys("done/").items()}
        versions = {kv.key.removeprefix(b"done/"): kv.version for kv in await client.range(prefix="done/")}
        assert put <= set(done), "lost"
        assert set(versions.values()) == {1}, "an effect was applied twice"
        assert kept(fake) == []
        assert not miscounted
        assert any(number > 1 for number in begun.values()), "workers were killed"


async def test_every_effect_is_applied_once_though_workers_are_killed() -> None:
    await history(50, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
async def test_every_effect_is_applied_once_in_many_histories(seed: int) -> None:
    await history(500, seed)


async def several_histories(count: int = 5) -> None:
    for seed in range(count):
        await history(100, seed)


@pytest.mark.slow
async def test_an_end_without_its_condition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def careless(self: Any, how: str, txn: op.TxnOp, deadline: float) -> Any:
        return await self._context.calls.store.do(op.TxnOp((), txn.then, txn.otherwise), retry="always")

    monkeypatch.setattr(job_module.Job, "_commit", careless)
    monkeypatch.setattr(job_module.Job, "is_lost", property(lambda self: False))
    with pytest.raises(AssertionError, match="twice"):
        await several_histories(12)  # one history catches it in nearly every second run


async def test_in_a_namespace_all_keys_are_below_it() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        space = client.namespace("ns/")
        queue = WorkQueue(space, "w", max_tries=1)
        keys = [await queue.put("a", id="i"), await queue.put("b", delay=0.001), await queue.put("c")]
        assert all(key.startswith(b"w/items/") for key in keys)
        await asyncio.sleep(0.1)
        async with queue.worker(concurrency=3) as worker:
            jobs = {job.text(): job for job in [await first(worker) for _ in range(3)]}
            await jobs["a"].complete(op.put("result", "ok"))
            await jobs["b"].retry(reason="failed")
            with fake.fault("KV/Txn", reset=True, after_apply=True, times=1):
                await jobs["c"].complete()
        assert [dead.reason for dead in await queue.dead()] == ["failed"]
        assert all(key.startswith(b"ns/") for key in fake.keys(""))
        assert not fake.keys("ns/w/items/")
        assert fake.keys("ns/result")


async def test_a_job_whose_task_never_begins_is_free_again(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        for text in "ab":
            await queue.put(text)
        begun: list[str] = []

        async def run(job: Job) -> None:
            async with job:
                begun.append(job.text())

        async with queue.worker(concurrency=2) as worker:
            task = asyncio.Task(run(await first(worker)))  # not eager, whatever the task factory is
            task.cancel()
            await asyncio.wait([task])
            del task
            for _ in range(2):
                await run(await first(worker))
            assert sorted(begun) == ["a", "b"]
            assert kept(fake) == []
            await none_comes(worker)
    dropped = [record for record in caplog.records if "dropped" in record.getMessage()]
    assert len(dropped) == 1


async def test_a_job_that_is_dropped_leaves_its_place_to_another_one(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w", max_tries=3)
        await queue.put("a")
        async with queue.worker(concurrency=1) as worker:
            for tries in (1, 2, 3):
                assert (await first(worker)).tries == tries
            await none_comes(worker)
            assert len(await queue.dead()) == 1, "an attempt counts although it was not begun"
    assert len([record for record in caplog.records if "dropped" in record.getMessage()]) == 3
    assert not fake.leases


async def test_a_job_that_another_thread_drops_is_free_again() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker(concurrency=1) as worker:
            jobs = [await first(worker)]
            await none_comes(worker)
            await asyncio.to_thread(jobs.clear)
            async with await first(worker) as job:
                assert job.tries == 2
        assert kept(fake) == []


async def test_a_job_that_is_held_is_claimed_for_as_long_as_that(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = WorkQueue(client, "w")
        await queue.put("a")
        async with queue.worker(concurrency=2) as worker:
            job = await first(worker)
            await none_comes(worker, 3600.0)
            async with job:
                assert job.tries == 1
            del job
            await none_comes(worker)
    assert not [record for record in caplog.records if "dropped" in record.getMessage()]
    assert kept(fake) == []
