"""cache/changes.py: followers: what they get, when they are slow, and how they end."""

import asyncio
import gc
from collections.abc import Iterable

import pytest

from etcd_aio import ClientClosedError, Event, EventType, KeyValue
from etcd_aio.cache.changes import CacheBatches, CacheChanges, Follower, KeySetChanges
from etcd_aio.cache.steps import ContentStep
from etcd_aio.errors import CacheError, ClientUsageError
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio


def put(key: bytes, revision: int, version: int = 1) -> Event:
    return Event(EventType.PUT, KeyValue(key, b"", 0, revision, version))


def delete(key: bytes, revision: int) -> Event:
    return Event(EventType.DELETE, KeyValue(key, mod_revision=revision))


def tell(follower: Follower, *events: Event, created: Iterable[bytes] = (), late: int = 0) -> None:
    """As a cache does; `late` is its revision if the events are not newer."""
    changes = {} if late else {event.key: event.kv if event.is_put else None for event in events}
    follower.add(ContentStep(late or events[-1].revision, changes, set(created), events))


def ignore(follower: Follower) -> None:
    """There is no cache to forget it."""


async def test_changes_are_conflated_until_they_are_taken() -> None:
    changes = CacheChanges(ignore, asyncio.get_running_loop())
    tell(changes, put(b"a", 5, 2))
    tell(changes, put(b"a", 6, 3), put(b"b", 6), created=[b"b"])
    tell(changes, delete(b"b", 7))
    assert await anext(changes) == (7, {b"a": put(b"a", 6, 3).kv})
    taking = asyncio.ensure_future(anext(changes))
    await turns()
    assert not taking.done()
    tell(changes, delete(b"a", 8))
    assert await taking == (8, {b"a": None})


async def test_batches_come_one_by_one() -> None:
    batches = CacheBatches(ignore, asyncio.get_running_loop(), 10_000)
    tell(batches, put(b"a", 5), created=[b"a"])
    tell(batches, put(b"a", 6, 2), delete(b"b", 6))
    tell(batches, put(b"x", 3), delete(b"x", 4), late=6)
    assert (await anext(batches)).events == (put(b"a", 5),)
    batch = await anext(batches)
    assert (batch.events, batch.revision) == ((put(b"a", 6, 2), delete(b"b", 6)), 6)
    assert (await anext(batches)).events == (put(b"x", 3), delete(b"x", 4))


async def test_a_slow_consumer_of_batches_gets_one_difference() -> None:
    batches = CacheBatches(ignore, asyncio.get_running_loop(), 3_000)
    tell(batches, put(b"fleeting", 4), created=[b"fleeting"])
    for revision in range(5, 50):
        tell(batches, put(b"a", revision, revision))
    tell(batches, delete(b"fleeting", 50))
    tell(batches, put(b"b", 51), created=[b"b"])
    tell(batches, put(b"x", 2), delete(b"x", 3), late=51)
    batch = await anext(batches)
    assert batch.revision == 51
    assert [(event.key, event.revision, event.is_resync) for event in batch] == [(b"a", 49, True), (b"b", 51, True)]
    tell(batches, put(b"a", 52, 60))
    assert [event.is_resync for event in await anext(batches)] == [False]


async def test_one_batch_larger_than_the_bound_is_accepted() -> None:
    batches = CacheBatches(ignore, asyncio.get_running_loop(), 1)
    tell(batches, put(b"a", 5))
    assert [event.is_resync for event in await anext(batches)] == [False]


async def test_a_difference_that_cancels_itself_out_is_not_told() -> None:
    batches = CacheBatches(ignore, asyncio.get_running_loop(), 1)
    tell(batches, put(b"a", 5), created=[b"a"])
    tell(batches, delete(b"a", 6))
    taking = asyncio.ensure_future(anext(batches))
    await turns()
    assert not taking.done()
    tell(batches, put(b"b", 7), created=[b"b"])
    batch = await taking
    assert [(event.key, event.is_resync) for event in batch] == [(b"b", False)]


async def test_a_load_is_a_difference_behind_what_was_not_taken() -> None:
    batches = CacheBatches(ignore, asyncio.get_running_loop(), 10_000)
    tell(batches, put(b"a", 5), created=[b"a"])
    batches.add(ContentStep(9, {b"a": None, b"b": put(b"b", 8).kv}, {b"b"}))
    batch = await anext(batches)
    assert [(event.key, event.is_put) for event in batch] == [(b"b", True)]
    assert batch.revision == 9


@pytest.mark.parametrize("kind", [CacheChanges, lambda forget, loop: CacheBatches(forget, loop, 10_000)])
async def test_the_end_comes_behind_what_was_not_taken(kind: type[CacheChanges]) -> None:
    loop = asyncio.get_running_loop()
    left, failed = kind(ignore, loop), kind(ignore, loop)
    for follower in (left, failed):
        tell(follower, put(b"a", 5))
    left.end(None)
    failed.end(CacheError("over"))
    await anext(left)
    await anext(failed)
    with pytest.raises(StopAsyncIteration):
        await anext(left)
    for _ in range(2):
        with pytest.raises(CacheError, match="over"):
            await anext(failed)
    failed.end(ClientClosedError())
    with pytest.raises(CacheError):
        await anext(failed)


async def test_closing_a_follower_ends_it_at_once() -> None:
    forgotten: list[Follower] = []
    changes = CacheChanges(forgotten.append, asyncio.get_running_loop())
    tell(changes, put(b"a", 5))
    await changes.aclose()
    await changes.aclose()
    assert forgotten[0] is changes
    assert [step async for step in changes] == []


async def test_two_tasks_cannot_share_a_follower_and_a_cancelled_one_loses_nothing() -> None:
    changes = CacheChanges(ignore, asyncio.get_running_loop())
    taking = asyncio.ensure_future(anext(changes))
    await turns()
    with pytest.raises(ClientUsageError, match="two tasks"):
        await anext(changes)
    tell(changes, put(b"a", 5))
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert (await anext(changes))[0] == 5


async def test_a_follower_that_is_dropped_is_collected() -> None:
    from weakref import ref

    changes = CacheChanges(ignore, asyncio.get_running_loop())
    weak = ref(changes)
    del changes
    gc.collect()
    assert weak() is None


async def test_a_key_set_moves_with_keys_that_come_and_go_and_not_with_their_values() -> None:
    followed = KeySetChanges(ignore, asyncio.get_running_loop(), lambda key: key != b"other", 4)
    taking = asyncio.ensure_future(anext(followed))
    tell(followed, put(b"a", 5, 2))
    tell(followed, put(b"other", 6))
    await turns()
    assert (followed.revision, taking.done()) == (4, False)
    tell(followed, put(b"b", 7), delete(b"b", 8), put(b"a", 9, 3), created=[b"b"])
    assert (followed.revision, await taking) == (8, 8)
    tell(followed, put(b"c", 3), delete(b"c", 6), late=9)
    assert followed.revision == 8, "late events that are older"
    tell(followed, put(b"c", 9), delete(b"c", 10), late=11)
    assert (followed.revision, await anext(followed)) == (10, 10)
    followed.add(ContentStep(10, {}, set(), is_load=True))  # of another store
    assert await anext(followed) == 10
    followed.add(ContentStep(3, {}, set(), is_load=True))  # a backup was restored
    assert (followed.revision, await anext(followed)) == (3, 3)
