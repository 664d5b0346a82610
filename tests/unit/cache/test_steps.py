"""cache/steps.py: a staged step has the same content as an applied one, and nothing is seen of it before."""

import random
from collections import deque
from typing import Any

import pytest

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache.rows import key_value
from etcd_aio.cache.state import Replica
from etcd_aio.cache.steps import PART, ContentStep, StoreReplaced, let_go
from etcd_aio.cache.tree import RUN


def put(key: bytes, mod: int, version: int = 1) -> Event:
    return Event(EventType.PUT, KeyValue(key, b"v%d" % mod, mod, mod, version))


def delete(key: bytes, mod: int) -> Event:
    return Event(EventType.DELETE, KeyValue(key, mod_revision=mod))


def loaded(count: int, *, is_decoded: bool = False) -> Replica[Any]:
    replica: Replica[Any] = Replica(is_decoded=is_decoded)
    base = replica.new_base()
    page = [KeyValue(b"%06d" % number, b"v", 2, 2, 1) for number in range(count)]
    deque((*base.add(page, base.changed(page), {kv.key: "v" for kv in page[1:]}), *base.finish()))
    replica.loaded(base, 10, 0.0)
    return replica


def content(replica: Replica[Any]) -> tuple[int, list[KeyValue], dict[bytes, object]]:
    keys = replica.tree.keys()
    assert sorted(replica.tree.values) == keys
    values = {key: replica.values[key] for key in keys if not replica._is_decoded or key in replica.values}
    return replica.revision, [key_value(replica.tree.values[key]) for key in keys], values


def staged(replica: Replica[Any], events: tuple[Event, ...], decoded: dict[bytes, object], part: int) -> ContentStep:
    staging, before = replica.stage(), content(replica)
    for begin in range(0, len(events), part):
        staging.add(events[begin : begin + part], decoded)
    for _ in staging.build():
        pass
    assert content(replica) == before, "nothing is seen before the end"
    return replica.apply_staged(staging, events)


@pytest.mark.parametrize("is_decoded", [False, True], ids=["plain", "decoded"])
@pytest.mark.parametrize("seed", range(10))
def test_it_is_the_same_as_applied_at_once(seed: int, is_decoded: bool) -> None:
    choose = random.Random(seed)
    count = choose.choice((0, 10, RUN * 5))
    one, other = loaded(count, is_decoded=is_decoded), loaded(count, is_decoded=is_decoded)
    versions = {b"%06d" % number: 1 for number in range(count)}
    events: list[Event] = []
    for revision in (11, 12, 14):
        for number in choose.sample(range(2 * count + 10), count):
            key = b"%06d" % (number // 2) if number % 2 else b"%06d+" % (number // 2)
            if key in versions and choose.random() < 0.6:
                del versions[key]
                events.append(delete(key, revision))
            else:
                versions[key] = versions.get(key, 0) + 1
                events.append(put(key, revision, versions[key]))
    events.append(put(b"last", 15))
    decoded: dict[bytes, object] = {}
    if is_decoded:
        decoded = {event.key: f"new {event.revision}" for event in events if event.is_put and choose.random() < 0.9}
    content(other)  # what was read before is not kept if it changes
    step = one.apply(tuple(events), decoded)
    assert staged(other, tuple(events), decoded, 7) == step
    assert content(one) == content(other)


def test_an_event_that_does_not_fit_leaves_the_content_as_it_was() -> None:
    replica = loaded(10)
    staging, before = replica.stage(), content(replica)
    staging.add((delete(b"000001", 11),), {})
    with pytest.raises(StoreReplaced):
        staging.add((delete(b"000001", 11),), {})
    assert content(replica) == before


def test_a_validation_that_comes_meanwhile_wins() -> None:
    """The events have cancelled themselves out by the revision that it is about."""
    replica = loaded(10)
    staging = replica.stage()
    staging.add((put(b"fleeting", 11),), {})
    assert replica.validated(12, 10, has_newer=False)
    deque(staging.build())
    step = replica.apply_staged(staging, (put(b"fleeting", 11),))
    assert (step.revision, dict(step.changes), step.events) == (12, {}, ())
    assert b"fleeting" not in replica.tree.values
    step = replica.apply((delete(b"fleeting", 12), put(b"new", 13)), {})
    assert step.changes == {b"new": put(b"new", 13).kv}
    assert step.events == (put(b"fleeting", 11), delete(b"fleeting", 12), put(b"new", 13))


def test_a_validation_is_void_if_its_answer_comes_behind_the_step() -> None:
    replica = loaded(10)
    staged(replica, (put(b"fleeting", 11),), {}, 1)
    assert not replica.validated(12, 10, has_newer=False)
    assert replica.revision == 11


def test_no_part_is_large() -> None:
    replica = loaded(PART * 10)
    staging = replica.stage()
    events = tuple(delete(key, 11) for key in sorted(replica.tree.values))
    for begin in range(0, len(events), PART):
        staging.add(events[begin : begin + PART], {})
    assert sum(1 for _ in staging.build()) >= 10
    old, rest = replica.tree.values, list(events)
    replica.apply_staged(staging, events)
    pauses = sum(1 for _ in let_go((old, {}), rest))
    assert pauses >= 20
    assert (old, rest) == ({}, [])
