"""Job: one job of a worker, from its claim to its end.

The end is one txn with the condition that the claim is there: it deletes the job, and carries out the operations of its
result. So that takes effect once, whatever became of other attempts. If the answer is lost, the txn is sent again. If
the claim is gone then, the first copy was applied, or the claim was lost. As long as the worker's own key is there, its
lease was never lost; and no other worker can have deleted the claim.
"""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from etcd_aio import Key, KeyValue, Op, TxnResult, op
from etcd_aio.arguments import to_bytes
from etcd_aio.base import (
    CANCELLED_SECONDS,
    PATIENT,
    SOON,
    UNSET,
    AsyncBlock,
    Pauses,
    TaskCanceller,
    Timeout,
    when_constructed,
)
from etcd_aio.calls import is_exact
from etcd_aio.errors import (
    ClientUsageError,
    EtcdError,
    InvalidRequestError,
    JobLostError,
    NoSpaceError,
    ResultLostError,
)
from etcd_aio.recipes.work_queue.jobs import Kind, checked_delay, id_of
from etcd_aio.recipes.work_queue.shift import Shift
from etcd_aio.types import shown_key

_MOST_OPERATIONS: Final = 120
"""Operations of a result: etcd accepts 128 in a txn by default, and the job's own keys take some."""

_FINAL: Final = frozenset({"complete", "reject"})  # after these ends the item is gone
_ALIKE: Final = {  # which earlier requests have done what a later one is for
    "complete": frozenset({"complete"}),
    "reject": frozenset({"reject"}),
    "retry": frozenset({"retry", "release"}),
    "release": frozenset({"retry", "release"}),
}


