"""Background tasks of an application (`leader_only`): one worker at a time runs each, among all workers and hosts."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from etcd_aio import Client, KeyLike
from etcd_aio.base import Backoff, Pauses, log_for, start_background_task
from etcd_aio.concurrency import Leadership
from etcd_aio.errors import ClientClosedError

logger: Final = logging.getLogger("etcd_aio.web")

Work: TypeAlias = Callable[[Leadership], Coroutine[object, object, object]]
"""The function of a job: it gets the leadership, and is cancelled before that can end."""

_AGAIN: Final = Backoff(initial=1.0, multiplier=2.0, maximum=60.0, jitter=0.5)
"""Before a worker whose work has failed is a candidate again. Another worker takes over at once."""

_GOOD_RUN: Final = 60.0  # seconds without a failure, after which the next one is again the first


@dataclass(frozen=True, slots=True)
class LeaderJob:
    """A background task of the leader.

    Attributes:
        name: of the election.
        ttl: seconds until another worker may run it after a crash.
        work: the function.
    """

    name: KeyLike
    ttl: int
    work: Work

    @property
    def shown(self) -> str:
        """The name of the function, for logs and tasks."""
        return getattr(self.work, "__qualname__", type(self.work).__name__)


class LeaderJobs:
    """The jobs of one worker: each is a candidate for as long as the worker runs, and works while it leads.

    Args:
        client: the client of the worker.
        jobs: what to run.
    """

    def __init__(self, client: Client, jobs: Sequence[LeaderJob]) -> None:
        self._log = log_for(logger, client)
        value = f"{socket.gethostname()}:{os.getpid()}"
        self._tasks = [start_background_task(_stand(client, job, value), name=f"etcd_aio {job.shown}") for job in jobs]
        self._is_cancelled = False

    async def stop(self, timeout: float) -> None:
        """Cancel the work, wait for its end, and resign, so that other workers take over at once. Safe to repeat.

        Args:
            timeout: seconds. What has not ended then is left to itself, and logged. Another worker takes over when its
                lease has ended, and not before.
        """
        if not self._tasks:
            return
        if not self._is_cancelled:  # a second cancellation would end what the work does at the first
            self._is_cancelled = True
            for task in self._tasks:
                task.cancel()
        _, late = await asyncio.wait(self._tasks, timeout=timeout)
        for task in late:
            self._log.warning("%s was cancelled %.1f s ago and is still running", task.get_name(), timeout)


async def _stand(client: Client, job: LeaderJob, value: str) -> None:
    loop = asyncio.get_running_loop()
    pauses = Pauses(_AGAIN)
    while True:
        began = loop.time()
        try:
            await client.election(job.name, ttl=job.ttl).run(_tenure(client, job), value)
            await Pauses(_AGAIN).wait()  # lost, or resigned by the work
        except ClientClosedError:
            return
        except (Exception, asyncio.CancelledError):  # of the job, which is run again after a pause
            if _is_cancelled():  # the application stops
                raise
            if loop.time() - began >= _GOOD_RUN:
                pauses.reset()
            pause = pauses.next()
            text = "the background task %s has failed; this worker is a candidate again in %.1f s"
            log_for(logger, client).exception(text, job.shown, pause)
            await asyncio.sleep(pause)


def _is_cancelled() -> bool:
    """Whether this very task was cancelled: a job may also end by the cancellation of what it has waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _tenure(client: Client, job: LeaderJob) -> Work:
    """The work, which is done once for each leader: when it returns, its worker goes on to lead.

    Without this the next worker would run it at once, and so on in a circle.
    """

    async def lead(leadership: Leadership) -> None:
        try:
            await job.work(leadership)
        except Exception:
            if not _is_cancelled() or leadership.is_lost:
                raise
            # The election ends by the cancellation, and would leave this out.
            log_for(logger, client).exception(
                "the background task %s has failed while it was being cancelled", job.shown
            )
        if not _is_cancelled():  # if it is, the work has returned because of that
            await leadership.lost()

    return lead
