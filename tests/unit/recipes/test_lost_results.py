"""recipes/: recipes with exactly-once writes whose results are compacted: what a txn did is known all the same."""

import asyncio

import pytest

from etcd_aio import Client, OutcomeUnknownError, op
from etcd_aio.errors import ItemInDoubtError, JobLostError, LockLostError, ResultLostError, TxnConflictError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Barrier, Counter, IdAllocator, PriorityQueue, Queue, Transaction, WorkQueue
from tests.support.lossy_writer import LossyWriter

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_a_transaction_that_has_committed_is_not_run_again() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        await client.put("a", "1")
        runs = 0

        async def move(tx: Transaction) -> str:
            nonlocal runs
            runs += 1
            kv = await tx.get("a")
            assert kv is not None
            tx.put("b", kv.value)
            tx.delete("a")
            return kv.text()

        result = await client.stm(move, writer=writer)
        assert (writer.lost, result.value, runs) == ([True], "1", 1)
        assert result.revision == fake.revision
        assert fake.keys() == {b"b": b"1"}


@pytest.mark.parametrize("conflicts", [1, 3])
async def test_a_transaction_that_has_conflicted_runs_again(conflicts: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client, times=conflicts)
        runs = 0

        async def add(tx: Transaction) -> None:
            nonlocal runs
            runs += 1
            kv = await tx.get("n")
            if runs <= conflicts:
                await client.put("n", f"{runs * 100}")
            tx.put("n", f"{1 + int('0' if kv is None else kv.value)}")

        await client.stm(add, writer=writer)
        assert writer.lost == [False] * conflicts
        assert fake.keys() == {b"n": b"%d" % (conflicts * 100 + 1)}


async def test_a_transaction_that_conflicts_too_often_names_its_keys() -> None:
    async with FakeEtcd() as fake, fake.client() as client:

        async def add(tx: Transaction) -> None:
            await tx.get("n")
            await client.put("n", "")
            tx.put("n", "")

        with pytest.raises(TxnConflictError) as raised:
            await client.stm(add, writer=LossyWriter(client, times=9), max_attempts=3)
        assert raised.value.conflicts == (b"n",)


