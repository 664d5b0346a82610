"""cache/state.py: what moves content, revision and age on, and what shows that the store is another one."""

from collections import deque
from itertools import pairwise
from math import inf
from typing import Any

import pytest

from etcd_aio import Event, EventType, KeyValue, WatchBatch
from etcd_aio.cache.rows import key_value
from etcd_aio.cache.state import CacheState, Replica, whole_revisions
from etcd_aio.cache.steps import StoreReplaced
from etcd_aio.types import EarlyProgress


def kv(key: str, mod: int, version: int = 1, create: int | None = None) -> KeyValue:
    return KeyValue(key.encode(), b"v%d" % mod, create or mod, mod, version)


def put(key: str, mod: int, version: int = 1, create: int | None = None) -> Event:
    return Event(EventType.PUT, kv(key, mod, version, create))


def delete(key: str, mod: int) -> Event:
    return Event(EventType.DELETE, KeyValue(key.encode(), mod_revision=mod))


def loaded(*kvs: KeyValue, revision: int = 10, sent: float = 0.0, is_decoded: bool = False) -> Replica[Any]:
    replica: Replica[Any] = Replica(is_decoded=is_decoded)
    load(replica, *kvs, revision=revision, sent=sent)
    return replica


def load(replica: Replica[Any], *kvs: KeyValue, revision: int, sent: float = 0.0) -> dict[bytes, KeyValue | None]:
    base = replica.new_base()
    changed = base.changed(kvs)
    deque((*base.add(kvs, changed, {kv.key: kv.value.decode() for kv in changed}), *base.finish()))
    return dict(replica.loaded(base, revision, sent).changes)


def state_of(replica: Replica[Any]) -> CacheState:
    return replica.state


def content(replica: Replica[Any]) -> dict[str, int]:
    return {key.decode(): key_value(row).mod_revision for key, row in replica.tree.values.items()}


MOVES = (Replica.fall_behind, Replica.resume, Replica.store_replaced)


def test_every_state_ends_closed_and_nothing_leaves_that() -> None:
    lagging, broken = loaded(kv("a", 3)), loaded(kv("a", 3))
    lagging.fall_behind()
    broken.store_replaced()
    replicas: list[Replica[Any]] = [Replica(is_decoded=False), loaded(kv("a", 3)), lagging, broken]
    assert {replica.state for replica in replicas} == set(CacheState) - {CacheState.CLOSED}
    for replica in replicas:
        replica.close()
        for move in (*MOVES, Replica.close):
            move(replica)
            assert (replica.state, replica.count) == (CacheState.CLOSED, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), ("loading", "loading", "loading")),
        ((load,), ("lagging", "ready", "broken")),
        ((load, Replica.fall_behind), ("lagging", "ready", "broken")),
        ((load, Replica.store_replaced), ("broken", "broken", "broken")),
    ],
)
def test_what_each_move_makes_of_each_state(before: tuple[Any, ...], after: tuple[str, ...]) -> None:
    for move, state in zip(MOVES, after, strict=True):
        replica: Replica[Any] = Replica(is_decoded=False)
        for step in before:
            step(replica, revision=10) if step is load else step(replica)
        move(replica)
        assert replica.state is CacheState(state)


def test_a_load_is_compared_with_the_content_before() -> None:
    replica = loaded(kv("a", 3), kv("b", 4), kv("c", 5))
    replica.fall_behind()
    assert state_of(replica) is CacheState.LAGGING
    changes = load(replica, kv("aa", 12), kv("b", 4), kv("c", 13, version=2, create=5), revision=14)
    assert changes == {b"a": None, b"aa": kv("aa", 12), b"c": kv("c", 13, 2, 5)}
    assert state_of(replica) is CacheState.READY
    assert (replica.revision, content(replica)) == (14, {"aa": 12, "b": 4, "c": 13})


def test_a_first_load_is_no_change() -> None:
    replica: Replica[Any] = Replica(is_decoded=False)
    assert load(replica, kv("a", 3), revision=5) == {}
    assert replica.revision == 5


