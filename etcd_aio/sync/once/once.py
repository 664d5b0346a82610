"""ExactlyOnce, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.once.once`: do not edit.
"""

from typing import Self

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, KeySpace, Timeout
from etcd_aio.errors import OutcomeUnknownError
from etcd_aio.once import DEFAULT_PREFIX, DEFAULT_SLOTS, DEFAULT_TTL, DEFAULT_WINDOW, OnceStatistics, Outcome
from etcd_aio.once import ExactlyOnce as AsyncExactlyOnce
from etcd_aio.portal import Block
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.kv.txn import Txn
from etcd_aio.types import DeleteResult, PutResult


class ExactlyOnce(Block):
    """Writes that are applied exactly once: `with client.exactly_once() as once:`.

    A write whose answer was lost is repeated until it is answered, and the answer says whether an earlier copy was
    applied: whatever happens to connections and members, no copy is applied in addition, at any later time. The cost is
    one more condition and one more put, on a key of this object, in the same txn; there is no further round trip.

    One object for each client is enough; threads may share it. Up to `slots` writes are under way at a time, others
    wait for their turn. The keys are under the lease of this object, so leaving the block removes them. Another user
    who writes under the prefix, or a store that is replaced by an older backup, voids the promise.

    A write that Ctrl-C interrupts may have been applied, or not: it is settled in the background, so that it does not
    happen later.

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
        self._construct(AsyncExactlyOnce, store, slots=slots, ttl=ttl, window=window, prefix=prefix, timeout=timeout)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    @property
    def key_space(self) -> KeySpace:
        """The key space that it writes to: that of the store that made it; see `Client.key_space`."""
        return self._aio.key_space

    def close(self) -> None:
        """End the block: remove all its keys but those of ids, within 4 seconds. Leaving does this. Safe to repeat.

        Writes under way are applied before that, or never. Those that are not settled by then are logged with the keys
        of their slots. Closing the client does this too, within half a second: if etcd does not answer in that time,
        the keys last for the TTL, and writes under way may still be applied for so long.

        Ctrl-C: as if the time was over.
        """
        self._end(self._aio.aclose)

    def put(
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

        Ctrl-C: the put was applied, or never will be; which of them is found out in the background.
        """
        return self._run(self._aio.put, key, value, lease=lease, prev_kv=prev_kv, id=id, timeout=timeout)

    def delete(
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

        Ctrl-C: as `put`.
        """
        return self._run(
            self._aio.delete,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            prev_kv=prev_kv,
            id=id,
            timeout=timeout,
        )

    def txn(self, *, id: str | None = None) -> Txn:
        """Build a txn that is applied exactly once: `once.txn().when(...).then(...).otherwise(...).commit()`.

        It has at most 126 operations in a branch, 124 with an id. Its `commit` raises what `put` raises. With
        `retry="never"` it makes one attempt, and then finds out whether that was applied. A txn that only reads is sent
        as it is.

        Args:
            id: as in `put`.
        """
        return self._made("txn", id=id)

    def settle(self, error: OutcomeUnknownError, *, timeout: Timeout = UNSET) -> Outcome:
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

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.settle, error, timeout=timeout)

    def statistics(self) -> OnceStatistics:
        """A snapshot of the counters."""
        return self._run(self._aio.statistics)
