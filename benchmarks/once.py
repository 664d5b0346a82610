"""Exactly-once puts beside txns with one put, on one server, in turns: `python -m benchmarks.once`.

The ratio is what a slot costs: one more condition, one more put, and the client's own work. CPU is that of this process
for one write; the rest of the time is the server's.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from etcd_aio import Client, op
from etcd_aio.testing import EtcdServer

VALUE: Final = b"x" * 256
WORKERS: Final = (1, 64)


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst: writes in a second, and microseconds of CPU of this process for each."""

    rate: float
    cpu: float


async def burst(write: Callable[[int], Awaitable[object]], workers: int, seconds: float) -> Burst:
    """Write in a closed loop."""
    written = 0
    end = time.perf_counter() + seconds

    async def work(worker: int) -> None:
        nonlocal written
        while time.perf_counter() < end:
            await write(worker)
            written += 1

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(worker) for worker in range(workers)))
    return Burst(written / (time.perf_counter() - began), (time.process_time() - cpu) / written * 1e6)


async def main(arguments: Sequence[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Exactly-once puts beside txns with one put.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst")
    options = parser.parse_args(arguments)
    async with (
        EtcdServer(flags=["--unsafe-no-fsync"]) as server,
        Client(server.endpoint) as client,
        client.exactly_once() as once,
    ):
        kinds: dict[str, Callable[[int], Awaitable[object]]] = {
            "put": lambda worker: client.put(f"p/{worker}", VALUE),
            "txn": lambda worker: client.txn().then(op.put(f"t/{worker}", VALUE)).commit(),
            "once": lambda worker: once.put(f"o/{worker}", VALUE),
        }
        print("in flight    put/s    txn/s   once/s  once/txn  CPU: txn  once")
        for workers in WORKERS:
            bursts: dict[str, list[Burst]] = {name: [] for name in kinds}
            for round_ in range(options.rounds + 1):
                for name, write in kinds.items():
                    result = await burst(write, workers, options.seconds)
                    if round_:  # the first one makes connections and slots
                        bursts[name].append(result)
            rates = {name: statistics.median(one.rate for one in found) for name, found in bursts.items()}
            cpu = {name: statistics.median(one.cpu for one in found) for name, found in bursts.items()}
            pairs = zip(bursts["once"], bursts["txn"], strict=True)
            ratio = statistics.median(mine.rate / other.rate for mine, other in pairs)
            print(
                f"{workers:>9}  {rates['put']:>7.0f}  {rates['txn']:>7.0f}  {rates['once']:>7.0f}  {ratio:>8.2f}  "
                f"{cpu['txn']:>10.0f}  {cpu['once']:>5.0f}"
            )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
