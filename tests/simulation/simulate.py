"""One run: a world is made from a plan, lives in virtual time, and is judged."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from tests.faults.ownership import Violation
from tests.faults.store import IncompleteError
from tests.simulation.barriers import Barriers
from tests.simulation.bounded import BoundedLoop, Spinning, bounded_cpu
from tests.simulation.contention import Contention
from tests.simulation.counting import Counting, Ids
from tests.simulation.faults import play
from tests.simulation.groups import Groups
from tests.simulation.jobs import Jobs
from tests.simulation.leases import Leases
from tests.simulation.plan import CONTENDED, Plan
from tests.simulation.queues import PriorityQueues, Queues
from tests.simulation.reads import Reads
from tests.simulation.schedules import Schedules
from tests.simulation.seeded import seeded
from tests.simulation.trace import Trace
from tests.simulation.transactions import Transactions
from tests.simulation.watching import Watching
from tests.simulation.world import World

_PATIENCE: Final = 600.0  # seconds within which everything must end once there are no faults any more


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown.

    Attributes:
        plan: the run.
        digest: the hash of its trace.
        lines: its trace, if it was kept.
        violations: the broken rules.
        seconds: of virtual time.
        calls: that the members have served.
        revisions: the length of the history.
        shown: what was owned, counted, delivered and read: without it, a run proves nothing.
        faults: how often each was made.
    """

    plan: Plan
    digest: str
    lines: Sequence[str]
    violations: Sequence[Violation]
    seconds: float
    calls: int
    revisions: int
    shown: int
    faults: Mapping[str, int]


class _Load(Protocol):
    """A part of the load."""

    async def run(self) -> None:
        """Go on until there is calm, and end."""

    def judge(self) -> tuple[list[Violation], int]:
        """What was wrong, and how much was done."""
        ...


_RECIPES: Final[Mapping[str, Callable[[World], _Load]]] = {
    "combined-counter": Counting,
    "ids": Ids,
    "stm": Transactions,
    "barriers": Barriers,
    "group": Groups,
    "schedule": Schedules,
    "queue": Queues,
    "priority-queue": PriorityQueues,
    "work-queue": Jobs,
}
"""The parts that are recipes."""


def simulate(plan: Plan, *, keeps_lines: bool = False) -> Outcome:
    """Run a plan: the same plan gives the same outcome in every process."""
    trace = Trace(keeps=keeps_lines)
    gc.disable()  # the collector's turn depends on what else is in memory
    try:
        with bounded_cpu(), seeded(plan.seed), asyncio.Runner(loop_factory=BoundedLoop) as runner:
            return runner.run(_live(plan, trace))
    except Spinning as spinning:
        return Outcome(plan, trace.digest, trace.lines, [Violation("spins", f"{spinning}")], 0.0, 0, 0, 0, {})
    finally:
        gc.enable()


async def _live(plan: Plan, trace: Trace) -> Outcome:
    loop = asyncio.get_running_loop()
    began = loop.time()
    world = World(plan, trace)
    violations: list[Violation] = []
    loop.set_exception_handler(lambda _, context: violations.append(Violation("unexpected error", f"{context}"[:500])))
    async with world.fake, world.operator:
        loads = _loads(world)
        tasks = [asyncio.ensure_future(load.run()) for load in loads]
        troubles = [asyncio.ensure_future(play(world, fault)) for fault in plan.faults]
        await asyncio.sleep(plan.seconds)
        await asyncio.gather(*troubles)
        world.heal_all()
        world.calm.set()
        trace.add("calm")
        _, pending = await asyncio.wait(tasks, timeout=_PATIENCE)
        violations += [
            Violation("waits for ever", type(load).__name__)
            for load, task in zip(loads, tasks, strict=True)
            if task in pending
        ]
        for task in pending:
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                violations.append(Violation("unexpected error", f"{type(error).__name__}: {error}"[:500]))
    world.history.collect()
    violations += world.violations
    shown = 0
    for load in loads:
        try:
            found, number = load.judge()
        except IncompleteError as error:
            found, number = [Violation("the history is not whole", f"{error}")], 0
        violations += found
        shown += number
    for violation in violations:
        trace.add(f"violation {violation.rule}: {violation.text}")
    return Outcome(
        plan,
        trace.digest,
        trace.lines,
        violations,
        loop.time() - began,
        world.fake.server.served,
        world.fake.revision,
        shown,
        Counter(world.faults),
    )


def _loads(world: World) -> list[_Load]:
    parts = world.plan.parts
    loads: list[_Load] = []
    contended = [part for part in parts if part in CONTENDED]
    if contended:
        loads.append(Contention(world, contended))
    if "watch" in parts:
        loads.append(Watching(world))
    if "reads" in parts:
        loads.append(Reads(world))
    if "leases" in parts:
        loads.append(Leases(world))
    loads += [recipe(world) for part, recipe in _RECIPES.items() if part in parts]
    return loads
