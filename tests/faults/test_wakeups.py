"""A release wakes the next waiter and no other: counted by the calls that the waiters make."""

import asyncio
from typing import Any

import pytest

from etcd_aio.concurrency.line import Line
from etcd_aio.testing import EtcdServer
from tests.faults import sabotage
from tests.support.backends import ClientWithADetour

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

WAITERS = 30


class CountingClient(ClientWithADetour):
    """Counts its reads, and those of a waiter that has its watch."""

    reads = 0
    waits = 0

    async def get(self, key: Any, **options: Any) -> Any:
        """Get a key."""
        self.waits += 1
        return await super().get(key, **options)

    async def detour(self, operation: Any, **options: Any) -> Any:
        """Send one operation."""
        self.reads += operation.is_read_only
        return await self.send(operation, **options)


async def reads_per_release() -> float:
    """How many reads the waiters make for each release, while all of them wait in one line."""
    async with EtcdServer() as server, CountingClient(server.endpoint) as client:

        async def wait() -> None:
            async with client.lock("a", ttl=60):
                pass

        async with asyncio.TaskGroup() as group, client.lock("a", ttl=60):
            for _ in range(WAITERS):
                group.create_task(wait())
            async with asyncio.timeout(60):
                while client.waits < WAITERS:  # noqa: ASYNC110 - nothing signals it
                    await asyncio.sleep(0.01)
            before = client.reads
        return (client.reads - before) / WAITERS


async def test_a_release_wakes_one_waiter() -> None:
    assert await reads_per_release() <= 1.5


async def test_a_herd_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "_wait", Line._wait)  # restored afterwards
    sabotage.herd()
    assert await reads_per_release() > 5
