"""Drives etcd-client-py: the Rust client on tonic and tokio, bound to asyncio."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Installed only in the environment of this driver.
from etcd_client import Client, Communicator  # type: ignore[import-not-found]

from benchmarks.drivers.loop import Call, Settings, main


class RustDriver:
    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator

    def get(self, key: str) -> Call:
        communicator, raw = self._communicator, key.encode()

        async def call() -> int:
            found = await communicator.get(raw)
            return 0 if found is None else len(found)

        return call

    def put(self, key: str, value: bytes) -> Call:
        communicator, raw = self._communicator, key.encode()

        async def call() -> int:
            await communicator.put(raw, value)
            return 0

        return call

    def range(self, prefix: str) -> Call:
        communicator, raw = self._communicator, prefix.encode()

        async def call() -> int:
            found = await communicator.get_prefix(raw)
            return sum([len(value) for _, value in found])

        return call

    def watch(self, prefix: str, revision: int, events: int) -> Call:
        raise NotImplementedError("its watch takes no first revision")


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[RustDriver]:
    async with Client(list(settings.endpoints)).connect() as communicator:
        yield RustDriver(communicator)


if __name__ == "__main__":
    main(connect, "etcd-client-py")
