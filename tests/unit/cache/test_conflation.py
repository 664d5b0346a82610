"""cache/conflation.py: many steps as one difference, against the contents themselves."""

import random

import pytest

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache.conflation import Conflation, resync_events
from etcd_aio.cache.rows import VERSION, key_value
from etcd_aio.cache.state import Replica


def change(choose: random.Random, replica: Replica[KeyValue], revision: int) -> tuple[Event, ...]:
    """Some events of one or two revisions."""
    events = []
    there = {key: row[VERSION] for key, row in replica.tree.values.items()}
    for number in range(choose.choice((1, 2))):
        for key in choose.sample([b"a", b"b", b"c"], choose.randrange(1, 4)):
            if key in there and choose.random() < 0.5:
                del there[key]
                events.append(Event(EventType.DELETE, KeyValue(key, mod_revision=revision + number)))
            else:
                there[key] = there.get(key, 0) + 1
                kv = KeyValue(key, b"", 0, revision + number, there[key])
                events.append(Event(EventType.PUT, kv))
    return tuple(events)


@pytest.mark.parametrize("by_events", [False, True], ids=["by steps", "by events"])
@pytest.mark.parametrize("seed", range(20))
def test_it_leads_from_what_the_follower_knows_to_the_content(seed: int, by_events: bool) -> None:
    choose = random.Random(seed)
    replica: Replica[KeyValue] = Replica(is_decoded=False)
    replica.loaded(replica.new_base(), 1, 0.0)
    conflation = Conflation()
    known: dict[bytes, KeyValue] = {}
    for round_ in range(200):
        events = change(choose, replica, 2 + 2 * round_)
        step = replica.apply(events, {})
        if by_events:
            conflation.add_events(events)
        else:
            conflation.add(step)
        now = {key: key_value(row) for key, row in replica.tree.values.items()}
        assert set(conflation.changes) <= set(known) | set(now), "no more than the keys it is about"
        if choose.random() < 0.3:
            changes = conflation.take()
            for event in resync_events(changes, replica.revision):
                assert event.is_resync
                if event.is_put:
                    known[event.key] = event.kv
                else:
                    del known[event.key]  # of a key that the follower knows
            assert known == now
            assert conflation.changes == {}


def test_puts_come_in_the_order_of_their_revisions_and_deletes_last() -> None:
    changes = {b"a": KeyValue(b"a", mod_revision=9), b"b": None, b"c": KeyValue(b"c", mod_revision=3), b"aa": None}
    events = resync_events(changes, 12)
    assert [(event.key, event.is_put, event.revision) for event in events] == [
        (b"c", True, 3),
        (b"a", True, 9),
        (b"aa", False, 12),
        (b"b", False, 12),
    ]
