"""ExactlyOnce: `client.exactly_once()`, writes that are applied once although their answers may be lost."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import DeleteResult, KeyRange, OutcomeUnknownError, PutResult, Txn, TxnResult, op
from etcd_aio.arguments import encode_key, whole_number
from etcd_aio.base import UNSET, KeySpace, NotAwaitable, RetryMode, Timeout, deadline_after, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.errors import ClientUsageError
from etcd_aio.once.guarded import SingleWrite, Write, WriteAnswer, check_write, operations_of
from etcd_aio.once.ids import Ids
from etcd_aio.once.results import OnceStatistics, Outcome, WriteResult
from etcd_aio.once.settle import Settler
from etcd_aio.once.slots import SlotPool
from etcd_aio.once.write_verdicts import Branch
from etcd_aio.once.writes import WriteRequest, Writes
from etcd_aio.types import KeyLike, LeaseLike, ValueLike, result_within

DEFAULT_SLOTS: Final = 64
"""Writes at a time: as many as one member can have under way before it gets slower."""

DEFAULT_TTL: Final = 300
"""Seconds: what is left after a crash of the process lasts for so long; outages that are shorter cost nothing."""

DEFAULT_WINDOW: Final = 24 * 3600
"""Seconds for which an id is remembered: a day, in which most callers that repeat a request have done so."""

DEFAULT_PREFIX: Final = "__etcd_aio/once/"


class ExactlyOnce(NotAwaitable):
    """Writes that are applied exactly once: `async with client.exactly_once() as once:`.

    A write whose answer was lost is repeated until it is answered, and the answer says whether an earlier copy was
    applied: whatever happens to connections and members, no copy is applied in addition, at any later time. The cost is
    one more condition and one more put, on a key of this object, in the same txn; there is no further round trip.

    One object for each client is enough; tasks may share it. Up to `slots` writes are under way at a time, others wait
    for their turn. The keys are under the lease of this object, so leaving the block removes them. Another user who
    writes under the prefix, or a store that is replaced by an older backup, voids the promise.

    A cancelled write may have been applied, or not: it is settled in the background, so that it does not happen later.

    Args:
        store: the client.
        slots: the most writes at a time.
        ttl: seconds for which the keys of this object outlive the process.
        window: seconds for which an id is remembered at least, from the end of the call on; if a call takes longer than
            a day, from the end of its first day on.
        prefix: of all its keys. With authentication, the user needs the permission to read and write it.
        timeout: seconds for a write that has no `timeout` of its own; None for no limit.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """

    usage: ClassVar[str] = "it cannot be awaited: write `async with client.exactly_once() as once:`"

    def __init__(
        self,
        store: StoreCalls,
        *,
        slots: int = DEFAULT_SLOTS,
        ttl: int = DEFAULT_TTL,
        window: int = DEFAULT_WINDOW,
        prefix: KeyLike = DEFAULT_PREFIX,
        timeout: Timeout = UNSET,
    ) -> None:
        check_store(store)
        encoded = encode_key(prefix, "prefix")
        self._store = store
        self._timeout = seconds = store.backend.shared.seconds(timeout)
        self._keys = KeyRange.of(prefix=encoded)
        limit = whole_number(slots, "slots", minimum=1)
        ttl = whole_number(ttl, "ttl", minimum=1)
        window = whole_number(window, "window", minimum=1)
        self._pool = SlotPool(store, limit=limit, ttl=ttl, prefix=encoded, timeout=seconds)
        self._ids = Ids(store, prefix=encoded + b"ids/", window=window, timeout=seconds)
        self._settler = Settler(store, self._pool)
        self._writes = Writes(store, self._pool, self._ids, self._settler)
        self._is_entered = False

    @when_constructed
    def __repr__(self) -> str:
        return f"<ExactlyOnce {self._keys} slots={self._pool.count}>"

    is_exact: ClassVar[bool] = True
    """Answers are true of every copy of a write; see `Writer`."""

    @property
    def key_space(self) -> KeySpace:
        """The key space that it writes to: that of the store that made it; see `Client.key_space`."""
        return self._store.key_space

    # Lifetime.

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ClientUsageError("exactly_once() can only be entered once: ask the client for another one")
        self._is_entered = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the block: remove all its keys but those of ids, within 4 seconds. Leaving does this. Safe to repeat.

        Writes under way are applied before that, or never. Those that are not settled by then are logged with the keys
        of their slots. Closing the client does this too, within half a second: if etcd does not answer in that time,
        the keys last for the TTL, and writes under way may still be applied for so long.

        Cancellation: as if the time was over.
        """
        self._ids.close()
        try:
            await self._pool.close()
            await self._settler.finish()
        finally:
            self._settler.stop()

    # Writes.

    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        id: str | None = None,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        """Put a value under a key, exactly once.

        Args:
            key: the key.
            value: the value; may be empty.
            lease: the lease to attach the key to, or its id.
            prev_kv: return the key as it was before.
            id: an idempotency id: of all writes with the same id, by all processes, one is applied within the window,
                and the others get its result. It has to be of the same request, arguments included.
            timeout: seconds for the whole call.

        Returns:
            PutResult: its `is_replayed` is True if the answer was lost, and `prev_kv` is from the history of the store.

        Raises:
            OutcomeUnknownError: the time was over before it was known whether the put was applied. See `settle`.
            ResultLostError: the put was applied, but `prev_kv` is compacted.
            InvalidRequestError: the key is one of this object's, or the id was used for another request.
            EtcdError: as every put; nothing was applied, and nothing will be.

        Cancellation: the put was applied, or never will be; which of them is found out in the background.
        """
        write = SingleWrite((op.put(key, value, lease=lease, prev_kv=prev_kv),))
        return _as_put(write, await self._write(write, id, _as_put, timeout))

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        id: str | None = None,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        """Delete a key or a range, exactly once.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this; not empty.
            from_key: every key from this one on; not empty.
            prev_kv: return the deleted keys as they were.
            id: as in `put`.
            timeout: seconds for the whole call.

        Returns:
            DeleteResult: its `is_replayed` is True if the answer was lost, and `deleted` and `prev_kvs` are from the
                history of the store.

        Raises:
            OutcomeUnknownError, ResultLostError, EtcdError: as `put`.
            InvalidRequestError: the range has keys of this object, or the id was used for another request.

        Cancellation: as `put`.
        """
        delete = op.delete(key, range_end=range_end, prefix=prefix, from_key=from_key, prev_kv=prev_kv)
        write = SingleWrite((delete,))
        return _as_delete(write, await self._write(write, id, _as_delete, timeout))

    def txn(self, *, id: str | None = None) -> Txn:
        """Build a txn that is applied exactly once: `await once.txn().when(...).then(...).otherwise(...).commit()`.

        It has at most 126 operations in a branch, 124 with an id. Its `commit` raises what `put` raises. With
        `retry="never"` it makes one attempt, and then finds out whether that was applied. A txn that only reads is sent
        as it is.

        Args:
            id: as in `put`.
        """

        async def do(operation: op.TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
            if operation.is_read_only:
                return await self._store.do(operation, timeout=timeout, retry=retry)
            return _as_txn(operation, await self._write(operation, id, _as_txn, timeout, retry or "always"))

        return Txn(do)

    async def settle(self, error: OutcomeUnknownError, *, timeout: Timeout = UNSET) -> Outcome:
        """Find out whether the write that raised this error was applied. If it was not, it never will be.

        Args:
            error: raised by a write of this object.
            timeout: seconds for the whole call.

        Returns:
            Outcome: whether it was applied, and what the write would have returned.

        Raises:
            OutcomeUnknownError: the same error: there is no answer yet. If the history of the slot is compacted, or the
                block has ended, it never will be.
            ClientUsageError: the error was not raised by this object.
            EtcdError: the write was applied, and its result could not be read now.

        Cancellation changes nothing.
        """
        try:
            seconds = self._timeout if timeout is UNSET else timeout
            deadline = deadline_after(seconds, asyncio.get_running_loop().time())
            outcome = await self._writes.settle(error, deadline)
        except LookupError:
            raise ClientUsageError("settle() takes an OutcomeUnknownError that a write of this object raised") from None
        if outcome is None:
            raise error
        return outcome

    def statistics(self) -> OnceStatistics:
        """A snapshot of the counters."""
        pool, settler = self._pool, self._settler
        return OnceStatistics(
            slots=pool.count,
            in_use=pool.count - pool.free_count,
            unsettled=len(settler),
            replays=self._writes.replays,
            settled_applied=settler.applied,
            settled_not_applied=settler.not_applied,
            lease_losses=pool.lease_losses,
        )

    async def _write(
        self,
        write: Write,
        id: str | None,
        shape: Callable[[Write, WriteAnswer], WriteResult],
        timeout: Timeout,
        retry: RetryMode = "always",
    ) -> WriteAnswer:
        if not self._is_entered:
            raise ClientUsageError("write `async with client.exactly_once() as once:`")
        check_write(write, self._keys, has_id=id is not None)
        seconds = self._timeout if timeout is UNSET else timeout
        return await self._writes.run(WriteRequest(write, id, shape, retry, seconds))


def _as_txn(write: Write, answer: WriteAnswer) -> TxnResult:
    succeeded, operations = answer.branch is Branch.THEN, operations_of(write, answer.branch)
    result = TxnResult(succeeded, answer.header, answer.responses, operations)
    return result_within(answer.header, result, is_replayed=answer.is_replayed)


def _as_put(write: Write, answer: WriteAnswer) -> PutResult:
    (put,) = answer.responses
    assert isinstance(put, PutResult)  # noqa: S101 - the only operation of the write
    return result_within(answer.header, put, is_replayed=answer.is_replayed)


def _as_delete(write: Write, answer: WriteAnswer) -> DeleteResult:
    (delete,) = answer.responses
    assert isinstance(delete, DeleteResult)  # noqa: S101 - the only operation of the write
    return result_within(answer.header, delete, is_replayed=answer.is_replayed)
