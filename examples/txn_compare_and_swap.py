"""A counter that many increase at once, and that never loses a step: read, compare, swap, try again on conflict.

The txn writes only if nobody changed the key since it was read.
Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys

from etcd_aio import Client, Key, op

COUNTER = "example/counter"


async def increase(client: Client, key: str) -> int:
    """Add one to the number under `key`; how many tries were lost to others."""
    conflicts = 0
    while True:
        kv = await client.get(key)
        number, revision = (int(kv.text()), kv.mod_revision) if kv is not None else (0, 0)  # 0: there is no such key
        # A lost answer raises an error with `maybe_applied`; ambiguous_write.py shows what to do about it.
        won = await client.txn().when(Key(key).mod_revision == revision).then(op.put(key, str(number + 1))).commit()
        if won:
            return conflicts
        conflicts += 1


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client:
        await client.delete(COUNTER)

        async def worker() -> int:
            return sum([await increase(client, COUNTER) for _ in range(10)])

        conflicts = await asyncio.gather(*(worker() for _ in range(5)))
        kv = await client.get(COUNTER)
        assert kv is not None
        print("5 workers added 10 each: the counter is", kv.text(), "after", sum(conflicts), "conflicts")
        assert kv.text() == "50"
        await client.delete(COUNTER)


if __name__ == "__main__":
    asyncio.run(main())
