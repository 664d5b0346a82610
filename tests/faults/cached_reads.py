"""Cached and direct reads under faults: `python -m tests.faults.cached_reads --operations 1000000`.

Clients with caches write, read directly and read their caches, on three members behind proxies, while members and
connections fail and the history is compacted. Then all operations together must be linearizable, the content of each
cache must have been that of the store at its revision whenever it was looked at, and that revision never goes back.

With `--old-release` there is one member, which claims a release whose marks may overtake their events, and whose marks
do overtake them. With `--sabotage` marks are trusted all the same, which must be seen: the exit status is 1 if a rule
was broken.
"""

import argparse
import asyncio
import random
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate

from etcd_aio import Client, EtcdError, KeyValue, WatchBatch, op
from etcd_aio.cache import Cache
from etcd_aio.cache.state import Replica
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.faults.linearizable import Read, Write, judge
from tests.support.meddling import meddling
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import until

PREFIX = "cached/"
KEYS = tuple(f"{PREFIX}{number}" for number in range(8))
_PATIENCE = 120.0
_TIMEOUT = 20.0  # of one operation, over a failover on a busy machine
_EVENT_DELAY = 0.02
_EPSILON = 1e-6  # seconds, by which two clocks may be read apart


def mod_revision(kv: KeyValue | None) -> int | None:
    """The revision of a key that was read; None if there was none."""
    return None if kv is None else kv.mod_revision


def trust_early_marks() -> None:
    """The defect of trusting the marks of old releases (etcd-io/etcd#15220)."""
    mark = Replica.mark

    def trusting(self: Replica[object], batch: WatchBatch) -> None:
        mark(self, WatchBatch((), batch.revision))

    setattr(Replica, "mark", trusting)  # noqa: B010 - a method, which type checkers do not let be replaced


