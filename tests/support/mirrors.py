"""Mirrors on real servers: running them, and comparing both sides. As a module, a mirror in a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from etcd_aio import Client, op
from etcd_aio.mirror import Checkpoint, Mirror
from tests.support.until import PATIENCE

SMALL_TXNS = 20  # operations: small enough that some revisions of a busy source are split


@asynccontextmanager
async def running(mirror: Mirror) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a mirror in a task, as long as the block lasts. What ends it before is raised by `wait` and `has_ended`."""
    task = asyncio.create_task(mirror.run(), name="the mirror")
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def is_alive(task: "asyncio.Task[None]") -> bool:
    """Raise the error that has ended a mirror, if one has."""
    if task.done():
        task.result()
    return True


async def has_ended(task: "asyncio.Task[None]") -> None:
    """Wait until a mirror ends by an error, and raise it."""
    async with asyncio.timeout(PATIENCE):
        await task


async def wait(mirror: Mirror, revision: int, task: "asyncio.Task[None]") -> None:
    """Wait until a mirror is at a revision; the error that ends it meanwhile is raised."""
    waiting = asyncio.create_task(mirror.wait_revision(revision))
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            task.result()
        await waiting


async def contents(client: Client, prefix: str, revision: int = 0) -> dict[bytes, bytes]:
    """The keys below a prefix, without it, and their values."""
    found = await client.range(prefix=prefix, revision=revision)
    return {kv.key.removeprefix(prefix.encode()): kv.value for kv in found}


@dataclass
class Copy:
    """A destination at one instant."""

    checkpoint: Checkpoint | None
    contents: dict[bytes, bytes]


async def copy_of(client: Client, prefix: str) -> Copy:
    """The checkpoint and the keys of a destination, read at once."""
    key, keys = op.get(f"__etcd_aio/mirror/{prefix}"), op.range(prefix=prefix)
    result = await client.txn().then(key, keys).commit()
    kv = result[key]
    found = {kv.key.removeprefix(prefix.encode()): kv.value for kv in result[keys]}
    return Copy(None if kv is None else Checkpoint.parse(kv.value), found)


async def main(source: str, destination: str, prefix: str, to_prefix: str) -> None:
    """Run a mirror until the process is killed."""
    async with Client(source) as one, Client(destination) as other:
        mirror = Mirror(one, other, prefix=prefix, to_prefix=to_prefix, max_txn_ops=SMALL_TXNS, takeover_delay=0.1)
        await mirror.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
