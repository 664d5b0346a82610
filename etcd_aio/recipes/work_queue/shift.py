"""Shift: one lease of a worker, and the jobs that are claimed under it.

When the lease is lost, or less than the margin is left of it, the shift ends: all its jobs are lost. Until then the
lease is renewed, so no claim ends by itself: each job that is not run any more is released, however long that takes.
"""

import asyncio
import random
from typing import TYPE_CHECKING, Final

from etcd_aio.base.aio import start_timer
from etcd_aio.base.backoff import Backoff
from etcd_aio.concurrency import BACKOFF, Loan
from etcd_aio.errors import ClientUsageError, EtcdError, LeaseLostError
from etcd_aio.recipes.work_queue.job import Job
from etcd_aio.recipes.work_queue.jobs import Kind
from etcd_aio.recipes.work_queue.running_jobs import RunningJobs

if TYPE_CHECKING:
    from etcd_aio.recipes.work_queue.worker import Worker

SLOW: Final = Backoff(initial=0.5, multiplier=2.0, maximum=10.0, jitter=0.2)
"""Between two attempts at what is refused until an operator corrects something."""


class WorkerShift:
    """What `Worker` has while one lease lives; see `job.Shift`."""

    def __init__(self, worker: "Worker", loan: Loan, worker_key: bytes) -> None:
        self._worker = worker
        self._margin = worker.margin
        self._timer: asyncio.TimerHandle | None = None
        self.loan = loan
        self.store = worker.store
        self.writer = worker.writer
        self.keys = worker.keys
        self.timeout = worker.timeout
        self.max_tries = worker.max_tries
        self.cancels = worker.cancels
        self.worker_key = worker_key
        self.revision = 0
        self.jobs = RunningJobs(self._on_dropped)
        self.claiming: frozenset[bytes] = frozenset()
        self.dirty: set[bytes] = set()  # jobs that a late copy of a request may claim
        self.is_over = False

    def begin(self, revision: int) -> None:
        """The worker's own key was created."""
        self.revision = revision
        self.loan.on_loss(self._on_loss)
        self.loan.on_doubt(self._worker.follow_again)
        if not self.is_over:
            self._on_time()

    @property
    def left(self) -> float:
        """Seconds until the jobs are lost, unless a renewal is acknowledged before. Thread-safe."""
        return 0.0 if self.is_over else max(0.0, self.loan.remaining - self._margin)

    def _on_time(self) -> None:
        """The margin is looked at when it would have begun without the renewals since."""
        if self.left <= 0:
            self.end("no renewal of the worker's lease is acknowledged")
        elif not self.is_over:
            self._timer = start_timer(max(self.left, 0.001), self._on_time)

    def _on_loss(self, error: LeaseLostError) -> None:
        self.end(error.message, error)

    def end(self, reason: str, cause: BaseException | None = None) -> None:
        """The lease is lost, or the worker is left: so are all jobs."""
        if self.is_over:
            return
        for job in self.jobs.copy().values():
            job.lose(reason, cause)
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self.loan.on_loss(None)
        self.loan.on_doubt(None)
        self._worker.shift_over(self)

    def ended(self, job: Job) -> None:
        """The job is not this worker's any more."""
        name = job.key[len(self.keys.of(Kind.ITEM)) :]
        if self.jobs.remove(name, job):
            self._worker.wake()

    def _on_dropped(self, name: bytes) -> None:
        """Nothing can end this job any more: its claim is the worker's to delete."""
        if not self.is_over:
            self.dirty.add(name)
            self._worker.job_dropped(name)

    def run_later(self, job: Job, *, delay: float = 0.0, has_begun: bool = True) -> None:
        """Release a job in the background, until that is answered or the lease is lost."""
        self._worker.source.run(self._release(job, delay, has_begun), "release of a job")

    async def _release(self, job: Job, delay: float, has_begun: bool) -> None:
        backoff, failures = BACKOFF, 0
        while not (job.is_ended or job.is_lost):
            try:
                await job._release(delay=delay, has_begun=has_begun)
            except EtcdError as error:
                if isinstance(error, ClientUsageError) or job.is_lost:
                    self.ended(job)
                    return
                if not error.retryable and backoff is BACKOFF:  # such as rights that are missing
                    backoff, failures = SLOW, 0
                    self._worker.release_refused(job, error)
                    self.ended(job)  # the worker goes on without it, but owes its release
            await asyncio.sleep(backoff.wait(failures, random.random))
            failures += 1
