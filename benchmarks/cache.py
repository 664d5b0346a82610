"""Reads from memory on one server, beside a Go program that keeps a prefix by hand: `python -m benchmarks.cache`.

local      microseconds of a `get` of a key that is there, and of a `range` of 100 of 100 000 keys
load       seconds to enter a cache of 100 000 keys of 256 B, beside a scan of the same keys; bytes of memory for each
           key, besides its key and value
turns      milliseconds of computation in the longest turn of the loop: while these are loaded, and while a revision
           that deletes all of them is applied; with and without the garbage collector's runs over the whole process
current    milliseconds of `wait_current` for one caller behind a write that only a mark can tell of, beside a
           linearizable `get`; and the probes of 10 000 callers
lag        milliseconds from the answer of a put of another process until the cache has it, at 1 000 puts a second;
           negative if the event came first. The Go program puts in its own process. Beside it stands how late a timer
           of a process without a client is during the same load: what the system alone adds to each turn of a loop
collector  milliseconds of a run of the garbage collector over the whole process, without a cache and with one

The Go client has no cache. `go/cache.go` is what Go programs write: one get, a watch after it, a map, sorted keys.
"""

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.environments import GoProgram, UnavailableError, default_cache
from benchmarks.workload import VALUE
from etcd_aio import Client, KeyValue, op
from etcd_aio.cache import Cache
from etcd_aio.testing import EtcdServer

KEYS: Final = 100_000
RATE: Final = 1_000  # puts a second
CALLERS: Final = 10_000
_WAITS: Final = 500
_FLAGS: Final = ("--unsafe-no-fsync", "--quota-backend-bytes=8000000000")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; None was not measured."""

    text: str
    unit: str
    ours: float
    go: float | None = None


class Go:
    """The Go program, which measures one thing after the other."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    async def measure(self, what: str, count: int = 0) -> list[float]:
        """Its figures."""
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{what} {KEYS} {count}\n".encode())
        answer = json.loads(await stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"go: {answer['error']}")
        figures: list[float] = answer["figures"]
        return figures


@asynccontextmanager
async def go_program(endpoint: str) -> AsyncIterator[Go | None]:
    """Start it; None if it cannot be built here."""
    try:
        command = await asyncio.to_thread(GoProgram("benchmarks/go").prepare, default_cache())
    except UnavailableError as error:
        print(f"without Go: {error}")
        yield None
        return
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *command, "-cache", f"-endpoints={endpoint}", stdin=pipe, stdout=pipe, limit=2**24
    )
    try:
        assert child.stdout is not None
        await child.stdout.readline()  # its versions
        yield Go(child)
    finally:
        child.kill()
        await child.wait()


async def fill(client: Client) -> None:
    """Write the keys, a hundred in a txn."""

    async def work(worker: int) -> None:
        for begin in range(worker * 100, KEYS, 800):
            puts = [op.put(f"load/{number:08}", VALUE) for number in range(begin, begin + 100)]
            await client.txn().then(*puts).commit()

    await asyncio.gather(*(work(worker) for worker in range(8)))


