"""concurrency/leaders.py: from keys to leaders: each one told once, in order, at whole revisions. Pure."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.concurrency.leaders import Candidates, Leader
from etcd_aio.concurrency.place import lock_keys
from etcd_aio.types import ResyncEvent


def kv(lease: int, created: int, value: str = "", revision: int = 0, name: str = "e") -> KeyValue:
    return KeyValue(
        f"{name}/{lease:x}".encode(),
        value.encode(),
        create_revision=created,
        mod_revision=revision or created,
        version=1,
        lease=lease,
    )


def put(lease: int, created: int, value: str = "", revision: int = 0, name: str = "e") -> Event:
    return Event(EventType.PUT, kv(lease, created, value, revision, name))


def gone(lease: int, revision: int) -> Event:
    return Event(EventType.DELETE, KeyValue(f"e/{lease:x}".encode(), mod_revision=revision))


def told(leaders: Iterable[Leader | None]) -> list[tuple[int, str] | None]:
    return [None if leader is None else (leader.fencing_token, leader.text()) for leader in leaders]


def candidates(*kvs: KeyValue, revision: int = 10) -> tuple[Candidates, Leader | None]:
    found = Candidates(lock_keys(b"e"))
    return found, found.listed(kvs, revision)


def test_the_first_leader_is_the_oldest_key_however_they_are_listed() -> None:
    assert told([candidates(kv(1, 7, "b"), kv(2, 3, "a"))[1]]) == [(3, "a")]
    assert candidates()[1] is None


def test_a_leader_as_the_store_has_it() -> None:
    _, leader = candidates(kv(0x2F, 3, "a", revision=5))
    assert leader == Leader(b"e/2f", b"a", lease=0x2F, revision=5, fencing_token=3)
    assert repr(leader) == "Leader(b'e/2f', value=<1 bytes>, fencing_token=3)"


def test_a_younger_candidate_is_never_told() -> None:
    found, _ = candidates(kv(1, 3, "a"))
    assert found.changed([put(2, 11, "b"), put(2, 11, "b2", 12), gone(2, 13)], 13) == []


def test_each_change_of_the_leader_is_told_in_order() -> None:
    found, _ = candidates(kv(1, 3, "a"), kv(2, 4, "b"), kv(3, 5, "c"))
    events = [gone(1, 11), put(2, 4, "b2", 12), put(2, 4, "b2", 13), gone(3, 14), gone(2, 15), put(4, 16, "d")]
    assert told(found.changed(events, 16)) == [(4, "b"), (4, "b2"), None, (16, "d")]


def test_the_changes_of_one_revision_are_told_as_one() -> None:
    found, _ = candidates(kv(1, 3, "a"), kv(2, 4, "b"))
    assert told(found.changed([gone(1, 11), gone(2, 11), put(3, 11, "c")], 11)) == [(11, "c")]


def test_a_key_that_comes_back_stands_behind_the_others() -> None:
    found, _ = candidates(kv(1, 3, "a"), kv(2, 4, "b"))
    assert told(found.changed([gone(1, 11), put(1, 12, "a"), gone(2, 13)], 13)) == [(4, "b"), (12, "a")]


def test_the_last_candidate_gone_is_told_as_none_and_only_once() -> None:
    found, _ = candidates(kv(1, 3))
    assert found.changed([gone(1, 11)], 11) == [None]
    assert found.changed([], 12) == []
    assert candidates()[0].changed([gone(1, 11)], 11) == []


def test_events_up_to_the_list_are_known() -> None:
    found, _ = candidates(kv(2, 9, "b"))
    assert found.changed([put(1, 6, "a"), gone(2, 8), put(2, 9, "b"), gone(1, 10)], 10) == []
    assert told(found.changed([put(2, 9, "b2", 11)], 11)) == [(9, "b2")]


def test_keys_of_nested_names_are_no_candidates() -> None:
    found, leader = candidates(kv(1, 2, name="e/nested"), kv(2, 4, "b"))
    assert told([leader]) == [(4, "b")]
    assert found.changed([put(5, 11, name="e/nested")], 11) == []
    assert candidates()[0].changed([put(5, 11, name="e/nested")], 11) == []


def test_a_key_that_is_not_attached_to_the_lease_in_its_name_is_no_candidate() -> None:
    data = KeyValue(b"e/42", b"data", create_revision=2, mod_revision=2, version=1)
    found, leader = candidates(data, replace(data, key=b"e/cafe", lease=7), kv(2, 4, "b"))
    assert told([leader]) == [(4, "b")]
    events = [Event(EventType.PUT, replace(data, mod_revision=11, version=2)), gone(0x42, 12)]
    assert found.changed(events, 12) == []


def test_a_leader_whose_key_loses_its_lease_leads_no_more() -> None:
    found, _ = candidates(kv(1, 3, "a"), kv(2, 4, "b"))
    without = Event(EventType.PUT, replace(kv(1, 3, "x", 11), lease=0))
    assert told(found.changed([without], 11)) == [(4, "b")]
    assert told(found.changed([put(1, 3, "a", 12)], 12)) == [(3, "a")], "it is the oldest again"


def test_a_difference_after_a_compaction_has_one_state() -> None:
    found, _ = candidates(kv(1, 3, "a"), kv(2, 4, "b"))
    found.changed([], 11)
    # Meanwhile: 1 and 2 have gone, 1 came back, 4 and then 3 came, and 3 has proclaimed before 4 did.
    events = [
        ResyncEvent(EventType.PUT, kv(3, 22, "c2", 23)),
        ResyncEvent(EventType.PUT, kv(4, 21, "d2", 24)),
        ResyncEvent(EventType.PUT, kv(1, 25, "a2")),
        ResyncEvent(EventType.DELETE, KeyValue(b"e/2", mod_revision=30)),
    ]
    assert told(found.changed(events, 30)) == [(21, "d2")]
    assert told(found.changed([gone(4, 31), gone(3, 32)], 32)) == [(22, "c2"), (25, "a2")]


def test_a_store_that_goes_back_to_a_backup_is_believed() -> None:
    found, _ = candidates(kv(1, 8, "a"))
    found.changed([], 11)
    back = [
        ResyncEvent(EventType.PUT, kv(2, 2, "old", 2)),
        ResyncEvent(EventType.DELETE, KeyValue(b"e/1", mod_revision=5)),
    ]
    assert told(found.changed(back, 5)) == [(2, "old")]


@pytest.mark.parametrize("seed", range(50))
def test_any_history_is_told_as_the_oldest_key_after_each_revision(seed: int) -> None:
    """Whatever the batches: the same as looking at the store after every revision."""
    draw = random.Random(seed)
    alive: dict[int, KeyValue] = {}
    events: list[Event] = []
    expected: list[tuple[int, str] | None] = []
    found, _ = candidates(revision=0)
    last: tuple[int, str] | None = None
    for revision in range(1, 200):
        is_created = False  # one revision creates at most one candidate
        for lease in draw.sample(range(1, 7), draw.choice((1, 1, 1, 2, 3))):
            if lease in alive and draw.random() < 0.5:
                del alive[lease]
                events.append(gone(lease, revision))
            elif lease in alive or not is_created:
                is_created |= lease not in alive
                created = alive[lease].create_revision if lease in alive else revision
                event = put(lease, created, f"{draw.randrange(2)}", revision)
                alive[lease] = event.kv
                events.append(event)
        oldest = min(alive.values(), key=lambda each: each.create_revision, default=None)
        now = None if oldest is None else (oldest.create_revision, oldest.value.decode())
        if now != last:
            expected.append(now)
            last = now
    news = []
    while events:
        end = events[min(draw.randrange(8), len(events) - 1)].revision
        batch = [event for event in events if event.revision <= end]
        events = events[len(batch) :]
        news += told(found.changed(batch, end))
    assert news == expected
