"""Sequence: puts under numbers that follow each other, by the protocol of Go's sequential keys.

A put has the number after the last one, and writes a base key in the same txn. Its condition is that the base key was
not written since the numbers were read. So two puts with the same number exclude each other, and a copy of a put that
comes late is refused: it can be repeated until it is answered.

Each txn makes all others fail that have read the same state. So those of one process are combined: while one is under
way, the next values wait, and are put together. The base key, whose value Go leaves empty, has the last number and a
mark of the txn: by the number the next put needs no read, and by the mark a txn whose answer was lost is recognized.
"""

import asyncio
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from etcd_aio import (
    EtcdTimeoutError,
    Key,
    KeyValue,
    OutcomeUnknownError,
    RangeResult,
    SortOrder,
    Store,
    TxnResult,
    Writer,
    op,
)
from etcd_aio.aio import check_loop, resolve, start_background_task, wait_until
from etcd_aio.backoff import Backoff
from etcd_aio.deadline import NEVER, time_left
from etcd_aio.errors import EtcdError, ItemInDoubtError, QueueError, ResultLostError

MOST_ITEMS: Final = 60
"""Items of one txn: as many puts, and the base key, are far below the 128 operations that etcd accepts by default."""

_MOST_BYTES: Final = 512 * 1024  # of values that are combined; etcd accepts requests of 1.5 MiB by default
_MARK_BYTES: Final = 8
_DIGITS: Final = 16  # of a number, as of Go

# Processes that collide spread over some round trips.
_BACKOFF: Final = Backoff(initial=0.001, multiplier=2.0, maximum=0.064, jitter=1.0)