def test_a_load_that_goes_back_is_another_store() -> None:
    replica = loaded(kv("a", 3), revision=10)
    replica.fall_behind()
    with pytest.raises(StoreReplaced, match="revision 9"):
        load(replica, kv("a", 3), revision=9)
    assert content(replica) == {"a": 3}


def test_a_load_that_a_validation_has_overtaken_changes_nothing() -> None:
    replica = loaded(kv("a", 3), revision=10)
    replica.fall_behind()
    base = replica.new_base()
    found = (kv("a", 3), kv("passing", 11))  # which is deleted again at revision 13
    deque((*base.add(found, base.changed(found), {}), *base.finish()))
    assert replica.validated(15, 1, has_newer=False)
    step = replica.loaded(base, 12, 1.0)
    assert (state_of(replica), replica.revision, content(replica)) == (CacheState.READY, 15, {"a": 3})
    assert (step.revision, step.changes) == (15, {})
    assert replica.new_events(WatchBatch((delete("passing", 13), put("b", 16)), 16)) == (put("b", 16),)
    assert replica.age(3.0) == 2.0


def test_a_step_moves_the_revision_to_its_last_event() -> None:
    replica = loaded(kv("a", 3))
    step = replica.apply((put("a", 11, 2), put("b", 11), delete("a", 12), put("c", 13)), {})
    assert (replica.revision, content(replica)) == (13, {"b": 11, "c": 13})
    assert dict(step.changes) == {b"a": None, b"b": kv("b", 11), b"c": kv("c", 13)}
    assert step.created == {b"b", b"c"}


def test_a_key_that_is_created_and_deleted_in_one_step_leaves_nothing() -> None:
    replica = loaded(kv("a", 3))
    step = replica.apply((put("b", 11), delete("b", 12), delete("a", 13), put("a", 14)), {})
    assert dict(step.changes) == {b"a": kv("a", 14)}
    assert step.created == set()
    assert (replica.revision, content(replica)) == (14, {"a": 14})


def test_events_that_the_base_has_are_left_out() -> None:
    replica = loaded(kv("a", 10), revision=10)
    batch = WatchBatch((put("a", 10), put("a", 11, 2)), 11)
    assert replica.new_events(batch) == (put("a", 11, 2),)
    assert replica.new_events(WatchBatch((put("a", 9),), 9)) == ()


@pytest.mark.parametrize(
    "event",
    [put("a", 11, 3), put("a", 11, 1), put("new", 11, 2), delete("new", 11)],
    ids=["a put was missed", "a deletion was missed", "its creation was missed", "unknown key"],
)
def test_an_event_that_does_not_fit_is_of_another_store_and_changes_nothing(event: Event) -> None:
    replica = loaded(kv("a", 3), kv("b", 4))
    with pytest.raises(StoreReplaced):
        replica.apply((put("b", 11, 2), event), {})
    assert (replica.revision, content(replica)) == (10, {"a": 3, "b": 4})


def test_the_revision_goes_back_only_after_the_store_was_replaced() -> None:
    replica = loaded(kv("a", 3), kv("b", 4), revision=10)
    replica.store_replaced()
    assert (replica.state, replica.epoch) == (CacheState.BROKEN, 1)
    assert content(replica) == {"a": 3, "b": 4}, "the last state of the store before, unmixed"
    changes = load(replica, KeyValue(b"a", b"other", 3, 3, 1), revision=5)
    assert set(changes) == {b"a", b"b"}, "the same revision of another store is another put"
    assert (replica.state, replica.revision) == (CacheState.READY, 5)


def test_a_closed_replica_holds_nothing() -> None:
    replica = loaded(kv("a", 3))
    replica.close()
    assert len(replica.tree) == 0
    assert replica.values == {}


# Decoded values.


