"""Following a prefix on real servers: the base, the changes, and what replaces a history that is compacted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from etcd_aio import Client, Event, EventType, InvalidRequestError, op
from etcd_aio.errors import (
    ClientUsageError,
    CompactedError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    StoreRolledBackError,
)
from etcd_aio.mirror import Follow, MirrorBatch, follow
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.locks import metric, until
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


def apply(table: dict[bytes, bytes], batch: MirrorBatch) -> None:
    for event in batch.changes:
        if event.is_put:
            table[event.key] = event.value
        else:
            del table[event.key]


async def follow_until(batches: Follow, table: dict[bytes, bytes], revision: int) -> list[MirrorBatch]:
    """Apply batches until all of a revision is applied."""
    taken = []
    async with asyncio.timeout(PATIENCE):
        while batches.revision < revision:
            taken.append(await anext(batches))
            apply(table, taken[-1])
    return taken


async def state(client: Client, prefix: str) -> dict[bytes, bytes]:
    return {kv.key: kv.value for kv in await client.range(prefix=prefix)}


async def test_the_base_comes_first_and_then_every_change(client: Client, prefix: str) -> None:
    for start in range(0, 2500, 100):
        await client.txn().then(*(op.put(f"{prefix}{start + at:04}", "v") for at in range(100))).commit()
    table: dict[bytes, bytes] = {}
    async with follow(client, prefix) as batches:
        first = await anext(batches)
        assert not batches.is_connected
        assert (first.is_base, first.revision, len(first.changes)) == (True, 0, 1000), "not complete yet"
        apply(table, first)
        txn = await client.txn().then(op.put(f"{prefix}a", "1"), op.delete(f"{prefix}0000")).commit()
        taken = await follow_until(batches, table, txn.revision)
        *base, change = taken
        assert [batch.is_base for batch in taken] == [True] * len(base) + [False]
        assert [batch.revision for batch in base] == [0] * (len(base) - 1) + [txn.revision - 1]
        assert [event.type for event in change.changes] == [EventType.PUT, EventType.DELETE]
        assert table == await state(client, prefix)
        assert len(table) == 2500
        assert batches.pending == 0
        assert batches.is_connected
    assert not batches.is_connected
    with pytest.raises(StopAsyncIteration):
        await anext(batches)


async def test_it_goes_on_behind_the_last_batch(client: Client, prefix: str) -> None:
    table: dict[bytes, bytes] = {}
    await client.put(f"{prefix}a", "1")
    async with follow(client, prefix) as batches:
        await follow_until(batches, table, 1)
        since = batches.revision
    put = await client.put(f"{prefix}b", "1")
    await client.delete(f"{prefix}a")
    async with follow(client, prefix, since=since) as batches:
        taken = await follow_until(batches, table, put.revision + 1)
        assert not any(batch.is_base for batch in taken)
    assert table == await state(client, prefix) == {f"{prefix}b".encode(): b"1"}


async def test_an_empty_prefix_is_every_key_and_an_empty_range_has_a_base(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client, follow(client, "") as batches:
        assert await anext(batches) == MirrorBatch((), 1, is_base=True)
        put = await client.put("k", "v")
        assert (await anext(batches)).revision == put.revision


async def test_a_history_that_is_compacted_is_an_error_or_a_difference(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        for name in "abcd":
            await client.put(name, "1")
        table: dict[bytes, bytes] = {}
        async with follow(client, "") as batches:
            await follow_until(batches, table, 5)
            since = batches.revision
        await client.delete("b")
        await client.put("c", "2")
        last = await client.put("e", "1")
        await client.compact(last.revision)
        async with follow(client, "", since=since) as batches:
            for _ in range(2):
                with pytest.raises(CompactedError):
                    await anext(batches)
        del table[b"d"]  # lost by the receiver, and unchanged
        async with follow(client, "", since=since, known=table) as batches:
            (batch,) = await follow_until(batches, table, last.revision)
            assert batch.is_base
            assert [(event.key, event.is_put) for event in batch.changes] == [
                (b"c", True),
                (b"d", True),
                (b"e", True),
                (b"b", False),
            ]
            put = await client.put("a", "2")
            await follow_until(batches, table, put.revision)
        assert table == await state(client, "")


async def test_a_store_that_went_back_is_an_error_or_a_difference(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        await asyncio.gather(*(client.put("old", "1") for _ in range(5)))
        last = await client.put("old", "1")
    await own_server.restart(wipe=True)
    async with Client(own_server.endpoint) as client:
        await client.put("new", "1")
        async with follow(client, "", since=last.revision) as batches:
            with pytest.raises(StoreRolledBackError) as caught:
                await anext(batches)
            assert (caught.value.seen, caught.value.revision) == (last.revision, 2)
        table = {b"old": b"1", b"new": b"0"}
        async with follow(client, "", since=last.revision, known=table) as batches:
            batch = await anext(batches)
            apply(table, batch)
            assert (batch.revision, batch.is_base) == (2, True)
        assert table == {b"new": b"1"}


async def test_a_compaction_during_the_base(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client, Client(own_server.endpoint) as other:
        for start in range(0, 9000, 100):
            await client.txn().then(*(op.put(f"{start + at:05}", "v" * 2000) for at in range(100))).commit()
        table: dict[bytes, bytes] = {}
        for known in (None, table):
            async with follow(client, "", known=known) as batches:
                apply(table, await anext(batches))
                await other.delete("00000")
                last = await other.put("00500", "w")
                await other.compact(last.revision)
                if known is None:
                    # What the server has sent already still comes; newer servers stream the whole range.
                    try:
                        await follow_until(batches, table, 2)
                    except CompactedError:
                        table.clear()
                    continue
                await follow_until(batches, table, last.revision)
        assert table == await state(client, "")


async def test_an_outage_is_raised_and_the_next_step_goes_on(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(shared_server.endpoint) as direct,
        Client(proxy.endpoint) as client,
    ):
        put = await direct.put(f"{prefix}a", "1")
        proxy.black_hole()
        async with follow(client, prefix, timeout=0.3) as batches:
            with pytest.raises((EtcdTimeoutError, NoAvailableEndpointsError)):  # connecting may be what takes too long
                await anext(batches)
            proxy.heal()
            batch = None
            async with asyncio.timeout(PATIENCE):
                while batch is None:
                    with suppress(EtcdTimeoutError, NoAvailableEndpointsError):  # while it connects again
                        batch = await anext(batches)
            assert batch.revision >= put.revision
            assert [event.key for event in batch.changes] == [f"{prefix}a".encode()]


async def test_every_step_is_cancelled_at_every_await(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        await client.put("a", "1")
        turns = 0
        while True:
            table: dict[bytes, bytes] = {}
            async with follow(client, "") as batches:
                cancelled = 0
                last = await client.put("c", "1")
                for number in range(2):
                    if number == 1:
                        last = await client.put("b", "1")
                    step = asyncio.ensure_future(anext(batches))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    if not step.done():
                        step.cancel()
                        cancelled += 1
                    with suppress(asyncio.CancelledError):
                        apply(table, await step)
                async with asyncio.timeout(PATIENCE):
                    while batches.revision < last.revision:
                        apply(table, await anext(batches))
            assert table == {b"a": b"1", b"b": b"1", b"c": b"1"}
            await client.delete("b")
            if not cancelled or turns > 200:
                break
            turns += 1 if turns < 40 else 23
        assert turns > 3

        async def is_clean() -> bool:
            return not await metric(own_server, "etcd_debugging_mvcc_watcher_total")

        await until(is_clean)


async def test_wrong_use_is_refused(client: Client, prefix: str) -> None:
    for arguments, error in (
        ({"since": -1}, InvalidRequestError),
        ({"since": "1"}, TypeError),
        ({"known": "abc"}, TypeError),
        ({"known": iter([b"a"])}, TypeError),
    ):
        kwargs: Any = arguments
        with pytest.raises(error):
            follow(client, prefix, **kwargs)
    batches = follow(client, prefix)
    with pytest.raises(ClientUsageError, match="async with follow"):
        await anext(batches)
    async with batches:
        assert repr(batches).startswith("<Follow KeyRange(b'test-")
        await anext(batches)
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        with pytest.raises(ClientUsageError, match="two tasks"):
            await anext(batches)
        with pytest.raises(ClientUsageError, match="entered once"):
            await batches.__aenter__()
        await batches.aclose()
        with pytest.raises(StopAsyncIteration):
            async with asyncio.timeout(PATIENCE):
                await waiting


def test_values_are_not_shown() -> None:
    batch = MirrorBatch((Event(EventType.DELETE, None),) * 2, 7, is_base=True)  # type: ignore[arg-type]
    assert repr(batch) == "MirrorBatch(<2 changes>, revision=7, is_base=True)"


async def test_an_ordered_store_that_has_seen_more_than_the_store_has(own_server: EtcdServer) -> None:
    """It can never be listed, so that known keys do not help."""
    async with Client(own_server.endpoint) as client:
        await client.put("p/a", "1")
        for since in (0, 5):
            view = client.ordered()
            view.revision = 1_000
            async with follow(view, "p/", since=since, known={"p/b"}) as batches:
                for _ in range(2):
                    with pytest.raises(StoreRolledBackError):
                        await asyncio.wait_for(anext(batches), PATIENCE)
