"""The API of aetcd on real servers: what its own tests do not ask, as lost servers, locks, watches and users."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from etcd_aio import EtcdTimeoutError
from etcd_aio.compat import aetcd
from etcd_aio.compat.aetcd.exceptions import UnauthenticatedError, WrongArgumentError
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.testing import EtcdServer
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


def connect(server: EtcdServer, **options: object) -> aetcd.Client:
    url = urlsplit(server.endpoint)
    return aetcd.Client(url.hostname or "", url.port or 0, **options)  # type: ignore[arg-type]


@pytest.fixture
async def etcd(shared_server: EtcdServer) -> AsyncIterator[aetcd.Client]:
    async with connect(shared_server) as client:
        yield client


@pytest.fixture
async def server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


@pytest.fixture
def key(prefix: str) -> bytes:
    return prefix.encode()


# The client.


async def test_a_client_can_be_used_again_after_a_close(etcd: aetcd.Client, key: bytes) -> None:
    await etcd.put(key, b"1")
    await etcd.close()
    await etcd.close()
    found = await etcd.get(key)
    assert found is not None
    assert found.value == b"1"


async def test_a_server_that_refuses_the_connection_is_an_error_at_once(server: EtcdServer) -> None:
    client = connect(server)
    await server.terminate()
    with pytest.raises(aetcd.ConnectionFailedError):
        await client.get(b"k")
    with pytest.raises(aetcd.ConnectionFailedError):
        await client.watch(b"k")
    await client.close()


async def test_a_frozen_server_is_a_timeout(server: EtcdServer) -> None:
    async with connect(server, timeout=1.5) as client:
        await client.put(b"k", b"v")
        server.pause()
        # Its connection may be given up first.
        with pytest.raises((aetcd.ConnectionTimeoutError, aetcd.ConnectionFailedError)):
            await client.get(b"k")
        with pytest.raises((aetcd.WatchTimeoutError, aetcd.ConnectionFailedError)):
            await client.watch(b"k")
        server.resume()


async def test_users_log_in() -> None:
    with pytest.raises(ValueError, match="username and password"):
        aetcd.Client(username="root")
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        name, password = WEB
        async with connect(server, username=name, password=password) as client:
            await client.put(b"app/k", b"v")
            with pytest.raises(aetcd.ClientError, match="permission denied"):
                await client.put(b"other", b"v")
        async with connect(server, username=name, password="wrong") as client:
            with pytest.raises(aetcd.InvalidArgumentError):
                await client.get(b"app/k")
        async with connect(server) as client:
            with pytest.raises((aetcd.InvalidArgumentError, UnauthenticatedError)):
                await client.get(b"app/k")


async def test_options_of_grpc_count(server: EtcdServer) -> None:
    options = {"grpc.max_receive_message_length": 1000, "grpc.keepalive_time_ms": 1, "grpc.max_send_message_length": -1}
    async with connect(server, options=options) as client:
        await client.put(b"k", b"v" * 2000)
        with pytest.raises(aetcd.ClientError, match="1000"):
            await client.get(b"k")


# Keys.


async def test_sorting(etcd: aetcd.Client, key: bytes) -> None:
    for name, value in ((b"a", b"2"), (b"b", b"3"), (b"c", b"1")):
        await etcd.put(key + name, value)

    async def names(order: str | None, target: str | None) -> bytes:
        return b"".join(kv.key[-1:] for kv in await etcd.get_prefix(key, order, target))

    assert await names(None, None) == b"abc"
    assert await names("descend", "key") == b"cba"
    assert await names("ascend", "value") == b"cab"
    assert await names(None, "mod") == b"abc"
    for order, target in (("sideways", "key"), (None, "size")):
        with pytest.raises(WrongArgumentError, match="unknown sort"):
            await etcd.get_prefix(key, order, target)


async def test_what_was_before_is_empty_if_there_was_nothing(etcd: aetcd.Client, key: bytes) -> None:
    first, second = await etcd.put(key, b"1", prev_kv=True), await etcd.put(key, b"2", prev_kv=True)
    assert first.prev_kv is not None
    assert second.prev_kv is not None
    assert (first.prev_kv.value, second.prev_kv.value, (await etcd.put(key, b"3")).prev_kv) == (b"", b"1", None)


async def test_no_empty_prefix_deletes_every_key(etcd: aetcd.Client, key: bytes) -> None:
    await etcd.put(key, b"v")
    with pytest.raises(WrongArgumentError, match="every key"):
        await etcd.delete_prefix(b"")
    assert await etcd.get(key) is not None


async def test_ends_of_ranges(etcd: aetcd.Client, key: bytes) -> None:
    for name in (b"a", b"b", b"b\xff", b"c"):
        await etcd.put(key + name, b"v")
    assert [kv.key for kv in await etcd.get_prefix(key + b"b")] == [key + b"b", key + b"b\xff"]
    assert [kv.key for kv in await etcd.get_range(key + b"a", key + b"c")] == [
        key + name for name in (b"a", b"b", b"b\xff")
    ]
    assert {key + b"b", key + b"c"} <= {kv.key for kv in await etcd.get_range(key + b"b", b"\0")}
    assert len(await etcd.delete_range(key + b"b", key + b"c", prev_kv=True)) == 2


async def test_transactions_answer_with_values_and_responses(etcd: aetcd.Client, key: bytes) -> None:
    made = etcd.transactions
    await etcd.put(key, b"1")
    is_equal, (read, put, deleted) = await etcd.transaction(
        [made.value(key) == b"1", made.version(key) > 0],
        [made.get(key), made.put(key + b"a", b"v"), made.delete(key + b"none")],
    )
    assert is_equal is True
    ((value, kv),) = read
    assert (value, kv.key, kv.header.revision) == (b"1", key, put.response_put.header.revision)
    assert deleted.response_delete_range.deleted == 0
    assert await etcd.transaction([made.value(key) == b"2"], [made.put(key, b"no")]) == (False, [])


# Watches.


async def test_a_watch_outlasts_a_restart_of_its_server(server: EtcdServer) -> None:
    async with connect(server) as client:
        watch = await client.watch_prefix(b"k")
        await client.put(b"k1", b"v")
        await server.restart()
        await client.aio.wait_ready(30)  # a call fails at once if the last dial was refused
        await client.put(b"k2", b"v")
        seen = []
        async for event in watch:
            seen.append(event.kv.key)
            if len(seen) == 2:
                await watch.cancel()
        assert seen == [b"k1", b"k2"]


async def test_closing_the_client_ends_its_watches(etcd: aetcd.Client, key: bytes) -> None:
    watch = await etcd.watch(key)

    async def read() -> list[aetcd.Event]:
        return [event async for event in watch]

    waits = asyncio.create_task(read())
    await asyncio.sleep(0)
    await etcd.close()
    assert await waits == []
    assert await read() == []


async def test_events_that_are_not_iterated_over_at_once_are_kept(etcd: aetcd.Client, key: bytes) -> None:
    watch = await etcd.watch(key, watch_id=77, prev_kv=True)
    assert watch.watch_id == 77
    for number in range(3):
        await etcd.put(key, b"%d" % number)
    first, second = [], []
    async for event in watch:
        first.append(event)
        break
    async for event in watch:
        second.append(event)
        if len(second) == 2:
            break
    await watch.cancel()
    assert [event.kv.value for event in (*first, *second)] == [b"0", b"1", b"2"]
    assert [event.prev_kv.value for event in (*first, *second) if event.prev_kv] == [b"", b"0", b"1"]


async def test_a_kind_of_events_is_chosen(etcd: aetcd.Client, key: bytes) -> None:
    deletes = await etcd.watch(key, kind=aetcd.EventKind.DELETE)
    await etcd.put(key, b"v")
    await etcd.delete(key)
    event = await anext(aiter(deletes))
    assert (event.kind, event.prev_kv) == ("DELETE", None)
    await deletes.cancel()
    with pytest.raises(TypeError, match="EventKind"):
        await etcd.watch(key, kind="PUT")  # type: ignore[arg-type]


async def test_an_event_is_waited_for_once(etcd: aetcd.Client, key: bytes) -> None:
    waits = asyncio.create_task(etcd.watch_prefix_once(key, 30))
    while not waits.done():
        await etcd.put(key + b"a", b"v")
        await asyncio.sleep(0.01)
    assert (await waits).kv.key == key + b"a"
    with pytest.raises(aetcd.WatchTimeoutError):
        await etcd.watch_once(key + b"b", 0.1)


async def test_callbacks_get_every_event_in_order_also_after_one_that_failed(
    etcd: aetcd.Client, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bytes] = []

    async def callback(event: "aetcd.Event | aetcd.ClientError") -> None:
        assert isinstance(event, aetcd.Event)
        seen.append(event.kv.value)
        if event.kv.value == b"1":
            raise ZeroDivisionError

    watcher = aetcd.Watcher(etcd.aio)
    await watcher.setup()
    added = await watcher.add_callback(key, callback)
    for number in range(4):
        await etcd.put(key, b"%d" % number)
    with caplog.at_level(logging.ERROR, "aetcd.watcher"):
        await until(lambda: len(seen) == 4)
    assert seen == [b"0", b"1", b"2", b"3"]
    assert "the callback of a watch failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert added.watch_id is not None
    await watcher.cancel(added.watch_id)
    await etcd.put(key, b"4")
    await watcher.shutdown()
    assert (seen[-1], added.error) == (b"3", None)


async def test_a_callback_gets_the_error_that_ends_its_watch(server: EtcdServer) -> None:
    errors: list[object] = []

    async def callback(event: object) -> None:
        errors.append(event)

    async with connect(server) as client:
        await client.put(b"k", b"v")
        await client.put(b"k", b"v")
        revision = (await client.put(b"k", b"v")).header.revision
        await client.compact(revision)
        watcher = aetcd.Watcher(client.aio)
        added = await watcher.add_callback(b"k", callback, start_revision=1)
        await until(lambda: bool(errors))
    (error,) = errors
    assert isinstance(error, aetcd.RevisionCompactedError)
    assert (error.compacted_revision, added.error) == (revision, error)


# Leases and locks.


async def test_a_lease_that_has_ended_has_no_time_left(etcd: aetcd.Client, key: bytes) -> None:
    lease = await etcd.lease(60)
    await etcd.put(key, b"v", lease)
    assert (await lease.refresh()).TTL == 60
    assert await lease.keys() == [key]
    await lease.revoke()
    assert (await lease.refresh()).TTL == 0
    assert await lease.remaining_ttl() == -1
    with pytest.raises(aetcd.ClientError) as caught:
        await lease.revoke()
    assert isinstance(caught.value.__cause__, LeaseNotFoundError)


async def test_a_lock_is_handed_over_and_leaves_no_leases_behind(server: EtcdServer) -> None:
    async with connect(server) as client:
        first, second = client.lock(b"lock", 60), client.lock(b"lock", 60)
        assert await first.acquire()
        assert not await second.acquire(timeout=0)
        assert not await second.acquire(timeout=0.1)
        assert first.lease is not None
        assert (await client.aio.leases.list()).ids == (first.lease.id,)
        with pytest.raises(ValueError, match="acquire it first"):
            await second.refresh()
        waits = asyncio.create_task(second.acquire(timeout=None))
        await until(lambda: second.revision == first.revision)
        assert await first.release()
        assert await waits
        assert not await first.release()
        assert (await second.is_acquired(), await first.is_acquired()) == (True, False)


async def test_a_try_that_is_cancelled_gives_its_lease_back(
    server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(server) as client:
        is_reached = asyncio.Event()

        async def transaction(**_: object) -> None:
            is_reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(client, "transaction", transaction)
        trying = asyncio.create_task(client.lock(b"lock").acquire())
        await is_reached.wait()
        assert len((await client.aio.leases.list()).ids) == 1
        trying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trying
        assert (await client.aio.leases.list()).ids == ()


# The cluster.


async def test_the_server_answers_for_itself(server: EtcdServer) -> None:
    async with connect(server) as client:
        await client.put(b"k", b"v")
        status = await client.status()
        (member,) = [member async for member in client.members()]
        assert status.leader is not None
        assert (status.leader.id, status.version, status.raft_term > 0) == (member.id, server.version, True)
        await client.defragment()
        file = io.BytesIO()
        await client.snapshot(file)
        assert len(file.getvalue()) > status.db_size / 2
        assert (await client.create_alarm(member.id))[0].alarm_type == aetcd.rpc.NOSPACE
        (alarm,) = await member.active_alarms()
        assert alarm.member_id == member.id
        with pytest.raises(aetcd.ClientError, match="space exceeded"):
            await client.put(b"k", b"v")
        assert len(await client.disarm_alarm()) == 1
        assert [alarm async for alarm in client.list_alarms(alarm_type="no space")] == []
        with pytest.raises(WrongArgumentError):
            [alarm async for alarm in client.list_alarms(alarm_type="full")]


async def test_calls_of_etcd_aio_are_at_hand(etcd: aetcd.Client, key: bytes) -> None:
    await etcd.aio.put(key, "v")
    with pytest.raises(EtcdTimeoutError):
        await etcd.aio.wait_deleted(key, timeout=0.01)