def test_values_are_decoded_or_the_key_values() -> None:
    plain, decoded = loaded(kv("a", 3)), loaded(kv("a", 3), is_decoded=True)
    assert plain.values[b"a"] == kv("a", 3)
    assert decoded.values == {b"a": "v3"}
    plain.apply((put("a", 11, 2), put("b", 12)), {})
    decoded.apply((put("a", 11, 2), put("b", 12)), {b"a": "x", b"b": "y"})
    assert (plain.values[b"a"], plain.values[b"b"]) == (kv("a", 11, 2), kv("b", 12))
    assert decoded.values == {b"a": "x", b"b": "y"}
    decoded.apply((delete("b", 13),), {})
    assert decoded.values == {b"a": "x"}


def test_a_value_that_cannot_be_decoded_keeps_the_one_before() -> None:
    replica = loaded(kv("a", 3), is_decoded=True)
    replica.apply((put("a", 11, 2, create=3), put("b", 12)), {})
    assert replica.values == {b"a": "v3"}
    replica.fall_behind()
    base = replica.new_base()
    page = (kv("a", 14, 3, create=3), kv("b", 12))
    assert list(base.changed(page)) == [page[0]], "the other was decoded before, in vain"
    deque((*base.add(page, [page[0]], {}), *base.finish()))
    replica.loaded(base, 15, 0.0)
    assert replica.values == {b"a": "v3"}


# Marks and validations.


def test_marks_move_the_revision_unless_they_may_be_early() -> None:
    replica = loaded(kv("a", 3))
    replica.mark(WatchBatch((), 12))
    assert replica.revision == 12
    replica.mark(EarlyProgress((), 20))
    assert replica.revision == 12
    assert replica.has_marks, "the first mark of each member is one of these"
    replica.mark(EarlyProgress((), 20))
    assert not replica.has_marks
    replica.mark(WatchBatch((), 11))
    assert (replica.revision, replica.has_marks) == (12, True)


def test_a_validation_moves_the_revision_if_nothing_is_newer_and_nothing_is_gone() -> None:
    for has_newer, count, is_valid in ((False, 2, True), (True, 2, False), (False, 1, False), (True, 3, False)):
        replica = loaded(kv("a", 3), kv("b", 4))
        assert (replica.revision, replica.count) == (10, 2)
        assert replica.validated(15, count, has_newer=has_newer) is is_valid
        assert replica.revision == (15 if is_valid else 10)


def test_a_validation_does_not_count_if_a_step_came_meanwhile() -> None:
    """A key was created and deleted again: the answer shows neither, and the content has the key."""
    replica = loaded(kv("a", 3))
    replica.apply((put("b", 11),), {})
    assert not replica.validated(12, 1, has_newer=False)
    assert replica.revision == 11
    assert not replica.validated(12, 1, has_newer=False)


def test_a_mark_meanwhile_does_not_spoil_a_validation() -> None:
    replica = loaded(kv("a", 3))
    replica.mark(WatchBatch((), 13))
    assert replica.validated(12, 1, has_newer=False)
    assert replica.revision == 13


def test_events_behind_a_validation_change_nothing_but_are_told() -> None:
    replica = loaded(kv("a", 3))
    assert replica.validated(15, 1, has_newer=False)
    late = (put("b", 12), delete("b", 13))
    step = replica.apply(late, {})
    assert (step.events, dict(step.changes), step.revision) == (late, {}, 15)
    step = replica.apply((put("c", 14), delete("c", 15), put("c", 16)), {})
    assert step.events == (put("c", 14), delete("c", 15), put("c", 16))
    assert dict(step.changes) == {b"c": kv("c", 16)}
    assert replica.revision == 16


def test_events_behind_a_validation_are_told_once_they_have_cancelled_out() -> None:
    """Or a follower would know a key that is not there, for ever if the rest is lost."""
    replica = loaded(kv("a", 3))
    assert replica.validated(15, 1, has_newer=False)
    assert replica.apply((put("b", 11), put("c", 12)), {}).events == ()
    assert replica.apply((delete("b", 13),), {}).events == ()
    step = replica.apply((delete("c", 14),), {})
    assert step.events == (put("b", 11), put("c", 12), delete("b", 13), delete("c", 14))
    assert replica.apply((put("b", 15),), {}).events == ()


