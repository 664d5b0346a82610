"""Locks on real servers: waiting for facts that only the server knows, and tasks that hold."""

import asyncio
import re
import urllib.request
from collections.abc import Awaitable, Callable

from etcd_aio import Client
from etcd_aio.concurrency import Lock
from etcd_aio.testing import EtcdServer
from tests.support.until import PATIENCE


async def until(fact: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a fact that the server tells only when asked."""
    async with asyncio.timeout(PATIENCE):
        while not await fact():  # noqa: ASYNC110 - another process signals nothing
            await asyncio.sleep(0.01)


async def keys(client: Client, name: str) -> list[bytes]:
    found = await client.range(prefix=f"{name}/", sort_by="create_revision")
    return [kv.key for kv in found.kvs]


async def until_waiting(client: Client, name: str, number: int) -> None:
    """Wait until so many contenders are in line."""

    async def are_there() -> bool:
        return len(await keys(client, name)) == number

    await until(are_there)


async def until_free(client: Client, name: str) -> None:
    await until_waiting(client, name, 0)


def hold(lock: Lock, *, until_set: asyncio.Event | None = None) -> tuple["asyncio.Task[None]", asyncio.Event]:
    """A task that holds a lock until it is told to end; and an event that it holds."""
    held = asyncio.Event()

    async def work() -> None:
        async with lock:
            held.set()
            await (until_set or asyncio.Event()).wait()

    return asyncio.create_task(work()), held


async def metric(server: EtcdServer, name: str) -> float:
    def read() -> str:
        with urllib.request.urlopen(f"{server.endpoint}/metrics", timeout=5) as reply:
            text: str = reply.read().decode()
            return text

    found = re.search(rf"^{re.escape(name)} (\S+)$", await asyncio.to_thread(read), re.MULTILINE)
    return float(found[1]) if found else 0.0
