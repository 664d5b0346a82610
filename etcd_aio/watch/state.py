"""Watch state: one watch, from its creation to its end, over any number of streams.

Knows: where the watch stands, from which revision it goes on, what its consumer has not taken yet. Never knows: the
stream, the other watches, time, or who waits.

Theory of operation. A watch is in one phase, and only what `_NEXT` lists leads from one to another:

    phase       what it means                         left by
    WAITING     to be created on the open stream,     ASKED
                or on the next one                    FILLED (what a resync found is more than the bound)
    CREATING    asked for, not answered yet           CREATED, COMPACTED, LOST, REFUSED
    REFUSED     refused for its stream's token, and   RENEWED
                another one is being fetched
    LIVE        the server sends its events           FILLED, COMPACTED, LOST
    PAUSED      cancelled on the server, since its    DRAINED
                consumer is too slow
    LISTING     its history is gone; what is there    LISTED
                now is being listed
    ENDED       nothing is added any more

A store that went back takes a watch from wherever it is to LISTING, by ROLLED_BACK.

Three revisions say how far a watch has got. `next_revision` is behind all that it was told of: everything before it was
handed over, or is of no concern to it. `resume_revision` is where it goes on after any interruption, and is less only
while a mark counts that may have been ahead of its events. `seen` is the last revision whose events were handed over:
what comes at or below it is dropped, since etcd says some things twice. A progress mark never advances `seen`: releases
of etcd have sent marks that were ahead of their events, and a late event is better than none. None of them ever goes
back, unless the store itself has.

A watch "from now" begins behind the revision in the header of its `created` reply. The server registers the watcher
first and reads that revision afterwards, so an event at or below it may still follow, and is dropped as one before the
beginning: a watch has one definite beginning, wherever its first stream ends. Whoever writes after that reply arrived
gets a later revision.

Only whole revisions are handed over. Of a fragment everything but the last revision is whole, since revisions come in
order; the rest waits for the next fragment.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio.types import NO_END, Event, KeyRange, WatchBatch, WatchFilter

if TYPE_CHECKING:
    from etcd_aio.errors import EtcdError
    from etcd_aio.watch.resync import KnownKeys

EVENT_BYTES: Final = 400
"""What an event costs beside its key and values: itself, its key-value and its share of lists, in CPython."""


_Pending: TypeAlias = deque[tuple[WatchBatch, int]]
_NOTHING: Final[_Pending] = deque(maxlen=0)  # for all that never had anything: an empty deque takes 760 bytes


class Phase(Enum):
    """Where a watch stands."""

    __hash__ = object.__hash__  # an Enum's own is written in Python, and ten thousand watches may move at once

    WAITING = "waiting"
    CREATING = "creating"
    REFUSED = "refused"
    LIVE = "live"
    PAUSED = "paused"
    LISTING = "listing"
    ENDED = "ended"


class Transition(Enum):
    """What happens to a watch."""

    __hash__ = object.__hash__  # as for a phase

    ASKED = "asked"
    CREATED = "created"
    FILLED = "filled"
    DRAINED = "drained"
    COMPACTED = "compacted"
    LISTED = "listed"
    LOST = "lost"
    REFUSED = "refused"
    RENEWED = "renewed"
    ROLLED_BACK = "rolled back"
    ENDED = "ended"


_NEXT: Final[Mapping[tuple[Phase, Transition], Phase]] = {
    (Phase.WAITING, Transition.ASKED): Phase.CREATING,
    (Phase.WAITING, Transition.FILLED): Phase.PAUSED,
    (Phase.WAITING, Transition.LOST): Phase.WAITING,
    (Phase.CREATING, Transition.CREATED): Phase.LIVE,
    (Phase.CREATING, Transition.COMPACTED): Phase.LISTING,
    (Phase.CREATING, Transition.LOST): Phase.WAITING,
    (Phase.CREATING, Transition.REFUSED): Phase.REFUSED,
    (Phase.REFUSED, Transition.RENEWED): Phase.WAITING,
    (Phase.REFUSED, Transition.LOST): Phase.REFUSED,
    (Phase.LIVE, Transition.FILLED): Phase.PAUSED,
    (Phase.LIVE, Transition.COMPACTED): Phase.LISTING,
    (Phase.LIVE, Transition.LOST): Phase.WAITING,
    (Phase.PAUSED, Transition.DRAINED): Phase.WAITING,
    (Phase.PAUSED, Transition.LOST): Phase.PAUSED,
    (Phase.LISTING, Transition.LISTED): Phase.WAITING,
    (Phase.LISTING, Transition.LOST): Phase.LISTING,
    **{(phase, Transition.ENDED): Phase.ENDED for phase in Phase if phase is not Phase.ENDED},
    **{(phase, Transition.ROLLED_BACK): Phase.LISTING for phase in Phase if phase is not Phase.ENDED},
}


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a user asked for; the attributes are the arguments of `client.watch()`."""

    keys: KeyRange
    prev_kv: bool = False
    progress_notify: bool = False
    filters: tuple[WatchFilter, ...] = ()
    fragment: bool | None = None
    resync: bool = False
    max_pending: int = 16 * 2**20
    max_outage: float | None = None


