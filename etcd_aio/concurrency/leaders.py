"""Observe: from the keys of an election to its leaders, one after the other. Pure.

Theory. The leader of an election is the candidate with the oldest key. What is told changes only between revisions: all
changes of one revision are applied, then the oldest key is compared with the one that was told last. So every leader
that existed at some revision is told once, in order, and a candidate that is not the oldest never is.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from etcd_aio import Event, KeyValue
from etcd_aio.concurrency.place import LineKeys
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Leader:
    """The leader of an election, as the store has it.

    Attributes:
        key: its key.
        value: what it has proclaimed.
        lease: the id of the lease that the key is attached to.
        revision: the revision that put this value.
        fencing_token: the revision that created the key; later leaders have larger ones.
    """

    key: bytes
    value: bytes
    lease: int
    revision: int
    fencing_token: int

    @classmethod
    def of(cls, kv: KeyValue) -> "Leader":
        """The leader whose key this is."""
        return cls(kv.key, kv.value, kv.lease, kv.mod_revision, kv.create_revision)

    def text(self) -> str:
        """The value as UTF-8 text.

        Raises:
            ValueError: the value is not UTF-8.
        """
        return self.value.decode()

    def __repr__(self) -> str:
        return f"Leader({self.key!r}, value=<{len(self.value)} bytes>, fencing_token={self.fencing_token})"


_Told: TypeAlias = tuple[bytes, int, bytes]
_NONE: Final[_Told] = (b"", 0, b"")


class Candidates:
    """The candidates of one election, and which leader was told last.

    Args:
        keys: which keys are those of candidates.
    """

    __slots__ = ("_alive", "_keys", "_listed", "_told")

    def __init__(self, keys: LineKeys) -> None:
        self._keys = keys
        self._alive: dict[bytes, KeyValue] = {}  # oldest first
        self._listed = 0  # the revision of the list, until the events are past it
        self._told: _Told = _NONE

    def listed(self, kvs: Iterable[KeyValue], revision: int) -> Leader | None:
        """The keys are these at a revision: the first thing to know. Returns the leader to tell first."""
        self._alive = {kv.key: kv for kv in kvs if self._keys.has(kv)}
        self._sort()
        self._listed = revision
        leader, self._told = self._oldest()
        return leader

    def changed(self, events: Sequence[Event], revision: int) -> list[Leader | None]:
        """Some whole revisions have passed.

        Args:
            events: their events, in order. Those up to the revision of the list are left out.
            revision: the last one that has passed.

        Returns:
            What to tell now, in order: each new leader, and None where there is no candidate any more.
        """
        news: list[Leader | None] = []
        for is_resync, group in groupby(events, lambda event: event.is_resync or event.revision):
            for event in group:
                if event.revision > self._listed:
                    self._apply(event)
            if is_resync is True:  # the difference after a compaction: one state, in no order
                self._sort()
            leader, told = self._oldest()
            if told != self._told:
                self._told = told
                news.append(leader)
        if revision > self._listed:
            self._listed = 0  # if the store ever goes back to a backup, smaller revisions are news
        return news

    def _apply(self, event: Event) -> None:
        kv = event.kv
        if not event.is_put or not self._keys.has(kv):  # a put without its lease makes it no candidate any more
            self._alive.pop(kv.key, None)
            return
        is_late = kv.key not in self._alive and kv.create_revision != kv.mod_revision  # it has its lease again
        self._alive[kv.key] = kv  # in its place, or behind the others
        if is_late:
            self._sort()

    def _sort(self) -> None:
        self._alive = {kv.key: kv for kv in sorted(self._alive.values(), key=lambda kv: kv.create_revision)}

    def _oldest(self) -> tuple[Leader | None, _Told]:
        kv = next(iter(self._alive.values()), None)
        return (None, _NONE) if kv is None else (Leader.of(kv), (kv.key, kv.create_revision, kv.value))
