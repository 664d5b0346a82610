"""Writes: sends each write through a slot until it is known what became of it.

The theory is in `slot.py`. Every way out of a write leaves its slot free, or to the settler: an error that says "not
applied" is raised only if no copy can be applied any more.
"""

import asyncio
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from etcd_aio import EtcdError, Header, InvalidRequestError, KeyRange, KeyValue, OutcomeUnknownError
from etcd_aio.base import RetryMode, deadline_after
from etcd_aio.calls import StoreCalls
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import CompactedError, LeaseNotFoundError, ResultLostError, with_history
from etcd_aio.once.guarded import (
    IdKey,
    Write,
    WriteAnswer,
    attaches_lease,
    described,
    found_slot,
    operations_of,
    parse_id_value,
    unwrap,
    write_through,
)
from etcd_aio.once.ids import Ids
from etcd_aio.once.replay import needs_values, ranges_to_read, replay
from etcd_aio.once.results import Outcome, WriteResult
from etcd_aio.once.settle import Settler, Settling
from etcd_aio.once.single_flight import seconds_left
from etcd_aio.once.slot import Slot, SlotState
from etcd_aio.once.slots import SlotPool
from etcd_aio.once.write_verdicts import Applied, Branch, Fate, WriteRefusal, judge, judge_error
from etcd_aio.types import range_arguments, shown_keys

_NOT_SENT: Final = "the write itself was not sent: this is what exactly-once writes need before"
_OTHERWISE: Final = "the txn ran its `otherwise`, and the history that its result is read from is compacted"


@dataclass(slots=True)
class WriteRequest:
    """One write of a user.

    Attributes:
        write: what to apply.
        id: the idempotency id; None if there is none.
        shape: makes the result of the user's call.
        retry: which failed attempts are retried.
        timeout: seconds for the whole call; None for no limit.
        id_key: the key of the id, once it is known.
    """

    write: Write
    id: str | None
    shape: Callable[[Write, WriteAnswer], WriteResult]
    retry: RetryMode
    timeout: float | None
    id_key: IdKey | None = None


