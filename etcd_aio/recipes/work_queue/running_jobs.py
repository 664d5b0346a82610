"""RunningJobs: the jobs that a worker has handed out, which it does not keep alive.

Only its `Job` object can end a job. One to which nothing refers any more, as if its task was cancelled before its first
step, would stay claimed for as long as the worker lives; so the worker is told of it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from weakref import ReferenceType, ref

from etcd_aio.recipes.work_queue.job import Job


class RunningJobs:
    """The jobs that were claimed and not ended, by their names.

    Args:
        on_dropped: called in the loop with the name of a job that nothing refers to any more, and that was not removed.
    """

    def __init__(self, on_dropped: Callable[[bytes], None]) -> None:
        self._on_dropped = on_dropped
        self._jobs: dict[bytes, ReferenceType[Job]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, name: bytes) -> bool:
        return name in self._jobs

    def get(self, name: bytes) -> Job | None:
        """The job of this name; None if it does not run."""
        reference = self._jobs.get(name)
        return None if reference is None else reference()

    def copy(self) -> dict[bytes, Job]:
        """All of them; the copy does keep them alive."""
        jobs = {name: reference() for name, reference in self._jobs.items()}
        return {name: job for name, job in jobs.items() if job is not None}

    def add(self, name: bytes, job: Job) -> None:
        """The job was claimed."""
        loop = asyncio.get_running_loop()

        def dropped(reference: ReferenceType[Job]) -> None:
            with suppress(RuntimeError):  # any thread may collect it, and the loop may be closed by then
                loop.call_soon_threadsafe(self._drop, name, reference)

        self._jobs[name] = ref(job, dropped)

    def remove(self, name: bytes, job: Job) -> bool:
        """The job has ended, or is lost; returns whether it was running."""
        if self.get(name) is not job:
            return False
        del self._jobs[name]
        return True

    def clear(self) -> None:
        """Forget all of them."""
        self._jobs.clear()

    def _drop(self, name: bytes, reference: ReferenceType[Job]) -> None:
        if self._jobs.get(name) is reference:
            del self._jobs[name]
            self._on_dropped(name)
