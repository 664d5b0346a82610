"""A part of the load: reads with and without caches, beside writes, as in `tests/faults/cached_reads.py`."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from tests.faults import cached_reads
from tests.faults.ownership import Violation
from tests.simulation.world import World

_READERS: Final = 2  # tasks that read each cache
_REST: Final = 150.0  # by how much longer than on real servers the pauses are


@dataclass(slots=True)
class _UntilCalm(cached_reads.Run):
    calm: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return self.calm.is_set()


class Reads:
    """The clients, and their caches.

    Args:
        world: where they live.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._clients = [world.client() for _ in range(world.plan.clients)]
        self._run = _UntilCalm(0, world.random("reads"), world.instant, _REST, calm=world.calm)

    async def run(self) -> None:
        """Write and read until there is calm."""
        try:
            await cached_reads.use(self._run, self._clients, _READERS)
        finally:
            for client in self._clients:
                await client.aclose()

    def judge(self) -> tuple[list[Violation], int]:
        """What was wrong, and how many operations there were."""
        run = self._run
        run.history = self._world.history.of_keys(cached_reads.PREFIX)
        run.judge()
        return [Violation("not linearizable", text) for text in run.violations], len(run.operations)