@dataclass(slots=True, eq=False, repr=False)
class _Waiting:
    """One call that waits.

    Attributes:
        values: what it puts.
        future: resolved with the keys, or the error.
        deadline: by which it must be resolved.
        keys: under which the values were sent; empty if they were not.
    """

    values: list[bytes]
    future: "asyncio.Future[list[bytes] | EtcdError | None]"
    deadline: float
    keys: list[bytes]


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
        store: Store,
        writer: Writer,
        prefix: bytes,
        what: str,
        in_doubt: Callable[[str, list[bytes]], ItemInDoubtError],
    ) -> None:
        self._store = store
        self._writer = writer
        self._is_exact = not hasattr(writer, "do")  # no store, so its answers are true of every copy
        self._prefix = prefix + b"/"
        self._base = b"__" + prefix
        self._what = what
        self._in_doubt = in_doubt
        self._waiting: list[_Waiting] = []
        self._sending: list[_Waiting] = []
        self._known: tuple[int, int] | None = None  # the last number, and a revision at which it was that
        self._combiner: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no call waits."""
        return self._combiner is None

    async def put(self, values: list[bytes], deadline: float) -> list[bytes]:
        """Put values; all of them or none. Returns their keys."""
        loop = asyncio.get_running_loop()
        if self._combiner is not None:
            check_loop(self._combiner)
        waiting = _Waiting(values, loop.create_future(), deadline, [])
        self._waiting.append(waiting)
        if self._combiner is None:
            self._combiner = start_background_task(self._combine(), name=f"etcd_aio {self._what}")
        try:
            outcome = await wait_until(waiting.future, deadline, late=None)
        finally:
            self._leave(waiting)
        if outcome is None:
            late = EtcdTimeoutError(f"{self._what}: the items were not put in time")
            if waiting.keys:
                raise self._in_doubt(self._what, waiting.keys) from late
            raise late
        if isinstance(outcome, EtcdError):
            raise outcome.with_traceback(None)  # it may be the error of several calls
        return outcome

    async def _combine(self) -> None:
        """Send what waits, batch after batch, until nothing waits."""
        conflicts = 0
        while self._collect():
            try:
                has_ended = await self._send()
            except EtcdError as error:
                self._known = None
                self._end(error)
                conflicts = 0
                continue
            conflicts = 0 if has_ended else conflicts + 1
            if conflicts > 1:  # the first answer tells the number, so the next txn mostly succeeds
                await asyncio.sleep(_BACKOFF.wait(conflicts - 2, random.random))
        self._combiner = None

    def _collect(self) -> bool:
        """Choose what is sent next: as many of the first calls as fit. Returns whether there is anything."""
        self._waiting = [one for one in (*self._sending, *self._waiting) if not one.future.done()]
        self._sending = []
        items = size = 0
        for one in self._waiting:
            items += len(one.values)
            size += sum(map(len, one.values))
            if self._sending and (items > MOST_ITEMS or size > _MOST_BYTES):
                break
            self._sending.append(one)
        del self._waiting[: len(self._sending)]
        return bool(self._sending)

    async def _send(self) -> bool:
        """Send one txn for all. Returns False after a conflict."""
        batch = self._sending
        deadline = max(one.deadline for one in batch)
        last, revision = self._known or await self._look(deadline)
        mark = secrets.token_hex(_MARK_BYTES).encode()
        puts: list[op.PutOp] = []
        for one in batch:
            first = last + 1
            last += len(one.values)
            if last >= 10**_DIGITS:
                raise QueueError(f"{self._what}: there are no numbers left behind those of the items that are there")
            one.keys = [self._prefix + b"%016d" % number for number in range(first, last + 1)]
            puts += [op.put(key, value) for key, value in zip(one.keys, one.values, strict=True)]
        base, look = op.put(self._base, b"%d %b" % (last, mark)), op.get(self._base)
        txn = op.txn(when=[Key(self._base).mod_revision < revision + 1], then=[base, *puts], otherwise=[look])
        result: TxnResult | None = None
        try:
            result = await self._commit(txn, mark, deadline)
        except ResultLostError as lost:  # what it has read is compacted, but not whether it has put the items
            if not lost.succeeded:
                self._known = None
                for one in batch:
                    one.keys = []
                return False
        if result is None:
            self._known = None
        elif result.succeeded:
            self._known = last, result.revision
        else:
            found = result.responses[0]
            self._known = _number_in(found) if isinstance(found, KeyValue) else None
            for one in batch:
                one.keys = []
            return False
        for one in batch:
            resolve(one.future, one.keys)
        self._sending = []
        return True

    async def _commit(self, txn: op.TxnOp, mark: bytes, deadline: float) -> TxnResult | None:
        """Send a txn; again if its answer is lost. Returns None if a copy of it was applied that was not answered."""
        through = self._writer.txn().when(*txn.when).then(*txn.then).otherwise(*txn.otherwise)
        try:
            return await through.commit(timeout=_left(deadline), retry=None if self._is_exact else "safe")
        except OutcomeUnknownError:
            raise  # the writer can settle it
        except EtcdError as error:
            if not error.maybe_applied:
                raise
            doubt = self._in_doubt(self._what, [key for one in self._sending for key in one.keys])
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
        if known is not None:
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

    def _end(self, error: EtcdError) -> None:
        """A call has failed, for all that it was made for."""
        for one in self._sending:
            if isinstance(error, ItemInDoubtError):
                doubt = self._in_doubt(self._what, one.keys)
                doubt.__cause__ = error.__cause__
                resolve(one.future, doubt)
            else:
                resolve(one.future, error)
        self._sending = []

    def _leave(self, waiting: _Waiting) -> None:
        """A caller has its outcome, or waits no longer: what is sent for no caller ends."""
        waiting.future.cancel()
        if self._combiner is None or any(not one.future.done() for one in (*self._sending, *self._waiting)):
            return
        if self._sending:
            self._combiner.cancel()
            self._combiner, self._sending, self._known = None, [], None
        self._waiting.clear()


def _number_in(base: KeyValue) -> tuple[int, int] | None:
    """The last number, if this client has written the base key, and the revision."""
    number, _, mark = base.value.partition(b" ")
    return (int(number), base.mod_revision) if number.isdigit() and len(number) <= _DIGITS and mark else None


def _left(deadline: float) -> float | None:
    return None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
