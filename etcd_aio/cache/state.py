"""Replica: a copy of a range of the store, exact at one revision, and what is known about its age. Pure.

Theory. The content is what a range at `revision` would return, always. Three things move it on:

    a step       the events of one or more whole revisions, applied at once: the revision is that of the last one
    a mark       a progress notification: nothing changed up to its revision, so the revision alone moves
    a validation a linearizable read of what is newer: no key has a newer mod_revision, and there are as many keys as
                 here. Then nothing differs: a put would show itself, a deletion makes them fewer, and only a put makes
                 them more again. So the content is right for the revision of that read too. Steps may come meanwhile:
                 the keys of the answer were not written since it was asked for, so they are in this content too, and
                 as many as here means all.

Everything that a mark covers came before it, if the member's release is right about that; where it may not be, marks do
not count (`may_be_early`), and validations take their place. Behind a validation events may follow that are not newer
than the revision: of keys that were created and deleted in between. They change nothing. Followers get them as soon as
their effects have cancelled out, so that the keys that a follower knows are those of the content.

Each event is compared with the content: a put has the next version of the key, a delete is of a key that exists. If one
does not fit, if a linearizable read returns a revision that was passed already, or if the watch finds that the store
went back, this is another store than the one that was followed, such as a restored backup. Nothing of it is mixed into
the content: that is loaded again, and replaced at once.

    state      meaning                                        left by
    LOADING    there is no content yet                        `loaded`
    READY      the content follows the store                  `fall_behind`, `store_replaced`
    LAGGING    no member serves the watch, or the history     `resume`, `loaded`, `store_replaced`
               that comes next is compacted
    BROKEN     the store is another one; the content is the   `loaded`
               last of the one before
    CLOSED     left, or ended by an error; not readable       -

    `close` leaves every state. The revision never goes back but from BROKEN to READY.

Age. Each linearizable read that was answered leaves a pair: when it was sent, and its revision R. While the revision
here is at least R, the content has every write that was finished when that read was sent. So what it lacks is younger
than `now` minus the sending time of the newest such pair; this is the age. All reads count, in whatever order the
content catches up with them.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import Enum
from math import inf
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from etcd_aio import Event, KeyValue, WatchBatch
from etcd_aio.cache.base import Base
from etcd_aio.cache.rows import KeyValues, Row, is_same_life, key_value, row_of
from etcd_aio.cache.steps import ContentStep, Staging, StoreReplaced, note_changes
from etcd_aio.cache.tree import Tree

T = TypeVar("T")

_MOST_PAIRS: Final = 16  # that wait for the content; beyond that every second one is dropped, and the age is rounded up
_revision_of: Final = attrgetter("kv.mod_revision")
_DOUBTFUL: Final = 2  # early marks in a row: the first of each member is one, since its release is not known yet


class CacheState(Enum):
    """The state of a cache.

    Attributes:
        LOADING: the keys are being read for the first time.
        READY: the cache follows the store.
        LAGGING: no member serves its watch, or it missed history that is compacted. Local reads go on, and get older.
        BROKEN: the store was replaced underneath, by a backup for example, and is being read again. Until that is done,
            local reads return the last state of the store before.
        CLOSED: the cache was left, or has ended by an error. It cannot be read.
    """

    LOADING = "loading"
    READY = "ready"
    LAGGING = "lagging"
    BROKEN = "broken"
    CLOSED = "closed"


class Replica(Generic[T]):
    """A copy of a range; see above.

    Args:
        is_decoded: whether values are decoded; if not, the values are the `KeyValue`s themselves.

    Attributes:
        state: its state.
        tree: the keys.
        values: what users read, by `[]`: the decoded values, or the `KeyValue`s.
        revision: of the content; 0 before there is any.
        epoch: how often the content was given up, since the store was replaced, or the cache has ended. What was begun
            before must not be applied behind it.
        early_marks: marks that did not count, since the last that did.
        steps: how often the content has changed.
    """

    __slots__ = (
        "_before_base",
        "_confirmed",
        "_is_decoded",
        "_loaded_at",
        "_pairs",
        "_passing",
        "_passing_keys",
        "early_marks",
        "epoch",
        "revision",
        "state",
        "steps",
        "tree",
        "values",
    )

    def __init__(self, *, is_decoded: bool) -> None:
        self._is_decoded = is_decoded
        self.state = CacheState.LOADING
        self.tree: Tree[Row] = Tree()
        self.values: dict[bytes, T] = {}
        self.revision = 0
        self.epoch = 0
        self.early_marks = 0
        self._loaded_at = 0  # the revision of the base
        self._before_base = 0  # the revision when the load began
        self.steps = 0
        self._confirmed = -inf  # when the newest read was sent whose revision the content has
        self._pairs: list[tuple[float, int]] = []  # of reads whose revisions it does not have yet
        self._passing: list[Event] = []  # behind a validation, whose effects have not cancelled out yet
        self._passing_keys: dict[bytes, KeyValue | None] = {}  # these effects

    # State.

    def fall_behind(self) -> None:
        """No member serves the watch, or the history that comes next is compacted."""
        if self.state is CacheState.READY:
            self.state = CacheState.LAGGING

    def resume(self) -> None:
        """A watch goes on behind the content."""
        if self.state is CacheState.LAGGING:
            self.state = CacheState.READY

    def store_replaced(self) -> None:
        """The store is another one."""
        if self.is_exact:
            self.state = CacheState.BROKEN
        self.epoch += 1
        self._pairs.clear()

    def close(self) -> None:
        """The cache was left, or has ended."""
        self.state = CacheState.CLOSED
        self.epoch += 1
        self.tree, self.values = Tree(), {}  # every read finds nothing, and looks at the state then

    # Content.

    @property
    def count(self) -> int:
        """How many keys have values that can be read."""
        return len(self.values) if self._is_decoded else len(self.tree)

    def kv(self, key: bytes) -> KeyValue | None:
        """A key with its raw value; None if there is no such key."""
        row = self.tree.values.get(key)
        return None if row is None else key_value(row)

    def new_base(self) -> Base[T]:
        """A new base, into which the next content is loaded, from a read that is sent later."""
        self._before_base = self.revision
        earlier = None if self.state is CacheState.LOADING else self.tree
        is_same_store = self.state is not CacheState.BROKEN
        return Base(earlier, self.values if self._is_decoded else None, is_same_store=is_same_store)

    def loaded(self, base: Base[T], revision: int, sent: float) -> ContentStep:
        """Replace the content.

        Args:
            base: the new one, finished.
            revision: that it was read at.
            sent: when the first read was sent.
        """
        if self.state is CacheState.BROKEN:
            self._confirmed = -inf
        elif revision < self._before_base:
            raise StoreReplaced(f"it is at revision {revision}, and was at {self._before_base} before")
        elif revision < self.revision:  # a validation came meanwhile: the content is right for later than the base
            self._loaded_at = self.revision
            self.forget_passing()
            self.state = CacheState.READY
            self.probed(sent, revision)
            return ContentStep(self.revision, {}, set(), is_load=True)
        self._replace(base.tree, base.decoded)
        self.forget_passing()
        self._loaded_at = revision
        self.state = CacheState.READY
        self.revision = revision
        self.probed(sent, revision)
        self._settle()
        return ContentStep(revision, base.changes, base.created, is_load=True)

    def new_events(self, batch: WatchBatch) -> tuple[Event, ...]:
        """The events of a batch, without those that the base has already."""
        events = batch.events
        if events and events[0].kv.mod_revision <= self._loaded_at:
            base = self._loaded_at
            return tuple(event for event in events if event.kv.mod_revision > base)
        return events

    def apply(self, events: tuple[Event, ...], decoded: Mapping[bytes, T]) -> ContentStep:
        """Apply the events of whole revisions.

        Args:
            events: not empty.
            decoded: the decoded values of their puts, as far as they could be decoded.

        Raises:
            StoreReplaced: an event does not fit the content. Nothing was changed.
        """
        history = events
        if events[0].kv.mod_revision <= self.revision:
            passing = tuple(event for event in events if event.kv.mod_revision <= self.revision)
            events = events[len(passing) :]
            history = self._passed(passing) + events
        tree, known, values = self.tree, self.tree.values, self.values
        changes: dict[bytes, KeyValue | None] = {}
        note_changes(events, known, changes)
        created = {key for key, kv in changes.items() if kv is not None and key not in known}
        for key, kv in changes.items():
            if kv is None:
                tree.delete(key)
                values.pop(key, None)
            else:
                row, before = row_of(kv), known.get(key)
                tree.put(key, row)
                if key in decoded:
                    values[key] = decoded[key]
                elif not self._is_decoded or before is None or not is_same_life(before, row):
                    values.pop(key, None)
        if events:
            self.steps += 1
            self.revision = events[-1].kv.mod_revision
            self._settle()
            self.forget_passing()
        return ContentStep(self.revision, changes, created, history)

    def stage(self) -> Staging[T]:
        """A place to make a step of very many events; until `apply_staged` nothing else may change the content."""
        return Staging(self.tree, self.values if self._is_decoded else None)

    def apply_staged(self, staging: Staging[T], events: tuple[Event, ...]) -> ContentStep:
        """Replace the content by what was built.

        Args:
            staging: the content.
            events: that were added to it.
        """
        if staging.revision <= self.revision:  # a validation came meanwhile: all of it cancels itself out
            return ContentStep(self.revision, {}, set(), self._passed(events))
        self._replace(staging.tree, staging.decoded)
        self.revision = staging.revision
        self._settle()
        self.forget_passing()
        return ContentStep(self.revision, staging.changes, staging.created, events)

    def _passed(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Note events that are not newer than the content; returns all that were noted, once they cancel out.

        They do so at the revision of the validation at the latest, so no more wait than come between two of these.
        """
        note_changes(events, self.tree.values, self._passing_keys)
        self._passing += events
        if self._passing_keys:
            return ()
        passed = tuple(self._passing)
        self._passing.clear()
        return passed

    def forget_passing(self) -> None:
        """Later events are newer than the content: the rest of the noted ones was lost with its watch, or is here."""
        self._passing.clear()
        self._passing_keys.clear()

    def _replace(self, tree: Tree[Row], decoded: dict[bytes, T] | None) -> None:
        values: Any = KeyValues(tree.values) if decoded is None else decoded  # KeyValue is what T is without a decoder
        self.tree, self.values = tree, values
        self.steps += 1

    # Revision and age.

    def mark(self, batch: WatchBatch) -> None:
        """The watch has reported progress."""
        if batch.may_be_early:
            self.early_marks += 1
        else:
            self.early_marks = 0
            self._advance(batch.revision)

    @property
    def is_exact(self) -> bool:
        """Whether the content is one of the store that is followed."""
        return self.state is CacheState.READY or self.state is CacheState.LAGGING

    @property
    def has_marks(self) -> bool:
        """Whether it is worth to wait for a mark: not on releases whose marks do not count."""
        return self.early_marks < _DOUBTFUL

    def validated(self, revision: int, count: int, *, has_newer: bool) -> bool:
        """A validation is answered.

        Args:
            revision: of the read.
            count: of the keys of the range.
            has_newer: whether any key was newer than the content when it was sent.

        Returns:
            Whether the content is right for that revision.
        """
        if has_newer or count != len(self.tree):
            return False
        self._advance(revision)
        return True

    def probed(self, sent: float, revision: int) -> None:
        """A linearizable read was answered.

        Args:
            sent: when it was sent.
            revision: of the store, in its answer.
        """
        if revision <= self.revision:
            self._confirmed = max(self._confirmed, sent)
            return
        if self._pairs and self._pairs[-1][1] == revision:
            self._pairs.pop()  # the later read says more
        self._pairs.append((sent, revision))
        if len(self._pairs) > _MOST_PAIRS:
            del self._pairs[1:-1:2]

    def age(self, now: float) -> float:
        """Seconds: no write is missing that was finished longer ago. Infinite if nothing is known."""
        return now - self._confirmed

    def _advance(self, revision: int) -> None:
        if revision > self.revision:
            self.revision = revision
            self._settle()

    def _settle(self) -> None:
        """The revision has moved on."""
        pairs = self._pairs
        while pairs and pairs[0][1] <= self.revision:
            self._confirmed = max(self._confirmed, pairs.pop(0)[0])


def whole_revisions(events: tuple[Event, ...], size: int) -> Iterator[tuple[Event, ...]]:
    """Cut events into parts of about `size`, between revisions only."""
    begin = 0
    while len(events) - begin > size:
        last = events[begin + size - 1].kv.mod_revision
        end = bisect_right(events, last, begin + size, key=_revision_of)
        yield events[begin:end]
        begin = end
    if begin < len(events):
        yield events[begin:]
