"""Kubernetes: the calls of etcd's interface for Kubernetes, with verdicts that can be trusted.

Theory. An optimistic write holds a condition: the key was last changed at the expected revision. Once the key has moved
on, that never holds again, so however many copies of the write travel, at most one is applied, and it is safe to send
the write again when an answer was lost. Only the verdict is in doubt then: a copy that comes after the one that was
applied finds the key changed, and is answered "failed". So after a lost answer, "failed" is not believed. The first
change of the key after the expected revision decides: it is this write, or that of another.

The condition that the key must not exist is different: it holds again when the key has been deleted. Such a put is sent
once, and its lost answer is raised.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from etcd_aio import (
    EtcdError,
    EtcdTimeoutError,
    Event,
    Key,
    KeyLike,
    KeyRange,
    KeyValue,
    LeaseLike,
    TxnResult,
    ValueLike,
    op,
)
from etcd_aio.arguments import encode_key, flag, whole_number
from etcd_aio.base import NEVER, UNSET, Timeout, time_left
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import CompactedError, FutureRevisionError, InvalidRequestError, ResultLostError
from etcd_aio.recipes.calls import RecipeCalls, seconds_left

DEFAULT_LIMIT: Final = 500
"""Keys of a page: as many as the API server of Kubernetes and its clients ask for at once."""

_LOOKS: Final = 4
_LOOK_SECONDS: Final = 0.5
"""All together, twice etcd's default election timeout: a member that is further behind has no leader."""


@dataclass(frozen=True, slots=True)
class Found:
    """One key, and when it was read.

    Attributes:
        kv: the key; None if it does not exist.
        revision: the store's revision when it was read.
    """

    kv: KeyValue | None
    revision: int


@dataclass(frozen=True, slots=True, repr=False)
class ListPage:
    """One page of a list.

    Attributes:
        kvs: the keys of the page, in key order.
        count: the number of keys from the beginning of this page on, on this page and after it.
        revision: the revision that the page shows; pass it to read the next one.
        next_key: the `continue_key` of the next page; None if this is the last one.
    """

    kvs: tuple[KeyValue, ...]
    count: int
    revision: int
    next_key: bytes | None

    def __repr__(self) -> str:  # values are secrets
        return f"ListPage(<{len(self.kvs)} of {self.count} kvs>, revision={self.revision})"


@dataclass(frozen=True, slots=True)
class OptimisticResult:
    """The outcome of an optimistic write. It is true if the write was made.

    Attributes:
        succeeded: whether the write was made.
        revision: of the write; if it was not made, the store's revision when that was found.
        kv: the key as it was found, if the write was not made and `get_on_failure=True`; None if it does not exist.
    """

    succeeded: bool
    revision: int
    kv: KeyValue | None = None

    def __bool__(self) -> bool:
        return self.succeeded


