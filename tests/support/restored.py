"""Every recipe in use while its store is replaced by a backup: who goes on, and what is done with what the backup has.

Each use runs for ever, by two clients, and tells each time that it has come round. In the middle a backup is made, and
some seconds later it is put back. At the backup a lock, a session's lock, a permit, a place in a line and a job are
held that are given back before the restore: their keys come back, and no task knows of them.
"""

import asyncio
import shutil
from collections import Counter as Counts
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from etcd_aio import Client, EtcdError
from etcd_aio.concurrency import Leadership
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import (
    Barrier,
    Counter,
    DoubleBarrier,
    Group,
    IdAllocator,
    Job,
    PriorityQueue,
    Queue,
    Schedule,
    Tick,
    WorkQueue,
)
from etcd_aio.testing import EtcdServer

_BEGINNING: Final = 1_800_000_000.0  # seconds since 1970
_PAUSE: Final = 0.2  # seconds between two rounds


@dataclass
class Told:
    """Called when a use has come round.

    Attributes:
        ttl: of its leases, in seconds.
        limit: seconds within which it has to come round after the restore.
        rounds: how often it has.
        errors: what has ended it, by class.
    """

    ttl: int
    rounds: int = 0
    errors: Counts[str] = field(default_factory=Counts)

    @property
    def limit(self) -> float:
        return self.ttl + 5.0

    def __call__(self) -> None:
        self.rounds += 1


class World(Protocol):
    """A store that can go back."""

    @property
    def ttl(self) -> int:
        """The TTL to use, in seconds: it outlasts the making of a backup."""
        ...

    def client(self) -> Client: ...

    async def back_up(self) -> None: ...

    async def restore(self) -> None: ...


# The uses. Each runs until it is cancelled, or an `EtcdError` ends it: then it is begun again.


def _rounds(step: Callable[[Client, Told], Awaitable[object]]) -> "Use":
    async def use(client: Client, told: Told) -> None:
        while True:
            await step(client, told)
            told()
            await asyncio.sleep(_PAUSE)

    return use


Use = Callable[[Client, Told], Awaitable[None]]


async def _lock(client: Client, told: Told) -> None:
    async with client.lock("lock", ttl=told.ttl, timeout=told.limit) as lock:
        await lock.fenced.put("fenced", "x")


async def _semaphore(client: Client, told: Told) -> None:
    async with client.semaphore("permits", limit=1, ttl=told.ttl, timeout=told.limit):
        pass


async def _reader(client: Client, told: Told) -> None:
    async with client.rwlock("rw", ttl=told.ttl).reading(timeout=told.limit):
        pass


async def _writer(client: Client, told: Told) -> None:
    async with client.rwlock("rw", ttl=told.ttl).writing(timeout=told.limit):
        pass


async def _stm(client: Client, told: Told) -> None:
    async def add(tx: object) -> None:
        kv = await tx.get("stm")  # type: ignore[attr-defined]
        tx.put("stm", str(int(kv.text() if kv else 0) + 1))  # type: ignore[attr-defined]

    await client.stm(add)


async def _barrier(client: Client, told: Told) -> None:
    barrier = Barrier(client, f"barrier-{client.name}")
    await barrier.hold()
    waiting = asyncio.ensure_future(barrier.wait_released(timeout=told.limit))
    try:
        await asyncio.sleep(_PAUSE)
        await barrier.release(force=True)
        await waiting
    finally:
        waiting.cancel()
        await asyncio.wait([waiting])


async def _session(client: Client, told: Told) -> None:
    async with client.session(ttl=told.ttl) as session:
        while True:
            async with session.lock("session", timeout=told.limit):
                told()
            await asyncio.sleep(_PAUSE)


async def _election(client: Client, told: Told) -> None:
    async def lead(leadership: Leadership) -> None:
        for _ in range(3):
            await leadership.fenced.put("leader", client.name)
            told()
            await asyncio.sleep(_PAUSE)

    await client.election("election", ttl=told.ttl).run(lead, client.name, again=True)


async def _observer(client: Client, told: Told) -> None:
    async with client.election("election").changes() as leaders:
        async for _ in leaders:
            told()


async def _meeting(client: Client, told: Told) -> None:
    async with DoubleBarrier(client, "meeting", count=2, ttl=told.ttl, timeout=told.limit):
        pass


async def _counter(client: Client, told: Told) -> None:
    counter = Counter(client, "counter")
    await _rounds(lambda client, told: counter.add())(client, told)


async def _ids(client: Client, told: Told) -> None:
    """It refuses ids that it may have given before, and comes to new ones block by block."""
    ids = IdAllocator(client, "ids", block=3)
    given: set[int] = set()
    while True:
        try:
            number = await ids.next()
        except EtcdError:
            continue
        assert number not in given
        given.add(number)
        told()
        await asyncio.sleep(_PAUSE)


async def _puts(client: Client, told: Told) -> None:
    await Queue(client, "queue").put("x")
    await PriorityQueue(client, "priorities").put("x")
    await WorkQueue(client, "work", ttl=told.ttl).put("x")


