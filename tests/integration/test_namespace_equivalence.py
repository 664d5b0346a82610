"""A namespace beside a store with its keys alone: random operations have the same outcomes, on real servers."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest

from etcd_aio import Client, Event, Header, Key, KeyRange, Store, TxnResult, op
from etcd_aio.errors import EtcdError
from etcd_aio.testing import EtcdServer
from tests.support.until import PATIENCE
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

NAMES = [b"app/", b"\xff\xff", b"a\xff", b"\0"]
OUTSIDE = [b"ap", b"app", b"app/", b"app0", b"a\xff", b"b", b"\xff", b"\xff\xff", b"\0", b"\0\x01", b"\x01", b"zz"]
LEASES = (101, 102, 103)
KEYS = (b"a", b"b", b"b/", b"b/c", b"\0", b"\xff", b"\xffx", b"c")


@pytest.fixture
async def own() -> AsyncIterator[Client]:
    """A client on a store of the test's own, for what concerns every key there is."""
    async with EtcdServer() as server, Client(server.endpoint) as client:
        yield client


@pytest.fixture
async def alone() -> AsyncIterator[Client]:
    """A client on a store of which a namespace is all."""
    async with EtcdServer() as server, Client(server.endpoint) as client:
        yield client


def outside(name: bytes) -> list[bytes]:
    return [key for key in OUTSIDE if key == name or not key.startswith(name)]


