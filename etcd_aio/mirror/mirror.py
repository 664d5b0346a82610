"""Mirror: copies a prefix to another cluster, and keeps the copy equal to it.

The theory of its writes is in `checkpoint.py`. A mirror has no state but the checkpoint at the destination, so it may
be stopped at any instant. It reads the checkpoint, and continues with the changes after it; where that cannot be, it
compares both sides and copies the differences.
"""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Final, NoReturn

from etcd_aio import EtcdError, Event, KeyLike, KeyRange
from etcd_aio.arguments import encode_key, finite_seconds, to_bytes, whole_number
from etcd_aio.base import KeySpace, Pauses, Waiters, deadline_after, key_space_of, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    ClientUsageError,
    CompactedError,
    EtcdTimeoutError,
    InvalidRequestError,
    MirrorError,
    StoreRolledBackError,
)
from etcd_aio.mirror.base_copy import copy_base
from etcd_aio.mirror.batching import CopyTxn, Limits, txns_of
from etcd_aio.mirror.follow import Follow, MirrorBatch, follow, head_of
from etcd_aio.mirror.reconcile import Change
from etcd_aio.mirror.writer import CheckpointChanged, MirrorWriter, TooLarge, passes
from etcd_aio.types import Header

DEFAULT_MAX_TXN_OPS: Final = 126
"""One less than fits beside the put of the checkpoint into the 128 operations that etcd accepts."""

_MAX_TXN_BYTES: Final = 2**20  # etcd accepts 1.5 MiB, and a part of that is for the checkpoint
_PROBES: Final = 5
"""Two clusters would have to be written in turns that often to be taken for one."""

_CHECKPOINTS: Final = b"__etcd_aio/mirror/"


@dataclass(frozen=True, slots=True)
class MirrorStatistics:
    """Counters of a mirror.

    Attributes:
        revision: of the source; the destination has every change up to it. 0 before the first copy is complete.
        txns: applied at the destination.
        puts: in these.
        deletes: in these.
        split: revisions of the source that were too large for one txn, so that readers of the destination could see
            a part of them.
        compared: how often all keys of both sides were compared: for the first copy, after a compaction of changes that
            were not copied yet, and after a change of the source's cluster.
        error: why a request is repeated, such as `NoSpaceError`; None if none is.
        is_connected: whether changes of the source arrive. False during an outage of the source, while all keys are
            compared, and while the mirror is not running.
    """

    revision: int = 0
    txns: int = 0
    puts: int = 0
    deletes: int = 0
    split: int = 0
    compared: int = 0
    error: EtcdError | None = None
    is_connected: bool = False


