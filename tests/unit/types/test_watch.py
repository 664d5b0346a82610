"""types/watch.py: events: what they say, and what they never show."""

import dataclasses
import pickle
from collections.abc import Sequence

import pytest

from etcd_aio.types import Event, EventType, KeyValue, ResyncEvent, WatchBatch, WatchReply

PUT = Event(EventType.PUT, KeyValue(b"k", b"secret", mod_revision=7), KeyValue(b"k", b"secret too"))
DELETE = Event(EventType.DELETE, KeyValue(b"k", mod_revision=8))


def test_an_event_says_what_happened() -> None:
    assert (PUT.is_put, PUT.is_delete, PUT.key, PUT.value, PUT.revision) == (True, False, b"k", b"secret", 7)
    assert (DELETE.is_put, DELETE.is_delete, DELETE.value, DELETE.prev_kv) == (False, True, b"", None)
    assert not PUT.is_resync


def test_an_event_says_whether_a_put_created_its_key() -> None:
    created = Event(EventType.PUT, KeyValue(b"k", create_revision=7, mod_revision=7))
    modified = Event(EventType.PUT, KeyValue(b"k", create_revision=7, mod_revision=8))
    kinds = [(event.is_create, event.is_modify) for event in (created, modified, DELETE)]
    assert kinds == [(True, False), (False, True), (False, False)]


def test_an_event_as_text() -> None:
    event = Event(EventType.PUT, KeyValue("\u00e9".encode(), b"1"))
    assert (event.key_text(), event.text()) == ("\u00e9", "1")
    assert Event(EventType.DELETE, KeyValue(b"k")).text() == ""
    with pytest.raises(ValueError, match="the value of b'k' is not UTF-8"):
        Event(EventType.PUT, KeyValue(b"k", b"\xff")).text()


def test_events_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PUT.kv = DELETE.kv  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        WatchBatch((PUT,), 7).revision = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        WatchReply().watch_id = 1  # type: ignore[misc]


def test_no_repr_shows_a_value() -> None:
    for shown in (PUT, WatchBatch((PUT,), 7), WatchReply(events=(PUT,)), ResyncEvent(PUT.type, PUT.kv)):
        assert "secret" not in repr(shown)
    assert repr(PUT) == "Event(PUT, b'k', value=<6 bytes>, revision=7)"


def test_a_resync_event_is_an_event_that_no_server_sent() -> None:
    resync = ResyncEvent(PUT.type, PUT.kv, PUT.prev_kv)
    assert isinstance(resync, Event)
    assert resync.is_resync
    assert resync != PUT
    assert "is_resync=True" in repr(resync)
    assert pickle.loads(pickle.dumps(resync)) == resync


def test_a_batch_is_a_sequence_and_an_empty_one_is_false() -> None:
    batch = WatchBatch((PUT, DELETE), 9)
    assert isinstance(batch, Sequence)
    assert (len(batch), batch[0], batch[1:], list(batch), DELETE in batch) == (2, PUT, (DELETE,), [PUT, DELETE], True)
    assert batch
    assert not WatchBatch((), 9)
    assert repr(batch) == "WatchBatch(<2 events>, revision=9)"
