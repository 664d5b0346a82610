"""Namespaces on real servers: what is inside is a store of its own, and what is outside is neither seen nor touched."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from etcd_aio import Client, Event, EventType, Key, KeyRange, KeyValue, Store, op
from etcd_aio.errors import (
    CompactedError,
    DuplicateKeyError,
    EmptyKeyError,
    FutureRevisionError,
    InvalidRequestError,
    LeaseNotFoundError,
    LockTimeoutError,
    PermissionDeniedError,
)
from etcd_aio.testing import EtcdServer
from tests.support.recipes import etcdctl
from tests.support.until import PATIENCE, until, until_keys
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def own() -> AsyncIterator[Client]:
    """A client on a store of the test's own, for what concerns every key there is."""
    async with EtcdServer() as server, Client(server.endpoint) as client:
        yield client


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


# All ways to one.


@pytest.fixture(params=["namespace", "nested", "client", "url", "namespace of a client with one"])
async def space(request: pytest.FixtureRequest, own_server: EtcdServer) -> AsyncIterator[Store]:
    """The same namespace of the same server, made in each of the ways that there are."""
    endpoint = own_server.endpoint
    match request.param:
        case "client":
            client = Client(endpoint, namespace="app/in/")
        case "url":
            client = Client.from_url(endpoint.replace("http://", "etcd://") + "/app/in/")
        case "namespace of a client with one":
            client = Client(endpoint, namespace=b"app/")
        case _:
            client = Client(endpoint)
    async with client:
        match request.param:
            case "namespace":
                yield client.namespace("app/in/")
            case "nested":
                yield client.namespace("ap").namespace(b"p/in/")
            case "namespace of a client with one":
                yield client.namespace("in/")
            case _:
                yield client


@pytest.fixture
async def whole(own_server: EtcdServer) -> AsyncIterator[Client]:
    """A client of the whole store that `space` is in."""
    async with Client(own_server.endpoint) as client:
        yield client


async def test_calls_watches_leases_and_errors_have_the_keys_of_the_user(space: Store, whole: Client) -> None:
    async with space.watch(prefix="k") as watcher:
        assert repr(watcher).startswith("<Watcher KeyRange(b'k', b'l')")
        put = await space.put("k1", "1")
        await whole.put("k1", "other")
        await whole.put("app/in/k2", "2")
        await whole.delete("app/in/k2")
        assert [await anext(watcher) for _ in range(3)] == [
            Event(EventType.PUT, KeyValue(b"k1", b"1", put.revision, put.revision, 1)),
            Event(EventType.PUT, KeyValue(b"k2", b"2", put.revision + 2, put.revision + 2, 1)),
            Event(EventType.DELETE, KeyValue(b"k2", mod_revision=put.revision + 3)),
        ]
        assert watcher.revision == put.revision + 3
    scan = space.scan(prefix="k")
    assert [kv.key async for kv in scan] == [b"k1"]
    assert "KeyRange(b'k', b'l')" in repr(scan)
    async with space.lease(60) as lease:
        await space.put("k3", "3", lease=lease)
        await whole.put("other", "", lease=lease)
        assert (await space.leases.time_to_live(lease, keys=True)).keys == (b"k3",)
        assert (await space.leases.time_to_live(lease)).keys == ()
        assert lease.id in (await space.leases.list()).ids
    assert await whole.get("app/in/k3") is None

    with pytest.raises(LeaseNotFoundError) as refused:
        await space.put("k", "v", lease=lease_of_nobody())
    assert refused.value.call == "put 'k' with lease 0x7b"
    with pytest.raises(DuplicateKeyError) as refused_txn:
        await space.txn().when(Key(prefix="p/").missing).then(op.put("a", "1"), op.put("a", "2")).commit()
    assert refused_txn.value.call == "txn on prefix='p/', 'a'"
    with pytest.raises(FutureRevisionError) as future:
        await space.range(all_keys=True, revision=10**9)
    assert future.value.call == f"range all_keys=True at revision {10**9}"
    with pytest.raises(FutureRevisionError) as scanned:
        await anext(space.scan(prefix="k", revision=10**9))
    assert scanned.value.call == f"range prefix='k' at revision {10**9}"

    await whole.compact(put.revision + 2)
    async with space.watch(from_key="k", start_revision=1) as old:
        for _ in range(2):  # the same error is raised each time
            with pytest.raises(CompactedError) as compacted:
                await anext(old)
            assert compacted.value.call == "watch from_key='k' from revision 1"
    async with space.watch(prefix="k", start_revision=1, on_compaction="resync") as resynced:
        event = await anext(resynced)
        assert (event.is_resync, event.key) == (True, b"k1")


