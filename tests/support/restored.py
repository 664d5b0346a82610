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
from dataclasses import dataclass
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

TTL: Final = 5
LIMIT: Final = TTL + 5.0
_PAUSE: Final = 0.2  # seconds between two rounds

Told = Callable[[], None]


class World(Protocol):
    """A store that can go back."""

    def client(self) -> Client: ...

    async def back_up(self) -> None: ...

    async def restore(self) -> None: ...


# The uses. Each runs until it is cancelled, or an `EtcdError` ends it: then it is begun again.


def _rounds(step: Callable[[Client], Awaitable[object]]) -> "Use":
    async def use(client: Client, told: Told) -> None:
        while True:
            await step(client)
            told()
            await asyncio.sleep(_PAUSE)

    return use


Use = Callable[[Client, Told], Awaitable[None]]


async def _lock(client: Client) -> None:
    async with client.lock("lock", ttl=TTL, timeout=LIMIT) as lock:
        await lock.fenced.put("fenced", "x")


async def _semaphore(client: Client) -> None:
    async with client.semaphore("permits", limit=1, ttl=TTL, timeout=LIMIT):
        pass


async def _reader(client: Client) -> None:
    async with client.rwlock("rw", ttl=TTL).reading(timeout=LIMIT):
        pass


async def _writer(client: Client) -> None:
    async with client.rwlock("rw", ttl=TTL).writing(timeout=LIMIT):
        pass


async def _stm(client: Client) -> None:
    async def add(tx: object) -> None:
        kv = await tx.get("stm")  # type: ignore[attr-defined]
        tx.put("stm", str(int(kv.text() if kv else 0) + 1))  # type: ignore[attr-defined]

    await client.stm(add)


async def _barrier(client: Client) -> None:
    barrier = Barrier(client, f"barrier-{client.name}")
    await barrier.hold()
    waiting = asyncio.ensure_future(barrier.wait(timeout=LIMIT))
    try:
        await asyncio.sleep(_PAUSE)
        await barrier.release(force=True)
        await waiting
    finally:
        waiting.cancel()
        await asyncio.wait([waiting])


async def _session(client: Client, told: Told) -> None:
    async with client.session(ttl=TTL) as session:
        while True:
            async with session.lock("session", timeout=LIMIT):
                told()
            await asyncio.sleep(_PAUSE)


async def _election(client: Client, told: Told) -> None:
    async def lead(leadership: Leadership) -> None:
        for _ in range(3):
            await leadership.fenced.put("leader", client.name)
            told()
            await asyncio.sleep(_PAUSE)

    await client.election("election", ttl=TTL).run(lead, client.name, again=True)


async def _observer(client: Client, told: Told) -> None:
    async with client.election("election").observe() as leaders:
        async for _ in leaders:
            told()


async def _meeting(client: Client) -> None:
    async with DoubleBarrier(client, "meeting", count=2, ttl=TTL, timeout=LIMIT):
        pass


async def _counter(client: Client, told: Told) -> None:
    counter = Counter(client, "counter")
    await _rounds(lambda _: counter.add())(client, told)


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


async def _puts(client: Client) -> None:
    await Queue(client, "queue").put("x")
    await PriorityQueue(client, "priorities").put("x")
    await WorkQueue(client, "work", ttl=TTL).put("x")


async def _takes(client: Client) -> None:
    await Queue(client, "queue").get()


async def _takes_by_priority(client: Client) -> None:
    await PriorityQueue(client, "priorities").get()


async def _works(client: Client, told: Told) -> None:
    async with WorkQueue(client, "work", ttl=TTL).worker(concurrency=2) as worker:
        async for job in worker:
            async with job:
                told()


async def _schedule(client: Client, told: Told) -> None:
    async def work(tick: Tick) -> None:
        told()

    await Schedule(client, "schedule", every=1).run(work)


async def _claimed_schedule(client: Client, told: Told) -> None:
    async def work(tick: Tick) -> None:
        told()

    await Schedule(client, "claimed", every=1, claim=True, ttl=TTL).run(work)


async def _member(client: Client, told: Told) -> None:
    group = Group(client, "group", ttl=TTL)
    async with group.join(client.name) as membership:
        number = 0
        while True:
            number += 1
            await membership.update(f"{number}")
            found = {one.name: one.value for one in (await group.members()).members}
            if membership.is_member and found.get(client.name) == b"%d" % number:
                told()
            await asyncio.sleep(_PAUSE)


