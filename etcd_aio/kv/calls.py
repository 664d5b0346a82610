"""KV: the key-value calls.

Knows: the calls, their arguments and their results. Never knows: endpoints, retries or bytes on the wire.

Every method takes the forms that name keys (`KeyRange.of`) and hands one operation (`op.py`) to the invoker; the same
functions check it that check the operations of a txn.
"""

from typing import TYPE_CHECKING, Literal, overload

from etcd_aio import methods
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.kv import op, replies, requests
from etcd_aio.kv.chunks import Chunks
from etcd_aio.kv.operations import RangeOp, TxnOp, is_read_only, is_serializable
from etcd_aio.kv.scan import DEFAULT_PAGE_SIZE, Scan
from etcd_aio.kv.txn import Txn
from etcd_aio.pb import CompactionRequest
from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    KeyLike,
    KeyValue,
    LeaseLike,
    PutResult,
    RangeResult,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    TxnResult,
    ValueLike,
    flag,
    whole_number,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker


class KV:
    """The key-value API.

    Keys and values are `str`, which is sent as UTF-8, or bytes. Results are frozen and hold bytes.

    Every call takes `timeout`, seconds for the whole call with all its attempts (None waits for ever, left out is the
    client's default), and `retry`, one of `"safe"`, `"never"`, `"always"` (left out is the client's default).

    Every call raises TypeError or InvalidRequestError before anything is sent if its arguments cannot be right, and
    else what any call can raise: `EtcdTimeoutError`, `NoAvailableEndpointsError`, `ConnectionLostError`,
    `PermissionDeniedError` and the other classes of `EtcdError`. Of a mutation the error's `maybe_applied` tells
    whether it may have been carried out; a cancelled mutation may always have been. A cancelled read leaves nothing
    behind.
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    async def get(
        self,
        key: KeyLike,
        *,
        revision: int = 0,
        serializable: bool = False,
        keys_only: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> KeyValue | None:
        """Get one key.

        Args:
            key: the key.
            revision: read the store as it was then; 0 is now.
            serializable: be content with what one member knows, which is faster, needs no quorum, and may be stale.
            keys_only: leave the value out.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            KeyValue | None: None if there is no such key.

        Raises:
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
            EtcdError: as every call.
        """
        operation = op.get(key, revision=revision, serializable=serializable, keys_only=keys_only)
        reply = await self._invoker.unary(
            methods.RANGE,
            requests.get_request(operation),
            timeout=timeout,
            retry=retry,
            needs_leader=not serializable,
        )
        return replies.get_result(reply)

    async def range(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        limit: int = 0,
        revision: int = 0,
        sort_by: SortByLike = SortBy.KEY,
        sort_order: SortOrderLike = SortOrder.ASCEND,
        serializable: bool = False,
        keys_only: bool = False,
        count_only: bool = False,
        min_mod_revision: int = 0,
        max_mod_revision: int = 0,
        min_create_revision: int = 0,
        max_create_revision: int = 0,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> RangeResult:
        """Get the keys of a range in one reply. For ranges of unknown size there is `scan()`.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            limit: at most so many keys; 0 is no limit.
            revision: read the store as it was then; 0 is now.
            sort_by: `"key"`, `"version"`, `"create_revision"`, `"mod_revision"` or `"value"`. Sorting by anything but
                the key makes the server read the whole range, whatever the limit.
            sort_order: `"ascend"` or `"descend"`.
            serializable: be content with what one member knows, which is faster, needs no quorum, and may be stale.
            keys_only: leave the values out.
            count_only: return only `count`, no keys.
            min_mod_revision: leave out what was changed last before this revision; 0 is no bound.
            max_mod_revision: leave out what was changed last after this revision; 0 is no bound.
            min_create_revision: leave out what was created before this revision; 0 is no bound.
            max_create_revision: leave out what was created after this revision; 0 is no bound.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            RangeResult: the keys found; `count` ignores the limit and the four bounds.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
            EtcdError: as every call.
        """
        operation = op.range(
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            limit=limit,
            revision=revision,
            sort_by=sort_by,
            sort_order=sort_order,
            serializable=serializable,
            keys_only=keys_only,
            count_only=count_only,
            min_mod_revision=min_mod_revision,
            max_mod_revision=max_mod_revision,
            min_create_revision=min_create_revision,
            max_create_revision=max_create_revision,
        )
        return await self._range(operation, timeout, retry)

    def scan(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        revision: int = 0,
        keys_only: bool = False,
        serializable: bool = False,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> Scan:
        """Iterate over a range of any size, as it was at one revision: streamed by etcd 3.7, page by page before.

            async for kv in client.scan(prefix="svc/"): ...

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            revision: read the store as it was then; 0 is the revision of the first page.
            keys_only: leave the values out.
            serializable: be content with what one member knows, which is faster, needs no quorum, and may be stale.
            page_size: the most keys in a page; 1000, as etcd's own mirror reads. A server that does not stream counts
                the rest of the range for every page, so larger pages are cheaper for it, and smaller ones take less
                memory here. A server that does chooses itself how much it sends at once.
            timeout: seconds within which the next page, or what the server sends at once, has come, with all attempts.
                The time that the caller takes between two steps does not count.
            retry: which failed attempts are repeated.

        Returns:
            Scan: an async iterator of `KeyValue`; `pages()` iterates by pages. Nothing is sent before the first step.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
        """
        first = op.range(
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
        )
        page_size = whole_number(page_size, "page_size", minimum=1)
        chunks = Chunks(self._invoker)
        return Scan(self._range, first, page_size=page_size, timeout=timeout, retry=retry, chunks=chunks)

    @overload
    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[False] = False,
        ignore_lease: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    @overload
    async def put(
        self,
        key: KeyLike,
        value: None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[True],
        ignore_lease: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    async def put(
        self,
        key: KeyLike,
        value: ValueLike | None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: bool = False,
        ignore_lease: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult:
        """Put a value under a key. It is carried out at most once, unless `retry="always"`.

        Args:
            key: the key.
            value: the value; may be empty.
            lease: the lease to attach the key to, or its id. Without one the key loses the lease it had.
            prev_kv: return what the key held before.
            ignore_value: keep the key's value, so none is given: this attaches it to another lease. It must exist.
            ignore_lease: keep the key's lease, so none is given. The key must exist.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            PutResult: its revision, and `prev_kv` if asked for.

        Raises:
            InvalidRequestError: there is no value.
            EmptyKeyError: the key is empty.
            ValueProvidedError: a value together with `ignore_value=True`.
            LeaseProvidedError: a lease together with `ignore_lease=True`.
            KeyNotFoundError: `ignore_value` or `ignore_lease` for a key that does not exist.
            LeaseNotFoundError: there is no such lease.
            NoSpaceError: the store is full. When the store becomes full, the first failing writes may still be applied.
            EtcdError: as every call; `maybe_applied` tells whether the put may have been carried out.
        """
        operation = op.checked_put(key, value, lease, prev_kv, ignore_value, ignore_lease)
        return await self._invoker.unary(methods.PUT, requests.put_request(operation), timeout=timeout, retry=retry)

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> DeleteResult:
        """Delete a key or a range. It is carried out at most once, unless `retry="always"`.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this; not empty.
            from_key: every key from this one on; not empty.
            all_keys: every key. Only this form deletes everything.
            prev_kv: return what was deleted.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            DeleteResult: how many keys were deleted, and `prev_kvs` if asked for. Deleting nothing is no error.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an empty prefix names all of them.
            EmptyKeyError: the key is empty.
            EtcdError: as every call; `maybe_applied` tells whether the delete may have been carried out.
        """
        operation = op.delete(
            key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys, prev_kv=prev_kv
        )
        return await self._invoker.unary(
            methods.DELETE_RANGE, requests.delete_request(operation), timeout=timeout, retry=retry
        )

    def txn(self) -> Txn:
        """Begin a txn: `await client.txn().when(...).then(...).otherwise(...).commit()`.

        Returns:
            Txn: a builder. Nothing is sent before its `commit()`.
        """
        return Txn(self._commit)

    async def compact(
        self,
        revision: int,
        *,
        physical: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> CompactResult:
        """Forget the history before a revision: reads and watches from before it then fail with `CompactedError`.

        Args:
            revision: the oldest revision that stays readable.
            physical: wait until the space is really free on the answering member; give a long `timeout` with it.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated. Repeating this one is harmless, but it may then be answered by
                `CompactedError`, since the first attempt got through.

        Returns:
            CompactResult: with the header only.

        Raises:
            CompactedError: this revision was compacted before.
            FutureRevisionError: the store has not reached the revision.
            EtcdError: as every call; `maybe_applied` tells whether the compaction may have been carried out.
        """
        request = CompactionRequest(
            revision=whole_number(revision, "revision", minimum=1), physical=flag(physical, "physical")
        )
        return await self._invoker.unary(methods.COMPACT, request, timeout=timeout, retry=retry)

    async def _range(self, operation: RangeOp, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        return await self._invoker.unary(
            methods.RANGE,
            requests.range_request(operation),
            timeout=timeout,
            retry=retry,
            needs_leader=not operation.serializable,
        )

    async def _commit(self, operation: TxnOp, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        reply = await self._invoker.unary(
            methods.TXN,
            requests.txn_request(requests.linearizable(operation)),
            timeout=timeout,
            retry=retry,
            repeatable=True if is_read_only(operation) else None,
            needs_leader=not is_serializable(operation),
        )
        return replies.txn_result(reply, operation)