def lease_of_nobody() -> int:
    return 123


async def test_shortcuts_work_inside(space: Any, whole: Client) -> None:
    """The names of locks and elections, and the keys of exactly-once writes, are keys like others."""
    async with space.lock("lock") as lock:
        assert lock.key.startswith(b"lock/")
        (key,) = await until_keys(whole, "app/in/lock/", 1)
        assert key == b"app/in/" + lock.key
        with pytest.raises(LockTimeoutError):
            await whole.lock("app/in/lock", timeout=0.1).acquire()
        assert not await space.lock("lock").try_acquire()
        async with whole.lock("lock"):
            pass
        await lock.fenced.put("guarded", "1")
        assert [one.key for one in await space.lock("lock").contenders()] == [lock.key]
    async with space.rwlock("rw").reading(), space.rwlock("rw").reading():
        await until_keys(whole, "app/in/rw/", 2)
    async with space.semaphore("gpu", limit=2):
        await until_keys(whole, "app/in/gpu/", 1)
    async with space.session() as session, session.lock("of session"):
        await until_keys(whole, "app/in/of session/", 1)
    async with space.election("boss").lead("me"):
        found = await space.election("boss").leader()
        assert found is not None
        assert found.value == b"me"
        assert await whole.election("boss").leader() is None
        outer = await whole.election("app/in/boss").leader()
        assert outer is not None
        assert outer.key == b"app/in/" + found.key
    async with space.exactly_once() as once:
        assert (await once.put("once", "1", id="job 1")).prev_kv is None
        await until_keys(whole, "app/in/__etcd_aio/once/", 2)
        await once.delete("once")
    async with space.cache(prefix="guard") as cache:
        held = cache.get("guarded")
        assert held is not None
        assert (held.key, held.value) == (b"guarded", b"1")
        await whole.put("app/in/guarded", "2")
        await whole.put("guarded", "outside")
        await cache.wait_current()
        assert {key: kv.value for key, kv in cache.range().items()} == {b"guarded": b"2"}
    view = space.ordered()
    put = await view.put("ordered", "1")
    kv = await view.get("ordered", serializable=True)
    assert (kv.key, view.revision) == (b"ordered", put.revision)
    kubernetes = space.kubernetes()
    assert not await kubernetes.optimistic_put("ordered", "2", put.revision - 1)
    assert await kubernetes.optimistic_put("ordered", "2", put.revision)
    assert await kubernetes.optimistic_put("ordered2", "2", 0)
    page = await kubernetes.list("ord", limit=1)
    assert ([kv.key for kv in page.kvs], page.next_key) == ([b"ordered"], b"ordered\0")
    page = await kubernetes.list("ord", revision=page.revision, continue_key=page.next_key)
    assert [kv.key for kv in page.kvs] == [b"ordered2"]
    async with space.register("svc", "a:1"), space.resolve("svc") as service:
        (found,) = await service.wait_endpoints(timeout=PATIENCE)
        assert found.key == b"svc/a:1"
        assert await until_keys(whole, "app/in/svc/", 1) == [b"app/in/svc/a:1"]
        async with whole.resolve("app/in/svc") as endpoints:
            assert endpoints.pick().address == "a:1"
    assert (await space.update("n", lambda value: b"%d" % (int(value or 0) + 1))).key == b"n"
    waiting = asyncio.create_task(space.wait_deleted("guarded"))
    await whole.delete("app/in/guarded")
    async with asyncio.timeout(PATIENCE):
        await waiting


