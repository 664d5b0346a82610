"""Transaction: what the function of `client.stm` reads and writes through."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Final, TypeVar

from etcd_aio import KeyRange, KeyValue, Operation, RangeResult, op
from etcd_aio.arguments import encode_key
from etcd_aio.base import when_constructed
from etcd_aio.errors import ClientUsageError, CompactedError, FutureRevisionError, InvalidRequestError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.stm.read_set import MAX_OPS, ReadRange, ReadSet
from etcd_aio.types import KeyLike, LeaseLike, OpResult, ValueLike, range_arguments, shown_keys

R = TypeVar("R")

MAX_RANGE_KEYS: Final = 100
"""Keys in a range of a transaction: each of them is compared when it commits, and etcd accepts 128 comparisons."""


class Transaction:
    """One attempt of a transaction: the argument of the function that `client.stm` runs.

    It is valid until the function ends. Reads see the writes that were made before; a key that was put in this attempt
    has no revisions and no version yet, they are 0. Tasks that the function starts and waits for may share it.
    """

    def __init__(self, calls: RecipeCalls, reads: ReadSet, deadline: float) -> None:
        self._calls = calls
        self._reads = reads
        self._deadline = deadline
        self._first = asyncio.Lock()  # of the read that fixes the revision
        self._is_over = False
        self._compacted: CompactedError | None = None  # of a read: the attempt begins again

    @when_constructed
    def __repr__(self) -> str:
        reads = self._reads
        return f"<Transaction read={len(reads.reads)} written={len(reads.writes)} revision={reads.base}>"

    @property
    def revision(self) -> int:
        """The revision of the first read, which at the serializable levels is that of all reads; 0 before it."""
        return self._reads.base

    # Reads.

    async def get(self, key: KeyLike) -> KeyValue | None:
        """Get one key.

        Returns:
            KeyValue | None: None if the key does not exist.

        Raises:
            EmptyKeyError: the key is empty.
            ClientUsageError: the function of this attempt has ended.
            EtcdError: as every read.
        """
        encoded = encode_key(key)
        return (await self._get((encoded,)))[encoded]

    async def get_all(self, keys: Iterable[KeyLike]) -> Mapping[bytes, KeyValue | None]:
        """Get several keys in one round trip, at most 128 that were not read before.

        Returns:
            Mapping[bytes, KeyValue | None]: by key, as bytes; None for a key that does not exist.

        Raises:
            InvalidRequestError: there are too many keys.
            EmptyKeyError, ClientUsageError, EtcdError: as `get`.
        """
        if isinstance(keys, str | bytes | bytearray | memoryview):
            raise TypeError(f"keys must be several keys, got one {type(keys).__name__}")
        return await self._get(tuple(encode_key(key) for key in keys))

    async def range(
        self, key: KeyLike | None = None, *, range_end: KeyLike | None = None, prefix: KeyLike | None = None
    ) -> tuple[KeyValue, ...]:
        """Get the keys of a range, at most 100. Each of them counts as read.

        At the serializable levels the commit also needs that no key was created in the range, which every member checks
        by reading the whole range.

        Args:
            key: with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.

        Returns:
            tuple[KeyValue, ...]: the keys, in key order.

        Raises:
            InvalidRequestError: the range has more than 100 keys, or its form is wrong.
            ClientUsageError, EtcdError: as `get`.
        """
        self._check()
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix)
        reads = self._reads
        async with self._revision_fixed():
            found = await self._range(keys)
        if found.more:
            text = f"a range of a transaction has at most {MAX_RANGE_KEYS} keys; {shown_keys(keys.key, keys.range_end)}"
            raise InvalidRequestError(f"{text} has {found.count}")
        revision = reads.base if reads.level.is_pinned and reads.base else found.revision
        kept: list[KeyValue] = []
        for kv in found:
            if not reads.level.caches:
                kept.append(kv)
                continue
            if kv.key not in reads.reads:
                reads.learn(kv.key, kv, revision)
                reads.reads[kv.key] = kv
            same = reads.reads[kv.key]
            if same is not None:  # read before, and missing then: so it stays, and the commit will not hold
                kept.append(same)
        reads.base = reads.base or revision
        reads.ranges.append(ReadRange(keys, revision))
        return reads.overlaid(keys, kept)

    # Writes.

    def put(self, key: KeyLike, value: ValueLike, *, lease: LeaseLike | None = None) -> None:
        """Put a value, which may be empty, under a key when the transaction commits.

        The lease, which may be given by its id, is that of the key afterwards; without one, the key has none.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: as `client.put`.
            ClientUsageError: the function of this attempt has ended.
        """
        self._check()
        made = op.put(key, value, lease=lease)
        self._reads.writes[made.key] = made

    def delete(self, key: KeyLike) -> None:
        """Delete a key when the transaction commits.

        Raises:
            EmptyKeyError, TypeError: as `client.delete`.
            ClientUsageError: the function of this attempt has ended.
        """
        self._check()
        made = op.delete(key)
        self._reads.writes[made.keys.key] = made

    # What reads send.

    async def _get(self, keys: tuple[bytes, ...]) -> dict[bytes, KeyValue | None]:
        self._check()
        reads = self._reads
        async with self._revision_fixed():
            await self._read_unknown(keys)
        found: dict[bytes, KeyValue | None] = {}
        for key in keys:
            if key in reads.writes:
                found[key] = reads.written(key)
            else:
                found[key] = reads.known[key]
                if reads.level.caches:
                    reads.reads[key] = reads.known[key]
        return found

    def _revision_fixed(self) -> AbstractAsyncContextManager[None]:
        """One read fixes the revision at the levels that have one for all reads: the others wait for it."""
        return self._first if self._reads.base == 0 and self._reads.level.is_pinned else nullcontext()

    async def _read_unknown(self, keys: tuple[bytes, ...]) -> None:
        reads = self._reads
        wanted = [key for key in dict.fromkeys(keys) if key not in reads.writes]
        if reads.level.caches:
            wanted = [key for key in wanted if key not in reads.known]
        if not wanted:
            return
        if len(wanted) > MAX_OPS:
            raise InvalidRequestError(f"at most {MAX_OPS} keys are read at a time, got {len(wanted)}")
        if len(wanted) == 1:
            key = wanted[0]
            one = await self._read(lambda revision, own: op.range(key, revision=revision, serializable=own))
            self._learn(wanted, one.kvs or (None,), one.revision)
        else:
            several = await self._read(
                lambda revision, own: op.TxnOp(
                    then=tuple(op.get(key, revision=revision, serializable=own) for key in wanted)
                )
            )
            self._learn(wanted, several.responses, several.revision)

    def _learn(self, keys: Sequence[bytes], replies: Sequence[OpResult], revision: int) -> None:
        reads = self._reads
        for key, reply in zip(keys, replies, strict=True):
            if reads.level.caches and key in reads.known:
                continue  # another task of the function has read it meanwhile
            reads.learn(key, reply if isinstance(reply, KeyValue) else None, revision)

    async def _range(self, keys: KeyRange) -> RangeResult:
        key, range_end, _ = range_arguments(keys)
        return await self._read(
            lambda revision, own: op.range(
                key, range_end=range_end, limit=MAX_RANGE_KEYS, revision=revision, serializable=own
            )
        )

    async def _read(self, make: Callable[[int, bool], Operation[R]]) -> R:
        """Send a read of the newest state; or of the revision of the first read, which any member may answer.

        It is made of a revision, 0 for the newest, and of whether the member may answer with its own state.
        """
        revision = self._reads.base if self._reads.level.is_pinned else 0
        try:
            if revision:
                with suppress(FutureRevisionError):  # the member is behind
                    return await self._calls.do(make(revision, True), self._deadline)
            return await self._calls.do(make(revision, False), self._deadline)
        except CompactedError as error:
            self._compacted = error
            raise

    # The attempt.

    def _check(self) -> None:
        if self._is_over:
            raise ClientUsageError("the function of this transaction has ended: read and write before it returns")

    def _end(self) -> None:
        """The function has ended."""
        self._is_over = True
