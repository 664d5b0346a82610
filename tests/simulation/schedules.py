"""A part of the load: processes that have one schedule, and clocks that differ."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final

from etcd_aio.recipes import Schedule, Tick
from etcd_aio.recipes.schedule.ticks import CatchUp, tick_of
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

_NAME: Final = "i/recipes/schedule"
_BEGIN: Final = 1_900_000_000.0  # seconds since 1970, when the loop's clock is at 0
_LATER: Final = 20.0  # seconds after the faults, in which ticks must go on
_CATCH_UPS: Final[tuple[CatchUp, ...]] = ("none", "last", "all")
_MOST_TRIES: Final = 10_000


@dataclass(slots=True)
class _Beginning:
    """One run of a tick.

    Attributes:
        name: of the process.
        tick: it.
        began: the instant.
        ended: of its end, or of that of its process.
        is_done: it was not cancelled, and its process was alive.
    """

    name: str
    tick: Tick
    began: float
    ended: float = inf
    is_done: bool = False


class Schedules(Crowd):
    """Processes that run the ticks of one schedule."""

    def __init__(self, world: World) -> None:
        chance = world.random("schedule")
        self._every = chance.choice((1, 2, 5))
        self._claims = chance.random() < 0.5
        self._catch_up: CatchUp = chance.choice(_CATCH_UPS)
        self._skew = chance.choice((0.0, 0.0, 0.3, 3.0))
        self._keep = chance.choice((1, 5, 3600))
        self._calm = inf
        self._beginnings: list[_Beginning] = []
        self._running: dict[str, list[_Beginning]] = {}
        super().__init__(world, "schedule")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        ahead = process.random.uniform(-self._skew, self._skew)
        loop = asyncio.get_running_loop()
        schedule = Schedule(
            process.client,
            _NAME,
            every=self._every,
            catch_up=self._catch_up,
            grace=2.0,
            keep=self._keep,
            claim=self._claims,
            ttl=self.world.plan.ttl,
            max_tries=_MOST_TRIES,
            value=process.name,
            clock=lambda: _BEGIN + loop.time() + ahead,
        )
        while not self.world.calm.is_set():
            running = asyncio.ensure_future(schedule.run(lambda tick: self._begin(process, tick)))
            try:
                stopping = asyncio.ensure_future(self._stop(process))
                await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
            finally:
                running.cancel()
                await asyncio.wait([running])
            if not running.cancelled():
                error = running.exception()
                process.tell(type(error).__name__)
                if not isinstance(error, ZeroDivisionError) and process.is_alive:
                    self.blame("a run ended by itself", f"{process.name}: {error!r}")

    async def _stop(self, process: Process) -> None:
        """End the run now and then; after the faults, let ticks go on for a while."""
        try:
            async with asyncio.timeout(process.random.uniform(1.0, 40.0)):
                await self.world.calm.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_LATER + 2 * self._every)

    async def _begin(self, process: Process, tick: Tick) -> None:
        world = self.world
        if not process.is_alive:
            return
        one = _Beginning(process.name, tick, world.instant())
        self._beginnings.append(one)
        self._running.setdefault(process.name, []).append(one)
        process.tell(tick.time.isoformat(), tick.tries)
        long = world.plan.ttl * 1.5 if process.random.random() < world.plan.long else self._every
        try:
            await asyncio.sleep(process.random.uniform(0.0, long))
            if process.random.random() < 0.02:
                raise ZeroDivisionError
            one.is_done = process.is_alive
        finally:
            if process.is_alive:
                one.ended = world.instant()

    async def run(self) -> None:
        """See `Crowd.run`."""
        await self.world.calm.wait()
        self._calm = self.world.instant()
        await super().run()

    def replace(self) -> None:
        """See `Crowd.replace`: what the process runs ends here."""
        for one in self._running.get(self.processes[0].name, ()):
            if one.ended == inf:
                one.ended = self.world.instant()
        super().replace()

    def judge(self) -> tuple[list[Violation], int]:
        """Each tick begins once, or until it has ended; and ticks go on."""
        begun: dict[float, list[_Beginning]] = {}
        for one in self._beginnings:
            begun.setdefault(one.tick.time.timestamp(), []).append(one)
            if one.tick.time.timestamp() % self._every:
                self.blame("a wrong tick", one.tick.time.isoformat())
        for time, ones in begun.items():
            if self._claims:
                tries = [one.tick.tries for one in ones]
                if tries != sorted(set(tries)):
                    self.blame("a try counted wrongly", f"{time}: {tries}")
            elif len(ones) > 1:
                names = ", ".join(one.name for one in ones)
                self.blame("a tick begun twice", f"{time}: {names}")
        if self._claims:
            self._judge_claims(begun)
        tokens = [one.tick.fencing_token for one in sorted(self._beginnings, key=lambda one: one.tick.fencing_token)]
        if len(set(tokens)) < len(tokens):
            self.blame("a token given twice", f"{tokens}")
        self._judge_store(begun)
        return self.violations, len(self._beginnings)

    def _judge_claims(self, begun: dict[float, list[_Beginning]]) -> None:
        ends = 0.0
        before: _Beginning | None = None
        for one in sorted(self._beginnings, key=lambda one: one.began):
            if one.began < ends and before is not None:
                text = f"{one.tick.time.isoformat()} by {one.name}, {before.tick.time.isoformat()} by {before.name}"
                self.blame("ticks overlap", text)
            if one.ended > ends:
                ends, before = one.ended, one
        times = sorted(begun)
        for time in times[:-1]:  # the last one may have been ended by the end of the run
            if not any(one.is_done for one in begun[time]):
                self.blame("a tick did not end", f"{time}")

    def _judge_store(self, begun: dict[float, list[_Beginning]]) -> None:
        started = [value.decode() for _, _, value in self.world.history.watched(f"{_NAME}/last") if value is not None]
        if started != sorted(set(started)):
            self.blame("ticks go back", f"{started}")
        known = {one.tick.time.strftime("%Y-%m-%dT%H:%M:%SZ") for ones in begun.values() for one in ones}
        if not known <= set(started):
            self.blame("a tick that was not started", f"{sorted(known - set(started))}")
        if not any(one.began > self._calm for one in self._beginnings):
            self.blame("ticks do not go on", f"none has begun since {self._calm}")
        times = [tick_of(text.encode()).timestamp() for text in started[1:]]  # the first one is where it began
        if self._catch_up == "all" and any(after - before != self._every for before, after in pairwise(times)):
            self.blame("a tick left out", f"{times}")
