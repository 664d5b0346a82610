"""The epoch of a ring, over histories of a group that reach each ring in other batches: it is a fencing token.

A history is drawn, of revisions with joins, leaves, changed values and keys of other kinds. Several views follow it,
each from a revision of its own, in batches of their own, some of which are lost, so that the members are read anew.
After each step of each view its members, its epoch and its revision are noted, and all notes are compared.
"""

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache import KeySetChanges
from etcd_aio.cache.steps import ContentStep
from etcd_aio.recipes import HashRing
from etcd_aio.recipes.group.members import member_name

PREFIX = b"g/"
KEYS = (b"g/a", b"g/b", b"g/c", b"g/sub/a", b"g/\xff")


@dataclass(frozen=True)
class Note:
    members: frozenset[bytes]
    epoch: int
    revision: int


@st.composite
def histories(draw: st.DrawFn) -> list[list[Event]]:
    """Revisions from 2 on."""
    versions: dict[bytes, int] = {}
    history: list[list[Event]] = []
    for revision in range(2, 2 + draw(st.integers(1, 14))):
        events = []
        for key in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)):
            if key in versions and draw(st.booleans()):
                del versions[key]
                events.append(Event(EventType.DELETE, KeyValue(key, mod_revision=revision)))
            else:
                versions[key] = versions.get(key, 0) + 1
                events.append(Event(EventType.PUT, KeyValue(key, b"", 0, revision, versions[key])))
        history.append(events)
    return history


def is_member(key: bytes) -> bool:
    return member_name(key, PREFIX) is not None


def members_at(history: list[list[Event]], revision: int) -> frozenset[bytes]:
    alive: set[bytes] = set()
    for event in (event for events in history[: revision - 1] for event in events if is_member(event.key)):
        (alive.add if event.is_put else alive.discard)(event.key)
    return frozenset(alive)


def last_change(history: list[list[Event]], revision: int) -> int:
    """The revision of the newest join or leave up to a revision; 0 if there was none."""
    changes = [now for now in range(2, revision + 1) if joins_or_leaves(history[now - 2])]
    return max(changes, default=0)


def joins_or_leaves(events: list[Event]) -> bool:
    return any(is_member(event.key) and (not event.is_put or event.kv.version == 1) for event in events)


def watched(data: st.DataObject, history: list[list[Event]], loop: asyncio.AbstractEventLoop) -> list[Note]:
    newest = len(history) + 1
    revision = data.draw(st.integers(1, newest), label="read at")
    followed = KeySetChanges(lambda _: None, loop, is_member, revision)
    read_at = revision
    notes = [Note(members_at(history, revision), followed.revision, revision)]
    while revision < newest:
        end = data.draw(st.integers(revision + 1, newest), label="up to")
        if data.draw(st.integers(0, 4), label="lost") == 0:
            read_at = end
            followed.add(ContentStep(end, {}, set(), is_load=True))
        else:
            batch = tuple(event for events in history[revision - 1 : end - 1] for event in events)
            followed.add(ContentStep(end, {}, set(), batch))
        revision = end
        if (last := last_change(history, revision)) > read_at:
            assert followed.revision == last, "all that have the newest change have its epoch"
        notes.append(Note(members_at(history, revision), followed.revision, revision))
    return notes


@settings(max_examples=400)
@given(histories(), st.data())
def test_the_larger_epoch_is_not_older_and_equal_epochs_are_of_equal_members(
    history: list[list[Event]], data: st.DataObject
) -> None:
    loop = asyncio.new_event_loop()
    try:
        notes = [note for _ in range(3) for note in watched(data, history, loop)]
    finally:
        loop.close()
    for one in notes:
        assert last_change(history, one.revision) <= one.epoch <= one.revision
        for other in notes:
            if one.epoch == other.epoch:
                assert one.members == other.members
            elif one.epoch < other.epoch and one.members != other.members:
                assert one.revision < other.revision, "it is older"


@given(histories(), st.data())
def test_a_ring_that_is_replaced_step_by_step_assigns_like_one_made_anew(
    history: list[list[Event]], data: st.DataObject
) -> None:
    replicas = data.draw(st.sampled_from([1, 2, 5, 64]))
    ring = HashRing((), replicas=replicas)
    for revision in range(2, len(history) + 2):
        names = [key.decode() for key in members_at(history, revision)]
        ring = ring.replaced(names, revision)
        again = HashRing(names, replicas=replicas, epoch=revision)
        assert ring == again
        for key in map(str, range(8)):
            assert ring.owners(key, 2) == again.owners(key, 2)
            assert not names or ring.owner(key) == ring.owners(key, 1)[0]
