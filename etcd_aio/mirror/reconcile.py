"""Reconcile: what to put and delete so that a destination has the keys and values of a source. Pure.

Both sides are read page by page, in key order. What both have passed can be compared and forgotten, so each side holds
about a page, however many keys there are. The side to read next is the one that is behind.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from etcd_aio import KeyValue

S = TypeVar("S")
D = TypeVar("D")

Change: TypeAlias = tuple[bytes, bytes | None]
"""A key with the value to put; None deletes the key."""


class _Side(Generic[S]):
    """One side of a comparison: the items that were read and not compared yet."""

    __slots__ = ("is_complete", "items", "keys", "last")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.items: list[S] = []
        self.last: bytes | None = None  # the last key that was read
        self.is_complete = False

    def add(self, keys: Sequence[bytes], items: Sequence[S], *, is_last: bool) -> None:
        self.keys.extend(keys)
        self.items.extend(items)
        self.is_complete = is_last
        if keys:
            self.last = keys[-1]

    def take(self, end: bytes | None) -> dict[bytes, S]:
        """Remove the items up to a key; all of them if it is None."""
        count = len(self.keys) if end is None else bisect_right(self.keys, end)
        taken = dict(zip(self.keys[:count], self.items[:count], strict=True))
        del self.keys[:count], self.items[:count]
        return taken


class Merge(Generic[S, D]):
    """Two ranges of keys, read side by side.

    Add a page to the side that `reads_source` names, then take what can be compared; until `is_complete`.

    Attributes:
        source: the side with what should be.
        destination: the side with what is.
    """

    __slots__ = ("destination", "source")

    def __init__(self) -> None:
        self.source: Final[_Side[S]] = _Side()
        self.destination: Final[_Side[D]] = _Side()

    @property
    def is_complete(self) -> bool:
        """Whether both sides were read to their end."""
        return self.source.is_complete and self.destination.is_complete

    @property
    def reads_source(self) -> bool:
        """Whether the source is behind, so that its next page is needed; else that of the destination is."""
        source, destination = self.source, self.destination
        if source.is_complete or destination.is_complete:
            return destination.is_complete
        if source.last is None or destination.last is None:
            return source.last is None
        return source.last <= destination.last

    def take(self) -> tuple[dict[bytes, S], dict[bytes, D]]:
        """Remove what both sides have passed: every key of the source and of the destination up to some key."""
        ends: list[bytes] = []
        for side in (self.source, self.destination):
            if not side.is_complete:
                if side.last is None:
                    return {}, {}
                ends.append(side.last)
        end = min(ends, default=None)
        return self.source.take(end), self.destination.take(end)


def differences(source: Mapping[bytes, bytes], destination: Mapping[bytes, bytes]) -> list[Change]:
    """The changes that make a destination equal to a source, in key order; none for keys whose values are equal."""
    changes: list[Change] = [(key, value) for key, value in source.items() if destination.get(key) != value]
    gone = destination.keys() - source.keys()
    if gone:
        changes.extend((key, None) for key in gone)
        changes.sort(key=lambda change: change[0])
    return changes


def changed_since(
    source: Mapping[bytes, KeyValue], known: Iterable[bytes], revision: int
) -> tuple[list[KeyValue], list[bytes]]:
    """The changes since a revision that a reader has not seen.

    Args:
        source: the keys as they are.
        known: the keys that the reader has; each as it was at the revision, or later.
        revision: 0 if nothing is known of the values.

    Returns:
        The keys that were put since, or that the reader lacks; and those that are gone. Both are in key order.
    """
    has = frozenset(known)
    puts = [kv for key, kv in source.items() if kv.mod_revision > revision or key not in has]
    return puts, sorted(has - source.keys())