@pytest.mark.parametrize("has_lease", [False, True])
async def test_a_barrier_that_was_held_is_not_held(has_lease: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        lease = await client.leases.grant(60)
        await Barrier(client, "b").hold()
        barrier = Barrier(client, "b", writer=writer)
        assert not await barrier.hold(lease=lease if has_lease else None)
        assert writer.lost == [False]
        assert "held" not in repr(barrier)


async def test_a_barrier_that_is_held_with_the_lease_is_its_own() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        lease = await client.leases.grant(60)
        await Barrier(client, "b").hold(lease=lease)
        barrier = Barrier(client, "b", writer=LossyWriter(client))
        assert await barrier.hold(lease=lease)
        assert await barrier.release()


@pytest.mark.parametrize("kind", [Queue, PriorityQueue])
async def test_an_item_whose_value_is_compacted_is_named(kind: type[Queue] | type[PriorityQueue]) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        queue = kind(client, "q", writer=writer)
        key = await queue.put("a")
        with pytest.raises(ItemInDoubtError, match="compacted") as raised:
            await queue.get(timeout=5.0)
        assert (raised.value.keys, writer.lost) == ((key,), [True])
        await queue.put("b")
        assert (await queue.get(timeout=5.0)).text() == "b"


async def test_an_item_whose_value_is_compacted_is_told_to_one_consumer() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = Queue(client, "q", writer=LossyWriter(client))
        waiting = [asyncio.ensure_future(queue.get(timeout=5.0)) for _ in range(2)]
        await asyncio.sleep(0.1)
        await queue.put("a")
        await queue.put("b")
        first, second = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(first, ItemInDoubtError)
        assert not isinstance(second, BaseException)
        assert second.text() == "b"


async def test_a_job_with_an_id_that_is_there_is_found() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        key = await WorkQueue(client, "w").put("a", id="x")
        assert await WorkQueue(client, "w", writer=writer).put("b", id="x") == key
        assert writer.lost == [False]
        assert await WorkQueue(client, "w").size() == 1


@pytest.mark.parametrize("is_alive", [True, False])
async def test_what_became_of_a_dead_job_is_known(is_alive: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        writer = LossyWriter(client, times=0)
        queue = WorkQueue(client, "w", writer=writer)
        await queue.put("a")
        async with queue.worker() as worker, await anext(worker) as job:
            await job.reject()
        (dead,) = await queue.dead()
        if is_alive:
            writer._times = 1
            assert await queue.revive(dead)
            assert writer.lost == [True]
        else:
            await client.delete(dead.key)
            assert not await queue.revive(dead)


@pytest.mark.parametrize("how", ["complete", "reject", "retry"])
async def test_a_job_that_was_ended_has_ended(how: str) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        writer = LossyWriter(client)
        queue = WorkQueue(client, "w", writer=writer)
        await queue.put("a")
        async with queue.worker() as worker, await anext(worker) as job:
            await getattr(job, how)()
            assert (job.is_ended, job.is_lost, writer.lost) == (True, False, [True])
        assert await queue.size() == (1 if how == "retry" else 0)


async def test_a_job_whose_claim_is_gone_is_lost() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        writer = LossyWriter(client)
        queue = WorkQueue(client, "w", writer=writer)
        await queue.put("a")
        async with queue.worker() as worker:
            job = await anext(worker)
            (claim,) = fake.keys("w/claims/")
            await asyncio.gather(client.delete(claim), job.complete(op.put("done", "")), return_exceptions=True)
            with pytest.raises(JobLostError) as raised:
                raise await job.lost() or AssertionError("it was completed")
            assert (raised.value.maybe_applied, writer.lost) == (False, [False])
            assert not fake.keys("done")


@pytest.mark.parametrize("expected", [0, 1])
async def test_an_optimistic_write_that_was_refused_is_told_with_the_key(expected: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        put = await client.put("k", "1")
        writer = LossyWriter(client)
        kubernetes = client.kubernetes(writer=writer)
        result = await kubernetes.optimistic_put("k", "2", expected and put.revision - 1)
        assert (result.succeeded, writer.lost) == (False, [False])
        assert result.kv is not None
        assert result.kv.value == b"1"


async def test_an_optimistic_deletion_that_was_made_is_told() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        put = await client.put("k", "1")
        writer = LossyWriter(client)
        result = await client.kubernetes(writer=writer).optimistic_delete("k", put.revision)
        assert (result.succeeded, result.revision, writer.lost) == (True, fake.revision, [True])


async def fenced(client: Client, writer: LossyWriter, *, loses: bool) -> None:
    async with client.lock("l", on_lost="signal") as lock:
        if loses:
            (key,) = [kv.key for kv in await client.range(prefix="l/")]
            await client.delete(key)
        await lock.fenced_by(writer).put("k", "v", prev_kv=True)


@pytest.mark.parametrize("loses", [True, False])
async def test_a_fenced_write_says_whether_the_ownership_was_gone(loses: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        with pytest.raises(LockLostError if loses else ResultLostError):
            await fenced(client, writer, loses=loses)
        assert (bool(fake.keys("k")), writer.lost) == (not loses, [not loses])


async def test_a_fenced_txn_does_not_say_which_branch_it_has_run() -> None:
    """The conditions of its own stand within another txn, whose branch alone is known."""
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("n", "7")
        async with client.lock("l") as lock:
            counter = Counter(client, "n", writer=lock.fenced_by(LossyWriter(client)))
            counter._known_revision = 1  # it is old
            with pytest.raises(OutcomeUnknownError, match="compacted"):
                await counter.add(1)
            assert await counter.add(1) == 8


async def test_ids_are_handed_out() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        writer = LossyWriter(client)
        ids = IdAllocator(client, "ids", writer=writer, block=10)
        ids._counter._known_revision = 5  # it is wrong, so the first txn conflicts
        assert await ids.next() == 1
        assert writer.lost == [False]
        assert fake.keys() == {b"ids": b"10"}


async def compacts(fake: FakeEtcd, key: bytes) -> None:
    """Compact the history up to the deletion of a key, as soon as it is deleted."""
    async with asyncio.timeout(60):
        while fake.keys(key):  # noqa: ASYNC110 - the fake has no event for that
            await asyncio.sleep(0.001)
    fake.compact(fake.revision)


@pytest.mark.parametrize("what", ["get", "complete", "stm"])
async def test_an_answer_is_lost_and_its_history_is_compacted(what: str) -> None:
    """As above, through exactly-once writes themselves."""
    async with FakeEtcd(latency=0.01) as fake, fake.client() as client, client.exactly_once() as once:
        await once.put("warm", "")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("random.random", lambda: 0.999)  # long waits before an attempt
            if what == "get":
                queue = Queue(client, "q", writer=once)
                key = await queue.put("a")
                compacting = asyncio.ensure_future(compacts(fake, key))
                with (
                    fake.fault("KV/Txn", reset=True, after_apply=True, times=1) as lost,
                    pytest.raises(ItemInDoubtError, match="compacted") as raised,
                ):
                    await queue.get(timeout=60.0)
                assert raised.value.keys == (key,)
            elif what == "complete":
                jobs = WorkQueue(client, "w", writer=once)
                key = await jobs.put("a")
                async with jobs.worker() as worker:
                    job = await anext(worker)
                    compacting = asyncio.ensure_future(compacts(fake, key))
                    with fake.fault("KV/Txn", reset=True, after_apply=True, times=1) as lost:
                        await job.complete()
                    assert job.is_ended
            else:
                await client.put("k", "v")

                async def forget(tx: Transaction) -> None:
                    tx.delete("k")

                compacting = asyncio.ensure_future(compacts(fake, b"k"))
                with fake.fault("KV/Txn", reset=True, after_apply=True, times=1) as lost:
                    assert (await client.stm(forget, writer=once)).attempts == 1
            await compacting
            assert lost.hits == 1
            assert once.statistics().replays == 0, "the results were compacted"
