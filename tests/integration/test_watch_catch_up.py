"""Watches that begin long ago: a thousand revisions in one message, which are handed over while they arrive."""

import asyncio

import pytest

from etcd_aio import Client, WatchBatch, Watcher, op
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

REVISIONS, EVENTS, SIZE = 200, 50, 1000
MESSAGE = REVISIONS * EVENTS * SIZE  # bytes, at least


@pytest.fixture
async def first_revision(client: Client, prefix: str) -> int:
    """The first of the revisions, whose events are all in one message of the server."""
    first = 0
    for number in range(REVISIONS):
        puts = (op.put(f"{prefix}{number:04}/{event:02}", bytes(SIZE)) for event in range(EVENTS))
        made = await client.txn().then(*puts).commit()
        first = first or made.revision
    return first


async def take(watcher: Watcher, events: int, into: list[WatchBatch]) -> None:
    """Take batches until there are so many events."""
    async for batch in watcher.batches():
        into.append(batch)
        if sum(map(len, into)) >= events:
            return


def check(batches: list[WatchBatch], prefix: str, first_revision: int) -> None:
    """All events are there once, in order, and no revision is divided."""
    keys = [f"{prefix}{number:04}/{event:02}".encode() for number in range(REVISIONS) for event in range(EVENTS)]
    assert [event.key for batch in batches for event in batch.events] == keys
    ends = [batch.revision for batch in batches]
    assert ends == sorted(set(ends))
    assert ends[-1] == first_revision + REVISIONS - 1
    assert all(len(batch) % EVENTS == 0 for batch in batches)


async def test_events_are_handed_over_while_the_rest_of_their_message_arrives(
    shared_server: EtcdServer, prefix: str, first_revision: int
) -> None:
    batches: list[WatchBatch] = []
    async with FaultProxy(shared_server.endpoint) as proxy:
        proxy.cut_after(MESSAGE // 2, how="silence")
        async with (
            Client(proxy.endpoint, engine="native") as client,
            client.watch(prefix=prefix, start_revision=first_revision) as watcher,
        ):
            async with asyncio.timeout(PATIENCE):
                await take(watcher, 1, batches)
            assert sum(map(len, batches)) < REVISIONS * EVENTS
            proxy.heal()
            async with asyncio.timeout(PATIENCE):
                await take(watcher, REVISIONS * EVENTS, batches)
    check(batches, prefix, first_revision)


async def test_what_was_handed_over_is_not_sent_again_after_the_connection_was_lost_in_a_message(
    shared_server: EtcdServer, prefix: str, first_revision: int
) -> None:
    batches: list[WatchBatch] = []
    async with FaultProxy(shared_server.endpoint) as proxy:
        proxy.cut_after(MESSAGE * 3 // 4, how="fin")
        async with (
            Client(proxy.endpoint, engine="native") as client,
            client.watch(prefix=prefix, start_revision=first_revision) as watcher,
        ):
            async with asyncio.timeout(PATIENCE):
                await take(watcher, REVISIONS * EVENTS, batches)
            assert watcher.statistics().reconnects >= 1
        passed_on = proxy.statistics().bytes_to_client
    check(batches, prefix, first_revision)
    assert passed_on < MESSAGE * 3 // 2, "half of the message at least was handed over before the cut"


async def test_a_watch_that_is_left_within_a_message_leaves_its_stream_to_the_others(
    shared_server: EtcdServer, prefix: str, first_revision: int
) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, engine="native") as client:
        proxy.throttle(MESSAGE, "to_client")
        batches: list[WatchBatch] = []
        async with client.watch(prefix=prefix) as other:
            for _ in range(3):
                async with client.watch(prefix=prefix, start_revision=first_revision) as watcher:
                    left: list[WatchBatch] = []
                    await take(watcher, 1, left)
            put = await client.put(prefix + "new", "1")
            async with asyncio.timeout(PATIENCE):
                await take(other, 1, batches)
            assert [(event.key, event.kv.mod_revision) for event in batches[0].events] == [
                ((prefix + "new").encode(), put.revision)
            ]
