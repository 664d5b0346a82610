"""Roads to a cluster are cut one after the other, and the calls go on. Who answers, and what the client knows about it.

The roads are proxies in this process: nothing is done to the members, so one member will do as well as three.
Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack

from etcd_aio import Client
from etcd_aio.testing import FaultProxy

KEY = "example/tour"


async def calls(client: Client, what: str) -> None:
    """Thirty reads, ten writes, and where they went."""
    before = {one.endpoint: one.attempts for one in client.statistics()}
    began = time.perf_counter()
    # Reads first: one that was on the cut road is repeated on another. A write there may have been applied, so it would
    # raise an error with `maybe_applied`; ambiguous_write.py shows what to do about it.
    await asyncio.gather(*(client.get(KEY) for _ in range(30)))
    for number in range(10):
        await client.put(KEY, str(number))
    print(f"{what}: 40 calls in {(time.perf_counter() - began) * 1000:.0f} ms")
    for one in client.statistics():
        reason = f" ({one.last_error})" if one.last_error is not None and one.state.name != "READY" else ""
        print(f"    {one.endpoint}: {one.attempts - before[one.endpoint]:2} attempts, {one.state.name}{reason}")


async def main() -> None:
    given = Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")).endpoints
    targets = [one if "://" in one else f"http://{one}" for one in given]
    async with AsyncExitStack() as stack:
        roads = [await stack.enter_async_context(FaultProxy(url)) for url in (targets if targets[1:] else targets * 3)]
        client = await stack.enter_async_context(Client([road.endpoint for road in roads]))
        await client.get(KEY)
        await calls(client, "all roads are open")
        for road in roads[:-1]:
            road.refuse()
            road.reset()
            await calls(client, f"{road.endpoint} is cut")
        await client.delete(KEY)


if __name__ == "__main__":
    asyncio.run(main())
