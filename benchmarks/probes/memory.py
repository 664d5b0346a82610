"""Measures the memory of a connected client and of a call in flight, with a peer that never answers."""

import argparse
import asyncio
import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.probes.probe import Numbers, main
from etcd_aio import Client
from etcd_aio.transport import EngineName

CLIENTS: Final = 200
CALLS: Final = 5000
_TIMEOUT: Final = 60.0


async def measure(arguments: argparse.Namespace, engine: EngineName) -> Numbers:
    """Measure bytes per item, also of a bare task that waits for a future, because a task awaits each call."""
    used = _USED[arguments.kind]
    endpoint = str(arguments.endpoint)
    async with Client(endpoint, engine=engine) as client:
        # The first client and its first calls import, compile and cache what later ones share.
        await client.wait_ready(_TIMEOUT)
        await _end(await _calls(client, 10))
    if arguments.kind == "heap":
        tracemalloc.start()
    loop = asyncio.get_running_loop()

    start = used()
    clients = [Client(endpoint, engine=engine) for _ in range(CLIENTS)]
    for client in clients:
        await client.connect()
        await client.wait_ready(_TIMEOUT)
    connected = used()
    calls = await _calls(clients[0], CALLS)
    in_flight = used()
    bare: list[asyncio.Task[object]] = [loop.create_task(_wait(loop.create_future())) for _ in range(CALLS)]
    await asyncio.sleep(0)
    waiting = used()

    await _end(bare)
    await _end(calls)
    for client in clients:
        await client.aclose()
    return {
        "client": (connected - start) / CLIENTS,
        "call": (in_flight - connected) / CALLS,
        "bare_task": (waiting - in_flight) / CALLS,
    }


async def _calls(client: Client, count: int) -> list[asyncio.Task[object]]:
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[object]] = [
        loop.create_task(client.get("key", serializable=True, timeout=_TIMEOUT)) for _ in range(count)
    ]
    while client.statistics()[0].in_flight < count:
        if any(task.done() for task in tasks):
            raise RuntimeError("a call has ended, where none can")
        await asyncio.sleep(0.01)
    return tasks


async def _wait(future: asyncio.Future[object]) -> object:
    return await future


async def _end(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _heap() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


_USED: Final[dict[str, Callable[[], int]]] = {"rss": _resident, "heap": _heap}


if __name__ == "__main__":
    main(measure, kind=str)
