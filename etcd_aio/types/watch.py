"""Events: what a watch delivers, as frozen values.

Knows: the shape of an event, of a batch of them, and of the server's reply that carried it. Never knows: wire messages,
or when a revision is whole.

Values are secrets: no `repr` shows one. An event shows its key, a batch only how many events it has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, overload

from etcd_aio.types.kv import Header, KeyValue, shown_key


class EventType(Enum):
    """What happened to a key."""

    PUT = "put"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One change of one key.

    Attributes:
        type: what happened.
        kv: the key as the change left it; of a delete only `key` and `mod_revision` are set.
        prev_kv: the key as it was before, if `prev_kv=True` asked for it, it existed, and is not compacted.
        is_resync: the history was compacted, and this event stands for what it held: see `on_compaction="resync"`.
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
        """The revision of the change. All changes of one txn share theirs."""
        return self.kv.mod_revision

    def __repr__(self) -> str:
        kv, resync = self.kv, ", is_resync=True" if self.is_resync else ""
        return (
            f"Event({self.type.name}, {shown_key(kv.key)}, value=<{len(kv.value)} bytes>, "
            f"revision={kv.mod_revision}{resync})"
        )


class ResyncEvent(Event):
    """An event that no server sent: the difference between what was delivered and what is there now.

    A class of its own, so that no other event pays for the mark.
    """

    __slots__ = ()
    is_resync: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, repr=False)
class WatchBatch(Sequence[Event]):
    """One or more whole revisions: a sequence of `Event`, in the order of their revisions.

    It is false while empty: then it is a progress mark, which says that there was nothing up to its revision.

    Attributes:
        events: the events.
        revision: the last revision it covers. A new watch from `revision + 1` misses and repeats nothing.
    """

    events: tuple[Event, ...]
    revision: int

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


_NO_HEADER: Final = Header()


@dataclass(frozen=True, slots=True)
class WatchReply:
    """What the server says on a watch stream.

    Attributes:
        header: who says it, and how far its store is: not how far the events are.
        watch_id: which watch it is about; -1 for all of the stream, or for one that was refused.
        created: it answers the creation of a watch.
        canceled: the watch is over.
        compact_revision: the watch is over since it wanted revisions before this one.
        cancel_reason: why it is over.
        fragment: more of the same follows.
        events: what happened, in the order of the revisions.
    """

    header: Header = _NO_HEADER
    watch_id: int = 0
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""
    fragment: bool = False
    events: tuple[Event, ...] = ()
