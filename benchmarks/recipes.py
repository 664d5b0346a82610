"""Transactions as functions, and counters, beside Go's STM on one server: `python -m benchmarks.recipes`.

stm      increments of one key a second by `client.stm`, by so many tasks of one client; and how often the function runs
         for each
counter  the same by `Counter.add`, beside increments by Go's STM: its client has no counter

Ours and Go's have bursts in turns; the ratios are medians of the rounds.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from benchmarks.environments import GoProgram, UnavailableError, default_cache
from benchmarks.process import DriverProcess
from benchmarks.workload import Case
from etcd_aio import Client
from etcd_aio.recipes import Counter, Transaction
from etcd_aio.testing import EtcdServer

STM_WORKERS: Final = (1, 8, 64)
COUNTER_WORKERS: Final = (1, 64, 1000)
GO_WORKERS: Final = 64
"""The most of Go's program: a thousand that conflict with each other take minutes for their last calls."""


class Increments:
    """Increments of one key by transactions; counts the runs of the function."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._key = f"own/stm/{time.time_ns()}"
        self.done = 0
        self.runs = 0

    async def __call__(self) -> None:
        result = await self._client.stm(self._increment, timeout=None)
        self.done += 1
        self.runs += result.attempts

    async def _increment(self, tx: Transaction) -> None:
        kv = await tx.get(self._key)
        tx.put(self._key, str(1 + (0 if kv is None else int(kv.value))))


async def rate(call: Callable[[], Awaitable[object]], workers: int, seconds: float) -> float:
    """Calls a second of a closed loop."""
    done = 0
    began = time.perf_counter()

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < began + seconds:
            await call()
            done += 1

    await asyncio.gather(*(work() for _ in range(workers)))
    return done / (time.perf_counter() - began)


async def start_go(endpoint: str) -> DriverProcess | None:
    """The Go program; None if there is no Go."""
    try:
        command = await asyncio.to_thread(GoProgram("benchmarks/go").prepare, default_cache())
        return await DriverProcess.start([*command, "-endpoints", endpoint, "-prefix", "go/"], {})
    except UnavailableError as error:
        print(f"without Go: {error}", file=sys.stderr)
        return None


async def main(arguments: Sequence[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Transactions as functions, and counters, beside Go's STM.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst")
    options = parser.parse_args(arguments)
    async with EtcdServer(flags=["--unsafe-no-fsync"]) as server, Client(server.endpoint) as client:
        go = await start_go(server.endpoint)
        print("what     workers    per s     Go  / Go  runs each")
        try:
            for name, workers in [*(("stm", n) for n in STM_WORKERS), *(("counter", n) for n in COUNTER_WORKERS)]:
                own: list[float] = []
                other: list[float] = []
                increments, counter = Increments(client), Counter(client, f"own/counter/{workers}", timeout=None)
                for round_ in range(options.rounds + 1):
                    found = await rate(increments if name == "stm" else counter.add, workers, options.seconds)
                    go_found = 0.0
                    if go is not None and workers <= GO_WORKERS:
                        burst = await go.measure(Case("stm", "stm", workers, "stm"), options.seconds, 0)
                        go_found = burst.calls / burst.seconds
                    if round_:  # the first one makes connections
                        own.append(found)
                        other.append(go_found)
                ratio = statistics.median(a / b if b else 0.0 for a, b in zip(own, other, strict=True))
                runs = f"{increments.runs / increments.done:>10.2f}" if increments.done else ""
                print(
                    f"{name:<7}  {workers:>7}  {statistics.median(own):>7.0f}  {statistics.median(other):>5.0f}  "
                    f"{ratio:>4.2f} {runs}",
                    flush=True,
                )
        finally:
            if go is not None:
                await go.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
