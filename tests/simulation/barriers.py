"""A part of the load: processes that hold and release a barrier, wait for it, and meet at a double barrier."""

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final

from etcd_aio import EtcdError
from etcd_aio.recipes import Barrier, DoubleBarrier
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

if TYPE_CHECKING:
    from etcd_aio.recipes.barrier.meeting import Participant

_BARRIER: Final = "i/recipes/barrier"
_DOUBLE: Final = "i/recipes/meeting"
_TOGETHER: Final = 2  # participants of a meeting


class Barriers(Crowd):
    """Processes that meet, and hold each other up."""

    def __init__(self, world: World) -> None:
        self._values = count(1)
        self._holds: list[tuple[bytes, bool | None, int, int]] = []  # value, result (None: refused), revisions
        self._waits: list[tuple[str, int, int]] = []
        self._entered: list[tuple[str, Participant, int]] = []
        self._left: list[tuple[str, int, int]] = []
        super().__init__(world, "barrier")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        await asyncio.gather(self._hold(process), self._wait(process), self._meet(process))

    async def _hold(self, process: Process) -> None:
        barrier = Barrier(process.client, _BARRIER, timeout=2.0)
        fake = self.world.fake
        while not self.world.calm.is_set():
            value, before = b"%d" % next(self._values), fake.revision
            result: bool | None = None
            try:
                result = await barrier.hold(value=value)
            except EtcdError as error:
                if process.is_alive and not error.maybe_applied:
                    self._holds.append((value, None, before, fake.revision))
            else:
                if process.is_alive:
                    self._holds.append((value, result, before, fake.revision))
            process.tell("hold", value, result)
            await process.rest()
            try:
                await barrier.release(force=not result)
            except EtcdError as error:
                process.tell("release", type(error).__name__)
            await process.rest()

    async def _wait(self, process: Process) -> None:
        barrier = Barrier(process.client, _BARRIER)
        while not self.world.calm.is_set():
            before = self.world.fake.revision
            try:
                await barrier.wait_released(timeout=process.random.uniform(0.5, 10.0))
            except EtcdError as error:
                process.tell("wait", type(error).__name__)
            else:
                if process.is_alive:
                    self._waits.append((process.name, before, self.world.fake.revision))
            await process.rest()

    async def _meet(self, process: Process) -> None:
        while not self.world.calm.is_set():
            opened = 0
            try:
                ttl = self.world.plan.ttl
                async with DoubleBarrier(process.client, _DOUBLE, count=_TOGETHER, ttl=ttl, timeout=15.0) as barrier:
                    own = barrier._participation
                    assert own is not None
                    opened = own._opened
                    if process.is_alive:
                        self._entered.append((process.name, own._own, opened))
                    process.tell("in", opened)
                    await process.rest()
            except EtcdError as error:
                process.tell("meet", type(error).__name__)
            else:
                if process.is_alive:
                    self._left.append((process.name, opened, self.world.fake.revision))
                process.tell("out", opened)
            await process.rest()

    def judge(self) -> tuple[list[Violation], int]:
        """A wait ends while the barrier is not held, and those who meet come and go together."""
        self._judge_barrier()
        self._judge_meetings()
        return self.violations, len(self._holds) + len(self._waits) + len(self._left)

    def _judge_barrier(self) -> None:
        states = self.states(_BARRIER)
        key = _BARRIER.encode()
        for name, first, last in self._waits:
            if all(key in state for state in states.between(first, last)):
                self.blame("a wait ended too early", f"{name}, between the revisions {first} and {last}")
        put = [value for _, _, value in self.world.history.watched(_BARRIER) if value is not None]
        if len(set(put)) < len(put):
            self.blame("a barrier held again by a late copy", f"{[value for value in put if put.count(value) > 1]}")
        for value, result, first, last in self._holds:
            held = [state.get(key) for state in states.between(first, last)]
            if result is None and value in put:
                self.blame("a barrier held that was refused", f"{value!r}")
            if result and value not in held:
                self.blame("a barrier not held", f"{value!r} between the revisions {first} and {last}")
            if result is False and set(held) <= {None, value}:
                self.blame("a barrier that was free is said to be held", f"{value!r}")

    def _judge_meetings(self) -> None:
        ready = f"{_DOUBLE}/ready".encode()
        changes = self.world.history.watched(f"{_DOUBLE}/")
        # Its value says who is the last one of the meeting: who came while it was written waits for the next one.
        opened = [(revision, int(value)) for revision, key, value in changes if key == ready and value is not None]
        lives: list[tuple[bytes, int, float]] = []  # of keys: created, deleted
        alive: dict[bytes, int] = {}
        for revision, key, value in changes:
            if key == ready:
                continue
            if value is not None:
                alive.setdefault(key, revision)
            elif key in alive:
                lives.append((key, alive.pop(key), revision))
        lives += [(key, created, float("inf")) for key, created in alive.items()]
        meetings = {
            revision: [life for life in lives if before < life[1] <= last and revision < life[2]]
            for (_, before), (revision, last) in zip([(0, 0), *opened], opened, strict=False)
        }
        for revision, members in meetings.items():
            came = {name for name, _, of in self._entered if of == revision}
            if not len(came) <= _TOGETHER <= len(members):
                text = f"{sorted(came)} at revision {revision}, which had {len(members)} keys"
                self.blame("a meeting of another number", text)
        for name, own, revision in self._entered:
            if not any(life[:2] == (own.key, own.revision) for life in meetings.get(revision, ())):
                self.blame("entered without a meeting", f"{name}, at revision {revision}")
        for name, revision, at in self._left:
            if any(deleted > at for _, _, deleted in meetings.get(revision, ())):
                self.blame("left before the others", f"{name} at revision {at} the meeting of revision {revision}")
