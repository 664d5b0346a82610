"""Conflation: many steps as one difference, which takes no more memory than the keys that it is about. Pure."""

from collections.abc import Iterable

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache.steps import ContentStep
from etcd_aio.types import ResyncEvent


class Conflation:
    """The difference between the content that a follower knows and the present one.

    A key that was created and deleted again in between leaves nothing behind.

    Attributes:
        changes: the keys that differ, with what they are now; None is a key that is gone.
    """

    __slots__ = ("_created", "changes")

    def __init__(self) -> None:
        self.changes: dict[bytes, KeyValue | None] = {}
        self._created: set[bytes] = set()  # those of them that the follower does not know

    def add(self, step: ContentStep) -> None:
        """Add a step."""
        if not self.changes:
            self.changes.update(step.changes)
            self._created.update(step.created)
            return
        for key, kv in step.changes.items():
            self._note(key, kv, is_created=key in step.created)

    def add_events(self, events: Iterable[Event]) -> None:
        """Add the events of a watch."""
        for event in events:
            kv = event.kv
            self._note(kv.key, kv if event.is_put else None, is_created=event.is_put and kv.version == 1)

    def _note(self, key: bytes, kv: KeyValue | None, *, is_created: bool) -> None:
        changes, created = self.changes, self._created
        if kv is None and key in created:
            created.discard(key)
            del changes[key]
            return
        if is_created and key not in changes:
            created.add(key)
        changes[key] = kv

    def take(self) -> dict[bytes, KeyValue | None]:
        """Remove the changes and return them."""
        taken, self.changes = self.changes, {}
        self._created = set()
        return taken


def resync_events(changes: dict[bytes, KeyValue | None], revision: int) -> tuple[Event, ...]:
    """The events that lead to a content.

    Args:
        changes: the keys that differ.
        revision: of the content. The revisions of the deletes are lost, so all of them have this one.
    """
    puts = sorted((kv for kv in changes.values() if kv is not None), key=lambda kv: kv.mod_revision)
    deletes = sorted(key for key, kv in changes.items() if kv is None)
    return (
        *(ResyncEvent(EventType.PUT, kv) for kv in puts),
        *(ResyncEvent(EventType.DELETE, KeyValue(key, mod_revision=revision)) for key in deletes),
    )