async def _takes(client: Client, told: Told) -> None:
    await Queue(client, "queue").get()


async def _takes_by_priority(client: Client, told: Told) -> None:
    await PriorityQueue(client, "priorities").get()


async def _works(client: Client, told: Told) -> None:
    async with WorkQueue(client, "work", ttl=told.ttl).worker(concurrency=2) as worker:
        async for job in worker:
            async with job:
                told()


def _clock() -> float:
    """The time of day by the loop's clock, which may be faster than others."""
    return _BEGINNING + asyncio.get_running_loop().time()


async def _schedule(client: Client, told: Told) -> None:
    async def work(tick: Tick) -> None:
        told()

    await Schedule(client, "schedule", every=1, clock=_clock).run(work)


async def _claimed_schedule(client: Client, told: Told) -> None:
    async def work(tick: Tick) -> None:
        told()

    await Schedule(client, "claimed", every=1, claim=True, ttl=told.ttl, clock=_clock).run(work)


async def _member(client: Client, told: Told) -> None:
    group = Group(client, "group", ttl=told.ttl)
    async with group.join(client.name) as membership:
        number = 0
        while True:
            number += 1
            await membership.update(f"{number}")
            found = {one.name: one.value for one in (await group.members()).members}
            if membership.is_registered and found.get(client.name) == b"%d" % number:
                told()
            await asyncio.sleep(_PAUSE)


async def _service(client: Client, told: Told) -> None:
    async with client.register("svc", f"{client.name}:80", ttl=told.ttl) as registration:
        while True:
            if registration.is_registered and await client.get(registration.key):
                told()
            await asyncio.sleep(_PAUSE)


async def _cache(client: Client, told: Told) -> None:
    number = 0
    async with client.cache(prefix="cached/") as cache:
        while True:
            number += 1
            result = await client.put(f"cached/{client.name}", f"{number}")
            await asyncio.sleep(_PAUSE)
            kv = cache.get(f"cached/{client.name}")
            if kv is not None and kv.mod_revision == result.revision:
                told()


async def _exactly_once(client: Client, told: Told) -> None:
    number = 0
    async with client.exactly_once() as once:
        while True:
            number += 1
            await once.put(f"once/{client.name}", f"{number}")
            await once.put(f"once/{client.name}/id", f"{number}", id=f"{client.name}-{number}")
            told()
            await asyncio.sleep(_PAUSE)


USES: Final[dict[str, Use]] = {
    "lock": _rounds(_lock),
    "semaphore": _rounds(_semaphore),
    "reader": _rounds(_reader),
    "writer": _rounds(_writer),
    "session": _session,
    "election": _election,
    "observer": _observer,
    "barrier": _rounds(_barrier),
    "double barrier": _rounds(_meeting),
    "stm": _rounds(_stm),
    "counter": _counter,
    "ids": _ids,
    "puts": _rounds(_puts),
    "queue": _rounds(_takes),
    "priority queue": _rounds(_takes_by_priority),
    "work queue": _works,
    "schedule": _schedule,
    "claimed schedule": _claimed_schedule,
    "group": _member,
    "service": _service,
    "cache": _cache,
    "exactly once": _exactly_once,
}


async def _for_ever(use: Use, client: Client, told: Told) -> None:
    while True:
        try:
            await use(client, told)
        except EtcdError as error:
            told.errors[type(error).__name__] += 1
            await asyncio.sleep(0.1)


# What is held at the backup, and was given back before the restore.


async def _empty(queue: WorkQueue) -> None:
    while await queue.size():  # noqa: ASYNC110 - other processes take them
        await asyncio.sleep(0.05)


@dataclass
class Ghosts:
    """What comes back with the backup.

    Attributes:
        client: held it, and lives on.
        began: the jobs that its worker has begun, in order.
        ttl: of the leases.
    """

    client: Client
    began: list[str]
    ttl: int

    async def are_free(self, other: Client, limit: float) -> None:
        """Another client gets what was held, within a limit."""
        ttl = self.ttl

        async def lock(name: str) -> None:
            async with other.lock(name, ttl=ttl, timeout=limit):
                pass

        async def permit() -> None:
            async with other.semaphore("ghost/permits", limit=1, ttl=ttl, timeout=limit):
                pass

        async def write() -> None:
            async with other.rwlock("ghost/rw", ttl=ttl).writing(timeout=limit):
                pass

        async def job() -> None:
            async with asyncio.timeout(limit):
                await _empty(WorkQueue(other, "ghost/work"))

        await asyncio.gather(lock("ghost/lock"), lock("ghost/session"), permit(), write(), job())
        assert self.began == ["job", "job"]


