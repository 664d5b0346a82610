"""MirrorWriter: sends the txns of a mirror, each until it is known what became of it; see `checkpoint.py` for why."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from etcd_aio import EtcdError, Key, KeyValue, TxnResult, op
from etcd_aio.base import STEADY, Pauses
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import MirrorConflictError, MirrorError, NoSpaceError, RequestTooLargeError, TooManyOpsError
from etcd_aio.mirror.batching import CopyTxn
from etcd_aio.mirror.checkpoint import Checkpoint, CheckpointVerdict, judge
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
    """The writes of a mirror.

    Args:
        store: the destination.
        key: of the checkpoint.
        delay: seconds before the first write of a run, if another mirror has written the checkpoint.

    Attributes:
        checkpoint: as this run left it, or read it; None if there is none.
        revision: of the destination, at which the checkpoint was put; 0 if there is none.
        error: why a write is repeated now; None if none is.
        txns: that were applied, in all runs.
        puts: in these.
        deletes: in these; of keys that did not exist, too.
        cluster_id: of the destination, once it has answered.
    """

    def __init__(self, store: StoreCalls, key: bytes, delay: float) -> None:
        self._store = store
        self._key = key
        self._look = op.get(key)
        self._delay = delay
        self.checkpoint: Checkpoint | None = None
        self.revision = 0
        self.error: EtcdError | None = None
        self.txns = self.puts = self.deletes = 0
        self.cluster_id = 0
        self.begin_run("")

    def begin_run(self, name: str) -> None:
        """Begin a run, which has this name in the checkpoint, and counts its writes anew."""
        self._name = name
        self._number = 0
        self._moves = 0

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
        """Put a checkpoint of a destination without a complete copy; create it if there is none."""
        none = Checkpoint(cluster_id, prefix, to_prefix)
        await self._put(self.checkpoint or none, none, ())

    async def write(self, txn: CopyTxn) -> None:
        """Apply changes, and put the checkpoint.

        Raises:
            MirrorConflictError: another mirror has written the checkpoint.
            CheckpointChanged: it is to be loaded again.
            TooLarge: the destination accepts only smaller txns.
            EtcdError: the destination refuses the txn for good.
        """
        before = self.checkpoint
        assert before is not None  # noqa: S101 - loaded, or made by `begin_base`
        await self._put(before, replace(before, revision=txn.revision, is_complete=txn.is_complete), txn.changes)

    async def write_base(self, changes: tuple[Change, ...]) -> None:
        """Apply changes of a base, between `begin_base` and the `write` that ends it. Several may be under way.

        Raises:
            As `write`.
        """
        before = self.checkpoint
        assert before is not None  # noqa: S101 - made by `begin_base`
        result = await self._send(changes, ())
        if not result:
            self._fail(judge(before, before, result[self._look]), result[self._look])
        self._count(changes)

    async def _put(self, before: Checkpoint, made: Checkpoint, changes: tuple[Change, ...]) -> None:
        if self.revision and before.writer != self._name:
            await asyncio.sleep(self._delay)
        self._number += 1
        made = replace(made, writer=self._name, number=self._number)
        result = await self._send(changes, (op.put(self._key, made.encode()),))
        revision = result.revision
        if not result:
            kv = result[self._look]
            verdict = judge(made, before, kv)
            if verdict is not CheckpointVerdict.APPLIED or kv is None:
                self._fail(verdict, kv)
            revision = kv.mod_revision
        self.checkpoint, self.revision = made, revision
        self._count(changes)

    def _fail(self, verdict: CheckpointVerdict, kv: KeyValue | None) -> NoReturn:
        self._moves += verdict is CheckpointVerdict.MOVED
        if verdict is CheckpointVerdict.CONFLICT or self._moves > 1:
            other = None if kv is None else Checkpoint.parse(kv.value)
            text = f"another mirror writes the checkpoint {shown_keys(self._key)}"
            raise MirrorConflictError(text, writer="" if other is None else other.writer)
        raise CheckpointChanged

    def _count(self, changes: tuple[Change, ...]) -> None:
        deletes = sum(value is None for _, value in changes)
        self.txns += 1
        self.deletes += deletes
        self.puts += len(changes) - deletes

    async def _send(self, changes: tuple[Change, ...], marks: Iterable[op.PutOp]) -> TxnResult:
        """Send changes on the condition that the checkpoint is at its revision, until there is an answer."""
        operations = [op.delete(key) if value is None else op.PutOp(key, value) for key, value in changes]
        txn = op.TxnOp((Key(self._key).mod_revision == self.revision,), (*operations, *marks), (self._look,))
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
