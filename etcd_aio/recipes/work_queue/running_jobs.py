"""RunningJobs: the shift of a worker, and the jobs that it has handed out, which it does not keep alive.

Only its `Job` object can end a job. One to which nothing refers any more, as if its task was cancelled before its first
step, would stay claimed for as long as the worker lives; so the worker deletes its claim.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from weakref import ReferenceType, ref

from etcd_aio.recipes.work_queue.job import Job
from etcd_aio.recipes.work_queue.jobs import Claim
from etcd_aio.recipes.work_queue.shift import Shift


class RunningJobs:
    """The jobs that were claimed in a shift and not ended, by their names.

    Args:
        on_change: called when a job has ended or is lost, or the shift is over.
        on_dropped: called in the loop with the name of a job that nothing refers to any more, and that has not ended.

    Attributes:
        shift: under whose lease they are claimed; None between two shifts.
    """

    def __init__(self, on_change: Callable[[], None], on_dropped: Callable[[bytes], None]) -> None:
        self._on_change = on_change
        self._on_dropped = on_dropped
        self._jobs: dict[bytes, ReferenceType[Job]] = {}
        self.shift: Shift | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, name: bytes) -> bool:
        return name in self._jobs

    def get(self, name: bytes) -> Job | None:
        """The job of this name; None if it does not run."""
        reference = self._jobs.get(name)
        return None if reference is None else reference()

    def copy(self) -> dict[bytes, Job]:
        """The running jobs, which the copy keeps alive."""
        return {name: job for name, reference in self._jobs.items() if (job := reference()) is not None}

    def is_idle(self, name: bytes, claim: Claim) -> bool:
        """Whether a claim has the lease of the shift, but is of no job that runs, or may be about to run."""
        shift = self.shift
        return shift is not None and claim.lease == shift.loan.id and name not in self and name not in shift.claiming

    def add(self, job: Job) -> None:
        """The job was claimed."""
        loop = asyncio.get_running_loop()

        def dropped(reference: ReferenceType[Job], name: bytes = job._name) -> None:
            with suppress(RuntimeError):  # any thread may collect it, and the loop may be closed by then
                loop.call_soon_threadsafe(self._drop, name, reference)

        self._jobs[job._name] = ref(job, dropped)

    def remove(self, job: Job) -> None:
        """The job has ended, or is lost."""
        if self.get(job._name) is job:
            del self._jobs[job._name]
            self._on_change()

    def shift_over(self, shift: Shift, reason: str, cause: BaseException | None) -> None:
        """A shift is over: so all its jobs are lost."""
        for job in self.copy().values():
            job._lose(reason, cause)
        self._jobs.clear()
        if self.shift is shift:
            self.shift = None
        self._on_change()

    def _drop(self, name: bytes, reference: ReferenceType[Job]) -> None:
        if self._jobs.get(name) is reference:
            del self._jobs[name]
            self._on_dropped(name)