class Mirror:
    """A copy of a prefix in another cluster: `await Mirror(source, destination, prefix="svc/").run()`.

    Each revision of the source becomes one txn of the destination, so its txns stay atomic; small revisions share a
    txn. The checkpoint, a key of the destination, is put in the same txn, so a mirror may be stopped or killed at any
    time, and the next one continues exactly there, also if a write was under way. Keys that were deleted meanwhile are
    deleted, even if the history is compacted.

    Everything under `to_prefix` belongs to the mirror: keys that the source does not have are deleted. Values are
    copied; leases and revisions are not, so a key with a lease lasts until it is deleted at the source.

    One mirror writes a checkpoint. A second one that starts leaves the first write to the other for `takeover_delay`
    seconds, and ends with `MirrorConflictError` once the other has written. If the other did not write in that time,
    the new one takes over, and the other ends with that error at its next write. Both never write.

    Args:
        source: a client of the cluster to copy from, or what serves as one.
        destination: a client of the cluster to copy to. If it is the same cluster, the prefixes must not overlap.
        prefix: of the keys at the source; empty is every key.
        to_prefix: what the copies have in place of `prefix`. Default: None, the same. If it is empty, a key that is
            `prefix` itself is left out, since etcd has no empty key.
        checkpoint_key: at the destination. Default: `__etcd_aio/mirror/` and `to_prefix`. If it is deleted, all keys
            are compared.
        max_txn_ops: the most changes in a txn. Default: 126; etcd accepts 128 operations, with that of the checkpoint,
            unless its `--max-txn-ops` is less: then the mirror makes smaller txns by itself.
        takeover_delay: seconds; see above. Default: 1, in which a mirror in use writes what it has received.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid, or the prefixes overlap in one store.
    """

    def __init__(
        self,
        source: StoreCalls,
        destination: StoreCalls,
        *,
        prefix: KeyLike,
        to_prefix: KeyLike | None = None,
        checkpoint_key: KeyLike | None = None,
        max_txn_ops: int = DEFAULT_MAX_TXN_OPS,
        takeover_delay: float = 1.0,
    ) -> None:
        check_store(source, "source")
        check_store(destination, "destination")
        self._source = source
        self._destination = destination
        self._prefix = to_bytes(prefix, "prefix")
        self._keys = KeyRange.of(prefix=self._prefix)
        self._to_prefix = self._prefix if to_prefix is None else to_bytes(to_prefix, "to_prefix")
        default_key = _CHECKPOINTS + self._to_prefix
        self._key = default_key if checkpoint_key is None else encode_key(checkpoint_key, "checkpoint_key")
        self._limits = Limits(whole_number(max_txn_ops, "max_txn_ops", minimum=1), _MAX_TXN_BYTES)
        one, other = (key_space_of(store) or KeySpace(store) for store in (source, destination))
        self._prefixes = prefix_there, copies_there = one.prefix + self._prefix, other.prefix + self._to_prefix
        written = (copies_there, other.prefix + self._key)
        self._overlaps = prefix_there.startswith(copies_there) or any(key.startswith(prefix_there) for key in written)
        if self._overlaps and one.client is other.client:
            raise InvalidRequestError("prefix and to_prefix overlap in one store: the mirror would copy its own writes")
        delay = finite_seconds(takeover_delay, "takeover_delay")
        self._writer = MirrorWriter(destination, self._key, delay)
        self._batches: Follow | None = None
        self._revision = 0
        self._split = 0
        self._compared = 0
        self._pauses = Pauses()
        self._must_compare = False
        self._is_running = False
        self._end: BaseException | None = None  # of the last run
        self._ends = 0  # how many runs have ended
        self._waiters = Waiters()

    @when_constructed
    def __repr__(self) -> str:
        return f"<Mirror {self._keys} at revision {self.revision}>"

    @property
    def revision(self) -> int:
        """The revision of the source up to which the destination has every change; 0 before the first copy."""
        return self._revision

    @property
    def checkpoint_key(self) -> bytes:
        """The key of the checkpoint at the destination."""
        return self._key

    async def run(self) -> NoReturn:
        """Copy, until it is cancelled or ends by an error. It may be run again.

        Errors that may pass are waited for, with a growing pause of at most 6 seconds: `statistics().error` has it.

        Raises:
            MirrorConflictError: another mirror writes the checkpoint.
            MirrorError: both sides are one cluster and the prefixes overlap; or the checkpoint's key has another value.
            PermissionDeniedError: a user may not read the source, or not write the destination or its checkpoint.
            RequestTooLargeError: the destination does not accept a single key of the source with its value.
            ClientUsageError: it is running already, or a client is closed.
            EtcdError: one of the clusters refuses a request for good.

        Cancellation: a txn that is under way may be applied or not; the next run finds out.
        """
        if self._is_running:
            raise ClientUsageError("the mirror is running: make another one for another copy")
        self._writer.begin_run(secrets.token_hex(8))
        self._is_running = True
        try:
            while True:
                try:
                    await self._copy()
                except CheckpointChanged:
                    pass  # load it again
                except TooLarge as refusal:
                    self._limits = self._limits.halved(by_ops=refusal.by_ops)
                except EtcdError as error:
                    lacks_history = isinstance(error, CompactedError | StoreRolledBackError)
                    if not lacks_history and not passes(error):
                        raise
                    self._must_compare |= lacks_history
                    if self._pauses.failures or not lacks_history:  # the first comparison needs no pause
                        self._writer.error = error
                        await self._pauses.wait()
                    else:
                        self._pauses.failures += 1
        except BaseException as end:  # a cancellation too: `wait_revision` raises it
            self._end = end
            raise
        finally:
            self._is_running = False
            self._writer.error = None
            self._ends += 1
            self._waiters.wake()

    async def wait_revision(self, revision: int, *, timeout: float | None = None) -> None:
        """Wait until the destination has every change of the source up to a revision; if need be, for the next run.

        Args:
            revision: of a write below the prefix, such as the last one before the writers move to the destination.
            timeout: seconds to wait. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it has not all of them in time.
            ClientUsageError: the mirror was cancelled meanwhile.
            EtcdError: the error that has ended the mirror meanwhile.

        Cancellation changes nothing.
        """
        whole_number(revision, "revision")
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        ends = self._ends
        while self.revision < revision:
            if self._ends != ends:
                if isinstance(self._end, Exception):
                    raise self._end.with_traceback(None)
                raise ClientUsageError("the mirror was cancelled before it had copied that revision")
            if not await self._waiters.wait(deadline):
                raise EtcdTimeoutError(f"revision {revision} was not copied in time")

    def statistics(self) -> MirrorStatistics:
        """A snapshot of the counters."""
        writer = self._writer
        is_connected = self._batches is not None and self._batches.is_connected
        counters = self._revision, writer.txns, writer.puts, writer.deletes, self._split, self._compared
        return MirrorStatistics(*counters, writer.error, is_connected)

    # Copying.

    async def _copy(self) -> NoReturn:
        """Copy from the checkpoint on, until that is not possible any more."""
        checkpoint = await self._writer.load()
        head = await head_of(self._source, self._keys)
        resumes = checkpoint is not None and checkpoint.resumes(head.cluster_id, *self._prefixes, head.revision)
        if self._must_compare or checkpoint is None or not resumes:
            self._revision = 0
            await self._copy_base(head)
        else:
            self._progressed(checkpoint.revision)
        async with follow(self._source, self._prefix, since=self.revision) as batches:
            self._batches = batches
            async for batch in batches:
                await self._copy_changes(batch, batches)
        raise ClientUsageError("the client of the source is closed")

    async def _copy_base(self, head: Header) -> None:
        # First the checkpoint: from then on, no write of an earlier run changes what is read.
        await self._writer.begin_base(head.cluster_id, *self._prefixes)
        if self._overlaps:
            await self._check_apart(head.revision)
        self._compared += 1
        revision = await copy_base(
            self._source,
            self._destination,
            prefix=self._prefix,
            to_prefix=self._to_prefix,
            leave=self._key,
            limits=self._limits,
            write=self._writer.write_base,
        )
        await self._write(CopyTxn((), revision))
        self._must_compare = False

    async def _copy_changes(self, batch: MirrorBatch, batches: Follow) -> None:
        """Copy a batch, together with what was received meanwhile."""
        events, revision = list(batch.changes), batch.revision
        while batches.pending and len(events) < self._limits.ops:
            batch = await anext(batches)
            events += batch.changes
            revision = batch.revision
        is_split = False
        for txn in txns_of(self._changes(events), self.revision, self._limits):
            await self._write(txn)
            if not txn.is_complete and not is_split:
                self._split += 1
            is_split = not txn.is_complete
        if self.revision < revision and not events:
            await self._write(CopyTxn((), revision))  # so that no compaction overtakes a quiet prefix

    def _changes(self, events: list[Event]) -> Iterator[tuple[int, Change]]:
        """The changes at the destination that correspond to events of the source."""
        prefix, cut = self._to_prefix, len(self._prefix)
        for event in events:
            key = prefix + event.kv.key[cut:]
            if key and key != self._key:
                yield event.kv.mod_revision, (key, event.kv.value if event.is_put else None)

    async def _check_apart(self, before: int) -> None:
        """Raise if both sides are one cluster and overlap, before anything is copied: that would delete source keys.

        The id of a cluster does not tell: clusters that were set up with the same addresses, such as etcd's defaults,
        have the same one. But in one cluster, a put falls between two reads, by their revisions. In two, it does not
        do so time and again. The first read was before the checkpoint was put.
        """
        writer = self._writer
        for _ in range(_PROBES):
            checkpoint = writer.checkpoint
            if checkpoint is None or checkpoint.cluster_id != writer.cluster_id:
                return
            after = (await head_of(self._source, self._keys)).revision
            if not before < writer.revision <= after:
                return
            before = after
            await writer.begin_base(checkpoint.cluster_id, *self._prefixes)
        raise MirrorError("source and destination are one cluster, and what is written there is below the prefix")

    async def _write(self, txn: CopyTxn) -> None:
        await self._writer.write(txn)
        self._progressed(txn.revision)

    def _progressed(self, revision: int) -> None:
        self._revision = revision
        self._pauses.reset()
        self._writer.error = None
        self._waiters.wake()
