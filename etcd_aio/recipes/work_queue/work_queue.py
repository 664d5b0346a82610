"""WorkQueue: jobs that are done although workers crash, each by one worker at a time.

`jobs.py` has the keys, `worker.py` claims jobs, `shift.py` has the lease of their claims, and `job.py` ends them.
"""

import asyncio
import os
import socket
import time
from typing import Final

from etcd_aio import Key, KeyValue, OutcomeUnknownError, TxnResult, op
from etcd_aio.arguments import encode_key, to_bytes, whole_number
from etcd_aio.base import NEVER, UNSET, Timeout, deadline_after, time_left, when_constructed
from etcd_aio.calls import StoreCalls, Writer, is_exact, writer_for
from etcd_aio.concurrency import OnLost, checked_margin
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError, InvalidRequestError, ResultLostError
from etcd_aio.recipes.queue.numbers import next_number
from etcd_aio.recipes.queue.priority_queue import DEFAULT_PRIORITY
from etcd_aio.recipes.queue.queue import put_in_doubt
from etcd_aio.recipes.work_queue.jobs import JobKeys, Kind, checked_delay, id_of, job_name
from etcd_aio.recipes.work_queue.shift import WorkerContext
from etcd_aio.recipes.work_queue.worker import Worker
from etcd_aio.types import KeyLike, ValueLike, shown_key

DEFAULT_TTL: Final = 30
"""Seconds after which the jobs of a worker that has crashed are free: longer than most outages."""

DEFAULT_MAX_TRIES: Final = 5
"""Attempts of a job: enough for workers that are restarted, and few for a job that makes them crash."""

DEFAULT_CONCURRENCY: Final = 1
"""Jobs of a worker at a time; one that runs jobs in tasks names a larger number."""


@dataclass(frozen=True, slots=True, repr=False)
class DeadJob:
    """A job that was given up.

    Attributes:
        key: its key; `client.delete(key)` forgets it.
        value: its payload.
        reason: why it was given up.
        revision: at which it was.
    """

    key: bytes
    value: bytes
    reason: str
    revision: int

    def __repr__(self) -> str:  # payloads are secrets
        return f"DeadJob(key={shown_key(self.key)}, value=<{len(self.value)} bytes>, revision={self.revision})"


