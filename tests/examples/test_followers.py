"""The examples that keep a copy of a prefix: they survive a missed compaction, and raise final errors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from etcd_aio import Client
from etcd_aio.services import NewEndpoint, naming
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.examples.load import load

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

TIMEOUT = 30.0  # seconds; on an idle machine milliseconds are enough


@dataclass
class Scene:
    """A prefix, a client that follows it through a proxy, and a client that changes it."""

    direct: Client
    client: Client
    proxy: FaultProxy
    prefix: str

    async def change_while_disconnected(self) -> int:
        """Change the prefix and compact its history while the follower is disconnected. Returns the last revision."""
        self.proxy.refuse()
        self.proxy.reset()
        await self.direct.put(f"{self.prefix}a", "changed")
        await self.direct.delete(f"{self.prefix}b")
        revision = (await self.direct.put(f"{self.prefix}c", "new")).revision
        await self.direct.compact(revision)
        self.proxy.accept()
        return revision


@asynccontextmanager
async def scene_of(server: EtcdServer, prefix: str) -> AsyncIterator[Scene]:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
        asyncio.timeout(TIMEOUT),
    ):
        for name in "ab":
            await direct.put(f"{prefix}{name}", "old")
        try:
            yield Scene(direct, client, proxy, prefix)
        finally:
            await direct.delete(prefix=prefix)


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - there is no notification
        await asyncio.sleep(0.01)


async def test_a_configuration_is_right_after_a_missed_compaction(server: EtcdServer) -> None:
    example = load("config_reload")
    async with scene_of(server, example.PREFIX) as scene, example.live_config(scene.client, scene.prefix) as config:
        await config.wait_revision(await scene.change_while_disconnected(), timeout=TIMEOUT)
        assert sorted(config.range().values()) == ["changed", "new"]


async def test_a_configuration_with_an_invalid_value_keeps_the_one_before(
    server: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    example = load("config_reload")
    async with scene_of(server, example.PREFIX) as scene, example.live_config(scene.client, scene.prefix) as config:
        invalid = await scene.direct.put(f"{scene.prefix}a", b"\xff")  # not text
        await config.wait_revision(invalid.revision, timeout=TIMEOUT)
        assert config[f"{scene.prefix}a"] == "old"
        assert any("UnicodeDecodeError" in record.getMessage() for record in caplog.records)


async def test_a_directory_is_right_after_a_missed_compaction(server: EtcdServer) -> None:
    example = load("service_registration")
    directory = example.Directory()
    async with (
        scene_of(server, "unrelated/") as scene,
        scene.client.resolve(example.TARGET) as services,
        asyncio.TaskGroup() as group,
    ):
        following = group.create_task(directory.follow(services))
        await naming.update(scene.direct, example.TARGET, add=["a:1", "b:1"])
        await directory.until(2)
        scene.proxy.refuse()
        scene.proxy.reset()
        await naming.update(scene.direct, example.TARGET, remove=["b:1"])
        changed = [NewEndpoint("a:1", "changed"), NewEndpoint("c:1")]
        result = await naming.update(scene.direct, example.TARGET, add=changed)
        await scene.direct.compact(result.revision)
        scene.proxy.accept()
        await until(lambda: directory.services == {"a:1": "changed", "c:1": "None"})
        await naming.update(scene.direct, example.TARGET, remove=["a:1", "c:1"])
        await directory.until(0)
        following.cancel()


async def test_a_copy_is_right_after_a_missed_compaction(server: EtcdServer) -> None:
    example = load("follow_prefix")
    copy: dict[bytes, str] = {}
    async with scene_of(server, example.PREFIX) as scene, asyncio.TaskGroup() as group:
        following: asyncio.Task[int] = group.create_task(example.follow(scene.client, copy))
        await scene.direct.put(f"{scene.prefix}a", "seen")
        await until(lambda: copy.get(f"{scene.prefix}a".encode()) == "seen")
        await scene.change_while_disconnected()
        await scene.direct.put(example.END, "")
        await following
        assert sorted(copy.values()) == ["", "changed", "new"]