class Job(AsyncBlock):
    """A job of a worker: `async with job:`.

    Leaving the block completes the job, unless it was ended within; if it ends by an exception, the job is free again
    for another attempt, and the exception goes on. If the end could not be made, as in an outage, the job is freed in
    the background as soon as that is possible, unless it was completed after all. If the worker's lease is lost, the
    block is cancelled, and leaving it raises `JobLostError`: another worker may have the job then.

    Attributes:
        key: the key of the job.
        value: its payload.
        tries: which attempt this is; 1 is the first.
        fencing_token: grows with every claim of the job; for systems that refuse smaller ones.
    """

    __slots__ = (
        "__weakref__",
        "_canceller",
        "_context",
        "_is_dirty",
        "_is_ended",
        "_is_ending",
        "_is_unclaimed",
        "_job",
        "_on_ended",
        "_shift",
        "_unanswered",
        "error",
        "fencing_token",
        "key",
        "tries",
        "value",
    )

    def __init__(
        self,
        shift: Shift,
        job: bytes,
        value: bytes,
        tries: int,
        revision: int,
        on_ended: Callable[[bytes, "Job"], None],
        *,
        is_dirty: bool,
    ) -> None:
        self._shift = shift
        self._context = shift.context
        self._job = job
        self._on_ended = on_ended  # it is not this worker's any more
        self.key: bytes = self._key(Kind.ITEM)
        self.value = value
        self.tries = tries
        self.fencing_token = revision
        self._is_dirty = is_dirty  # a copy of the request that claims it may still travel
        self._is_ending = False  # a request that ends it is under way
        self._is_ended = False
        self._is_unclaimed = False  # the claim is gone
        self._unanswered: set[str] = set()  # the ways to end it whose answer was lost
        self._canceller: TaskCanceller | None = None
        self.error: JobLostError | None = None

    @when_constructed
    def __repr__(self) -> str:  # payloads are secrets
        state = "lost" if self.error is not None else "ended" if self._is_ended else "running"
        return f"<Job {shown_key(self.key)} try {self.tries} {state}>"

    def text(self) -> str:
        """The payload as UTF-8 text.

        Raises:
            ValueError: it is not UTF-8.
        """
        return KeyValue(self.key, self.value).text()

    @property
    def deadline(self) -> float:
        """The instant of the loop's clock at which the job is lost, unless a renewal is acknowledged before."""
        return asyncio.get_running_loop().time() + (0.0 if self.is_lost else self._shift.left)

    @property
    def is_lost(self) -> bool:
        """Whether the job is lost. Thread-safe. It looks at the clock, so it is right at once after a stop."""
        return self.error is not None or (not self._is_ended and self._shift.left <= 0)

    @property
    def is_ended(self) -> bool:
        """Whether this worker has ended the job."""
        return self._is_ended

    @property
    def is_ending(self) -> bool:
        """Whether a request that ends it is under way."""
        return self._is_ending

    def lose(self, reason: str, cause: BaseException | None = None) -> JobLostError:
        """The job is lost: tell the block. A request that ends it, and is under way, decides itself."""
        if self.error is None:
            self.error = JobLostError(f"job {shown_key(self.key)} is lost: {reason}")
            self.error.__cause__ = cause
            self._on_ended(self._job, self)
            if self._canceller is not None and not self._is_ending:
                self._canceller.cancel()
        self.error.maybe_applied = bool(self._unanswered)  # an own request may have ended it before
        return self.error

    def claim_deleted(self) -> None:
        """Its claim is gone: by an own request that was not answered, or by an operator.

        If it may be the former the job is not lost: the next request that ends it finds out. Its place is free.
        """
        self._is_unclaimed = True
        if self._is_ending:
            return  # its answer decides, if there is one
        if self._unanswered:
            self._on_ended(self._job, self)
        else:
            self.lose("its claim was deleted")

    # The block.

    async def __aenter__(self) -> Self:
        if self._canceller is not None:
            raise ClientUsageError("a job can only be entered once")
        if self.is_lost:
            raise self._lost()
        self._canceller = TaskCanceller(cancels=self._context.cancels)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        canceller = self._canceller
        if canceller is None:
            return
        if self.is_lost and exc is not self.error:
            canceller.leave_with(self._lost(), exc)
            return
        canceller.leave()
        if self.is_lost:
            return
        if self._is_ended:
            return
        if isinstance(exc, asyncio.CancelledError):
            self._release_later()
            return
        try:
            if exc is None:
                await self.complete()
            else:
                await self.retry()
        except BaseException as error:  # a cancellation too: the worker must not wait for this job for ever
            if not self._is_ended and self.error is None:
                self._release_later()
            if exc is None or not isinstance(error, EtcdError):
                raise
            exc.add_note(f"Meanwhile: {error.message}")

    # Ends.

    async def complete(self, *operations: Op, timeout: Timeout = UNSET) -> None:
        """End the job: it is done. The operations are applied in the same txn, so exactly once for the job.

        Without operations that put, it works while the store is full.

        Args:
            operations: such as `op.put("result/42", "ok")`; at most 120.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            JobLostError: the job is lost, and nothing was applied; if `maybe_applied` is True, it may have been.
            InvalidRequestError: there are too many operations.
            EtcdError: as every txn. The job is still this worker's. If `maybe_applied` is True, the call can be made
                again: it finds out.

        Cancellation: the job was completed or not; call it again.
        """
        if len(operations) > _MOST_OPERATIONS:
            raise InvalidRequestError(f"complete() takes at most {_MOST_OPERATIONS} operations, got {len(operations)}")
        await self._end("complete", [*self._deletions(), *operations], timeout)

    async def retry(self, *, delay: float = 0.0, reason: str = "", timeout: Timeout = UNSET) -> None:
        """End this attempt: the job is free again, or given up if it was the last one.

        Args:
            delay: seconds for which it is not free, by the workers' clocks.
            reason: why, for a job that is given up.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            JobLostError, EtcdError: as of `complete`.

        Cancellation: the attempt was ended or not; call it again.
        """
        seconds = checked_delay(delay)
        if self.tries >= self._context.max_tries:
            try:
                await self.reject(
                    reason or f"attempt {self.tries} of {self._context.max_tries} has failed", timeout=timeout
                )
            except NoSpaceError:  # it is given up later
                await self._release(timeout)
            return
        puts: list[Op] = []
        if self._is_dirty:  # a late copy of the request that claims it must not claim it again
            puts.append(op.put(self.key, self.value))
        if seconds:
            puts.append(op.put(self._key(Kind.DELAY), f"{time.time() + seconds:.3f}"))
        if puts:
            try:
                await self._end("retry", [op.delete(self._key(Kind.CLAIM)), *puts], timeout)
            except NoSpaceError:  # a full store refuses the puts, and the job should not wait for space
                pass
            else:
                return
        await self._release(timeout)

    async def reject(self, reason: str = "", *, timeout: Timeout = UNSET) -> None:
        """End the job: it is given up, and moved to the dead letters.

        Args:
            reason: why; it is kept beside the payload.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            JobLostError, EtcdError: as of `complete`. A full store refuses it.

        Cancellation: the job was given up or not; call it again.
        """
        moved = [
            op.put(self._key(Kind.DEAD), self.value),
            op.put(self._key(Kind.REASON), to_bytes(reason, "reason")),
        ]
        await self._end("reject", [*self._deletions(), *moved], timeout)

    async def _release(
        self, timeout: Timeout = CANCELLED_SECONDS, *, delay: float = 0.0, has_begun: bool = True
    ) -> None:
        """The job is free again, whichever attempt this was."""
        then: list[Op] = [op.delete(self._key(Kind.CLAIM))]
        if not has_begun and self.tries == 1:  # it counts as no attempt
            then.append(op.delete(self._key(Kind.TRIES)))
        if delay:
            then.append(op.put(self._key(Kind.DELAY), f"{time.time() + delay:.3f}"))
        await self._end("release", then, timeout)

    def _release_later(self, *, delay: float = 0.0, has_begun: bool = True) -> None:
        """Release it in the background, until that is answered or the lease is lost."""
        self._context.pool.run(self._release_at_last(delay, has_begun), "release of a job")

    async def _release_at_last(self, delay: float, has_begun: bool) -> None:
        pauses = Pauses(SOON)
        while not (self._is_ended or self.is_lost):
            try:
                await self._release(delay=delay, has_begun=has_begun)
            except EtcdError as error:
                if isinstance(error, ClientUsageError) or self.is_lost:
                    self._on_ended(self._job, self)
                    return
                if not error.retryable and pauses.backoff is SOON:  # such as rights that are missing
                    pauses = Pauses(PATIENT)
                    text = "%s: job %s cannot be released, which is tried again; until then it stays claimed: %s"
                    self._context.log.warning(text, self._context.what, shown_key(self.key), error)
                    self._on_ended(self._job, self)  # the worker goes on without it, but owes its release
            await pauses.wait()

    def _key(self, kind: Kind) -> bytes:
        return self._context.keys.of(kind, self._job)

    def _deletions(self) -> list[Op]:
        keys = [self.key, self._key(Kind.CLAIM), self._key(Kind.TRIES)]
        if ident := id_of(self._job):
            keys.append(self._context.keys.id_key(ident))
        return [op.delete(key) for key in keys]

    async def _end(self, how: str, then: list[Op], timeout: Timeout) -> None:
        if self._is_ended:
            raise ClientUsageError(f"job {shown_key(self.key)} has ended already")
        if self.is_lost:
            raise self._lost()
        if self._is_ending:
            raise ClientUsageError(f"job {shown_key(self.key)} is being ended already")
        shift = self._shift
        claim, worker = op.get(self._key(Kind.CLAIM), keys_only=True), op.get(shift.worker_key, keys_only=True)
        item = op.get(self.key, keys_only=True)
        owned = Key(claim.key).create_revision == self.fencing_token
        txn = op.txn(when=[owned], then=then, otherwise=[claim, item, worker])
        self._is_ending = True
        try:
            result = await self._commit(how, txn, self._context.timeout if timeout is UNSET else timeout)
        except BaseException:  # a cancellation too
            self._is_ending = False
            if self._is_unclaimed:
                self.claim_deleted()
            raise
        self._is_ending = False
        if result is not None and not result.succeeded:
            kv = result[worker]
            has_worked = kv is not None and kv.create_revision == shift.revision
            is_gone = how not in _FINAL or result[item] is None
            if not (self._unanswered and self._unanswered <= _ALIKE[how] and has_worked and is_gone):
                raise self.lose("its claim is gone")
        self._is_ended = True
        self.error = None  # what was lost meanwhile came too late
        self._on_ended(self._job, self)

    async def _commit(self, how: str, txn: op.TxnOp, timeout: float | None) -> TxnResult | None:
        """Send a txn; again if its answer is lost. What was not answered, here or before, is kept in mind.

        Returns None if it has ended the job, and what it has deleted is compacted.
        """
        store, writer = self._context.store, self._context.writer
        has_exact_answers = is_exact(writer)
        clock = asyncio.get_running_loop().time
        began = clock()
        was_unanswered = how in self._unanswered
        self._unanswered.add(how)  # if the call is cancelled, too
        through = writer.txn().when(*txn.when).then(*txn.then).otherwise(*txn.otherwise)
        try:
            result = await through.commit(timeout=timeout, retry=None if has_exact_answers else "safe")
        except ResultLostError as lost:
            if not was_unanswered:
                self._unanswered.discard(how)
            if lost.succeeded:
                return None
            left = None if timeout is None else max(0.0, timeout - (clock() - began))
            # The condition is on a revision that never comes back, so it fails again.
            return await store.do(op.txn(when=txn.when, otherwise=txn.otherwise), timeout=left)
        except EtcdError as error:
            if not (error.maybe_applied or was_unanswered):
                self._unanswered.discard(how)
            left = None if timeout is None else timeout - (clock() - began)
            is_late = left is not None and left <= 0
            if not error.maybe_applied or has_exact_answers or is_late or isinstance(error, NoSpaceError):
                raise
        except Exception:  # a wrong argument: nothing was sent
            if not was_unanswered:
                self._unanswered.discard(how)
            raise
        else:
            if not was_unanswered:
                self._unanswered.discard(how)
            return result
        try:
            return await store.do(txn, timeout=left, retry="always")
        except EtcdError as error:
            error.maybe_applied = True  # by the first one
            raise

    def _lost(self) -> JobLostError:
        return self.lose("no renewal of the worker's lease is acknowledged")
