"""The history of the store, taken from the fake itself before anything of it is compacted."""

from collections.abc import Iterator

from etcd_aio import KeyValue
from etcd_aio.fake import FakeEtcd
from tests.faults.store import ROOT, Change


class History:
    """Every change of every key.

    Args:
        fake: whose history it is.
    """

    def __init__(self, fake: FakeEtcd) -> None:
        self._fake = fake
        self._next = 1
        self._changes: list[KeyValue] = []
        self._deletions: set[int] = set()

    def collect(self) -> None:
        """Add what has happened since the last time. Called before each compaction."""
        new = self._fake.changes(self._next)
        self._changes.extend(new)
        self._deletions.update(kv.mod_revision for kv in new if not kv.version)
        self._next = self._fake.revision + 1

    def deletes_at(self, revision: int) -> bool:
        """Whether a revision has deleted a key."""
        return revision in self._deletions

    def contended(self) -> Iterator[Change]:
        """The changes of what clients contend for."""
        created: dict[str, int] = {}
        for kv in self._below(ROOT.encode()):
            key = kv.key.decode()
            if kv.version:
                created[key] = kv.create_revision
                yield Change(kv.mod_revision, key, kv.value.decode(), kv.create_revision, kv.version)
            else:
                yield Change(kv.mod_revision, key, None, created.pop(key, 0), 0)

    def watched(self, prefix: str) -> list[tuple[int, bytes, bytes | None]]:
        """Revision, key and value of the changes below a prefix; None is a deletion."""
        return [(kv.mod_revision, kv.key, kv.value if kv.version else None) for kv in self._below(prefix.encode())]

    def of_keys(self, prefix: str) -> dict[bytes, list[tuple[int, bool]]]:
        """For each key below a prefix its changes: the revision, and whether it was put."""
        found: dict[bytes, list[tuple[int, bool]]] = {}
        for kv in self._below(prefix.encode()):
            found.setdefault(kv.key, []).append((kv.mod_revision, bool(kv.version)))
        return found

    def _below(self, prefix: bytes) -> Iterator[KeyValue]:
        return (kv for kv in self._changes if kv.key.startswith(prefix))
