"""watch/compaction_resync.py: resync: which keys are known, and the events that replace a compacted history."""

from etcd_aio.types import Event, EventType, KeyValue
from etcd_aio.watch.compaction_resync import KnownKeys, difference


def put(key: bytes, revision: int = 1) -> Event:
    return Event(EventType.PUT, KeyValue(key, mod_revision=revision))


def delete(key: bytes, revision: int = 1) -> Event:
    return Event(EventType.DELETE, KeyValue(key, mod_revision=revision))


def test_events_that_come_while_the_first_keys_are_listed_count_more() -> None:
    known = KnownKeys()
    known.note([put(b"new"), delete(b"old"), put(b"fleeting"), delete(b"fleeting")])
    assert not known.is_complete
    known.begin([b"old", b"kept"])
    assert known.is_complete
    assert known.replace([]) == {b"new", b"kept"}


def test_a_key_is_gone_if_it_was_known_and_does_not_exist_now() -> None:
    known = KnownKeys()
    known.begin([b"a", b"b"])
    known.note([put(b"c"), delete(b"a")])
    assert known.replace([b"c", b"d"]) == {b"b"}
    assert known.replace([b"d"]) == {b"c"}


def test_a_resync_before_the_first_keys_are_listed_knows_the_keys_of_the_events() -> None:
    known = KnownKeys()
    known.note([put(b"a"), put(b"b"), delete(b"b")])
    assert known.replace([b"c"]) == {b"a"}
    assert known.is_complete


def test_puts_come_in_the_order_of_their_revisions_and_deletes_behind_them() -> None:
    changed = [KeyValue(b"x", b"2", mod_revision=9), KeyValue(b"y", b"1", mod_revision=8)]
    found = difference(changed, {b"q", b"p"}, 11, hides_deletes=False)
    assert [(event.type.name, event.key, event.revision) for event in found] == [
        ("PUT", b"y", 8),
        ("PUT", b"x", 9),
        ("DELETE", b"p", 11),
        ("DELETE", b"q", 11),
    ]
    assert all(event.is_resync for event in found)
    assert len(difference(changed, {b"q"}, 11, hides_deletes=True)) == 2
