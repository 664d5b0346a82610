"""Followers of a cache: whatever comes in between, what a follower was told leads to the content.

A history of writes is served to a replica as a watch does it, in batches of any size; some at once, some staged, some
behind a validation. The watch is lost and resumed, or the history compacted and the range loaded again. The followers
take what is there at any time, and are overrun at any time. Whenever one has taken everything, its keys are those
of the content, at the same revisions; every event of one that was never overrun fits what it knew.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cache.changes import CacheBatches, CacheChanges, Follower
from etcd_aio.cache.rows import key_value
from etcd_aio.cache.state import Replica
from etcd_aio.cache.steps import ContentStep
from tests.support.tiers import nightly_examples

KEYS: Final = (b"a", b"b")
OVERRUN: Final = 1000  # bytes: two batches of one event

Known = dict[bytes, int]


class Scene:
    """A store with its history, the watch, the replica, and its followers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.store: dict[bytes, KeyValue] = {b"a": KeyValue(b"a", b"", 2, 2, 1)}
        self.revision = 2
        self.history: list[Event] = []
        self.sent = 0  # events that the watch has delivered
        self.replica: Replica[KeyValue] = Replica(is_decoded=False)
        self.is_overrun = False
        self.changes = CacheChanges(self._ignore, loop)
        self.batches = [CacheBatches(self._ignore, loop, most) for most in (OVERRUN, 1 << 20)]
        self.known: dict[Follower, Known] = {follower: {} for follower in self.followers}
        self.load()
        for follower in self.followers:
            self.known[follower] = self.content()

    @property
    def followers(self) -> tuple[Follower, ...]:
        return (self.changes, *self.batches)

    def _ignore(self, follower: Follower) -> None:
        """There is no cache to forget it."""

    def content(self) -> Known:
        return {key: key_value(row).mod_revision for key, row in self.replica.tree.values.items()}

    # What happens.

    def write(self, key: bytes, is_put: bool) -> None:
        before = self.store.get(key)
        if not is_put and before is None:
            return
        self.revision += 1
        if is_put:
            create = self.revision if before is None else before.create_revision
            version = 1 if before is None else before.version + 1
            kv = self.store[key] = KeyValue(key, b"", create, self.revision, version)
            self.history.append(Event(EventType.PUT, kv))
        else:
            del self.store[key]
            self.history.append(Event(EventType.DELETE, KeyValue(key, mod_revision=self.revision)))

    def deliver(self, number: int, is_staged: bool) -> None:
        events = tuple(self.history[self.sent : self.sent + number])
        if not events:
            return
        self.sent += len(events)
        replica = self.replica
        events = tuple(event for event in events if event.revision > replica._loaded_at)
        if not events:
            return
        if is_staged and events[0].revision > replica.revision:
            staging = replica.stage()
            staging.add(events, {})
            deque(staging.build())
            self.tell(replica.apply_staged(staging, events))
        else:
            self.tell(replica.apply(events, {}))

    def validate(self) -> None:
        has_newer = any(kv.mod_revision > self.replica.revision for kv in self.store.values())
        self.replica.validated(self.revision, len(self.store), has_newer=has_newer)

    def passes(self, key: bytes) -> None:
        """A key comes and goes, and a validation comes before its events."""
        if key not in self.store:
            self.write(key, True)
            self.write(key, False)
        self.validate()

    def resume(self) -> None:
        """Another watch begins behind the content."""
        self.replica.forget_passing()
        self.sent = sum(event.revision <= self.replica.revision for event in self.history)

    def load(self) -> None:
        if self.replica.revision:
            self.replica.fall_behind()
        base = self.replica.new_base()
        page = sorted(self.store.values(), key=lambda kv: kv.key)
        deque((*base.add(page, base.changed(page), {}), *base.finish()))
        self.sent = len(self.history)
        self.tell(self.replica.loaded(base, self.revision, 0.0))

    def tell(self, step: ContentStep) -> None:
        for follower in self.followers:
            follower.add(step)

    async def take(self, follower: Any) -> None:
        """Take what there is, and check that it fits."""
        known = self.known[follower]
        if isinstance(follower, CacheChanges):
            while follower._conflation.changes:
                _, changed = await anext(follower)
                for key, kv in changed.items():
                    assert kv is not None or key in known, "the deletion of a key that it does not know"
                    known.pop(key, None)
                    known |= {} if kv is None else {key: kv.mod_revision}
        else:
            while follower._has_something():
                for event in (await anext(follower)).events:
                    if event.is_put:
                        known[event.key] = event.revision
                    else:
                        assert event.key in known, "the deletion of a key that it does not know"
                        del known[event.key]
        assert known == self.content()


HAPPENING: Final = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("deliver"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("deliver"), st.just(1), st.booleans()),
    st.tuples(st.just("take"), st.integers(0, 2)),
    st.tuples(st.just("validate")),
    st.tuples(st.just("passes"), st.sampled_from(KEYS)),
    st.tuples(st.just("passes"), st.sampled_from(KEYS)),
    st.tuples(st.just("resume")),
    st.tuples(st.just("load")),
)


async def run(happenings: Iterable[tuple[Any, ...]]) -> None:
    scene = Scene(asyncio.get_running_loop())
    for word, *arguments in happenings:
        if word == "take":
            await scene.take(scene.followers[arguments[0]])
        else:
            getattr(scene, word)(*arguments)
    for follower in scene.followers:
        await scene.take(follower)
    scene.deliver(len(scene.history), is_staged=False)
    for follower in scene.followers:
        await scene.take(follower)
        assert scene.known[follower] == {key: kv.mod_revision for key, kv in scene.store.items()}


@given(st.lists(HAPPENING, max_size=40))
@nightly_examples(20_000, default=400)
def test_what_a_follower_was_told_leads_to_the_content(happenings: list[tuple[Any, ...]]) -> None:
    asyncio.run(run(happenings))


@pytest.mark.parametrize("rest", ["delivered", "lost with the watch", "compacted"])
async def test_a_key_that_comes_and_goes_behind_a_validation(rest: str) -> None:
    scene = Scene(asyncio.get_running_loop())
    scene.write(b"b", True)
    scene.write(b"b", False)
    scene.validate()
    assert scene.replica.revision == scene.revision
    scene.deliver(1, is_staged=False)
    for follower in scene.followers:
        await scene.take(follower)
    if rest == "delivered":
        scene.deliver(1, is_staged=False)
        batch = await anext(scene.batches[1])
        assert [event.is_put for event in batch.events] == [True, False]
    elif rest == "compacted":
        scene.load()
    else:
        scene.resume()
    scene.write(b"c", True)
    scene.deliver(5, is_staged=False)
    for follower in scene.followers:
        await scene.take(follower)


pytestmark = pytest.mark.anyio
