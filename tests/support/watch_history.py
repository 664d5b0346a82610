"""Watch history: writes and watches of every kind, and a check that the watches delivered exactly those writes.

Only the public API is used, whatever happens to the members meanwhile.

    writes = Writes(client, "k/", rate=500)
    async with following(watching_client, "k/") as followers, writes.going_on(): ...
    end = await writes.finish()
    history = await read_history(client, "k/", end)
    writes.check(history)                      every acknowledged write, and no others
    for follower in followers: follower.check(history)

etcd returns all revisions by a watch only. So the history comes from a watch on one connection to one member, and is
checked itself: against every acknowledged write, against ranges at old revisions, and for its previous values.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from etcd_aio import Client, EtcdError, Event, Watcher, op
from etcd_aio.errors import CompactedError
from tests.support.until import PATIENCE

Change = tuple[int, bytes, bytes | None]
"""Revision, key, value; None is a delete."""


def change(event: Event) -> Change:
    """The content of an event."""
    return event.revision, event.key, event.value if event.is_put else None


class Writes:
    """A steady load of puts, deletes, deletes of a prefix, and txns of several keys.

    Args:
        client: what they are written with.
        prefix: every key begins with it.
        rate: writes in a second, as far as the members answer.
        seed: of their kinds and keys.

    Attributes:
        acknowledged: for each revision, when its write began and when it was acknowledged.
        failed: how many writes ended with an error.
    """

    def __init__(self, client: Client, prefix: str, *, rate: float, seed: int) -> None:
        self._client, self._prefix, self._rate = client, prefix, rate
        self._random = random.Random(seed)
        self._values = count()
        self._contents: dict[int, frozenset[tuple[bytes, bytes | None]] | None] = {}
        self._tried: set[bytes] = set()
        self.acknowledged: dict[int, tuple[float, float]] = {}
        self.failed = 0

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Write while the block runs, whether the writes before are answered or not: those of an outage hang."""
        clock = asyncio.get_running_loop().time
        under_way: set[asyncio.Task[None]] = set()

        async def write() -> None:
            begun = clock()
            try:
                revision = await self._write()
            except EtcdError:
                self.failed += 1
                return
            if revision:
                self.acknowledged[revision] = (begun, clock())

        async def begin() -> None:
            due = clock()
            while True:
                task = asyncio.create_task(write())
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                due = max(due + 1 / self._rate, clock() - 1)
                await asyncio.sleep(max(due - clock(), 0))

        beginning = asyncio.create_task(begin())
        try:
            yield
        finally:
            beginning.cancel()
            await asyncio.gather(beginning, *under_way, return_exceptions=True)

    async def finish(self) -> int:
        """One last put; returns its revision."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return (await self._client.put(self._key(0), self._value())).revision
                except EtcdError:
                    self.failed += 1

    def check(self, history: list[Change]) -> None:
        """The history has every acknowledged write, whole, and no value that was not tried."""
        by_revision: dict[int, list[tuple[bytes, bytes | None]]] = {}
        for revision, key, value in history:
            by_revision.setdefault(revision, []).append((key, value))
            assert value is None or value in self._tried
        assert [item[0] for item in history] == sorted(item[0] for item in history)
        values = [value for _, _, value in history if value is not None]
        assert len(values) == len(set(values)), "a value was put more often than it was told to be"
        for revision, content in self._contents.items():
            found = by_revision[revision]
            assert len(found) == len(set(found))
            if content is not None:
                assert frozenset(found) == content
            else:
                assert all(value is None for _, value in found)

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:03}"

    def _value(self) -> bytes:
        value = str(next(self._values)).encode()
        self._tried.add(value)
        return value

    async def _write(self) -> int:
        """Returns the revision, 0 if it changed nothing."""
        chance, draw = self._random.random(), self._random.randrange
        client = self._client
        if chance < 0.6:
            key, value = self._key(draw(100)), self._value()
            revision = (await client.put(key, value)).revision
            self._contents[revision] = frozenset({(key.encode(), value)})
        elif chance < 0.75:
            key = self._key(draw(100))
            deleted = await client.delete(key)
            if not deleted.deleted:
                return 0
            revision = deleted.revision
            self._contents[revision] = frozenset({(key.encode(), None)})
        elif chance < 0.78:
            several = await client.delete(prefix=f"{self._prefix}{draw(10):02}")
            if not several.deleted:
                return 0
            revision = several.revision
            self._contents[revision] = None
        else:
            written = {self._key(number): self._value() for number in self._random.sample(range(100), 5)}
            puts = (op.put(key, value) for key, value in written.items())
            revision = (await client.txn().then(*puts).commit()).revision
            self._contents[revision] = frozenset((key.encode(), value) for key, value in written.items())
        return revision


@dataclass
class Follower:
    """A watch of one kind, and the events that it delivered.

    Attributes:
        arguments: of `client.watch()`.
        wants: which changes it should deliver.
        is_slow: whether it rests now and then, so that its watch is taken off the server.
        is_renewed: whether it is closed and made again from behind its revision, now and then.
        every: the batches between two of these; None for the number that suits real servers.
        may_end: whether a compaction may end it.
        is_ended: whether one has.
        first: the first revision it should deliver.
        delivered: the events.
        seen: when each revision was delivered.
        watcher: its present watch.
    """

    arguments: dict[str, Any]
    wants: Callable[[Change], bool] = lambda _: True
    is_slow: bool = False
    is_renewed: bool = False
    every: int | None = None
    may_end: bool = False
    is_ended: bool = False
    first: int = 1
    delivered: list[Change] = field(default_factory=list)
    previous: list[tuple[int, bytes, bytes | None]] = field(default_factory=list)
    seen: dict[int, float] = field(default_factory=dict)
    reconnects: int = 0
    watcher: Watcher = field(init=False)

    async def enter(self, client: Client) -> None:
        """Begin to watch."""
        self._client = client
        self.watcher = client.watch(**self.arguments)
        await self.watcher.__aenter__()
        self.first = self.watcher.revision + 1

    async def run(self) -> None:
        """Follow, until it is cancelled."""
        try:
            await self._follow()
        except CompactedError:
            if not self.may_end:
                raise
            self.is_ended = True

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        covered = self.first - 1
        batches = self.watcher.batches()
        for number in count(1):
            batch = await anext(batches)
            now = clock()
            assert not batch or batch[0].revision > covered, "a revision came in two parts, or twice"
            assert batch.revision >= covered or batch.may_be_early
            if not batch.may_be_early:  # events that it covers may follow
                covered = batch.revision
            for event in batch:
                self.delivered.append(change(event))
                self.seen[event.revision] = now
                if event.prev_kv is not None:
                    self.previous.append((event.revision, event.key, event.prev_kv.value))
                assert not event.is_resync
            if self.is_slow and not number % (self.every or 200):
                await asyncio.sleep(0.7)
            if self.is_renewed and not number % (self.every or 100):
                assert self.watcher.revision >= covered
                self.reconnects += self.watcher.statistics().reconnects
                await self.watcher.aclose()
                self.watcher = self._client.watch(**{**self.arguments, "start_revision": covered + 1})
                async with asyncio.timeout(PATIENCE):
                    await self.watcher.__aenter__()
                batches = self.watcher.batches()

    @property
    def revision(self) -> int:
        """The revision of the last event that it delivered, 0 if there was none."""
        return self.delivered[-1][0] if self.delivered else 0

    def expected(self, history: list[Change]) -> list[Change]:
        """The events that it should have delivered."""
        return [item for item in history if item[0] >= self.first and self.wants(item)]

    def check(self, history: list[Change]) -> None:
        """It delivered its part of the history: all, once, in order, with the previous values."""
        expected = self.expected(history)
        assert self.delivered == (expected[: len(self.delivered)] if self.is_ended else expected), self.arguments
        if self.arguments.get("prev_kv"):
            there: dict[bytes, bytes] = {}
            previous = []
            for revision, key, value in history:
                if key in there and revision >= self.first:
                    previous.append((revision, key, there[key]))
                if value is None:
                    there.pop(key, None)
                else:
                    there[key] = value
            assert self.previous == previous


def kinds(prefix: str) -> list[Follower]:
    """Twenty watches, as different as they can be."""
    raw = prefix.encode()

    def has(*numbers: int) -> Callable[[Change], bool]:
        keys = {raw + b"%03d" % number for number in numbers}
        return lambda item: item[1] in keys

    everything: dict[str, Any] = {"prefix": prefix}
    return [
        Follower(everything),
        Follower(everything),
        Follower({**everything, "prev_kv": True}),
        Follower({**everything, "progress_notify": True}),
        Follower({**everything, "progress_notify": True, "prev_kv": True}),
        Follower({**everything, "start_revision": 1}),
        Follower({**everything, "start_revision": 1, "prev_kv": True}),
        Follower({**everything, "start_revision": 1, "fragment": False}),
        Follower({**everything, "fragment": False}),
        Follower({**everything, "filters": ["no_delete"]}, lambda item: item[2] is not None),
        Follower({**everything, "filters": ["no_put"]}, lambda item: item[2] is None),
        Follower({**everything, "filters": ["no_put"], "progress_notify": True}, lambda item: item[2] is None),
        Follower({**everything, "on_compaction": "resync"}),
        Follower({"key": prefix + "000"}, has(0)),
        Follower({"key": prefix + "001", "start_revision": 1}, has(1)),
        Follower({"key": prefix + "000", "range_end": prefix + "050"}, lambda item: item[1] < raw + b"050"),
        Follower({"from_key": prefix + "000"}, lambda item: item[1] >= raw + b"000"),
        Follower({**everything, "max_pending": 30_000}, is_slow=True),
        Follower({**everything, "progress_notify": True}, is_renewed=True),
        Follower({"all_keys": True}),
    ]


@asynccontextmanager
async def following(
    client: Client, prefix: str, followers: Sequence[Follower] = ()
) -> AsyncIterator[Sequence[Follower]]:
    """All kinds, or those that are given, follow while the block runs; what one raises is raised at its end."""
    followers = followers or kinds(prefix)
    async with AsyncExitStack() as stack:
        for follower in followers:
            await follower.enter(client)
            stack.push_async_callback(lambda one=follower: one.watcher.aclose())  # type: ignore[misc]
        tasks = [asyncio.create_task(follower.run()) for follower in followers]
        try:
            yield followers
        finally:
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
        for result in done:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result


async def caught_up(followers: Sequence[Follower], history: list[Change]) -> None:
    """Wait until every follower delivered the last change of its keys."""
    async with asyncio.timeout(PATIENCE):
        for follower in followers:
            expected = follower.expected(history)
            last = expected[-1][0] if expected else 0
            # It may be further: others go on to write what it watches.
            while not follower.is_ended and follower.revision < last:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)


async def read_history(endpoint: str, prefix: str, end: int, *, begin: int = 1, **options: Any) -> list[Change]:
    """Every change between two revisions, read of one member in one go, and checked by ranges at old revisions."""
    history: list[Change] = []
    async with Client(endpoint, timeout=PATIENCE, **options) as client:
        async with client.watch(prefix=prefix, start_revision=begin, max_pending=2**30) as watcher:
            async with asyncio.timeout(PATIENCE):
                async for event in watcher:
                    history.append(change(event))
                    if event.revision == end:
                        break
            assert watcher.statistics().reconnects == 0
        there: dict[bytes, bytes] = {}
        position = 0
        for revision in sorted({history[at * (len(history) - 1) // 50][0] for at in range(51)}):
            while position < len(history) and history[position][0] <= revision:
                _, key, value = history[position]
                position += 1
                if value is None:
                    there.pop(key, None)
                else:
                    there[key] = value
            found = await client.range(prefix=prefix, revision=revision)
            assert {kv.key: kv.value for kv in found.kvs} == there
    return history