class Kubernetes:
    """The calls that Kubernetes makes to etcd: `client.kubernetes()`.

    Reads, lists by pages, and writes that hold only if the key is as the caller has seen it. The two optimistic writes
    serve every program that does "read, change, write back": they are one txn each, and their result is right also if
    the answer was lost, but for one case: see `writer`.

    Args:
        store: the client.
        writer: makes the writes, such as `client.exactly_once()`. Without it, the outcome of a write whose answer was
            lost is read from the history of the key, where two writers that put the same bytes cannot be told apart: a
            counter that both raise from 5 to 6 may tell both that they succeeded.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
    """

    def __init__(self, store: StoreCalls, *, writer: Writer | None = None, timeout: Timeout = UNSET) -> None:
        self._store = store
        self._calls = RecipeCalls(store, writer, timeout)
        self._reads_history = writer is None

    # Reads.

    async def get(self, key: KeyLike, *, revision: int = 0, timeout: Timeout = UNSET) -> Found:
        """Get one key, with the revision of the store: as it was at a revision; 0 is now.

        Raises:
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            EtcdError: as every read.
        """
        found = await self._calls.do(op.range(key, revision=revision, limit=1), self._calls.deadline(timeout))
        return Found(found.kvs[0] if found.kvs else None, found.revision)

    async def list(
        self,
        prefix: KeyLike,
        *,
        revision: int = 0,
        limit: int = DEFAULT_LIMIT,
        continue_key: KeyLike | None = None,
        timeout: Timeout = UNSET,
    ) -> ListPage:
        """Get one page of the keys with a prefix.

            page = await kubernetes.list("pods/")
            while page.next_key is not None:
                page = await kubernetes.list("pods/", revision=page.revision, continue_key=page.next_key)

        Args:
            prefix: the prefix.
            revision: read the store as it was at this revision; 0 is now. All pages of a list need the same one.
            limit: the most keys of the page; 0 is no limit.
            continue_key: where the page begins: the `next_key` of the page before.
            timeout: seconds for the whole call.

        Raises:
            InvalidRequestError: `continue_key` is not within the prefix, or a number is out of bounds.
            CompactedError: the revision was compacted; its `compact_revision` is the oldest one that can still be read,
                or 0 if that could not be found out within two seconds.
            EtcdError: as every read.
        """
        keys = KeyRange.of(prefix=prefix)
        first = keys.key
        if continue_key is not None:
            first = encode_key(continue_key, "continue_key")
            if first not in keys:
                raise InvalidRequestError("continue_key is not within the prefix: pass the next_key of the page before")
        asked = op.RangeOp(KeyRange(first, keys.range_end), limit=limit, revision=revision)
        deadline = self._calls.deadline(timeout)
        try:
            found = await self._calls.do(asked, deadline)
        except CompactedError as error:
            error.compact_revision = await self._oldest(first, revision, deadline)
            raise
        next_key = found.kvs[-1].key + b"\0" if found.more and found.kvs else None
        return ListPage(found.kvs, found.count, revision or found.revision, next_key)

    async def count(self, prefix: KeyLike, *, timeout: Timeout = UNSET) -> int:
        """Count the keys with a prefix.

        Raises:
            EtcdError: as every read.
        """
        return (await self._calls.do(op.range(prefix=prefix, count_only=True), self._calls.deadline(timeout))).count

    async def _oldest(self, key: bytes, revision: int, deadline: float) -> int:
        """The oldest revision that is not compacted, which only the refusal of a watch names; 0 if it is not known."""
        clock = asyncio.get_running_loop().time
        for _ in range(_LOOKS):
            until = min(deadline, clock() + _LOOK_SECONDS)
            try:
                await self._first_event(key, revision, until)
            except CompactedError as error:
                return error.compact_revision
            except EtcdError:
                pass
            await asyncio.sleep(time_left(until, clock()))  # the watch was on a member that has not compacted yet
        return 0

    # Writes.

    async def optimistic_put(
        self,
        key: KeyLike,
        value: ValueLike,
        expected_revision: int,
        *,
        lease: LeaseLike | None = None,
        get_on_failure: bool = True,
        timeout: Timeout = UNSET,
    ) -> OptimisticResult:
        """Put a value if the key was last changed at the expected revision.

        It is applied at most once. If its answer is lost, the put is sent again, and its outcome is found out, unless
        another client has put the same bytes under the same lease: see `writer` of the class.

        Args:
            key: the key.
            value: the new value.
            expected_revision: the `mod_revision` that the caller has seen; 0: the key must not exist. Such a put is not
                sent again when its answer is lost, since the key may have been created and deleted meanwhile.
            lease: the lease to attach the key to, or its id. Without it the key loses the lease it had.
            get_on_failure: read the key in the same call if the put is not made. Default: True; without it, most
                callers need a second call to try again.
            timeout: seconds for the whole call.

        Returns:
            OptimisticResult: whether the put was made.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid. Nothing was sent.
            LeaseNotFoundError: there is no such lease.
            OutcomeUnknownError: of a `writer` of exactly-once writes.
            EtcdError: as every write. `maybe_applied` is True if the answer was lost and the outcome could not be found
                out in time, or if the history that tells is compacted.

        Cancellation: the put may have been made, or not.
        """
        put = op.put(key, value, lease=lease)

        def is_own(event: Event) -> bool:
            return event.is_put and event.value == put.value and event.kv.lease == put.lease

        return await self._write(put.key, put, is_own, expected_revision, get_on_failure, timeout)

    async def optimistic_delete(
        self, key: KeyLike, expected_revision: int, *, get_on_failure: bool = True, timeout: Timeout = UNSET
    ) -> OptimisticResult:
        """Delete a key if it was last changed at the expected revision.

        Args:
            key: the key.
            expected_revision: the `mod_revision` that the caller has seen; 0: the key must not exist, and nothing
                changes.
            get_on_failure: read the key in the same call if it is not deleted.
            timeout: seconds for the whole call.

        Returns:
            OptimisticResult: whether the key was deleted. If the answer was lost, and the key was deleted by another
                client or with its lease right after the expected revision, this counts as the own deletion.

        Raises:
            EtcdError: as `optimistic_put`.

        Cancellation: the key may have been deleted, or not.
        """
        delete = op.delete(key)
        key = delete.keys.key
        return await self._write(key, delete, lambda event: event.is_delete, expected_revision, get_on_failure, timeout)

    async def _write(
        self,
        key: bytes,
        write: op.PutOp | op.DeleteOp,
        is_own: Callable[[Event], bool],
        expected: int,
        get_on_failure: bool,
        timeout: Timeout,
    ) -> OptimisticResult:
        """Write a key; `is_own` says whether an event of the key may come from this write."""
        expected = whole_number(expected, "expected_revision")
        look = op.get(key)
        txn = op.txn(
            when=[Key(key).mod_revision == expected],
            then=[write],
            otherwise=[look] if flag(get_on_failure, "get_on_failure") else [],
        )
        deadline = self._calls.deadline(timeout)
        try:
            return _outcome_of(await self._calls.commit(txn, deadline))
        except ResultLostError as lost_result:  # what was read or deleted is compacted, but not whether it was written
            if lost_result.succeeded:
                return OptimisticResult(True, lost_result.revision)
            found = await self._calls.do(op.txn(then=[look]), deadline)
            return OptimisticResult(False, found.revision, found[look])
        except EtcdError as error:
            if not (self._reads_history and error.maybe_applied and expected) or seconds_left(deadline) == 0:
                raise
            lost = error
        try:
            result = await self._calls.do(txn, deadline, "always")
            if result.succeeded:
                return _outcome_of(result)
            event = await self._change_after(key, expected, deadline)
        except CompactedError as error:
            lost.add_note(f"the history that tells whether it was applied is compacted: {error.message}")
            raise lost from error
        except EtcdError as error:
            error.maybe_applied = True  # by the attempt before
            raise
        if event is not None and is_own(event):
            return OptimisticResult(True, event.revision)
        return _outcome_of(result)

    # History.

    async def _change_after(self, key: bytes, expected: int, deadline: float) -> Event | None:
        """The first change of a key after the expected revision; None if it was never the key's, so that no copy held.

        It is asked for when a condition on that revision did not hold, so there is such a change.
        """
        try:
            before = await self._store.get(key, revision=expected, keys_only=True, timeout=seconds_left(deadline))
        except FutureRevisionError:
            return None
        if before is None or before.mod_revision != expected:
            return None
        return await self._first_event(key, expected + 1, deadline)

    async def _first_event(self, key: bytes, revision: int, deadline: float) -> Event:
        """The first event of a key from a revision on.

        Raises:
            CompactedError: it is compacted.
            EtcdTimeoutError: there was none by the deadline.
        """
        try:
            async with asyncio.timeout_at(None if deadline == NEVER else deadline):
                async with self._store.watch(key, start_revision=revision, timeout=seconds_left(deadline)) as watcher:
                    return await anext(watcher)
        except TimeoutError as error:
            if isinstance(error, EtcdError):
                raise
            raise EtcdTimeoutError("the history of the key could not be read in time") from None


def _outcome_of(result: TxnResult) -> OptimisticResult:
    """The outcome by the answer of the txn."""
    if result.succeeded:
        return OptimisticResult(True, result.revision)
    found = result.responses[0] if result.responses else None
    return OptimisticResult(False, result.revision, found if isinstance(found, KeyValue) else None)
