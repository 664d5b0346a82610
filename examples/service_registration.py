"""Registration under a lease, discovery by a watch. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client

PREFIX = "example/services/"


async def serve(client: Client, name: str, address: str, stop: asyncio.Event) -> None:
    """Stay registered until `stop` is set. If the process dies, etcd deletes the entry when the lease expires."""
    async with client.lease(ttl=5) as lease:  # renewed; if the lease is lost, the block is cancelled
        await client.put(PREFIX + name, address, lease=lease)
        await stop.wait()  # serve requests here; leaving the block revokes the lease and deletes the entry


class Directory:
    """The services that are registered now."""

    def __init__(self) -> None:
        self.services: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def follow(self, client: Client) -> None:
        """Keep `services` up to date while this runs. The watch survives outages."""
        # Enter the watch before the range, so that no change is missed. If the client is disconnected for longer than
        # etcd keeps its history, "resync" delivers the difference.
        async with client.watch(prefix=PREFIX, on_compaction="resync") as watcher:
            found = await client.range(prefix=PREFIX)
            self.services = found.to_dict(strip_prefix=PREFIX)
            self._notify()
            async for event in watcher:
                if event.revision <= found.revision:
                    continue
                name = event.key_text().removeprefix(PREFIX)
                self.services.pop(name, None)
                if event.is_put:
                    self.services[name] = event.text()
                self._notify()

    def _notify(self) -> None:
        print("now registered:", ", ".join(sorted(self.services)) or "none")
        self._changed.set()

    async def until(self, count: int) -> None:
        while len(self.services) != count:
            self._changed.clear()
            await self._changed.wait()


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        directory, stops = Directory(), [asyncio.Event() for _ in range(3)]
        async with asyncio.TaskGroup() as group:  # if one task fails, the group raises its error
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
