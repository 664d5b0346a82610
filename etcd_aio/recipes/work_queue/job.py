"""Job: one job of a worker, from its claim to its end.

The end is one txn with the condition that the claim is there: it deletes the job, and carries out the operations of its
result. So that takes effect once, whatever became of other attempts. If the answer is lost, the txn is sent again. If
the claim is gone then, the first copy was applied, or the claim was lost. As long as the worker's own key is there, its
lease was never lost; and no other worker can have deleted the claim.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from etcd_aio import Key, KeyValue, Op, TxnResult, op
from etcd_aio.arguments import to_bytes
from etcd_aio.base import (
    CANCELLED_SECONDS,
    PATIENT,
    SOON,
    UNSET,
    AsyncBlock,
    Latch,
    Pauses,
    TaskCanceller,
    Timeout,
    as_etcd_error,
    deadline_after,
    when_constructed,
)
from etcd_aio.errors import (
    ClientUsageError,
    EtcdError,
    EtcdTimeoutError,
    InvalidRequestError,
    JobLostError,
    NoSpaceError,
    ResultLostError,
)
from etcd_aio.recipes.calls import seconds_left
from etcd_aio.recipes.work_queue.jobs import Kind, checked_delay, id_of
from etcd_aio.recipes.work_queue.shift import Shift
from etcd_aio.types import shown_key

_MOST_OPERATIONS: Final = 120
"""Operations of a result: etcd accepts 128 in a txn by default, and the job's own keys take some."""

