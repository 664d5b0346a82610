"""A part of the load: processes that contend for locks, permits and leaderships, and count, as in `tests/faults`."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from math import inf
from typing import Final

from etcd_aio import EtcdError
from tests.faults.late import LateClient
from tests.faults.ownership import RULES, Violation
from tests.faults.store import ROOT, checked
from tests.faults.verdict import LAST, Logs, judge
from tests.faults.worker import Worker
from tests.simulation.world import World

PATIENCE: Final = 90.0  # seconds within which everything that waits must end, once there are no faults any more
_CLEAN: Final = 20.0  # seconds until nothing is left in the lines; longer than any lease


class Process:
    """A client process: a worker with a client and a network of its own.

    Args:
        world: where it lives.
        name: of the process.
        parts: what it contends for.
    """

    def __init__(self, world: World, name: str, parts: Sequence[str]) -> None:
        self.name = name
        self.lines: list[str] = []
        self.said: dict[str, asyncio.Event] = {word: asyncio.Event() for word in ("done", LAST, "quiet")}
        self.ended = inf
        self._world = world
        self._believed: dict[str, tuple[int, str]] = {}  # the lease of each claim, and what it is about
        self._parts = parts
        self._network = world.network()
        self._orders = {order: asyncio.Event() for order in ("stop", "end")}
        self.task = asyncio.ensure_future(self._run())
        self.task.set_name(name)

    def tell(self, order: str) -> None:
        """Tell it to stop, and then to end."""
        self._orders[order].set()

    def kill(self) -> None:
        """End it: nothing that it does reaches anything any more, and it says no more."""
        self.ended = asyncio.get_running_loop().time()
        self._world.networks.remove(self._network)
        self._network.refuse()
        self.task.cancel()

    def _log(self, *words: object) -> None:
        if self.ended < inf:
            return
        line = json.dumps(words)
        self._world.trace.add(f"{self.name} {line}")
        match words:
            case ["began", claim, _, _, key, *_]:
                self._believed[str(claim)] = int(str(key).rpartition("/")[2], 16), str(key)
            case ["ended", claim, _]:
                self._believed.pop(str(claim), None)
        self.lines.append(line)
        for word, event in self.said.items():
            if f'"{word}"' in line:
                event.set()

    def done_in_the_name_of(self, lease: int) -> list[str]:
        """What it does in the name of a lease."""
        if self.ended < inf:
            return []
        return [f"{claim} has {key}" for claim, (own, key) in self._believed.items() if own == lease]

    async def _run(self) -> None:
        plan = self._world.plan
        orders = iter(self._orders.values())
        seed = f"{plan.seed} {self.name}"
        endpoints = list(self._world.fake.endpoints)
        async with LateClient(
            endpoints, chance=plan.late, seed=seed, engine=self._network.engine, timeout=2.0
        ) as client:
            worker = Worker(
                client,
                self.name,
                plan.ttl,
                seed,
                patience=PATIENCE,
                long=plan.long,
                rest=plan.rest,
                slot_ttl=plan.ttl,
                clock=asyncio.get_running_loop().time,
                log=self._log,
            )
            await worker.run(set(self._parts), lambda: next(orders).wait())


class Contention:
    """The processes, from the first one on to the verdict.

    Args:
        world: where they live.
        parts: what they contend for.
    """

    def __init__(self, world: World, parts: Sequence[str]) -> None:
        self._world = world
        self._parts = parts
        self._numbers = count()
        self._killed: list[Process] = []
        self._processes = [self._new() for _ in range(world.plan.clients)]
        self._left: list[str] = []
        world.killable.append(self)
        world.believers.append(lambda lease: [t for one in self._processes for t in one.done_in_the_name_of(lease)])

    def _new(self) -> Process:
        return Process(self._world, f"w{next(self._numbers)}", self._parts)

    def replace(self) -> None:
        """Kill the process that has lived for longest, and start another one."""
        killed = self._processes.pop(0)
        killed.kill()
        self._killed.append(killed)
        self._processes.append(self._new())

    async def run(self) -> None:
        """Contend until there is calm, then let every process end what it does."""
        world = self._world
        await world.calm.wait()
        world.killable.remove(self)
        await self._all("stop", "done")
        if "election" in self._parts:
            async with world.operator.election(f"{ROOT}election/a").lead(LAST):
                await self._all_say(LAST)
        await self._all("end", "quiet")
        deadline = asyncio.get_running_loop().time() + _CLEAN
        self._left = await self._keys()
        while self._left and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.2)
            self._left = await self._keys()
        await asyncio.gather(*(process.task for process in self._processes))
        await asyncio.gather(*(process.task for process in self._killed), return_exceptions=True)

    def judge(self) -> tuple[list[Violation], int]:
        """What was wrong, and how often something was owned or counted."""
        logs = Logs(meddled=self._world.meddled)
        for process in (*self._killed, *self._processes):
            logs.read(process.name, "\n".join(process.lines), process.ended)
        verdict = judge(
            checked(self._world.history.contended()),
            logs,
            parts=self._parts,
            left=self._left,
            lasting=[process.name for process in self._processes],
            is_gapless=not self._world.is_compacted,
        )
        return list(verdict.violations), sum(verdict.owned.values())

    async def _all(self, order: str, word: str) -> None:
        for process in self._processes:
            process.tell(order)
        await self._all_say(word)

    async def _all_say(self, word: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE + 10.0):
                for process in self._processes:
                    await process.said[word].wait()

    async def _keys(self) -> list[str]:
        while True:
            with suppress(EtcdError):
                return [
                    kv.key.decode()
                    for kind in RULES
                    for kv in await self._world.operator.range(prefix=f"{ROOT}{kind}/", keys_only=True)
                ]
            await asyncio.sleep(0.2)
