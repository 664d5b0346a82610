"""Drives etcd_aio, with its default engine or a named one."""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import etcd_aio
from benchmarks.drivers.loop import Call, Settings, main
from etcd_aio import Client, codec

if TYPE_CHECKING:
    from etcd_aio.transport import EngineName


class EtcdAioDriver:
    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, key: str) -> Call:
        client = self._client

        async def call() -> int:
            found = await client.get(key, serializable=True)
            return 0 if found is None else len(found.value)

        return call

    def put(self, key: str, value: bytes) -> Call:
        client = self._client

        async def call() -> int:
            await client.put(key, value)
            return 0

        return call

    def range(self, prefix: str) -> Call:
        client = self._client

        async def call() -> int:
            found = await client.range(prefix=prefix, serializable=True)
            return sum([len(kv.value) for kv in found])

        return call

    def watch(self, prefix: str, revision: int, events: int) -> Call:
        client = self._client

        async def call() -> int:
            read, left = 0, events
            # Bounded, in case the server has ended.
            async with client.watch(prefix=prefix, start_revision=revision, max_outage=10) as watcher:
                async for event in watcher:
                    read += len(event.value)
                    left -= 1
                    if not left:
                        break
            return read

        return call


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[EtcdAioDriver]:
    engine = cast("EngineName", settings.engine or _default_engine())
    async with Client(settings.endpoints, engine=engine) as client:
        yield EtcdAioDriver(client)


def _default_engine() -> str:
    return str(inspect.signature(Client).parameters["engine"].default)


def _codec() -> str:
    """What decodes large replies; another checkout may have nothing to choose from."""
    return str(getattr(codec, "BACKEND", "pure Python"))


if __name__ == "__main__":
    facts = {"etcd_aio": etcd_aio.__version__, "default engine": _default_engine(), "codec": _codec()}
    main(connect, "grpclib", facts=facts)
