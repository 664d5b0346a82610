"""Worker, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.work_queue.worker`: do not edit.
"""

from typing import Self

from etcd_aio.portal import Block, BlockingIterator, LosableMaker
from etcd_aio.sync.recipes.work_queue.job import Job


class Worker(LosableMaker, Block, BlockingIterator[Job]):
    """A worker: `with queue.worker(concurrency=8) as worker:`, and `for job in worker:`.

    It yields jobs that it has claimed, at most `concurrency` at a time: it waits while as many are neither ended nor
    lost. Several threads may iterate over one worker. Leaving the block frees the jobs that are not ended: those whose
    blocks are still running are lost.

    If the lease is lost, all jobs are, and the worker continues with another lease.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self
