"""A part of the load: transactions that append to lists, as in `tests/unit/recipes/test_histories.py`."""

import asyncio
from itertools import count
from typing import Final

from etcd_aio import EtcdError
from etcd_aio.recipes import StmResult, Transaction
from tests.faults.ownership import Violation
from tests.simulation.processes import Crowd, Process
from tests.simulation.world import World

_PREFIX: Final = "i/recipes/stm/"
_KEYS: Final = tuple(f"{_PREFIX}{name}" for name in "abc")
_TASKS: Final = 2  # of a process


class Transactions(Crowd):
    """Processes that read some lists, and append a number of their own to one of them or two."""

    def __init__(self, world: World) -> None:
        self._numbers_given = count(1)
        self._committed: dict[int, tuple[int, dict[str, bytes], list[str]]] = {}  # by revision
        self._refused: list[int] = []
        super().__init__(world, "stm")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""

        async def go_on() -> None:
            while not self.world.calm.is_set():
                await self._append(process)
                await process.rest()

        await asyncio.gather(*(go_on() for _ in range(_TASKS)))

    async def _append(self, process: Process) -> None:
        number = next(self._numbers_given)
        keys = process.random.sample(_KEYS, process.random.randint(1, 3))
        changed = process.random.sample(keys, min(len(keys), process.random.randint(1, 2)))
        read: dict[str, bytes] = {}

        async def function(tx: Transaction) -> None:
            read.clear()
            for key in keys:
                kv = await tx.get(key)
                read[key] = b"" if kv is None else kv.value
            for key in changed:
                tx.put(key, read[key] + b" %d" % number)

        try:
            result: StmResult[None] = await process.client.stm(function, timeout=5.0)
        except EtcdError as error:
            if process.is_alive and not error.maybe_applied:
                self._refused.append(number)
            process.tell(number, error.maybe_applied)
        else:
            if process.is_alive:
                self._committed[result.revision] = number, dict(read), changed
            process.tell(number, result.revision)

    def judge(self) -> tuple[list[Violation], int]:
        """Each has read the state just before it, and each is applied once, or not at all."""
        states = self.states(_PREFIX)
        for revision, (number, read, changed) in self._committed.items():
            before, after = states.at(revision - 1), states.at(revision)
            there = {key: before.get(key.encode(), b"") for key in read}
            if read != there:
                self.blame("read another state", f"the transaction {number}, at revision {revision}")
            if any(after.get(key.encode(), b"").split()[-1:] != [b"%d" % number] for key in changed):
                self.blame("a transaction was lost", f"{number}, at revision {revision}")
        last: dict[bytes, bytes] = {}
        for revision in states.revisions:
            for key, value in states.at(revision).items():
                if not value.startswith(last.get(key, b"")):
                    self.blame("a transaction was lost", f"revision {revision} has not all of {key.decode()}")
                last[key] = value
        for key, value in last.items():
            numbers = value.split()
            if len(set(numbers)) < len(numbers):
                self.blame("a transaction was applied twice", key.decode())
            for number in self._refused:
                if b"%d" % number in numbers:
                    self.blame("a transaction was applied that was refused", f"{number} in {key.decode()}")
        return self.violations, len(self._committed)
