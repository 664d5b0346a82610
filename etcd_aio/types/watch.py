"""Events of a watch, as frozen values.

Values are secrets, so no `repr` shows them. An event shows its key, a batch only the number of its events.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import Enum
from typing import ClassVar, Final, Protocol, overload

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError
from etcd_aio.types.keys import KeyRange
from etcd_aio.types.kv import Header, KeyValue, shown_key


class EventType(Enum):
    """The kind of change of a key."""

    PUT = "put"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One change of one key.

    Attributes:
        type: the kind of change.
        kv: the key after the change; for a delete only `key` and `mod_revision` are set.
        prev_kv: the key before the change, if requested with `prev_kv=True`, and if it existed and is not compacted.
        is_resync: this event stands for history that was compacted: see `on_compaction="resync"`.
    """

    type: EventType
    kv: KeyValue
    prev_kv: KeyValue | None = None
    is_resync: ClassVar[bool] = False

    @property
    def is_put(self) -> bool:
        """Whether the key was put."""
        return self.type is EventType.PUT

    @property
    def is_delete(self) -> bool:
        """Whether the key was deleted, or expired with its lease."""
        return self.type is EventType.DELETE

    @property
    def is_create(self) -> bool:
        """Whether the put created the key: it did not exist just before."""
        return self.type is EventType.PUT and self.kv.create_revision == self.kv.mod_revision

    @property
    def is_modify(self) -> bool:
        """Whether the put changed a key that existed."""
        return self.type is EventType.PUT and self.kv.create_revision != self.kv.mod_revision

    @property
    def key(self) -> bytes:
        """The key."""
        return self.kv.key

    @property
    def value(self) -> bytes:
        """The value that was put; empty for a delete."""
        return self.kv.value

    def text(self) -> str:
        """The value that was put, as UTF-8 text; empty for a delete.

        Raises:
            ValueError: the value is not UTF-8.
        """
        return self.kv.text()

    def key_text(self) -> str:
        """The key as UTF-8 text.

        Raises:
            ValueError: the key is not UTF-8.
        """
        return self.kv.key_text()

    @property
    def revision(self) -> int:
        """The revision of the change. All changes of one txn have the same revision."""
        return self.kv.mod_revision

    def __repr__(self) -> str:
        kv, resync = self.kv, ", is_resync=True" if self.is_resync else ""
        return (
            f"Event({self.type.name}, {shown_key(kv.key)}, value=<{len(kv.value)} bytes>, "
            f"revision={kv.mod_revision}{resync})"
        )


class ResyncEvent(Event):
    """An event made by the client: the difference between the delivered events and the current keys.

    It has its own class, so that other events need no field for this.
    """

    __slots__ = ()
    is_resync: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, repr=False)
class WatchBatch(Sequence[Event]):
    """One or more whole revisions: a sequence of `Event`, in the order of their revisions.

    It is false if it is empty: then it reports progress, namely that nothing else happened up to its revision.

    Attributes:
        events: the events.
        revision: the last revision that it covers. A new watch from `revision + 1` misses and repeats nothing.
        may_be_early: of a batch without events: events at or before its revision may still follow on this watch, since
            the member is of a release that reports progress too early (before 3.4.25 and 3.5.8), or its release is not
            known yet.
    """

    events: tuple[Event, ...]
    revision: int
    may_be_early: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self.events[index]

    def __repr__(self) -> str:
        return f"WatchBatch(<{len(self.events)} events>, revision={self.revision})"


class EarlyProgress(WatchBatch):
    """A report of progress that may have come ahead of its events. It has its own class, as resync events have."""

    __slots__ = ()
    may_be_early: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WatchBatch) and (self.events, self.revision) == (other.events, other.revision)

    def __hash__(self) -> int:
        return WatchBatch.__hash__(self)


class WatchView(Protocol):
    """Shows the batches of one watch with other keys. Batches are never changed in place: it returns new ones."""

    @property
    def keys(self) -> KeyRange:
        """The range, as the user named it."""
        ...

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        """Show a batch. It may let other tasks run in between; a batch whose showing is cancelled is shown again."""
        ...

    def explain(self, error: EtcdError) -> None:
        """Let an error name the keys as the user did. It may be called again with the same error."""
        ...


_NO_HEADER: Final = Header()


@dataclass(frozen=True, slots=True)
class WatchReply:
    """A message of the server on a watch stream.

    Attributes:
        header: the metadata of the response; its revision is the store's, not that of the events.
        watch_id: the watch; -1 for all watches of the stream, or for a watch that was refused.
        created: whether it answers the creation of a watch.
        canceled: whether the watch has ended.
        compact_revision: if not 0, the watch has ended because it needs revisions before this one.
        cancel_reason: why the watch has ended.
        fragment: whether more events of the same revision follow.
        events: the events, in the order of their revisions.
        encoded_size: bytes that it had on the wire, if it was decoded; else 0.
    """

    header: Header = _NO_HEADER
    watch_id: int = 0
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""
    fragment: bool = False
    events: tuple[Event, ...] = ()
    encoded_size: int = field(default=0, compare=False, repr=False)
