"""Registration under a lease, discovery by a watch. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client

PREFIX = "example/services/"


async def serve(client: Client, name: str, address: str, stop: asyncio.Event) -> None:
    """Be registered while it serves. A process that dies is forgotten when its lease expires, 5 seconds later."""
    async with client.lease(ttl=5) as lease:  # kept alive; if it is lost all the same, the block is cancelled
        await client.put(PREFIX + name, address, lease=lease)
        await stop.wait()  # here it would serve; afterwards the lease is revoked, and the entry goes with it


class Directory:
    """The services that are registered now."""

    def __init__(self) -> None:
        self.services: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def follow(self, client: Client) -> None:
        """Keep it true for as long as this runs. It waits out every outage once it has begun."""
        # First, so that it misses nothing. After an outage longer than etcd keeps its history it gives the difference.
        async with client.watch(prefix=PREFIX, on_compaction="resync") as watcher:
            found = await client.range(prefix=PREFIX)
            self.services = {kv.key.decode().removeprefix(PREFIX): kv.text() for kv in found}
            self._tell()
            async for event in watcher:
                if event.revision <= found.revision:
                    continue
                name = event.key.decode().removeprefix(PREFIX)
                self.services.pop(name, None)
                if event.is_put:
                    self.services[name] = event.kv.text()
                self._tell()

    def _tell(self) -> None:
        print("now registered:", ", ".join(sorted(self.services)) or "none")
        self._changed.set()

    async def until(self, count: int) -> None:
        while len(self.services) != count:
            self._changed.clear()
            await self._changed.wait()


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        directory, stops = Directory(), [asyncio.Event() for _ in range(3)]
        async with asyncio.TaskGroup() as group:  # a task that fails ends all of this, with its error
            follower = group.create_task(directory.follow(client), name="directory")
            for number, stop in enumerate(stops, start=1):
                group.create_task(serve(client, f"web-{number}", f"10.0.0.{number}:80", stop))
            await directory.until(3)
            for left, stop in enumerate(reversed(stops), start=1):
                stop.set()
                await directory.until(3 - left)
            follower.cancel()


if __name__ == "__main__":
    asyncio.run(main())
