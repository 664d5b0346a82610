"""WatchState: one watch, from its creation to its end, over any number of streams.

A pure state machine: the phase of the watch, the revision from which it goes on, and the batches that its consumer has
not taken yet. It does not know the stream, the other watches or the time.

Theory. A watch is in one phase, and only `_MAY_FOLLOW` leads from one to another:

    phase       meaning                                 followed by
    WAITING     to be created on the open stream,       CREATING
                or on the next one                      PAUSED (a resync found more than the bound)
    CREATING    requested, not answered yet             LIVE, REFUSED
                                                        LISTING (what it needs is compacted)
                                                        WAITING (its stream is lost)
    REFUSED     refused for its stream's token, and     WAITING (there is another token)
                another token is being fetched
    LIVE        the server sends its events             WAITING (its stream is lost)
                                                        PAUSED (its consumer is too slow)
                                                        LISTING (what it needs is compacted)
    PAUSED      cancelled on the server, since its      WAITING (half of it is taken)
                consumer is too slow
    LISTING     its history is compacted; the keys      WAITING (they are listed)
                that exist now are being listed
    ENDED       nothing is added any more               -

Any phase is followed by ENDED, or by LISTING if the store went back.

Three revisions say how far a watch has got. All events before `next_revision` were handed over, or do not concern the
watch. `resume_revision` is where it goes on after any interruption; it is less than `next_revision` only while a
progress notification counts that may have been ahead of its events. `seen` is the last revision whose events were
handed over: events at or below it are dropped, since etcd repeats some. A progress notification never advances `seen`:
some releases of etcd sent notifications ahead of their events, and a late event is better than none. None of the three
ever goes back, unless the store itself has.

A watch "from now" begins behind the revision in the header of its `created` reply. The server registers the watcher
first and reads that revision afterwards, so an event at or below it may still follow. It is dropped, so that a watch
has one definite beginning, wherever its first stream ends. A write after that reply arrived gets a later revision.

Only whole revisions are handed over. Of a fragment everything but the last revision is whole, since revisions come in
order; the rest waits for the next fragment.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import InitVar, field
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio.dataclass import dataclass
from etcd_aio.types import EarlyProgress, Event, KeyRange, WatchBatch, WatchFilter
from etcd_aio.watch.event_source import foreign_key
from etcd_aio.watch.limits import DEFAULT_MAX_PENDING

if TYPE_CHECKING:
    from etcd_aio.errors import EtcdError
    from etcd_aio.watch.compaction_resync import KnownKeys

EVENT_BYTES: Final = 400
"""Memory of an event in CPython without its key and values: the event, its key-value, its share of lists.

