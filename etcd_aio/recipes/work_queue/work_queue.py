"""WorkQueue: jobs that are done although workers crash, each by one worker at a time.

`jobs.py` has the keys, `following.py` knows which jobs are free, `worker.py` claims them by the txns of `claiming.py`,
`shift.py` has the lease of their claims, and `job.py` ends them.
"""

import os
import socket
import time
from typing import Final

from etcd_aio import Key, KeyValue, op
from etcd_aio.arguments import checked_margin, encode_key, to_bytes, whole_number
from etcd_aio.base import UNSET, Timeout, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.concurrency import OnLost
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError, ResultLostError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.queue.numbers import next_number
from etcd_aio.recipes.queue.putting import DEFAULT_PRIORITY, checked_priority, put_once
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
        self._keys = JobKeys(encode_key(name, "name"))
        self._ttl = whole_number(ttl, "ttl", minimum=1)
        self._max_tries = whole_number(max_tries, "max_tries", minimum=1)
        self._calls = RecipeCalls(client, writer, timeout)

    @when_constructed
    def __repr__(self) -> str:
        return f"<WorkQueue {self._keys.name}>"

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
        checked_priority(priority)
        deadline = self._calls.deadline(timeout)
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
            txn = op.TxnOp(tuple(when), tuple(then), (look,))
            try:
                result = await put_once(self._calls, self._keys.what, [key], txn, deadline)
            except ResultLostError:  # the condition did not hold, and what was found is compacted
                continue
            if result.succeeded:
                return key
            found = result[look]
            if ident and found is not None:
                if await self._is_there(found.value, deadline):
                    return self._keys.of(Kind.ITEM, found.value)
                orphan = found

    async def _is_there(self, job: bytes, deadline: float) -> bool:
        """Whether the job that an id names is there. If an operator has deleted it, its id is left."""
        parts = [op.get(self._keys.of(kind, job), keys_only=True) for kind in (Kind.ITEM, Kind.CLAIM)]
        found = await self._calls.do(op.txn(then=parts), deadline)
        return any(found[part] is not None for part in parts)

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
        name = f"{socket.gethostname()}/{os.getpid()}" if owner is None else owner
        context = WorkerContext(
            calls=self._calls,
            keys=self._keys,
            pool=self._calls.store.leases.pool,
            ttl=self._ttl,
            owner=to_bytes(name, "owner"),
            concurrency=whole_number(concurrency, "concurrency", minimum=1),
            max_tries=self._max_tries,
            margin=checked_margin(margin, self._ttl),
            cancels=on_lost == "cancel",
        )
        return Worker(context)

    async def size(self, *, timeout: Timeout = UNSET) -> int:
        """Count the jobs that are queued or running.

        Raises:
            EtcdError: as every read.
        """
        items = op.range(prefix=self._keys.of(Kind.ITEM), count_only=True)
        return (await self._calls.do(items, self._calls.deadline(timeout))).count

    async def dead(self, limit: int = 100, *, timeout: Timeout = UNSET) -> tuple[DeadJob, ...]:
        """Read the first jobs that were given up, at most `limit`.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        most = whole_number(limit, "limit", minimum=1)
        payloads = op.range(prefix=self._keys.of(Kind.DEAD), limit=most)
        reasons = op.range(prefix=self._keys.of(Kind.REASON), limit=most)
        found = await self._calls.do(op.txn(then=[payloads, reasons]), self._calls.deadline(timeout))
        texts = {self._name_in(kv.key): kv.value.decode(errors="replace") for kv in found[reasons]}
        return tuple(
            DeadJob(kv.key, kv.value, texts.get(self._name_in(kv.key), ""), kv.mod_revision) for kv in found[payloads]
        )

    async def revive(self, dead: DeadJob, *, timeout: Timeout = UNSET) -> bool:
        """Put a job that was given up back into the queue, with all its attempts before it.

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
        try:
            return (await self._calls.commit(op.txn(when=when, then=then), self._calls.deadline(timeout))).succeeded
        except ResultLostError as lost:  # what it has deleted is compacted, but not whether it has
            return lost.succeeded

    def _name_in(self, key: bytes) -> bytes:
        parsed = self._keys.parsed(key) if key.startswith(self._keys.prefix) else None
        return b"" if parsed is None else parsed[1]
