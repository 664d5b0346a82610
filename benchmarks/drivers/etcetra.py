"""Drives etcetra: grpcio and asyncio, one endpoint, text only, always serializable reads."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

# Installed only in the environment of this driver.
from etcetra import EtcdClient, EtcdCommunicator, HostPortPair  # type: ignore[import-not-found]

from benchmarks.drivers.loop import Call, Settings, main


class EtcetraDriver:
    def __init__(self, communicator: EtcdCommunicator) -> None:
        self._communicator = communicator

    def get(self, key: str) -> Call:
        communicator = self._communicator

        async def call() -> int:
            found = await communicator.get(key)
            return 0 if found is None else len(found)

        return call

    def put(self, key: str, value: bytes) -> Call:
        communicator, text = self._communicator, value.decode()

        async def call() -> int:
            await communicator.put(key, text)
            return 0

        return call

    def range(self, prefix: str) -> Call:
        communicator = self._communicator

        async def call() -> int:
            found = await communicator.get_prefix(prefix)
            return sum([len(value) for value in found.values()])

        return call

    def watch(self, prefix: str, revision: int, events: int) -> Call:
        communicator = self._communicator

        async def call() -> int:
            read, left = 0, events
            async with aclosing(communicator.watch_prefix(prefix, start_revision=revision)) as watcher:
                async for event in watcher:
                    read += len(event.value)
                    left -= 1
                    if not left:
                        break
            return read

        return call


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[EtcetraDriver]:
    async with EtcdClient(HostPortPair(*settings.target)).connect() as communicator:
        yield EtcetraDriver(communicator)


if __name__ == "__main__":
    main(connect, "etcetra", "grpcio", "protobuf")
