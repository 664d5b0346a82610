"""Base: the content of a range as pages of a scan bring it, and how it differs from an earlier content. Pure.

The pages come in key order, so the difference is found page by page. Nothing is left to be done at the end that would
take time in proportion to the number of keys, and the new content replaces the earlier one in one step.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from etcd_aio import KeyValue
from etcd_aio.cache.tree import Tree

T = TypeVar("T")


class Base(Generic[T]):
    """A content that is being loaded.

    Args:
        earlier: the content before, which does not change meanwhile; None if there was none.
        earlier_decoded: its decoded values; None if values are not decoded.

    Attributes:
        tree: the keys so far.
        decoded: their decoded values; None if values are not decoded.
        changes: the keys so far that differ from the earlier content; None is a key that is gone.
        created: those of them that did not exist before.
    """

    __slots__ = ("_earlier", "_earlier_decoded", "_next", "changes", "created", "decoded", "tree")

    def __init__(self, earlier: Tree[KeyValue] | None, earlier_decoded: Mapping[bytes, T] | None) -> None:
        self._earlier = earlier
        self._earlier_decoded = earlier_decoded
        self._next = b""  # no key before it is still to come
        self.tree: Tree[KeyValue] = Tree()
        self.decoded: dict[bytes, T] | None = None if earlier_decoded is None else {}
        self.changes: dict[bytes, KeyValue | None] = {}
        self.created: set[bytes] = set()

    def changed(self, page: Sequence[KeyValue]) -> Sequence[KeyValue]:
        """Those of the next page that differ from the earlier content: their values are to be decoded."""
        if self._earlier is None:
            return page
        known = self._earlier.values
        # The revision alone would do in one store; but another one may have taken its place.
        return [kv for kv in page if known.get(kv.key) != kv]

    def add(self, page: Sequence[KeyValue], changed: Sequence[KeyValue], decoded: Mapping[bytes, T]) -> None:
        """Add the next page.

        Args:
            page: its keys.
            changed: what `changed(page)` has returned.
            decoded: the decoded values of these, as far as they could be decoded.
        """
        if not page:
            return
        items = {kv.key: kv for kv in page}
        if self._earlier is not None:
            known, behind = self._earlier.values, page[-1].key + b"\0"
            self.changes.update((kv.key, kv) for kv in changed)
            self.created.update(kv.key for kv in changed if kv.key not in known)
            self.changes.update((key, None) for key in self._earlier.keys(self._next, behind) if key not in items)
            self._next = behind
        self.tree.append(items)
        if self.decoded is not None:
            if self._earlier_decoded:
                earlier = self._earlier_decoded
                self.decoded.update((key, earlier[key]) for key in items if key in earlier)
            self.decoded.update(decoded)

    def finish(self) -> None:
        """There are no more pages."""
        if self._earlier is not None:
            self.changes.update(dict.fromkeys(self._earlier.keys(self._next)))
