"""Parts of the load that are recipes: processes, of which one may be killed. Each recipe is in a file of its own."""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

from etcd_aio import EtcdError
from tests.faults.late import LateClient
from tests.faults.ownership import Violation
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TIMEOUT: Final = 2.0  # seconds of a call


class Process:
    """A client process, with a client and a network of its own.

    Args:
        world: where it lives.
        name: of the process.
        work: what it does, until there is calm.

    Attributes:
        client: its client.
        random: its randomness.
        is_alive: False once it was killed; nothing that it does counts from then on.
    """

    client: LateClient

    def __init__(self, world: World, name: str, work: "Callable[[Process], Awaitable[None]]") -> None:
        self.name = name
        self.world = world
        self.random = Random(f"{name} {world.plan.seed}")
        self.is_alive = True
        self._work = work
        self._network = world.network()
        self.task = asyncio.ensure_future(self._run())
        self.task.set_name(name)

    def kill(self) -> None:
        """End it: nothing that it does reaches anything any more."""
        self.is_alive = False
        self.world.networks.remove(self._network)
        self._network.refuse()
        self.task.cancel()

    def tell(self, *words: object) -> None:
        """Add a line to the trace."""
        if self.is_alive:
            self.world.trace.add(f"{self.name} {words}")

    async def rest(self) -> None:
        """Wait between two things that it does."""
        await asyncio.sleep(self.random.uniform(0.01, self.world.plan.rest))

    async def _run(self) -> None:
        async with LateClient(
            list(self.world.fake.endpoints),
            chance=self.world.plan.late,
            seed=f"{self.world.plan.seed} {self.name}",
            engine=self._network.engine,
            timeout=TIMEOUT,
        ) as client:
            self.client = client
            await self._work(self)


class Crowd(ABC):
    """The processes that use a recipe, from the first one on to the verdict.

    Args:
        world: where they live.
        what: the recipe.
    """

    def __init__(self, world: World, what: str) -> None:
        self.world = world
        self.violations: list[Violation] = []
        self._what = what
        self._numbers = count()
        self._killed: list[Process] = []
        self.processes = [self._new() for _ in range(world.plan.clients)]
        world.killable.append(self)

    def _new(self) -> Process:
        return Process(self.world, f"{self._what}{next(self._numbers)}", self.work)

    @abstractmethod
    async def work(self, process: Process) -> None:
        """What a process does until there is calm, and then to its end."""

    @abstractmethod
    def judge(self) -> tuple[list[Violation], int]:
        """What was wrong, and how much was done."""

    def blame(self, rule: str, text: str) -> None:
        """A rule is broken."""
        self.violations.append(Violation(rule, text))

    def replace(self) -> None:
        """Kill the process that has lived for longest, and start another one."""
        killed = self.processes.pop(0)
        killed.kill()
        self._killed.append(killed)
        self.processes.append(self._new())

    async def run(self) -> None:
        """Let the processes work until there is calm, and end."""
        await self.world.calm.wait()
        self.world.killable.remove(self)
        await asyncio.gather(*(process.task for process in self.processes))
        for error in await asyncio.gather(*(process.task for process in self._killed), return_exceptions=True):
            # What a killed process says of its end is not heard by anyone.
            if isinstance(error, Exception) and not isinstance(error, EtcdError):
                raise error

    def states(self, prefix: str) -> "States":
        """The history of the keys below a prefix, once the run is over."""
        return States(self.world.history.watched(prefix))


class States:
    """What keys were at each revision.

    Args:
        changes: revision, key and value; None is a deletion. In the order of revisions.
    """

    def __init__(self, changes: list[tuple[int, bytes, bytes | None]]) -> None:
        self.revisions: list[int] = []
        self._states: list[dict[bytes, bytes]] = []
        state: dict[bytes, bytes] = {}
        for revision, key, value in changes:
            if not self.revisions or self.revisions[-1] != revision:
                self.revisions.append(revision)
                state = dict(state)
                self._states.append(state)
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value

    def at(self, revision: int) -> dict[bytes, bytes]:
        """What the keys were at a revision."""
        place = bisect_right(self.revisions, revision)
        return self._states[place - 1] if place else {}

    def between(self, first: int, last: int) -> list[dict[bytes, bytes]]:
        """What they were at the revisions from one to another, both included."""
        return [self.at(first), *(self.at(one) for one in self.revisions if first < one <= last)]
