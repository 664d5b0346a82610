"""The store: keys with all their revisions, as etcd's MVCC store has them. Pure.

Each key has a history of versions, the oldest first; a deletion is a version that has no number (0). A revision is one
transaction that changed something. `MvccTxn` is a transaction under way: it writes to the revision that comes next, and
reads what it has written.

Messages in the store are shared with replies, and must not be changed.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from operator import attrgetter

from etcd_aio import pb
from etcd_aio.fake.refusals import Reason, Refusal

_mod_revision = attrgetter("mod_revision")


class MvccStore:
    """The keys of a cluster.

    Args:
        keeps_tombstone: whether a compaction at the revision of a deletion keeps the deletion for watchers.

    Attributes:
        revision: of the last transaction that changed something; 1 at the beginning.
        compacted: the oldest revision that can be read; -1 before the first compaction.
    """

    def __init__(self, *, keeps_tombstone: bool = True) -> None:
        self.revision = 1
        self.compacted = -1
        self._keeps_tombstone = keeps_tombstone
        self._keys: list[bytes] = []  # sorted; each has a history
        self._histories: dict[bytes, list[pb.KeyValue]] = {}
        self._changes: list[pb.KeyValue] = []  # of all revisions that are not compacted, in order

    def check(self, revision: int) -> int:
        """The revision that a read at `revision` reads; 0 and below are the current one.

        Raises:
            Refusal: it is compacted, or in the future.
        """
        return self._check(revision, self.revision)

    def read(self, key: bytes, end: bytes, revision: int = 0) -> list[pb.KeyValue]:
        """The keys of an interval as they were at a revision, sorted by key.

        Args:
            key: the first key.
            end: the key behind the last one; empty for `key` alone, and a zero byte for all keys from `key` on.
            revision: as in `check`.

        Raises:
            Refusal: the revision cannot be read.
        """
        return self._read(key, end, self.check(revision))

    def get(self, key: bytes, revision: int = 0) -> pb.KeyValue | None:
        """One key as it was at a revision; see `read`."""
        return self._at(key, self.check(revision))

    def copy(self) -> "MvccStore":
        """The store as it is now, which goes its own way from here."""
        copy = MvccStore(keeps_tombstone=self._keeps_tombstone)
        copy.revision, copy.compacted = self.revision, self.compacted
        copy._keys, copy._changes = self._keys.copy(), self._changes.copy()
        copy._histories = {key: history.copy() for key, history in self._histories.items()}
        return copy

    def become(self, other: "MvccStore") -> None:
        """Be as another store is, which goes its own way from here."""
        copy = other.copy()
        self.revision, self.compacted = copy.revision, copy.compacted
        self._keys, self._changes, self._histories = copy._keys, copy._changes, copy._histories

    def follow(self, revision: int, changes: Sequence[pb.KeyValue]) -> None:
        """Take the changes of the next transaction from the store that this one is a copy of."""
        for change in changes:
            self._write(change)
        self.revision = revision

    def begin(self) -> "MvccTxn":
        """Begin a transaction. The one before must have ended."""
        return MvccTxn(self)

    def compact(self, revision: int) -> None:
        """Forget what was replaced or deleted before `revision`.

        Raises:
            Refusal: it was done already, or the revision is in the future.
        """
        if revision <= self.compacted:
            raise Refusal(Reason.COMPACTED)
        if revision > self.revision:
            raise Refusal(Reason.FUTURE_REVISION)
        self.compacted = revision
        kept: list[bytes] = []
        for key in self._keys:
            history = self._histories[key]
            last = bisect_right(history, revision, key=_mod_revision) - 1  # the version at the revision
            if last >= 0 and not history[last].version:
                last += 1
            if last > 0:
                del history[:last]
            if history:
                kept.append(key)
            else:
                del self._histories[key]
        self._keys = kept
        behind = bisect_right(self._changes, revision, key=_mod_revision)
        at = self._changes[bisect_left(self._changes, revision, key=_mod_revision) : behind]
        last_of = {change.key: change for change in at}  # a key may be put and then deleted in one revision
        survivors = [change for change in at if last_of[change.key] is change]
        if not self._keeps_tombstone:
            survivors = [change for change in survivors if change.version]
        self._changes = survivors + self._changes[behind:]

    def changes(self, first: int, last: int) -> Sequence[pb.KeyValue]:
        """The changes of the revisions from `first` to `last`, in order; deletions have no version."""
        begin = bisect_left(self._changes, first, key=_mod_revision)
        return self._changes[begin : bisect_right(self._changes, last, key=_mod_revision)]

    # For the transaction under way.

    def _check(self, revision: int, current: int) -> int:
        if revision > current:
            raise Refusal(Reason.FUTURE_REVISION)
        if revision <= 0:
            revision = current
        if revision < self.compacted:
            raise Refusal(Reason.COMPACTED)
        return revision

    def _read(self, key: bytes, end: bytes, revision: int) -> list[pb.KeyValue]:
        if not end:
            found = self._at(key, revision)
            return [] if found is None else [found]
        keys = self._keys
        first = bisect_left(keys, key)
        last = len(keys) if end == b"\x00" else bisect_left(keys, end)
        versions = [self._at(keys[index], revision) for index in range(first, last)]
        return [one for one in versions if one is not None]

    def _at(self, key: bytes, revision: int) -> pb.KeyValue | None:
        history = self._histories.get(key)
        if history is None:
            return None
        version = history[-1]
        if version.mod_revision > revision:
            index = bisect_right(history, revision, key=_mod_revision)
            if not index:
                return None
            version = history[index - 1]
        return version if version.version else None

    def _write(self, version: pb.KeyValue) -> None:
        history = self._histories.get(version.key)
        if history is None:
            self._histories[version.key] = [version]
            insort(self._keys, version.key)
        else:
            history.append(version)
        self._changes.append(version)


class MvccTxn:
    """A transaction under way. It writes at once, and must be ended with `commit`.

    Attributes:
        changes: the versions that it has written, in order.
    """

    def __init__(self, store: MvccStore) -> None:
        self._store = store
        self._next = store.revision + 1
        self.changes: list[pb.KeyValue] = []

    @property
    def revision(self) -> int:
        """The current revision, as the transaction sees it: the next one as soon as it has written something."""
        return self._next if self.changes else self._next - 1

    def check(self, revision: int) -> int:
        """As `MvccStore.check`."""
        return self._store._check(revision, self.revision)

    def read(self, key: bytes, end: bytes, revision: int = 0) -> list[pb.KeyValue]:
        """As `MvccStore.read`; the current revision includes what the transaction has written."""
        return self._store._read(key, end, self.check(revision))

    def get(self, key: bytes) -> pb.KeyValue | None:
        """One key with what the transaction has written."""
        return self._store._at(key, self._next)

    def put(self, key: bytes, value: bytes, lease: int) -> int:
        """Write a key. Returns the revision."""
        before = self.get(key)
        created, version = (self._next, 0) if before is None else (before.create_revision, before.version)
        self._write(
            pb.KeyValue(
                key=key,
                value=value,
                create_revision=created,
                mod_revision=self._next,
                version=version + 1,
                lease=lease,
            )
        )
        return self._next

    def delete(self, key: bytes, end: bytes) -> list[pb.KeyValue]:
        """Delete the keys of an interval. Returns them as they were."""
        found = self.read(key, end)
        for one in found:
            self._write(pb.KeyValue(key=one.key, mod_revision=self._next))
        return found

    def commit(self) -> Sequence[pb.KeyValue]:
        """End the transaction. Returns what it has changed."""
        if self.changes:
            self._store.revision = self._next
        return self.changes

    def _write(self, version: pb.KeyValue) -> None:
        self._store._write(version)
        self.changes.append(version)
