"""ReadSet: the reads and the writes of one attempt of a transaction, and the txn that commits it. Pure.

A `KnownKeys` has some keys as they were at one revision. An attempt that conflicted leaves one: the replies to the
reads of the branch that ran instead. So does one that committed: what it read is unchanged, and what it wrote is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from etcd_aio import Compare, InvalidRequestError, Key, KeyRange, KeyValue, TxnResult, op
from etcd_aio.dataclass import dataclass
from etcd_aio.recipes.stm.isolation import Level
from etcd_aio.types import range_arguments

MAX_OPS: Final = 128
"""Comparisons, and operations of a branch, that etcd accepts in a txn unless it is configured otherwise."""


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Keys as they were at one revision.

    Attributes:
        revision: the revision.
        keys: what is known; None for a key that did not exist.
    """

    revision: int
    keys: Mapping[bytes, KeyValue | None]


@dataclass(frozen=True, slots=True)
class ReadRange:
    """A range that was read.

    Attributes:
        keys: the range.
        revision: at which it was read.
    """

    keys: KeyRange
    revision: int


@dataclass(slots=True)
class ReadSet:
    """The reads and writes of one attempt.

    Attributes:
        level: the isolation level.
        base: the revision of the first read; 0 before it.
        known: the replies of this attempt, and the snapshot of the one before; levels that cache do not ask again.
        reads: the keys that the function has read, as they were.
        ranges: the ranges that it has read.
        writes: by key; a put or a delete.
    """

    level: Level
    base: int = 0
    known: dict[bytes, KeyValue | None] = field(default_factory=dict)
    reads: dict[bytes, KeyValue | None] = field(default_factory=dict)
    ranges: list[ReadRange] = field(default_factory=list)
    writes: dict[bytes, op.PutOp | op.DeleteOp] = field(default_factory=dict)

    def begin_with(self, snapshot: KnownKeys) -> None:
        """Begin with what is known from the attempt before: as a whole, with its revision."""
        self.base = snapshot.revision
        self.known.update(snapshot.keys)

    def learn(self, key: bytes, kv: KeyValue | None, revision: int) -> None:
        """A key was read, from a reply of this revision."""
        if self.base == 0:
            self.base = revision
        self.known[key] = kv

    def written(self, key: bytes) -> KeyValue | None:
        """A key that this attempt has put, as later reads see it; its revisions are not known yet."""
        write = self.writes[key]
        return KeyValue(key, write.value, lease=write.lease) if isinstance(write, op.PutOp) else None

    def overlaid(self, keys: KeyRange, found: Iterable[KeyValue]) -> tuple[KeyValue, ...]:
        """The keys of a range as the function sees them: with its own writes, in key order."""
        shown = {kv.key: kv for kv in found}
        for key in self.writes:
            if key in keys:
                kv = self.written(key)
                if kv is None:
                    shown.pop(key, None)
                else:
                    shown[key] = kv
        return tuple(shown[key] for key in sorted(shown))

    # The commit.

    @property
    def needs_commit(self) -> bool:
        """Whether there is anything to send: writes, or reads of different moments that must be compared."""
        if self.writes:
            return True
        return self.level.guards_reads and not self.level.is_pinned and len(self.reads) > 1

    def guarded_writes(self) -> list[bytes]:
        """The keys that are written without being read, and must be unchanged."""
        if not self.level.guards_writes or self.base == 0:
            return []
        return [key for key in self.writes if key not in self.reads]

    def guarded_keys(self) -> list[bytes]:
        """The keys that must be unchanged."""
        return [*self.reads, *self.guarded_writes()] if self.level.guards_reads else []

    def _guarded_ranges(self) -> Sequence[ReadRange]:
        return self.ranges if self.level.guards_ranges else ()

    def commit(self) -> op.TxnOp:
        """The txn that commits: the guards, the writes, and reads of all guarded keys if a guard does not hold.

        Raises:
            InvalidRequestError: it has more operations than etcd accepts.
        """
        when: list[Compare] = []
        if self.level.guards_reads:
            when += [Key(key).mod_revision == _mod_revision(kv) for key, kv in self.reads.items()]
            when += [Key(key).mod_revision < self.base + 1 for key in self.guarded_writes()]
        when += [_of(one.keys).mod_revision < one.revision + 1 for one in self._guarded_ranges()]
        then = tuple(self.writes.values())
        otherwise = tuple(op.get(key) for key in self.guarded_keys())
        if max(len(when), len(then), len(otherwise)) > MAX_OPS:
            raise InvalidRequestError(
                f"a transaction has at most {MAX_OPS} comparisons, writes and reads each; "
                f"this one has {len(when)}, {len(then)} and {len(otherwise)}"
            )
        return op.TxnOp(tuple(when), then, otherwise)

    # Its reply.

    def after_conflict(self, result: TxnResult) -> KnownKeys:
        """The snapshot that the next attempt begins with."""
        found = (reply if isinstance(reply, KeyValue) else None for reply in result.responses)
        return KnownKeys(result.revision, dict(zip(self.guarded_keys(), found, strict=True)))

    def conflicts(self, found: KnownKeys) -> tuple[bytes, ...]:
        """The keys that had changed; if there is none, the first keys of the ranges."""
        changed = [key for key, kv in self.reads.items() if _mod_revision(found.keys.get(key)) != _mod_revision(kv)]
        changed += [key for key in self.guarded_writes() if _mod_revision(found.keys.get(key)) > self.base]
        return tuple(changed or [one.keys.key for one in self._guarded_ranges()])

    def after_commit(self, revision: int) -> KnownKeys:
        """The keys as they are at the revision of the commit, at levels that guard what was read."""
        keys: dict[bytes, KeyValue | None] = {key: kv for key, kv in self.reads.items() if key not in self.writes}
        for key, write in self.writes.items():
            if isinstance(write, op.DeleteOp):
                keys[key] = None
            elif key in self.reads:
                before = self.reads[key]
                created, version = (before.create_revision, before.version) if before is not None else (revision, 0)
                keys[key] = KeyValue(key, write.value, created, revision, version + 1, write.lease)
        return KnownKeys(revision, keys)


def _mod_revision(kv: KeyValue | None) -> int:
    return 0 if kv is None else kv.mod_revision


def _of(keys: KeyRange) -> Key:
    key, range_end, from_key = range_arguments(keys)
    return Key(key, range_end=range_end, from_key=from_key)
