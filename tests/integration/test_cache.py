"""Caches on real servers: exact at one revision, linearizable when asked for, whatever happens to the watch."""

import asyncio
import gc
import json
import logging
import random
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from etcd_aio import Client, KeyValue, op
from etcd_aio.cache import Cache, CacheState
from etcd_aio.cache.state import Replica
from etcd_aio.errors import (
    CacheError,
    CacheRangeError,
    CacheTimeoutError,
    ClientClosedError,
    ClientUsageError,
    EmptyKeyError,
    InvalidRequestError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support import versions
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.grpc_proxy import grpc_proxy
from tests.support.meddling import meddling
from tests.support.no_collections import no_collections
from tests.support.until import PATIENCE, until
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

RELIABLE_PROGRESS = ("3.4.25", "3.5.8")  # older servers may report progress ahead of events: a cache validates instead


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


async def as_the_store(client: Client, cache: Cache[KeyValue], prefix: str) -> None:
    """The cache is what a range at its revision returns."""
    seen, revision = list(cache.range().values()), cache.revision
    found = await client.range(prefix=prefix, revision=revision)
    assert seen == list(found.kvs), f"at revision {revision}"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark that comes late, since a process stood still for a second, is waited for all the same."""
    monkeypatch.setattr("etcd_aio.cache.catch_up._STARVED", PATIENCE)


# Reading.


async def test_a_cache_is_read_like_a_mapping(client: Client, prefix: str) -> None:
    await client.txn().then(*(op.put(f"{prefix}{key}", key) for key in ("b", "a", "c/1", "c/2"))).commit()
    async with client.cache(prefix=prefix) as cache:
        a = await client.get(f"{prefix}a")
        assert a is not None
        assert cache.get(f"{prefix}a") == cache[f"{prefix}a"] == cache.kv(f"{prefix}a") == a
        assert cache.get(a.key) == cache.get(bytearray(a.key)) == cache.get(memoryview(a.key)) == a
        assert (f"{prefix}a" in cache, f"{prefix}z" in cache) == (True, False)
        assert cache.get(f"{prefix}z") is None
        assert cache.kv(f"{prefix}z") is None
        assert cache.get(f"{prefix}z", 5) == 5
        with pytest.raises(KeyError):
            cache[f"{prefix}z"]
        assert len(cache) == 4
        keys = [f"{prefix}{key}".encode() for key in ("a", "b", "c/1", "c/2")]
        assert list(cache) == list(cache.range()) == keys
        assert list(cache.range(prefix=f"{prefix}c/")) == keys[2:]
        assert list(cache.range(f"{prefix}b")) == [keys[1]]
        assert list(cache.range(f"{prefix}b", range_end=f"{prefix}c/2")) == keys[1:3]
        assert cache.state is CacheState.READY
        assert cache.revision >= a.mod_revision
        assert 0 <= cache.age < PATIENCE
        assert prefix in repr(cache)
        assert "ready" in repr(cache)
        await as_the_store(client, cache, prefix)


async def test_keys_outside_of_the_range_are_refused(client: Client, prefix: str) -> None:
    async with client.cache(prefix=prefix) as cache:
        reads: tuple[Callable[[Any], object], ...] = (cache.get, cache.kv, cache.__getitem__, cache.__contains__)
        number: Any = 5
        for read in reads:
            with pytest.raises(CacheRangeError):
                read("elsewhere")
            with pytest.raises(EmptyKeyError):
                read("")
            with pytest.raises(TypeError):
                read(number)
        with pytest.raises(CacheRangeError):
            await cache.read("elsewhere")
        outside: tuple[dict[str, Any], ...] = (
            {"prefix": prefix[:-1]},
            {"from_key": prefix},
            {"all_keys": True},
            {"key": "elsewhere"},
        )
        for keys in outside:
            with pytest.raises(CacheRangeError):
                cache.range(**keys)
        with pytest.raises(CacheRangeError):
            cache.range(prefix, range_end="z")
        with pytest.raises(InvalidRequestError):
            cache.range("a", prefix="b")
        assert cache.range(prefix=prefix) == {}
    async with client.cache(f"{prefix}a") as one, client.cache(from_key=f"{prefix}b") as rest:
        await client.put(f"{prefix}a", "1")
        await client.put(f"{prefix}b", "1")
        assert await one.read(f"{prefix}a") is not None
        assert await rest.read(f"{prefix}b") is not None
        assert list(one.range()) == [f"{prefix}a".encode()]
        assert f"{prefix}b".encode() in rest.range(from_key=f"{prefix}b")
        with pytest.raises(CacheRangeError):
            one.get(f"{prefix}b")
        with pytest.raises(CacheRangeError):
            one.range(prefix=f"{prefix}a")
        with pytest.raises(CacheRangeError):
            rest.get(f"{prefix}a")


async def test_wrong_arguments_are_refused_before_anything_is_sent(client: Client) -> None:
    cache_of: Any = client.cache
    invalid = (
        {"keep_current": -1},
        {"keep_current": 0},
        {"max_outage": float("inf")},
        {"key": "b"},
        {"keep_current": float("nan")},
    )
    for wrong in invalid:
        with pytest.raises(InvalidRequestError):
            cache_of(prefix="a", **wrong)
    for mistyped in ({"decode": 5}, {"fallback": 1}, {"keep_current": "1"}, {"on_error": "x", "decode": bytes}):
        with pytest.raises(TypeError):
            cache_of(prefix="a", **mistyped)
    with pytest.raises(InvalidRequestError):
        client.cache("b", range_end="b")
    cache = client.cache(prefix="a")
    for use in (lambda: cache.get("a"), lambda: cache.range(), lambda: len(cache), cache.changes, cache.batches):
        with pytest.raises(ClientUsageError, match="not entered"):
            use()
    for call in (cache.wait_current(), cache.read("a"), cache.wait_revision(1)):
        with pytest.raises(ClientUsageError, match="not entered"):
            await call


async def test_values_are_decoded_once_for_each_change(client: Client, prefix: str) -> None:
    decoded: list[bytes] = []

    def decode(value: bytes) -> object:
        decoded.append(value)
        return json.loads(value)

    failed: list[tuple[bytes, str]] = []

    def on_error(key: bytes, error: Exception) -> None:
        failed.append((key, type(error).__name__))

    key = f"{prefix}a"
    await client.put(key, "[1]")
    await client.put(f"{prefix}bad", "{")
    async with client.cache(prefix=prefix, decode=decode, on_error=on_error) as cache:
        for _ in range(3):
            assert cache.get(key) == [1]
        assert sorted(decoded) == [b"[1]", b"{"]
        assert f"{prefix}bad" not in cache
        assert cache.get(f"{prefix}bad", "none") == "none"
        bad = cache.kv(f"{prefix}bad")
        assert bad is not None
        assert bad.value == b"{"
        assert cache.range() == {key.encode(): [1]}
        await client.put(key, "2")
        assert await cache.read(key) == 2
        put = await client.put(key, "broken")
        assert await cache.read(key) == 2, "a value that cannot be decoded keeps the one before"
        kv = cache.kv(key)
        assert kv is not None
        assert kv.mod_revision == put.revision
        assert failed == [(f"{prefix}bad".encode(), "JSONDecodeError"), (key.encode(), "JSONDecodeError")]
        await client.put(f"{prefix}bad", "3")
        assert await cache.read(f"{prefix}bad") == 3
        await client.delete(key)
        assert await cache.read(key) is None
        assert len(decoded) == 5
        assert cache.statistics().decode_errors == 2


async def test_a_value_that_cannot_be_decoded_is_logged_once_without_it(
    client: Client, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    await client.put(f"{prefix}a", "c4n4ry-secret")
    async with client.cache(prefix=prefix, decode=json.loads) as cache:
        await client.put(f"{prefix}a", "c4n4ry-other")
        await cache.wait_current()
        lines = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.cache"]
        assert len(lines) == 1
        assert f"{prefix}a" in lines[0]
        assert "JSONDecodeError" in lines[0]


async def test_a_faulty_on_error_does_not_stop_the_cache(client: Client, prefix: str) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def on_error(key: bytes, error: Exception) -> None:
        raise RuntimeError("a bug")

    async with client.cache(prefix=prefix, decode=json.loads, on_error=on_error) as cache:
        await client.put(f"{prefix}a", "{")
        await client.put(f"{prefix}b", "1")
        assert await cache.read(f"{prefix}b") == 1
    assert [str(error) for error in reported] == ["a bug"]


# Current reads.


@pytest.mark.usefixtures("patient")
async def test_a_read_has_every_write_that_was_finished_before(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    async with Client(shared_server.endpoint) as other, client.cache(prefix=prefix) as cache:
        for number in range(100):
            put = await other.put(f"{prefix}a", str(number))
            kv = await cache.read(f"{prefix}a")
            assert kv is not None
            assert kv.mod_revision >= put.revision
            put = await other.put("elsewhere", str(number))  # only a mark says that nothing has changed here
            await cache.wait_current()
            assert cache.revision >= put.revision
        assert versions.is_at_least(*RELIABLE_PROGRESS) == (cache.statistics().validations == 0)
        assert cache.statistics().fallbacks == 0


async def test_own_writes_are_waited_for_by_their_revision(client: Client, prefix: str) -> None:
    async with client.cache(prefix=prefix) as cache:
        for number in range(50):
            put = await client.put(f"{prefix}a" if number % 2 else "elsewhere", str(number))
            await cache.wait_revision(put.revision)
            assert cache.revision >= put.revision
        assert cache.statistics().probes == 0
        with pytest.raises(
            CacheTimeoutError, match=rf"prefix=.*revision {cache.revision + 1000} did not arrive in time"
        ):
            await cache.wait_revision(cache.revision + 1000, timeout=0.05)
        assert cache.statistics().waiting == 0


async def test_many_callers_share_two_probes(client: Client, prefix: str) -> None:
    async with client.cache(prefix=prefix) as cache:
        await client.put("elsewhere", "1")
        before = cache.statistics().probes
        await asyncio.gather(*(cache.wait_current(timeout=PATIENCE) for _ in range(10_000)))
        assert cache.statistics().probes - before <= 2


async def test_a_bounded_staleness_asks_only_if_the_age_is_above_it(client: Client, prefix: str) -> None:
    async with client.cache(prefix=prefix) as cache:
        await cache.wait_current(max_staleness=PATIENCE)
        assert await cache.read(f"{prefix}a", max_staleness=PATIENCE) is None
        assert cache.statistics().probes == 0
        await asyncio.sleep(0.05)
        before = cache.age
        assert before >= 0.05
        await cache.wait_current(max_staleness=0.02)
        assert cache.statistics().probes == 1
        assert cache.age < before
        await asyncio.sleep(0.05)
        assert await cache.read(f"{prefix}a", max_staleness=0.02) is None
        assert cache.statistics().probes == 2


async def test_keep_current_keeps_the_age_low_without_callers(client: Client, prefix: str) -> None:
    async with client.cache(prefix=prefix, keep_current=0.02) as cache:
        put = await client.put("elsewhere", "1")
        await until(lambda: cache.revision >= put.revision and cache.statistics().probes >= 5)
        ages = []
        for _ in range(20):
            await asyncio.sleep(0.02)
            ages.append(cache.age)
        assert min(ages) < 0.5


@pytest.mark.usefixtures("patient")
async def test_another_watch_that_is_never_read_holds_nothing_up(client: Client, prefix: str) -> None:
    """Its stream gets no marks while it is behind; the cache has a stream of its own."""
    async with client.watch(prefix=prefix, max_pending=1), client.cache(prefix=prefix) as cache:
        for number in range(20):
            await client.put(f"{prefix}a", "x" * 1000)
            await client.put("elsewhere", str(number))
            await cache.wait_current(timeout=PATIENCE)
        assert versions.is_at_least(*RELIABLE_PROGRESS) == (cache.statistics().validations == 0)


async def test_reads_wait_while_the_keys_are_loaded(client: Client, prefix: str) -> None:
    await client.put(f"{prefix}a", "1")
    cache = client.cache(prefix=prefix)
    entering = asyncio.create_task(cache.__aenter__())
    await turns(1)
    kv = await cache.read(f"{prefix}a")
    assert kv is not None
    await entering
    await cache.aclose()


# Exactness.


async def test_the_cache_is_exact_at_its_revision_at_any_time(run_seed: int) -> None:
    """Under writers, deletions, compactions, lost connections: the content is that of the store at `revision`."""
    choose = random.Random(run_seed)
    async with (
        EtcdServer() as server,
        FaultProxy(server.endpoint) as proxy,
        Client(server.endpoint) as writer,
        Client(proxy.endpoint) as client,
        client.cache(prefix="p/", max_outage=0.2) as cache,
    ):
        seen: list[tuple[int, dict[bytes, KeyValue]]] = []
        kept: dict[bytes, KeyValue] = cache.range()
        changes = cache.changes()

        async def write() -> None:
            number = 0
            while number < 600 or len(seen) < 1_000:
                number += 1
                operations = [
                    op.put(f"p/{choose.randrange(20)}/{number}", "v") if choose.random() < 0.6 else None
                    for _ in range(choose.randrange(4))
                ]
                puts = {one.key: one for one in operations if one is not None}
                if puts:
                    await writer.txn().then(*puts.values()).commit()
                await writer.delete(prefix=f"p/{choose.randrange(20)}/")
                await writer.put(f"p/k{choose.randrange(5)}", str(number))
                if number % 150 == 149:
                    proxy.cut()
                elif number % 40 == 39:
                    proxy.reset()

        async def look() -> None:
            while True:
                await asyncio.sleep(choose.random() * 0.004)
                seen.append((cache.revision, cache.range()))

        async def follow() -> None:
            async for revision, changed in changes:
                for key, kv in changed.items():
                    if kv is None:
                        del kept[key]  # it is never told of a key that it did not know
                    else:
                        kept[key] = kv
                assert revision == cache.revision
                assert kept == cache.range()

        async with asyncio.timeout(PATIENCE):
            looking, following = asyncio.create_task(look()), asyncio.create_task(follow())
            await write()
            proxy.heal()
            await cache.wait_current(timeout=PATIENCE)
            looking.cancel()
            await turns()
        assert len(seen) >= 1_000
        revisions = [revision for revision, _ in seen]
        assert revisions == sorted(revisions), "the revision never goes back"
        for revision, content in seen:
            found = await writer.range(prefix="p/", revision=revision)
            assert list(content.values()) == list(found.kvs), f"at revision {revision}"
        assert kept == cache.range() == {kv.key: kv for kv in await writer.range(prefix="p/")}
        assert not following.done()
        following.cancel()
        assert cache.state is CacheState.READY


async def test_a_compaction_during_an_outage_leads_to_a_difference(own_server: EtcdServer) -> None:
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        for key in ("gone", "same", "changed"):
            await writer.put(f"p/{key}", "1")
        async with client.cache(prefix="p/") as cache:
            changes, batches = cache.changes(), cache.batches()
            proxy.refuse()
            proxy.reset()
            await writer.delete("p/gone")
            await writer.put("p/changed", "2")
            await writer.put("p/new", "1")
            await writer.put("p/fleeting", "1")
            last = await writer.delete("p/fleeting")
            await writer.compact(last.revision)
            assert cache.get("p/gone") is not None, "local reads go on"
            proxy.heal()
            await cache.wait_current(timeout=PATIENCE)
            await as_the_store(writer, cache, "p/")
            assert cache.statistics().loads == 2
            revision, changed = await anext(changes)
            assert revision >= last.revision
            assert {key: kv and kv.value for key, kv in changed.items()} == {
                b"p/gone": None,
                b"p/changed": b"2",
                b"p/new": b"1",
            }
            batch = await anext(batches)
            assert all(event.is_resync for event in batch)
            assert [(event.key, event.is_put) for event in batch] == [
                (b"p/changed", True),
                (b"p/new", True),
                (b"p/gone", False),
            ]
            await writer.put("p/new", "2")
            assert [event.is_resync for event in await anext(batches)] == [False]


async def test_a_store_that_was_replaced_is_loaded_anew(
    own_server: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The content is that of the old store, or of the new one, and never a mixture."""
    async with Client(own_server.endpoint) as client:
        for number in range(30):
            await client.put(f"p/{number}", "old")
        async with client.cache(prefix="p/") as cache:
            changes, batches = cache.changes(), cache.batches()
            before, version = cache.revision, cache.content_version
            old = cache.range()
            contents: list[tuple[CacheState, dict[bytes, KeyValue]]] = []

            async def look() -> None:
                while True:
                    contents.append((cache.state, cache.range()))
                    await asyncio.sleep(0.001)

            looking = asyncio.create_task(look())
            await own_server.restart(wipe=True)
            async with Client(own_server.endpoint) as writer:
                for number in range(5):
                    await writer.put(f"p/{number}", "new")
                await until(lambda: cache.statistics().loads == 2)
                await cache.wait_current()  # the last puts may come by the watch
                looking.cancel()
                new = {kv.key: kv for kv in await writer.range(prefix="p/")}
                assert cache.range() == new
                assert cache.revision < before
                assert cache.content_version > version
                assert cache.state is CacheState.READY
                values = [{kv.value for kv in content.values()} for _, content in contents if content]
                assert all(len(value) == 1 for value in values)
                assert all(content == old for state, content in contents if state is CacheState.BROKEN)
                _, changed = await anext(changes)
                assert set(changed) == set(old)
                assert {key for key, kv in changed.items() if kv is not None} == set(new)
                assert len(await anext(batches)) == len(old)
                assert any("the store was replaced" in record.getMessage() for record in caplog.records)
                await writer.put("p/0", "newer")
                kv = await cache.read("p/0")
                assert kv is not None
                assert kv.value == b"newer"


async def test_a_backup_that_is_restored_underneath_is_never_mixed_in(own_server: EtcdServer, tmp_path: Path) -> None:
    """The data directory of before: the same cluster, whose revisions mean something else from then on."""
    backup = tmp_path / "backup"
    async with Client(own_server.endpoint) as client:
        for number in range(10):
            await client.put(f"p/{number}", "in the backup")
        await own_server.terminate()
        shutil.copytree(own_server.data_dir, backup)
        await own_server.restart()
        async with client.cache(prefix="p/") as cache:
            for number in range(5, 15):
                await client.put(f"p/{number}", "lost")
            last = await client.delete("p/0")
            await cache.wait_revision(last.revision)
            changes, before = cache.changes(), cache.range()
            await own_server.kill()
            shutil.rmtree(own_server.data_dir)
            shutil.copytree(backup, own_server.data_dir)
            await own_server.restart()
            await until(lambda: cache.statistics().loads == 2)
            content = cache.range()
            assert {kv.value for kv in content.values()} == {b"in the backup"}
            assert list(content.values()) == list(await client.range(prefix="p/"))
            revision, changed = await anext(changes)
            assert revision < last.revision
            assert {key for key in before if before[key] != content.get(key)} | {b"p/0"} == set(changed)
            await client.put("p/3", "new")
            kv = await cache.read("p/3")
            assert kv is not None
            assert kv.value == b"new"
            await as_the_store(client, cache, "p/")


async def test_a_probe_finds_a_store_that_went_back(own_server: EtcdServer) -> None:
    """Where the watch does not: it was ended by the outage, and its stream forgot what it had seen."""
    async with Client(own_server.endpoint) as client:
        for number in range(30):
            await client.put(f"p/{number}", "old")
        async with client.cache(prefix="p/", max_outage=0.5) as cache:
            await own_server.kill()
            await until(lambda: cache.state is CacheState.LAGGING)
            await own_server.restart(wipe=True)
            await until(lambda: cache.statistics().loads == 2)
            assert cache.state is CacheState.READY
            assert cache.range() == {}


# Outages.


async def test_local_reads_go_on_while_the_cluster_is_away(
    own_server: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.cache")
    async with Client(own_server.endpoint) as client:
        await client.put("p/a", "1")
        async with client.cache(prefix="p/", max_outage=0.1) as cache:
            own_server.pause()
            before = cache.age
            with pytest.raises(CacheTimeoutError, match="the store's revision could not be read in time"):
                await cache.wait_current(timeout=0.4)
            with pytest.raises(CacheTimeoutError):
                await cache.wait_current(timeout=0.05)
            assert cache.get("p/a") is not None
            assert cache.age >= before + 0.4
            await own_server.kill()
            await until(lambda: cache.state is CacheState.LAGGING)
            assert cache.get("p/a") is not None
            await own_server.restart()
            async with Client(own_server.endpoint) as writer:
                await writer.put("p/a", "2")
            await until(lambda: cache.state is CacheState.READY)
            await cache.wait_current(timeout=PATIENCE)
            kv = cache.get("p/a")
            assert kv is not None
            assert kv.value == b"2"
            assert cache.statistics().loads == 1
            assert cache.age < PATIENCE
            said = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.cache"]
            assert {line.partition(":")[0].partition(", ")[0] for line in said[::2]} == {
                "cache prefix='p/' is behind the store"
            }
            assert {line.partition(", ")[0] for line in said[1::2]} == {
                "cache prefix='p/' is up to date with the store again"
            }


async def test_a_failed_member_is_not_noticed(cluster: EtcdCluster) -> None:
    async with (
        Client(cluster.endpoints, timeout=PATIENCE) as client,
        Client(cluster.endpoints, timeout=PATIENCE) as writer,
        client.cache(prefix="p/") as cache,
    ):
        for number, member in enumerate(cluster.members):
            member.pause() if number % 2 else await member.kill()
            for _ in range(5):
                put = await writer.put(f"p/{number}", str(number), retry="always")
                kv = await cache.read(f"p/{number}")
                assert kv is not None
                assert kv.mod_revision >= put.revision
            member.resume() if number % 2 else await member.restart()
            await cluster.wait_healthy()
        await as_the_store(writer, cache, "p/")


async def test_a_read_falls_back_to_the_server(own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events are held back, so the cache cannot become current, and the store answers."""
    monkeypatch.setattr("etcd_aio.cache.cache._FALL_BACK_AFTER", 0.25)
    async with (
        meddling(own_server) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        await writer.put("p/a", "1")
        async with (
            client.cache(prefix="p/", decode=json.loads) as cache,
            client.cache(prefix="p/", fallback=False) as strict,
        ):
            proxy.event_delay, proxy.marks = PATIENCE, False
            await writer.put("p/a", "2")
            assert await cache.read("p/a", timeout=PATIENCE) == 2
            assert cache.statistics().fallbacks == 1
            assert cache.get("p/a") == 1
            with pytest.raises(CacheTimeoutError):
                await strict.read("p/a", timeout=0.2)
            assert strict.statistics().fallbacks == 0
            await writer.put("p/a", "{")
            assert await cache.read("p/a", timeout=PATIENCE) == 1, "the value that could be decoded"
            await writer.delete("p/a")
            assert await cache.read("p/a", timeout=PATIENCE) is None


# Where marks do not come, or cannot be trusted.


@pytest.mark.parametrize("release", ["3.4.23", "3.5.7"])
async def test_early_marks_of_old_releases_are_not_trusted(own_server: EtcdServer, release: str) -> None:
    async with (
        meddling(own_server) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        proxy.release = release
        async with client.cache(prefix="p/") as cache:
            proxy.event_delay = 0.03
            for number in range(30):
                put = await writer.put("p/a", str(number))
                kv = await cache.read("p/a")
                assert kv is not None
                assert kv.mod_revision >= put.revision
                put = await writer.put("elsewhere", str(number))
                await cache.wait_current()
                assert cache.revision >= put.revision
                await as_the_store(writer, cache, "p/")
            assert proxy.early_marks > 0, "no mark overtook an event: the test proves nothing"
            assert cache.statistics().validations > 0
            assert cache.statistics().fallbacks == 0


@pytest.mark.usefixtures("patient")
async def test_a_newer_release_is_trusted_again(own_server: EtcdServer) -> None:
    async with (
        meddling(own_server) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        proxy.release = "3.4.23"
        async with client.cache(prefix="p/") as cache:
            await writer.put("elsewhere", "1")
            await cache.wait_current()
            await writer.put("elsewhere", "1")
            await cache.wait_current()
            assert cache.statistics().validations > 0
        proxy.release = "3.4.25"
        async with client.cache(prefix="p/") as cache:
            for _ in range(10):
                await writer.put("elsewhere", "1")
                await cache.wait_current()
            before = cache.statistics().validations
            for _ in range(10):
                await writer.put("elsewhere", "1")
                await cache.wait_current()
            assert cache.statistics().validations == before


async def test_keys_that_come_and_go_behind_a_validation(own_server: EtcdServer) -> None:
    """Their events come after the revision has moved on past them; the content never shows them, nor do followers."""
    async with (
        meddling(own_server) as proxy,
        Client(own_server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        proxy.marks = False
        await writer.put("p/a", "1")
        async with client.cache(prefix="p/") as cache:
            batches, changes = cache.batches(), cache.changes()
            proxy.event_delay = PATIENCE
            await writer.put("p/fleeting", "1")
            gone = await writer.delete("p/fleeting")
            await cache.wait_current(timeout=PATIENCE)
            assert cache.statistics().validations > 0
            assert cache.revision >= gone.revision
            await as_the_store(writer, cache, "p/")
            proxy.event_delay = 0.0
            events = (await anext(batches)).events
            assert [(event.is_put, event.revision) for event in events] == [
                (True, gone.revision - 1),
                (False, gone.revision),
            ]
            assert list(cache) == [b"p/a"]
            await writer.put("p/a", "2")
            _, changed = await anext(changes)
            assert set(changed) == {b"p/a"}
            await as_the_store(writer, cache, "p/")


async def test_a_grpc_proxy_passes_no_marks_on(own_server: EtcdServer, tmp_path: Path) -> None:
    async with (
        grpc_proxy(own_server, tmp_path) as endpoint,
        Client(own_server.endpoint) as writer,
        Client(endpoint, timeout=PATIENCE) as client,
        client.cache(prefix="p/") as cache,
    ):
        put = await writer.put("p/a", "1")
        await cache.wait_revision(put.revision)
        put = await writer.put("elsewhere", "1")
        await cache.wait_current()
        assert cache.revision >= put.revision
        assert cache.statistics().validations > 0


@pytest.mark.parametrize("version", ["3.4.25", "3.5.35", "3.6.16", "3.7.3"])
async def test_a_validation_on_every_release(version: str) -> None:
    """The count is that of all keys, whatever the bound of the revision and the limit."""
    versions.need_beside(version)
    async with (
        EtcdServer(version=version) as server,
        meddling(server) as proxy,
        Client(server.endpoint) as writer,
        Client(proxy.endpoint) as client,
    ):
        proxy.release = "3.4.23"
        for number in range(10):
            await writer.put(f"p/{number}", "1")
        async with client.cache(prefix="p/") as cache:
            for number in range(10):
                put = await writer.put("elsewhere", "1")
                await cache.wait_current()
                assert cache.revision >= put.revision
                await writer.delete(f"p/{number}")
                await cache.wait_current()
                assert f"p/{number}" not in cache
            assert cache.statistics().validations > 0
            assert cache.statistics().loads == 1


# Ends.


async def test_a_cache_that_was_left_cannot_be_read(client: Client, prefix: str) -> None:
    await client.put(f"{prefix}a", "1")
    async with client.cache(prefix=prefix) as cache:
        changes, batches = cache.changes(), cache.batches()
        waiting = asyncio.create_task(cache.wait_revision(2**60, timeout=None))
        following = asyncio.create_task(anext(changes))
        await turns()
    with pytest.raises(CacheError):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await following
    assert [batch async for batch in batches] == []
    for use in (
        lambda: cache.get(f"{prefix}a"),
        lambda: cache[f"{prefix}a"],
        lambda: cache.range(),
        lambda: len(cache),
        lambda: cache.kv(f"{prefix}a"),
        cache.changes,
        cache.batches,
    ):
        with pytest.raises(CacheError, match="block has ended"):
            use()
    for call in (cache.wait_current(), cache.read(f"{prefix}a"), cache.wait_revision(1)):
        with pytest.raises(CacheError, match="block has ended"):
            await call
    assert cache.state is CacheState.CLOSED
    with pytest.raises(ClientUsageError, match="entered once"):
        await cache.__aenter__()
    await cache.aclose()


async def test_closing_the_client_ends_its_caches(shared_server: EtcdServer, prefix: str) -> None:
    client = Client(shared_server.endpoint)
    cache = client.cache(prefix=prefix, keep_current=0.01)
    await cache.__aenter__()
    waiting = asyncio.create_task(cache.wait_revision(2**60, timeout=None))
    await turns()
    await client.aclose()
    with pytest.raises((CacheError, ClientClosedError)):
        await waiting
    with pytest.raises((CacheError, ClientClosedError)):
        cache.get(f"{prefix}a")
    assert [task for task in asyncio.all_tasks() if "cache" in task.get_name()] == []
    await cache.aclose()


async def test_it_is_left_in_another_task(client: Client, prefix: str) -> None:
    cache = client.cache(prefix=prefix)
    await asyncio.create_task(cache.__aenter__())
    assert cache.get(f"{prefix}a") is None
    await asyncio.create_task(cache.aclose())
    await until(lambda: not [task for task in asyncio.all_tasks() if "cache" in task.get_name()])


async def test_a_permission_that_is_taken_away_ends_it() -> None:
    async with EtcdServer(flags=(QUICK_LOGINS,)) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
        ):
            await client.put("app/a", "1")
            with pytest.raises(PermissionError):
                await client.cache(prefix="other/").__aenter__()
            async with client.cache(prefix="app/") as cache:
                changes = cache.changes()
                assert await cache.read("app/a") is not None
                await root.auth.role_revoke_permission("app", prefix="app/")
                with pytest.raises(PermissionError):
                    await cache.wait_current()
                with pytest.raises(CacheError) as caught:
                    cache.get("app/a")
                assert isinstance(caught.value.__cause__, PermissionError)
                with pytest.raises(CacheError):
                    await anext(changes)
                with pytest.raises(CacheError):
                    await cache.wait_current()


@pytest.mark.parametrize("how", ["wait_current", "keep_current"])
@pytest.mark.parametrize("kept", ["the first key", "the first half"])
async def test_a_permission_that_is_narrowed_ends_it(kept: str, how: str) -> None:
    """etcd does not check the permission of a watch that is open."""
    async with EtcdServer(flags=(QUICK_LOGINS,)) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
        ):
            for key in ("app/", "app/m", "app/z"):
                await client.put(key, "1")
            keep_current = 0.05 if how == "keep_current" else None
            async with client.cache(prefix="app/", keep_current=keep_current) as cache:
                await cache.wait_current()
                end = None if kept == "the first key" else "app/m"
                await root.auth.role_grant_permission("app", "app/", range_end=end, permission="read")
                await root.auth.role_revoke_permission("app", prefix="app/")
                with pytest.raises(PermissionError):
                    await client.range(prefix="app/")
                if how == "wait_current":
                    with pytest.raises(PermissionError):
                        await cache.wait_current()
                else:
                    await until(lambda: cache.state is CacheState.CLOSED)
                with pytest.raises(CacheError) as caught:
                    cache.get("app/z")
                assert isinstance(caught.value.__cause__, PermissionError)


@pytest.mark.parametrize("name", [None, "app/"])
@pytest.mark.parametrize("version", ["3.4.25", "3.5.35", "3.6.16", "3.7.3"])
async def test_a_probe_reads_the_revision_whatever_the_range(version: str, name: str | None) -> None:
    versions.need_beside(version)
    async with (
        EtcdServer(version=version) as server,
        Client(server.endpoint, namespace=name) as client,
        client.cache(all_keys=True) as whole,
        client.cache("p/a") as one,
        client.cache(from_key="p/") as rest,
    ):
        for key in ("p/a", "elsewhere"):
            put = await client.put(key, "1")
            for cache in (whole, one, rest):
                await cache.wait_current()
                assert cache.revision >= put.revision


async def test_a_process_that_was_stopped_sees_its_age_on_waking(own_server: EtcdServer) -> None:
    code = f"""
import asyncio, sys
from etcd_aio import Client

async def main():
    async with Client({own_server.endpoint!r}) as client, client.cache(prefix="p/", keep_current=0.01) as cache:
        await cache.wait_current()
        before = cache.age
        print("ready", flush=True)  # it may be stopped from now on
        while (age := cache.age) - before < 1.5:
            before = age
        print(age, flush=True)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline() == b"ready\n"
            process.send_signal(19)
            stopped = time.monotonic()
            await asyncio.sleep(2.0)
            seconds = time.monotonic() - stopped
            process.send_signal(18)
            assert float(await process.stdout.readline()) >= seconds - 0.1
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_loading_leaves_the_loop_free(own_server: EtcdServer) -> None:
    """With 100 000 keys: the loop turns at least once for each page, and no turn computes for long."""
    async with Client(own_server.endpoint) as client:
        for begin in range(0, 100_000, 100):
            puts = (op.put(f"p/{number:06}", b"v" * 64) for number in range(begin, begin + 100))
            await client.txn().then(*puts).commit()
        longest, count = 0.0, 0
        gc.collect()
        objects = len(gc.get_objects())

        async def tick() -> None:
            nonlocal longest, count
            while True:
                before = time.thread_time()
                await asyncio.sleep(0)
                longest, count = max(longest, time.thread_time() - before), count + 1

        cache = client.cache(prefix="p/")
        with no_collections():
            ticking = asyncio.create_task(tick())
            await cache.__aenter__()
            ticking.cancel()
        try:
            assert len(cache) == 100_000
            assert count >= 100
            assert longest < 0.1, "seconds of computation; it is about 5 ms on a quiet machine"
            gc.collect()
            assert len(gc.get_objects()) - objects < 5_000, "what the collector looks at does not grow with the keys"
        finally:
            await cache.aclose()


async def test_a_revision_of_very_many_events_is_seen_at_once(
    own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stagings: list[object] = []
    stage = Replica.stage

    def counted(replica: Replica[Any]) -> object:
        stagings.append(replica)
        return stage(replica)

    monkeypatch.setattr(Replica, "stage", counted)
    async with Client(own_server.endpoint) as writer, Client(own_server.endpoint) as client:
        for begin in range(0, 10_000, 100):
            puts = (op.put(f"p/{number:06}", str(number)) for number in range(begin, begin + 100))
            await writer.txn().then(*puts).commit()
        async with client.cache(prefix="p/") as plain, client.cache(prefix="p/", decode=int) as decoded:
            seen: set[tuple[int, int, int, bool]] = set()
            changes, batches = plain.changes(), plain.batches()
            before = plain.revision

            async def look() -> None:
                while True:
                    for cache in (plain, decoded):
                        found = len(cache), len(cache.range()), cache.revision, cache.get("p/000007") is None
                        seen.add(found)
                    await asyncio.sleep(0)

            looking = asyncio.create_task(look())
            gone = await writer.delete(prefix="p/")
            await asyncio.gather(*(cache.wait_revision(gone.revision) for cache in (plain, decoded)))
            looking.cancel()
            assert seen <= {(10_000, 10_000, before, False), (0, 0, gone.revision, True)}
            assert len(stagings) == 2
            revision, changed = await anext(changes)
            assert (revision, len(changed), set(changed.values())) == (gone.revision, 10_000, {None})
            batch = await anext(batches)
            assert (len(batch), batch.revision, any(event.is_put for event in batch)) == (10_000, gone.revision, False)
            put = await writer.put("p/000001", "5")
            for cache in (plain, decoded):
                await cache.wait_revision(put.revision)
                await as_the_store(writer, plain, "p/")
            assert decoded.range() == {b"p/000001": 5}