def each(call: Callable[[], object], times: int) -> float:
    """Microseconds of a call; the best of five."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - began)
    return best / times * 1e6


def part(sorted_figures: Sequence[float], share: float) -> float:
    """A quantile."""
    return sorted_figures[min(int(len(sorted_figures) * share), len(sorted_figures) - 1)]


async def local(client: Client, go: Go | None) -> list[Figure]:
    """Reads without an await."""
    async with client.cache(prefix="load/") as cache:
        key = f"load/{KEYS // 2:08}"
        get = each(lambda: cache.get(key), 200_000)
        found = each(lambda: cache.range(prefix=f"load/{KEYS // 200:06}"), 2_000)
        assert len(cache.range(prefix=f"load/{KEYS // 200:06}")) == 100
    theirs: list[float | None] = [None, None] if go is None else [*await go.measure("local")]
    return [
        Figure("local `get`", "µs", get, theirs[0]),
        Figure(f"local `range` of 100 of {KEYS} keys", "µs", found, theirs[1]),
    ]


@dataclass(slots=True)
class LongestTurn:
    """The longest turn of the loop, in seconds of computation of its thread."""

    whole: float = 0.0
    without_collector: float = 0.0


async def longest_turn(work: Awaitable[object]) -> LongestTurn:
    """Measure the turns of the loop while something is awaited."""
    longest = LongestTurn()
    collecting = began = 0.0

    def on_collection(phase: str, _: dict[str, int]) -> None:
        nonlocal collecting, began
        if phase == "start":
            began = time.thread_time()
        else:
            collecting += time.thread_time() - began

    async def tick() -> None:
        nonlocal collecting
        while True:
            before, collecting = time.thread_time(), 0.0
            await asyncio.sleep(0)
            taken = time.thread_time() - before
            longest.whole = max(longest.whole, taken)
            longest.without_collector = max(longest.without_collector, taken - collecting)

    gc.callbacks.append(on_collection)
    ticking = asyncio.create_task(tick())
    try:
        await work
    finally:
        ticking.cancel()
        gc.callbacks.remove(on_collection)
    return longest


async def load(client: Client, go: Go | None, rounds: int) -> list[Figure]:
    """Entering, beside a scan, in turns."""
    scans, loads, theirs = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        async for page in client.scan(prefix="load/").pages():
            del page
        scans.append(time.perf_counter() - began)
        cache = client.cache(prefix="load/")
        began = time.perf_counter()
        await cache.__aenter__()
        loads.append(time.perf_counter() - began)
        await cache.aclose()
        if go is not None:
            theirs += await go.measure("load")
    ratio = statistics.median(mine / scan for mine, scan in zip(loads, scans, strict=True))
    go_ratio = statistics.median(other / scan for other, scan in zip(theirs, scans, strict=True)) if theirs else None
    gc.collect()
    tracemalloc.start()
    async with client.cache(prefix="load/") as cache:
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        content = sum(len(kv.key) + len(kv.value) for kv in map(cache.kv, cache) if kv is not None)
    tracemalloc.stop()
    return [
        Figure(f"loading {KEYS} keys", "s", statistics.median(loads), statistics.median(theirs) if theirs else None),
        Figure("loading, divided by a scan of them", "", ratio, go_ratio),
        Figure("memory for each key, besides key and value", "B", (size - content) / KEYS),
    ]


def collection() -> float:
    """Milliseconds of a run of the garbage collector, the second of two: the first forgets new tuples."""
    gc.collect()
    began = time.thread_time()
    gc.collect()
    return (time.thread_time() - began) * 1e3


async def turns(client: Client, other: Client, rounds: int) -> list[Figure]:
    """The longest turns; the keys are gone afterwards."""

    async def delete(cache: Cache[KeyValue]) -> None:
        gone = await other.delete(prefix="load/")
        await cache.wait_revision(gone.revision, timeout=60)

    loading, deleting, without, within = [], [], [], []
    for round_ in range(rounds):
        cache = client.cache(prefix="load/")
        without.append(collection())
        loading.append(await longest_turn(cache.__aenter__()))
        within.append(collection())
        deleting.append(await longest_turn(delete(cache)))
        await cache.aclose()
        if round_ + 1 < rounds:
            await fill(other)
    figures = [
        Figure("a full garbage collection, without a cache", "ms", min(without)),
        Figure(f"a full garbage collection, with a cache of {KEYS} keys", "ms", min(within)),
    ]
    for what, found in ((f"loading {KEYS} keys", loading), (f"a revision of {KEYS} deletes", deleting)):
        whole = statistics.median(turn.whole for turn in found) * 1e3
        alone = statistics.median(turn.without_collector for turn in found) * 1e3
        figures.append(Figure(f"longest turn of the loop, {what}", "ms", whole))
        figures.append(Figure("the same without the garbage collector", "ms", alone))
    return figures


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of a call."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1e3


async def current(client: Client, other: Client, go: Go | None) -> list[Figure]:
    """Waiting until a cache is current."""
    async with client.cache(prefix="current/") as cache:
        gets, waits, quiet = [], [], []
        for number in range(_WAITS):
            gets.append(await timed(lambda: client.get("current/a")))
            await other.put("elsewhere", str(number))  # only a mark says that the cache is current
            waits.append(await timed(cache.wait_current))
            quiet.append(await timed(cache.wait_current))
        before = cache.statistics().probes
        began = time.perf_counter()
        await asyncio.gather(*(cache.wait_current(timeout=60) for _ in range(CALLERS)))
        seconds = time.perf_counter() - began
        probes = cache.statistics().probes - before
    theirs = sorted([] if go is None else await go.measure("current", _WAITS))
    for found in (gets, waits, quiet):
        found.sort()
    return [
        Figure("a linearizable `get`, p50", "ms", part(gets, 0.5)),
        Figure(
            "`wait_current` after a write elsewhere, p50", "ms", part(waits, 0.5), part(theirs, 0.5) if go else None
        ),
        Figure("the same, p99", "ms", part(waits, 0.99), part(theirs, 0.99) if go else None),
        Figure("`wait_current` while nothing is written, p50", "ms", part(quiet, 0.5)),
        Figure(f"{CALLERS} callers at once", "ms", seconds * 1e3),
        Figure("their probes", "", probes),
    ]


async def write(endpoint: str, count: int) -> None:
    """Put at the rate, whatever the answers take; prints the instant of each answer by revision. A process of its own.

    The clock is that of the machine: the reader's process has the same.
    """
    answered: dict[int, float] = {}
    pending: set[asyncio.Task[None]] = set()
    async with Client(endpoint) as client:

        async def put(number: int) -> None:
            result = await client.put(f"lag/{number % 100}", VALUE)
            answered[result.revision] = time.monotonic()

        began = time.monotonic()
        for number in range(count):
            task = asyncio.create_task(put(number))
            pending.add(task)
            task.add_done_callback(pending.discard)
            await asyncio.sleep(max(0.0, began + (number + 1) / RATE - time.monotonic()))
        await asyncio.gather(*pending)
    print(json.dumps(answered))


async def tick(seconds: float) -> None:
    """Print by how many milliseconds a timer of 2 ms is late. A process of its own."""
    late, end = [], time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        await asyncio.sleep(0.002)
        late.append((time.monotonic() - began - 0.002) * 1e3)
    print(json.dumps(sorted(late)))


async def run_beside(*options: str) -> bytes:
    """Run a part of this program in a process of its own. Returns what it prints."""
    command = (sys.executable, "-m", "benchmarks.cache", *options)
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, limit=2**24)
    answer, _ = await child.communicate()
    return answer


async def lag(client: Client, go: Go | None, endpoint: str, seconds: float) -> list[Figure]:
    """From the answer of a put until the cache has it."""
    count = int(RATE * seconds)
    async with client.cache(prefix="lag/") as cache:
        arrived: dict[int, float] = {}

        async def follow() -> None:
            async for batch in cache.batches():
                now = time.monotonic()
                for event in batch:
                    arrived[event.revision] = now

        following = asyncio.create_task(follow())
        gc.collect()
        answer = await run_beside("--write", endpoint, "--seconds", str(seconds))
        answered = {int(revision): instant for revision, instant in json.loads(answer).items()}
        while len(arrived) < len(answered):  # noqa: ASYNC110 - the follower does not tell
            await asyncio.sleep(0.01)
        following.cancel()
    lags = sorted((arrived[revision] - answered[revision]) * 1e3 for revision in answered)
    writing = asyncio.create_task(run_beside("--write", endpoint, "--seconds", str(seconds)))
    late = json.loads(await run_beside("--tick", "--seconds", str(seconds)))
    await writing
    theirs = sorted([] if go is None else await go.measure("lag", count))
    quantiles = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("most", 1.0))
    return [
        *(
            Figure(f"lag at {RATE} puts/s, {name}", "ms", part(lags, share), part(theirs, share) if go else None)
            for name, share in quantiles
        ),
        *(Figure(f"a timer beside these puts, late by, {name}", "ms", part(late, share)) for name, share in quantiles),
    ]


def show(figures: Sequence[Figure]) -> None:
    """Print the table."""
    print(f"{'':<56} {'etcd_aio':>10} {'Go, by hand':>12}")
    for figure in figures:
        go = "" if figure.go is None else f"{figure.go:12.3f}"
        print(f"{figure.text:<56} {figure.ours:>10.3f} {go:>12} {figure.unit}")


async def main(arguments: Sequence[str]) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Reads from memory.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the puts whose lag is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--write", metavar="ENDPOINT", help="only put: the other process of `lag`")
    parser.add_argument("--tick", action="store_true", help="only watch a timer: a third process of `lag`")
    options = parser.parse_args(arguments)
    if options.write is not None:
        await write(options.write, int(RATE * options.seconds))
        return
    if options.tick:
        await tick(options.seconds)
        return
    async with (
        EtcdServer(flags=_FLAGS) as server,
        go_program(server.endpoint) as go,
        Client(server.endpoint) as client,
        Client(server.endpoint) as other,
    ):
        await fill(client)
        figures = [
            *await local(client, go),
            *await load(client, go, options.rounds),
            *await current(client, other, go),
            *await lag(client, go, server.endpoint, options.seconds),
            *await turns(client, other, options.rounds),
        ]
        version = (await client.maintenance.status(server.endpoint)).version
    show(figures)
    if options.json is not None:
        found = {
            "setting": {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "cpu": machine.cpu_model(),
                "cores": machine.cores(),
                "system": machine.system(),
                "server": version,
                "rounds": options.rounds,
            },
            "figures": [
                {"text": figure.text, "unit": figure.unit, "etcd_aio": round(figure.ours, 4), "go": figure.go}
                for figure in figures
            ],
        }
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