The keys and values count as many bytes as their message, if all of it is handed over: some 30 bytes an event too many,
and never too few."""

STEP: Final = 512
"""Watches that are handled in one turn of the loop: a few milliseconds."""

_Pending: TypeAlias = deque[tuple[WatchBatch, int]]
_NOTHING: Final[_Pending] = deque(maxlen=0)  # shared by watches without events: an empty deque takes 760 bytes


class Phase(Enum):
    """The phase of a watch; see above."""

    __hash__ = object.__hash__  # an Enum's own is written in Python, and ten thousand watches may move at once

    WAITING = "waiting"
    CREATING = "creating"
    REFUSED = "refused"
    LIVE = "live"
    PAUSED = "paused"
    LISTING = "listing"
    ENDED = "ended"


_ALWAYS: Final = frozenset({Phase.LISTING, Phase.ENDED})
_MAY_FOLLOW: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.WAITING: _ALWAYS | {Phase.CREATING, Phase.PAUSED},
    Phase.CREATING: _ALWAYS | {Phase.LIVE, Phase.REFUSED, Phase.WAITING},
    Phase.REFUSED: _ALWAYS | {Phase.WAITING},
    Phase.LIVE: _ALWAYS | {Phase.WAITING, Phase.PAUSED},
    Phase.PAUSED: _ALWAYS | {Phase.WAITING},
    Phase.LISTING: _ALWAYS | {Phase.WAITING},
    Phase.ENDED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options of a watch; the attributes are the arguments of `client.watch()`."""

    keys: KeyRange
    prev_kv: bool = False
    progress_notify: bool = False
    filters: tuple[WatchFilter, ...] = ()
    fragment: bool | None = None
    resync: bool = False
    max_pending: int = DEFAULT_MAX_PENDING
    max_outage: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class WatchState:
    """One watch.

    Args:
        options: of the watch.
        start_revision: the first revision of interest; 0 is "from now".
        on_change: called when there is a batch to take, when the server has created the watch, and when it has ended.
    """

    options: WatchOptions
    start_revision: InitVar[int]
    on_change: Callable[[], None]
    phase: Phase = Phase.WAITING
    watch_id: int = -1
    next_revision: int = field(init=False)
    resume_revision: int = field(init=False)
    seen: int = field(init=False)
    taken_revision: int = field(init=False)  # the last revision that the consumer has taken wholly
    start: int = 0  # the first revision that was requested for the present watcher of the server
    created_revision: int = 0  # of the store, when the server created its present watcher
    older_requests: int = 0  # progress requests that were unanswered when it was created
    renewals: int = 0  # of the token, since it was last on a server
    wants_progress: bool = False
    partial: list[Event] | None = None  # a revision of which the rest is still to come
    partial_size: int = 0  # encoded bytes of it, as far as no batch counts them
    pending: _Pending = field(default_factory=lambda: _NOTHING)  # with their sizes
    max_pending: int = field(init=False)
    pending_bytes: int = 0
    pending_events: int = 0
    known: "KnownKeys | None" = None
    error: "EtcdError | None" = None  # why it has ended; None if its consumer closed it
    outage_since: float | None = None
    since: float = 0.0
    reconnects: int = 0
    pauses: int = 0

    def __post_init__(self, start_revision: int) -> None:
        self.max_pending = self.options.max_pending
        self.next_revision = self.resume_revision = start_revision
        self.seen = self.taken_revision = max(start_revision - 1, 0)

    def move(self, phase: Phase) -> None:
        """Go to another phase. Only on a server does a watch have an id, and a revision that goes on.

        Raises:
            RuntimeError: a bug: this phase cannot follow.
        """
        if phase not in _MAY_FOLLOW[self.phase]:
            raise RuntimeError(f"a watch that is {self.phase.value} cannot become {phase.value}")
        self.phase = phase
        if phase is not Phase.LIVE:
            self.watch_id, self.partial = -1, None
        if phase is Phase.PAUSED:
            self.pauses += 1

    def begin(self, watch_id: int, store_revision: int, now: float) -> None:
        """A server has created the watch, by that id and at that revision: a watch "from now" begins behind it."""
        self.move(Phase.LIVE)
        self.watch_id = watch_id
        self.created_revision = store_revision
        self.since = now
        self.renewals = 0
        if not self.next_revision:  # from now
            self.next_revision = self.resume_revision = store_revision + 1
            self.seen = self.taken_revision = store_revision

    def foreign_key(self, events: tuple[Event, ...]) -> bytes | None:
        """The first key of these events that the watch does not cover; None if it covers all."""
        return foreign_key(events, self.options.keys)

    def add_events(self, events: tuple[Event, ...], *, is_fragment: bool, encoded_size: int = 0) -> bool:
        """Hand over new events, as far as they are whole revisions that were not handed over yet.

        Args:
            events: the events of one message, at least one.
            is_fragment: more events of the last revision may follow.
            encoded_size: bytes of that message; 0 if not known.

        Returns:
            Whether there is another batch.
        """
        partial, self.partial = self.partial, None
        if partial:
            encoded_size += self.partial_size
        if is_fragment:
            # Only the new events are read: one delete of a prefix may come in hundreds of fragments.
            last = events[-1].kv.mod_revision
            whole = len(events)
            while whole and events[whole - 1].kv.mod_revision == last:
                whole -= 1
            if not whole and partial and partial[-1].kv.mod_revision == last:
                partial.extend(events)
                self.partial, self.partial_size = partial, encoded_size
                return False
            # What waits for the rest of its revision counts with the batch that is handed over now, if there is one.
            self.partial, self.partial_size = list(events[whole:]), 0 if whole or partial else encoded_size
            events = events[:whole]
        if partial:
            events = (*partial, *events)
        if events and events[0].kv.mod_revision <= self.seen:
            seen = self.seen
            events = tuple(event for event in events if event.kv.mod_revision > seen)
            encoded_size = 0
        if not events:
            return False
        if self.known is not None:
            self.known.note(events)
        revision = self.seen = events[-1].kv.mod_revision
        if revision >= self.resume_revision:
            self.resume_revision = revision + 1
        # Not what an early notification covers: a new watch from behind it would miss what is still to come.
        self._push(WatchBatch(events, self.resume_revision - 1), encoded_size)
        return True

    def add_resync(self, events: tuple[Event, ...], revision: int) -> None:
        """Hand over the events that replace a compacted history up to a revision."""
        self.seen = max(self.seen, revision)
        self.resume_revision = max(self.resume_revision, revision + 1)
        self._push(WatchBatch(events, revision))

    def rewind(self) -> None:
        """Start over: revisions that were handed over mean nothing in a store that went back."""
        self.next_revision = self.resume_revision = 1
        self.seen = 0

    def add_progress(self, revision: int, *, is_reliable: bool) -> None:
        """Everything up to a revision was handed over: the consumer gets an empty batch, if it asked.

        Args:
            revision: the last one that the notification covers.
            is_reliable: the notification cannot have come ahead of events that it covers.
        """
        if self.partial:
            return  # impossible: a notification never comes before the rest of a fragment
        if is_reliable:
            self.resume_revision = max(self.resume_revision, revision + 1)
        if revision < self.next_revision:
            if not self.wants_progress:
                return
            revision = self.next_revision - 1
        if self.options.progress_notify or self.wants_progress:
            self.wants_progress = False
            if self.pending and not self.pending[-1][0].events:
                self.pending_bytes -= self.pending.pop()[1]  # this one says more
            # What this watch would go on behind is certain.
            self._push(WatchBatch((), revision) if revision < self.resume_revision else EarlyProgress((), revision))
        self.next_revision = revision + 1

    def take(self) -> WatchBatch:
        """Remove the oldest batch and return it."""
        batch, size = self.pending.popleft()
        self.pending_bytes -= size
        self.pending_events -= len(batch.events)
        self.taken_revision = batch.revision
        return batch

    def drop(self) -> None:
        """Forget all batches that were not taken."""
        self.pending = _NOTHING
        self.pending_bytes = self.pending_events = 0

    @property
    def is_full(self) -> bool:
        """Whether the consumer is too slow to be sent more."""
        return self.pending_bytes > self.max_pending

    @property
    def is_drained(self) -> bool:
        """Whether the consumer has taken enough to go on."""
        return self.pending_bytes * 2 <= self.max_pending

    def _push(self, batch: WatchBatch, encoded_size: int = 0) -> None:
        events = batch.events
        # The message holds all keys and values, and little else: to add them up takes as long as to read a message.
        size = EVENT_BYTES * (len(events) + 1) + (encoded_size or _content_size(events))
        if not self.pending and events and events[0].kv.mod_revision >= self.next_revision:
            # Progress notifications have covered these revisions without a batch.
            self.taken_revision = max(self.taken_revision, self.next_revision - 1)
        if self.pending is _NOTHING:
            self.pending = deque()
        self.pending.append((batch, size))
        self.pending_bytes += size
        self.pending_events += len(events)
        if batch.revision >= self.next_revision:
            self.next_revision = batch.revision + 1


def _content_size(events: tuple[Event, ...]) -> int:
    """Bytes of the keys and values."""
    size = 0
    for event in events:
        kv, prev_kv = event.kv, event.prev_kv
        size += len(kv.key) + len(kv.value)
        if prev_kv is not None:
            size += len(prev_kv.key) + len(prev_kv.value)
    return size
