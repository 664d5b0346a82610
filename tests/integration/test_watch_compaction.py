"""Compaction while a watch is not connected: random histories on a real server, against a model of the store."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from etcd_aio import Client, Event, Watcher, op
from etcd_aio.errors import CompactedError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.until import PATIENCE
from tests.support.versions import is_at_least

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine", "each_store")]

PREFIX = b"k/"

State = dict[bytes, tuple[int, bytes]]
"""Of each key under the prefix, its revision and its value."""


class Store:
    """A model of the server: every change under the prefix, and what there was at each revision."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self._client, self._chance = client, chance
        self.revision = 1
        self.changes: list[tuple[int, bytes, bytes | None]] = []
        self.states: list[State] = [{}, {}]  # by revision

    async def write(self) -> None:
        """Something random happens, on two keys of five at most, now and then outside of the prefix."""
        draw = self._chance.random()
        names = self._chance.sample([b"k/a", b"k/b", b"k/c", b"k/d", b"k/e"], 2)
        value = b"%d" % self.revision
        changes: list[tuple[bytes, bytes | None]] = []
        if draw < 0.15:
            revision = (await self._client.put("elsewhere", value)).revision
        elif draw < 0.55:
            revision = (await self._client.put(names[0], value)).revision
            changes += [(names[0], value)]
        elif draw < 0.8:
            revision = (await self._client.delete(names[0])).revision
            changes += [(names[0], None)]
        else:
            both = self._client.txn().then(op.put(names[0], value), op.delete(names[1]))
            revision = (await both.commit()).revision
            changes += [(names[0], value), (names[1], None)]
        if revision == self.revision:
            return  # there was nothing to delete
        assert revision == self.revision + 1
        self.revision = revision
        now = dict(self.states[-1])
        for key, content in changes:
            if content is not None:
                now[key] = (revision, content)
            elif now.pop(key, None) is None:
                continue
            self.changes.append((revision, key, content))
        self.states.append(now)

    def deletes_at(self, revision: int) -> bool:
        return any(at == revision and content is None for at, _, content in self.changes)

    async def put_last(self) -> None:
        """A put that every watch tells of."""
        self.revision = (await self._client.put(b"k/a", b"last")).revision
        self.changes.append((self.revision, b"k/a", b"last"))
        self.states.append({**self.states[-1], b"k/a": (self.revision, b"last")})


@dataclass
class Consumer:
    """A consumer of a watch, and its batches."""

    watcher: Watcher
    hides_deletes: bool = False
    batches: list[tuple[tuple[Event, ...], int]] = field(default_factory=list)
    error: CompactedError | None = None

    async def follow(self) -> None:
        try:
            async for batch in self.watcher.batches():
                self.batches.append((batch.events, batch.revision))
        except CompactedError as error:
            self.error = error

    def check(self, store: Store, begun: int) -> int:
        """Everything from the beginning on, or what stands for it; returns how many times something stood for it."""
        done, resyncs = begun, 0
        for events, revision in self.batches:
            assert revision >= done
            told = self._told(store, done, revision)
            # What is left when all keys were deleted is nothing, where deletes are hidden.
            is_resync = events[0].is_resync if events else bool(told) and self.hides_deletes
            if not is_resync:
                found = [(event.revision, event.key, event.value if event.is_put else None) for event in events]
                assert found == told
            else:
                resyncs += 1
                before, after = store.states[done], store.states[revision]
                puts = sorted((at, key, value) for key, (at, value) in after.items() if at > done)
                gone = [(revision, key, None) for key in sorted(before.keys() - after.keys())]
                expected = [*puts, *([] if self.hides_deletes else gone)]
                assert all(event.is_resync for event in events)
                found = [(event.revision, event.key, event.value if event.is_put else None) for event in events]
                assert found == expected
            done = revision
        assert not self._told(store, done, store.revision) or self.error is not None
        return resyncs

    def _told(self, store: Store, after: int, until: int) -> list[tuple[int, bytes, bytes | None]]:
        return [
            change
            for change in store.changes
            if after < change[0] <= until and not (self.hides_deletes and change[2] is None)
        ]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the state of a watch, which tells its consumer of events alone
            await asyncio.sleep(0.01)


async def test_random_histories(run_seed: int) -> None:
    chance = random.Random(run_seed)
    resyncs = errors = 0
    async with EtcdServer() as server, FaultProxy(server.endpoint) as proxy, Client(server.endpoint) as direct:
        store = Store(direct, chance)
        compacted = 0
        is_whole = is_at_least("3.5.16")  # older ones forget a delete at the very revision that is compacted to
        for _ in range(12):
            async with (
                Client(proxy.endpoint) as client,
                client.watch(prefix=PREFIX, on_compaction="resync") as both,
                client.watch(prefix=PREFIX, on_compaction="resync", filters=["no_delete"]) as puts,
                client.watch(prefix=PREFIX, on_compaction="resync", max_pending=1) as narrow,
                client.watch(prefix=PREFIX) as plain,
            ):
                begun = store.revision
                consumers = [Consumer(both), Consumer(puts, hides_deletes=True), Consumer(narrow), Consumer(plain)]
                tasks = [asyncio.create_task(one.follow()) for one in consumers]
                for _ in range(chance.randrange(1, 4)):
                    for _ in range(chance.randrange(12)):
                        await store.write()
                    proxy.refuse()
                    getattr(proxy, chance.choice(("cut", "reset")))()
                    for _ in range(chance.randrange(25)):
                        await store.write()
                    last = chance.randrange(max(store.revision - 20, 1), store.revision + 1)
                    if last > compacted and (is_whole or not store.deletes_at(last)):
                        compacted = last
                        await direct.compact(compacted)
                    proxy.accept()
                    for _ in range(chance.randrange(20)):  # while it comes back
                        await store.write()
                        await asyncio.sleep(chance.random() * 0.01)
                await store.put_last()  # a mark would not do: etcd gives none while a watch begins in the future
                for consumer, task in zip(consumers, tasks, strict=True):
                    await until(
                        lambda one=consumer, task=task: (
                            task.done()  # type: ignore[misc]
                            or bool(one.batches and one.batches[-1][1] >= store.revision)
                        )
                    )
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for consumer in consumers:
                    resyncs += consumer.check(store, begun)
                error = consumers[-1].error
                assert all(consumer.error is None for consumer in consumers[:-1])
                if error is not None:
                    errors += 1
                    assert plain.revision + 1 < error.compact_revision <= compacted
    assert resyncs, "no history led to a resync"
    assert errors, "no history led to an error"
