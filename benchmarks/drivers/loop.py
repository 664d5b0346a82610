"""The measured loop, and the line protocol around it.

This module imports only the standard library, because it runs in every environment.

The protocol, one line each way:

    driver   {"versions": {"aetcd": "1.0.0"}}                    once, when it is connected
    program  get 1 64 1.0 0                                      operation, keys, in flight, seconds, first revision
    driver   {"calls": 16500, "seconds": 1.002, "cpu": 0.97}     cpu: user + system seconds of this process
    either   {"error": "what happened"}                          instead of a result
    program  closes stdin                                        the driver ends
"""

import argparse
import asyncio
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from benchmarks import workload

Call: TypeAlias = Callable[[], Awaitable[int]]
"""One call, ready to be made again and again; returns how many bytes of values it has read."""


class Driver(Protocol):
    """A connected client. It prepares what it can outside of the measured time."""

    def get(self, key: str) -> Call: ...

    def put(self, key: str, value: bytes) -> Call: ...

    def range(self, prefix: str) -> Call: ...

    def watch(self, prefix: str, revision: int, events: int) -> Call: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line of a driver."""

    endpoints: Sequence[str]
    engine: str | None

    @property
    def target(self) -> tuple[str, int]:
        """The host and the port of the first endpoint, for clients that accept only one."""
        host, _, port = self.endpoints[0].removeprefix("http://").rpartition(":")
        return host, int(port)


_D = TypeVar("_D")
Connect: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[_D]]
Obey: TypeAlias = Callable[[_D, str, str], Awaitable[dict[str, float]]]
"""Takes a driver, the prefix of every key and an order; returns the burst."""


class WrongAnswerError(Exception):
    """A call did not return what is stored."""


async def obey_calls(driver: Driver, prefix: str, line: str) -> dict[str, float]:
    """Run a burst of calls."""
    operation, keys, in_flight, seconds, revision = line.split()
    calls, expected = _calls(driver, prefix, operation, int(keys), int(in_flight), int(revision))
    burst = await measure(calls, expected, float(seconds))
    if operation == "watch":
        burst["calls"] *= int(keys)  # a watch counts events
    return burst


def main(connect: Connect[Driver], *packages: str, facts: Mapping[str, str] | None = None) -> None:
    """Run a driver of single calls until stdin ends; see `run`."""
    run(connect, obey_calls, *packages, facts=facts)


def run(connect: Connect[_D], obey: Obey[_D], *packages: str, facts: Mapping[str, str] | None = None) -> None:
    """Run one driver until stdin ends.

    Args:
        connect: opens the client and returns its driver.
        obey: carries out an order.
        packages: the distributions whose versions are reported.
        facts: other facts for the report.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--engine")
    parser.add_argument("--uvloop", action="store_true")
    arguments = parser.parse_args()
    settings = Settings(arguments.endpoints.split(","), arguments.engine)
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
        if arguments.uvloop:
            import uvloop

            factory = uvloop.new_event_loop
            packages = (*packages, "uvloop")
        versions = dict(facts or {})
        versions.update((name, importlib.metadata.version(name)) for name in packages)
        versions["python"] = platform.python_version()
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_serve(connect, settings, arguments.prefix, versions, obey))
    except Exception as error:
        _send({"error": _text_of(error)})
        raise


async def _serve(
    connect: Connect[_D], settings: Settings, prefix: str, versions: dict[str, str], obey: Obey[_D]
) -> None:
    async with connect(settings) as driver:
        _send({"versions": versions})
        # A thread waits for the next line, so that the loop can answer the pings of the server.
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                _send(await obey(driver, prefix, line))
            except Exception as error:
                _send({"error": _text_of(error)})


async def measure(calls: Sequence[Call], expected: int, seconds: float) -> dict[str, float]:
    """Repeat each call in a worker of its own, for some seconds."""
    cpu, start = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(_work(call, expected, start + seconds)) for call in calls]
    # The last calls end after the given time. They count, and so does their time.
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"calls": sum(worker.result() for worker in workers), "seconds": elapsed, "cpu": cpu}


def _calls(
    driver: Driver, prefix: str, operation: str, keys: int, in_flight: int, revision: int
) -> tuple[list[Call], int]:
    """One call per worker, and the number of bytes of values that each reply must have."""
    size = len(workload.VALUE)
    match operation:
        case "get":
            return [driver.get(workload.get_key(prefix)) for _ in range(in_flight)], size
        case "put":
            names = (workload.put_key(prefix, worker) for worker in range(in_flight))
            return [driver.put(name, workload.VALUE) for name in names], 0
        case "range":
            return [driver.range(workload.range_prefix(prefix, keys)) for _ in range(in_flight)], size * keys
        case "watch":
            return [driver.watch(workload.watch_prefix(prefix), revision, keys) for _ in range(in_flight)], size * keys
        case _:
            raise ValueError(f"no such operation: {operation}")


async def _work(call: Call, expected: int, until: float) -> int:
    done = 0
    now = time.perf_counter
    while now() < until:
        read = await call()
        if read != expected:
            raise WrongAnswerError(f"{read} bytes of values instead of {expected}")
        done += 1
    return done


def _send(message: Mapping[str, object]) -> None:
    print(json.dumps(message), flush=True)


def _text_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
