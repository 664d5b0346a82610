"""Measures how long large ranges block the loop, and the CPU of one key-value."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final
from urllib.parse import urlsplit

from benchmarks import workload
from benchmarks.probes.probe import Numbers, main
from etcd_aio import Client, codec, methods, pb
from etcd_aio.transport import ConnectionOwner, EngineName, Target, TransportOptions, create_engine

_TICK: Final = 0.001
_TIMEOUT: Final = 120.0


async def measure(arguments: argparse.Namespace, engine: EngineName) -> Numbers:
    """Medians of the repetitions, in seconds; `longest_gap_worst` is the worst of them."""
    endpoint, large, prefix = str(arguments.endpoint), str(arguments.large), str(arguments.prefix)
    repeat, keys = int(arguments.repeat), max(workload.RANGE_SIZES)
    small = workload.range_prefix(prefix, keys)
    async with Client(endpoint, engine=engine, timeout=_TIMEOUT) as client:

        async def read(of: str) -> int:
            found = await client.range(prefix=of, serializable=True)
            return sum([len(kv.value) for kv in found])

        idle = (await _ticked(lambda: asyncio.sleep(0.2)))[1]
        await read(small)
        reads = [await _ticked(lambda: read(large)) for _ in range(repeat)]
        whole = [await _cpu(lambda: read(small)) for _ in range(repeat * 3)]
    raw = await _raw(endpoint, engine, small, repeat * 3)
    return {
        "read_seconds": median(seconds for seconds, _ in reads),
        "longest_gap": median(gap for _, gap in reads),
        "longest_gap_worst": max(gap for _, gap in reads),
        "longest_gap_idle": idle,
        "cpu_per_key": median(whole) / keys,
        "cpu_per_key_transport": median(raw) / keys,
    }


async def _ticked(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The time of the work, and the longest time without a wake-up of a task that sleeps for 1 ms."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(_TICK)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    ticker = asyncio.get_running_loop().create_task(tick())
    await asyncio.sleep(0.01)
    start = time.perf_counter()
    found = await work()
    seconds = time.perf_counter() - start
    await asyncio.sleep(_TICK * 2)  # a gap at the end of the work ends at the next tick
    ticker.cancel()
    del found  # only here: to free what was found is up to the program
    return seconds, longest


async def _cpu(work: Callable[[], Awaitable[object]]) -> float:
    start = time.process_time()
    await work()
    return time.process_time() - start


class _Owner(ConnectionOwner):
    """The owner of the raw connection, which ignores its end."""

    def on_draining(self, reason: str) -> None:
        pass

    def on_lost(self, error: BaseException | None) -> None:
        pass


async def _raw(endpoint: str, engine: EngineName, prefix: str, repeat: int) -> list[float]:
    """The CPU of the engine for the same range, without decoding."""
    parts = urlsplit(endpoint)
    target = Target(parts.hostname or "", parts.port or 0, "", parts.netloc)
    connection = await create_engine(engine, TransportOptions()).connect(target, _Owner())
    start = prefix.encode()
    request = codec.encode(pb.RangeRequest(key=start, range_end=start[:-1] + bytes([start[-1] + 1]), serializable=True))
    loop = asyncio.get_running_loop()

    async def read() -> None:
        reply = await connection.unary(methods.RANGE.path, request, (), loop.time() + _TIMEOUT)
        if len(reply) < len(workload.VALUE) * max(workload.RANGE_SIZES):
            raise RuntimeError(f"a reply of {len(reply)} bytes cannot hold the keys")

    try:
        await read()
        return [await _cpu(read) for _ in range(repeat)]
    finally:
        await connection.aclose()


if __name__ == "__main__":
    main(measure, prefix=str, large=str, repeat=int)
