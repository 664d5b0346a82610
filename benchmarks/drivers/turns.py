"""Drives the locks and elections of etcd_aio: how often they are taken, and handed on from one to the next.

go/turns.go does the same with the official Go client. The protocol is that of `loop.py`, with these operations:

    lock 1 8 1.0 0        lock and unlock, without contention: 8 workers, each with a name of its own
    own-lock 1 8 1.0 0    the same; Go has a new session for each, where `lock` has one for all
    handoff 1 8 1.0 0     8 contenders for one lock
    change 1 8 1.0 0      8 candidates of one election

The time of handoffs and changes begins when all contenders stand in line behind a holder, and the process is idle; then
it lets go. After its turn each contender stands in line again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import etcd_aio
from benchmarks.drivers.loop import Settings, measure, run
from etcd_aio import Client

_TTL = 60
_LOOK_EVERY = 0.002
# A process that waits uses less than a fifth of one core.
_IDLE_AFTER = 0.05
_IDLE_CPU = _IDLE_AFTER / 5


@dataclass(frozen=True, slots=True)
class Turn:
    """What one contender does: take it, and give it back."""

    take: Callable[[], Awaitable[object]]
    give: Callable[[], Awaitable[object]]


Contend: TypeAlias = Callable[[str], Turn]


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[Client]:
    async with Client(settings.endpoints) as client:
        yield client


async def obey(client: Client, prefix: str, line: str) -> dict[str, float]:
    """Run one burst."""
    operation, _, contenders, seconds, _ = line.split()
    name = f"{prefix}{operation}/{time.time_ns()}"
    match operation:
        case "lock" | "own-lock":
            workers = [_cycle(_lock(client, f"{name}/{worker}")) for worker in range(int(contenders))]
            return await measure(workers, 0, float(seconds))
        case "handoff":
            turns = [_lock(client, name) for _ in range(int(contenders) + 1)]
        case "change":
            turns = [_candidate(client, name) for _ in range(int(contenders) + 1)]
        case _:
            raise ValueError(f"no such operation: {operation}")
    return await Handoffs(client, name, turns, float(seconds)).run()


def _lock(client: Client, name: str) -> Turn:
    lock = client.lock(name, ttl=_TTL, on_lost="signal")
    return Turn(lock.acquire, lock.release)


def _candidate(client: Client, name: str) -> Turn:
    election = client.election(name, ttl=_TTL, on_lost="signal")
    inside = AsyncExitStack()
    return Turn(lambda: inside.enter_async_context(election.lead(value="")), inside.aclose)


def _cycle(turn: Turn) -> Callable[[], Awaitable[int]]:
    async def call() -> int:
        await turn.take()
        await turn.give()
        return 0

    return call


@dataclass(slots=True)
class Handoffs:
    """One burst of contenders; the last turn is that of the holder at the start."""

    client: Client
    name: str
    turns: Sequence[Turn]
    seconds: float
    _start: float = 0.0
    _cpu: float = 0.0
    _handed: int = 0
    _result: dict[str, float] = field(default_factory=dict)

    async def run(self) -> dict[str, float]:
        *contenders, gate = self.turns
        await gate.take()
        tasks = [asyncio.create_task(self._contend(turn)) for turn in contenders]
        try:
            await self._until_all_wait(len(self.turns), tasks)
            self._start, self._cpu = time.perf_counter(), time.process_time()
            await gate.give()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._result

    async def _until_all_wait(self, count: int, tasks: Sequence["asyncio.Task[None]"]) -> None:
        while True:
            found = await self.client.range(prefix=f"{self.name}/", count_only=True)
            if found.count >= count:
                break
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(_LOOK_EVERY)
        used = -1.0
        while time.process_time() - used > _IDLE_CPU:
            used = time.process_time()
            await asyncio.sleep(_IDLE_AFTER)

    async def _contend(self, turn: Turn) -> None:
        """Take turns until the time is over; the one that sees that first ends the burst."""
        while not self._result:
            await turn.take()
            self._handed += 1
            elapsed = time.perf_counter() - self._start
            if elapsed >= self.seconds and not self._result:
                cpu = time.process_time() - self._cpu
                self._result = {"calls": self._handed, "seconds": elapsed, "cpu": cpu}
            await turn.give()


if __name__ == "__main__":
    run(connect, obey, "grpclib", facts={"etcd_aio": etcd_aio.__version__})