@asynccontextmanager
async def ghosts(client: Client, world: World) -> AsyncIterator[Ghosts]:
    """Make a backup while a lock and the like are held. The client goes on with the leases that they had."""
    ttl = world.ttl
    found = Ghosts(client, [], ttl)
    queue = WorkQueue(client, "ghost/work", ttl=ttl)
    await queue.put("job")
    begun, end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async def handle(job: Job) -> None:
            async with job:
                found.began.append(job.text())
                begun.set()
                await end.wait()

        async with queue.worker(concurrency=2) as worker, asyncio.TaskGroup() as tasks:
            async for job in worker:
                tasks.create_task(handle(job))

    async def busy(number: int) -> None:
        while True:  # with the leases that the others have given back
            try:
                async with client.lock(f"busy/{number}", ttl=ttl, timeout=60.0):
                    await asyncio.sleep(0.1)
            except EtcdError:
                await asyncio.sleep(0.1)

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(client.session(ttl=ttl, on_lost="signal"))
        tasks = [asyncio.ensure_future(work())]
        await begun.wait()
        async with (
            client.lock("ghost/lock", ttl=ttl, on_lost="signal"),
            session.lock("ghost/session", on_lost="signal"),
            client.semaphore("ghost/permits", limit=1, ttl=ttl, on_lost="signal"),
            client.rwlock("ghost/rw", ttl=ttl, on_lost="signal").writing(),
        ):
            await world.back_up()
        end.set()
        await _empty(queue)
        tasks += [asyncio.ensure_future(busy(number)) for number in range(4)]
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def everything_goes_on(world: World, uses: dict[str, Use] | None = None, *, spare: float = 0.0) -> None:
    """Make a backup while everything is in use, restore it, and see that all go on within TTL + 5 s.

    Args:
        world: the store.
        uses: what is in use; all by default.
        spare: seconds more, of a machine that is busy.
    """
    loop = asyncio.get_running_loop()
    all_told: dict[tuple[str, str], Told] = {}
    async with world.client() as one, world.client() as two:
        tasks: list[asyncio.Task[None]] = []
        for name, use in (USES if uses is None else uses).items():
            for client in (one, two):
                told = all_told[name, client.name] = Told(world.ttl)
                tasks.append(asyncio.create_task(_for_ever(use, client, told), name=f"{name} of {client.name}"))
        try:
            await _all_come_round(all_told, tasks, loop.time() + 60.0)
            async with ghosts(one, world) as held:
                await asyncio.sleep(2.0)
                await world.restore()
                limit = world.ttl + 5.0 + spare
                deadline = loop.time() + limit
                for told in all_told.values():
                    told.rounds, told.errors = 0, Counts()
                async with asyncio.TaskGroup() as checks:
                    checks.create_task(held.are_free(two, limit))
                    checks.create_task(_all_come_round(all_told, tasks, deadline))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def _all_come_round(
    all_told: dict[tuple[str, str], Told], tasks: list[asyncio.Task[None]], deadline: float
) -> None:
    """Wait until each use has come round, by both clients unless one is enough."""
    loop = asyncio.get_running_loop()
    while True:
        for task in tasks:
            if task.done():
                task.result()
        late = [key for key, told in all_told.items() if not told.rounds and not _is_served(key, all_told)]
        if not late:
            return
        assert loop.time() < deadline, {key: dict(all_told[key].errors) for key in late}
        await asyncio.sleep(0.1)


def _is_served(key: tuple[str, str], all_told: dict[tuple[str, str], Told]) -> bool:
    """Whether the other client's round is enough: one of them leads, takes, runs a tick."""
    name = key[0]
    if name == "observer":
        return True  # it is told of changes alone; the election has its own use
    shared = {"election", "queue", "priority queue", "work queue", "schedule", "claimed schedule"}
    return name in shared and any(told.rounds for (other, _), told in all_told.items() if other == name)


# The stores.


class FakeWorld:
    """A fake etcd; its members stop for a second while the backup is put back."""

    ttl = 5

    def __init__(self, fake: FakeEtcd) -> None:
        self._fake = fake
        self._names = iter(("one", "two"))

    def client(self) -> Client:
        return self._fake.client(name=next(self._names))

    async def back_up(self) -> None:
        self._backup = self._fake.back_up()

    async def restore(self) -> None:
        for member in self._fake.members:
            member.stop()
        await asyncio.sleep(1.0)
        self._fake.restore(self._backup)
        for member in self._fake.members:
            member.start()
        self._fake.elect(self._fake.members[0])


class ServerWorld:
    """A real server: the backup is a copy of its data directory, while it is stopped."""

    ttl = 15  # of a machine that is busy, where a start takes seconds

    def __init__(self, server: EtcdServer) -> None:
        self._server = server
        self._names = iter(("one", "two"))

    def client(self) -> Client:
        return Client(self._server.endpoint, name=next(self._names))

    @property
    def _copy(self) -> str:
        return f"{self._server.data_dir}.backup"

    async def back_up(self) -> None:
        await self._server.kill()
        await asyncio.to_thread(shutil.copytree, self._server.data_dir, self._copy)
        await self._server.restart()

    async def restore(self) -> None:
        await self._server.kill()
        await asyncio.to_thread(shutil.rmtree, self._server.data_dir)
        await asyncio.to_thread(shutil.move, self._copy, self._server.data_dir)
        await self._server.restart()
