"""Copy a prefix: read one snapshot, then apply every later change. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client

PREFIX = "example/follow/"
END = f"{PREFIX}~end".encode()


async def follow(client: Client, copy: dict[bytes, str]) -> int:
    """Keep `copy` up to date until the key END is written. Returns the number of changes."""
    changes = 0
    # Enter the watch before the scan, so that no change is missed. If the client is disconnected for longer than etcd
    # keeps its history, "resync" delivers the difference.
    async with client.watch(prefix=PREFIX, on_compaction="resync") as watcher:
        scan = client.scan(prefix=PREFIX)
        async for kv in scan:  # any number of keys, all at one revision
            copy[kv.key] = kv.text()
        print("the snapshot is of revision", scan.revision)
        async for batch in watcher.batches():  # whole revisions: never half of a transaction
            for event in batch:
                if event.revision <= scan.revision:
                    continue  # already in the snapshot
                changes += 1
                if event.is_put:
                    copy[event.key] = event.kv.text()
                else:
                    copy.pop(event.key, None)
            if END in copy:
                break
    return changes


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client:
        await asyncio.gather(*(client.put(f"{PREFIX}{number:03}", "old") for number in range(100)))
        copy: dict[bytes, str] = {}
        follower = asyncio.create_task(follow(client, copy), name="follower")  # awaited below, so errors are raised
        try:
            for number in range(0, 100, 2):
                await client.put(f"{PREFIX}{number:03}", "new")
                await client.delete(f"{PREFIX}{number + 1:03}")
            await client.put(END, "")
            print("followed", await asyncio.wait_for(follower, 30), "changes")
            assert copy == {kv.key: kv.text() for kv in await client.range(prefix=PREFIX)}
            print("the copy is the store:", len(copy), "keys")
        finally:
            follower.cancel()
            await client.delete(prefix=PREFIX)


if __name__ == "__main__":
    asyncio.run(main())
