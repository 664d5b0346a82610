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
    Answer,
    IdKey,
    Write,
    attaches_lease,
    described,
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
from etcd_aio.once.slot import Slot, Transition
from etcd_aio.once.slots import SlotPool
from etcd_aio.once.write_verdicts import Applied, Branch, Fate, Refusal, judge, judge_error
from etcd_aio.types import range_arguments, shown_keys

_NOT_SENT: Final = "the write itself was not sent: this is what exactly-once writes need before"
_OTHERWISE: Final = "the txn ran its `otherwise`, and the history that its result is read from is compacted"


@dataclass(slots=True)
class Request:
    """One write of a user.

    Attributes:
        write: what to apply.
        id: the idempotency id; None if there is none.
        shape: makes the result of the user's call.
        retry: which failed attempts are retried.
        timeout: seconds for the whole call; None for no limit.
    """

    write: Write
    id: str | None
    shape: Callable[[Write, Answer], WriteResult]
    retry: RetryMode
    timeout: float | None


@dataclass(frozen=True, slots=True)
class _Open:
    """A write that raised `OutcomeUnknownError`: what is known, or what finds out."""

    request: Request
    id_key: IdKey | None
    known: "Applied | Settling"


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
        self._open: WeakKeyDictionary[OutcomeUnknownError, _Open] = WeakKeyDictionary()
        self.replays = 0

    async def run(self, request: Request) -> Answer:
        """Apply a write; see `ExactlyOnce.put`."""
        write, timeout = request.write, request.timeout
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        while True:
            id_key = None
            try:
                if request.id is not None:
                    id_key = await self._ids.key(request.id, write, deadline)
                    timeout = seconds_left(deadline)
                slot = self._pool.take_free()
                if slot is None:
                    slot = await self._pool.take(deadline)
                    timeout = seconds_left(deadline)
            except EtcdError as error:
                _was_not_sent(error)
                raise
            try:
                result = await self._store.do(write_through(slot, write, id_key), timeout=timeout, retry=request.retry)
            except EtcdError as error:
                applied = await self._after_error(slot, error, request, id_key, deadline)
            except BaseException:  # a cancellation: copies may travel
                self._settler.settle(slot, Transition.GIVEN_UP)
                raise
            else:
                if result.succeeded:
                    slot.move(Transition.APPLIED, result.header.revision)
                    self._pool.put_back(slot)
                    answer = unwrap(write, id_key is not None, result)
                    if answer.branch is not Branch.DUPLICATE:
                        return answer
                    applied = Applied(result.revision, Branch.DUPLICATE)
                else:
                    found = result.responses[0]
                    applied = await self._after_refusal(
                        slot, found if isinstance(found, KeyValue) else None, request, id_key, deadline
                    )
            if applied is not None:
                return await self._result(request, id_key, applied, deadline)
            timeout = seconds_left(deadline)

    async def settle(self, error: OutcomeUnknownError, deadline: float) -> Outcome | None:
        """Find out about a write; None if it is not known yet, or never will be. See `ExactlyOnce.settle`.

        Raises:
            LookupError: the error was not raised by `run`.
            EtcdError: the write was applied, and its result could not be read now.
        """
        opened = self._open[error]
        verdict = opened.known if isinstance(opened.known, Applied) else await _wait(opened.known, deadline)
        if verdict is Fate.NOT_APPLIED:
            return Outcome(applied=False)
        if not isinstance(verdict, Applied):
            return None
        try:
            answer = await self._replay(opened.request, opened.id_key, verdict, deadline)
        except ResultLostError as lost:
            return Outcome(applied=True, revision=lost.revision)
        result = opened.request.shape(opened.request.write, answer)
        return Outcome(applied=True, revision=answer.header.revision, result=result)

    # Answers that are none. Each returns what was applied, or None: the write was not applied, and begins again.

    async def _after_refusal(
        self, slot: Slot, found: KeyValue | None, request: Request, id_key: IdKey | None, deadline: float
    ) -> Applied | None:
        """The slot was not as this client left it: by an earlier copy, or since it is gone."""
        judged = judge(slot.number, found)
        if isinstance(judged, Applied):
            slot.move(Transition.APPLIED, judged.revision)
            self._pool.put_back(slot)
            return judged
        settling = self._settler.settle(slot, Transition.MISSING)
        verdict = await _wait(settling, deadline)
        if isinstance(verdict, Applied):
            return verdict
        if verdict is Fate.NOT_APPLIED:
            return None
        raise self._unknown(_Open(request, id_key, settling), None)

    async def _after_error(
        self, slot: Slot, error: EtcdError, request: Request, id_key: IdKey | None, deadline: float
    ) -> Applied | None:
        if judge_error(error) is not Refusal.OPEN:
            slot.move(Transition.REFUSED)
            try:
                if await self._has_lost_lease(error, slot, request, id_key, deadline):
                    return None
            finally:
                self._pool.put_back(slot)
            raise error
        settling = self._settler.settle(slot, Transition.GIVEN_UP)
        verdict = await _wait(settling, deadline)
        if isinstance(verdict, Applied):
            return verdict
        if verdict is not Fate.NOT_APPLIED:
            raise self._unknown(_Open(request, id_key, settling), error) from error
        if await self._has_lost_lease(error, slot, request, id_key, deadline):
            return None
        error.maybe_applied = False
        raise error

    async def _has_lost_lease(
        self, error: EtcdError, slot: Slot, request: Request, id_key: IdKey | None, deadline: float
    ) -> bool:
        """Whether an error says that a lease does not exist which is one of this object's, and not one of the write.

        Raises:
            EtcdError: it is one of this object's, since the write has none, and no more can be found out now.
        """
        if not isinstance(error, LeaseNotFoundError):
            return False
        try:
            is_lost = await self._pool.is_lost(slot, deadline)
            return is_lost or (id_key is not None and await self._ids.is_lost(id_key, deadline))
        except EtcdError as failure:
            if attaches_lease(request.write):
                return False
            failure.maybe_applied = False
            failure.add_note(_NOT_SENT)
            raise failure from error

    def _unknown(self, opened: _Open, cause: EtcdError | None) -> OutcomeUnknownError:
        error = OutcomeUnknownError()
        if cause is not None:
            with_history(error, cause.attempts, maybe_applied=True, seconds=cause.seconds)
            error.call = cause.call
        self._open[error] = opened
        return error

    # Results.

    async def _result(self, request: Request, id_key: IdKey | None, applied: Applied, deadline: float) -> Answer:
        """The result of a write that was applied; if it cannot be read in time, `settle` may read it later."""
        try:
            return await self._replay(request, id_key, applied, deadline)
        except (ResultLostError, InvalidRequestError):
            raise
        except EtcdError as error:
            raise self._unknown(_Open(request, id_key, applied), error) from error

    async def _replay(self, request: Request, id_key: IdKey | None, applied: Applied, deadline: float) -> Answer:
        """Compute the result of a write that was applied, and whose answer was lost or is that of another process.

        Raises:
            ResultLostError: the history is compacted.
            InvalidRequestError: the id was used for another request.
            EtcdError: the history could not be read.
        """
        if applied.branch is Branch.DUPLICATE and id_key is not None:
            applied = await self._first_of_id(request, id_key, applied.revision, deadline)
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
        return Answer(applied.branch, header, replay(operations, before, header), is_replayed=True)

    async def _first_of_id(self, request: Request, id_key: IdKey, revision: int, deadline: float) -> Applied:
        """The write that had an id first; `revision` is when the key of the id was seen."""
        kv = await self._store.get(id_key.key, timeout=seconds_left(deadline))
        if kv is None or kv.mod_revision > revision:  # its time is over
            raise ResultLostError(revision=revision)
        parsed = parse_id_value(kv.value)
        if parsed is None or parsed[0] != id_key.digest:
            raise _of_other_request(id_key, request.write)
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
