"""The key-value calls: put, get, range, scan, delete. Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379."""

import asyncio
import os
import sys

from etcd_aio import Client


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client:
        first = await client.put("example/kv/greeting", "hello")
        second = await client.put("example/kv/greeting", "good morning", prev_kv=True)
        print("replaced", second.prev_kv.text() if second.prev_kv else None, "at revision", second.revision)

        kv = await client.get("example/kv/greeting")
        assert kv is not None
        print(kv.key, "is", kv.text(), "in version", kv.version)

        then = await client.get(
            "example/kv/greeting", revision=first.revision
        )  # etcd keeps old revisions until it compacts them
        assert then is not None
        print("it was", then.text(), "at revision", first.revision)
        print("a key that does not exist is", await client.get("example/kv/nothing"))

        await asyncio.gather(*(client.put(f"example/kv/svc/{number:02}", f"host-{number}") for number in range(30)))
        found = await client.range(prefix="example/kv/svc/", limit=3, sort_order="descend")
        print("the last", len(found), "of", found.count, "services:", [kv.text() for kv in found])

        names = [kv.key async for kv in client.scan(prefix="example/kv/svc/", page_size=10)]
        print("a scan gave", len(names), "keys in pages of 10, all at one revision")

        gone = await client.delete(prefix="example/kv/")
        print("deleted", gone.deleted, "keys")


if __name__ == "__main__":
    asyncio.run(main())
