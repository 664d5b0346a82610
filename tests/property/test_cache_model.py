"""The replica of a cache by an explicit-state model check: every interleaving of writes, events, marks and reads.

A state has the store with its history, the channel of the watch, a validation and a probe under way, and the replica.
In each state everything that can happen next is tried: another write; the server sends the next revision, or a mark,
which may be early on an old release; the replica takes what comes next, one revision or two at once; a validation is
sent, answered at some instant, and its answer arrives later; so is a probe.

In every state the content is that of the store at the replica's revision, which never goes back. So reads between two
awaits see one state of the store; and since that is at least as new as the answer of a probe that was sent after a call
began, they are linearizable. The age is counted from a probe all of whose revisions the content has.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeAlias

import pytest

from etcd_aio import Event, EventType, KeyValue, WatchBatch
from etcd_aio.cache.rows import VERSION, row_of
from etcd_aio.cache.state import CacheState, Replica
from etcd_aio.cache.steps import ContentStep, StoreReplaced
from etcd_aio.types import EarlyProgress

Write: TypeAlias = tuple[bytes, bool]  # a key, and whether it is put; a delete is of a key that exists
Content: TypeAlias = tuple[tuple[bytes, int, int], ...]  # key, mod_revision, version
KEYS = (b"a", b"b")


@dataclass(frozen=True)
class State:
    writes: tuple[Write, ...] = ()  # the revision is their number plus one
    sent: int = 1  # the last revision that the server has sent
    channel: tuple[tuple[str, int], ...] = ()  # events, mark or early; with a revision
    # The replica.
    content: Content = ()
    revision: int = 1
    early_marks: int = 0
    confirmed: float = -inf
    pairs: tuple[tuple[float, int], ...] = ()
    passing: tuple[Event, ...] = ()
    # A follower that gets every event: the keys that it knows, or None once it got an event that does not fit.
    follower: tuple[tuple[bytes, int], ...] | None = ()
    # A validation: from which revision it asks, and the answer once there is one.
    asked: int | None = None
    answer: tuple[int, int, bool] | None = None
    # A probe: the store's revision when it was sent, and in its answer once there is one.
    probe: tuple[int, int | None] | None = None

    @property
    def store(self) -> int:
        return len(self.writes) + 1

    def at(self, revision: int) -> dict[bytes, tuple[int, int]]:
        there: dict[bytes, tuple[int, int]] = {}
        for number, (key, is_put) in enumerate(self.writes[: revision - 1]):
            if is_put:
                there[key] = (number + 2, there[key][1] + 1 if key in there else 1)
            else:
                del there[key]
        return there

    def event(self, revision: int) -> Event:
        key, is_put = self.writes[revision - 2]
        if not is_put:
            return Event(EventType.DELETE, KeyValue(key, mod_revision=revision))
        return Event(EventType.PUT, KeyValue(key, b"", 0, revision, self.at(revision)[key][1]))

    def restored(self, kind: type[Replica[Any]]) -> Replica[Any]:
        replica = kind(is_decoded=False)
        for key, mod, version in self.content:
            replica.tree.put(key, row_of(KeyValue(key, b"", 0, mod, version)))
        replica.state = CacheState.READY
        replica.revision = self.revision
        replica.early_marks = self.early_marks
        replica._confirmed = self.confirmed
        replica._pairs = list(self.pairs)
        if self.passing:
            replica._passed(self.passing)
        return replica


def kept(state: State, replica: Replica[Any]) -> State:
    return replace(
        state,
        content=tuple(sorted((row[0], row[3], row[VERSION]) for row in replica.tree.values.values())),
        revision=replica.revision,
        early_marks=min(replica.early_marks, 2),
        confirmed=replica._confirmed,
        pairs=tuple(replica._pairs),
        passing=tuple(replica._passing),
    )


def successors(kind: type[Replica[Any]], state: State, most_writes: int, read: str) -> Iterator[State]:
    if len(state.writes) < most_writes:
        there = state.at(state.store)
        for key in KEYS:
            yield replace(state, writes=(*state.writes, (key, True)))
            if key in there:
                yield replace(state, writes=(*state.writes, (key, False)))
    if state.sent < state.store:
        yield replace(state, sent=state.sent + 1, channel=(*state.channel, ("events", state.sent + 1)))
    last = state.channel[-1] if state.channel else None
    for word in ("mark",) if state.sent == state.store else ("early",) if read == "validation" else ():
        if last != (word, state.store) and len(state.channel) < 2:
            yield replace(state, channel=(*state.channel, (word, state.store)))
    yield from takes(kind, state)
    yield from (validates if read == "validation" else probes)(kind, state)


def validates(kind: type[Replica[Any]], state: State) -> Iterator[State]:
    if state.asked is None:
        yield replace(state, asked=state.revision)
    elif state.answer is None:
        there = state.at(state.store)
        has_newer = any(mod > state.asked for mod, _ in there.values())
        yield replace(state, answer=(state.store, len(there), has_newer))
    else:
        replica = state.restored(kind)
        revision, count, has_newer = state.answer
        replica.validated(revision, count, has_newer=has_newer)
        yield replace(kept(state, replica), asked=None, answer=None)


def probes(kind: type[Replica[Any]], state: State) -> Iterator[State]:
    if state.probe is None:
        yield replace(state, probe=(state.store, None))
    elif state.probe[1] is None:
        yield replace(state, probe=(state.probe[0], state.store))
    else:
        replica = state.restored(kind)
        replica.probed(float(state.probe[0]), state.probe[1])
        yield replace(kept(state, replica), probe=None)


def takes(kind: type[Replica[Any]], state: State) -> Iterator[State]:
    if not state.channel:
        return
    word, revision = state.channel[0]
    for number in (1, 2) if word == "events" else (1,):
        if [one for one, _ in state.channel[:number]] != [word] * number:
            continue
        replica = state.restored(kind)
        told: tuple[Event, ...] = ()
        if word == "events":
            told = replica.apply(tuple(state.event(revision + more) for more in range(number)), {}).events
        else:
            replica.mark(WatchBatch((), revision) if word == "mark" else EarlyProgress((), revision))
        follower = followed(state.follower, told)
        yield kept(replace(state, channel=state.channel[number:], follower=follower), replica)


def followed(
    known: tuple[tuple[bytes, int], ...] | None, events: tuple[Event, ...]
) -> tuple[tuple[bytes, int], ...] | None:
    """What a follower knows after some events."""
    there = dict(known or ())
    for event in events:
        if event.is_put:
            there[event.key] = event.revision
        elif event.key in there:
            del there[event.key]
        else:
            return None
    return tuple(sorted(there.items()))


def violation(before: State, after: State) -> str | None:
    if {key: (mod, version) for key, mod, version in after.content} != after.at(after.revision):
        return "the content is not that of its revision"
    if after.follower != tuple((key, mod) for key, mod, _ in after.content):
        return "a follower knows something else than the content"
    if after.revision < before.revision:
        return "the revision went back"
    if after.revision > after.store:
        return "the revision is not there yet"
    if after.confirmed > after.revision:
        return "the age is flattered: a write is missing that was finished when its probe was sent"
    return None


def explore(kind: type[Replica[Any]], most_writes: int, read: str) -> tuple[int, str | None]:
    """How many states there are, and the first violation."""
    first = State()
    seen, waiting = {first}, deque([first])
    while waiting:
        state = waiting.popleft()
        try:
            for after in successors(kind, state, most_writes, read):
                if after not in seen:
                    found = violation(state, after)
                    if found is not None:
                        return len(seen), found
                    seen.add(after)
                    waiting.append(after)
        except (StoreReplaced, KeyError) as error:
            return len(seen), f"the store is the same all the time: {error!r}"
    return len(seen), None


@pytest.mark.parametrize(("most_writes", "read"), [(3, "validation"), (2, "probe")])
def test_in_every_state_the_content_is_that_of_its_revision(most_writes: int, read: str) -> None:
    states, found = explore(Replica, most_writes, read)
    assert found is None
    assert states > 5_000


class TrustsEarlyMarks(Replica[Any]):
    def mark(self, batch: WatchBatch) -> None:
        super().mark(WatchBatch((), batch.revision))


class IgnoresNewerKeys(Replica[Any]):
    def validated(self, revision: int, count: int, *, has_newer: bool) -> bool:
        return super().validated(revision, count, has_newer=False)


class IgnoresTheCount(Replica[Any]):
    def validated(self, revision: int, count: int, *, has_newer: bool) -> bool:
        return super().validated(revision, len(self.tree), has_newer=has_newer)


class OverlooksFewerKeys(Replica[Any]):
    def validated(self, revision: int, count: int, *, has_newer: bool) -> bool:
        return super().validated(revision, max(count, len(self.tree)), has_newer=has_newer)


class AppliesLateEvents(Replica[Any]):
    def apply(self, events: tuple[Event, ...], decoded: Mapping[bytes, Any]) -> ContentStep:
        reached, self.revision = self.revision, 0
        step = super().apply(events, decoded)
        self.revision = max(self.revision, reached)
        return step


class TellsOfPassingEventsAtOnce(Replica[Any]):
    def _passed(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        super()._passed(events)
        return events


class CountsProbesTooEarly(Replica[Any]):
    def probed(self, sent: float, revision: int) -> None:
        super().probed(sent, min(revision, self.revision))


@pytest.mark.parametrize(
    ("mutant", "read"),
    [
        (TrustsEarlyMarks, "validation"),
        (IgnoresNewerKeys, "validation"),
        (IgnoresTheCount, "validation"),
        (OverlooksFewerKeys, "validation"),
        (AppliesLateEvents, "validation"),
        (TellsOfPassingEventsAtOnce, "validation"),
        (CountsProbesTooEarly, "probe"),
    ],
)
def test_mutants_are_caught(mutant: type[Replica[Any]], read: str) -> None:
    _, found = explore(mutant, 3, read)
    assert found is not None