@dataclass(slots=True)
class Run:
    """What happens, and what has happened.

    Args:
        most: the number of operations.
        random: chooses.
        clock: of calls and returns.
        rest: by how much longer the pauses between operations are.
    """

    most: int
    random: random.Random
    clock: Callable[[], float] = time.monotonic
    rest: float = 1.0
    operations: list[Write | Read] = field(default_factory=list)
    looks: list[tuple[float, int, dict[bytes, int]]] = field(default_factory=list)
    history: dict[bytes, list[tuple[int, bool]]] = field(default_factory=dict)
    recorded: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.operations) >= self.most

    # Clients.

    async def write(self, client: Client) -> None:
        """Put, delete, and put two keys at once."""
        while not self.is_over:
            key, other = self.random.sample(KEYS, 2)
            called, chance = self.clock(), self.random.random()
            with self.counted("write"):
                if chance < 0.2:
                    gone = await client.delete(key, timeout=_TIMEOUT)
                    revision = gone.revision if gone.deleted else 0
                elif chance < 0.4:
                    txn = client.txn().then(op.put(key, ""), op.put(other, ""))
                    revision = (await txn.commit(timeout=_TIMEOUT)).revision
                else:
                    revision = (await client.put(key, "", timeout=_TIMEOUT)).revision
                if revision:
                    self.operations.append(Write(called, self.clock(), revision))
            await asyncio.sleep(self.rest * self.random.random() * 0.005)

    async def read_directly(self, client: Client) -> None:
        """Read one key, or all at once, from the server."""
        while not self.is_over:
            key, called = self.random.choice(KEYS), self.clock()
            with self.counted("direct read"):
                if self.random.random() < 0.5:
                    kv = await client.get(key, timeout=_TIMEOUT)
                    seen = {key.encode(): mod_revision(kv)}
                else:
                    found = await client.range(prefix=PREFIX, timeout=_TIMEOUT)
                    mods = {kv.key: kv.mod_revision for kv in found}
                    seen = {one.encode(): mods.get(one.encode()) for one in KEYS}
                self.operations.append(Read(called, self.clock(), seen, "direct read"))
            await asyncio.sleep(self.rest * self.random.random() * 0.005)

    async def read_cached(self, cache: Cache[KeyValue]) -> None:
        """Read one key, or all at once, from the cache."""
        while not self.is_over:
            key, called = self.random.choice(KEYS), self.clock()
            with self.counted("cached read"):
                if self.random.random() < 0.5:
                    kv = await cache.read(key, timeout=_TIMEOUT)
                    seen = {key.encode(): mod_revision(kv)}
                else:
                    await cache.wait_current(timeout=_TIMEOUT)
                    seen = {one.encode(): mod_revision(cache.get(one)) for one in KEYS}
                self.operations.append(Read(called, self.clock(), seen, "cached read"))
                # Not in the step of the turn in which the others of this probe run too.
                await asyncio.sleep(self.rest * self.random.random() * 0.01)

    async def read_what_was_written(self, client: Client, caches: Sequence[Cache[KeyValue]]) -> None:
        """Put a key, and as soon as that is answered, read it from another client's cache."""
        while not self.is_over:
            key, called = self.random.choice(KEYS), self.clock()
            with self.counted("write, to be read"):
                revision = (await client.put(key, "", timeout=_TIMEOUT)).revision
                called_again = self.clock()
                self.operations.append(Write(called, called_again, revision))
                kv = await self.random.choice(caches).read(key, timeout=_TIMEOUT)
                self.operations.append(
                    Read(called_again, self.clock(), {key.encode(): mod_revision(kv)}, "cached read")
                )
            await asyncio.sleep(self.rest * self.random.random() * 0.005)

    async def look(self, cache: Cache[KeyValue]) -> None:
        """Look at the content, and at its age, at random instants."""
        last = 0
        while not self.is_over:
            if cache.revision < last:
                self.violations.append(f"the revision of a cache went back from {last} to {cache.revision}")
            last = cache.revision
            since = self.clock() - cache.age
            self.looks.append((since, last, {key: kv.mod_revision for key, kv in cache.range().items()}))
            await asyncio.sleep(self.rest * self.random.random() * 0.1)

    @contextmanager
    def counted(self, what: str) -> Iterator[None]:
        """Count an operation, or its error: what was read then is unknown, and what was written the history tells."""
        try:
            yield
            self.totals[what] += 1
        except EtcdError as error:
            self.errors[f"{what}: {type(error).__name__}"] += 1

    # The history.

    async def record(self, client: Client, begun: asyncio.Event) -> None:
        """Record every change."""
        async with client.watch(prefix=PREFIX, timeout=_PATIENCE) as watcher:
            begun.set()
            async for batch in watcher.batches():
                for event in batch:
                    self.history.setdefault(event.key, []).append((event.revision, event.is_put))
                self.recorded = batch.revision

    def judge(self) -> None:
        """Find what no order explains, and what the caches never should have held."""
        self.violations += judge(self.operations, self.history)
        finished = sorted((one.returned, one.revision) for one in self.operations if isinstance(one, Write))
        newest = list(accumulate((revision for _, revision in finished), max))
        for since, revision, content in self.looks:
            before = bisect_right(finished, (since - _EPSILON, 0))
            if before and newest[before - 1] > revision:
                self.violations.append(f"a cache at {revision} lacked {newest[before - 1]}, and was too young for that")
            for key in map(str.encode, KEYS):
                changes = self.history.get(key, [])
                at = bisect_right(changes, (revision, True)) - 1
                true = changes[at][0] if at >= 0 and changes[at][1] else None
                if content.get(key) != true:
                    self.violations.append(f"at {revision} a cache had {key!r} of {content.get(key)}, not of {true}")


async def make_trouble(run: Run, cluster: EtcdCluster, proxies: Sequence[FaultProxy], direct: Client) -> None:
    """Make one fault after the other."""

    async def pause() -> None:
        member = run.random.choice(cluster.members)
        member.pause()
        await asyncio.sleep(run.random.uniform(0.1, 2.0))
        member.resume()

    async def kill() -> None:
        member = run.random.choice(cluster.members)
        await member.kill()
        await asyncio.sleep(run.random.uniform(0.0, 1.0))
        await member.restart()

    async def isolate() -> None:
        member = run.random.choice(cluster.members)
        cluster.isolate(member)
        await asyncio.sleep(run.random.uniform(0.1, 2.0))
        cluster.reconnect(member)

    async def break_connections() -> None:
        for proxy in proxies:
            run.random.choice((proxy.reset, proxy.cut))()
            await asyncio.sleep(run.random.uniform(0.0, 0.2))
            proxy.heal()

    async def swallow() -> None:
        proxy = run.random.choice(proxies)
        proxy.black_hole(run.random.choice(("to_client", "to_server", "both")))
        await asyncio.sleep(run.random.uniform(0.1, 2.0))
        proxy.heal()

    async def delay() -> None:
        for proxy in proxies:
            proxy.delay(run.random.uniform(0.0, 0.1))
        await asyncio.sleep(run.random.uniform(0.1, 1.0))
        for proxy in proxies:
            proxy.heal()

    async def compact_in_an_outage() -> None:
        for proxy in proxies:
            proxy.refuse()
            proxy.reset()
        await asyncio.sleep(run.random.uniform(0.1, 0.5))
        for number in range(10):
            await direct.put(KEYS[0], str(number), retry="always", timeout=_TIMEOUT)
        last = (await direct.put(KEYS[1], "", retry="always", timeout=_TIMEOUT)).revision
        await until(lambda: run.recorded >= last)
        await direct.compact(last, timeout=_TIMEOUT)
        for proxy in proxies:
            proxy.heal()

    faults = (pause, kill, isolate, break_connections, swallow, delay, compact_in_an_outage)
    while not run.is_over:
        fault = run.random.choice(faults)
        with suppress(EtcdError):
            await fault()
        for proxy in proxies:
            proxy.heal()
        run.faults[fault.__name__] += 1
        await cluster.wait_healthy(60.0)
        await asyncio.sleep(run.random.random())


