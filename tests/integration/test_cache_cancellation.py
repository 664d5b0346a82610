"""Caches are cancelled at every await: no task, watch or waiting caller stays, and the next use works."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from etcd_aio import Client, KeyValue
from etcd_aio.cache import Cache
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.locks import metric
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

_QUICK_TURNS = 60  # that are tried one by one; later ones in larger steps
_STEP = 41


@pytest.fixture
async def server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


def own_tasks() -> list[str]:
    """The tasks of caches, and of their streams."""
    return [task.get_name() for task in asyncio.all_tasks() if "cache" in task.get_name()]


async def cancelled_after(turns: int, action: Awaitable[object]) -> bool:
    """Cancel an action after so many turns of the loop. Returns whether it had ended before."""
    task = asyncio.ensure_future(action)
    for _ in range(turns):
        await asyncio.sleep(0)
    is_done = task.done()
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.done(), f"a cancellation after {turns} turns did not end it"
    if is_done:
        task.result()
    return is_done


def after(turns: int) -> int:
    """The next number of turns to try."""
    return turns + (1 if turns < _QUICK_TURNS else _STEP)


async def enter_and_leave(client: Client) -> None:
    async with client.cache(prefix="p/", keep_current=0.001) as cache:
        assert len(cache) == 2


async def use(client: Client) -> None:
    async with client.cache(prefix="p/", decode=bytes.decode) as cache:
        put = await client.put("elsewhere", "1")
        await cache.wait_revision(put.revision)
        changes = cache.changes()
        await client.put("p/a", "2")
        await cache.wait_current()
        await anext(changes)
        assert await cache.read("p/a") == "2"


@pytest.mark.parametrize("act", [enter_and_leave, use], ids=lambda act: act.__name__)
async def test_nothing_stays(server: EtcdServer, act: Callable[[Client], Awaitable[None]]) -> None:
    async with Client(server.endpoint) as client:
        for key in ("p/a", "p/b"):
            await client.put(key, "1")
        turns = 1  # with 0, the action never begins
        while not await cancelled_after(turns, act(client)):
            assert [name for name in own_tasks() if "watch" not in name] == [], f"after {turns} turns"
            turns = after(turns)
        assert turns > 10, "the action never waited: the test proves nothing"
        await until(lambda: not own_tasks())
    async with asyncio.timeout(PATIENCE):
        while await metric(server, "etcd_debugging_mvcc_watcher_total"):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)


WAITS: list[Callable[[Cache[KeyValue]], Awaitable[object]]] = [
    lambda cache: cache.wait_current(),
    lambda cache: cache.read("p/a"),
    lambda cache: cache.wait_revision(cache.revision + 1),
    lambda cache: anext(cache.changes()),
    lambda cache: anext(cache.batches()),
]


@pytest.mark.parametrize("wait", WAITS, ids=["wait_current", "read", "wait_revision", "changes", "batches"])
async def test_a_cancelled_wait_leaves_the_cache_as_it_was(
    server: EtcdServer, wait: Callable[[Cache[KeyValue]], Awaitable[object]]
) -> None:
    async with (
        FaultProxy(server.endpoint) as proxy,
        Client(server.endpoint) as writer,
        Client(proxy.endpoint) as client,
        client.cache(prefix="p/") as cache,
    ):
        for turns in range(1, 30):
            if turns == 20:
                proxy.black_hole("to_client")
            await cancelled_after(turns, wait(cache))
            assert cache.statistics().waiting == 0
        proxy.heal()
        put = await writer.put("p/a", "1")
        await cache.wait_current(timeout=PATIENCE)
        assert cache.revision >= put.revision
        assert cache.statistics().followers == 0


async def test_leaving_is_bounded_in_time_while_the_server_is_silent(server: EtcdServer) -> None:
    async with Client(server.endpoint) as client:
        cache = await client.cache(prefix="p/", keep_current=0.001).__aenter__()
        server.pause()
        waiting = [asyncio.create_task(cache.wait_current(timeout=None)) for _ in range(3)]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(10):
            await cache.aclose()
        await asyncio.wait(waiting, timeout=PATIENCE)
        assert all(task.exception() is not None for task in waiting)
        await until(lambda: not [name for name in own_tasks() if "watch" not in name])
        server.resume()
