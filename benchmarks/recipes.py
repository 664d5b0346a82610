"""Transactions as functions, counters and queues, beside Go's on one server: `python -m benchmarks.recipes`.

stm      increments of one key a second by `client.stm`, by so many tasks of one client; and how often the function runs
         for each
counter  the same by `Counter.add`, beside increments by Go's STM: its client has no counter
queue    an item put and one taken, by `Queue`, while so many items wait; beside Go's `Queue`
priority the same by `PriorityQueue`, beside Go's
jobs     a job claimed and completed, by a worker of a `WorkQueue`; beside two txns with one put each: Go has none

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
from etcd_aio import Client, op
from etcd_aio.recipes import Counter, PriorityQueue, Queue, Transaction, Worker, WorkQueue
from etcd_aio.testing import EtcdServer

STM_WORKERS: Final = (1, 8, 64)
COUNTER_WORKERS: Final = (1, 64, 1000)
QUEUE_LOADS: Final = ((10, 1), (10_000, 1), (10, 16), (10_000, 16))
"""Items that wait, and tasks of one client that put and take."""

GO_WORKERS: Final = 64
"""The most of Go's program: a thousand that conflict with each other take minutes for their last calls."""

QUEUES: Final = tuple((kind, waiting, workers) for kind in ("queue", "priority") for waiting, workers in QUEUE_LOADS)
JOB_WORKERS: Final = (1, 8)


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


def shown(name: str, workers: int, own: list[float], other: list[float], more: str = "") -> None:
    """Print a row: medians, and the median of the ratios."""
    ratio = statistics.median(a / b if b else 0.0 for a, b in zip(own, other, strict=True))
    rates = f"{statistics.median(own):>7.0f}  {statistics.median(other):>5.0f}"
    print(f"{name:<15}  {workers:>7}  {rates}  {ratio:>5.2f} {more}", flush=True)


async def increments_and_counters(client: Client, go: DriverProcess | None, rounds: int, seconds: float) -> None:
    """The rows of transactions and counters."""
    for name, workers in [*(("stm", n) for n in STM_WORKERS), *(("counter", n) for n in COUNTER_WORKERS)]:
        own: list[float] = []
        other: list[float] = []
        increments, counter = Increments(client), Counter(client, f"own/counter/{workers}", timeout=None)
        for round_ in range(rounds + 1):
            found = await rate(increments if name == "stm" else counter.add, workers, seconds)
            go_found = 0.0
            if go is not None and workers <= GO_WORKERS:
                burst = await go.measure(Case("stm", "stm", workers, "stm"), seconds, 0)
                go_found = burst.calls / burst.seconds
            if round_:  # the first one makes connections
                own.append(found)
                other.append(go_found)
        runs = f"{increments.runs / increments.done:>10.2f}" if increments.done else ""
        shown(name, workers, own, other, runs)


async def queues(client: Client, go: DriverProcess | None, rounds: int, seconds: float) -> None:
    """The rows of queues."""
    for kind, waiting, workers in QUEUES:
        make = Queue if kind == "queue" else PriorityQueue
        queue = make(client, f"own/{kind}/{waiting}", timeout=None)
        for each in (queue, make(client, f"go/{kind}/{waiting}", timeout=None)):
            for _ in range((waiting - await each.size()) // 10):
                await each.put_all(["item"] * 10)
        own: list[float] = []
        other: list[float] = []

        async def put_and_take(queue: Queue | PriorityQueue = queue) -> None:
            await queue.put("item")
            await queue.get()

        for round_ in range(rounds + 1):
            found = await rate(put_and_take, workers, seconds)
            go_found = 0.0
            if go is not None:
                burst = await go.measure(Case(kind, kind, workers, kind, waiting), seconds, 0)
                go_found = burst.calls / burst.seconds
            if round_:
                own.append(found)
                other.append(go_found)
        shown(f"{kind} {waiting}", workers, own, other)


async def jobs(client: Client, rounds: int, seconds: float) -> None:
    """The rows of work queues, beside two txns."""
    queue = WorkQueue(client, "own/jobs", timeout=None)

    async def two_txns() -> None:
        for _ in range(2):
            await client.do(op.txn(then=[op.put("own/txn", "item")]))

    for workers in JOB_WORKERS:
        own: list[float] = []
        other: list[float] = []
        async with queue.worker(concurrency=workers) as worker:

            async def claim_and_complete(worker: Worker = worker) -> None:
                async with await anext(worker):
                    pass

            for round_ in range(rounds + 1):
                txns = await rate(two_txns, workers, seconds)
                waiting = int(txns * seconds * 2) + 100 - await queue.size()
                for _ in range(0, waiting, 100):
                    await asyncio.gather(*(queue.put("item") for _ in range(100)))
                found = await rate(claim_and_complete, workers, seconds)
                if round_:
                    own.append(found)
                    other.append(txns)
        shown("jobs / 2 txns", workers, own, other)


async def main(arguments: Sequence[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Transactions as functions, counters and queues, beside Go's.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one burst")
    parser.add_argument("--only", choices=("stm", "queues", "jobs"), help="these rows only")
    options = parser.parse_args(arguments)
    async with EtcdServer(flags=["--unsafe-no-fsync"]) as server, Client(server.endpoint) as client:
        go = await start_go(server.endpoint)
        print("what             workers    per s     Go   / Go  runs each")
        try:
            if options.only in (None, "stm"):
                await increments_and_counters(client, go, options.rounds, options.seconds)
            if options.only in (None, "queues"):
                await queues(client, go, options.rounds, options.seconds)
            if options.only in (None, "jobs"):
                await jobs(client, options.rounds, options.seconds)
        finally:
            if go is not None:
                await go.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
