"""WorkQueue, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.work_queue.work_queue`: do not edit.
"""

from collections.abc import Callable
from typing import ClassVar

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Facade
from etcd_aio.recipes import DeadJob
from etcd_aio.recipes import WorkQueue as AsyncWorkQueue
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer
from etcd_aio.sync.recipes.work_queue.worker import Worker


class WorkQueue(Facade):
    """A queue of jobs that must be done: `queue = WorkQueue(client, "jobs")`; `queue.put(b"...")`.

        with queue.worker(concurrency=8) as worker:
            for job in worker:
                with job:
                    job.complete(op.put("result/42", "ok"))

    A worker claims a job, and ends it. If it crashes, its claims end with its lease, and its jobs are free again: so a
    job may be begun more than once. Its effects in etcd, which are applied in the same txn as its end, are applied
    once. After `max_tries` attempts a job is moved to the dead letters.

    All keys begin with `<name>/`. It is for thousands of jobs, not for millions: etcd is no message broker.

    Args:
        client: the client, or a namespace of one.
        name: its name.
        ttl: seconds after which the jobs of a worker that has crashed, or is cut off, are free. Default: 30.
        max_tries: attempts of a job. Default: 5.
        writer: makes the puts, and the txns that end jobs, such as `client.exactly_once()`. Default: the client.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
            Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        ttl: int = 30,
        max_tries: int = 5,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        self._construct(AsyncWorkQueue, client, name, ttl=ttl, max_tries=max_tries, writer=writer, timeout=timeout)

    def put(
        self,
        value: ValueLike,
        *,
        priority: int = 100,
        delay: float = 0.0,
        id: str | None = None,
        timeout: Timeout = UNSET,
    ) -> bytes:
        """Put a job.

        Args:
            value: its payload.
            priority: from 0 to 65535; lower ones are claimed first. Default: 100.
            delay: seconds before which it is not claimed, by the clocks of this process and of the workers.
            id: while a job with this id is queued or running, no other is put.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bytes: the key of the job; of the one that is there already, if there is one with the same id.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
            ItemInDoubtError: the answer was lost. It names the key; the job may be there, or done already, or may be
                put later. With an id the call can be made again.
            EtcdError: as every txn; the job is not there.

        Ctrl-C: the job is put or not, as with every write.
        """
        return self._run(self._aio.put, value, priority=priority, delay=delay, id=id, timeout=timeout)

    def worker(
        self,
        *,
        concurrency: int = 1,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
        owner: ValueLike | None = None,
    ) -> Worker:
        """Make a worker: `with queue.worker() as worker:`.

        Args:
            concurrency: how many of its jobs may run at a time. Default: 1.
            margin: seconds before the end of the lease at which its jobs are lost, as of locks.
            on_lost: a function that is called with the error if a job is lost, as of locks.
            owner: value of its claims, to tell workers apart. Default: host and process.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        return self._made("worker", concurrency=concurrency, margin=margin, on_lost="signal", owner=owner)._telling(
            on_lost
        )

    def size(self, *, timeout: Timeout = UNSET) -> int:
        """Count the jobs that are queued or running.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.size, timeout=timeout)

    def dead(self, limit: int = 100, *, timeout: Timeout = UNSET) -> tuple[DeadJob, ...]:
        """Read the first jobs that were given up, at most `limit`.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        return self._run(self._aio.dead, limit, timeout=timeout)

    def revive(self, dead: DeadJob, *, timeout: Timeout = UNSET) -> bool:
        """Put a job that was given up back into the queue, with all its attempts before it.

        Returns:
            bool: whether it was put back; False if it is no dead letter any more, or its id is in use.

        Raises:
            InvalidRequestError, TypeError: it is no dead job of this queue.
            EtcdError: as every txn.
        """
        return self._run(self._aio.revive, dead, timeout=timeout)
