"""A configuration that reloads itself. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from etcd_aio import Client, Watcher

PREFIX = "example/config/"


class Config:
    """Settings by key. `values` is replaced as a whole, so a reader never sees half of a change."""

    def __init__(self, values: dict[bytes, str], revision: int) -> None:
        self.values, self.revision = values, revision
        self._changed = asyncio.Condition()

    async def until(self, revision: int) -> None:
        """Wait until the configuration is at least as new as this revision."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.revision >= revision)

    async def follow(self, watcher: Watcher) -> None:
        async for batch in watcher.batches():
            newer = [event for event in batch if event.revision > self.revision]
            changes = {event.key: event.text() if event.is_put else None for event in newer}
            values = {key: value for key, value in (self.values | changes).items() if value is not None}
            async with self._changed:
                self.values, self.revision = values, max(self.revision, batch.revision)
                self._changed.notify_all()


@asynccontextmanager
async def live_config(client: Client, prefix: str) -> AsyncIterator[Config]:
    """The settings under a prefix, kept up to date inside the block. The watch survives outages."""
    async with (
        # Enter the watch before the range, so that no change is missed. If the client is disconnected for longer than
        # etcd keeps its history, "resync" delivers the difference.
        client.watch(prefix=prefix, on_compaction="resync") as watcher,
        asyncio.TaskGroup() as group,  # a final error of the watch cancels the block, so settings never go stale
    ):
        found = await client.range(prefix=prefix)
        config = Config({kv.key: kv.text() for kv in found}, found.revision)
        following = group.create_task(config.follow(watcher), name=f"config {prefix}")
        yield config
        following.cancel()


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        await client.put(f"{PREFIX}log", "info")
        async with live_config(client, PREFIX) as config:
            print("log level:", *config.values.values())
            await config.until((await client.put(f"{PREFIX}log", "debug")).revision)
            print("log level:", *config.values.values())
            await config.until((await client.delete(prefix=PREFIX)).revision)
            print("settings left:", len(config.values))


if __name__ == "__main__":
    asyncio.run(main())
