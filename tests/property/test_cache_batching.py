"""Decoded values: the same history leads to the same content, however it is divided into batches.

One replica gets every event alone. Another gets them in batches of any size, applied at once or staged in parts. Some
values cannot be decoded: then a key keeps the value before, but only one that was put since the key was created.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import pytest

from etcd_aio import Event, EventType, KeyRange, KeyValue, Store
from etcd_aio.cache import replicator as module
from etcd_aio.cache.decoder import Decoder
from etcd_aio.cache.replicator import Replicator
from etcd_aio.cache.state import Replica

pytestmark = pytest.mark.anyio

LENGTH: Final = 4
WRITES: Final = list(itertools.product(("good", "bad", "delete"), repeat=LENGTH))
KEY: Final = b"a"


def decode(value: bytes) -> bytes:
    if value.startswith(b"bad"):
        raise ValueError
    return value


class Follows:
    """A replica that gets events as a watch brings them."""

    def __init__(self) -> None:
        self.replica: Replica[bytes] = Replica(is_decoded=True)
        decoder = Decoder(decode, lambda key, error: None, "cache")
        self.replicator = Replicator(
            cast("Store", None),
            KeyRange.of(all_keys=True),
            self.replica,
            decoder,
            clock=lambda: 0.0,
            max_outage=1.0,
            on_step=lambda step: None,
            on_moved=lambda: None,
            on_replaced=lambda: None,
        )
        self.load({}, 1)

    def load(self, store: dict[bytes, KeyValue], revision: int) -> None:
        if self.replica.revision:
            self.replica.fall_behind()
        base = self.replica.new_base()
        page = [store[key] for key in sorted(store)]
        changed = base.changed(page)
        decoded = {kv.key: kv.value for kv in changed if not kv.value.startswith(b"bad")}
        deque((*base.add(page, changed, decoded), *base.finish()))
        self.replica.loaded(base, revision, 0.0)

    async def apply(self, events: tuple[Event, ...], *, is_staged: bool = False) -> None:
        if is_staged:
            await self.replicator._apply_many(list(events))
        else:
            await self.replicator._apply(events)


def history(writes: Iterable[str]) -> list[tuple[Event, dict[bytes, KeyValue]]]:
    """The events, each with the store behind it."""
    there: dict[bytes, KeyValue] = {}
    found: list[tuple[Event, dict[bytes, KeyValue]]] = []
    revision = 1
    for what in writes:
        before = there.get(KEY)
        if what == "delete":
            if before is None:
                continue
            revision += 1
            del there[KEY]
            event = Event(EventType.DELETE, KeyValue(KEY, mod_revision=revision))
        else:
            revision += 1
            create, version = (revision, 1) if before is None else (before.create_revision, before.version + 1)
            kv = there[KEY] = KeyValue(KEY, b"%s %d" % (what.encode(), revision), create, revision, version)
            event = Event(EventType.PUT, kv)
        found.append((event, dict(there)))
    return found


def divided(events: tuple[Event, ...]) -> Iterator[list[tuple[Event, ...]]]:
    """Every division into batches."""
    for cuts in itertools.product((False, True), repeat=max(len(events) - 1, 0)):
        at = [0, *(number + 1 for number, is_cut in enumerate(cuts) if is_cut), len(events)]
        yield [events[begin:end] for begin, end in itertools.pairwise(at)]


@pytest.mark.parametrize("part", [0, 1, 2], ids=["at once", "staged in parts of 1", "staged in parts of 2"])
async def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(module, "PART", part or 1000)
    tried = 0
    for writes in WRITES:
        events = tuple(event for event, _ in history(writes))
        apart = Follows()
        for event in events:
            await apart.apply((event,))
        for batches in divided(events):
            together = Follows()
            for batch in filter(None, batches):
                await together.apply(batch, is_staged=part > 0)
            assert together.replica.values == apart.replica.values, (writes, batches)
            assert together.replica.tree.values == apart.replica.tree.values
            tried += 1
    assert tried > 300


@pytest.mark.parametrize("lost", list(itertools.product((False, True), repeat=LENGTH)))
async def test_a_value_is_of_the_life_of_its_key(lost: tuple[bool, ...]) -> None:
    """Also where events are compacted before they are seen, and the range is loaded again."""
    for writes in WRITES:
        followed = Follows()
        is_behind = False
        put: dict[bytes, list[bytes]] = {}
        store: dict[bytes, KeyValue] = {}
        revision = 1
        for (event, store), is_lost in zip(history(writes), lost, strict=False):
            revision = event.revision
            if event.is_put:
                put.setdefault(event.key, []).append(event.kv.value)
            else:
                del put[event.key]
            if is_behind and not is_lost:
                followed.load(store, revision)
            elif not is_lost:
                await followed.apply((event,))
            is_behind = is_lost
            if not is_lost:
                check(followed.replica, put, store)
        followed.load(store, revision)
        check(followed.replica, put, store)


def check(replica: Replica[Any], put: dict[bytes, list[bytes]], store: dict[bytes, KeyValue]) -> None:
    for key, value in replica.values.items():
        assert value in put[key]
    for key, kv in store.items():
        if not kv.value.startswith(b"bad"):
            assert replica.values[key] == kv.value
