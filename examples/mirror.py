"""Mirror a prefix: stop the mirror, change and delete keys meanwhile, start it again; then move to the copy.

Endpoints of the source: arguments or $ETCD_ENDPOINTS; of the destination: $ETCD_OTHER_ENDPOINTS, or the same cluster.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from etcd_aio import Client
from etcd_aio.mirror import Mirror

SOURCE, COPY = "example/mirror/", "example/copy/"


@asynccontextmanager
async def running(mirror: Mirror) -> AsyncIterator[None]:
    """Run a mirror as long as the block lasts."""
    async with asyncio.TaskGroup() as group:  # an error of the mirror ends the block
        task = group.create_task(mirror.run(), name="mirror")
        yield
        task.cancel()


async def values(client: Client, prefix: str) -> dict[str, str]:
    return (await client.range(prefix=prefix)).to_dict(strip_prefix=prefix)


async def main() -> None:
    endpoints = sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")
    async with (
        Client(endpoints) as source,
        Client(os.environ.get("ETCD_OTHER_ENDPOINTS") or endpoints) as other,
    ):
        mirror = Mirror(source, other, prefix=SOURCE, to_prefix=COPY, checkpoint_key="example/checkpoint")
        try:
            await asyncio.gather(*(source.put(f"{SOURCE}{number:02}", "old") for number in range(99)))
            last = await source.put(f"{SOURCE}99", "old")
            async with running(mirror):
                await mirror.wait_revision(last.revision)
                print("the copy has", len(await values(other, COPY)), "keys")

            # The mirror is down. What happens now is copied by the next run, exactly from the checkpoint on.
            await source.delete(f"{SOURCE}00", range_end=f"{SOURCE}50")
            last = await source.put(f"{SOURCE}99", "new")
            async with running(mirror):
                await mirror.wait_revision(last.revision)
                counters = mirror.statistics()
                print("copied after the restart:", counters.puts - 100, "put and", counters.deletes, "deletes")

                # To move to the copy: stop all writers, write a last key, wait for it.
                last = await source.put(f"{SOURCE}moved", "")
                await mirror.wait_revision(last.revision)
            print("the copy is the source:", await values(other, COPY) == await values(source, SOURCE))
        finally:
            await source.delete(prefix=SOURCE)
            await other.delete(prefix=COPY)
            await other.delete("example/checkpoint")


if __name__ == "__main__":
    asyncio.run(main())
