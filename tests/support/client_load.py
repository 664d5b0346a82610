"""Calls, a watch and a lease on one client, while something is done to it; none may notice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from etcd_aio import Client


class Load:
    """The load of one client.

    Attributes:
        failed: the errors of calls.
        calls: how many have succeeded.
        seen: the values that the watch has seen, in order.
        written: those that were written.
        lease_is_held: whether the lease was never lost.
    """

    def __init__(self) -> None:
        self.failed: list[BaseException] = []
        self.calls = 0
        self.seen: list[int] = []
        self.written = 0
        self.lease_is_held = True

    async def until_all_is_seen(self) -> None:
        """Wait until the watch has every value that was written so far."""
        last = self.written
        async with asyncio.timeout(20):
            while not self.seen or self.seen[-1] < last:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)

    def check(self) -> None:
        """Check that nothing has failed, and that the watch has seen each value once, in order."""
        assert not self.failed
        assert self.lease_is_held
        assert self.seen == list(range(1, len(self.seen) + 1))
        assert self.calls > 0


@asynccontextmanager
async def loaded(client: Client, prefix: str, *, ttl: int = 5, pause: float = 0.01) -> AsyncIterator[Load]:
    """Write, read, watch and keep a lease alive.

    Args:
        client: the client.
        prefix: of its keys.
        ttl: of the lease.
        pause: seconds between two writes.
    """
    load = Load()

    async def call() -> None:
        while True:
            try:
                await client.put(f"{prefix}w", f"{load.written + 1}", retry="safe")
                load.written += 1
                await client.get(f"{prefix}w")
                load.calls += 2
            except Exception as error:  # whatever it is, the test shows it
                load.failed.append(error)
            await asyncio.sleep(pause)

    async with client.watch(f"{prefix}w") as watcher, client.lease(ttl) as lease:

        async def watch() -> None:
            async for event in watcher:
                load.seen.append(int(event.value))

        tasks = [asyncio.create_task(call()), asyncio.create_task(watch())]
        try:
            yield load
            await load.until_all_is_seen()
            load.lease_is_held = lease.is_held
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
