"""Steps: changes of a content by the events of whole revisions, checked against it. Pure.

A step is applied at once, so that no reader sees a part of a revision. One of very many events would block the loop for
long. So it is staged: the content behind it is made beside the present one, in parts, and then takes its place at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache.rows import VERSION, Row, is_same_life, row_of
from etcd_aio.cache.tree import Tree
from etcd_aio.dataclass import dataclass

T = TypeVar("T")

PART: Final = 1000
"""Keys, or events, in one turn of the loop: one or two milliseconds."""

_PUT: Final = EventType.PUT


class StoreReplaced(Exception):  # noqa: N818 - not an error of the caller: it never leaves the package
    """The store is another one than the one that was followed.

    Args:
        why: what shows it.
    """


@dataclass(frozen=True, slots=True)
class ContentStep:
    """One change of the content.

    Attributes:
        revision: of the content after it.
        changes: the keys that differ from the content before, with what they are now; None is a key that is gone.
        created: those of them that did not exist before.
        events: the history that leads from the content before to the one after it. Empty for a difference that is no
            history, and if nothing has changed.
        is_load: the content was read anew, so some of the history is not known.
    """

    revision: int
    changes: Mapping[bytes, KeyValue | None]
    created: frozenset[bytes] | set[bytes]
    events: tuple[Event, ...] = ()
    is_load: bool = False


def note_changes(events: Sequence[Event], known: Mapping[bytes, Row], changes: dict[bytes, KeyValue | None]) -> None:
    """Note what the keys are after some events.

    Args:
        events: each of them must fit what was before it.
        known: the content before.
        changes: what earlier events have changed in it.

    Raises:
        StoreReplaced: an event does not fit.
    """
    for event in events:
        kv = event.kv
        key = kv.key
        if key in changes:
            before = changes[key]
            version = 0 if before is None else before.version
        else:
            version = known[key][VERSION] if key in known else 0  # 0: there is no such key
        if event.type is _PUT:
            if kv.version != version + 1:
                raise StoreReplaced("a put does not follow on what is known of its key")
            changes[key] = kv
        elif not version:
            raise StoreReplaced("a key was deleted that did not exist")
        elif key in known:
            changes[key] = None
        else:
            del changes[key]


class Staging(Generic[T]):
    """The content behind a step of very many events.

    Args:
        before: the present content, which does not change meanwhile.
        values: its decoded values; None if values are not decoded.

    Attributes:
        revision: of the last event.
        tree: the keys, once everything is built.
        decoded: their decoded values; None if values are not decoded.
        changes: as of a step.
        created: as of a step.
    """

    __slots__ = ("_before", "_new", "_values", "changes", "created", "decoded", "revision", "tree")

    def __init__(self, before: Tree[Row], values: Mapping[bytes, T] | None) -> None:
        self._before = before
        self._values = values
        self._new: dict[bytes, T] = {}
        self.revision = 0
        self.tree: Tree[Row] = Tree()
        self.decoded: dict[bytes, T] | None = None if values is None else {}
        self.changes: dict[bytes, KeyValue | None] = {}
        self.created: set[bytes] = set()

    def add(self, events: Sequence[Event], decoded: Mapping[bytes, T]) -> None:
        """Add the next events.

        Args:
            events: not empty, and not of more than a turn of the loop.
            decoded: the decoded values of their puts, as far as they could be decoded.

        Raises:
            StoreReplaced: an event does not fit the content.
        """
        note_changes(events, self._before.values, self.changes)
        for event in events:
            if event.type is not _PUT:
                self._new.pop(event.kv.key, None)
        self._new.update(decoded)
        self.revision = events[-1].kv.mod_revision

    def build(self) -> Iterator[None]:
        """Build the content when all events are there, with a pause after each part."""
        known, changes, tree = self._before.values, self.changes, self.tree
        for run in self._before.runs():
            rows = {key: known[key] for key in run if key not in changes}
            tree.append(rows)
            if self.decoded is not None and self._values is not None:
                values = self._values
                self.decoded.update((key, values[key]) for key in rows if key in values)
            yield
        puts = ((key, kv) for key, kv in changes.items() if kv is not None)
        while part := dict(islice(puts, PART)):
            for key, kv in part.items():
                if key not in known:
                    self.created.add(key)
                row = row_of(kv)
                tree.put(key, row)
                if self.decoded is not None and self._values is not None:
                    if key in self._new:
                        self.decoded[key] = self._new[key]
                    elif key in self._values and is_same_life(known[key], row):
                        self.decoded[key] = self._values[key]
            yield


def let_go(mappings: Iterable[dict[bytes, Any]], events: list[Event]) -> Iterator[None]:
    """Empty mappings and events that are not needed any more, with a pause after each part.

    To free very many objects at once takes long.
    """
    for mapping in mappings:
        while mapping:
            for _ in range(min(len(mapping), PART)):
                mapping.popitem()
            yield
    while events:
        del events[-PART:]
        yield
