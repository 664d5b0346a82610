"""Worker: claims jobs of a work queue under one lease, and hands them out.

Two tasks: one follows the jobs by a watch and a listing, one claims as many as the consumers ask for. A claim compares
the revision of the item, so it is sent again until it is answered; a claim with the worker's own lease is its own. A
copy of it that comes late, after the job was freed, claims it for no task. A backup that is restored has the claims of
its time. So a claim with the worker's own lease that it does not run is the worker's to delete, and it goes on until
that is done. When the worker ends, its lease is revoked, and with it all its claims.

A lease that is lost ends a shift: all its jobs are lost, and the worker goes on with another lease.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import Key, KeyValue, PutResult, TxnResult, Watcher, op
from etcd_aio.base import (
    NEVER,
    PATIENT,
    SOON,
    HandOver,
    NotAwaitable,
    Pauses,
    check_loop,
    start_background_task,
    start_timer,
    wake,
    when_constructed,
)
from etcd_aio.errors import (
    ClientUsageError,
    CompactedError,
    EtcdError,
    JobLostError,
    LeaseNotFoundError,
    NoSpaceError,
    StoreRolledBackError,
)
from etcd_aio.recipes.queue.candidates import Spread
from etcd_aio.recipes.work_queue.job import Job
from etcd_aio.recipes.work_queue.jobs import Board, Claim, FreeJob, Kind
from etcd_aio.recipes.work_queue.running_jobs import RunningJobs
from etcd_aio.recipes.work_queue.shift import Shift, WorkerContext
from etcd_aio.types import shown_key

_MOST_AT_A_TIME: Final = 16  # claims of one txn: with the largest payloads, the answer is 24 MiB
_GIVE_UP_SECONDS: Final = 60.0  # until a job that cannot be given up, as if it is too large for that, is claimed again
_KEPT_SECONDS: Final = 1.0  # that a job is kept for a consumer that was cancelled, as by a timeout, and may come again
_LEAVE_SECONDS: Final = 2.0  # that leaving waits for the end of the lease: twice etcd's default election timeout


class Worker(NotAwaitable, AsyncIterator[Job]):
    """A worker: `async with queue.worker(concurrency=8) as worker:`, and `async for job in worker:`.

    It yields jobs that it has claimed, at most `concurrency` at a time: it waits while as many are neither ended nor
    lost. Several tasks may iterate over one worker. Leaving the block frees the jobs that are not ended: those whose
    blocks are still running are lost, and their tasks are cancelled.

    If the lease is lost, all jobs are, and the worker goes on with another lease.
    """

    usage: ClassVar[str] = "a worker cannot be awaited: write `async with queue.worker() as worker:`"

    def __init__(self, context: WorkerContext, *, concurrency: int, owner: bytes) -> None:
        self._context = context
        self._store, self._keys, self._pool = context.store, context.keys, context.pool
        self._timeout = context.timeout
        self._max_tries = context.max_tries
        self._concurrency = concurrency
        self._owner = owner
        self._what = context.what
        self._log = context.log
        self._board = Board(context.keys)
        self._is_loaded = False
        self._freeing: set[tuple[bytes, Claim]] = set()  # claims that are being deleted
        self._spread = Spread()
        self._shift: Shift | None = None
        self._jobs = RunningJobs(self._job_dropped)  # of the shift
        self._waiting: HandOver[Job | EtcdError | None] = HandOver(self._take_back)
        self._kept: deque[Job] = deque()  # claimed for consumers that were cancelled
        self._changed: asyncio.Future[None] | None = None
        self._tasks: tuple[asyncio.Task[None], asyncio.Task[None]] | tuple[()] = ()
        self._is_entered = False
        self._is_left = False
        self._end: EtcdError | None = None  # the client is closed
        self._is_full = False  # the store is, as far as was logged

    @when_constructed
    def __repr__(self) -> str:
        return f"<Worker of {self._what} with {len(self._jobs)} jobs>"

    # Lifetime.

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ClientUsageError("a worker can only be entered once: make another one")
        self._is_entered = True
        self._shift = await self._begin()
        self._tasks = (
            start_background_task(self._follow(), name=f"etcd_aio jobs of {self._what}"),
            start_background_task(self._serve(), name=f"etcd_aio claims of {self._what}"),
        )
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_left = True
        for task in self._tasks:
            task.cancel()
        while self._waiting.give(None):
            pass
        shift, self._shift = self._shift, None
        if shift is not None and not shift.is_over:
            shift.end("the block of the worker has ended")
            ending = self._pool.run(shift.loan.revoke(), f"end of a worker of {self._what}")
            if not isinstance(exc, asyncio.CancelledError):
                await asyncio.wait([ending, *self._tasks], timeout=_LEAVE_SECONDS)

    async def _begin(self) -> Shift:
        """Borrow a lease, and create the worker's own key, which proves that the lease was never lost."""
        while True:
            loan = await self._pool.borrow(self._context.ttl)
            shift = Shift(self._context, loan, on_end=self._shift_over, on_doubt=self._follow_again)
            key = shift.worker_key
            put, look = op.put(key, self._owner, lease=loan.id), op.get(key)
            try:
                result = await self._store.do(
                    op.txn(when=[Key(key).missing], then=[put], otherwise=[look]), timeout=self._timeout, retry="always"
                )
            except LeaseNotFoundError:
                await loan.revoke()
                if not loan.was_idle:
                    raise
                continue
            except BaseException:  # a cancellation too: the lease may have the key
                self._pool.run(loan.revoke(), f"end of a worker of {self._what}")
                raise
            found = None if result.succeeded else result[look]
            shift.begin(result.revision if found is None else found.create_revision)
            if not shift.is_over:
                return shift
            self._pool.run(loan.revoke(), f"end of a worker of {self._what}")  # the answer took until its margin

    def _shift_over(self, shift: Shift, reason: str, cause: BaseException | None) -> None:
        """The lease of a shift is lost, or the worker is left: so are all its jobs."""
        for job in self._jobs.copy().values():
            job.lose(reason, cause)
        self._jobs.clear()
        if self._shift is shift:
            self._shift = None
            self._pool.run(shift.loan.revoke(), f"end of a worker of {self._what}")
        self._kept.clear()
        self._wake()

    def _job_ended(self, name: bytes, job: Job) -> None:
        """A job is not this worker's any more."""
        if self._jobs.remove(name, job):
            self._wake()

    def _job_dropped(self, job: bytes) -> None:
        """A job was handed out, and not ended; nothing refers to it any more: its claim is the worker's to delete."""
        if self._shift is not None:
            self._shift.dirty.add(job)
        self._log.warning("%s: job %s was dropped without being ended: it is free again", self._what, shown_key(job))
        self._sweep()
        self._wake()

    def _wake(self) -> None:
        """There may be something to claim, or a consumer to serve."""
        wake(self._changed)

    # Consumers.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Job:
        if not self._is_entered:
            raise ClientUsageError("the worker is not entered: write `async with queue.worker() as worker:`")
        if self._is_left:
            raise StopAsyncIteration
        if self._end is not None:
            raise self._end.with_traceback(None)
        if self._tasks:
            check_loop(self._tasks[0])
        self._wake()
        outcome = await self._waiting.wait(NEVER, None)
        if outcome is None:
            raise StopAsyncIteration
        if isinstance(outcome, EtcdError):
            raise outcome.with_traceback(None)
        return outcome

    def _take_back(self, outcome: Job | EtcdError | None) -> None:
        if isinstance(outcome, Job):
            self._keep(outcome)

    def _keep(self, job: Job) -> None:
        """The consumer of a job was cancelled: it is for the next one, or free again if none comes soon."""
        self._kept.appendleft(job)
        self._wake()
        start_timer(_KEPT_SECONDS, self._free_kept, job)

    def _free_kept(self, job: Job) -> None:
        if job in self._kept:
            self._kept.remove(job)
            job._release_later(has_begun=False)

    def _wanted(self) -> int:
        """How many jobs are asked for, and may be claimed."""
        return min(len(self._waiting) - len(self._kept), self._concurrency - len(self._jobs), _MOST_AT_A_TIME)

    def _hand_out(self) -> None:
        while self._kept and self._waiting:
            job = self._kept.popleft()
            if not job.is_lost:
                self._waiting.give(job)

    # Following the jobs.

    def _follow_again(self) -> None:
        """The store may be another one than before: list everything anew, and compare it with what is running."""
        if self._tasks and not self._is_left and self._end is None:
            following, serving = self._tasks
            following.cancel()
            self._is_loaded = False
            again = start_background_task(self._follow(), name=f"etcd_aio jobs of {self._what}")
            self._tasks = (again, serving)

    async def _follow(self) -> None:
        pauses = Pauses(SOON)
        while True:
            try:
                # From now, and then a look: no change falls in between, and no old revision is named.
                async with self._store.watch(prefix=self._keys.prefix, timeout=None) as watcher:
                    await self._load()
                    pauses.reset()
                    await self._learn(watcher)
            except (CompactedError, StoreRolledBackError):
                self._is_loaded = False
            except ClientUsageError as error:
                self._fail(error)
                return
            except EtcdError as error:
                self._is_loaded = False
                if not error.retryable:
                    self._fail(error)
                await pauses.wait()

    async def _learn(self, watcher: Watcher) -> None:
        while True:
            for event in (await watcher.next_batch()).events:
                parsed = self._board.apply(event)
                if parsed is not None and parsed[0] is Kind.CLAIM and event.is_delete:
                    self._claim_gone(parsed[1], event.revision)
            self._sweep()
            self._wake()
            if not self._board.is_complete and not self._board.free(1, time.time(), 0, random.random):
                await self._load()

    async def _load(self) -> None:
        """List the claims, the delays and the first items, at one revision."""
        while True:
            shift = self._shift
            running = self._jobs.copy()
            parts = [
                op.range(prefix=self._keys.of(Kind.CLAIM)),  # etcd 3.7 leaves the leases out of a read of keys only
                op.range(prefix=self._keys.of(Kind.DELAY)),
                op.range(prefix=self._keys.of(Kind.ITEM), keys_only=True, limit=self._board.limit),
            ]
            look = op.get(self._keys.worker_key(0) if shift is None else shift.worker_key)
            result = await self._store.do(op.txn(then=[*parts, look]))
            is_complete = not result[parts[2]].more
            self._board.load([kv for part in parts for kv in result[part]], result.revision, is_complete=is_complete)
            self._is_loaded = True
            if shift is not None and shift is self._shift:
                self._compare(shift, running, result[look])
            self._sweep()
            self._wake()
            if is_complete or self._board.free(1, time.time(), 0, random.random):
                return
            if len(result[parts[2]]) >= self._board.limit:
                self._board.limit = 2 * len(result[parts[2]])

    def _compare(self, shift: Shift, running: dict[bytes, Job], worker: KeyValue | None) -> None:
        """Compare what a listing has with the jobs that were running before it was requested.

        They are the same, unless the watch has missed changes, or a backup was restored.
        """
        if worker is None or worker.create_revision != shift.revision:
            shift.end("the key of its worker is gone: it was deleted, or the store is another one than before")
            return
        for name, job in running.items():
            claim = self._board.claims.get(name)
            if self._jobs.get(name) is job and (claim is None or claim.revision != job.fencing_token):
                job.claim_deleted()
        shift.dirty |= {name for name, claim in self._board.claims.items() if self._is_idle(shift, name, claim)}

    def _is_idle(self, shift: Shift, job: bytes, claim: Claim) -> bool:
        """Whether a claim has the worker's lease, and is none of a job that it runs, or may be about to run."""
        return claim.lease == shift.loan.id and job not in self._jobs and job not in shift.claiming

    def _claim_gone(self, job: bytes, revision: int) -> None:
        """A claim was deleted while the lease lives."""
        lost = self._jobs.get(job)
        if lost is not None and lost.fencing_token < revision:
            lost.claim_deleted()

    def _sweep(self) -> None:
        """Free jobs that are claimed for no task, and those with a claim of no worker."""
        for job in sorted(self._board.strays):
            self._free(job, self._board.claims[job], self._shift)
        self._board.strays.clear()  # they are listed again, if they stay
        shift = self._shift
        if shift is None:
            return
        for job in sorted(shift.dirty):
            claim = self._board.claims.get(job)
            if claim is not None and self._is_idle(shift, job, claim):
                self._free(job, claim, shift)

    def _free(self, job: bytes, claim: Claim, shift: Shift | None) -> None:
        if (job, claim) not in self._freeing:
            self._freeing.add((job, claim))
            self._pool.run(self._delete_claim(job, claim, shift), "release of a job")

    async def _delete_claim(self, job: bytes, claim: Claim, shift: Shift | None) -> None:
        """Delete a claim, until that is answered, or it is seen to be gone, or the lease is lost."""
        key = self._keys.of(Kind.CLAIM, job)
        is_same = [Key(key).create_revision == claim.revision, Key(key).lease == claim.lease]
        free = op.txn(when=is_same, then=[op.delete(key)])
        pauses = Pauses(SOON)
        try:
            while shift is self._shift and self._board.claims.get(job) == claim:
                try:
                    result = await self._store.do(free, timeout=self._timeout, retry="always")
                except EtcdError as error:
                    if isinstance(error, ClientUsageError):
                        return
                    if not error.retryable and pauses.backoff is SOON:
                        pauses = Pauses(PATIENT)
                        self._log.warning(
                            "%s: the claim of job %s cannot be deleted, which is tried again: %s",
                            self._what,
                            shown_key(job),
                            error,
                        )
                    await pauses.wait()
                else:
                    if result.succeeded and not claim.lease:
                        self._log.warning("%s: the claim of job %s had no lease: deleted", self._what, shown_key(job))
                    return
        finally:
            self._freeing.discard((job, claim))

    def _fail(self, error: EtcdError) -> None:
        """Tell an error to the consumers; if the client is closed, to those that are still to come too."""
        if isinstance(error, ClientUsageError):
            self._end = error
        while self._waiting.give(error):
            pass

    # Claiming.

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        pauses = Pauses(SOON)
        was_idle = True
        while self._end is None:
            self._changed = loop.create_future()
            self._hand_out()
            if self._shift is None or self._shift.is_over:
                try:
                    self._shift = await self._begin()
                    pauses.reset()
                except EtcdError as error:
                    await self._after(error, pauses)
                continue
            found = self._find()
            if not found:
                was_idle = True
                await self._pause(None if self._wanted() <= 0 else self._board.next_due(time.time()))
                continue
            if was_idle and self._spread.seconds:
                await asyncio.sleep(self._spread.seconds * random.random())
                found = self._find()
            was_idle = False
            if found and self._shift is not None:
                try:
                    await self._claim(self._shift, found)
                    pauses.reset()
                    self._is_full = False
                except EtcdError as error:
                    await self._after(error, pauses)

    def _find(self) -> list[FreeJob]:
        if not self._is_loaded or self._wanted() <= 0:
            return []
        return self._board.free(self._wanted(), time.time(), self._spread.window, random.random)

    async def _pause(self, due: float | None) -> None:
        """Wait for a change, or until a delay is over."""
        assert self._changed is not None  # noqa: S101 - of the task that serves
        await asyncio.wait([self._changed], timeout=None if due is None else max(0.001, due - time.time()))

    async def _after(self, error: EtcdError, pauses: Pauses) -> None:
        """A claim was refused: tell it to the consumers, unless it may succeed later."""
        if isinstance(error, NoSpaceError):
            if not self._is_full:
                self._log.warning("%s: no job is claimed while the store is full", self._what)
            self._is_full = True
        elif isinstance(error, LeaseNotFoundError):
            if self._shift is not None:
                self._shift.end("its lease is gone", error)
        elif not error.retryable:
            self._fail(error)
        await pauses.wait()

    async def _claim(self, shift: Shift, found: Sequence[FreeJob]) -> None:
        parts = [self._part(shift, one) for one in found]
        txn = op.txn(then=parts)
        names = frozenset(one.job for one in found)
        shift.claiming, are_dirty = names, False
        try:
            try:
                result = await self._store.do(txn, timeout=self._timeout, retry="safe")
            except EtcdError as error:
                if not error.maybe_applied or isinstance(error, NoSpaceError):
                    raise
                shift.dirty |= names
                are_dirty = True
                result = await self._store.do(txn, timeout=max(1.0, shift.left), retry="always")
            for one, part in zip(found, parts, strict=True):
                reply = result[part]
                self._board.doubt(one.job, result.revision)
                job = await self._claimed(shift, one, reply, is_dirty=are_dirty)
                if job is None:
                    self._spread.lost()
                elif not shift.is_over and not self._is_left:
                    self._spread.won()
                    self._jobs.add(one.job, job)
                    if job.tries > self._max_tries:
                        await self._give_up(job)
                    else:
                        self._kept.append(job)
                        self._hand_out()
                        if job in self._kept:
                            self._kept.remove(job)
                            self._keep(job)
        except asyncio.CancelledError:
            shift.dirty |= names
            raise
        finally:
            shift.claiming = frozenset()
            if are_dirty:
                self._sweep()

    def _part(self, shift: Shift, one: FreeJob) -> op.TxnOp:
        item, claim = self._keys.of(Kind.ITEM, one.job), self._keys.of(Kind.CLAIM, one.job)
        tries, delay = self._keys.of(Kind.TRIES, one.job), self._keys.of(Kind.DELAY, one.job)
        return op.txn(
            when=[Key(item).mod_revision == one.revision, Key(claim).missing, Key(delay).mod_revision == one.delay],
            then=[
                op.get(item),
                op.put(claim, self._owner, lease=shift.loan.id),
                op.put(tries, self._owner, prev_kv=True),
                *([op.delete(delay)] if one.delay else []),
            ],
            otherwise=[op.get(claim)],
        )

    async def _claimed(self, shift: Shift, one: FreeJob, reply: TxnResult, *, is_dirty: bool) -> Job | None:
        """The job that an answer means; None if another worker has it."""
        if reply.succeeded:
            item, _, tries = reply.responses[:3]
            if not isinstance(item, KeyValue) or not isinstance(tries, PutResult):
                return None
            number = 1 if tries.prev_kv is None else tries.prev_kv.version + 1
            return Job(shift, one.job, item.value, number, reply.revision, self._job_ended, is_dirty=is_dirty)
        claim = reply.responses[0]
        if not isinstance(claim, KeyValue) or claim.lease != shift.loan.id or one.job in self._jobs:
            return None
        # An earlier copy of the same request has claimed it.
        parts = [op.get(self._keys.of(kind, one.job)) for kind in (Kind.CLAIM, Kind.ITEM, Kind.TRIES)]
        found = await self._store.do(op.txn(then=parts), timeout=max(1.0, shift.left))
        own, kv, tried = (found[part] for part in parts)
        if own is None or own.create_revision != claim.create_revision or kv is None:
            return None
        number = 1 if tried is None else tried.version
        return Job(shift, one.job, kv.value, number, own.create_revision, self._job_ended, is_dirty=True)

    async def _give_up(self, job: Job) -> None:
        """A job whose last attempt ended without a word, as by a crash of its worker."""
        try:
            await job.reject(f"attempt {job.tries - 1} of {self._max_tries} did not end")
        except JobLostError:
            pass
        except EtcdError as error:
            self._log.warning("%s: job %s could not be given up: %s", self._what, shown_key(job.key), error)
            job._release_later(delay=0.0 if error.retryable else _GIVE_UP_SECONDS)
