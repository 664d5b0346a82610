"""Watches through etcd's grpc-proxy, which chooses their ids itself and answers creations in any order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from etcd_aio import Client, Watcher
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.grpc_proxy import grpc_proxy
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.http2_only, pytest.mark.usefixtures("each_engine")]


@pytest.fixture
async def proxy(shared_server: EtcdServer, tmp_path: Path) -> AsyncIterator[str]:
    async with grpc_proxy(shared_server, tmp_path) as endpoint:
        yield endpoint


async def first_key(watcher: Watcher) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return (await anext(watcher)).key


async def test_each_watch_gets_its_own_events_though_answers_come_out_of_order(proxy: str, prefix: str) -> None:
    """One that continues a listing joins what the proxy watches already, and is answered before its elders."""
    async with Client(proxy) as client:
        for number in range(30):
            cfg, jobs = f"{prefix}cfg{number}/", f"{prefix}jobs{number}/"
            await client.put(cfg + "x", "0")
            start = (await client.range(prefix=cfg)).revision + 1
            async with (
                client.watch(prefix=cfg, start_revision=start),
                asyncio.TaskGroup() as tasks,
            ):
                entering = [
                    tasks.create_task(client.watch(prefix=jobs).__aenter__()),
                    tasks.create_task(client.watch(prefix=cfg, start_revision=start).__aenter__()),
                ]
                watchers = [await one for one in entering]
                await client.put(jobs + "x", "1")
                await client.put(cfg + "x", "1")
                assert [await first_key(one) for one in watchers] == [(jobs + "x").encode(), (cfg + "x").encode()]
                for one in watchers:
                    await one.aclose()


async def test_so_it_is_when_all_are_created_again(proxy: str, client: Client, prefix: str) -> None:
    async with FaultProxy(proxy) as faults, Client(faults.endpoint) as watching, AsyncExitStack() as stack:
        names = [f"{prefix}{number % 4}/" for number in range(12)]  # so that some join others in the proxy
        watchers = []
        for number, name in enumerate(names):
            start = (await client.put(name + "x", "0")).revision + 1 if number % 2 else 0
            watchers.append(await stack.enter_async_context(watching.watch(prefix=name, start_revision=start)))
        for round_ in range(5):
            faults.reset()
            writes = [(await client.put(name + "y", str(round_))).revision for name in dict.fromkeys(names)]
            for name, watcher in zip(names, watchers, strict=True):
                async with asyncio.timeout(PATIENCE):
                    while (event := await anext(watcher)).revision < writes[int(name[-2])]:
                        assert event.key.startswith(name.encode())
                assert (event.key, event.revision) == ((name + "y").encode(), writes[int(name[-2])])