class WatchState:
    """One watch.

    Args:
        options: what was asked for.
        start_revision: the first revision of interest; 0 is "from now".
        on_change: called when there is more to take, when it is on the server for the first time, when its history has
            to be listed, and when it has ended.
    """

    __slots__ = (
        "created_revision",
        "error",
        "known",
        "marks_before",
        "max_pending",
        "next_revision",
        "on_change",
        "options",
        "outage_since",
        "partial",
        "pauses",
        "pending",
        "pending_bytes",
        "pending_events",
        "phase",
        "reconnects",
        "renewals",
        "resume_revision",
        "seen",
        "since",
        "start",
        "taken_revision",
        "wants_mark",
        "watch_id",
    )

    def __init__(self, options: WatchOptions, start_revision: int, on_change: Callable[[], None]) -> None:
        self.options = options
        self.max_pending = options.max_pending
        self.on_change = on_change
        self.phase = Phase.WAITING
        self.watch_id = -1
        self.next_revision = start_revision
        self.resume_revision = start_revision
        self.seen = max(start_revision - 1, 0)
        self.taken_revision = self.seen  # the last revision that the consumer has taken wholly
        self.start = 0  # from which revision the server was asked for the watcher that there is now
        self.created_revision = 0  # of the store, when the server made the watcher that there is now
        self.marks_before = 0  # answers to come that may have been asked for before it was created
        self.renewals = 0  # of the token, since it was last on a server
        self.wants_mark = False
        self.partial: list[Event] | None = None  # a revision of which the rest is still to come
        self.pending: _Pending = _NOTHING  # with their sizes
        self.pending_bytes = 0
        self.pending_events = 0
        self.known: KnownKeys | None = None
        self.error: EtcdError | None = None  # why it has ended; None if its consumer wanted it so
        self.outage_since: float | None = None
        self.since = 0.0
        self.reconnects = 0
        self.pauses = 0

    def move(self, transition: Transition) -> None:
        """Go to the phase that follows; a transition that the table does not have is a mistake of the caller."""
        self.phase = _NEXT[self.phase, transition]

    @property
    def is_begun(self) -> bool:
        """Whether the first revision of interest is settled."""
        return self.next_revision > 0

    def begin(self, store_revision: int) -> None:
        """The watch is on a server, whose store is at that revision; decides where a watch "from now" begins."""
        if not self.is_begun:
            self.next_revision = self.resume_revision = store_revision + 1
            self.seen = self.taken_revision = store_revision

    def stray(self, events: tuple[Event, ...]) -> bytes | None:
        """The first key that the watch does not cover, of events that it should; None if there is none."""
        keys = self.options.keys
        first, end = keys.key, keys.range_end
        for event in events:  # every event there is passes here
            key = event.kv.key
            if key != first and (not end or key < first or (key >= end and end != NO_END)):
                return key
        return None

    def add_events(self, events: tuple[Event, ...], *, is_fragment: bool) -> None:
        """Hand over events that came, as far as they are whole revisions that were not handed over yet."""
        partial, self.partial = self.partial, None
        if is_fragment:
            # Only what has just come is looked at: one delete of a prefix may come in hundreds of fragments.
            last = events[-1].kv.mod_revision
            whole = len(events)
            while whole and events[whole - 1].kv.mod_revision == last:
                whole -= 1
            if not whole and partial and partial[-1].kv.mod_revision == last:
                partial.extend(events)
                self.partial = partial
                return
            self.partial = list(events[whole:])
            events = events[:whole]
        if partial:
            events = (*partial, *events)
        if events and events[0].kv.mod_revision <= self.seen:
            seen = self.seen
            events = tuple(event for event in events if event.kv.mod_revision > seen)
        if not events:
            return
        if self.known is not None:
            self.known.note(events)
        revision = self.seen = events[-1].kv.mod_revision
        self.resume_revision = max(self.resume_revision, revision + 1)
        self._push(WatchBatch(events, max(revision, self.next_revision - 1)))

    def add_resync(self, events: tuple[Event, ...], revision: int) -> None:
        """Hand over what stands for a history that is gone, up to a revision."""
        self.seen = max(self.seen, revision)
        self.resume_revision = max(self.resume_revision, revision + 1)
        self._push(WatchBatch(events, revision))

    def rewind(self) -> None:
        """Forget how far it was: no revision that was handed over means anything in the store as it is now."""
        self.next_revision = self.resume_revision = 1
        self.seen = 0
        self.partial = None

    def add_mark(self, revision: int, *, is_sure: bool) -> None:
        """Everything up to a revision was handed over: the consumer is told so, if it asked.

        Args:
            revision: the last one that the mark covers.
            is_sure: the mark cannot have come ahead of events that it covers.
        """
        if self.partial:
            return  # cannot be: a mark never comes before the rest of a fragment
        if is_sure:
            self.resume_revision = max(self.resume_revision, revision + 1)
        if revision < self.next_revision:
            if not self.wants_mark:
                return
            revision = self.next_revision - 1
        if self.options.progress_notify or self.wants_mark:
            self.wants_mark = False
            if self.pending and not self.pending[-1][0].events:
                self._forget(*self.pending.pop())  # the newer mark says more
            self._push(WatchBatch((), revision))
        self.next_revision = revision + 1

    def take(self) -> WatchBatch:
        """The oldest batch, which is the consumer's from now on."""
        batch, size = self.pending.popleft()
        self._forget(batch, size)
        self.taken_revision = batch.revision
        return batch

    def drop(self) -> None:
        """Forget what was not taken."""
        self.pending = _NOTHING
        self.partial = None
        self.pending_bytes = self.pending_events = 0

    @property
    def is_full(self) -> bool:
        """Whether no more is to be taken from the server for now."""
        return self.pending_bytes > self.max_pending

    @property
    def is_drained(self) -> bool:
        """Whether enough was taken by the consumer to go on."""
        return self.pending_bytes * 2 <= self.max_pending

    def _push(self, batch: WatchBatch) -> None:
        size = size_of(batch)
        if not self.pending and batch.events and batch.events[0].kv.mod_revision >= self.next_revision:
            self.taken_revision = max(self.taken_revision, self.next_revision - 1)  # what marks said without a batch
        if self.pending is _NOTHING:
            self.pending = deque()
        self.pending.append((batch, size))
        self.pending_bytes += size
        self.pending_events += len(batch.events)
        if batch.revision >= self.next_revision:
            self.next_revision = batch.revision + 1

    def _forget(self, batch: WatchBatch, size: int) -> None:
        self.pending_bytes -= size
        self.pending_events -= len(batch.events)


def size_of(batch: WatchBatch) -> int:
    """About how many bytes of memory a batch takes."""
    events = batch.events
    size = EVENT_BYTES * (len(events) + 1)
    for event in events:
        kv, prev_kv = event.kv, event.prev_kv
        size += len(kv.key) + len(kv.value)
        if prev_kv is not None:
            size += len(prev_kv.key) + len(prev_kv.value)
    return size
