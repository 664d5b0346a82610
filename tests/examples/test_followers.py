"""The examples that keep a copy of a prefix, when they are cut off, and when they cannot go on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.examples.load import load

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

PATIENCE = 30.0  # seconds for what takes milliseconds, on a machine that is busy


@dataclass
class Scene:
    """A prefix, a client that follows it through a proxy, and another one that changes it."""

    direct: Client
    client: Client
    proxy: FaultProxy
    prefix: str

    async def change_while_cut_off(self) -> int:
        """Change, add and delete keys and compact that history while the follower is cut off; the last revision."""
        self.proxy.refuse()
        self.proxy.reset()
        await self.direct.put(f"{self.prefix}a", "changed")
        await self.direct.delete(f"{self.prefix}b")
        revision = (await self.direct.put(f"{self.prefix}c", "new")).revision
        await self.direct.compact(revision)
        self.proxy.accept()
        return revision


@asynccontextmanager
async def scene(server: EtcdServer, prefix: str) -> AsyncIterator[Scene]:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
        asyncio.timeout(PATIENCE),
    ):
        for name in "ab":
            await direct.put(f"{prefix}{name}", "old")
        try:
            yield Scene(direct, client, proxy, prefix)
        finally:
            await direct.delete(prefix=prefix)


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)


async def test_a_configuration_is_right_after_a_compaction_that_it_did_not_see(server: EtcdServer) -> None:
    example = load("config_reload")
    async with scene(server, example.PREFIX) as it, example.live_config(it.client, it.prefix) as config:
        await config.until(await it.change_while_cut_off())
        assert sorted(config.values.values()) == ["changed", "new"]


async def test_a_configuration_that_cannot_go_on_says_so(server: EtcdServer) -> None:
    example = load("config_reload")

    async def wait(client: Client, prefix: str) -> None:
        async with example.live_config(client, prefix) as config:
            await it.direct.put(f"{prefix}a", b"\xff")  # not text
            await config.until(2**62)

    async with scene(server, example.PREFIX) as it:
        with pytest.raises(ExceptionGroup, match="unhandled") as caught:
            await wait(it.client, it.prefix)
        assert caught.group_contains(ValueError, match="not UTF-8")


async def test_a_directory_is_right_after_a_compaction_that_it_did_not_see(server: EtcdServer) -> None:
    example = load("service_registration")
    directory = example.Directory()
    async with scene(server, example.PREFIX) as it, asyncio.TaskGroup() as group:
        following = group.create_task(directory.follow(it.client))
        await directory.until(2)
        await it.direct.put(f"{it.prefix}a", "seen")  # so the watch is there
        await until(lambda: directory.services["a"] == "seen")
        await it.change_while_cut_off()
        await until(lambda: directory.services == {"a": "changed", "c": "new"})
        following.cancel()


async def test_a_copy_is_right_after_a_compaction_that_it_did_not_see(server: EtcdServer) -> None:
    example = load("follow_prefix")
    copy: dict[bytes, str] = {}
    async with scene(server, example.PREFIX) as it, asyncio.TaskGroup() as group:
        following: asyncio.Task[int] = group.create_task(example.follow(it.client, copy))
        await it.direct.put(f"{it.prefix}a", "seen")
        await until(lambda: copy.get(f"{it.prefix}a".encode()) == "seen")
        await it.change_while_cut_off()
        await it.direct.put(example.END, "")
        await following
        assert sorted(copy.values()) == ["", "changed", "new"]
