"""Drives etcd_aio in an open loop: calls begin at their times, regardless of the outcome of earlier calls.

The protocol, one line of JSON each way, is also that of `../go/failover.go`. Times are seconds after `start`, which is
on the system's clock and so the same for all processes of the machine:

    driver   {"versions": {...}}                                    when it has made a few calls
    program  {"operation": "get", "start": 1.7e9, "seconds": 10, "rate": 500, "timeout": 5,
              "burst_at": 2, "burst": 0, "stall_at": 2, "stall": 0}
    driver   {"outcomes": [["ok", null, 1234], ["EtcdTimeoutError", true, 0]],     name, maybe_applied, member
              "slot": [...], "late": [...], "took": [...], "outcome": [...],       one entry for each call
              "cpu": [[0.25, 1.5], ...], "states": [[0.05, "http://...", "READY HEALTHY"], ...]}
    either   {"error": "what happened"}                             instead of a result
    program  closes stdin                                           the driver ends
"""

import argparse
import asyncio
import json
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import etcd_aio
from benchmarks import workload
from etcd_aio import Client, EtcdError

if TYPE_CHECKING:
    from etcd_aio.balancer import PolicyName

_STATES_EVERY: Final = 0.05
_CPU_EVERY: Final = 0.25
# If a call does not end within this time after its deadline, it counts as never ending.
GRACE: Final = 3.0

Outcome: TypeAlias = tuple[str, bool | None, int]
Call: TypeAlias = Callable[[int], Awaitable[int]]
"""Makes the call of this number; returns the id of the member that answered."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of the program; see the protocol."""

    operation: str
    start: float
    seconds: float
    rate: float
    timeout: float
    burst_at: float = 0.0
    burst: int = 0
    stall_at: float = 0.0
    stall: float = 0.0


@dataclass(slots=True)
class Log:
    """The result, column by column."""

    outcomes: dict[Outcome, int] = field(default_factory=dict)
    slot: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    outcome: list[int] = field(default_factory=list)
    cpu: list[tuple[float, float]] = field(default_factory=list)
    states: list[tuple[float, str, str]] = field(default_factory=list)

    def add(self, slot: float, issued: float, ended: float, outcome: Outcome) -> None:
        """Record one call."""
        self.slot.append(round(slot, 4))
        self.late.append(round(issued - slot, 4))
        self.took.append(round(ended - issued, 4))
        self.outcome.append(self.outcomes.setdefault(outcome, len(self.outcomes)))

    def result(self) -> dict[str, object]:
        """The result, for the program."""
        return {
            "outcomes": list(self.outcomes),
            "slot": self.slot,
            "late": self.late,
            "took": self.took,
            "outcome": self.outcome,
            "cpu": self.cpu,
            "states": self.states,
        }


class OpenLoop:
    """Executes one order.

    Args:
        client: the client; the states of its endpoints are recorded.
        call: makes the calls.
        order: the number of calls and their times.
    """

    def __init__(self, client: Client, call: Call, order: Order) -> None:
        self._client = client
        self._call = call
        self._order = order
        # The loop's clock does not jump, so only the start is taken from the system's clock.
        self._start = time.monotonic() + order.start - time.time()
        self._log = Log()
        self._tasks: dict[asyncio.Task[None], tuple[float, float]] = {}
        self._issued = 0

    def _now(self) -> float:
        return time.monotonic() - self._start

    async def run(self) -> Log:
        """Issue every call at its time, and wait for the last one."""
        sampler = asyncio.create_task(self._sample(), name="sampler")
        try:
            await self._issue_all()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks), timeout=self._order.timeout + GRACE)
        finally:
            sampler.cancel()
        for task, (slot, issued) in tuple(self._tasks.items()):
            task.cancel()
            self._log.add(slot, issued, self._now(), ("never ended", None, 0))
        return self._log

    async def _issue_all(self) -> None:
        order = self._order
        total = int(order.rate * order.seconds)
        burst, stall, number = order.burst, order.stall, 0
        await asyncio.sleep(max(0.0, -self._now()))
        while number < total:
            now = self._now()
            if stall and now >= order.stall_at:
                time.sleep(stall)  # noqa: ASYNC251 - this fault is a blocked loop
                stall = 0.0
            if burst and now >= order.burst_at:
                for _ in range(burst):
                    self._begin(order.burst_at)
                burst = 0
            while number < total and number / order.rate <= now:
                self._begin(number / order.rate)
                number += 1
            await asyncio.sleep(max(0.0, number / order.rate - self._now()))
        await asyncio.sleep(max(0.0, order.seconds - self._now()))

    def _begin(self, slot: float) -> None:
        issued = self._now()
        task = asyncio.create_task(self._one(slot, issued, self._issued))
        self._issued += 1
        self._tasks[task] = (slot, issued)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)

    async def _one(self, slot: float, issued: float, number: int) -> None:
        try:
            outcome: Outcome = ("ok", None, await self._call(number))
        except EtcdError as error:
            outcome = (type(error).__name__, error.maybe_applied, 0)
        except Exception as error:  # a defect, which must be in the table
            outcome = (f"defect: {type(error).__name__}", None, 0)
        self._log.add(slot, issued, self._now(), outcome)

    async def _sample(self) -> None:
        """Record the CPU time, and each change of an endpoint's state."""
        known: dict[str, str] = {}
        due = -float("inf")
        # The CPU of a client that only waits is measured, so sampling must not use CPU.
        pause = _STATES_EVERY if self._order.rate else _CPU_EVERY
        while True:
            now = round(self._now(), 3)
            if now >= due:
                due = now + _CPU_EVERY
                self._log.cpu.append((now, time.process_time()))
            for one in self._client.statistics():
                state = condition(one)
                if known.get(one.endpoint) != state:
                    known[one.endpoint] = state
                    self._log.states.append((now, one.endpoint, state))
            await asyncio.sleep(pause)


def condition(one: etcd_aio.observing.EndpointStatistics) -> str:
    """The state of an endpoint in the client, in a word or two."""
    return f"{one.state.name} {one.health.name}"


def calls_of(client: Client, prefix: str, operation: str) -> Call:
    """The calls for an operation."""

    async def get(_: int) -> int:
        found = await client.range(workload.get_key(prefix))
        if [len(kv.value) for kv in found] != [len(workload.VALUE)]:
            raise ValueError("wrong answer")
        return found.header.member_id

    async def put(number: int) -> int:
        return (await client.put(workload.put_key(prefix, number % 100), workload.VALUE)).header.member_id

    return put if operation == "put" else get


async def _serve(endpoints: str, prefix: str, policy: str, timeout: float) -> None:
    async with Client(endpoints, policy=cast("PolicyName", policy), timeout=timeout) as client:
        for _ in range(50):
            await client.put(workload.get_key(prefix), workload.VALUE)
            await client.range(workload.get_key(prefix))
        _send({"versions": {"etcd_aio": etcd_aio.__version__, "python": platform.python_version(), "policy": policy}})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = Order(**json.loads(line))
            _send((await OpenLoop(client, calls_of(client, prefix, order.operation), order).run()).result())


def _send(message: Mapping[str, object]) -> None:
    print(json.dumps(message, separators=(",", ":")), flush=True)


def main() -> None:
    """Run until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--policy", default="round_robin")
    parser.add_argument("--timeout", type=float, default=5.0)
    given = parser.parse_args()
    try:
        asyncio.run(_serve(given.endpoints, given.prefix, given.policy, given.timeout))
    except Exception as error:
        _send({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
