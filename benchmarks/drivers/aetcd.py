"""Drives aetcd: grpcio and asyncio, one endpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Installed only in the environment of this driver.
from aetcd import Client  # type: ignore[import-not-found]

from benchmarks.drivers.loop import Call, Settings, main


class AetcdDriver:
    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, key: str) -> Call:
        client, raw = self._client, key.encode()

        async def call() -> int:
            found = await client.get(raw, serializable=True)
            return 0 if found is None else len(found.value)

        return call

    def put(self, key: str, value: bytes) -> Call:
        client, raw = self._client, key.encode()

        async def call() -> int:
            await client.put(raw, value)
            return 0

        return call

    def range(self, prefix: str) -> Call:
        client, raw = self._client, prefix.encode()

        async def call() -> int:
            found = await client.get_prefix(raw)
            return sum([len(kv.value) for kv in found])

        return call

    def watch(self, prefix: str, revision: int, events: int) -> Call:
        client, raw = self._client, prefix.encode()

        async def call() -> int:
            read, left = 0, events
            watcher = await client.watch_prefix(raw, start_revision=revision)
            async for event in watcher:
                read += len(event.kv.value)
                left -= 1
                if not left:
                    break
            await watcher.cancel()
            return read

        return call


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[AetcdDriver]:
    host, port = settings.target
    # A thousand revisions may come in one message, which is larger than grpcio's default limit.
    async with Client(host=host, port=port, options={"grpc.max_receive_message_length": -1}) as client:
        yield AetcdDriver(client)


if __name__ == "__main__":
    main(connect, "aetcd", "grpcio", "protobuf")