async def test_a_lock_excludes_etcdctl_and_is_excluded_by_it(own: Client) -> None:
    (endpoint,) = own.endpoints
    inside = own.namespace("app/").lock("x")
    async with etcdctl(endpoint, "lock", "app/x", says="app/x/") as ctl:
        await ctl.holds()
        assert not await inside.try_acquire()
        acquiring = asyncio.create_task(inside.acquire())
        first, second = await until_keys(own, "app/x/", 2)
        assert not acquiring.done()
        await ctl.let_go()
        async with asyncio.timeout(PATIENCE):
            await acquiring
        assert (b"app/" + inside.key, inside.is_held) == (second, True)
        assert first != second
    async with etcdctl(endpoint, "lock", "app/x", says="app/x/") as ctl:
        holding = asyncio.create_task(ctl.holds())
        await until_keys(own, "app/x/", 2)
        assert not holding.done()
        await inside.release()
        assert (await holding).startswith("app/x/")


# What it shares, and what it refuses.


async def test_it_shares_streams_and_leases_with_its_client(own: Client) -> None:
    spaces: list[Any] = [own, own.namespace("a/"), own.namespace("b/").namespace("c/")]
    locks = [space.lock("x") for space in spaces]
    for lock in locks:
        await lock.acquire()
    async with spaces[0].watch("k"), spaces[1].watch("k"), spaces[2].watch("k"):
        assert sorted(stream.method for stream in own.streams()) == ["Lease/LeaseKeepAlive", "Watch/Watch"]
    for lock in locks:
        await lock.release()
    count = len((await own.leases.list()).leases)
    again = [spaces[1].lock(name) for name in ("x", "y", "z")]
    for lock in again:
        await lock.acquire()
    assert len((await own.leases.list()).leases) == count, "released leases are used again, wherever the next lock is"
    for lock in again:
        await lock.release()


async def test_closing_the_client_ends_what_its_namespaces_have_under_way(own_server: EtcdServer) -> None:
    client = await Client(own_server.endpoint).connect()
    space = client.namespace("app/")
    once = await space.exactly_once().__aenter__()
    await once.put("k", "v")
    lock = space.lock("x")
    await lock.acquire()
    await client.aclose()
    assert lock.is_lost
    async with Client(own_server.endpoint) as other:
        assert await until_keys(other, "app/__etcd_aio/", 0) == [], "the block was ended, and its lease revoked"
        assert await other.get("app/k") is not None


async def test_nothing_is_sent_for_what_cannot_be_translated(own: Client) -> None:
    space = own.namespace("app/")
    await own.put("app/", "outside")
    attempts = own.statistics()[0].attempts
    for operation in (op.RangeOp(KeyRange(b"", b"\0")), op.DeleteOp(KeyRange(b"")), op.GetOp(b""), op.PutOp(b"")):
        with pytest.raises(EmptyKeyError):
            await space.do(operation)
    with pytest.raises(InvalidRequestError):
        await space.do(op.RangeOp(KeyRange(b"b", b"a")))
    with pytest.raises(TypeError, match="do\\(\\) takes an operation"):
        await space.do("get k")  # type: ignore[arg-type]
    for prefix in ("", b""):
        with pytest.raises(EmptyKeyError, match="the namespace is empty"):
            own.namespace(prefix)
        with pytest.raises(EmptyKeyError, match="the namespace is empty"):
            space.namespace(prefix)
    with pytest.raises(TypeError):
        own.namespace(1)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError):
        space.watch("b", range_end="a")
    with pytest.raises(InvalidRequestError):
        space.watch("a", range_end="a")
    with pytest.raises(EmptyKeyError):
        space.scan("")
    assert own.statistics()[0].attempts == attempts
    for name in ("compact", "cluster", "maintenance", "auth"):
        assert not hasattr(space, name)


async def test_a_client_with_a_namespace_keeps_what_is_about_the_whole_cluster(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint, namespace="app/") as client, Client(own_server.endpoint) as whole:
        for number in range(3):
            await whole.put("other", f"{number}")
        await client.compact((await client.put("k", "v")).revision)
        with pytest.raises(CompactedError):
            await whole.get("other", revision=2)
        assert len(await client.cluster.members()) == 1
        assert await client.ping() > 0


