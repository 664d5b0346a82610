"""Parts of the load: processes that put items into a queue, or one with priorities, and take them."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from itertools import count
from typing import TYPE_CHECKING, Final

from etcd_aio import EtcdError, OutcomeUnknownError, Writer
from etcd_aio.errors import ItemInDoubtError, QueueTimeoutError
from etcd_aio.recipes import Item, PriorityQueue, Queue
from tests.faults.ownership import Violation
from tests.simulation.processes import TIMEOUT, Crowd, Process
from tests.simulation.puts import Put
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etcd_aio.recipes.queue.known_items import KnownItem

_CONSUMERS: Final = 2  # tasks of a process, which share a queue object
_PRODUCERS: Final = 2
_LATE: Final = 10.0  # seconds after the faults, in which copies of puts are still applied
_DRAINED: Final = 5.0  # seconds without an item, after which there are no more


class Queues(Crowd):
    """Processes that have one queue, some by exactly-once writes."""

    def __init__(self, world: World, kind: type[Queue] | type[PriorityQueue] = Queue) -> None:
        self._kind = kind
        self._name = f"i/recipes/{kind.__name__.lower()}"
        self._values = count(1)
        self._puts: list[Put] = []
        self._taken: list[tuple[str, Item]] = []
        self._in_doubt: set[bytes] = set()
        self._tried: dict[str, set[bytes]] = {}  # by process: the items that it has tried to take
        super().__init__(world, kind.__name__.lower())

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        async with AsyncExitStack() as stack:
            writer: Writer | None = None
            if process.random.random() < 0.5:
                writer = await stack.enter_async_context(process.client.exactly_once(prefix="i/recipes/once/"))
            queue = self._kind(process.client, self._name, writer=writer, timeout=TIMEOUT)
            self._watch_takes(process, queue)
            producing = [self._produce(process, queue) for _ in range(_PRODUCERS)]
            await asyncio.gather(*producing, *(self._consume(process, queue) for _ in range(_CONSUMERS)))

    def _watch_takes(self, process: Process, queue: Queue | PriorityQueue) -> None:
        """Keep in mind what the process tries to take: if it is killed, these may be lost with it."""
        take, tried = queue._taker._take, self._tried.setdefault(process.name, set())

        async def watched(picked: "Sequence[KnownItem]") -> list[Item]:
            keys = {one.key for one in picked}
            tried.update(keys)
            try:
                return await take(picked)
            except OutcomeUnknownError:
                self._in_doubt |= keys
                raise

        queue._taker._take = watched  # type: ignore[method-assign]

    async def _produce(self, process: Process, queue: Queue | PriorityQueue) -> None:
        while not self.world.calm.is_set():
            put = Put(b"%d" % next(self._values))
            self._puts.append(put)
            try:
                key = await queue.put(put.value)
            except ItemInDoubtError:
                pass
            except EtcdError as error:
                put.is_refused = process.is_alive and not error.maybe_applied
            else:
                put.key = key if process.is_alive else None
            process.tell("put", put.value, put.key, put.is_refused)
            await process.rest()

    async def _consume(self, process: Process, queue: Queue | PriorityQueue) -> None:
        calm = self.world.calm
        while True:
            was_calm = calm.is_set()
            seconds = _LATE + _DRAINED if was_calm else process.random.uniform(0.1, 5.0)
            try:
                if process.random.random() < 0.3 and not was_calm:
                    async with asyncio.timeout(seconds):  # a cancellation
                        item = await queue.get()
                else:
                    item = await queue.get(timeout=seconds)
            except ItemInDoubtError as error:
                self._in_doubt.update(error.keys)
                process.tell("in doubt", sorted(error.keys))
            except QueueTimeoutError:
                if was_calm:
                    return
            except EtcdError as error:
                process.tell("take", type(error).__name__)
            except TimeoutError:
                pass
            else:
                if process.is_alive:
                    self._taken.append((process.name, item))
                process.tell("taken", item.key, item.value)
            if not was_calm:
                await process.rest()

    def judge(self) -> tuple[list[Violation], int]:
        """Each item is put once and taken once, or an error names it."""
        prefix = f"{self._name}/"
        changes = self.world.history.watched(prefix)
        put = [(key, value) for _, key, value in changes if value is not None]
        for value, times in Counter(value for _, value in put).items():
            if times > 1:
                self.blame("an item put twice", f"{value!r}: {sorted(key for key, other in put if other == value)}")
        known = {(key, value) for key, value in put}
        values = {value for _, value in known}
        for one in self._puts:
            if one.key is not None and (one.key, one.value) not in known:
                self.blame("an item was not put", f"{one.value!r} under {one.key!r}")
            if one.is_refused and one.value in values:
                self.blame("an item put that was refused", f"{one.value!r}")
        takers: dict[bytes, str] = {}
        for name, item in self._taken:
            if item.value in takers:
                self.blame("an item taken twice", f"{item.value!r} by {takers[item.value]} and {name}")
            if (item.key, item.value) not in known:
                self.blame("an item taken that was never put", f"{item.value!r} by {name}")
            takers[item.value] = name
        lost_with = set[bytes]().union(*(self._tried.get(one.name, ()) for one in self._killed))
        final = self.states(prefix).at(self.world.fake.revision)
        for key, value in known:
            if value not in takers and key not in final and key not in self._in_doubt | lost_with:
                self.blame("an item lost without a word", f"{value!r} under {key!r}")
        if final:
            self.blame("an item is stuck", f"{sorted(final)[:5]}")
        return self.violations, len(self._taken)


class PriorityQueues(Queues):
    """Processes that have one queue with priorities."""

    def __init__(self, world: World) -> None:
        super().__init__(world, PriorityQueue)