class Writes:
    """Sends writes, and settles those that raised `OutcomeUnknownError`.

    Args:
        store: the client.
        pool: the slots.
        ids: the keys of ids.
        settler: finds out about writes that are given up.

    Attributes:
        replays: results that were computed.
    """

    def __init__(self, store: StoreCalls, pool: SlotPool, ids: Ids, settler: Settler) -> None:
        self._store = store
        self._pool = pool
        self._ids = ids
        self._settler = settler
        # The writes that raised this error, and what is known of each, or finds out.
        self._unknown: WeakKeyDictionary[OutcomeUnknownError, tuple[WriteRequest, Applied | Settling]] = (
            WeakKeyDictionary()
        )
        self.replays = 0

    async def run(self, request: WriteRequest) -> WriteAnswer:
        """Apply a write; see `ExactlyOnce.put`."""
        write, timeout = request.write, request.timeout
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        while True:
            try:
                if request.id is not None:
                    request.id_key = await self._ids.key(request.id, write, deadline)
                    timeout = seconds_left(deadline)
                slot = self._pool.take_free()
                if slot is None:
                    slot = await self._pool.take(deadline)
                    timeout = seconds_left(deadline)
            except EtcdError as error:
                _was_not_sent(error)
                raise
            try:
                operation = write_through(slot, write, request.id_key)
                result = await self._store.do(operation, timeout=timeout, retry=request.retry)
            except EtcdError as error:
                applied = await self._after_error(slot, error, request, deadline)
            except BaseException:  # a cancellation: copies may travel
                self._settler.settle(slot, SlotState.UNSETTLED)
                raise
            else:
                if result.succeeded:
                    slot.move(SlotState.FREE, result.header.revision)
                    self._pool.put_back(slot)
                    answer = unwrap(write, request.id is not None, result)
                    if answer.branch is not Branch.DUPLICATE:
                        return answer
                    applied = Applied(result.revision, Branch.DUPLICATE)
                else:
                    applied = await self._after_refusal(slot, found_slot(result), request, deadline)
            if applied is not None:
                return await self._result(request, applied, deadline)
            timeout = seconds_left(deadline)

    async def settle(self, error: OutcomeUnknownError, deadline: float) -> Outcome | None:
        """Find out about a write; None if it is not known yet, or never will be. See `ExactlyOnce.settle`.

        Raises:
            LookupError: the error was not raised by `run`.
            EtcdError: the write was applied, and its result could not be read now.
        """
        request, known = self._unknown[error]
        verdict = known if isinstance(known, Applied) else await _wait(known, deadline)
        if verdict is Fate.NOT_APPLIED:
            return Outcome(applied=False)
        if not isinstance(verdict, Applied):
            return None
        try:
            answer = await self._replay(request, verdict, deadline)
        except ResultLostError as lost:
            return Outcome(applied=True, revision=lost.revision)
        result = request.shape(request.write, answer)
        return Outcome(applied=True, revision=answer.header.revision, result=result)

    # After an attempt without an answer. Each returns what was applied, or None: the write begins again.

    async def _after_refusal(
        self, slot: Slot, kv: KeyValue | None, request: WriteRequest, deadline: float
    ) -> Applied | None:
        """The slot was not as this client left it: by an earlier copy, or since it is gone."""
        judged = judge(slot.number, kv)
        if isinstance(judged, Applied):
            slot.move(SlotState.FREE, judged.revision)
            self._pool.put_back(slot)
            return judged
        settling = self._settler.settle(slot, SlotState.HISTORY)
        verdict = await _wait(settling, deadline)
        if isinstance(verdict, Applied):
            return verdict
        if verdict is Fate.NOT_APPLIED:
            return None
        raise self._unknown_error(request, settling, None)

    async def _after_error(
        self, slot: Slot, error: EtcdError, request: WriteRequest, deadline: float
    ) -> Applied | None:
        if judge_error(error) is not WriteRefusal.OPEN:
            slot.move(SlotState.FREE)
            try:
                if await self._has_lost_lease(error, slot, request, deadline):
                    return None
            finally:
                self._pool.put_back(slot)
            raise error
        settling = self._settler.settle(slot, SlotState.UNSETTLED)
        verdict = await _wait(settling, deadline)
        if isinstance(verdict, Applied):
            return verdict
        if verdict is not Fate.NOT_APPLIED:
            raise self._unknown_error(request, settling, error) from error
        if await self._has_lost_lease(error, slot, request, deadline):
            return None
        error.maybe_applied = False
        raise error

    async def _has_lost_lease(self, error: EtcdError, slot: Slot, request: WriteRequest, deadline: float) -> bool:
        """Whether an error says that a lease does not exist which is one of this object's, and not one of the write.

        Raises:
            EtcdError: it is one of this object's, since the write has none, and no more can be found out now.
        """
        if not isinstance(error, LeaseNotFoundError):
            return False
        try:
            is_lost = await self._pool.is_lost(slot, deadline)
            return is_lost or (request.id_key is not None and await self._ids.is_lost(request.id_key, deadline))
        except EtcdError as failure:
            if attaches_lease(request.write):
                return False
            failure.maybe_applied = False
            failure.add_note(_NOT_SENT)
            raise failure from error

    def _unknown_error(
        self, request: WriteRequest, known: Applied | Settling, cause: EtcdError | None
    ) -> OutcomeUnknownError:
        error = OutcomeUnknownError()
        if cause is not None:
            with_history(error, cause.attempts, maybe_applied=True, seconds=cause.seconds)
            error.call = cause.call
        self._unknown[error] = request, known
        return error

    # Results.

    async def _result(self, request: WriteRequest, applied: Applied, deadline: float) -> WriteAnswer:
        """The result of a write that was applied; if it cannot be read in time, `settle` may read it later."""
        try:
            return await self._replay(request, applied, deadline)
        except (ResultLostError, InvalidRequestError):
            raise
        except EtcdError as error:
            raise self._unknown_error(request, applied, error) from error

    async def _replay(self, request: WriteRequest, applied: Applied, deadline: float) -> WriteAnswer:
        """Compute the result of a write that was applied, and whose answer was lost or is that of another process.

        Raises:
            ResultLostError: the history is compacted.
            InvalidRequestError: the id was used for another request.
            EtcdError: the history could not be read.
        """
        if applied.branch is Branch.DUPLICATE and request.id_key is not None:
            applied = await self._first_of_id(request.write, request.id_key, applied.revision, deadline)
        operations = operations_of(request.write, applied.branch)
        header = Header(revision=applied.revision)
        before: list[KeyValue] = []
        try:
            for keys in ranges_to_read(operations):
                before += await self._read(keys, applied.revision - 1, needs_values(operations), deadline)
        except CompactedError as error:
            if applied.branch is Branch.OTHERWISE:
                raise ResultLostError(_OTHERWISE, revision=applied.revision, succeeded=False) from error
            raise ResultLostError(revision=applied.revision) from error
        self.replays += 1
        return WriteAnswer(applied.branch, header, replay(operations, before, header), is_replayed=True)

    async def _first_of_id(self, write: Write, id_key: IdKey, revision: int, deadline: float) -> Applied:
        """The write that had an id first; `revision` is when the key of the id was seen."""
        kv = await self._store.get(id_key.key, timeout=seconds_left(deadline))
        if kv is None or kv.mod_revision > revision:  # its time is over
            raise ResultLostError(revision=revision)
        parsed = parse_id_value(kv.value)
        if parsed is None or parsed[0] != id_key.digest:
            raise _of_other_request(id_key, write)
        return Applied(kv.mod_revision, parsed[1])

    async def _read(self, keys: KeyRange, revision: int, with_values: bool, deadline: float) -> list[KeyValue]:
        key, range_end, from_key = range_arguments(keys)
        scan = self._store.scan(
            key,
            range_end=range_end,
            from_key=from_key,
            revision=revision,
            keys_only=not with_values,
            timeout=seconds_left(deadline),
        )
        return [kv async for kv in scan]


def _of_other_request(id_key: IdKey, write: Write) -> InvalidRequestError:
    error = InvalidRequestError(
        f"the id of the key {shown_keys(id_key.key)} was used for another request: use an id for one request only"
    )
    error.call = described(write)
    return error


def _was_not_sent(error: EtcdError) -> None:
    """The call that failed may have been applied, but it is not the write: it grants a lease or creates a slot."""
    if error.maybe_applied:  # writes that wait for one grant share its error
        error.maybe_applied = False
        error.add_note(_NOT_SENT)


async def _wait(settling: Settling, deadline: float) -> Applied | Fate:
    """The verdict of a settling; `UNKNOWN` if there is none by the deadline. The settling goes on by itself."""
    await asyncio.wait([settling], timeout=seconds_left(deadline))
    return settling.result() if settling.done() and not settling.cancelled() else Fate.UNKNOWN
