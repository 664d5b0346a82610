"""A counter that several programs increment at the same time: read, compare and swap, try again after a conflict.

The transaction writes only if the key has not changed since it was read, so no increment is lost.
Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys

from etcd_aio import Client, Key, op

COUNTER = "example/counter"


async def increase(client: Client, key: str) -> int:
    """Add 1 to the number under `key`. Returns the number of conflicts with other writers."""
    conflicts = 0
    while True:
        kv = await client.get(key)
        number, revision = (int(kv.text()), kv.mod_revision) if kv is not None else (0, 0)  # 0: the key is missing
        # If the reply is lost, this raises an error with `maybe_applied`; ambiguous_write.py shows what to do then.
        swapped = await client.txn().when(Key(key).mod_revision == revision).then(op.put(key, str(number + 1))).commit()
        if swapped:
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
