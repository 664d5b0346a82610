"""Services that register, and a directory that follows them. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client
from etcd_aio.services import Endpoints

TARGET = "example/services"


async def serve(client: Client, name: str, address: str, stop: asyncio.Event) -> None:
    """Stay registered until `stop` is set, again after every outage. If the process dies, the entry ends by its TTL."""
    async with client.register(TARGET, address, metadata={"name": name}, ttl=5):
        await stop.wait()  # serve requests here; leaving the block deletes the entry


class Directory:
    """The services that are registered now."""

    def __init__(self) -> None:
        self.services: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def follow(self, services: Endpoints) -> None:
        """Keep `services` up to date while this runs. In an outage the last ones stay."""
        async for change in services.changes():
            self.services = {endpoint.address: str(endpoint.metadata) for endpoint in change.endpoints}
            print("now registered:", ", ".join(self.services) or "none")
            self._changed.set()

    async def until(self, count: int) -> None:
        while len(self.services) != count:
            self._changed.clear()
            await self._changed.wait()


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        directory, stops = Directory(), [asyncio.Event() for _ in range(3)]
        # If one task fails, the group raises its error.
        async with client.resolve(TARGET) as services, asyncio.TaskGroup() as group:
            follower = group.create_task(directory.follow(services), name="directory")
            for number, stop in enumerate(stops, start=1):
                group.create_task(serve(client, f"web-{number}", f"10.0.0.{number}:80", stop))
            await directory.until(3)
            print("the next request goes to", services.pick().address)
            for left, stop in enumerate(reversed(stops), start=1):
                stop.set()
                await directory.until(3 - left)
            follower.cancel()


if __name__ == "__main__":
    asyncio.run(main())
