"""watch on real servers: every change once and in order, and nothing left behind on the server."""

import asyncio
import logging
import re
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial

import pytest

from etcd_aio import Client, Event, EventType, NoAvailableEndpointsError, WatchBatch, op
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    CompactedError,
    EtcdTimeoutError,
    PermissionDeniedError,
    ReplyTooLargeError,
    RequestTooLargeError,
    StoreRolledBackError,
    UserEmptyError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from etcd_aio.watch.open_stream import SILENCE
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.until import PATIENCE
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine", "each_store")]


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    """A member of this test's own."""
    async with EtcdServer() as server:
        yield server


async def metric(server: EtcdServer, name: str) -> float:
    def read() -> str:
        with urllib.request.urlopen(f"{server.endpoint}/metrics", timeout=5) as reply:
            text: str = reply.read().decode()
            return text

    found = re.search(rf"^{name} (\S+)$", await asyncio.to_thread(read), re.MULTILINE)
    return float(found[1]) if found else 0.0


async def watchers(server: EtcdServer) -> float:
    return await metric(server, "etcd_debugging_mvcc_watcher_total")


async def until_watchers(server: EtcdServer, number: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while await watchers(server) != number:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.02)


async def take(watcher: AsyncIterator[Event], number: int) -> list[Event]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(watcher) for _ in range(number)]


async def next_batch(batches: AsyncIterator[WatchBatch]) -> WatchBatch:
    async with asyncio.timeout(PATIENCE):
        return await anext(batches)


async def test_progress_is_reported_on_an_idle_store(own_server: EtcdServer) -> None:
    """Neither a watch behind the end of the store, as every listing's is, nor a reconnect keeps it back."""
    async with (
        FaultProxy(own_server.endpoint) as faults,
        Client(faults.endpoint) as client,
        Client(own_server.endpoint) as writer,
    ):
        revision = (await writer.put("k", "0")).revision
        async with (
            client.watch("k") as now,
            client.watch("k", start_revision=revision + 1) as listed,
            client.watch("k", start_revision=revision + 100),
        ):
            for _ in range(2):
                for watcher in (now, listed):
                    await watcher.request_progress()
                    async with asyncio.timeout(PATIENCE):
                        assert await watcher.next_batch() == WatchBatch((), revision)
                faults.reset()
            await writer.put("k", "1")
            for watcher in (now, listed):
                async with asyncio.timeout(PATIENCE):
                    assert [event.revision for event in await watcher.next_batch()] == [revision + 1]


