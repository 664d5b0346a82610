"""Worker: claims jobs of a work queue under one lease, and hands them out.

Two tasks: that of `following.py` knows which jobs are free, and this one's claims as many as the consumers ask for. A
claim is sent again until it is answered; a claim with the worker's own lease is its own. When the worker ends, its
lease is revoked, and with it all its claims.

A lease that is lost ends a shift: all its jobs are lost, and the worker continues with another lease.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import TxnResult, op
from etcd_aio.base import (
    NEVER,
    SOON,
    HandOver,
    NotAwaitable,
    Pauses,
    as_etcd_error,
    check_loop,
    start_background_task,
    start_timer,
    wake,
    when_constructed,
)
from etcd_aio.errors import ClientUsageError, EtcdError, JobLostError, LeaseNotFoundError, NoSpaceError
from etcd_aio.recipes.queue.known_items import Spread
from etcd_aio.recipes.work_queue.claiming import ClaimTxn
from etcd_aio.recipes.work_queue.following import JobFollower
from etcd_aio.recipes.work_queue.job import Job
from etcd_aio.recipes.work_queue.jobs import FreeJob, Kind
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

    If the lease is lost, all jobs are, and the worker continues with another lease.
    """

    usage: ClassVar[str] = "a worker cannot be awaited: write `async with queue.worker() as worker:`"

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._calls, self._keys, self._pool = context.calls, context.keys, context.pool
        self._running = RunningJobs(self._wake, self._job_dropped)
        self._follower = JobFollower(context, self._running, self._wake, self._fail)
        self._spread = Spread()
        self._waiting: HandOver[Job | Exception | None] = HandOver(self._take_back)
        self._kept: deque[Job] = deque()  # for the next consumers: none waits while there are any
        self._changed: asyncio.Future[None] | None = None
        self._claiming: asyncio.Task[None] | None = None
        self._is_entered = False
        self._is_left = False
        self._end: EtcdError | None = None  # the client is closed
        self._is_full = False  # the store is, as far as was logged

    @when_constructed
    def __repr__(self) -> str:
        return f"<Worker of {self._keys.what} with {len(self._running)} jobs>"

    # Lifetime.

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ClientUsageError("a worker can only be entered once: make another one")
        self._is_entered = True
        await self._begin()
        self._follower.start()
        self._claiming = start_background_task(self._claim_jobs(), name=f"etcd_aio claims of {self._keys.what}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_left = True
        tasks = [task for task in (self._follower.stop(), self._claiming) if task is not None]
        for task in tasks:
            task.cancel()
        while self._waiting.give(None):
            pass
        shift = self._running.shift
        if shift is not None:
            shift.end("the block of the worker has ended")
            if shift.ending is not None and not isinstance(exc, asyncio.CancelledError):
                await asyncio.wait([shift.ending, *tasks], timeout=_LEAVE_SECONDS)

    async def _begin(self) -> None:
        """Begin a shift: borrow a lease, and create the worker's own key."""
        running = self._running
        while running.shift is None:
            loan = await self._pool.borrow(self._context.ttl)
            shift = Shift(self._context, loan, on_end=running.shift_over, on_doubt=self._follower.start_again)
            try:
                await shift.create()
            except LeaseNotFoundError:
                if not loan.was_idle:
                    raise
            else:
                running.shift = None if shift.is_over else shift

    def _job_dropped(self, name: bytes) -> None:
        """A job was handed out, and not ended; nothing refers to it any more: its claim is the worker's to delete."""
        if self._running.shift is not None:
            self._running.shift.dirty.add(name)
        text = "%s: job %s was dropped without being ended: it is free again"
        self._context.log.warning(text, self._keys.what, shown_key(name))
        self._follower.sweep()
        self._wake()

    def _wake(self) -> None:
        """Look again for jobs to claim."""
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
        if self._claiming is not None:
            check_loop(self._claiming)
        while self._kept:
            job = self._kept.popleft()
            if not job.is_lost:
                return job
        self._wake()
        outcome = await self._waiting.wait(NEVER, None)
        if outcome is None:
            raise StopAsyncIteration
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)
        return outcome

    def _hand_over(self, job: Job) -> None:
        """Give a job to the consumer that has waited longest. If none waits, and none comes soon, it is free again."""
        if not self._waiting.give(job):
            self._kept.append(job)
            start_timer(_KEPT_SECONDS, self._free_kept, job)

    def _take_back(self, outcome: Job | Exception | None) -> None:
        """A consumer was cancelled in the moment in which it was served: the next one is."""
        if isinstance(outcome, Job):
            self._hand_over(outcome)

    def _free_kept(self, job: Job) -> None:
        if job in self._kept:
            self._kept.remove(job)
            job._release_later(has_begun=False)

    def _fail(self, error: Exception) -> None:
        """Tell an error to the consumers; if the client is closed, to those that are still to come too."""
        if isinstance(error, ClientUsageError):
            self._end = error
        while self._waiting.give(error):
            pass

    # Claiming.

    async def _claim_jobs(self) -> None:
        pauses = Pauses(SOON)
        was_idle = True
        while self._end is None:
            self._changed = asyncio.get_running_loop().create_future()
            try:
                shift = self._running.shift
                if shift is None:
                    await self._begin()
                elif not (free := self._free_jobs()):
                    was_idle = True
                    await self._wait(self._changed)
                    continue
                elif was_idle and self._spread.seconds:  # by then, another worker may have claimed them
                    was_idle = False
                    await asyncio.sleep(self._spread.seconds * random.random())
                    continue
                else:
                    was_idle = False
                    await self._claim(shift, free)
                pauses.reset()
                self._is_full = False
            except Exception as error:  # also of the application's backend, which the consumers must see
                self._refused(error)
                await pauses.wait()

    def _wanted(self) -> int:
        """How many jobs are asked for, and may be claimed."""
        return min(len(self._waiting), self._context.concurrency - len(self._running), _MOST_AT_A_TIME)

    def _free_jobs(self) -> list[FreeJob]:
        if not self._follower.is_loaded or self._wanted() <= 0:
            return []
        return self._follower.board.free(self._wanted(), time.time(), self._spread.window, random.random)

    async def _wait(self, changed: "asyncio.Future[None]") -> None:
        """Wait for a change, or until a delay is over."""
        due = None if self._wanted() <= 0 else self._follower.board.next_due(time.time())
        await asyncio.wait([changed], timeout=None if due is None else max(0.001, due - time.time()))

    def _refused(self, error: Exception) -> None:
        """A claim was refused: tell it to the consumers, unless it may succeed later."""
        if isinstance(error, NoSpaceError):
            if not self._is_full:
                self._context.log.warning("%s: no job is claimed while the store is full", self._keys.what)
            self._is_full = True
        elif isinstance(error, LeaseNotFoundError):
            if self._running.shift is not None:
                self._running.shift.end("its lease is gone", error)
        elif not as_etcd_error(error).retryable:
            self._fail(error)

    async def _claim(self, shift: Shift, free: Sequence[FreeJob]) -> None:
        claims = [ClaimTxn(self._keys, job, self._context.owner, shift.loan.id) for job in free]
        shift.claiming = frozenset(claim.name for claim in claims)
        try:
            result = await self._send(shift, op.txn(then=[claim.txn for claim in claims]))
            for claim in claims:
                self._follower.board.doubt(claim.name, result.revision)
                job = await self._claimed(shift, claim, result[claim.txn])
                if job is None:
                    self._spread.lost()
                elif not shift.is_over and not self._is_left:
                    self._spread.won()
                    self._running.add(job)
                    if job.tries > self._context.max_tries:
                        await self._give_up(job)
                    else:
                        self._hand_over(job)
        except BaseException as error:  # copies may travel after a cancellation, or an error of another kind
            if not isinstance(error, EtcdError):
                shift.dirty |= shift.claiming
            raise
        finally:
            shift.claiming = frozenset()
            self._follower.sweep()

    async def _send(self, shift: Shift, txn: op.TxnOp) -> TxnResult:
        """Send claims; again if the answer is lost, and then a late copy may claim the jobs once more."""
        try:
            return await self._calls.store.do(txn, timeout=self._calls.timeout, retry="safe")
        except EtcdError as error:
            if not error.maybe_applied or isinstance(error, NoSpaceError):
                raise
        shift.dirty |= shift.claiming
        return await self._calls.store.do(txn, timeout=max(1.0, shift.left), retry="always")

    async def _claimed(self, shift: Shift, claim: ClaimTxn, result: TxnResult) -> Job | None:
        """The job that an answer means; None if another worker has it."""
        if result.succeeded:
            value, tries = claim.claimed(result)
            revision = result.revision
        else:
            found = result[claim.look]
            if found is None or found.lease != shift.loan.id or claim.name in self._running:
                return None
            # An earlier copy of the same request has claimed it.
            own, item, tried = (op.get(self._keys.of(kind, claim.name)) for kind in (Kind.CLAIM, Kind.ITEM, Kind.TRIES))
            state = await self._calls.store.do(op.txn(then=[own, item, tried]), timeout=max(1.0, shift.left))
            claim_kv, kv, tries_kv = state[own], state[item], state[tried]
            if claim_kv is None or claim_kv.create_revision != found.create_revision or kv is None:
                return None
            value, tries, revision = kv.value, 1 if tries_kv is None else tries_kv.version, found.create_revision
        is_dirty = claim.name in shift.dirty
        return Job(shift, claim.name, value, tries, revision, self._running.remove, is_dirty=is_dirty)

    async def _give_up(self, job: Job) -> None:
        """A job whose last attempt ended without a word, as by a crash of its worker."""
        try:
            await job.reject(f"attempt {job.tries - 1} of {self._context.max_tries} did not end")
        except JobLostError:
            pass
        except Exception as raised:
            error = as_etcd_error(raised)
            text = "%s: job %s could not be given up: %s"
            self._context.log.warning(text, self._keys.what, shown_key(job.key), error)
            job._release_later(delay=0.0 if error.retryable else _GIVE_UP_SECONDS)