async def _service(client: Client, told: Told) -> None:
    async with client.register("svc", f"{client.name}:80", ttl=TTL) as registration:
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


async def _for_ever(use: Use, client: Client, told: Told, errors: Counts[str]) -> None:
    while True:
        try:
            await use(client, told)
        except EtcdError as error:
            errors[type(error).__name__] += 1
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
    """

    client: Client
    began: list[str]

    async def are_free(self, other: Client) -> None:
        """Another client gets what was held."""

        async def lock(name: str) -> None:
            async with other.lock(name, ttl=TTL, timeout=LIMIT):
                pass

        async def permit() -> None:
            async with other.semaphore("ghost/permits", limit=1, ttl=TTL, timeout=LIMIT):
                pass

        async def write() -> None:
            async with other.rwlock("ghost/rw", ttl=TTL).writing(timeout=LIMIT):
                pass

        async def job() -> None:
            async with asyncio.timeout(LIMIT):
                await _empty(WorkQueue(other, "ghost/work"))

        await asyncio.gather(lock("ghost/lock"), lock("ghost/session"), permit(), write(), job())
        assert self.began == ["job", "job"]


@asynccontextmanager
async def ghosts(client: Client, back_up: Callable[[], Awaitable[None]]) -> AsyncIterator[Ghosts]:
    """Make a backup while a lock and the like are held. The client goes on with the leases that they had."""
    found = Ghosts(client, [])
    queue = WorkQueue(client, "ghost/work", ttl=TTL)
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
                async with client.lock(f"busy/{number}", ttl=TTL, timeout=LIMIT):
                    await asyncio.sleep(0.1)
            except EtcdError:
                await asyncio.sleep(0.1)

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(client.session(ttl=TTL, on_lost="signal"))
        tasks = [asyncio.ensure_future(work())]
        await begun.wait()
        async with (
            client.lock("ghost/lock", ttl=TTL, on_lost="signal"),
            session.lock("ghost/session", on_lost="signal"),
            client.semaphore("ghost/permits", limit=1, ttl=TTL, on_lost="signal"),
            client.rwlock("ghost/rw", ttl=TTL, on_lost="signal").writing(),
        ):
            await back_up()
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
    uses = USES if uses is None else uses
    loop = asyncio.get_running_loop()
    rounds: Counts[tuple[str, str]] = Counts()
    errors: dict[tuple[str, str], Counts[str]] = {}
    async with world.client() as one, world.client() as two:
        tasks: list[asyncio.Task[None]] = []

        def begin(name: str, use: Use, client: Client) -> None:
            key = name, client.name
            rounds[key], errors[key] = 0, Counts()

            def told() -> None:
                rounds[key] += 1

            tasks.append(asyncio.create_task(_for_ever(use, client, told, errors[key]), name=f"{key}"))

        for name, use in uses.items():
            for client in (one, two):
                begin(name, use, client)
        try:
            await _all_come_round(rounds, errors, tasks, loop.time() + 6 * LIMIT)
            async with ghosts(one, world.back_up) as held:
                await asyncio.sleep(2.0)
                await world.restore()
                restored = loop.time()
                rounds.clear()
                rounds.update(dict.fromkeys(errors, 0))
                free = asyncio.ensure_future(held.are_free(two))
                await _all_come_round(rounds, errors, tasks, restored + LIMIT + spare)
                await free
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def _all_come_round(
    rounds: Counts[tuple[str, str]],
    errors: dict[tuple[str, str], Counts[str]],
    tasks: list[asyncio.Task[None]],
    deadline: float,
) -> None:
    """Wait until each use has come round by some client, or by both if each can."""
    loop = asyncio.get_running_loop()
    while True:
        for task in tasks:
            if task.done():
                task.result()
        late = sorted(key for key, count in rounds.items() if not count and not _is_served(key, rounds))
        if not late:
            return
        assert loop.time() < deadline, {key: dict(errors[key]) for key in late}
        await asyncio.sleep(0.1)


def _is_served(key: tuple[str, str], rounds: Counts[tuple[str, str]]) -> bool:
    """Whether the other client's round is enough: one of them leads, takes, runs a tick."""
    name = key[0]
    if name == "observer":
        return True  # it is told of changes alone; the election has its own use
    shared = {"election", "queue", "priority queue", "work queue", "schedule", "claimed schedule"}
    return name in shared and any(count for (other, _), count in rounds.items() if other == name)


# The stores.


class FakeWorld:
    """A fake etcd; its members stop for a second while the backup is put back."""

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
