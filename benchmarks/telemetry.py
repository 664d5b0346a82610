"""CPU that observers add to a get: `python -m benchmarks.telemetry`.

Clients that differ in their observers alone make gets on one etcd, in turns: in each round each client has its burst,
and each round begins with another client. What an observer adds is the median, over the rounds, of the difference to
the client without one in the same round. The CPU is that of this process, which etcd is no part of. `none, again` is a
second client without an observer: its difference is the error of the method.

Needs the libraries of the group `contrib`.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from prometheus_client import CollectorRegistry

from benchmarks import machine
from etcd_aio import Client
from etcd_aio.contrib.otel import OtelObserver
from etcd_aio.contrib.prometheus import instrument
from etcd_aio.observing import CallObserver, CallStarted, Observer
from etcd_aio.testing import EtcdServer

CALLS: Final = 100
IN_FLIGHT: Final = 50
_NONE, _AGAIN = "none", "none, again"


class Empty(Observer):
    """Follows each call and does nothing."""

    def call_started(self, call: CallStarted) -> CallObserver:
        return CallObserver()


def traced(sampler: Sampler) -> TracerProvider:
    """A provider whose spans go to a processor that drops them."""
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(SpanProcessor())
    return provider


def observers() -> Mapping[str, Sequence[Observer]]:
    """The observers by what they are."""
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    return {
        _NONE: (),
        _AGAIN: (),
        "an observer that does nothing": (Empty(),),
        "Prometheus": (instrument(CollectorRegistry()),),
        "Prometheus, with durations": (instrument(CollectorRegistry(), handling_seconds=True),),
        "OpenTelemetry without SDK": (OtelObserver(),),
        "traces, not sampled": (OtelObserver(traced(ALWAYS_OFF)),),
        "traces, sampled": (OtelObserver(traced(ALWAYS_ON)),),
        "traces, sampled, no events": (OtelObserver(traced(ALWAYS_ON), attempt_events=False),),
        "metrics": (OtelObserver(meter_provider=meters),),
        "traces, sampled, and metrics": (OtelObserver(traced(ALWAYS_ON), meters),),
    }


async def cpu(client: Client) -> float:
    """Microseconds of CPU of a get."""
    began = time.process_time()
    for _ in range(CALLS // IN_FLIGHT):
        await asyncio.gather(*(client.get("telemetry") for _ in range(IN_FLIGHT)))
    return (time.process_time() - began) / CALLS * 1e6


async def measure(rounds: int) -> dict[str, list[float]]:
    """Microseconds of each round, by observer."""
    taken: dict[str, list[float]] = {}
    async with EtcdServer() as server, AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(Client(server.endpoint, timeout=None, observers=own))
            for name, own in observers().items()
        }
        await clients[_NONE].put("telemetry", "v" * 64)
        for client in clients.values():
            await cpu(client)  # warm
        names = list(clients)
        for number in range(rounds):
            first = number % len(names)
            for name in (*names[first:], *names[:first]):
                taken.setdefault(name, []).append(await cpu(clients[name]))
    return {name: taken[name] for name in names}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.telemetry", description="CPU that observers add")
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args(arguments)
    taken = asyncio.run(measure(given.rounds))
    base = taken[_NONE]
    print(f"{machine.cpu_model()}, {machine.cores()} cores, {machine.system()}")
    print(f"{given.rounds} rounds of {CALLS} gets, {IN_FLIGHT} in flight")
    for name, found in taken.items():
        added = statistics.median(mine - plain for mine, plain in zip(found, base, strict=True))
        print(f"{name:<32} {statistics.median(found):8.2f} us {added:+8.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
