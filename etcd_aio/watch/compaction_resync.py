"""Resync: the events that replace a history which was compacted before it was delivered. Pure.

A key that changed shows it: its `mod_revision` is newer than all that was delivered. A key that is gone shows nothing,
so a watch that reports deletes remembers every key of its range: those that existed when it began, listed without their
values, and the changes by its events since. That is its cost in memory: each key of the range, and about a hundred
bytes for it.
"""

from collections.abc import Iterable

from etcd_aio.types import Event, EventType, KeyValue, ResyncEvent


class KnownKeys:
    """The keys that exist from the consumer's view, once everything that was handed over is delivered."""

    __slots__ = ("_changes", "_keys")

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._changes: dict[bytes, bool] | None = {}  # whether each key exists, while the first ones are listed

    @property
    def is_complete(self) -> bool:
        """Whether the keys that existed at the beginning are included."""
        return self._changes is None

    def note(self, events: Iterable[Event]) -> None:
        """Events were handed over."""
        keys, changes, put = self._keys, self._changes, EventType.PUT
        if changes is not None:
            for event in events:
                changes[event.kv.key] = event.type is put
            return
        for event in events:
            if event.type is put:
                keys.add(event.kv.key)
            else:
                keys.discard(event.kv.key)

    def begin(self, keys: Iterable[bytes]) -> None:
        """Add the keys that existed at the beginning, before every event."""
        changes = self._changes or {}
        self._changes = None
        self._keys.update(keys)
        for key, exists in changes.items():
            if exists:
                self._keys.add(key)
            else:
                self._keys.discard(key)

    def replace(self, keys: Iterable[bytes]) -> frozenset[bytes]:
        """Replace all keys by those that exist now; returns the keys that are gone."""
        before = self._keys
        if self._changes is not None:
            before.update(key for key, exists in self._changes.items() if exists)
            self._changes = None
        self._keys = set(keys)
        return frozenset(before - self._keys)


def difference(
    changed: Iterable[KeyValue], gone: Iterable[bytes], revision: int, *, hides_deletes: bool
) -> tuple[Event, ...]:
    """The events that lead to the state of the store at a revision.

    Args:
        changed: the keys that were put since.
        gone: the keys that were deleted since.
        revision: of that state. The revisions of the deletes are lost, so all of them carry this one.
        hides_deletes: leave out deletes.
    """
    puts = [ResyncEvent(EventType.PUT, kv) for kv in sorted(changed, key=lambda kv: kv.mod_revision)]
    if hides_deletes:
        return tuple(puts)
    deletes = [ResyncEvent(EventType.DELETE, KeyValue(key, mod_revision=revision)) for key in sorted(gone)]
    return (*puts, *deletes)
