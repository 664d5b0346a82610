"""Caches in trouble that comes at a bad moment: while they load, while they close, in functions of the application."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from etcd_aio import Candidate, Client, KeyValue, Watcher, op
from etcd_aio.cache import Cache, CacheState
from etcd_aio.cache.replicator import Replicator
from etcd_aio.errors import CacheError, StoreRolledBackError
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from etcd_aio.watch.service import WatchService
from tests.support import versions
from tests.support.until import PATIENCE, until
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    versions.need_beside("3.5.35")
    async with EtcdServer(version="3.5.35") as server:  # later ones stream a range, so that a load has a single read
        yield server


async def fill(client: Client, prefix: str, count: int) -> None:
    for begin in range(0, count, 100):
        puts = [op.put(f"{prefix}{number:06}", str(number)) for number in range(begin, min(begin + 100, count))]
        await client.txn().then(*puts).commit()


class BetweenPages:
    """Does something once between the first pages of loads, as often as it is armed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.actions: list[Any] = []
        decode = Replicator._decode

        async def decode_after_action(replicator: Replicator[Any], kvs: Iterable[KeyValue]) -> dict[bytes, Any]:
            if self.actions:
                await self.actions.pop(0)()
            return await decode(replicator, kvs)

        monkeypatch.setattr(Replicator, "_decode", decode_after_action)


