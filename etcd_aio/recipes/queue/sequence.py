"""Sequence: puts under numbers that follow each other, by the protocol of Go's sequential keys.

A put has the number after the last one, and writes a base key in the same txn. Its condition is that the base key was
not written since the numbers were read; and that its own keys are missing, in case an operator has set the base key
back. So two puts with the same number exclude each other, and a copy of a put that comes late is refused: it can be
repeated until it is answered.

Each txn makes all others fail that have read the same state, so the puts of one process are combined by `combiner.py`.
The base key, whose value Go leaves empty, has the last number and a mark of the txn: by the number the next put needs
no read, and by the mark a txn whose answer was lost is recognized.
"""

import secrets
from collections.abc import Collection
from dataclasses import field
from typing import Final, TypeAlias

from etcd_aio import EtcdTimeoutError, Key, KeyRange, KeyValue, SortOrder, TxnResult, op
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError, ItemInDoubtError, QueueError, ResultLostError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.combiner import CombinedCall, Combiner
from etcd_aio.recipes.queue.putting import put_in_doubt, put_once

MOST_ITEMS: Final = 60
"""Items of one txn: as many puts, and the base key, are far below the 128 operations that etcd accepts by default."""

_MOST_BYTES: Final = 512 * 1024  # of values that are combined; etcd accepts requests of 1.5 MiB by default
_MARK_BYTES: Final = 8
_DIGITS: Final = 16  # of a number, as of Go


@dataclass(slots=True, eq=False, repr=False)
class _Items:
    """The items of one call.

    Attributes:
        values: in their order.
        keys: under which they were sent last.
    """

    values: list[bytes]
    keys: list[bytes] = field(default_factory=list)


_PutCall: TypeAlias = CombinedCall[_Items, list[bytes]]


class Sequence:
    """The keys of one prefix.

    Args:
        calls: of the queue.
        prefix: the keys are `<prefix>/<number, 16 digits>`; the base key is `__<prefix>`.
        what: the queue, for errors.
    """

    def __init__(self, calls: RecipeCalls, prefix: bytes, what: str) -> None:
        self._calls = calls
        self._prefix = prefix + b"/"
        self._base = b"__" + prefix
        self._what = what
        self._puts = Combiner[_Items, list[bytes]](
            what, self._send, self._forget, failed=self._failed, fitting=_fitting
        )
        self._known: tuple[int, int] | None = None  # the last number, and a revision at which it was that
        self._is_base_wrong = False  # there is an item behind the last number that it has

    async def put(self, values: list[bytes], deadline: float) -> list[bytes]:
        """Put values; all of them or none. Returns their keys."""
        items = _Items(values)

        def late(is_sent: bool) -> EtcdError:
            error = EtcdTimeoutError(f"{self._what}: the items were not put in time")
            if not is_sent:
                return error
            return self._in_doubt(items, error)

        return await self._puts.call(items, deadline, late)

    async def _send(self, calls: list[_PutCall]) -> bool:
        """Send one txn for all. Returns False after a conflict."""
        deadline = max(call.deadline for call in calls)
        last, revision = self._known or await self._look(deadline)
        batch = [call for call in calls if not call.has_ended]  # the others have raised that nothing is put
        if not batch:
            return True
        mark = secrets.token_hex(_MARK_BYTES).encode()
        puts: list[op.PutOp] = []
        for call in batch:
            first = last + 1
            last += len(call.work.values)
            if last >= 10**_DIGITS:
                raise QueueError(f"{self._what}: there are no numbers left behind those of the items that are there")
            call.work.keys = [self._prefix + b"%016d" % number for number in range(first, last + 1)]
            puts += [op.put(key, value) for key, value in zip(call.work.keys, call.work.values, strict=True)]
        for call in batch:
            call.is_sent = True
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
        if result is not None and result.succeeded:
            self._known, self._is_base_wrong = (last, result.revision), False
        elif result is not None:
            found = result[look]
            self._known = None if found is None else _number_in(found)
            if (
                found is None or found.mod_revision <= revision
            ):  # no other put: an operator, or a backup, has set it back
                self._known, self._is_base_wrong = None, True
            return False
        for call in batch:
            call.resolve(call.work.keys)
        return True

    async def _commit(self, txn: op.TxnOp, mark: bytes, keys: list[bytes], deadline: float) -> TxnResult | None:
        """Send a txn; again if its answer is lost. Returns None if a copy of it was applied that was not answered."""
        try:
            return await put_once(self._calls, self._what, keys, txn, deadline)
        except ItemInDoubtError as doubt:
            if self._calls.is_exact:
                raise
            try:
                again = await self._calls.do(txn, deadline, "always")
            except EtcdError as error:
                raise doubt from error
            if again.succeeded:
                return again
            found = again.responses[0]
            if isinstance(found, KeyValue) and found.value.endswith(mark):
                return None
            raise

    async def _look(self, deadline: float) -> tuple[int, int]:
        """The last number, and the revision at which it is that; -1 if there is none."""
        base = await self._calls.do(op.get(self._base), deadline)
        known = None if base is None else _number_in(base)
        if known is not None and not self._is_base_wrong:
            return known
        # Go has written it, or it is the first put. This reads all keys of the prefix, as Go's put does.
        keys, limit = KeyRange(self._prefix + b"0", self._prefix + b":"), 1
        while True:
            listing = op.RangeOp(keys, limit=limit, sort_order=SortOrder.DESCEND, keys_only=True)
            found = await self._calls.do(listing, deadline)
            for kv in found:
                text = kv.key[len(self._prefix) :]
                if len(text) == _DIGITS and text.isdigit():
                    return int(text), found.revision
            if not found.more:
                return -1, found.revision
            limit *= 4  # a key that is no item must not hide those before it, which a small number would overwrite

    def _forget(self) -> None:
        self._known = None

    def _failed(self, error: EtcdError, items: _Items) -> EtcdError:
        """The error of one call, by that of the txn."""
        return self._in_doubt(items, error.__cause__) if isinstance(error, ItemInDoubtError) else error

    def _in_doubt(self, items: _Items, cause: BaseException | None) -> ItemInDoubtError:
        doubt = put_in_doubt(self._what, items.keys)
        doubt.__cause__ = cause
        return doubt


def _fitting(waiting: Collection[_Items]) -> int:
    """How many of the first calls fit into one txn."""
    count = size = 0
    for calls, items in enumerate(waiting):
        count += len(items.values)
        size += sum(map(len, items.values))
        if calls and (count > MOST_ITEMS or size > _MOST_BYTES):
            return calls
    return len(waiting)


def _number_in(base: KeyValue) -> tuple[int, int] | None:
    """The last number, if this client has written the base key, and the revision."""
    number, _, mark = base.value.partition(b" ")
    return (int(number), base.mod_revision) if number.isdigit() and len(number) <= _DIGITS and mark else None
