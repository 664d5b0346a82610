"""Batching: how the changes of a source become txns of a destination. Pure.

Small revisions share a txn, so their atomicity only grows; of several changes of a key the last one counts. A revision
that is larger than a txn may be is split, since there is no other way.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from etcd_aio.dataclass import dataclass
from etcd_aio.mirror.reconcile import Change

_OP_BYTES: Final = 32  # of a request, besides key and value of an operation, at most


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a txn may be.

    Attributes:
        ops: the most changes.
        bytes: of all changes together; a single change may be larger.
    """

    ops: int
    bytes: int

    def halved(self, *, by_ops: bool) -> "Limits":
        """The limits to try next."""
        return Limits(max(1, self.ops // 2), self.bytes) if by_ops else Limits(self.ops, self.bytes // 2)


@dataclass(frozen=True, slots=True)
class CopyTxn:
    """The changes of one txn.

    Attributes:
        changes: each key once.
        revision: of the source; with this txn everything up to it is copied.
        is_complete: nothing of a later revision is copied: the next txn does not belong to the same revision.
    """

    changes: tuple[Change, ...]
    revision: int
    is_complete: bool = True


def size_of(change: Change) -> int:
    """Bytes of a request that a change takes."""
    key, value = change
    return _OP_BYTES + len(key) + (0 if value is None else len(value))


def pack(changes: Iterable[Change], limits: Limits) -> Iterator[tuple[Change, ...]]:
    """Cut changes of different keys into parts that each fit into a txn."""
    part: list[Change] = []
    size = 0
    for change in changes:
        added = size_of(change)
        if part and (len(part) >= limits.ops or size + added > limits.bytes):
            yield tuple(part)
            part, size = [], 0
        part.append(change)
        size += added
    if part:
        yield tuple(part)


def txns_of(changes: Iterable[tuple[int, Change]], before: int, limits: Limits) -> Iterator[CopyTxn]:
    """Make txns of whole revisions: of changes in order, each with its revision. The one before is copied already."""
    joined: dict[bytes, bytes | None] = {}
    size = 0
    for revision, group in groupby(changes, key=lambda change: change[0]):
        own = [change for _, change in group]
        added = sum(map(size_of, own))
        if joined and (len(joined) + len(own) > limits.ops or size + added > limits.bytes):
            yield CopyTxn(tuple(joined.items()), before)
            joined, size = {}, 0
        parts = list(pack(own, limits))
        for part in parts[:-1]:
            yield CopyTxn(part, before, is_complete=False)
        joined.update(parts[-1])
        size += sum(map(size_of, parts[-1])) if len(parts) > 1 else added
        before = revision
    if joined:
        yield CopyTxn(tuple(joined.items()), before)
