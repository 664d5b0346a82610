"""MirrorWriter: sends the txns of a mirror, each until it is known what became of it; see `checkpoint.py` for why."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from etcd_aio import EtcdError, Key, KeyValue, TxnResult, op
from etcd_aio.base import STEADY, Pauses
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import MirrorConflictError, MirrorError, NoSpaceError, RequestTooLargeError, TooManyOpsError
from etcd_aio.mirror.batching import Step
from etcd_aio.mirror.checkpoint import Checkpoint, Verdict, judge
from etcd_aio.mirror.reconcile import Change
from etcd_aio.types import shown_keys


class CheckpointChanged(Exception):  # noqa: N818 - not an error: the mirror reads the checkpoint again
    """The checkpoint is not as this mirror left it, for a reason that ends no mirror."""


class TooLarge(Exception):  # noqa: N818 - not an error: the mirror makes smaller txns
    """The destination accepts only smaller txns.

    Attributes:
        by_ops: whether it has too many operations; else it has too many bytes.
    """

    def __init__(self, *, by_ops: bool) -> None:
        super().__init__()
        self.by_ops = by_ops


def passes(error: EtcdError) -> bool:
    """Whether a mirror waits for this error to pass."""
    return error.retryable or isinstance(error, NoSpaceError)


class MirrorWriter:
    """The writes of one run of a mirror.

    Args:
        store: the destination.
        key: of the checkpoint.
        name: of this run, in the checkpoint.
        delay: seconds before the first write, if another mirror has written the checkpoint.

    Attributes:
        checkpoint: as this run left it, or read it; None if there is none.
        revision: of the destination, at which the checkpoint was put; 0 if there is none.
        error: why a write is repeated now; None if none is.
        txns: that were applied.
        puts: that were applied.
        deletes: that were applied; of keys that did not exist, too.
        cluster_id: of the destination, once it has answered.
    """

    def __init__(self, store: StoreCalls, key: bytes, name: str, delay: float) -> None:
        self._store = store
        self._key = key
        self._look = op.get(key)
        self._name = name
        self._number = 0
        self._delay = delay
        self.revision = 0
        self._moves = 0
        self.checkpoint: Checkpoint | None = None
        self.error: EtcdError | None = None
        self.txns = 0
        self.puts = 0
        self.deletes = 0
        self.cluster_id = 0

    async def load(self) -> Checkpoint | None:
        """Read the checkpoint.

        Raises:
            MirrorError: the key holds something else.
        """
        kv = await self._store.get(self._key)
        self.checkpoint = None if kv is None else Checkpoint.parse(kv.value)
        self.revision = 0 if kv is None else kv.mod_revision
        if kv is not None and self.checkpoint is None:
            raise MirrorError(f"the key {shown_keys(self._key)} has a value that is not a checkpoint of a mirror")
        return self.checkpoint

    async def begin_base(self, cluster_id: int, prefix: bytes, to_prefix: bytes) -> None:
        """Put a checkpoint that says that the destination has no complete copy; make it if there is none."""
        none = Checkpoint(cluster_id, prefix, to_prefix)
        await self._put(self.checkpoint or none, replace(none, writer=self._name), ())

    async def write(self, step: Step) -> None:
        """Apply a step, and put the checkpoint.

        Raises:
            MirrorConflictError: another mirror has written the checkpoint.
            CheckpointChanged: it is to be loaded again.
            TooLarge: the destination accepts only smaller txns.
            EtcdError: the destination refuses the txn for good.
        """
        before = self.checkpoint
        assert before is not None  # noqa: S101 - loaded, or made by `begin_base`
        made = replace(before, revision=step.revision, is_complete=step.is_complete, writer=self._name)
        await self._put(before, made, step.changes)

    async def write_base(self, changes: tuple[Change, ...]) -> None:
        """Apply changes of a base, between `begin_base` and the `write` that ends it. Several may be under way.

        Raises:
            As `write`.
        """
        before = self.checkpoint
        assert before is not None  # noqa: S101 - made by `begin_base`
        result = await self._send(self.revision, changes, ())
        if not result:
            self._fail(judge(before, before, _found(result)), result)
        self._count(changes)

    async def _put(self, before: Checkpoint, made: Checkpoint, changes: tuple[Change, ...]) -> None:
        if self.revision and before.writer != self._name:
            await asyncio.sleep(self._delay)
        self._number += 1
        made = replace(made, number=self._number)
        result = await self._send(self.revision, changes, (op.put(self._key, made.encode()),))
        revision = result.revision
        if not result:
            found = _found(result)
            verdict = judge(made, before, found)
            if verdict is not Verdict.APPLIED or found is None:
                self._fail(verdict, result)
            revision = found.mod_revision
        self.checkpoint, self.revision = made, revision
        self._count(changes)

    def _fail(self, verdict: Verdict, result: TxnResult) -> NoReturn:
        if verdict is Verdict.MOVED:
            self._moves += 1
        if verdict is Verdict.CONFLICT or self._moves > 1:
            found = _found(result)
            other = None if found is None else Checkpoint.parse(found.value)
            error = MirrorConflictError(
                f"another mirror writes the checkpoint {shown_keys(self._key)}",
                writer="" if other is None else other.writer,
            )
            raise error
        raise CheckpointChanged

    def _count(self, changes: tuple[Change, ...]) -> None:
        deletes = sum(value is None for _, value in changes)
        self.txns += 1
        self.deletes += deletes
        self.puts += len(changes) - deletes

    async def _send(self, revision: int, changes: tuple[Change, ...], marks: Iterable[op.PutOp]) -> TxnResult:
        """Send changes on the condition that the checkpoint is at a revision, until there is an answer."""
        operations = [op.delete(key) if value is None else op.PutOp(key, value) for key, value in changes]
        txn = op.TxnOp((Key(self._key).mod_revision == revision,), (*operations, *marks), (self._look,))
        pauses = Pauses(STEADY)
        while True:
            try:
                result = await self._store.do(txn, retry="always")
            except EtcdError as error:
                if len(changes) > 1 and isinstance(error, TooManyOpsError | RequestTooLargeError):
                    raise TooLarge(by_ops=isinstance(error, TooManyOpsError)) from error
                if not passes(error):
                    raise
                self.error = error
                await pauses.wait()
            else:
                self.error = None
                self.cluster_id = result.header.cluster_id
                return result


def _found(result: TxnResult) -> KeyValue | None:
    (found,) = result.responses
    return found if isinstance(found, KeyValue) else None