async def test_a_store_that_went_back_is_noticed(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        for number in range(20):
            await client.put("a", str(number))
        seen = (await client.range("a")).revision
        async with (
            client.watch(prefix="", start_revision=seen) as watcher,
            client.watch(prefix="", start_revision=seen, on_compaction="resync") as resync,
        ):
            await take(watcher, 1)
            await take(resync, 1)
            await own_server.restart(wipe=True)
            async with Client(own_server.endpoint) as writer:
                now = (await writer.put("b", "1")).revision
            with pytest.raises(StoreRolledBackError) as caught:
                await take(watcher, 1)
            assert caught.value.revision <= now < caught.value.seen == seen
            there: dict[bytes, bytes] = {b"a": b"19"}
            while there != {b"b": b"1"}:
                (event,) = await take(resync, 1)
                if event.is_put:
                    there[event.key] = event.value
                else:
                    del there[event.key]
            async with asyncio.timeout(PATIENCE):
                while resync.revision < now:
                    await take(resync, 1)
            last = await client.put("a", "again")
            (event,) = await take(resync, 1)
            assert (event.revision, resync.revision) == (last.revision, last.revision)


async def test_a_put_from_inside_is_always_seen(client: Client, prefix: str) -> None:
    for number in range(300):
        async with client.watch(prefix + "k") as watcher:
            put = await client.put(prefix + "k", str(number))
            (event,) = await take(watcher, 1)
            assert (event.revision, event.value) == (put.revision, str(number).encode())


async def test_a_watch_from_now_begins_exactly_behind_its_revision(own_server: EtcdServer) -> None:
    """Whatever is written while it is being created: no revision is missing, none is from before."""
    async with Client(own_server.endpoint) as client:

        async def write() -> None:
            while True:
                await client.put("k/", "v")
                await asyncio.sleep(0.02)  # on a busy machine the stock engine reads slower than four tasks can write

        writers = [asyncio.create_task(write()) for _ in range(4)]
        for _ in range(100):
            async with client.watch(prefix="k/") as watcher:
                begin = watcher.revision
                assert [event.revision for event in await take(watcher, 3)] == [begin + 1, begin + 2, begin + 3]
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


@pytest.mark.both_engines
async def test_events_say_what_happened(client: Client, prefix: str) -> None:
    async with client.watch(prefix=prefix, prev_kv=True) as watcher:
        await client.put(prefix + "a", "1")
        await client.put(prefix + "a", "2")
        await client.delete(prefix + "a")
        created, changed, deleted = await take(watcher, 3)
        assert (created.type, created.is_put, created.prev_kv) == (EventType.PUT, True, None)
        assert changed.prev_kv is not None
        assert (changed.value, changed.prev_kv.value) == (b"2", b"1")
        assert deleted.prev_kv is not None
        assert (deleted.is_delete, deleted.key, deleted.value, deleted.prev_kv.value) == (
            True,
            prefix.encode() + b"a",
            b"",
            b"2",
        )
        assert watcher.revision == deleted.revision
        assert watcher.statistics().delivered == 3


async def test_every_form_of_range(client: Client, prefix: str) -> None:
    async with (
        client.watch(prefix + "b") as one,
        client.watch(prefix=prefix) as several,
        client.watch(prefix + "b", range_end=prefix + "d") as interval,
        client.watch(from_key=prefix + "c") as rest,
        client.watch(all_keys=True) as everything,
    ):
        for name in "abcd":
            await client.put(prefix + name, name)
        for watcher, expected in (
            (one, "b"),
            (several, "abcd"),
            (interval, "bc"),
            (rest, "cd"),
            (everything, "abcd"),
        ):
            assert [event.value.decode() for event in await take(watcher, len(expected))] == list(expected)


async def test_filters_leave_out_what_they_name(client: Client, prefix: str) -> None:
    async with (
        client.watch(prefix=prefix, filters=["no_put"]) as deletes,
        client.watch(prefix=prefix, filters=["no_delete"]) as puts,
    ):
        await client.put(prefix + "a", "1")
        await client.delete(prefix + "a")
        await client.put(prefix + "a", "2")
        await client.delete(prefix + "a")
        assert [event.type for event in await take(deletes, 2)] == [EventType.DELETE] * 2
        assert [event.value for event in await take(puts, 2)] == [b"1", b"2"]


async def test_a_txn_is_one_batch_and_history_is_whole_revisions(client: Client, prefix: str) -> None:
    first = 0
    for number in range(50):
        done = await client.txn().then(*(op.put(f"{prefix}{key}", str(number)) for key in range(20))).commit()
        first = first or done.revision
    async with client.watch(prefix=prefix, start_revision=first) as watcher:
        seen = 0
        async for batch in watcher.batches():
            assert len(batch) % 20 == 0
            assert batch.revision >= batch[-1].revision
            assert len({event.revision for event in batch}) * 20 == len(batch)
            seen += len(batch)
            assert watcher.revision == batch.revision
            if seen == 1000:
                break
        assert seen == 1000


async def test_revision_is_where_a_new_watch_goes_on(client: Client, prefix: str) -> None:
    done = await client.txn().then(*(op.put(f"{prefix}{key}", "1") for key in range(5))).commit()
    await client.put(prefix + "later", "2")
    async with client.watch(prefix=prefix, start_revision=done.revision) as watcher:
        await take(watcher, 3)
        assert watcher.revision == done.revision - 1  # the txn was not delivered wholly
        await take(watcher, 2)
        assert watcher.revision == done.revision
    assert watcher.revision == done.revision  # and the last put was not delivered
    async with client.watch(prefix=prefix, start_revision=watcher.revision + 1) as watcher:
        assert [event.value for event in await take(watcher, 1)] == [b"2"]


async def test_a_mark_that_was_asked_for(client: Client, prefix: str) -> None:
    need("3.4.25", "3.5.8", why="before it a mark could be sent ahead of the events it speaks of")
    first = await client.put(prefix + "a", "1")
    await client.put("elsewhere/" + prefix, "2")
    async with client.watch(prefix=prefix, start_revision=first.revision) as watcher, client.watch("x") as other:
        batches = watcher.batches()
        await watcher.request_progress()
        assert [event.value for event in await next_batch(batches)] == [b"1"]
        mark = await next_batch(batches)
        assert not mark
        assert mark.revision > first.revision
        assert watcher.revision == mark.revision
        last = await client.put(prefix + "a", "3")
        assert [event.value for event in await next_batch(batches)] == [b"3"]
        assert watcher.revision == last.revision
        assert other.revision >= mark.revision  # it was told, too, but not its consumer
        assert other.statistics().pending_bytes == 0


@pytest.mark.both_engines
@pytest.mark.parametrize("fragment", [True, None])
async def test_three_mebibytes_of_one_revision_range_come_in_fragments(
    shared_server: EtcdServer, prefix: str, fragment: bool | None
) -> None:
    # One message may have 2 MiB, and the catch-up is 3 MiB in 12 revisions.
    async with Client(shared_server.endpoint, max_receive_bytes=2 * 2**20 + 512 * 1024) as client:
        first = 0
        for _ in range(12):
            done = await client.txn().then(*(op.put(f"{prefix}{key}", bytes(64 * 1024)) for key in range(4))).commit()
            first = first or done.revision
        async with client.watch(prefix=prefix, start_revision=first, fragment=fragment) as watcher:
            revisions: list[int] = []
            async for batch in watcher.batches():
                found = [event.revision for event in batch]
                assert all(found.count(revision) == 4 for revision in found)
                revisions += found
                if len(revisions) == 48:
                    break
            assert revisions == sorted(revisions)
            # Fragments are requested only once they are needed.
            assert watcher.statistics().reconnects == (0 if fragment else 1)


@pytest.mark.parametrize("fragment", [True, False, None])
async def test_a_message_that_is_too_large_ends_its_watch_and_no_other(
    shared_server: EtcdServer, client: Client, prefix: str, fragment: bool | None
) -> None:
    async with Client(shared_server.endpoint, max_receive_bytes=100_000) as small:
        first = await client.put(prefix + "big", bytes(200_000))  # which no fragments make smaller
        async with small.watch(prefix + "small") as other:
            async with small.watch(prefix + "big", start_revision=first.revision, fragment=fragment) as watcher:
                with pytest.raises(ReplyTooLargeError):
                    await take(watcher, 1)
            await client.put(prefix + "small", "1")
            await take(other, 1)


async def test_compaction_is_raised_behind_what_was_received(own_server: EtcdServer) -> None:
    async with FaultProxy(own_server.endpoint) as proxy, Client(own_server.endpoint) as direct:  # noqa: SIM117 - two levels read better
        async with Client(proxy.endpoint) as client, client.watch(prefix="k/") as watcher:
            await direct.put("k/1", "1")
            await take(watcher, 1)
            await direct.put("k/2", "2")
            await until(lambda: watcher.statistics().pending_events == 1)
            proxy.refuse()
            proxy.cut()
            await until(lambda: not watcher.statistics().is_connected)
            await direct.put("k/3", "3")
            last = await direct.put("k/3", "4")
            await direct.compact(last.revision)
            proxy.accept()
            (event,) = await take(watcher, 1)
            assert event.value == b"2"
            for _ in range(2):
                with pytest.raises(CompactedError) as caught:
                    await take(watcher, 1)
                assert caught.value.compact_revision == last.revision
            assert watcher.revision == event.revision


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


async def test_a_resync_delivers_the_difference_and_goes_on(own_server: EtcdServer) -> None:
    async with FaultProxy(own_server.endpoint) as proxy, Client(own_server.endpoint) as direct:
        for name in ("kept", "gone", "changed"):
            await direct.put("k/" + name, "0")
        async with (
            Client(proxy.endpoint) as client,
            client.watch(prefix="k/", on_compaction="resync") as watcher,
            client.watch(prefix="k/", on_compaction="resync", filters=["no_delete"]) as puts,
        ):
            await direct.put("k/seen", "0")
            await take(watcher, 1)
            await take(puts, 1)
            proxy.refuse()
            proxy.cut()
            await until(lambda: not watcher.statistics().is_connected)
            await direct.put("k/changed", "1")
            await direct.delete("k/gone")
            await direct.delete("k/seen")
            await direct.put("k/came and went", "")
            await direct.delete("k/came and went")
            last = await direct.put("k/new", "1")
            await direct.compact(last.revision)
            proxy.accept()
            found = await take(watcher, 4)
            assert all(event.is_resync for event in found)
            assert [(event.type.name, event.key) for event in found] == [
                ("PUT", b"k/changed"),
                ("PUT", b"k/new"),
                ("DELETE", b"k/gone"),
                ("DELETE", b"k/seen"),
            ]
            assert watcher.revision == last.revision
            assert [event.key for event in await take(puts, 2)] == [b"k/changed", b"k/new"]
            await direct.put("k/new", "2")
            (event,) = await take(watcher, 1)
            assert (event.value, event.is_resync) == (b"2", False)
            await until(lambda: watcher.statistics().is_connected)


@pytest.mark.whole_store
async def test_what_a_server_refuses_ends_no_other_watch(own_server: EtcdServer) -> None:
    need("3.4.23", "3.5.30", why="with authentication on, older ones keep the keys of a lease that has expired")
    async with Client(own_server.endpoint) as client, client.watch("stays") as stays:
        lease = await client.leases.grant(2)
        await client.put("stays", "v", lease=lease.id)
        await take(stays, 1)
        for form in ({"key": bytes([1]) * 2**21}, {"prefix": bytes([1]) * 2**18}):
            with pytest.raises(RequestTooLargeError):
                async with client.watch(**form):  # type: ignore[arg-type]
                    pass
        async with client.watch(bytes([1]) * (2**19 - 64)):
            pass
        await enable_auth(own_server)
        for _ in range(3):
            with pytest.raises((UserEmptyError, PermissionDeniedError)):
                async with client.watch("k"):
                    pass
        (event,) = await take(stays, 1)  # the lease has expired, which needs no permission
        assert event.is_delete
        assert stays.statistics().reconnects == 0


@pytest.mark.whole_store
async def test_a_refused_watch_does_not_silence_the_oldest_one() -> None:
    """etcd 3.5.1 gives a watch that it refuses the id 0, and forgets the watch that has it."""
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
            client.watch(prefix="app/") as oldest,
        ):
            await client.put("app/1", "v")
            await take(oldest, 1)
            with pytest.raises(PermissionDeniedError):
                async with client.watch("other"):
                    pass
            put = await client.put("app/2", "v")
            (event,) = await take(oldest, 1)
            assert event.revision == put.revision


