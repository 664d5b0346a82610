"""A configuration that reloads itself. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys
from typing import Self

from etcd_aio import Client

PREFIX = "example/config/"


class Config:
    """The settings under a prefix, by key. `values` is replaced whole: a reader never sees half of a change."""

    def __init__(self, client: Client, prefix: str) -> None:
        self.values: dict[bytes, str] = {}
        self.revision = 0
        self._client, self._prefix = client, prefix
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        found = await self._client.range(prefix=self._prefix)
        self.values, self.revision = {kv.key: kv.text() for kv in found}, found.revision
        self._task = asyncio.create_task(self._reload(), name=f"config {self._prefix}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def until(self, revision: int) -> None:
        """Wait until it is at least as new as this revision."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.revision >= revision)

    async def _reload(self) -> None:
        async with self._client.watch(prefix=self._prefix, start_revision=self.revision + 1) as watcher:
            async for batch in watcher.batches():
                changes = {event.key: event.value.decode() if event.is_put else None for event in batch}
                values = {key: value for key, value in (self.values | changes).items() if value is not None}
                async with self._changed:
                    self.values, self.revision = values, batch.revision
                    self._changed.notify_all()


async def main() -> None:
    log = f"{PREFIX}log".encode()
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client:
        await client.put(log, "info")
        async with Config(client, PREFIX) as config, asyncio.timeout(30):
            print("log level:", config.values[log])
            await config.until((await client.put(log, "debug")).revision)
            print("log level:", config.values[log])
            await config.until((await client.delete(prefix=PREFIX)).revision)
            print("settings left:", len(config.values))


asyncio.run(main())