class WorkQueue:
    """A queue of jobs that must be done: `queue = WorkQueue(client, "jobs")`; `await queue.put(b"...")`.

        async with queue.worker(concurrency=8) as worker:
            async for job in worker:
                async with job:
                    await job.complete(op.put("result/42", "ok"))

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

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        ttl: int = DEFAULT_TTL,
        max_tries: int = DEFAULT_MAX_TRIES,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        self._store = client
        encoded = encode_key(name, "name")
        self._what = f"work queue {shown_key(encoded)[1:]}"
        self._keys = JobKeys(encoded)
        self._ttl = whole_number(ttl, "ttl", minimum=1)
        self._max_tries = whole_number(max_tries, "max_tries", minimum=1)
        self._writer = writer_for(client, writer)
        self._is_exact = is_exact(self._writer)
        self._timeout = client.backend.shared.seconds(timeout)

    @when_constructed
    def __repr__(self) -> str:
        return f"<WorkQueue {self._what.removeprefix('work queue ')}>"

    async def put(
        self,
        value: ValueLike,
        *,
        priority: int = DEFAULT_PRIORITY,
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

        Cancellation: the job is put or not, as with every write.
        """
        payload = to_bytes(value, "value")
        seconds = checked_delay(delay)
        ident = b"" if id is None else encode_key(id, "id")
        whole_number(priority, "priority")
        deadline = deadline_after(self._limit(timeout), asyncio.get_running_loop().time())
        orphan: KeyValue | None = None
        while True:
            job = job_name(priority, next_number(), ident)
            key = self._keys.of(Kind.ITEM, job)
            when, then = [Key(key).missing], [op.put(key, payload)]
            look = op.get(self._keys.id_key(ident) if ident else key)
            if ident:
                when.append(Key(look.key).mod_revision == (0 if orphan is None else orphan.mod_revision))
                then.append(op.put(look.key, job))
            if seconds:
                then.append(op.put(self._keys.of(Kind.DELAY, job), f"{time.time() + seconds:.3f}"))
            orphan = None
            try:
                result = await self._commit(key, op.TxnOp(tuple(when), tuple(then), (look,)), deadline)
            except ResultLostError:  # the condition did not hold, and what was found is compacted
                continue
            if result.succeeded:
                return key
            found = result.responses[0]
            if ident and isinstance(found, KeyValue):
                if await self._is_there(found.value, deadline):
                    return self._keys.of(Kind.ITEM, found.value)
                orphan = found

    async def _is_there(self, job: bytes, deadline: float) -> bool:
        """Whether the job that an id names is there. If an operator has deleted it, its id is left."""
        parts = [op.get(self._keys.of(kind, job), keys_only=True) for kind in (Kind.ITEM, Kind.CLAIM)]
        left = None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
        found = await self._store.do(op.txn(then=parts), timeout=left)
        return any(found[part] is not None for part in parts)

    async def _commit(self, key: bytes, put: op.TxnOp, deadline: float) -> TxnResult:
        # It is not repeated: a late copy would put the job again after it was done.
        txn = self._writer.txn().when(*put.when).then(*put.then).otherwise(*put.otherwise)
        left = None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
        try:
            return await txn.commit(timeout=left, retry=None if self._is_exact else "safe")
        except (OutcomeUnknownError, ResultLostError):
            raise  # the writer can settle the first, and knows of the second what was applied
        except EtcdError as error:
            if not error.maybe_applied:
                raise
            raise put_in_doubt(self._what, [key]) from error

    def worker(
        self,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
        owner: ValueLike | None = None,
    ) -> Worker:
        """Make a worker: `async with queue.worker() as worker:`.

        Args:
            concurrency: how many of its jobs may run at a time. Default: 1.
            margin: seconds before the end of the lease at which its jobs are lost, as of locks.
            on_lost: `"cancel"` or `"signal"`, as of locks: whether a loss cancels the block of a job.
            owner: value of its claims, to tell workers apart. Default: host and process.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        if on_lost not in ("cancel", "signal"):
            raise InvalidRequestError(f"on_lost must be 'cancel' or 'signal'; got {on_lost!r}")
        concurrency = whole_number(concurrency, "concurrency", minimum=1)
        name = f"{socket.gethostname()}/{os.getpid()}" if owner is None else owner
        context = WorkerContext(
            store=self._store,
            writer=self._writer,
            keys=self._keys,
            pool=self._store.leases.pool,
            ttl=self._ttl,
            timeout=self._timeout,
            max_tries=self._max_tries,
            margin=checked_margin(margin, self._ttl),
            cancels=on_lost == "cancel",
        )
        return Worker(context, concurrency=concurrency, owner=to_bytes(name, "owner"))

    async def size(self, *, timeout: Timeout = UNSET) -> int:
        """Count the jobs that are queued or running.

        Args:
            timeout: seconds for the whole call; None for no limit.

        Raises:
            EtcdError: as every read.
        """
        found = await self._store.range(prefix=self._keys.of(Kind.ITEM), count_only=True, timeout=self._limit(timeout))
        return found.count

    async def dead(self, limit: int = 100, *, timeout: Timeout = UNSET) -> tuple[DeadJob, ...]:
        """Read the first jobs that were given up.

        Args:
            limit: how many at most.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        most = whole_number(limit, "limit", minimum=1)
        payloads = op.range(prefix=self._keys.of(Kind.DEAD), limit=most)
        reasons = op.range(prefix=self._keys.of(Kind.REASON), limit=most)
        found = await self._store.do(op.txn(then=[payloads, reasons]), timeout=self._limit(timeout))
        texts = {self._name_in(kv.key): kv.value.decode(errors="replace") for kv in found[reasons]}
        return tuple(
            DeadJob(kv.key, kv.value, texts.get(self._name_in(kv.key), ""), kv.mod_revision) for kv in found[payloads]
        )

    async def revive(self, dead: DeadJob, *, timeout: Timeout = UNSET) -> bool:
        """Put a job that was given up back into the queue, with all its attempts before it.

        Args:
            dead: the job.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether it was put back; False if it is no dead letter any more, or its id is in use.

        Raises:
            InvalidRequestError, TypeError: it is no dead job of this queue.
            EtcdError: as every txn.
        """
        if not isinstance(dead, DeadJob):
            raise TypeError(f"revive() takes a DeadJob, got {type(dead).__name__}")
        job = self._name_in(dead.key)
        if not job:
            raise InvalidRequestError("the dead job is of another queue")
        when = [Key(dead.key).mod_revision == dead.revision]
        then: list[op.PutOp | op.DeleteOp] = [
            op.put(self._keys.of(Kind.ITEM, job), dead.value),
            op.delete(dead.key),
            op.delete(self._keys.of(Kind.REASON, job)),
        ]
        if ident := id_of(job):
            when.append(Key(self._keys.id_key(ident)).missing)
            then.append(op.put(self._keys.id_key(ident), job))
        txn = self._writer.txn().when(*when).then(*then)
        try:
            result = await txn.commit(timeout=self._limit(timeout), retry=None if self._is_exact else "safe")
        except ResultLostError as lost:  # what it has deleted is compacted, but not whether it has
            return lost.succeeded
        return result.succeeded

    def _name_in(self, key: bytes) -> bytes:
        parsed = self._keys.parsed(key) if key.startswith(self._keys.prefix) else None
        return b"" if parsed is None else parsed[1]

    def _limit(self, timeout: Timeout) -> float | None:
        return self._timeout if timeout is UNSET else timeout
