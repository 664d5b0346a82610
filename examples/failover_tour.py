"""Connections to a cluster are cut one after the other, and the calls continue. Prints which endpoints take them.

The connections go through proxies in this process. The members are not touched, so one member is enough.
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
    """Make thirty reads and ten writes, and print which endpoints took them."""
    before = {stats.endpoint: stats.attempts for stats in client.statistics()}
    began = time.perf_counter()
    # Reads first: a read that was in flight through a cut proxy is retried through another one. A write in flight would
    # raise an error with `maybe_applied`; ambiguous_write.py shows what to do then.
    await asyncio.gather(*(client.get(KEY) for _ in range(30)))
    for number in range(10):
        await client.put(KEY, str(number))
    print(f"{what}: 40 calls in {(time.perf_counter() - began) * 1000:.0f} ms")
    for stats in client.statistics():
        reason = f" ({stats.last_error})" if stats.last_error is not None and stats.state.name != "READY" else ""
        print(f"    {stats.endpoint}: {stats.attempts - before[stats.endpoint]:2} attempts, {stats.state.name}{reason}")


async def main() -> None:
    endpoints = Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")).endpoints
    targets = [endpoint if "://" in endpoint else f"http://{endpoint}" for endpoint in endpoints]
    targets = targets if len(targets) > 1 else targets * 3
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy(target)) for target in targets]
        client = await stack.enter_async_context(Client([proxy.endpoint for proxy in proxies]))
        await client.get(KEY)
        await calls(client, "all proxies are open")
        for proxy in proxies[:-1]:
            proxy.refuse()
            proxy.reset()
            await calls(client, f"{proxy.endpoint} is cut")
        await client.delete(KEY)


if __name__ == "__main__":
    asyncio.run(main())
