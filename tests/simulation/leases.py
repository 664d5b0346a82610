"""A part of the load: processes that keep leases, each with a key, for shorter and longer than a lease lasts."""

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from etcd_aio import EtcdError, Lease
from etcd_aio.errors import LeaseLostError
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

_PREFIX: Final = "i/leases/"
_TASKS: Final = 6  # of a process
_SHORT: Final = 0.01  # seconds of a message on its way, on average
_LEFT: Final = 10.0  # seconds until the keys of all leases are gone; longer than any of them


@dataclass(frozen=True, slots=True)
class _Kept:
    """A lease, as the block that keeps it knows it."""

    process: Process
    lease: Lease
    is_cancelled: bool  # a loss ends the block

    @property
    def is_believed(self) -> bool:
        """Whether the block may still act in its name."""
        return self.process.is_alive and (self.is_cancelled or self.lease.remaining > 0)


class Leases(Crowd):
    """Processes that keep leases."""

    def __init__(self, world: World) -> None:
        self._names = count()
        self._kept: dict[int, _Kept] = {}
        self._shown = 0
        # Without a fault a client has no reason to lose a lease, unless a round trip is long beside the TTL.
        self._is_quiet = not world.plan.faults and world.plan.latency <= _SHORT
        super().__init__(world, "leases")
        if not world.plan.drift:  # a lease has no margin for that, as locks have
            world.believers.append(self._done_in_the_name_of)

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""

        async def go_on() -> None:
            while not self.world.calm.is_set():
                await self._keep(process)
                await process.rest()

        await asyncio.gather(*(go_on() for _ in range(_TASKS)))

    async def _keep(self, process: Process) -> None:
        random, ttl = process.random, self.world.plan.ttl
        on_lost: Literal["cancel", "signal"] = random.choice(("cancel", "signal"))
        lease = process.client.lease(ttl, on_lost=on_lost)
        try:
            async with lease:
                self._kept[lease.id] = _Kept(process, lease, on_lost == "cancel")
                try:
                    await process.client.put(f"{_PREFIX}{next(self._names)}", "", lease=lease.id)
                    await asyncio.sleep(random.choice((0.0, 0.3, 1.0, 1.5, 3.0)) * ttl)
                finally:
                    del self._kept[lease.id]
        except LeaseLostError as error:
            process.tell("lost", str(error))
            if self._is_quiet:
                self.blame("a lease was lost without a reason", str(error))
        except EtcdError as error:
            process.tell("failed", type(error).__name__)
        else:
            self._shown += 1
            process.tell("kept")

    def _done_in_the_name_of(self, id: int) -> list[str]:
        kept = self._kept.get(id)
        return [f"{kept.process.name} keeps {kept.lease!r}"] if kept is not None and kept.is_believed else []

    async def run(self) -> None:
        """See `Crowd.run`; then wait until nothing is left."""
        await super().run()
        await asyncio.sleep(_LEFT)

    def judge(self) -> tuple[list[Violation], int]:
        """No key outlives its lease."""
        for key in self.world.fake.keys(_PREFIX):
            self.blame("a key outlived its lease", key.decode())
        return self.violations, self._shown