async def test_a_history_that_is_compacted_while_the_keys_are_loaded(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pinned revision is gone between two pages, at the first load and at a later one."""
    between = BetweenPages(monkeypatch)
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await fill(writer, "p/", 3_000)

        async def compact() -> None:
            await writer.put("p/new", "1")
            await writer.compact((await writer.delete("p/000001")).revision)
            await writer.put("p/000001", "again")

        between.actions = [compact, compact]
        async with client.cache(prefix="p/") as cache:
            assert between.actions == []
            assert cache.statistics().loads == 1
            await cache.wait_current(timeout=PATIENCE)
            assert list(cache.range().values()) == list(await writer.range(prefix="p/"))
            changes = cache.changes()
            known = cache.range()
            proxy.refuse()
            proxy.reset()
            await compact()
            between.actions = [compact, compact]
            proxy.heal()
            await until(lambda: not between.actions)
            await cache.wait_current(timeout=PATIENCE)
            assert cache.statistics().loads == 2
            content = cache.range()
            assert list(content.values()) == list(await writer.range(prefix="p/"))
            while known != content:
                _, changed = await asyncio.wait_for(anext(changes), PATIENCE)
                for key, kv in changed.items():
                    if kv is None:
                        del known[key]
                    else:
                        known[key] = kv


async def test_loads_that_fail_again_and_again_have_pauses(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = BetweenPages(monkeypatch)
    async with Client(own_server.endpoint) as client:
        await fill(client, "p/", 3_000)
        loads: list[float] = []

        async def compact() -> None:
            loads.append(asyncio.get_running_loop().time())
            await client.compact((await client.put("p/new", "1")).revision)

        between.actions = [compact] * 5
        async with client.cache(prefix="p/") as cache:
            assert len(cache) == 3_001
        pauses = [later - earlier for earlier, later in pairwise(loads)]
        assert len(pauses) == 4
        assert min(pauses[1:]) >= 0.1, "the second one in a row waits, and later ones wait longer"


async def test_a_member_that_freezes_while_the_keys_are_loaded(
    cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = BetweenPages(monkeypatch)
    async with (
        Client(cluster.endpoints, timeout=PATIENCE) as writer,
        Client(cluster.endpoints, timeout=PATIENCE) as client,
    ):
        await fill(writer, "p/", 5_000)

        async def freeze() -> None:
            cluster.members[0].pause()

        async def freeze_another() -> None:
            cluster.members[0].resume()
            cluster.members[1].pause()

        between.actions = [freeze, freeze_another]
        try:
            async with client.cache(prefix="p/") as cache:
                await cache.wait_current(timeout=PATIENCE)
                assert len(cache) == 5_000
        finally:
            for member in cluster.members:
                member.resume()


async def test_two_caches_of_one_prefix_do_not_disturb_each_other(own_server: EtcdServer) -> None:
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await fill(writer, "p/", 50)
        async with client.cache(prefix="p/") as one:
            put = await writer.put("p/000001", "0")
            async with client.cache(prefix="p/", decode=int) as other:
                for number in range(20):
                    put = await writer.put("p/000001", str(number))
                    await asyncio.gather(one.wait_current(), other.wait_revision(put.revision))
                    kv = one["p/000001"]
                    assert (kv.value, kv.mod_revision, other["p/000001"]) == (
                        str(number).encode(),
                        put.revision,
                        number,
                    )
                    if number == 10:
                        proxy.reset()
                waiting = asyncio.create_task(other.wait_revision(2**60, timeout=None))
                patient = asyncio.create_task(one.wait_revision(put.revision + 1, timeout=None))
                await turns()
            with pytest.raises(CacheError):
                await waiting
            await turns()
            assert not patient.done()
            await writer.put("p/new", "1")
            await asyncio.wait_for(patient, PATIENCE)
            assert one.state is CacheState.READY


async def test_a_cache_in_a_namespace_with_large_revisions_and_a_compaction(own_server: EtcdServer) -> None:
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await fill(writer, "app/p/", 5_000)
        await writer.put("p/outside", "1")
        async with client.namespace("app/").cache(prefix="p/") as cache:
            assert len(cache) == 5_000
            gone = await writer.delete(prefix="app/p/")
            await cache.wait_revision(gone.revision)
            assert cache.range() == {}
            await fill(writer, "app/p/", 3_000)
            await cache.wait_current(timeout=PATIENCE)
            assert len(cache) == 3_000
            proxy.refuse()
            proxy.reset()
            await writer.delete(prefix="app/p/0000")
            await writer.compact((await writer.put("app/p/new", "1")).revision)
            proxy.heal()
            await cache.wait_current(timeout=PATIENCE)
            held = {kv.key.removeprefix(b"app/"): kv.value for kv in await writer.range(prefix="app/p/")}
            assert {key: kv.value for key, kv in cache.range().items()} == held
            assert all(kv.key == key for key, kv in cache.range().items())


async def test_readers_that_are_cancelled_disturb_no_other(own_server: EtcdServer, run_seed: int) -> None:
    choose = random.Random(run_seed)
    async with Client(own_server.endpoint) as client, client.cache(prefix="p/") as cache:
        for number in range(30):
            readers = [asyncio.create_task(cache.read("p/a", timeout=PATIENCE)) for _ in range(100)]
            put = await client.put("p/a", str(number))
            later = [asyncio.create_task(cache.read("p/a", timeout=PATIENCE)) for _ in range(20)]
            await turns(choose.randrange(10))
            for reader in choose.sample(readers, 60):
                reader.cancel()
            found = await asyncio.gather(*later)
            assert all(kv is not None and kv.mod_revision == put.revision for kv in found)
            ended = await asyncio.gather(*readers, return_exceptions=True)
            assert {type(one) for one in ended} <= {KeyValue, asyncio.CancelledError, type(None)}
        assert cache.statistics().waiting == 0
        await until(lambda: not [task for task in asyncio.all_tasks() if "catch-up" in task.get_name()])


async def test_a_function_that_always_raises_stops_nothing(own_server: EtcdServer) -> None:
    def decode(value: bytes) -> str:
        raise RuntimeError("c4n4ry-text of the value")

    async with Client(own_server.endpoint) as client:
        await fill(client, "p/", 2_500)
        async with client.cache(prefix="p/", decode=decode) as cache:
            assert (len(cache), cache.range(), cache.statistics().keys) == (0, {}, 2_500)
            await client.delete(prefix="p/")
            await client.put("p/a", "1")
            assert await cache.read("p/a") is None
            assert (cache.statistics().keys, cache.statistics().decode_errors) == (1, 2_501)
            kv = cache.kv("p/a")
            assert kv is not None
            assert kv.value == b"1"


async def test_a_cancelled_task_of_its_own_ends_it(own_server: EtcdServer) -> None:
    """As by an application that cancels all tasks: without it the content would be old, and nothing would say so."""
    async with Client(own_server.endpoint) as client, client.cache(prefix="p/") as cache:
        waiting = asyncio.create_task(cache.wait_revision(2**60, timeout=None))
        changes = cache.changes()
        reading = [asyncio.create_task(cache.wait_current(timeout=None)) for _ in range(3)]
        await turns(2)
        reading.append(asyncio.create_task(cache.wait_current(timeout=None)))
        await turns(1)
        for task in asyncio.all_tasks():
            if task.get_name().startswith("etcd_aio cache"):
                task.cancel()
        with pytest.raises(CacheError, match="cancelled"):
            await asyncio.wait_for(waiting, PATIENCE)
        ended = await asyncio.wait_for(asyncio.gather(*reading, return_exceptions=True), PATIENCE)
        assert [type(error) for error in ended] == [CacheError] * 4
        assert cache.state is CacheState.CLOSED
        with pytest.raises(CacheError, match="cancelled"):
            cache.get("p/a")
        with pytest.raises(CacheError, match="cancelled"):
            await anext(changes)


async def test_it_can_be_closed_in_its_own_task(own_server: EtcdServer) -> None:
    """Closing in `on_error` leaves no task."""
    async with Client(own_server.endpoint) as client:
        made: list[Cache[int]] = []

        def on_error(key: bytes, error: Exception) -> None:
            made[0].close()

        cache = client.cache(prefix="p/", decode=int, on_error=on_error, keep_current=0.01)
        made.append(cache)
        await cache.__aenter__()
        waiting = asyncio.create_task(cache.wait_revision(2**60, timeout=None))
        await client.put("p/a", "no number")
        with pytest.raises(CacheError):
            await asyncio.wait_for(waiting, PATIENCE)
        await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio cache")])
        assert (cache.state, cache.statistics().keys, cache.statistics().loads) == (CacheState.CLOSED, 0, 1)
        await cache.aclose()


async def enter(cache: Cache[Any]) -> None:
    async with cache:
        pass


@pytest.mark.parametrize("after", [0, 1, 3, 10])
async def test_closing_while_it_loads(own_server: EtcdServer, after: int) -> None:
    async with Client(own_server.endpoint) as client:
        await fill(client, "p/", 3_000)
        cache = client.cache(prefix="p/")
        entering = asyncio.create_task(enter(cache))
        reading = asyncio.create_task(cache.read("p/a"))
        await turns(after + 1)
        await cache.aclose()
        ended = await asyncio.wait_for(asyncio.gather(entering, reading, return_exceptions=True), PATIENCE)
        assert all(isinstance(one, CacheError | type(None)) or "not entered" in str(one) for one in ended), ended
        assert cache.state is CacheState.CLOSED
        await until(lambda: not [task for task in asyncio.all_tasks() if "cache" in task.get_name()])


async def test_a_validation_while_the_keys_are_loaded_again_is_no_other_store(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The load has read an older revision than the one that the content was found to be right for meanwhile."""
    between = BetweenPages(monkeypatch)
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await fill(writer, "p/", 3_000)
        async with client.cache(prefix="p/") as cache:
            changes, batches = cache.changes(), cache.batches()
            proxy.refuse()
            proxy.reset()
            await writer.put("elsewhere", "1")
            await writer.compact((await writer.put("p/passing", "1")).revision)  # the load reads this key

            async def validate() -> None:
                last = await writer.delete("p/passing")
                await cache.wait_revision(last.revision, timeout=PATIENCE)
                assert cache.state is CacheState.LAGGING

            between.actions = [validate]
            proxy.heal()
            await until(lambda: cache.statistics().loads == 2)
            assert cache.statistics().validations > 0
            assert cache.state is CacheState.READY
            put = await writer.put("p/new", "1")
            await cache.wait_revision(put.revision, timeout=PATIENCE)
            assert list(cache.range().values()) == list(await writer.range(prefix="p/"))
            assert (await asyncio.wait_for(anext(changes), PATIENCE))[1].keys() == {b"p/new"}
            events = (await asyncio.wait_for(anext(batches), PATIENCE)).events
            assert [event.key_text() for event in events] == ["p/new"]
    assert "the store was replaced" not in caplog.text


async def test_an_ordered_store_that_has_seen_more_than_the_store_has(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Entering raises it; later it is waited out, with pauses, and told once."""
    reads: list[float] = []
    read = Replicator._load

    async def counted(replicator: Replicator[Any]) -> Any:
        reads.append(asyncio.get_running_loop().time())
        return await read(replicator)

    monkeypatch.setattr(Replicator, "_load", counted)
    async with Client(own_server.endpoint) as client:
        view = client.ordered()
        view.revision = 10_000
        with pytest.raises(StoreRolledBackError):
            async with view.cache(prefix="p/"):
                pass
        view = client.ordered()
        await fill(client, "p/", 5_000)
        async with view.cache(prefix="p/") as cache:
            reads.clear()
            await own_server.restart(wipe=True)
            await until(lambda: cache.state is CacheState.BROKEN)
            await until(lambda: len(reads) >= 4)
            assert reads[3] - reads[0] >= 0.1
            assert len(cache) == 5_000
            await fill(client, "q/", 6_000)
            await until(lambda: cache.state is CacheState.READY)
            assert cache.range() == {}
    assert len([record for record in caplog.records if "the store was replaced" in record.message]) == 1


async def test_a_read_falls_back_to_the_server_while_the_keys_are_loaded(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = BetweenPages(monkeypatch)
    monkeypatch.setattr("etcd_aio.cache.cache._FALL_BACK_AFTER", 0.25)
    loading, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        loading.set()
        await go_on.wait()

    async with Client(own_server.endpoint) as client:
        await client.put("p/a", "1")
        await client.put("p/b", "no number")
        between.actions = [wait]
        cache = client.cache(prefix="p/", decode=int)
        entering = asyncio.create_task(cache.__aenter__())
        await loading.wait()
        assert await cache.read("p/a", timeout=PATIENCE) == 1
        assert await cache.read("p/b", timeout=PATIENCE) is None
        assert await cache.read("p/c", timeout=PATIENCE) is None
        assert cache.statistics().fallbacks == 3
        go_on.set()
        await entering
        await cache.aclose()


async def test_a_policy_that_raises_for_a_while_does_not_stop_the_background_reads(own_server: EtcdServer) -> None:
    is_broken = False
    failures = 0

    def choose(candidates: Sequence[Candidate]) -> Candidate:
        nonlocal failures
        if is_broken:
            failures += 1
            raise RuntimeError("the policy is broken")
        return candidates[0]

    async with (
        Client(own_server.endpoint, policy=choose) as client,
        client.cache(prefix="p/", keep_current=0.01) as cache,
    ):
        is_broken = True
        await until(lambda: failures >= 2)
        is_broken = False
        probes = cache.statistics().probes
        await until(lambda: cache.statistics().probes > probes + 1)
        assert cache.state is CacheState.READY


async def test_a_store_that_is_found_to_be_another_one_while_the_watch_is_resumed(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read is answered before the watch is. The watch does not notice, as behind etcd's gRPC proxy."""
    answered, resumed = asyncio.Event(), asyncio.Event()
    answered.set()
    enter_watch = Watcher.__aenter__

    async def enter_late(watcher: Watcher) -> Watcher:
        await enter_watch(watcher)
        resumed.set()
        await answered.wait()
        return watcher

    monkeypatch.setattr(Watcher, "__aenter__", enter_late)
    monkeypatch.setattr(WatchService, "check_store", lambda service, watch: None)
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await fill(writer, "p/", 3_000)
        async with client.cache(prefix="p/", max_outage=0.1) as cache:
            proxy.refuse()
            proxy.reset()
            await until(lambda: cache.state is CacheState.LAGGING)
            await own_server.restart(wipe=True)
            answered.clear()
            resumed.clear()
            proxy.heal()
            await asyncio.wait_for(resumed.wait(), PATIENCE)
            current = asyncio.create_task(cache.wait_current(timeout=PATIENCE))
            await until(lambda: cache.state is CacheState.BROKEN)
            answered.set()
            await current
            assert cache.range() == {}
            assert cache.state is CacheState.READY
