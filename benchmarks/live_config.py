"""From a put to the handler of a `LiveConfig`, beside a bare watch: `python -m benchmarks.live_config`.

One etcd, a client that puts, and a client that has a watch or a `LiveConfig` on the same keys, in turns. A put is sent
when the one before has arrived. What is counted is the time from before the put until the consumer has the event, or
the new settings; that until the put is answered is part of it, and shown too.

The settings are a dataclass of so many fields, each with its key. All of them are read again for each change, so their
number counts.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, make_dataclass
from typing import Any, Final

from benchmarks import machine
from etcd_aio import Client
from etcd_aio.contrib.config import LiveConfig
from etcd_aio.testing import EtcdServer

PREFIX: Final = "app/"
PUTS: Final = 50  # of a round
FIELDS: Final = (10, 100, 1000)

Next = Callable[[], Awaitable[object]]


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Next]:
    """A bare watch."""
    async with client.watch(prefix=PREFIX) as watcher:
        events = aiter(watcher)
        yield lambda: anext(events)


@asynccontextmanager
async def configured(client: Client, model: type[Any]) -> AsyncIterator[Next]:
    """A configuration, whose changes are followed."""
    async with LiveConfig(client, model, prefix=PREFIX) as config:
        changes = config.changes()
        yield lambda: anext(changes)


async def round_of(writer: Client, following: Next, number: int) -> list[tuple[float, float]]:
    """Milliseconds of each put: until it was answered, and until it has arrived."""
    arrived = 0.0

    async def arrive() -> None:
        nonlocal arrived
        await following()
        arrived = time.perf_counter()

    found: list[tuple[float, float]] = []
    for put in range(PUTS):
        arriving = asyncio.create_task(arrive())
        await asyncio.sleep(0.002)  # the consumer waits, and the loop has nothing else to do
        began = time.perf_counter()
        await writer.put(f"{PREFIX}field_0", f"{number * PUTS + put}")
        answered = time.perf_counter()
        await arriving
        found.append(((answered - began) * 1e3, (arrived - began) * 1e3))
    return found


async def measure(rounds: int, fields: int) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds by what follows."""
    model = make_dataclass("Settings", [(f"field_{number}", int, field(default=0)) for number in range(fields)])
    taken: dict[str, list[tuple[float, float]]] = {"watch": [], "LiveConfig": []}
    async with EtcdServer() as server, AsyncExitStack() as stack:
        writer = await stack.enter_async_context(Client(server.endpoint))
        client = await stack.enter_async_context(Client(server.endpoint))
        for number in range(fields):
            await writer.put(f"{PREFIX}field_{number}", "1")
        for number in range(rounds + 1):
            async with watching(client) as following:
                watched = await round_of(writer, following, 2 * number)
            async with configured(client, model) as following:
                read = await round_of(writer, following, 2 * number + 1)
            if number:  # the first one warms
                taken["watch"] += watched
                taken["LiveConfig"] += read
    return taken


def percentile(values: Sequence[float], percent: int) -> float:
    """The percentile of at least two values."""
    return statistics.quantiles(values, n=100)[percent - 1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_config", description="latency of LiveConfig")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args(arguments)
    print(f"{machine.cpu_model()}, {machine.cores()} cores, {machine.system()}")
    print(f"{given.rounds} rounds of {PUTS} puts; milliseconds from before the put")
    print(f"{'fields':>6} {'':<10} {'answered p50':>12} {'arrived p50':>12} {'p99':>8} {'ratio':>6}")
    for fields in FIELDS:
        taken = asyncio.run(measure(given.rounds, fields))
        base = percentile([arrived for _, arrived in taken["watch"]], 50)
        for name, found in taken.items():
            answered, arrived = [one for one, _ in found], [one for _, one in found]
            middle = percentile(arrived, 50)
            print(
                f"{fields:>6} {name:<10} {percentile(answered, 50):>12.2f} {middle:>12.2f} "
                f"{percentile(arrived, 99):>8.2f} {middle / base:>6.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
