"""Calls in a second through a whole client on a fake etcd, and the time to start both: `python -m benchmarks.fake`.

The client, its codec and the fake all run in this process, and no socket is used. The best of several rounds is
shown, in time of the processor: what else the machine does counts little.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd

_ROUNDS: Final = 20
_CALLS: Final = 2_000  # of a round
_IN_FLIGHT: Final = (1, 16, 64)
_STARTS: Final = 50


async def calls_per_second(call: Callable[[Client, int], Awaitable[object]], in_flight: int) -> float:
    """The best rate of calls of which so many are always under way."""
    async with FakeEtcd() as fake, fake.client() as client:

        async def worker(numbers: range) -> None:
            for number in numbers:
                await call(client, number % 100)

        best = 0.0
        for _ in range(_ROUNDS):
            begun = time.process_time()
            await asyncio.gather(*(worker(range(_CALLS // in_flight)) for _ in range(in_flight)))
            best = max(best, _CALLS // in_flight * in_flight / (time.process_time() - begun))
    return best


async def seconds_to_start() -> float:
    """The least time from nothing to the first answer, and back to nothing."""
    best = float("inf")
    for _ in range(_STARTS):
        begun = time.process_time()
        async with FakeEtcd() as fake, fake.client() as client:
            await client.put("a", "1")
        best = min(best, time.process_time() - begun)
    return best


async def main() -> None:
    """Print the figures."""
    calls: dict[str, Callable[[Client, int], Awaitable[object]]] = {
        "put": lambda client, number: client.put(f"key/{number}", "a value of 24 characters"),
        "get": lambda client, number: client.get(f"key/{number}"),
    }
    for name, call in calls.items():
        rates = [f"{await calls_per_second(call, in_flight):7.0f} ({in_flight} at once)" for in_flight in _IN_FLIGHT]
        print(f"{name}s in a second: {', '.join(rates)}")
    print(f"a fake, a client, a put and the end of both: {await seconds_to_start() * 1e3:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main())