async def test_permissions_name_whole_keys(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as root:
        await root.auth.user_add("root", "r")
        await root.auth.role_add("root")
        await root.auth.user_grant_role("root", "root")
        await root.auth.user_add("web", "w")
        await root.auth.role_add("web")
        await root.auth.role_grant_permission("web", prefix="app/", permission="readwrite")
        await root.auth.user_grant_role("web", "web")
        await root.auth.enable()
    async with Client(own_server.endpoint, auth=("web", "w"), allow_insecure_auth=True) as client:
        space = client.namespace("app/")
        await space.put("k", "v")
        assert len(await space.range(all_keys=True)) == 1
        async with space.watch(all_keys=True), space.lock("x"):
            pass
        with pytest.raises(PermissionDeniedError) as denied:
            await client.namespace("other/").get("k")
        assert denied.value.call == "get 'k'"
        with pytest.raises(PermissionDeniedError) as denied_watch:
            async with client.namespace("other/").watch(prefix="k/"):
                pass
        assert denied_watch.value.call.startswith("watch prefix='k/'")
        assert "other/" not in denied_watch.value.call


# Much.


async def test_long_results_leave_the_loop_to_others(whole: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled step of a scan or a watch loses nothing, wherever it was cut short."""
    need("3.7", why="it has RangeStream")
    monkeypatch.setattr("etcd_aio.views.translate.STEP", 16)
    space = whole.namespace("app/")
    expected = [b"%05d" % number for number in range(3000)]
    for start in range(0, len(expected), 100):
        await whole.do(op.txn(then=[op.put(b"app/" + key, "v") for key in expected[start : start + 100]]))
    found = await space.range(all_keys=True)
    assert [kv.key for kv in found] == expected

    keys: list[bytes] = []
    scan = space.scan(all_keys=True, page_size=200)
    async for kv in interrupted(scan):
        keys.append(kv.key)  # noqa: PERF401 - what was found before an error is shown
    assert keys == expected
    attempts = whole.statistics()[0].attempts
    assert [kv.key async for kv in space.scan(all_keys=True, page_size=200)] == expected
    assert whole.statistics()[0].attempts == attempts + 1, "one page; the rest is streamed"
    async with Client(whole.endpoints, namespace="app/") as client:
        assert [kv.key async for kv in client.scan(all_keys=True, page_size=200)] == expected

    events: list[bytes] = []
    async with space.watch(all_keys=True, start_revision=1) as watcher:
        await until(lambda: watcher.statistics().pending_events == len(expected))
        step = asyncio.ensure_future(anext(watcher))
        for _ in range(3):
            await asyncio.sleep(0)
        assert watcher.statistics().pending_events == len(expected), "what is being cut was not delivered yet"
        step.cancel()
        await asyncio.wait([step])
        assert step.cancelled(), "in the middle of a batch"
        assert watcher.revision == 0
        async for event in interrupted(watcher):
            events.append(event.key)
            if len(events) == len(expected):
                break
    assert events == expected


async def interrupted(source: Any) -> AsyncIterator[Any]:
    """Iterate by steps of which each is cancelled a few times first, one turn of the loop later each time."""
    while True:
        for turns in map(range, (1, 2, 3, 5, 8, 13)):
            step = asyncio.ensure_future(anext(source))
            for _ in turns:
                await asyncio.sleep(0)
            if step.done():
                break
            step.cancel()
            await asyncio.wait([step])
            if not step.cancelled():
                break
        else:
            step = asyncio.ensure_future(anext(source))
        try:
            yield await step
        except StopAsyncIteration:
            return


def test_a_namespace_shows_itself() -> None:
    client = Client()
    space = client.namespace("app/")
    assert space.key_space.prefix == b"app/"
    assert space.namespace(b"\xff").key_space.prefix == b"app/\xff"
    assert repr(space).startswith("<Namespace 'app/' of <Client")
