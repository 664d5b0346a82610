"""Sequence: puts under numbers that follow each other, by the protocol of Go's sequential keys.

A put has the number after the last one, and writes a base key in the same txn. Its condition is that the base key was
not written since the numbers were read; and that its own keys are missing, in case an operator has set the base key
back. So two puts with the same number exclude each other, and a copy of a put that
comes late is refused: it can be repeated until it is answered.

Each txn makes all others fail that have read the same state, so the puts of one process are combined by `combiner.py`.
The base key, whose value Go leaves empty, has the last number and a
mark of the txn: by the number the next put needs no read, and by the mark a txn whose answer was lost is recognized.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection
from dataclasses import field
from typing import Final, TypeAlias

from etcd_aio import EtcdTimeoutError, Key, KeyValue, OutcomeUnknownError, RangeResult, SortOrder, TxnResult, op
from etcd_aio.base import NEVER, time_left
from etcd_aio.calls import StoreCalls, Writer, is_exact
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError, ItemInDoubtError, QueueError, ResultLostError
from etcd_aio.recipes.counter.combiner import Call, Combiner

MOST_ITEMS: Final = 60
"""Items of one txn: as many puts, and the base key, are far below the 128 operations that etcd accepts by default."""

_MOST_BYTES: Final = 512 * 1024  # of values that are combined; etcd accepts requests of 1.5 MiB by default
_MARK_BYTES: Final = 8
_DIGITS: Final = 16  # of a number, as of Go


@dataclass(slots=True, eq=False, repr=False)
class _Put:
    """What one call puts.

    Attributes:
        values: in their order.
        keys: under which they were sent last.
    """

    values: list[bytes]
    keys: list[bytes] = field(default_factory=list)


_Call: TypeAlias = Call[_Put, list[bytes]]


class Sequence:
    """The keys of one prefix.

    Args:
        store: reads.
        writer: makes the txns.
        prefix: the keys are `<prefix>/<number, 16 digits>`; the base key is `__<prefix>`.
        what: the queue, for errors.
        in_doubt: makes the error of items whose answer was lost.
    """

    def __init__(
        self,
        store: StoreCalls,
        writer: Writer,
        prefix: bytes,
        what: str,
        in_doubt: Callable[[str, list[bytes]], ItemInDoubtError],
    ) -> None:
        self._store = store
        self._writer = writer
        self._is_exact = is_exact(writer)
        self._prefix = prefix + b"/"
        self._base = b"__" + prefix
        self._what = what
        self._in_doubt = in_doubt
        self._puts = Combiner[_Put, list[bytes]](what, self._send, self._forget, failed=self._failed, fitting=_fitting)
        self._known: tuple[int, int] | None = None  # the last number, and a revision at which it was that
        self._is_base_wrong = False  # there is an item behind the last number that it has

    async def put(self, values: list[bytes], deadline: float) -> list[bytes]:
        """Put values; all of them or none. Returns their keys."""
        put = _Put(values)

        def late(is_sent: bool) -> EtcdError:
            error = EtcdTimeoutError(f"{self._what}: the items were not put in time")
            if not is_sent:
                return error
            doubt = self._in_doubt(self._what, put.keys)
            doubt.__cause__ = error
            return doubt

        return await self._puts.call(put, deadline, late)

    async def _send(self, calls: list[_Call]) -> bool:
        """Send one txn for all. Returns False after a conflict."""
        deadline = max(one.deadline for one in calls)
        last, revision = self._known or await self._look(deadline)
        batch = [one for one in calls if not one.has_ended]  # the others were told that nothing is put
        if not batch:
            return True
        mark = secrets.token_hex(_MARK_BYTES).encode()
        puts: list[op.PutOp] = []
        for one in batch:
            first = last + 1
            last += len(one.work.values)
            if last >= 10**_DIGITS:
                raise QueueError(f"{self._what}: there are no numbers left behind those of the items that are there")
            one.work.keys = [self._prefix + b"%016d" % number for number in range(first, last + 1)]
            puts += [op.put(key, value) for key, value in zip(one.work.keys, one.work.values, strict=True)]
        for one in batch:
            one.is_sent = True
        base, look = op.put(self._base, b"%d %b" % (last, mark)), op.get(self._base)
        when = [Key(self._base).mod_revision < revision + 1, *(Key(put.key).missing for put in puts)]
        txn = op.txn(when=when, then=[base, *puts], otherwise=[look])
        self._forget()  # until it is answered
        try:
            result = await self._commit(txn, mark, [put.key for put in puts], deadline)
        except ResultLostError as lost:  # what it has read is compacted, but not whether it has put the items
            if not lost.succeeded:
                return False
            result = None
        if result is not None:
            found = None if result.succeeded else result.responses[0]
            if not result.succeeded:
                base_revision = 0
                if isinstance(found, KeyValue):
                    self._known, base_revision = _number_in(found), found.mod_revision
                if base_revision <= revision:  # no other put: an operator, or a backup, has set the base key back
                    self._known, self._is_base_wrong = None, True
                return False
            self._known, self._is_base_wrong = (last, result.revision), False
        for one in batch:
            one.resolve(one.work.keys)
        return True

    async def _commit(self, txn: op.TxnOp, mark: bytes, keys: list[bytes], deadline: float) -> TxnResult | None:
        """Send a txn; again if its answer is lost. Returns None if a copy of it was applied that was not answered."""
        through = self._writer.txn().when(*txn.when).then(*txn.then).otherwise(*txn.otherwise)
        try:
            return await through.commit(timeout=_left(deadline), retry=None if self._is_exact else "safe")
        except (OutcomeUnknownError, ResultLostError):
            raise  # the writer can settle the first, and knows of the second what was applied
        except EtcdError as error:
            if not error.maybe_applied:
                raise
            doubt = self._in_doubt(self._what, keys)
            if self._is_exact:
                raise doubt from error
            try:
                again = await self._store.do(txn, timeout=_left(deadline), retry="always")
            except EtcdError as later:
                raise doubt from later
            if again.succeeded:
                return again
            found = again.responses[0]
            if isinstance(found, KeyValue) and found.value.endswith(mark):
                return None
            raise doubt from error

    async def _look(self, deadline: float) -> tuple[int, int]:
        """The last number, and the revision at which it is that; -1 if there is none."""
        base = await self._store.get(self._base, timeout=_left(deadline))
        known = None if base is None else _number_in(base)
        if known is not None and not self._is_base_wrong:
            return known
        # Go has written it, or it is the first put. This reads all keys of the prefix, as Go's put does.
        found = await self._last(1, deadline)
        revision, limit = found.revision, 1
        while True:
            for kv in found:
                text = kv.key[len(self._prefix) :]
                if len(text) == _DIGITS and text.isdigit():
                    return int(text), revision
            if not found.more:
                return -1, revision
            limit *= 4  # a key that is no item must not hide those before it, which a small number would overwrite
            found = await self._last(limit, deadline)

    async def _last(self, limit: int, deadline: float) -> RangeResult:
        return await self._store.range(
            self._prefix + b"0",
            range_end=self._prefix + b":",
            limit=limit,
            sort_order=SortOrder.DESCEND,
            keys_only=True,
            timeout=_left(deadline),
        )

    def _forget(self) -> None:
        self._known = None

    def _failed(self, error: EtcdError, put: _Put) -> EtcdError:
        """The error of one call, by that of the txn."""
        if not isinstance(error, ItemInDoubtError):
            return error
        doubt = self._in_doubt(self._what, put.keys)
        doubt.__cause__ = error.__cause__
        return doubt


def _fitting(puts: Collection[_Put]) -> int:
    """How many of the first puts fit into one txn."""
    items = size = 0
    for count, put in enumerate(puts):
        items += len(put.values)
        size += sum(map(len, put.values))
        if count and (items > MOST_ITEMS or size > _MOST_BYTES):
            return count
    return len(puts)


def _number_in(base: KeyValue) -> tuple[int, int] | None:
    """The last number, if this client has written the base key, and the revision."""
    number, _, mark = base.value.partition(b" ")
    return (int(number), base.mod_revision) if number.isdigit() and len(number) <= _DIGITS and mark else None


def _left(deadline: float) -> float | None:
    return None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