async def test_a_watch_that_is_dropped_leaves_the_server(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client, client.watch("stays"):
        watcher = await client.watch("k").__aenter__()
        await until_watchers(own_server, 2)
        await asyncio.sleep(0)
        with pytest.warns(ResourceWarning, match="not closed"):
            del watcher
        await until_watchers(own_server, 1)


async def test_no_value_is_told_to_anybody(own_server: EtcdServer, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-7d1f"
    told: list[object] = []
    caplog.set_level(logging.DEBUG)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultProxy(own_server.endpoint))
        direct = await stack.enter_async_context(Client(own_server.endpoint))
        client = await stack.enter_async_context(Client(proxy.endpoint))
        watch = partial(client.watch, prefix="k/", prev_kv=True)
        raising = await stack.enter_async_context(watch())
        resynced = await stack.enter_async_context(watch(on_compaction="resync"))
        slow = await stack.enter_async_context(watch(max_pending=1))
        for _ in range(3):
            await direct.put("k/1", canary)
            told += [*await take(raising, 1), *await take(resynced, 1)]
        await until(lambda: slow.statistics().pauses == 1)
        told += [slow, slow.statistics(), *slow._state.pending, await slow.next_batch(), slow.batches()]
        proxy.refuse()
        proxy.cut()
        await until(lambda: not raising.statistics().is_connected)
        await direct.put("k/1", canary)
        last = await direct.put("k/1", canary)
        await direct.compact(last.revision)
        proxy.accept()
        told += await take(resynced, 1)
        with pytest.raises(CompactedError) as caught:
            await take(raising, 1)
        told += [caught.value, raising, resynced, client, vars(caught.value)]
    shown = f"{told}{[str(one) for one in told]}{caplog.text}"
    assert "k/1" in shown
    assert "stream watch: lost" in shown
    assert canary not in shown


async def test_a_slow_consumer_is_bounded_and_loses_nothing(client: Client, prefix: str) -> None:
    bound = 256 * 1024
    async with (
        client.watch(prefix=prefix, max_pending=bound) as slow,
        client.watch(prefix=prefix) as quick,
    ):
        for number in range(200):
            await client.put(f"{prefix}{number}", bytes(8 * 1024))
            await take(quick, 1)
        await until(lambda: slow.statistics().pauses > 0)
        assert slow.statistics().pending_bytes <= bound + 16 * 1024
        assert quick.statistics().pauses == 0
        revisions = [event.revision for event in await take(slow, 200)]
        assert revisions == sorted(set(revisions))
        assert slow.statistics().pending_events == 0


@pytest.mark.both_engines
async def test_a_catch_up_in_messages_beyond_the_bound_loses_and_repeats_nothing(client: Client, prefix: str) -> None:
    first = (await client.put(f"{prefix}0", "")).revision
    for start in range(1, 2401, 100):  # etcd puts a thousand revisions into a message
        await asyncio.gather(*(client.put(f"{prefix}{number}", bytes(64)) for number in range(start, start + 100)))
    async with (
        client.watch(prefix=prefix, start_revision=first, max_pending=1024) as slow,
        client.watch(prefix=prefix, start_revision=first) as other,
    ):
        expected = [(event.revision, event.key) for event in await take(other, 2401)]
        assert [(event.revision, event.key) for event in await take(slow, 2401)] == expected
        assert slow.statistics().pauses > 1
        assert len(set(expected)) == 2401


@pytest.mark.both_engines
async def test_however_a_watch_is_left_the_server_forgets_it(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client, client.watch("stays") as stays:
        await until_watchers(own_server, 1)

        async def leave_by_break() -> None:
            async with client.watch(prefix="k") as watcher:
                await client.put("k", "v")
                async for _ in watcher:
                    break

        async def leave_by_exception() -> None:
            with pytest.raises(ZeroDivisionError):
                async with client.watch(prefix="k"):
                    raise ZeroDivisionError

        async def leave_by_cancellation() -> None:
            entered = asyncio.Event()

            async def follow() -> None:
                async with client.watch(prefix="k") as watcher:
                    entered.set()
                    async for _ in watcher:
                        pass

            task = asyncio.create_task(follow())
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        async def leave_while_entering() -> None:
            tasks = [asyncio.create_task(client.watch(prefix="k").__aenter__()) for _ in range(5)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        for leave in (leave_by_break, leave_by_exception, leave_by_cancellation, leave_while_entering):
            for _ in range(5):
                await leave()
            await until_watchers(own_server, 1)
        await client.put("stays", "v")
        await take(stays, 1)


@pytest.mark.both_engines
async def test_a_cancelled_step_loses_no_event(client: Client, prefix: str) -> None:
    async with client.watch(prefix=prefix) as watcher:
        seen: list[Event] = []
        cancelled = 0
        for number in range(200):
            step = asyncio.ensure_future(anext(watcher))
            put = asyncio.create_task(client.put(prefix, str(number)))
            if number % 2:
                await put
            for _ in range(number % 7):
                await asyncio.sleep(0)
            step.cancel()
            try:
                seen.append(await step)
            except asyncio.CancelledError:
                cancelled += 1
            await put
        seen += await take(watcher, cancelled)
        assert cancelled
        assert [event.value for event in seen] == [str(number).encode() for number in range(200)]


async def test_what_cannot_be_used_says_so(client: Client, prefix: str) -> None:
    watcher = client.watch(prefix)
    with pytest.raises(ClientUsageError, match="not entered"):
        await anext(watcher)
    async with watcher:
        with pytest.raises(ClientUsageError, match="once"):
            await watcher.__aenter__()
        first = asyncio.create_task(anext(watcher))
        await asyncio.sleep(0)
        with pytest.raises(ClientUsageError, match="two tasks"):
            await anext(watcher)
        with pytest.raises(ClientUsageError, match="not both"):
            watcher.batches()
        await client.put(prefix, "v")
        assert (await first).value == b"v"
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)


async def test_the_close_of_the_client_ends_its_watches(shared_server: EtcdServer, prefix: str) -> None:
    client = Client(shared_server.endpoint)
    async with client.watch(prefix) as one, client.watch(prefix) as other:
        step = asyncio.create_task(anext(one))
        await asyncio.sleep(0)
        await client.aclose()
        for waiting in (step, anext(other), anext(one)):
            with pytest.raises(ClientClosedError):
                await waiting
    with pytest.raises(ClientClosedError):
        async with client.watch(prefix):
            pass


async def test_without_a_member_entering_ends_in_time() -> None:
    async with Client("127.0.0.1:1") as client:
        with pytest.raises(NoAvailableEndpointsError) as caught:
            async with client.watch("k", timeout=0.3):
                pass
        assert list(caught.value.errors) == ["127.0.0.1:1"]


async def test_a_silent_member_does_not_hold_entering(shared_server: EtcdServer) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint) as client:
        await client.get("k")
        proxy.black_hole()
        with pytest.raises((EtcdTimeoutError, NoAvailableEndpointsError)):
            async with client.watch("k", timeout=0.5):
                pass


@pytest.mark.parametrize("lived", [0.0, SILENCE + 0.5])  # by then the timer of their creation has run
async def test_an_outage_that_is_too_long_ends_only_the_watches_that_say_so(
    own_server: EtcdServer, lived: float
) -> None:
    async with FaultProxy(own_server.endpoint) as proxy, Client(proxy.endpoint) as client:  # noqa: SIM117 - as above
        async with client.watch("k", max_outage=0.3) as impatient, client.watch("k") as patient:
            await asyncio.sleep(lived)
            proxy.refuse()
            proxy.cut()
            with pytest.raises(NoAvailableEndpointsError):
                await take(impatient, 1)
            proxy.accept()
            async with Client(own_server.endpoint) as direct:
                await direct.put("k", "v")
            await take(patient, 1)
            assert patient.statistics().reconnects >= 1


async def test_a_frozen_member_is_left(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client, client.watch(prefix="k/") as watcher:
        written = 0
        seen: list[int] = []

        async def follow() -> None:
            async for event in watcher:
                seen.append(int(event.value))  # noqa: PERF401 - it is read meanwhile

        task = asyncio.create_task(follow())
        for member in cluster.members:
            member.pause()
            for _ in range(20):
                async with asyncio.timeout(PATIENCE):
                    while True:
                        try:
                            await client.put("k/", str(written), timeout=5)
                            break
                        except (EtcdTimeoutError, OSError):
                            continue
                written += 1
            await until(lambda last=written - 1: bool(seen) and seen[-1] == last)  # type: ignore[misc]
            member.resume()
            await cluster.wait_healthy()
        task.cancel()
        assert sorted(set(seen)) == list(range(written))
        assert list(dict.fromkeys(seen)) == sorted(set(seen))


async def test_ten_thousand_are_opened_and_closed(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint, timeout=PATIENCE) as client:
        before = await watchers(own_server)
        opened = [client.watch(f"k/{number}") for number in range(10_000)]
        await asyncio.gather(*(watcher.__aenter__() for watcher in opened))
        await until_watchers(own_server, before + 10_000)
        await client.put("k/4711", "v")
        await take(opened[4711], 1)
        for watcher in opened:
            await watcher.aclose()
        await until_watchers(own_server, before)


async def test_watches_that_name_a_stream_share_it_and_no_other(own_server: EtcdServer, prefix: str) -> None:
    async with Client(own_server.endpoint) as client, AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(client.watch(f"{prefix}{number}", stream=name))
            for number, name in enumerate(("", "mark", "mark", "other"))
        ]
        assert [stream.method for stream in client.streams()] == ["Watch/Watch"] * 3
        for number, watcher in enumerate(opened):
            await client.put(f"{prefix}{number}", "v")
            assert len(await take(watcher, 1)) == 1
        for watcher in opened[1:]:
            await watcher.aclose()
        await until_watchers(own_server, 1)
        async with asyncio.timeout(PATIENCE):
            while len(client.streams()) > 1:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        async with client.watch(prefix, stream="mark") as again:  # a name may be used again
            await client.put(prefix, "v")
            assert len(await take(again, 1)) == 1
