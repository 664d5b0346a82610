"""The watchers of a member: which events each gets, and when. Pure: the time is an argument, in seconds.

A watcher is synced if it has got everything up to the current revision; then it gets the changes of each transaction at
once. One that begins in the past is unsynced; from time to time the hub lets such watchers catch up, by so many
revisions at once. If what it needs was compacted by then, it is told so and gets nothing more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.store import MvccStore

_EVERY: Final = 0.1  # seconds between two rounds of catching up
_WATCHERS_AT_ONCE: Final = 512  # in one round
_REVISIONS_AT_ONCE: Final = 1000  # of one watcher in one round
_DELETE: Final = pb.EventEventType.DELETE
_PUT: Final = pb.EventEventType.PUT


class WatcherState(Enum):
    """How far a watcher is."""

    SYNCED = "synced"
    UNSYNCED = "unsynced"
    COMPACTED = "compacted"  # it gets nothing more


@dataclass(frozen=True, slots=True)
class WatcherDelivery:
    """Events for a watcher.

    Attributes:
        revision: the current one when it was made; 0 if it tells of a compaction.
        events: whole revisions, in order; empty if it tells of progress or of a compaction.
        compacted: the oldest revision that there is, if the watcher needs an older one.
    """

    revision: int
    events: Sequence[pb.Event] = ()
    compacted: int = 0


@dataclass(slots=True, eq=False)
class HubWatcher:
    """One watcher.

    Attributes:
        key: the first key.
        end: the key behind the last one; empty for `key` alone, and a zero byte for all keys from `key` on.
        start: the revision that it begins at; 0 for the next one.
        deliver: gets its events.
        without_puts: puts are left out.
        without_deletes: deletions are left out.
        state: how far it is.
        next: it has got everything below this revision.
    """

    key: bytes
    end: bytes
    start: int
    deliver: Callable[[WatcherDelivery], None]
    without_puts: bool = False
    without_deletes: bool = False
    state: WatcherState = WatcherState.UNSYNCED
    next: int = 0

    def wants(self, change: pb.KeyValue) -> bool:
        """Whether a change is in its interval, and was not delivered yet."""
        if change.mod_revision < self.next:
            return False
        if not self.end:
            return change.key == self.key
        return self.key <= change.key and (self.end == b"\x00" or change.key < self.end)

    def send(self, revision: int, events: Iterable[pb.Event]) -> None:
        """Deliver the events that it does not leave out; nothing if none is left."""
        kept = [event for event in events if not (self.without_puts if event.type == _PUT else self.without_deletes)]
        if kept:
            self.deliver(WatcherDelivery(revision, kept))


def event_of(change: pb.KeyValue) -> pb.Event:
    """The event of a change."""
    return pb.Event(type=_PUT if change.version else _DELETE, kv=change)


@dataclass(slots=True)
class WatchHub:
    """The watchers of one member.

    Args:
        store: the store.
    """

    store: MvccStore
    _single: dict[bytes, dict[HubWatcher, None]] = field(default_factory=dict)  # synced ones of a single key, in order
    _ranges: dict[HubWatcher, None] = field(default_factory=dict)  # other synced ones
    _unsynced: dict[HubWatcher, None] = field(default_factory=dict)
    _round: float = inf  # when the next round is due

    def __len__(self) -> int:
        return len(self._unsynced) + len(self._ranges) + sum(map(len, self._single.values()))

    def add(self, watcher: HubWatcher, now: float) -> None:
        """Add a watcher. One that begins in the past catches up in a round of its own if no other is due."""
        if watcher.start and watcher.start <= self.store.revision:
            watcher.next = watcher.start
            self._unsynced[watcher] = None
            self._round = min(self._round, now)
        else:
            watcher.next = max(self.store.revision + 1, watcher.start)
            self._synced(watcher)

    def remove(self, watcher: HubWatcher) -> None:
        """Remove a watcher, which gets nothing more."""
        self._unsynced.pop(watcher, None)
        self._ranges.pop(watcher, None)
        same = self._single.get(watcher.key)
        if same is not None:
            same.pop(watcher, None)
            if not same:
                del self._single[watcher.key]

    def notify(self, revision: int, changes: Sequence[pb.KeyValue]) -> None:
        """Deliver the changes of a transaction to synced watchers."""
        batches: dict[HubWatcher, list[pb.Event]] = {}
        for change in changes:
            for watcher in (*self._single.get(change.key, ()), *self._ranges):
                if watcher.wants(change):
                    batches.setdefault(watcher, []).append(event_of(change))
        for watcher, events in batches.items():
            watcher.next = revision + 1
            watcher.send(revision, events)

    def progress(self, watchers: Iterable[HubWatcher], *, waits_for_start: bool = True) -> int:
        """The revision up to which these have got everything; 0 if one of them has not, or has not begun."""
        revision = self.store.revision
        is_whole = all(
            one.state is WatcherState.SYNCED and (one.start <= revision or not waits_for_start) for one in watchers
        )
        return revision if is_whole else 0

    def due(self) -> float:
        """When to call `catch_up` next; infinity if all are synced."""
        return self._round if self._unsynced else inf

    def catch_up(self, now: float) -> None:
        """Let unsynced watchers catch up, if a round is due."""
        if now < self.due():
            return
        self._round = now + _EVERY
        current, compacted = self.store.revision, self.store.compacted
        chosen = list(self._unsynced)[:_WATCHERS_AT_ONCE]
        first = min((one.next for one in chosen if one.next >= compacted), default=current + 1)
        changes = self.store.changes(first, current)
        for watcher in chosen:
            if watcher.next < compacted:
                watcher.state = WatcherState.COMPACTED
                del self._unsynced[watcher]
                watcher.deliver(WatcherDelivery(0, compacted=compacted))
                continue
            events, more = _next_revisions(watcher, changes)
            watcher.next = more or current + 1
            if not more:
                del self._unsynced[watcher]
                self._synced(watcher)
            watcher.send(current, events)
        if not self._unsynced:
            self._round = inf

    def _synced(self, watcher: HubWatcher) -> None:
        watcher.state = WatcherState.SYNCED
        if watcher.end:
            self._ranges[watcher] = None
        else:
            self._single.setdefault(watcher.key, {})[watcher] = None


def _next_revisions(watcher: HubWatcher, changes: Sequence[pb.KeyValue]) -> tuple[list[pb.Event], int]:
    """The events of the next revisions for a watcher, and the revision of the first one that has to wait; 0 if none."""
    events: list[pb.Event] = []
    last = revisions = 0
    for change in changes:
        if not watcher.wants(change):
            continue
        if change.mod_revision != last:
            if revisions == _REVISIONS_AT_ONCE:
                return events, change.mod_revision
            last, revisions = change.mod_revision, revisions + 1
        events.append(event_of(change))
    return events, 0
