"""A part of the load: processes that are members of a group, follow it, and divide keys."""

import asyncio
from collections.abc import Callable
from typing import Final

from etcd_aio import EtcdError
from etcd_aio.recipes import Group, HashRing, Membership, Ring
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

_NAME: Final = "i/recipes/group"
_PREFIX: Final = f"{_NAME}/"
_LOOK_EVERY: Final = 0.1  # seconds
_TIE: Final = 0.001  # seconds
_PATIENCE: Final = 60.0  # seconds until all agree, once there are no faults any more


class Groups(Crowd):
    """Processes that join a group under their names, and look at it."""

    def __init__(self, world: World) -> None:
        self._seen: list[tuple[str, int, tuple[str, ...]]] = []  # what was seen at which revision
        self._agreed = 0
        super().__init__(world, "member")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        group = Group(process.client, _NAME, ttl=self.world.plan.ttl)
        while True:
            try:
                if await self._join(process, group):
                    return
            except EtcdError as error:  # on entering
                process.tell(type(error).__name__)
            await process.rest()

    async def _join(self, process: Process, group: Group) -> bool:
        """Be a member for a while. Returns whether it was one to the end."""
        async with group.join(process.name, value="0") as membership, group.ring() as ring:
            observing = asyncio.ensure_future(self._observe(process, group))
            try:
                return await self._stay(process, membership, ring)
            finally:
                observing.cancel()
                await asyncio.wait([observing])

    async def _stay(self, process: Process, membership: Membership, ring: Ring) -> bool:
        values = [b"0"]  # those that the key may have
        number = 0
        while not self.world.calm.is_set():
            self._look(process, membership, ring)
            if process.random.random() < 0.05:
                number += 1
                values.append(b"%d" % number)
                try:
                    await membership.update(values[-1])
                except EtcdError as error:  # it is put with the next lease, if it was not
                    process.tell(type(error).__name__)
                else:
                    del values[:-1]
            elif process.random.random() < 0.01:
                return False  # and join again
            await asyncio.sleep(_LOOK_EVERY)
        await self._agree(process, membership, ring, values)
        return True

    def _look(self, process: Process, membership: Membership, ring: Ring) -> None:
        if not process.is_alive:
            return
        lease = membership._lease
        # Without latency a lease ends here and there at the same instant, in any order; and members have no margin for
        # clocks that differ.
        plan = self.world.plan
        is_tie = lease is not None and lease.remaining <= _TIE + plan.drift * plan.ttl
        if membership.is_registered and not is_tie and membership.key not in self.world.fake.keys(_PREFIX):
            self.blame("a member without a key", f"{process.name} at revision {self.world.fake.revision}")
        assignment = ring.assignment
        self._see(process.name, assignment.epoch, assignment.members)

    async def _observe(self, process: Process, group: Group) -> None:
        try:
            async with group.cache() as members:
                last = 0
                async for view in members.changes():
                    if process.is_alive:
                        self._see(process.name, view.revision, view.names)
                        if view.revision < last:
                            self.blame("views go back", f"{process.name}: {view.revision} after {last}")
                        last = view.revision
                    process.tell(view.revision, view.names)
        except EtcdError as error:
            process.tell(type(error).__name__)

    def _see(self, name: str, revision: int, members: tuple[str, ...]) -> None:
        if not self._seen or self._seen[-1] != (name, revision, members):
            self._seen.append((name, revision, members))

    async def _agree(self, process: Process, membership: Membership, ring: Ring, values: list[bytes]) -> None:
        """After the faults every process is there, with its value, and all assign alike."""
        names = tuple(sorted(one.name for one in self.processes))
        if not await _holds(lambda: membership.is_registered and ring.assignment.members == names):
            self.blame("members do not agree", f"{process.name} has {ring.assignment.members}, and not {names}")
        found = self.world.fake.keys(_PREFIX).get(membership.key)
        if found not in values:
            self.blame("a member without its value", f"{process.name} has {found!r}")
        expected = HashRing(names)
        if any(ring.owner(f"k{number}").name != expected.owner(f"k{number}") for number in range(20)):
            self.blame("members do not agree", f"{process.name} assigns otherwise")
        self._agreed += 1
        await _holds(lambda: self._agreed == len(names))  # none leaves before

    def judge(self) -> tuple[list[Violation], int]:
        """What was seen at a revision is what etcd had then."""
        states = self.states(_PREFIX)
        for name, revision, members in self._seen:
            there = tuple(sorted(key.decode().removeprefix(_PREFIX) for key in states.at(revision)))
            if members != there:
                self.blame("seen wrongly", f"{name} has seen {members} at revision {revision}, which had {there}")
        return self.violations, len(self._seen)


async def _holds(condition: Callable[[], bool]) -> bool:
    """Wait until something is so. Returns whether it is."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_LOOK_EVERY)
    return True
