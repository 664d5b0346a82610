"""Reads from memory on one server: `python -m benchmarks.cache`.

local      microseconds of a `get` of a key that is there, and of a `range` of 100 of 100 000 keys
load       seconds to enter a cache of 100 000 keys of 256 B, beside a scan of the same keys; the longest turn of the
           loop meanwhile; and bytes of memory for each key, besides its key and value
current    milliseconds of `wait_current` for one caller, beside a linearizable `get`; and the probes of 10 000 callers
lag        milliseconds from the answer of a put of another client until the cache has it, at 1 000 puts a second
"""

import argparse
import asyncio
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from etcd_aio import Client, op
from etcd_aio.testing import EtcdServer

KEYS: Final = 100_000
VALUE: Final = b"x" * 256
RATE: Final = 1_000  # puts a second


async def fill(client: Client) -> None:
    """Write the keys."""
    for begin in range(0, KEYS, 100):
        puts = [op.put(f"load/{number:08}", VALUE) for number in range(begin, begin + 100)]
        await client.txn().then(*puts).commit()


def each(call: Callable[[], object], times: int) -> float:
    """Microseconds of a call; the best of five."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - began)
    return best / times * 1e6


async def longest_turn(work: Awaitable[object]) -> tuple[float, float]:
    """Seconds that something takes, and the longest turn of the loop meanwhile."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)

    ticking = asyncio.create_task(tick())
    began = time.perf_counter()
    await work
    seconds = time.perf_counter() - began
    ticking.cancel()
    return seconds, longest


async def local(client: Client) -> None:
    """Reads without an await."""
    async with client.cache(prefix="load/") as cache, client.cache(prefix="load/", decode=bytes) as decoded:
        key, raw = f"load/{KEYS // 2:08}", b"load/%08d" % (KEYS // 2)
        print(f"get, str key           {each(lambda: cache.get(key), 200_000):8.3f} us, the lambda included")
        print(f"get, bytes key         {each(lambda: cache.get(raw), 200_000):8.3f} us")
        print(f"get, decoded           {each(lambda: decoded.get(key), 200_000):8.3f} us")
        print(f"range of 100 keys      {each(lambda: cache.range(prefix='load/000500'), 2_000):8.2f} us")


async def load(client: Client, rounds: int) -> None:
    """Entering, beside a scan."""
    scans, loads, turns = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        async for page in client.scan(prefix="load/").pages():
            del page
        scans.append(time.perf_counter() - began)
        cache = client.cache(prefix="load/")
        seconds, longest = await longest_turn(cache.__aenter__())
        loads.append(seconds)
        turns.append(longest)
        await cache.aclose()
    ratio = statistics.median(mine / scan for mine, scan in zip(loads, scans, strict=True))
    print(f"scan of {KEYS} keys    {statistics.median(scans):8.3f} s")
    print(
        f"load of {KEYS} keys    {statistics.median(loads):8.3f} s; {ratio:.2f} of a scan, with a busy loop beside it"
    )
    print(f"longest turn           {statistics.median(turns) * 1e3:8.2f} ms; the worst {max(turns) * 1e3:.2f} ms")
    gc.collect()
    tracemalloc.start()
    async with client.cache(prefix="load/") as cache:
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        content = sum(len(kv.key) + len(kv.value) for kv in cache.range().values())
    tracemalloc.stop()
    print(f"memory                 {(size - content) / KEYS:8.0f} bytes for each key, besides key and value")


async def timed(call: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Milliseconds of each call, sorted."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - began) * 1e3)
    return sorted(taken)


async def current(client: Client, other: Client) -> None:
    """Waiting until a cache is current."""
    async with client.cache(prefix="current/") as cache:

        async def after_a_put() -> None:
            await cache.wait_current()

        await timed(cache.wait_current, 50)
        gets = await timed(lambda: client.get("current/a"), 1_000)
        quiet = await timed(cache.wait_current, 1_000)
        busy = []
        for number in range(500):
            await other.put("elsewhere", str(number))  # only a mark says that the cache is current
            busy += await timed(after_a_put, 1)
        busy.sort()
        for name, taken in (("get", gets), ("wait_current", quiet), ("wait_current, marks", busy)):
            print(f"{name:<22} {taken[len(taken) // 2]:8.3f} ms p50 {taken[len(taken) * 99 // 100]:8.3f} ms p99")
        before = cache.statistics().probes
        began = time.perf_counter()
        await asyncio.gather(*(cache.wait_current(timeout=60) for _ in range(10_000)))
        seconds = time.perf_counter() - began
        print(f"10 000 callers at once {seconds * 1e3:8.1f} ms, {cache.statistics().probes - before} probes")


async def lag(client: Client, other: Client, seconds: float) -> None:
    """From the answer of a put until the cache has it; negative if the event came first."""
    async with client.cache(prefix="lag/") as cache:
        arrived: dict[int, float] = {}

        async def follow() -> None:
            async for batch in cache.batches():
                now = time.perf_counter()
                for event in batch:
                    arrived[event.revision] = now

        following = asyncio.create_task(follow())
        answered: dict[int, float] = {}

        async def put(number: int) -> None:
            result = await other.put(f"lag/{number % 100}", VALUE)
            answered[result.revision] = time.perf_counter()

        began = time.perf_counter()
        puts = []
        for number in range(int(RATE * seconds)):
            puts.append(asyncio.create_task(put(number)))
            await asyncio.sleep(max(0.0, began + (number + 1) / RATE - time.perf_counter()))
        await asyncio.gather(*puts)
        await cache.wait_current()
        await asyncio.sleep(0)
        following.cancel()
        lags = sorted((arrived[revision] - answered[revision]) * 1e3 for revision in answered)
        parts = (
            f"{name} {lags[int(len(lags) * part)]:.2f}"
            for name, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
        )
        print(f"lag at {RATE} puts/s     {', '.join(parts)}, most {lags[-1]:.2f} ms")


async def main(arguments: Sequence[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Reads from memory.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the puts whose lag is measured")
    options = parser.parse_args(arguments)
    async with (
        EtcdServer(flags=["--unsafe-no-fsync"]) as server,
        Client(server.endpoint) as client,
        Client(server.endpoint) as other,
    ):
        await fill(client)
        await local(client)
        await load(client, options.rounds)
        await current(client, other)
        await lag(client, other, options.seconds)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
