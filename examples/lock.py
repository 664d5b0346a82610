"""A lock around work that only one process may do at a time. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client, LockTimeoutError

LOCK = "example/lock"
COUNTER = "example/lock-counter"


async def work(client: Client, name: str) -> None:
    """Count to ten together with the others: read and write the counter under the lock."""
    for _ in range(10):
        async with client.lock(LOCK, ttl=10, value=name) as lock:  # if it is lost, the block is cancelled
            kv = await client.get(COUNTER)
            count = 1 if kv is None else int(kv.text()) + 1
            # Applied only while this lock is held: a process that was stopped here cannot overwrite a newer value.
            await lock.fenced.put(COUNTER, str(count))


async def main() -> None:
    endpoints = sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")
    async with Client(endpoints) as first, Client(endpoints) as second, asyncio.timeout(30):
        await asyncio.gather(work(first, "one"), work(second, "two"), work(first, "three"))
        kv = await first.get(COUNTER)
        print("the counter is", kv.text() if kv else None)

        async with first.lock(LOCK, value="one") as lock:
            if not await second.lock(LOCK).try_acquire():
                (holder,) = await lock.contenders()
                print("the lock is taken by", holder.value.decode())
            try:
                async with second.lock(LOCK, timeout=0.5):
                    print("never reached")
            except LockTimeoutError:
                print("it was not free within half a second")
            await lock.fenced.delete(COUNTER)


if __name__ == "__main__":
    asyncio.run(main())
