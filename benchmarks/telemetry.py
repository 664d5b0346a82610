"""CPU that observers add to a put and to a get: `python -m benchmarks.telemetry`.

Clients that differ in their observers alone make calls on one etcd, in turns: in each round each client has its burst,
and the order is drawn anew. What an observer adds is the median, over the rounds, of the difference to the client
without one in the same round, and of the ratio to it. `none, again` is a second client without an observer: its
difference is the error of the method.

By default etcd is a fake that works in this process. It uses no socket, so that the CPU of a call varies little; its
own is part of what a call without an observer takes. With `--real` it is a server, which is not counted.

Needs the libraries of the group `contrib`.
"""

import argparse
import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
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
from etcd_aio.fake import FakeEtcd
from etcd_aio.observing import AttemptEnded, CallObserver, CallOutcome, CallStarted, EndpointChange, Observer
from etcd_aio.testing import EtcdServer

CALLS: Final = 100
IN_FLIGHT: Final = 50
_NONE, _AGAIN = "none", "none, again"


class Rare(Observer):
    """Follows what is rare, and no call."""

    def endpoint_changed(self, change: EndpointChange) -> None:
        pass


class Empty(Observer):
    """Gets the start of each call, and none of its other events."""

    def call_started(self, call: CallStarted) -> CallObserver:
        return CallObserver()


class Follower(CallObserver):
    """Is told all of a call and does nothing."""

    __slots__ = ()

    def attempt_started(self, endpoint: str) -> None:
        pass

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        pass

    def ended(self, outcome: CallOutcome) -> None:
        pass


class Follows(Observer):
    """Is told all of each call and does nothing."""

    def call_started(self, call: CallStarted) -> CallObserver:
        return Follower()


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
        "an observer of what is rare": (Rare(),),
        "of calls, but not of their ends": (Empty(),),
        "of all, which does nothing": (Follows(),),
        "Prometheus": (instrument(CollectorRegistry()),),
        "Prometheus, with durations": (instrument(CollectorRegistry(), handling_seconds=True),),
        "OpenTelemetry without SDK": (OtelObserver(),),
        "traces, not sampled": (OtelObserver(traced(ALWAYS_OFF)),),
        "traces, sampled": (OtelObserver(traced(ALWAYS_ON)),),
        "traces, sampled, no events": (OtelObserver(traced(ALWAYS_ON), attempt_events=False),),
        "metrics": (OtelObserver(meter_provider=meters),),
        "traces, sampled, and metrics": (OtelObserver(traced(ALWAYS_ON), meters),),
    }


async def cpu(calls: Callable[[], Awaitable[object]]) -> float:
    """Microseconds of CPU of one call of a burst."""
    began = time.process_time()
    for _ in range(CALLS // IN_FLIGHT):
        await asyncio.gather(*(calls() for _ in range(IN_FLIGHT)))
    return (time.process_time() - began) / CALLS * 1e6


@asynccontextmanager
async def clients(*, is_real: bool) -> AsyncIterator[dict[str, Client]]:
    """The clients, by what their observers are, of one etcd."""
    async with AsyncExitStack() as stack:
        made: dict[str, Client] = {}
        if is_real:
            endpoint = (await stack.enter_async_context(EtcdServer())).endpoint
            for name, own in observers().items():
                made[name] = await stack.enter_async_context(Client(endpoint, timeout=None, observers=own))
        else:
            fake = await stack.enter_async_context(FakeEtcd())
            for name, own in observers().items():
                made[name] = await stack.enter_async_context(fake.client(timeout=None, observers=own))
        yield made


async def measure(rounds: int, *, is_real: bool) -> dict[str, dict[str, list[float]]]:
    """Microseconds of each round, by RPC and by observer."""
    taken: dict[str, dict[str, list[float]]] = {}
    order = random.Random(1)
    async with clients(is_real=is_real) as made:
        names = list(made)
        kinds: dict[str, Callable[[Client], Callable[[], Awaitable[object]]]] = {
            "put": lambda client: lambda: client.put("telemetry", "v" * 64),
            "get": lambda client: lambda: client.get("telemetry"),
        }
        for kind, calls_of in kinds.items():
            found: dict[str, list[float]] = {name: [] for name in names}
            taken[kind] = found
            for client in made.values():
                await cpu(calls_of(client))  # warm
            gc.collect()
            gc.disable()  # a collection would fall to the client that happens to have its turn
            try:
                for _ in range(rounds):
                    # One that follows a costly one finds colder caches, so the order must change.
                    for name in order.sample(names, len(names)):
                        found[name].append(await cpu(calls_of(made[name])))
            finally:
                gc.enable()
    return taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.telemetry", description="CPU that observers add")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--real", action="store_true", help="use an etcd server instead of the fake")
    given = parser.parse_args(arguments)
    taken = asyncio.run(measure(given.rounds, is_real=given.real))
    print(f"{machine.cpu_model()}, {machine.cores()} cores, {machine.system()}")
    print(f"{'etcd' if given.real else 'fake etcd'}; {given.rounds} rounds of {CALLS} calls, {IN_FLIGHT} in flight")
    for kind, by_name in taken.items():
        print(f"{kind:<36} {'CPU':>9} {'more':>10} {'ratio':>6}")
        base = by_name[_NONE]
        for name, found in by_name.items():
            pairs = list(zip(found, base, strict=True))
            added = statistics.median(mine - plain for mine, plain in pairs)
            ratio = statistics.median(mine / plain for mine, plain in pairs)
            print(f"  {name:<34} {statistics.median(found):6.1f} us {added:+7.1f} us {ratio:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
