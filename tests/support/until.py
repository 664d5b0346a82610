"""Waiting until something is so, where nothing signals it."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from etcd_aio import Client

PATIENCE: Final = 240.0
"""Seconds: far above what a loaded machine needs."""

_LOOK_EVERY: Final = 0.02


async def until(holds: Callable[[], bool], tasks: "Iterable[asyncio.Task[Any]]" = ()) -> None:
    """Wait until this is so; an error that ends one of the tasks meanwhile is raised."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(_LOOK_EVERY)


async def until_keys(client: Client, prefix: str, count: int) -> list[bytes]:
    """Wait until there are so many keys; returns them, the oldest first."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await client.range(prefix=prefix, sort_by="create_revision", keys_only=True)
            if len(found) == count:
                return [kv.key for kv in found]
            await asyncio.sleep(_LOOK_EVERY)