_End: TypeAlias = Literal["complete", "reject", "free"]
"""The ways in which a job ends for its worker; after the first two the item is gone."""


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

    def __init__(
        self,
        shift: Shift,
        name: bytes,
        value: bytes,
        tries: int,
        revision: int,
        on_ended: Callable[["Job"], None],
        *,
        is_dirty: bool,
    ) -> None:
        self._shift = shift
        self._context = shift.context
        self._name = name
        self._on_ended = on_ended  # it is not this worker's any more
        self.key: bytes = self._key(Kind.ITEM)
        self.value = value
        self.tries = tries
        self.fencing_token = revision
        self._is_dirty = is_dirty  # a copy of the request that claims it may still travel
        self._is_ending = False  # a request that ends it is under way
        self._is_ended = False
        self._is_unclaimed = False  # the claim is gone
        self._unanswered: frozenset[str] = frozenset()  # requested, and the answer was lost
        self._canceller: TaskCanceller | None = None
        self._error: JobLostError | None = None  # it is lost
        self._gone = Latch()

    @when_constructed
    def __repr__(self) -> str:  # payloads are secrets
        state = "lost" if self._error is not None else "ended" if self._is_ended else "running"
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
        """Whether the job is lost. Thread-safe. By the clock, so it is right at once after a stop."""
        return self._error is not None or (not self._is_ended and self._shift.left <= 0)

    @property
    def is_ended(self) -> bool:
        """Whether this worker has ended the job."""
        return self._is_ended

    async def lost(self, *, timeout: float | None = None) -> JobLostError | None:
        """Wait until the job is lost or ended.

        Returns why it was lost; None if it was ended, also if it may have been by a request whose answer was lost.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.

        Cancelling the wait changes nothing.
        """
        if not await self._gone.wait(deadline_after(timeout, asyncio.get_running_loop().time())):
            if self._is_ending or not self.is_lost:
                raise EtcdTimeoutError(f"job {shown_key(self.key)} was not lost in time")
            self._lose_by_time()  # the loop was stopped, and the worker's timer comes later
        return self._error

    # Losing.

    def _lose(self, reason: str, cause: BaseException | None = None) -> JobLostError:
        """The job is lost. A request that ends it, and is under way, decides itself."""
        if self._error is None:
            self._error = JobLostError(f"job {shown_key(self.key)} is lost: {reason}")
            self._error.__cause__ = cause
            self._on_ended(self)
        if not self._is_ending:
            self._tell_loss()
        self._error.maybe_applied = bool(self._unanswered)  # an own request may have ended it before
        return self._error

    def _tell_loss(self) -> None:
        self._gone.set()
        if self._canceller is not None:
            self._canceller.cancel()

    def _lose_by_time(self) -> JobLostError:
        return self._lose("no renewal of the worker's lease is acknowledged")

    def _claim_deleted(self) -> None:
        """The claim is gone: by an own request that was not answered, or by an operator.

        If it may be the former the job is not lost: the next request that ends it finds out. Its place is free.
        """
        self._is_unclaimed = True
        if self._is_ending:
            return  # its answer decides, if there is one
        if self._unanswered:
            self._leave()
        else:
            self._lose("its claim was deleted")

    def _leave(self) -> None:
        """The job is not this worker's any more."""
        self._gone.set()
        self._on_ended(self)

    # The block.

    async def __aenter__(self) -> Self:
        if self._canceller is not None:
            raise ClientUsageError("a job can only be entered once")
        if self.is_lost:
            raise self._lose_by_time()
        self._canceller = TaskCanceller(cancels=self._context.cancels)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        canceller = self._canceller
        if canceller is None:
            return
        if self.is_lost and exc is not self._error:
            canceller.leave_with(self._lose_by_time(), exc)
            return
        canceller.leave()
        if self.is_lost or self._is_ended:
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
            if not self._is_ended and self._error is None:
                self._release_later()
            if exc is None or not isinstance(error, EtcdError):
                raise
            if getattr(exc, "message", None) != error.message:  # the block may have been told already
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
        more: list[Op] = []
        if seconds := checked_delay(delay):
            more.append(self._delayed(seconds))
        if self._is_dirty:  # a late copy of the request that claims it must not claim it again
            more.append(op.put(self.key, self.value))
        with suppress(NoSpaceError):  # a full store refuses puts, and the job should not wait for space
            if self.tries < self._context.max_tries:
                await self._release(timeout, *more)
            else:
                await self.reject(
                    reason or f"attempt {self.tries} of {self._context.max_tries} has failed", timeout=timeout
                )
            return
        await self._release(timeout)

    async def reject(self, reason: str = "", *, timeout: Timeout = UNSET) -> None:
        """End the job: it is given up, and moved to the dead letters, with the reason beside the payload.

        Raises:
            JobLostError, EtcdError: as of `complete`. A full store refuses it.

        Cancellation: the job was given up or not; call it again.
        """
        moved = [
            op.put(self._key(Kind.DEAD), self.value),
            op.put(self._key(Kind.REASON), to_bytes(reason, "reason")),
        ]
        await self._end("reject", [*self._deletions(), *moved], timeout)

    async def _release(self, timeout: Timeout, *more: Op) -> None:
        """The job is free again, whichever attempt this was."""
        await self._end("free", [op.delete(self._key(Kind.CLAIM)), *more], timeout)

    def _release_later(self, *, delay: float = 0.0, has_begun: bool = True) -> None:
        """Release it in the background, until that is answered or the lease is lost."""
        more: list[Op] = [self._delayed(delay)] if delay else []
        if not has_begun and self.tries == 1:  # it counts as no attempt
            more.append(op.delete(self._key(Kind.TRIES)))
        self._context.pool.run(self._release_at_last(more), "release of a job")

    async def _release_at_last(self, more: list[Op]) -> None:
        pauses = Pauses(SOON)
        while not (self._is_ended or self.is_lost):
            try:
                await self._release(CANCELLED_SECONDS, *more)
            except Exception as raised:
                error = as_etcd_error(raised)
                if isinstance(error, ClientUsageError) or self.is_lost:
                    self._leave()
                    return
                if not error.retryable and pauses.backoff is SOON:  # such as rights that are missing
                    pauses = Pauses(PATIENT)
                    text = "%s: job %s cannot be released, which is tried again; until then it stays claimed: %s"
                    self._context.log.warning(text, self._context.keys.what, shown_key(self.key), error)
                    self._leave()  # the worker continues without it, but owes its release
            await pauses.wait()

    def _delayed(self, seconds: float) -> Op:
        return op.put(self._key(Kind.DELAY), f"{time.time() + seconds:.3f}")

    def _key(self, kind: Kind) -> bytes:
        return self._context.keys.of(kind, self._name)

    def _deletions(self) -> list[Op]:
        keys = [self.key, self._key(Kind.CLAIM), self._key(Kind.TRIES)]
        if ident := id_of(self._name):
            keys.append(self._context.keys.id_key(ident))
        return [op.delete(key) for key in keys]

    async def _end(self, how: _End, then: list[Op], timeout: Timeout) -> None:
        if self._is_ended:
            raise ClientUsageError(f"job {shown_key(self.key)} has ended already")
        if self.is_lost:
            raise self._lose_by_time()
        if self._is_ending:
            raise ClientUsageError(f"job {shown_key(self.key)} is being ended already")
        shift = self._shift
        claim, worker = op.get(self._key(Kind.CLAIM), keys_only=True), op.get(shift.worker_key, keys_only=True)
        item = op.get(self.key, keys_only=True)
        owned = Key(claim.key).create_revision == self.fencing_token
        txn = op.txn(when=[owned], then=then, otherwise=[claim, item, worker])
        deadline = self._context.calls.deadline(timeout)
        self._is_ending = True
        try:
            result = await self._commit(how, txn, deadline)
        except BaseException:  # a cancellation too
            self._is_ending = False
            if self._error is not None:
                self._tell_loss()
            elif self._is_unclaimed:
                self._claim_deleted()
            raise
        self._is_ending = False
        if result is not None and not result.succeeded:
            kv = result[worker]
            has_worked = kv is not None and kv.create_revision == shift.revision
            is_gone = how == "free" or result[item] is None
            if not (self._unanswered == {how} and has_worked and is_gone):
                raise self._lose("its claim is gone")
        self._is_ended = True
        self._error = None  # what was lost meanwhile came too late
        self._leave()

    async def _commit(self, how: _End, txn: op.TxnOp, deadline: float) -> TxnResult | None:
        """Send a txn; again if its answer is lost.

        Returns None if it has ended the job, and what it has deleted is compacted.
        """
        calls = self._context.calls
        try:
            return await self._send(how, txn, deadline)
        except ResultLostError as lost:
            if lost.succeeded:
                return None
            # The condition is on a revision that never comes back, so it fails again.
            again = op.txn(when=txn.when, otherwise=txn.otherwise)
            return await calls.do(again, deadline)
        except EtcdError as error:
            is_last = calls.is_exact or seconds_left(deadline) == 0 or isinstance(error, NoSpaceError)
            if is_last or not error.maybe_applied:
                raise
        try:
            return await calls.do(txn, deadline, "always")
        except EtcdError as error:
            error.maybe_applied = True  # by the first one
            raise

    async def _send(self, how: _End, txn: op.TxnOp, deadline: float) -> TxnResult:
        """Send a txn once, and keep in mind whether it may be applied without an answer: it is, until that is known."""
        before, self._unanswered = self._unanswered, self._unanswered | {how}
        try:
            result = await self._context.calls.commit(txn, deadline)
        except Exception as error:
            is_in_doubt = not isinstance(error, EtcdError) or error.maybe_applied
            if not is_in_doubt or isinstance(error, ResultLostError):
                self._unanswered = before
            raise
        self._unanswered = before
        return result
