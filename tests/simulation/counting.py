"""Parts of the load: processes that add to one counter, and processes that take ids."""

import asyncio
from dataclasses import dataclass
from math import inf
from typing import Final

from etcd_aio import EtcdError
from etcd_aio.recipes import Counter, IdAllocator
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

_NAME: Final = "i/recipes/counter"
_IDS: Final = "i/recipes/ids"
_TASKS: Final = 3  # of a process: what they add at the same time is one txn
_BLOCK: Final = 3
_MOST: Final = 3  # that is added at once


@dataclass(slots=True)
class _Addition:
    """One call of `add`.

    Attributes:
        number: what it has added.
        began: the instant of the call.
        ended: of its end, if it was answered.
        value: what it has returned.
        is_refused: it says that nothing was added.
    """

    number: int
    began: float
    ended: float = inf
    value: int | None = None
    is_refused: bool = False


class Counting(Crowd):
    """Processes that add to one counter, some by exactly-once writes, and read it."""

    def __init__(self, world: World) -> None:
        self._additions: list[_Addition] = []
        self._reads: list[tuple[float, float, int]] = []
        super().__init__(world, "counter")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        if process.random.random() < 0.5:
            await self._count(process, Counter(process.client, _NAME, timeout=2.0))
        else:
            async with process.client.exactly_once(prefix="i/recipes/once/", ttl=self.world.plan.ttl) as once:
                await self._count(process, Counter(process.client, _NAME, writer=once, timeout=2.0))

    async def _count(self, process: Process, counter: Counter) -> None:
        async def add() -> None:
            while not self.world.calm.is_set():
                await self._add(process, counter)
                await process.rest()

        await asyncio.gather(*(add() for _ in range(_TASKS)))

    async def _add(self, process: Process, counter: Counter) -> None:
        began = self.world.instant()
        if process.random.random() < 0.2:
            try:
                value = await counter.get(timeout=2.0)
            except EtcdError:
                return
            if process.is_alive:
                self._reads.append((began, self.world.instant(), value))
            return
        one = _Addition(process.random.randint(1, _MOST), began)
        self._additions.append(one)
        try:
            value = await counter.add(one.number)
        except EtcdError as error:
            process.tell("error", repr(error), error.maybe_applied)
            one.is_refused = process.is_alive and not error.maybe_applied
        else:
            if process.is_alive:
                one.value, one.ended = value, self.world.instant()
        process.tell(one.number, one.value, one.is_refused)

    def judge(self) -> tuple[list[Violation], int]:
        """Each addition has a part of the whole for itself, in the order of time; the rest is what is in doubt."""
        found = [int(value) for _, _, value in self.world.history.watched(_NAME) if value is not None]
        total = found[-1] if found else 0
        known = sorted((one for one in self._additions if one.value is not None), key=lambda one: one.value or 0)
        end, covered, latest = 0, 0, -inf
        for one in known:
            value = one.value or 0
            if value - one.number < end or value > total:
                self.blame("counted wrongly", f"{one.number} was added up to {value}, after another one up to {end}")
            if one.ended < latest:
                self.blame("counted wrongly", f"{value} was returned before an addition began that is before it")
            end, covered, latest = value, covered + one.number, max(latest, one.began)
        in_doubt = sum(one.number for one in self._additions if one.value is None and not one.is_refused)
        if not covered <= total <= covered + in_doubt:
            self.blame("counted wrongly", f"the counter is {total}; {covered} were added, and at most {in_doubt} more")
        for began, ended, value in self._reads:
            least = max((one.value or 0 for one in known if one.ended < began), default=0)
            most = sum(one.number for one in self._additions if one.began < ended and not one.is_refused)
            if not least <= value <= most:
                self.blame("counted wrongly", f"{value} was read, which is not between {least} and {most}")
        return self.violations, len(known)


class Ids(Crowd):
    """Processes that take ids."""

    def __init__(self, world: World) -> None:
        self._given: list[tuple[str, int]] = []
        super().__init__(world, "ids")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        ids = IdAllocator(process.client, _IDS, block=_BLOCK, timeout=4.0)

        async def take() -> None:
            while not self.world.calm.is_set():
                try:
                    number = await ids.next()
                except EtcdError:
                    await process.rest()
                    continue
                if process.is_alive:
                    self._given.append((process.name, number))
                process.tell(number)
                await process.rest()

        await asyncio.gather(*(take() for _ in range(_TASKS)))

    def judge(self) -> tuple[list[Violation], int]:
        """No id is given twice, and those of a process grow."""
        owners: dict[int, str] = {}
        last: dict[str, int] = {}
        for name, number in self._given:
            if number in owners:
                self.blame("an id given twice", f"{number}: to {owners[number]} and {name}")
            if number <= last.get(name, 0):
                self.blame("ids go back", f"{name} got {number} after {last[name]}")
            owners[number], last[name] = name, number
        return self.violations, len(self._given)