class Script:
    """Random operations and watches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def keys(self) -> dict[str, Any]:
        first, second = sorted(self.random.sample(KEYS, 2))
        forms: list[dict[str, Any]] = [
            {"key": first},
            {"prefix": first},
            {"from_key": first},
            {"all_keys": True},
            {"prefix": b""},
        ]
        if second != b"\0":
            forms.append({"key": first, "range_end": second})
        return self.random.choice(forms)

    def operation(self, depth: int = 0) -> op.Op:
        choose = self.random.choice
        keys, key = self.keys(), choose(KEYS)
        match self.random.randrange(7 if depth < 2 else 5):
            case 0:
                return op.get(key)
            case 1:
                return op.range(**keys, limit=choose([0, 2]), sort_by=choose(["key", "value", "version"]))
            case 2:
                deleted = KeyRange.of(**keys)
                if depth and deleted.range_end == b"\0":
                    # A put beside a delete of its key is refused in a txn; but etcd overlooks it if the delete has no
                    # end, and in a namespace every range has one.
                    deleted = KeyRange(key)
                return op.DeleteOp(deleted, prev_kv=choose([True, False]))
            case 3 | 4:
                lease = choose([None, None, *LEASES])
                return op.put(key, choose([b"", b"1", b"2"]), prev_kv=choose([True, False]), lease=lease)
            case _:
                when = [choose([Key(**keys).exists, Key(**keys).missing, Key(key).value == "1"])]
                return op.txn(when=when, then=self.branch(depth), otherwise=self.branch(depth))

    def branch(self, depth: int) -> list[op.Op]:
        return [self.operation(depth + 1) for _ in range(self.random.randrange(3))]

    def watch(self) -> dict[str, Any]:
        """Keys and options of a watch."""
        choose = self.random.choice
        return {
            **self.keys(),
            "prev_kv": choose([True, False]),
            "filters": choose([[], [], ["no_put"], ["no_delete"]]),
            "fragment": choose([None, True, False]),
        }


class Plain:
    """Results as plain values, with the revisions of one store as ordinal numbers: other keys have revisions too."""

    def __init__(self) -> None:
        self.ordinals: dict[int, int] = {0: 0}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Header):
            return None
        if is_dataclass(value) and not isinstance(value, type):
            return type(value).__name__, *(self.field(value, one.name) for one in fields(value) if one.compare)
        return tuple(map(self, value)) if isinstance(value, tuple) else value

    def field(self, value: Any, name: str) -> Any:
        found = getattr(value, name)
        if name in ("create_revision", "mod_revision"):
            return self.ordinals.setdefault(found, len(self.ordinals))
        return self(found)


@dataclass
class Side:
    """The namespace, or the store with its keys alone.

    Attributes:
        store: it.
        plain: its results.
        revision: of its last write.
        watchers: on it, in the order of their beginnings.
    """

    store: Store
    plain: Plain
    revision: int
    watchers: list[Any]

    async def outcome(self, operation: op.Op) -> Any:
        """What becomes of an operation, as a plain value."""
        try:
            result = await self.store.do(operation)
        except EtcdError as error:
            return type(error).__name__, error.call
        if isinstance(result, TxnResult) and result.operations:
            assert result[result.operations[0]] is result.responses[0]
        return self.plain(result)

    async def events(self, watcher: Any) -> list[Any]:
        """The events of a watch up to the last write."""
        await watcher.request_progress()
        events: list[Event] = []
        async with asyncio.timeout(PATIENCE):
            async for batch in watcher.batches():
                events += batch
                if batch.revision >= self.revision:
                    return [self.plain(event) for event in events]
        raise AssertionError("the watch has ended")


@pytest.mark.parametrize("name", NAMES, ids=repr)
async def test_it_equals_a_store_with_its_keys_alone(own: Client, alone: Client, name: bytes) -> None:
    need("3.4.25", "3.5.8", why="before it a mark could be sent ahead of the events it speaks of, also to a new watch")
    others = outside(name)
    for key in others:
        await own.put(key, "other")
    script = Script(len(name))
    choose = script.random.choice
    space = own.namespace(name)
    sides = [Side(store, Plain(), 0, []) for store in (space, alone)]
    pasts: list[list[int]] = []  # the revisions of the same write on both sides
    async with AsyncExitStack() as stack:

        async def watch(options: dict[str, Any], start_revisions: list[int]) -> None:
            for side, start_revision in zip(sides, start_revisions, strict=True):
                watcher = side.store.watch(**options, start_revision=start_revision)
                side.watchers.append(await stack.enter_async_context(watcher))

        async def write(key: bytes) -> None:
            for side in sides:
                side.revision = (await side.store.put(key, "")).revision
            pasts.append([side.revision for side in sides])

        for lease in LEASES:
            for side in sides:
                await side.store.leases.grant(3600, lease)
        await watch({"all_keys": True, "prev_kv": True}, [0, 0])
        lease = LEASES[0]
        for step in range(300):
            operation = script.operation()
            ours, theirs = [await side.outcome(operation) for side in sides]
            assert ours == theirs, operation
            if step % 10 == 0:
                await own.put(choose(others), "other", lease=choose([None, *LEASES]))
                ours, theirs = [side.plain(await side.store.range(all_keys=True)) for side in sides]
                assert ours == theirs
                lease = choose(LEASES)
                found = [await side.store.leases.time_to_live(lease, keys=True) for side in sides]
                assert sorted(found[0].keys) == sorted(found[1].keys)
            if step % 20 == 0:
                await write(choose(KEYS))
                await watch(script.watch(), choose([[0, 0], choose(pasts)]))
            if step % 50 == 49:
                for side in sides:
                    await side.store.leases.revoke(lease)
                    await side.store.leases.grant(3600, lease)
                for key in others:  # some of them had the lease
                    await own.put(key, "other")
        await write(b"end")
        for ours_on, theirs_on in zip(sides[0].watchers, sides[1].watchers, strict=True):
            assert await sides[0].events(ours_on) == await sides[1].events(theirs_on)
        assert len(sides[0].watchers) > 10
        delivered = [watcher.statistics().delivered for watcher in sides[0].watchers]
        assert delivered[0] > 100
        assert sum(count > 0 for count in delivered) > len(delivered) // 2
    for _ in range(10):
        keys = script.keys()
        ours, theirs = [
            [side.plain(kv) async for kv in side.store.scan(**keys, page_size=choose([1, 2, 100]))] for side in sides
        ]
        assert ours == theirs
    kept = [kv.key for kv in await own.range(all_keys=True) if kv.key == name or not kv.key.startswith(name)]
    assert kept == sorted(others)
    assert (await space.delete(all_keys=True)).deleted == (await alone.delete(all_keys=True)).deleted
    assert [kv.key for kv in await own.range(all_keys=True)] == sorted(others)