@pytest.mark.parametrize("how", ["newer events", "another watch", "a load"])
def test_events_behind_a_validation_whose_rest_is_lost_are_forgotten(how: str) -> None:
    replica = loaded(kv("a", 3))
    assert replica.validated(15, 1, has_newer=False)
    assert replica.apply((put("b", 12),), {}).events == ()
    if how == "newer events":
        assert replica.apply((put("b", 16),), {}).events == (put("b", 16),)
    elif how == "another watch":
        replica.forget_passing()
    else:
        replica.fall_behind()
        load(replica, kv("a", 3), revision=17)
    assert replica.validated(30, len(replica.tree), has_newer=False)
    passing = (put("d", 20), delete("d", 21))
    assert replica.apply(passing, {}).events == passing


def test_a_value_of_a_deleted_key_never_comes_back() -> None:
    for together in (False, True):
        replica = loaded(kv("a", 3), is_decoded=True)
        events = (delete("a", 11), put("a", 12))
        for part in (events,) if together else ((one,) for one in events):
            replica.apply(part, {})
        assert replica.values == {}, together


def test_a_value_of_another_store_never_comes_back() -> None:
    """The key has the same create_revision there by chance; where nothing differs, the value is the same too."""
    replica = loaded(kv("a", 3), kv("b", 4), is_decoded=True)
    replica.store_replaced()
    base = replica.new_base()
    page = (kv("a", 12, 2, create=3), kv("b", 4))
    deque((*base.add(page, base.changed(page), {}), *base.finish()))
    replica.loaded(base, 13, 0.0)
    assert replica.values == {b"b": "v4"}


# Age.


def test_the_age_is_counted_from_the_newest_read_that_the_content_has() -> None:
    replica: Replica[Any] = Replica(is_decoded=False)
    assert replica.age(5.0) == inf
    load(replica, kv("a", 3), revision=10, sent=1.0)
    assert replica.age(5.0) == 4.0
    replica.probed(2.0, 10)
    assert replica.age(5.0) == 3.0
    replica.probed(3.0, 12)
    replica.probed(4.0, 14)
    assert replica.age(5.0) == 3.0, "the content has neither of them"
    replica.apply((put("b", 12),), {})
    assert replica.age(5.0) == 2.0
    replica.mark(WatchBatch((), 13))
    assert replica.age(5.0) == 2.0
    replica.mark(WatchBatch((), 14))
    assert replica.age(5.0) == 1.0


def test_a_read_that_was_sent_earlier_never_makes_it_older() -> None:
    replica = loaded(kv("a", 3), sent=4.0)
    replica.probed(3.0, 10)
    assert replica.age(5.0) == 1.0


def test_reads_that_wait_for_the_content_take_bounded_memory_and_never_flatter_it() -> None:
    replica = loaded(kv("a", 3))
    for number in range(1, 1001):
        replica.probed(float(number), 10 + number)
    assert len(replica._pairs) <= 16
    replica.mark(WatchBatch((), 510))
    assert 500.0 <= replica.age(1000.0) <= 1000.0
    replica.mark(WatchBatch((), 1010))
    assert replica.age(1000.0) == 0.0


def test_the_reads_of_a_replaced_store_do_not_count() -> None:
    replica = loaded(kv("a", 3), sent=5.0)
    replica.probed(6.0, 12)
    replica.store_replaced()
    load(replica, kv("a", 3), revision=5, sent=2.0)
    assert replica.age(10.0) == 8.0


def test_events_are_cut_between_revisions_only() -> None:
    events = tuple(put(f"k{number}", 11 + number // 3) for number in range(20))
    for size in range(1, 25):
        parts = list(whole_revisions(events, size))
        assert tuple(event for part in parts for event in part) == events
        for before, after in pairwise(parts):
            assert before[-1].revision < after[0].revision
            assert len(before) >= size
    assert list(whole_revisions((), 5)) == []
