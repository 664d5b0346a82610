"""Resync: what stands for a history that was compacted before it was delivered.

Knows: which keys there were, and which there are now. Never knows: how they are listed, or when.

The keys that changed say so themselves: their `mod_revision` is newer than all that was delivered. Those that are gone
say nothing, so a watch that wants to hear of them has to remember every key it knows of: the keys that there were when
it began, listed without their values, and what its events did to them since. That is its cost in memory: each key of
the range, and about a hundred bytes for it.
"""

from collections.abc import Iterable

from etcd_aio.types import Event, EventType, KeyValue, ResyncEvent


class KnownKeys:
    """The keys that a consumer knows of, once everything that was handed over is delivered."""

    __slots__ = ("_changes", "_keys")

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._changes: dict[bytes, bool] | None = {}  # of each key, whether it is there: while the first are listed

    @property
    def is_complete(self) -> bool:
        """Whether the keys that there were at the beginning are among them."""
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
        """These were there at the beginning, before every event."""
        changes = self._changes or {}
        self._changes = None
        self._keys.update(keys)
        for key, is_there in changes.items():
            if is_there:
                self._keys.add(key)
            else:
                self._keys.discard(key)

    def replace(self, keys: Iterable[bytes]) -> frozenset[bytes]:
        """These are there now, and no others; returns those that are gone."""
        before = self._keys
        if self._changes is not None:
            before.update(key for key, is_there in self._changes.items() if is_there)
            self._changes = None
        self._keys = set(keys)
        return frozenset(before - self._keys)


def difference(
    changed: Iterable[KeyValue], gone: Iterable[bytes], revision: int, *, hides_deletes: bool
) -> tuple[Event, ...]:
    """The events that lead to the store as it is at a revision.

    Args:
        changed: the keys that were put since.
        gone: the keys that were deleted since.
        revision: when that was seen. Nobody knows any more when a key was deleted, so a delete carries this one.
        hides_deletes: the consumer does not want deletes.
    """
    puts = [ResyncEvent(EventType.PUT, kv) for kv in sorted(changed, key=lambda kv: kv.mod_revision)]
    if hides_deletes:
        return tuple(puts)
    deletes = [ResyncEvent(EventType.DELETE, KeyValue(key, mod_revision=revision)) for key in sorted(gone)]
    return (*puts, *deletes)
