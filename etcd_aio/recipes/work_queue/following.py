"""JobFollower: follows the jobs of a work queue by a watch and a listing, and deletes the claims that are of no task.

A copy of a claim that comes late, after the job was freed, claims it for no task. A backup that is restored has the
claims of its time. So a claim with the worker's own lease that it does not run is the worker's to delete, and it goes
on until that is done.
"""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from etcd_aio import Key, KeyValue, Watcher, op
from etcd_aio.base import PATIENT, SOON, Pauses, as_etcd_error, start_background_task
from etcd_aio.errors import ClientUsageError, CompactedError, StoreRolledBackError
from etcd_aio.recipes.work_queue.job import Job
from etcd_aio.recipes.work_queue.jobs import Board, Claim, Kind
from etcd_aio.recipes.work_queue.running_jobs import RunningJobs
from etcd_aio.recipes.work_queue.shift import Shift, WorkerContext
from etcd_aio.types import shown_key

if TYPE_CHECKING:
    import asyncio


class JobFollower:
    """The jobs of a work queue, as a worker knows them.

    When there may be something to claim `on_change` is called, and `on_error` with an error that does not pass by
    itself; after a `ClientUsageError` nothing is followed any more.

    Attributes:
        board: the jobs.
        is_loaded: whether the board is what a listing has shown, with the changes since.
    """

    def __init__(
        self,
        context: WorkerContext,
        running: RunningJobs,
        on_change: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._context = context
        self._store = context.calls.store
        self._running = running
        self._on_change = on_change
        self._on_error = on_error
        self.board = Board(context.keys)
        self.is_loaded = False
        self._freeing: set[tuple[bytes, Claim]] = set()  # claims that are being deleted
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """List everything, and follow."""
        self.is_loaded = False
        self._task = start_background_task(self._follow(), name=f"etcd_aio jobs of {self._context.keys.what}")

    def start_again(self) -> None:
        """List everything anew, and compare it with what is running: the store may be another one than before."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self.start()

    def stop(self) -> "asyncio.Task[None] | None":
        """Give up the task, which the caller cancels."""
        task, self._task = self._task, None
        return task

    async def _follow(self) -> None:
        pauses = Pauses(SOON)
        while True:
            try:
                # From now, and then a listing: no change falls in between, and no old revision is named.
                async with self._store.watch(prefix=self._context.keys.prefix, timeout=None) as watcher:
                    await self._load()
                    pauses.reset()
                    await self._learn(watcher)
            except (CompactedError, StoreRolledBackError):
                self.is_loaded = False
            except ClientUsageError as error:
                self._on_error(error)
                return
            except Exception as error:  # also of the application's backend
                self.is_loaded = False
                if not as_etcd_error(error).retryable:
                    self._on_error(error)
                await pauses.wait()

    async def _learn(self, watcher: Watcher) -> None:
        while True:
            for event in (await watcher.next_batch()).events:
                kind, name = self.board.apply(event) or (None, b"")
                job = self._running.get(name) if kind is Kind.CLAIM and event.is_delete else None
                if job is not None and job.fencing_token < event.revision:
                    job._claim_deleted()
            self.sweep()
            self._on_change()
            if not self.board.is_complete and not self._has_free():
                await self._load()

    def _has_free(self) -> bool:
        return bool(self.board.free(1, time.time(), 0, random.random))

    async def _load(self) -> None:
        """List the claims, the delays and the first items, at one revision."""
        board, keys = self.board, self._context.keys
        while True:
            shift, running = self._running.shift, self._running.copy()
            claims = op.range(prefix=keys.of(Kind.CLAIM))  # etcd 3.7 leaves the leases out of a read of keys only
            delays = op.range(prefix=keys.of(Kind.DELAY))
            items = op.range(prefix=keys.of(Kind.ITEM), keys_only=True, limit=board.limit)
            own = op.get(keys.worker_key(0) if shift is None else shift.worker_key)
            result = await self._store.do(op.txn(then=[claims, delays, items, own]))
            listed, is_complete = result[items], not result[items].more
            board.load([*result[claims], *result[delays], *listed], result.revision, is_complete=is_complete)
            self.is_loaded = True
            if shift is not None and shift is self._running.shift:
                self._compare(shift, running, result[own])
            self.sweep()
            self._on_change()
            if is_complete or self._has_free():
                return
            if len(listed) >= board.limit:
                board.limit = 2 * len(listed)

    def _compare(self, shift: Shift, running: dict[bytes, Job], worker: KeyValue | None) -> None:
        """Compare what a listing has with the jobs that were running before it was requested.

        They are the same, unless the watch has missed changes, or a backup was restored.
        """
        if worker is None or worker.create_revision != shift.revision:
            shift.end("the key of its worker is gone: it was deleted, or the store is another one than before")
            return
        claims = self.board.claims
        for name, job in running.items():
            if self._running.get(name) is job and (name not in claims or claims[name].revision != job.fencing_token):
                job._claim_deleted()
        shift.dirty |= {name for name, claim in claims.items() if self._running.is_idle(name, claim)}

    # Claims of no task.

    def sweep(self) -> None:
        """Free jobs that are claimed for no task, and those with a claim of no worker."""
        board, shift = self.board, self._running.shift
        for name in sorted(board.strays):
            self._free(name, board.claims[name])
        board.strays.clear()  # they are listed again, if they stay
        for name in sorted(shift.dirty) if shift is not None else ():
            claim = board.claims.get(name)
            if claim is not None and self._running.is_idle(name, claim):
                self._free(name, claim)

    def _free(self, name: bytes, claim: Claim) -> None:
        if (name, claim) not in self._freeing:
            self._freeing.add((name, claim))
            self._context.pool.run(self._delete_claim(name, claim, self._running.shift), "release of a job")

    async def _delete_claim(self, name: bytes, claim: Claim, shift: Shift | None) -> None:
        """Delete a claim, until that is answered, or it is seen to be gone, or the lease is lost."""
        context = self._context
        key = context.keys.of(Kind.CLAIM, name)
        is_same = [Key(key).create_revision == claim.revision, Key(key).lease == claim.lease]
        free = op.txn(when=is_same, then=[op.delete(key)])
        pauses = Pauses(SOON)
        try:
            while shift is self._running.shift and self.board.claims.get(name) == claim:
                try:
                    result = await self._store.do(free, timeout=context.calls.timeout, retry="always")
                except Exception as raised:
                    error = as_etcd_error(raised)
                    if isinstance(error, ClientUsageError):
                        return
                    if not error.retryable and pauses.backoff is SOON:
                        pauses = Pauses(PATIENT)
                        text = "%s: the claim of job %s cannot be deleted, which is tried again: %s"
                        context.log.warning(text, context.keys.what, shown_key(name), error)
                    await pauses.wait()
                else:
                    if result.succeeded and not claim.lease:
                        text = "%s: the claim of job %s had no lease: deleted"
                        context.log.warning(text, context.keys.what, shown_key(name))
                    return
        finally:
            self._freeing.discard((name, claim))
