"""KeyCalls, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.calls.keys`: do not edit.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.kv import DEFAULT_PAGE_SIZE
from etcd_aio.portal import Facade
from etcd_aio.types import (
    DeleteResult,
    KeyValue,
    Operation,
    PutResult,
    RangeResult,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
)

if TYPE_CHECKING:
    from etcd_aio.sync.kv.scan import Scan
    from etcd_aio.sync.kv.txn import Txn

_R = TypeVar("_R")


class KeyCalls(Facade):
    """The calls about keys.

    Keys and values are `str`, which is sent as UTF-8, or bytes. Results are frozen and hold bytes.

    Every call takes `timeout`, the seconds for the whole call with all its attempts (None waits for ever), and `retry`,
    which says which failed attempts are retried: one of `"safe"`, `"never"` and `"always"`. If left out, each has the
    client's default.

    Every call raises TypeError or InvalidRequestError before it sends anything if an argument cannot be right, and
    `ClientUsageError` if the client is closed. After that it can raise `EtcdTimeoutError`, `NoAvailableEndpointsError`,
    `ConnectionLostError`, `PermissionDeniedError` and the other classes of `EtcdError`; each call lists only the errors
    of its own. If a mutation fails, the error's `maybe_applied` is True if it may have been applied all the same; one
    that Ctrl-C interrupts may always have been applied. A read that Ctrl-C interrupts leaves nothing behind.
    """

    def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation: `client.do(op.get("key"))` is `client.get("key")`.

        All of `get`, `range`, `put`, `delete`, `update`, the `commit()` of a txn, the pages of a scan and the listings
        of a watch are operations that the backend sends. `compact()`, and the part of a scan that the server streams,
        are not.

        Args:
            operation: an operation such as `op.put("key", "value")`; with `op.txn(...)` a whole txn.
            retry: which failed attempts are retried. An operation that changes nothing is retried like a read. Any
                other is applied at most once, unless this is `"always"`.

        Returns:
            The result of the call that has the operation's name.

        Raises:
            TypeError: `operation` is not an operation.
            EtcdError: those of the call that has the operation's name.
        """
        return self._run(self._aio.do, operation, timeout=timeout, retry=retry)

    def get(
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
            revision: read the store as it was at this revision; 0 is now.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            keys_only: leave the value out; etcd 3.7 also leaves out the lease.

        Returns:
            KeyValue | None: None if the key does not exist.

        Raises:
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
        """
        return self._run(
            self._aio.get,
            key,
            revision=revision,
            serializable=serializable,
            keys_only=keys_only,
            timeout=timeout,
            retry=retry,
        )

    def range(
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
        """Get the keys of a range in one reply. Use `scan()` for ranges of unknown size.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            limit: the most keys to return; 0 is no limit.
            revision: read the store as it was at this revision; 0 is now.
            sort_by: `"key"`, `"version"`, `"create_revision"`, `"mod_revision"` or `"value"`. Unless it is the key, the
                server reads the whole range, even if there is a limit.
            sort_order: `"ascend"` or `"descend"`.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            keys_only: leave the values out; etcd 3.7 also leaves out the leases.
            count_only: return only `count`, no keys.
            min_mod_revision: leave out keys whose last change is before this revision; 0 is no bound.
            max_mod_revision: leave out keys whose last change is after this revision; 0 is no bound.
            min_create_revision: leave out keys created before this revision; 0 is no bound.
            max_create_revision: leave out keys created after this revision; 0 is no bound.

        Returns:
            RangeResult: the keys; `count` ignores the limit and the four bounds.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
        """
        return self._run(
            self._aio.range,
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
            timeout=timeout,
            retry=retry,
        )

    @overload
    def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[False] = False,
        ignore_lease: bool = False,
        if_missing: Literal[False] = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    @overload
    def put(
        self,
        key: KeyLike,
        value: None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[True],
        ignore_lease: bool = False,
        if_missing: Literal[False] = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    @overload
    def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: Literal[False] = False,
        ignore_value: Literal[False] = False,
        ignore_lease: Literal[False] = False,
        if_missing: bool,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult | None: ...

    def put(
        self,
        key: KeyLike,
        value: ValueLike | None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: bool = False,
        ignore_lease: bool = False,
        if_missing: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult | None:
        """Put a value under a key. The put is applied at most once, unless `retry="always"`.

        Args:
            key: the key.
            value: the value; may be empty.
            lease: the lease to attach the key to, or its id. Without it the key loses the lease it had.
            prev_kv: return the key as it was before.
            ignore_value: keep the key's value, and leave `value` out: attaches an existing key to another lease.
            ignore_lease: keep the key's lease, and leave `lease` out. The key must exist.
            if_missing: put only if the key does not exist: a txn with that condition. It excludes `prev_kv`,
                `ignore_value` and `ignore_lease`. Together with `retry="always"`, None may mean that this call itself
                has put the key.

        Returns:
            PutResult: the revision of the put, and `prev_kv` if requested. None if `if_missing=True` and the key
                exists.

        Raises:
            InvalidRequestError: the value is missing, or options exclude each other.
            EmptyKeyError: the key is empty.
            ValueProvidedError: a value together with `ignore_value=True`.
            LeaseProvidedError: a lease together with `ignore_lease=True`.
            KeyNotFoundError: `ignore_value` or `ignore_lease` for a key that does not exist.
            LeaseNotFoundError: there is no such lease.
            NoSpaceError: the store is full. When the store becomes full, the first failing writes may still be applied.
        """
        return self._run(
            self._aio.put,
            key,
            value,
            lease=lease,
            prev_kv=prev_kv,
            ignore_value=ignore_value,
            ignore_lease=ignore_lease,
            if_missing=if_missing,
            timeout=timeout,
            retry=retry,
        )

    def update(
        self,
        key: KeyLike,
        function: Callable[[bytes | None], ValueLike],
        *,
        lease: LeaseLike | None = None,
        timeout: Timeout = UNSET,
    ) -> KeyValue:
        """Read a key, compute its next value, and put that if no other writer was faster; else begin again.

            client.update("counter", lambda value: str(int(value or 0) + 1))

        Between two attempts it waits for a random time, up to 0.1 s when many writers compete for the key.

        Args:
            key: the key.
            function: called with the present value, None if the key does not exist; returns the next one. It may be
                called several times, and should do nothing else.
            lease: the lease to attach the key to, or its id. Without it an existing key keeps the lease it has.
            timeout: seconds for the whole update, with all attempts.

        Returns:
            KeyValue: the key as it was put.

        Raises:
            EtcdTimeoutError: the time was over. If other writers were faster in every attempt, `maybe_applied` is
                False.
            EtcdError: as every call; `maybe_applied` is True if the last attempt may have been applied.
            Exception: raised by the function; nothing was put then.

        Ctrl-C: the last attempt may have been applied.
        """
        return self._run(self._aio.update, key, function, lease=lease, timeout=timeout)

    def delete(
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
        """Delete a key or a range. The delete is applied at most once, unless `retry="always"`.

        The keys are named as in `range()`, but only `all_keys=True` deletes every key: an empty `prefix` or `from_key`
        is refused.

        Args:
            prev_kv: return the deleted keys as they were.

        Returns:
            DeleteResult: the number of deleted keys, and `prev_kvs` if requested. Deleting nothing is not an error.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or another form than `all_keys` names all of them.
            EmptyKeyError: the key is empty.
        """
        return self._run(
            self._aio.delete,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            prev_kv=prev_kv,
            timeout=timeout,
            retry=retry,
        )

    def txn(self) -> "Txn":
        """Build a txn: `client.txn().when(...).then(...).otherwise(...).commit()`.

        Returns:
            Txn: a builder. Nothing is sent before its `commit()`.
        """
        return self._made("txn")

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
    ) -> "Scan":
        """Iterate over a range of any size at one revision: streamed by etcd 3.7, page by page from older servers.

            for kv in client.scan(prefix="svc/"): ...

        The keys are named as in `range()`.

        Args:
            revision: read the store as it was at this revision; 0 is the revision of the first page.
            keys_only: leave the values out; etcd 3.7 also leaves out the leases.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            page_size: the most keys in a page; 1000, as in etcd's own mirror. A server that does not stream counts the
                rest of the range for every page, so larger pages are cheaper for it, and smaller pages take less memory
                here. A server that streams decides itself how much it sends at once.
            timeout: seconds for the next page or chunk of a stream, with all attempts, also if a page that is too large
                is requested again with fewer keys. The time between two steps does not count.

        Returns:
            Scan: an iterator of `KeyValue`; `pages()` iterates by pages. Nothing is sent before the first step.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
        """
        return self._made(
            "scan",
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
            page_size=page_size,
            timeout=timeout,
            retry=retry,
        )