async def enter(stack: AsyncExitStack, client: Client) -> Cache[KeyValue]:
    """Enter a cache, which may be a matter of several attempts: the faults have begun."""
    while True:
        with suppress(EtcdError):
            return await stack.enter_async_context(client.cache(prefix=PREFIX, max_outage=1.0))


async def use(run: Run, clients: Sequence[Client], readers: int) -> None:
    """Write and read until there are enough operations."""
    async with AsyncExitStack() as stack:
        caches = [await enter(stack, client) for client in clients]
        async with asyncio.TaskGroup() as group:
            for client, cache in zip(clients, caches, strict=True):
                for _ in range(2):
                    group.create_task(run.write(client))
                    group.create_task(run.read_directly(client))
                group.create_task(run.read_what_was_written(client, caches))
                for _ in range(readers):
                    group.create_task(run.read_cached(cache))
                group.create_task(run.look(cache))
        for cache in caches:
            statistics = cache.statistics()
            run.totals.update(
                probes=statistics.probes,
                validations=statistics.validations,
                loads=statistics.loads,
                fallbacks=statistics.fallbacks,
            )


async def work(run: Run, clients: Sequence[Client], direct: Client, readers: int) -> None:
    """Write, read and record."""
    begun = asyncio.Event()
    recording = asyncio.create_task(run.record(direct, begun))
    await begun.wait()
    await use(run, clients, readers)
    last = (await direct.put(KEYS[0], "", retry="always", timeout=_PATIENCE)).revision
    await until(lambda: run.recorded >= last, [recording])
    recording.cancel()


async def under_faults(run: Run, *, clients: int = 3, readers: int = 40) -> Run:
    """Several clients on three members that fail."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EtcdCluster(3, peer_proxies=True, **QUICK_ELECTIONS))
        await cluster.wait_healthy()
        direct = await stack.enter_async_context(Client(cluster.endpoints, timeout=_TIMEOUT))
        proxies: list[FaultProxy] = []
        users: list[Client] = []
        for _ in range(clients):
            own = [await stack.enter_async_context(FaultProxy(endpoint)) for endpoint in cluster.endpoints]
            proxies += own
            users.append(await stack.enter_async_context(Client([proxy.endpoint for proxy in own])))
        trouble = asyncio.create_task(make_trouble(run, cluster, proxies, direct))
        await work(run, users, direct, readers)
        await trouble
    run.judge()
    return run


async def on_an_old_release(run: Run, *, readers: int = 10) -> Run:
    """One client on a member whose marks overtake their events."""
    async with (
        EtcdServer() as server,
        meddling(server) as proxy,
        Client(server.endpoint, timeout=_TIMEOUT) as direct,
        Client(proxy.endpoint, timeout=_TIMEOUT) as client,
    ):
        proxy.release, proxy.event_delay = "3.4.23", _EVENT_DELAY
        await work(run, [client], direct, readers)
        run.totals["early marks"] = proxy.early_marks
    run.judge()
    return run


def main() -> int:
    """Run, print what happened; returns the exit status."""
    parser = argparse.ArgumentParser(description="cached and direct reads under faults")
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--old-release", action="store_true")
    parser.add_argument("--sabotage", action="store_true", help="trust early marks")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    if options.sabotage:
        trust_early_marks()
    run = Run(options.operations, random.Random(seed))
    began = time.monotonic()
    asyncio.run(on_an_old_release(run) if options.old_release else under_faults(run))
    print(f"seed {seed}: {len(run.operations)} operations in {time.monotonic() - began:.0f} s")
    print(f"{len(run.looks)} looks; {dict(run.totals)}")
    print(f"faults {dict(run.faults)}; errors {dict(run.errors)}")
    print(f"{len(run.violations)} violations")
    for violation in run.violations[:10]:
        print(f"  {violation}")
    return 1 if run.violations else 0


if __name__ == "__main__":
    sys.exit(main())
