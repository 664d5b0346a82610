"""Drives etcd_aio.sync: as many threads as calls in flight, which share one client."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import etcd_aio
from benchmarks import workload
from benchmarks.drivers.loop import Settings, WrongAnswerError, run
from etcd_aio.sync import Client

Call: TypeAlias = Callable[[], int]
"""One call, ready to be made again and again; returns how many bytes of values it has read."""


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[Client]:
    client = Client(settings.endpoints)
    try:
        await asyncio.to_thread(client.ping)
        yield client
    finally:
        await asyncio.to_thread(client.close)


async def obey(client: Client, prefix: str, line: str) -> dict[str, float]:
    """Run a burst of calls."""
    operation, keys, in_flight, seconds, revision = line.split()
    calls, expected = _calls(client, prefix, operation, int(keys), int(in_flight), int(revision))
    burst = await asyncio.to_thread(_measure, calls, expected, float(seconds))
    if operation == "watch":
        burst["calls"] *= int(keys)  # a watch counts events
    return burst


def _calls(
    client: Client, prefix: str, operation: str, keys: int, in_flight: int, revision: int
) -> tuple[list[Call], int]:
    size = len(workload.VALUE)
    match operation:
        case "get":
            return [_get(client, workload.get_key(prefix))] * in_flight, size
        case "put":
            return [_put(client, workload.put_key(prefix, worker)) for worker in range(in_flight)], 0
        case "range":
            return [_range(client, workload.range_prefix(prefix, keys))] * in_flight, size * keys
        case "watch":
            return [_watch(client, workload.watch_prefix(prefix), revision, keys)] * in_flight, size * keys
        case _:
            raise ValueError(f"no such operation: {operation}")


def _get(client: Client, key: str) -> Call:
    def call() -> int:
        found = client.get(key, serializable=True)
        return 0 if found is None else len(found.value)

    return call


def _put(client: Client, key: str) -> Call:
    def call() -> int:
        client.put(key, workload.VALUE)
        return 0

    return call


def _range(client: Client, prefix: str) -> Call:
    return lambda: sum([len(kv.value) for kv in client.range(prefix=prefix, serializable=True)])


def _watch(client: Client, prefix: str, revision: int, events: int) -> Call:
    def call() -> int:
        read, left = 0, events
        # Bounded, in case the server has ended.
        with client.watch(prefix=prefix, start_revision=revision, max_outage=10) as watcher:
            for event in watcher:
                read += len(event.value)
                left -= 1
                if not left:
                    break
        return read

    return call


def _measure(calls: list[Call], expected: int, seconds: float) -> dict[str, float]:
    """Repeat each call in a thread of its own, for some seconds."""
    done: list[int] = []
    errors: list[BaseException] = []

    def work(call: Call) -> None:
        count = 0
        try:
            while time.perf_counter() < until:
                read = call()
                if read != expected:
                    raise WrongAnswerError(f"{read} bytes of values instead of {expected}")
                count += 1
        except BaseException as error:
            errors.append(error)
        done.append(count)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    cpu, start = time.process_time(), time.perf_counter()
    until = start + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"calls": sum(done), "seconds": elapsed, "cpu": cpu}


if __name__ == "__main__":
    run(connect, obey, "grpclib", facts={"etcd_aio": etcd_aio.__version__})
