"""Base: the content of a range as pages of a scan bring it, and how it differs from an earlier content. Pure.

The pages come in key order, so the difference is found page by page. Nothing is left to be done at the end that would
take time in proportion to the number of keys, and the new content replaces the earlier one in one step.
"""

import operator
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from etcd_aio import KeyValue
from etcd_aio.cache.rows import Row, is_same_life, row_of
from etcd_aio.cache.tree import Tree

T = TypeVar("T")


class Base(Generic[T]):
    """A content that is being loaded.

    Args:
        earlier: the content before, which does not change meanwhile; None if there was none.
        earlier_decoded: its decoded values; None if values are not decoded.
        is_same_store: whether the earlier content is of the same store.

    Attributes:
        tree: the keys so far.
        decoded: their decoded values; None if values are not decoded.
        changes: the keys so far that differ from the earlier content; None is a key that is gone.
        created: those of them that did not exist before.
    """

    __slots__ = (
        "_earlier",
        "_earlier_decoded",
        "_is_same_store",
        "_run",
        "_runs",
        "changes",
        "created",
        "decoded",
        "tree",
    )

    def __init__(
        self, earlier: Tree[Row] | None, earlier_decoded: Mapping[bytes, T] | None, *, is_same_store: bool = True
    ) -> None:
        self._earlier = earlier
        self._earlier_decoded = earlier_decoded
        self._is_same_store = is_same_store
        self._runs = iter(()) if earlier is None else earlier.runs()  # of earlier keys that are not passed yet
        self._run: Sequence[bytes] = ()
        self.tree: Tree[Row] = Tree()
        self.decoded: dict[bytes, T] | None = None if earlier_decoded is None else {}
        self.changes: dict[bytes, KeyValue | None] = {}
        self.created: set[bytes] = set()

    def changed(self, page: Sequence[KeyValue]) -> Sequence[KeyValue]:
        """The keys of the next page that differ from the earlier content: their values are to be decoded."""
        if self._earlier is None:
            return page
        known = self._earlier.values
        # The revision alone would do in one store; but another one may have taken its place.
        return [kv for kv in page if known.get(kv.key) != row_of(kv)]

    def add(self, page: Sequence[KeyValue], changed: Sequence[KeyValue], decoded: Mapping[bytes, T]) -> Iterator[None]:
        """Add the next page, with a pause after each part of the earlier keys that end before it.

        Args:
            page: its keys.
            changed: what `changed(page)` has returned.
            decoded: the decoded values of these, as far as they could be decoded.
        """
        rows = {kv.key: row_of(kv) for kv in page}
        self.tree.append(rows)
        if self._earlier is not None:
            known = self._earlier.values
            self.changes.update((kv.key, kv) for kv in changed)
            self.created.update(kv.key for kv in changed if kv.key not in known)
        if self.decoded is not None:
            if self._earlier_decoded and self._earlier is not None:
                earlier, known = self._earlier_decoded, self._earlier.values
                keeps = is_same_life if self._is_same_store else operator.eq
                self.decoded.update(
                    (key, earlier[key]) for key, row in rows.items() if key in earlier and keeps(known[key], row)
                )
            self.decoded.update(decoded)
        if page:
            yield from self._pass(page[-1].key)

    def finish(self) -> Iterator[None]:
        """The pages have ended. The content is complete at the end of the iteration."""
        yield from self._pass(None)

    def _pass(self, last: bytes | None) -> Iterator[None]:
        """Note the earlier keys up to one that are gone. None is the last one."""
        there = self.tree.values
        while True:
            end = len(self._run) if last is None else bisect_right(self._run, last)
            self.changes.update((key, None) for key in self._run[:end] if key not in there)
            if end < len(self._run):
                self._run = self._run[end:]
                return
            run = next(self._runs, None)
            self._run = run or ()
            if run is None:
                return
            yield
