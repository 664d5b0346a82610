"""One lock for all: this library, the Go client's `Mutex`, etcdctl, and etcd's own service, in one line."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.support.recipes import etcdctl, go_member
from tests.support.services import services
from tests.support.until import PATIENCE, until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_all_kinds_hold_in_turn(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    """One at a time, in the order of arrival."""
    name, endpoint = f"{prefix}lock", shared_server.endpoint
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        raw = await enter(services(endpoint))
        first, last = client.lock(name), client.lock(name)
        await first.acquire()
        go = await enter(go_member(endpoint, "lock", name))
        await until_keys(client, f"{name}/", 2)
        ctl = await enter(etcdctl(endpoint, "lock", name, says=name))
        await until_keys(client, f"{name}/", 3)
        lease = await enter(client.lease(10))
        locking = asyncio.create_task(raw.lock(name, lease.id))
        await until_keys(client, f"{name}/", 4)
        acquiring = asyncio.create_task(last.acquire())
        order = await until_keys(client, f"{name}/", 5)
        assert order[0] == first.key
        assert [contender.key for contender in await client.lock(name).contenders()] == order
        assert not await client.lock(name).try_acquire()

        await first.release()
        await go.holds()
        assert await until_keys(client, f"{name}/", 4) == order[1:]
        await go.let_go()
        assert (await ctl.holds()).encode() == order[2]
        assert not locking.done()
        await ctl.let_go()
        async with asyncio.timeout(PATIENCE):
            assert await locking == order[3]
        assert not acquiring.done()
        await raw.unlock(order[3])
        async with asyncio.timeout(PATIENCE):
            await acquiring
        assert last.key == order[4]
        await last.release()
        await until_keys(client, f"{name}/", 0)


async def test_a_go_holder_that_is_killed_gives_way(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    name = f"{prefix}lock"
    async with go_member(shared_server.endpoint, "lock", name, ttl=2) as go:
        await go.holds()
        lock = client.lock(name)
        acquiring = asyncio.create_task(lock.acquire())
        await until_keys(client, f"{name}/", 2)
        go.kill()
        async with asyncio.timeout(PATIENCE):
            await acquiring
        await lock.release()


async def test_readers_and_writers_of_the_go_recipe(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    """Readers share, a writer comes after them, and a reader after the writer, whichever library they use."""
    name, endpoint = f"{prefix}rw", shared_server.endpoint
    rwlock = client.rwlock(name)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        reader, writer, later = rwlock.reading(), rwlock.writing(), rwlock.reading()
        await reader.acquire()
        go_reader = await enter(go_member(endpoint, "read", name))
        await go_reader.holds()
        go_writer = await enter(go_member(endpoint, "write", name))
        await until_keys(client, f"{name}/", 3)
        reading = asyncio.create_task(later.acquire())
        await until_keys(client, f"{name}/", 4)
        writing = asyncio.create_task(writer.acquire())
        await until_keys(client, f"{name}/", 5)
        await reader.release()
        await go_reader.let_go()
        await go_writer.holds()
        assert not reading.done()
        assert not writing.done()
        await go_writer.let_go()
        async with asyncio.timeout(PATIENCE):
            await reading
            assert not writing.done()
            await later.release()
            await writing
        await writer.release()
        await until_keys(client, f"{name}/", 0)
