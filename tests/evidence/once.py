"""Exactly-once writes: their txns are recorded beneath them, and what they say of each write above.

Copies of a txn through a slot may travel, of which at most one is applied. The answer may be that of a later copy,
which shows the slot as the first one has left it: then the txn was applied at the slot's revision.
"""

from typing import Any, Final

from etcd_aio import EtcdError, KeyValue, OutcomeUnknownError, Store, op
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.errors import ResultLostError
from etcd_aio.once import ExactlyOnce
from tests.evidence import model
from tests.evidence.operations import answer_of, request_of
from tests.evidence.recorded import Recording
from tests.evidence.recorder import Mark, Recorder

PREFIX: Final = "key/once/"
_TTL: Final = 3600  # longer than a report: the model would not see the end of this lease
_SETTLE_SECONDS: Final = 60.0


class Beneath(Recording):
    """The backend of exactly-once writes: it records the txns on slots. The model has slots without their lease."""

    async def record(self, operation: Any, timeout: Timeout, retry: RetryMode | None) -> Any:
        """Send a txn, and record what its answer says of all its copies."""
        call = self.recorder.begin(request_of(_without_lease(operation), self.prefix))
        try:
            result = await self.beneath.do(operation, timeout=timeout, retry=retry)
        except EtcdError as error:
            self.recorder.failed(call, error)
            raise
        except BaseException:
            self.recorder.end(call, model.failed("cancelled"), is_known=False)
            raise
        if not isinstance(operation, op.TxnOp) or result.succeeded:
            self.recorder.end(call, answer_of(operation, result, self.prefix))
        else:
            (seen,) = result.responses
            self._end_by(call, operation, result, seen)
        return result

    def _end_by(self, call: Any, operation: op.TxnOp, result: Any, seen: Any) -> None:
        """End a call whose last copy was refused, by the slot that it has seen."""
        put = next((one for one in reversed(operation.then) if isinstance(one, op.PutOp)), None)
        if isinstance(seen, KeyValue) and put is not None and seen.value == put.value:
            self.recorder.end(call, model.applied_at(seen.mod_revision))
        elif isinstance(seen, KeyValue):
            self.recorder.end(call, answer_of(operation, result, self.prefix))
        else:  # the slot is gone: a copy may have been applied before
            self.recorder.end(call, model.failed("the slot is gone"), is_known=False)


class Once:
    """A client's exactly-once writes, with what they say.

    Args:
        client: the client.
        recorder: records.
    """

    def __init__(self, client: Any, recorder: Recorder) -> None:
        self._recorder = recorder
        self._writes = ExactlyOnce(Store(Beneath(client, recorder, "")), slots=2, ttl=_TTL, prefix=PREFIX)
        self.open: list[tuple[OutcomeUnknownError, Mark]] = []

    async def start(self) -> None:
        """Begin."""
        await self._writes.__aenter__()

    async def aclose(self) -> None:
        """Remove the slots, which the history must not see any more."""
        await self._writes.aclose()

    async def put(self, key: str, value: str) -> None:
        """Put a value exactly once."""
        await self._said(Mark(f"put:{value}", once=True), self._writes.put(key, value))

    async def move(self, source: str, key: str, value: str) -> None:
        """Delete a key and put another, exactly once."""
        moving = self._writes.txn().then(op.delete(source), op.put(key, value)).commit()
        await self._said(Mark(f"put:{value}", once=True), moving)

    async def _said(self, mark: Mark, writing: Any) -> None:
        try:
            result = await writing
        except OutcomeUnknownError as error:
            self.open.append((error, mark))
        except ResultLostError as lost:  # a compaction has come between, but not between the write and its revision
            self._recorder.claim(mark, "applied" if lost.maybe_applied else "not applied", lost.revision)
        except EtcdError as error:
            self._recorder.claim(mark, "unknown" if error.maybe_applied else "not applied")
            raise
        else:
            self._recorder.claim(mark, "applied", result.header.revision)

    async def settle(self) -> None:
        """Ask what became of the writes whose outcome was not known; by now the cluster is well."""
        for error, mark in self.open:
            try:
                outcome = await self._writes.settle(error, timeout=_SETTLE_SECONDS)
            except EtcdError:
                self._recorder.claim(mark, "unknown")
            else:
                self._recorder.claim(mark, "applied" if outcome.applied else "not applied", outcome.revision or 0)


def _without_lease(operation: Any) -> Any:
    """A txn on a slot as etcd's reader of logs has it, which leaves the leases of puts in txns out."""
    if not isinstance(operation, op.TxnOp):
        return operation
    bare = (op.put(one.key, one.value) if isinstance(one, op.PutOp) else one for one in operation.then)
    return op.TxnOp(operation.when, tuple(bare), operation.otherwise)
