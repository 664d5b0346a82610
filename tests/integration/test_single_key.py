"""Small steps on one key, on a real server: put if it is missing, update, wait until it is deleted."""

import asyncio
import gc
import warnings
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client, EtcdTimeoutError, InvalidRequestError, KeyValue
from etcd_aio.testing import EtcdServer, FaultProxy

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine", "each_store")]

TIMEOUT = 30.0  # seconds; ends what hangs


def increased(value: bytes | None) -> str:
    return str(int(value or 0) + 1)


async def test_put_if_missing(client: Client, prefix: str) -> None:
    async with client.lease(60) as lease:
        first = await client.put(prefix, "first", lease=lease, if_missing=True)
        assert first is not None
        assert first.header.member_id, "a whole header"
        assert await client.put(prefix, "second", if_missing=True) is None
        expected = KeyValue(prefix.encode(), b"first", first.revision, first.revision, 1, lease.id)
        assert await client.get(prefix) == expected
    assert await client.put(prefix, "third", if_missing=True), "its lease has taken it along"


async def test_one_of_many_puts_if_it_is_missing(client: Client, prefix: str) -> None:
    results = await asyncio.gather(*(client.put(prefix, str(n), if_missing=True) for n in range(50)))
    assert sum(result is not None for result in results) == 1


@pytest.mark.parametrize("option", [{"prev_kv": True}, {"ignore_lease": True}, {"ignore_value": True}])
async def test_put_if_missing_refuses_what_needs_the_key(client: Client, prefix: str, option: dict[str, bool]) -> None:
    value = None if "ignore_value" in option else "v"
    with pytest.raises(InvalidRequestError, match="if_missing"):
        await client.put(prefix, value, if_missing=True, **option)  # type: ignore[call-overload]


async def test_many_clients_update_one_key(shared_server: EtcdServer, prefix: str) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(shared_server.endpoint)) for _ in range(4)]
        updates = (client.update(prefix, increased, timeout=TIMEOUT) for client in clients for _ in range(25))
        written = await asyncio.gather(*updates)
        assert sorted(int(kv.value) for kv in written) == list(range(1, 101)), "each value was written once"
        last = max(written, key=lambda kv: kv.mod_revision)
        assert await clients[0].get(prefix) == last


async def test_an_update_keeps_the_lease(client: Client, prefix: str) -> None:
    async with client.lease(60) as lease, client.lease(60) as other:
        first = await client.update(prefix, increased, lease=lease)
        second = await client.update(prefix, increased)
        third = await client.update(prefix, increased, lease=other)
        assert (first.lease, second.lease, third.lease) == (lease.id, lease.id, other.id)
        assert await client.get(prefix) == third


async def test_an_update_in_doubt_says_so(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        Client(shared_server.endpoint) as direct,
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, retry="always") as client,
    ):

        def lose_the_answer(value: bytes | None) -> str:
            proxy.black_hole("to_client")
            return increased(value)

        before = await direct.range(prefix, count_only=True)
        updating = asyncio.create_task(client.update(prefix, lose_the_answer))
        async with direct.watch(prefix, start_revision=before.revision + 1) as watcher:
            await anext(watcher)
        proxy.reset()
        with pytest.raises(ConnectionError) as caught:
            await updating
        assert getattr(caught.value, "maybe_applied", False)
        kv = await direct.get(prefix)
        assert kv is not None
        assert kv.version == 1, "it was not applied twice"


async def test_an_update_by_an_async_function_is_refused(client: Client, prefix: str) -> None:
    began = False

    async def increase(value: bytes | None) -> str:
        nonlocal began
        began = True
        return increased(value)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that is never awaited, too
        with pytest.raises(TypeError, match=r"async function was passed to update\(\)"):
            await client.update(prefix, increase)  # type: ignore[arg-type]
        gc.collect()
    assert not began
    assert await client.get(prefix) is None


async def test_wait_deleted(client: Client, prefix: str) -> None:
    found = (await client.put(prefix, "v")).revision
    waits = [asyncio.create_task(client.wait_deleted(prefix, revision)) for revision in (0, found)]
    while sum(stream.is_open for stream in client.streams()) == 0:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)
    await client.put(prefix, "w")
    assert not any(wait.done() for wait in waits)
    await client.delete(prefix)
    async with asyncio.timeout(TIMEOUT):
        await asyncio.gather(*waits)
        await client.wait_deleted(prefix)
        await client.put(prefix, "again")
        await client.wait_deleted(prefix, found)
    with pytest.raises(EtcdTimeoutError):
        await client.wait_deleted(prefix, timeout=0.2)
    with pytest.raises(InvalidRequestError):
        await client.wait_deleted(prefix, -1)


async def test_a_deletion_while_no_server_is_reached_ends_the_wait(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        Client(shared_server.endpoint) as direct,
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
    ):
        await direct.put(prefix, "v")
        waiting = asyncio.create_task(client.wait_deleted(prefix))
        while not (await client.get(prefix) and client.streams()):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        proxy.refuse()
        proxy.cut()
        last = await direct.delete(prefix)
        await direct.compact(last.revision)
        proxy.accept()
        async with asyncio.timeout(TIMEOUT):
            await waiting
