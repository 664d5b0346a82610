"""FencedWriter: writes that etcd applies only while the writer holds what it has acquired.

Every mutation is a txn whose condition is the ownership: the writer's own key has its `create_revision`, and its lease,
without which it would not keep others out. That revision never comes back, so a write that is delayed until after the
ownership is refused, however late it arrives.

A refusal says that this copy of the write was not applied, and nothing about an earlier one. So a store repeats a
fenced write only if its caller asks for that, whatever the client's `retry` says: the first answer that may be lost
ends the call. Exactly-once writes repeat all writes, and their answers are true of every copy.
"""

from typing import Generic

from etcd_aio import DeleteResult, Op, PutResult, Txn, TxnResult, op
from etcd_aio.base import UNSET, RetryMode, Timeout, key_space_of
from etcd_aio.calls import StoreCalls, Writer, is_exact, writer_for
from etcd_aio.concurrency.held import Held
from etcd_aio.concurrency.options import E
from etcd_aio.errors import NotHeldError, OutcomeUnknownError, ResultLostError, TooManyOpsError
from etcd_aio.types import KeyLike, LeaseLike, ValueLike, result_within


class FencedWriter(Generic[E]):
    """A `Writer` for what a `Held` holds.

    Each call raises the error of the loss, such as `LockLostError`, if the ownership is lost: before anything is sent,
    if that is known here, and otherwise when etcd refuses the write. It raises `NotHeldError` after the block. With
    `retry="always"`, `maybe_applied` of a refusal is True: an earlier copy may have been applied.

    Writes are retried as with `retry="safe"`, unless a commit says otherwise, whatever is the default of the client:
    each is applied at most once. With `Client(retry="always")`, a refusal would not tell whether an earlier copy was
    applied; with `Client(retry="never")`, a request that was not sent, or not processed, is sent again all the same.

    Args:
        store: that has what is held.
        writer: carries out the writes: that store, or exactly-once writes.
        held: what is held.

    Raises:
        InvalidRequestError: the writer is of another namespace or client, where the own key is not.
    """

    is_exact = True
    """A write is not repeated, unless its caller asks for that."""

    __slots__ = ("_held", "_is_exact", "_writer", "key_space")

    def __init__(self, store: StoreCalls, writer: Writer, held: Held[E]) -> None:
        self._writer = writer_for(store, writer)
        self.key_space = key_space_of(store) or key_space_of(writer)
        self._is_exact = is_exact(self._writer)
        self._held = held

    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        """Put a value under a key, as `client.put()` does."""
        put = op.put(key, value, lease=lease, prev_kv=prev_kv)
        result = await self._send((put,), timeout)
        return result_within(result.header, result[put], is_replayed=result.is_replayed)

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        """Delete a key or a range, as `client.delete()` does."""
        deletion = op.delete(key, range_end=range_end, prefix=prefix, from_key=from_key, prev_kv=prev_kv)
        result = await self._send((deletion,), timeout)
        return result_within(result.header, result[deletion], is_replayed=result.is_replayed)

    def txn(self) -> Txn:
        """Build a txn, as `client.txn()` does. The ownership takes one of the operations that etcd allows in a txn."""
        return Txn(self._commit)

    async def _commit(self, operation: op.TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        if operation.when:
            try:
                result = await self._send((operation,), timeout, retry)
            except ResultLostError as error:  # the ownership held, but it is not known whether the conditions did
                raise OutcomeUnknownError(
                    "which branch of the txn was applied is not known: it is compacted"
                ) from error
            part = result[operation]
        else:
            part = result = await self._send(operation.then, timeout, retry)
        return result_within(result.header, part, is_replayed=result.is_replayed)

    async def _send(self, then: tuple[Op, ...], timeout: Timeout, retry: RetryMode | None = None) -> TxnResult:
        held = self._held
        if held.is_over:
            raise NotHeldError("the block has ended that this writer is for")
        if held.is_lost:
            raise held.loss()
        look = op.get(held.key, keys_only=True)
        txn = self._writer.txn().when(*held.conditions()).then(*then).otherwise(look)
        try:
            result = await txn.commit(timeout=timeout, retry=retry if self._is_exact else retry or "safe")
        except TooManyOpsError as error:
            error.add_note("The ownership takes one of the operations that etcd allows in a txn.")
            raise
        except ResultLostError as error:
            if not error.succeeded:
                raise held.lose("its key is gone: etcd has refused a fenced write") from error
            raise
        if not result.succeeded:
            lost = held.lose("its key is gone: etcd has refused a fenced write")
            if retry == "always" and not self._is_exact:
                doubt = type(lost)(f"{lost.message}, and an earlier copy of it may have been applied")
                doubt.maybe_applied = True
                raise doubt from lost
            raise lost
        return result
