"""The traffic of one worker: calls drawn from a seed, one after the other, through a layer of the library."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio import Client, EtcdError, Key, KeyValue, op
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from tests.evidence import model
from tests.evidence.once import Once
from tests.evidence.operations import lone_range
from tests.evidence.recorded import Recorded
from tests.evidence.recorder import Mark, Recorder

if TYPE_CHECKING:
    from etcd_aio.cache import Cache

KEYS: Final = 10
STEM: Final = "key"
"""Each key begins with it; behind it is a digit, or the slots of exactly-once writes."""

LEASE_TTL: Final = 7200  # seconds: none expires while the report is written, since the model knows no time
_MOST_NOT_UNIQUE: Final = 2
"""Deletes and revocations at a time: to judge what may come of one without an answer takes long."""

_LONG_VALUE: Final = 40
_REST: Final = 0.05  # seconds after an error

Step: TypeAlias = Callable[["Worker"], Awaitable[None]]


@dataclass(slots=True)
class Shared:
    """What the workers of a report share.

    Attributes:
        numbers: of values, which are unlike each other.
        not_unique: calls under way that a log does not tell from others.
        revision: the newest that was seen.
        compacted: revisions that were named in compactions.
        oldest: the newest of these that is not of the future: what is older may be gone by now.
    """

    recorder: Recorder
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    not_unique: int = 0
    revision: int = 1
    compacted: set[int] = field(default_factory=set)
    oldest: int = 0


@dataclass(slots=True)
class Worker:
    """One worker.

    Args:
        client: its client.
        store: what its calls go through, recorded.
        stem: of its keys in that store.
        shared: with the other workers.
        random: chooses.
        rate: calls a second; 0 for as many as are answered.
        once: its exactly-once writes, if it makes them.
        cache: its cache, if it reads one.
    """

    client: Client
    store: Recorded
    stem: str
    shared: Shared
    random: Random
    rate: float
    once: Once | None = None
    cache: "Cache[KeyValue] | None" = None
    known: dict[str, tuple[int, int]] = field(default_factory=dict)
    leases: list[int] = field(default_factory=list)

    async def run(self, steps: Mapping[Step, int], is_over: Callable[[], bool]) -> None:
        """Take steps until it is over. After a write without an answer, read until there is one."""
        chosen, weights = list(steps), list(steps.values())
        while not is_over():
            step = self.random.choices(chosen, weights)[0]
            try:
                await step(self)
            except (ClientUsageError, InvalidRequestError):
                raise  # a mistake of this program
            except EtcdError:
                await asyncio.sleep(_REST * self.random.random())
                await self._recover(is_over)
            if self.rate:
                await asyncio.sleep(self.random.expovariate(self.rate))

    async def _recover(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            try:
                await read(self)
            except EtcdError:
                await asyncio.sleep(_REST * self.random.random())
            else:
                return

    def key(self) -> str:
        """One of the keys."""
        return f"{self.stem}{self.random.randrange(KEYS)}"

    def value(self) -> str:
        """A value that no other write has; some are long enough that the model has their hash."""
        value = f"v{next(self.shared.numbers)}"
        return value if self.random.random() < 0.9 else f"{value}-".ljust(_LONG_VALUE, "x")

    def saw(self, revision: int) -> None:
        """The store has reached a revision."""
        self.shared.revision = max(self.shared.revision, revision)

    @asynccontextmanager
    async def not_unique(self) -> AsyncIterator[bool]:
        """Whether one more call may be under way that a log does not tell from others."""
        is_free = self.shared.not_unique < _MOST_NOT_UNIQUE
        self.shared.not_unique += is_free
        try:
            yield is_free
        finally:
            self.shared.not_unique -= is_free


# Reads.


async def read(worker: Worker) -> None:
    key = worker.key()
    found = await worker.store.range(key)
    worker.saw(found.header.revision)
    kv = found.kvs[0] if found.kvs else None
    worker.known[key] = (kv.mod_revision, kv.version) if kv is not None else (0, 0)


async def read_list(worker: Worker) -> None:
    limit, keys_only = worker.random.choice(((0, False), (0, True), (3, False)))
    end = f"{worker.stem}:"
    found = await worker.store.range(f"{worker.stem}0", range_end=end, limit=limit, keys_only=keys_only)
    worker.saw(found.header.revision)
    for kv in found.kvs:
        worker.known[kv.key.decode()] = (kv.mod_revision, kv.version)


async def read_old(worker: Worker) -> None:
    await worker.store.range(worker.key(), revision=_old(worker))


async def list_old(worker: Worker) -> None:
    await worker.store.range(f"{worker.stem}0", range_end=f"{worker.stem}:", revision=_old(worker))


async def scan(worker: Worker) -> None:
    revision = worker.random.choice((0, 0, _old(worker)))
    worker.saw(await worker.store.listed(f"{worker.stem}0", f"{worker.stem}:", revision=revision))


async def read_serializable(worker: Worker) -> None:
    await worker.store.range(worker.key(), serializable=True)


async def list_serializable(worker: Worker) -> None:
    await worker.store.range(f"{worker.stem}0", range_end=f"{worker.stem}:", serializable=True)


def _old(worker: Worker) -> int:
    return max(1, worker.shared.revision - worker.random.randrange(40))


# Writes.


async def put(worker: Worker) -> None:
    worker.saw((await worker.store.put(worker.key(), worker.value())).header.revision)


async def compare_and_put(worker: Worker) -> None:
    key = worker.key()
    mod_revision, version = worker.known.pop(key, (0, 0))
    unchanged = Key(key).mod_revision == mod_revision
    if version and worker.random.random() < 0.3:
        unchanged = Key(key).version == version
    otherwise = [op.range(key)] if worker.random.random() < 0.5 else []
    writing = worker.store.txn().when(unchanged).then(op.put(key, worker.value())).otherwise(*otherwise)
    worker.saw((await writing.commit()).header.revision)


async def change_several(worker: Worker) -> None:
    first, second, third, fourth = (f"{worker.stem}{n}" for n in worker.random.sample(range(KEYS), 4))
    changes: list[op.Op] = [op.put(first, worker.value()), op.put(second, worker.value()), op.range(third)]
    if worker.random.random() < 0.5:
        changes.append(op.delete(fourth))
    worker.random.shuffle(changes)
    worker.saw((await worker.store.txn().then(*changes).commit()).header.revision)


async def delete(worker: Worker) -> None:
    """Delete a key; mostly as an interval that holds it alone, whose end is unlike any other in the log."""
    async with worker.not_unique() as is_free:
        if is_free:
            key = worker.key()
            end = lone_range(key, f"d{next(worker.shared.numbers)}") if worker.random.random() < 0.8 else None
            worker.saw((await worker.store.delete(key, range_end=end)).header.revision)


# Leases.


async def use_lease(worker: Worker) -> None:
    if not worker.leases:
        lease = worker.random.getrandbits(40) + 1
        await worker.store.grant(lease, LEASE_TTL)
        worker.leases.append(lease)
    elif worker.random.random() < 0.7:
        writing = worker.store.put(worker.key(), worker.value(), lease=worker.leases[0])
        worker.saw((await writing).header.revision)
    else:
        async with worker.not_unique() as is_free:
            if is_free:
                await worker.store.revoke(worker.leases.pop(), is_repeated=worker.random.random() < 0.5)


# Layers.


async def put_once(worker: Worker) -> None:
    assert worker.once is not None
    await worker.once.put(worker.key(), worker.value())


async def move_once(worker: Worker) -> None:
    assert worker.once is not None
    source, key = (f"{worker.stem}{number}" for number in worker.random.sample(range(KEYS), 2))
    await worker.once.move(source, key, worker.value())


async def read_cache(worker: Worker) -> None:
    """A current read of a cache is as linearizable as one of the store, at the revision that the cache has then."""
    cache = worker.cache
    assert cache is not None
    keys = model.options(f"{STEM}0", f"{STEM}:")
    found = await worker.shared.recorder.call(
        model.read(keys), cache.wait_current(), lambda _: model.range_answer(_content(cache), cache.revision)
    )
    if isinstance(found, EtcdError):
        raise found
    worker.shared.recorder.counts["current read of a cache"] += 1


async def look_at_cache(worker: Worker) -> None:
    assert worker.cache is not None
    keys = model.options(f"{STEM}0", f"{STEM}:")
    worker.shared.recorder.snapshot("cached read", keys, _content(worker.cache), worker.cache.revision)


def _content(cache: "Cache[KeyValue]") -> model.Json:
    found = cache.range(f"{STEM}0", range_end=f"{STEM}:")
    kvs = [cache.kv(key) for key in found]
    return model.found(model.key_value(kv) for kv in kvs if kv is not None)


# The operator's calls.


async def compact(worker: Worker) -> None:
    """Drop the history before a revision; now and then before one that is to come, or is dropped already."""
    newest = worker.shared.revision
    least, most = worker.random.choice(((0, 10), (10, 200)))
    chosen = max(2, newest - worker.random.randrange(least, most))
    if worker.random.random() < 0.1:
        chosen = newest + worker.random.randrange(1000, 2000)
    if chosen in worker.shared.compacted or worker.shared.revision < 50:
        return
    worker.shared.compacted.add(chosen)
    if chosen <= newest:
        worker.shared.oldest = max(worker.shared.oldest, chosen)
    found = await worker.shared.recorder.call(
        model.compact(chosen),
        worker.client.compact(chosen),
        lambda _: {"Compact": {}, "Revision": -1},
        Mark(f"compact:{chosen}"),
    )
    if isinstance(found, EtcdError):
        raise found


async def defragment(worker: Worker) -> None:
    endpoint = worker.random.choice(worker.client.endpoints)
    found = await worker.shared.recorder.call(
        model.defragment(),
        worker.client.maintenance.defragment(endpoint, timeout=5.0),
        lambda _: {"Defragment": {}, "Revision": -1},
    )
    if isinstance(found, EtcdError):
        raise found


_READS: Final[Mapping[Step, int]] = {read: 20, read_list: 6, read_old: 6, list_old: 2, scan: 3}
_WRITES: Final[Mapping[Step, int]] = {put: 24, compare_and_put: 20, change_several: 6, delete: 6, use_lease: 6}

WAYS: Final[Mapping[str, Mapping[Step, int]]] = {
    "plain": {**_READS, **_WRITES, read_serializable: 3, list_serializable: 1},
    "namespace": {**_READS, **_WRITES, read_serializable: 3},
    "ordered": {**_READS, **_WRITES, read_serializable: 20, list_serializable: 5},
    "exactly once": {read: 10, read_list: 3, put_once: 20, move_once: 8, compare_and_put: 5},
    "cache": {read_cache: 30, look_at_cache: 10, put: 10, compare_and_put: 5, read: 5},
}
"""The layers that workers use, with the weights of their steps."""

OPERATOR: Final[Mapping[Step, int]] = {compact: 3, defragment: 1, read: 2}
