"""cache/derived.py: a value that is made of a cache: when it is made, what its followers are told, and what ends it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from etcd_aio import Client, KeyRange, op
from etcd_aio.cache import Derived
from etcd_aio.errors import (
    CacheError,
    CacheTimeoutError,
    ClientClosedError,
    ClientUsageError,
    PermissionDeniedError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Group
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Count(Derived[int, int]):
    """How many keys there are."""

    usage = "a count cannot be awaited: write `async with Count(...) as count:`"
    _noun = "a count"

    def __init__(self, client: Client) -> None:
        super().__init__(client, KeyRange.of(prefix="a/"), what="keys of a/", logger=logging.getLogger("etcd_aio.test"))
        self.made = 0

    @property
    def value(self) -> int:
        return self._read()

    def _make(self) -> int:
        self.made += 1
        return len(self.cache)


class Fleeting(Count):
    """A count that must not be used after its end."""

    _stays = False


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd(latency=0.001) as fake:
        yield fake


async def put(client: Client, *names: str) -> int:
    return (await client.txn().then(*(op.put(f"a/{name}", "v") for name in names)).commit()).revision


async def deny(fake: FakeEtcd) -> list[Any]:
    """Refuse reads and watches from now on; the connections are lost, so that it shows."""
    faults = [fake.fault(method, status="PERMISSION_DENIED") for method in ("KV/Range", "KV/Txn", "Watch/Watch")]
    for fault in faults:
        fault.__enter__()
    fake.members[0].stop()
    fake.members[0].start()
    return faults


async def test_the_value_fits_the_content_and_is_made_once_for_many_changes(fake: FakeEtcd) -> None:
    async with fake.client() as client, Count(client) as count:
        assert (count.value, count.made) == (0, 1)
        heard: list[int] = []
        end = count.subscribe(heard.append)
        revision = 0
        for number in range(50):
            revision = await put(client, f"{number}")
        await count.wait_revision(revision)
        assert count.value == len(count.cache) == 50
        made = count.made
        assert [count.value for _ in range(5)] == [50] * 5
        await client.put("elsewhere", "v")
        await count.wait_current()
        assert count.made == made
        assert count.revision > revision
        assert heard == sorted(set(heard))
        end()
        end()
        await put(client, "more")
        assert await count.wait_change(timeout=1)
        assert not await count.wait_change(timeout=0.5)
        assert heard[-1] == 50


async def test_each_follower_is_told_the_newest_value(fake: FakeEtcd) -> None:
    async with fake.client() as client, Count(client) as count:
        one, other = count.changes(), count.changes()
        assert (await anext(one), await anext(other)) == (0, 0)
        waiting = asyncio.create_task(anext(one))
        closed = asyncio.create_task(anext(other, None))
        await asyncio.sleep(0.1)
        await other.aclose()
        assert await closed is None, "closing ends a step that is under way"
        await put(client, "b", "c")
        assert await waiting == 2
        cancelled = asyncio.create_task(anext(one))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await put(client, "d")
        assert await anext(one) == 3
        last = asyncio.create_task(anext(one, None))
        await asyncio.sleep(0.1)
    assert await last is None, "the end of the block ends it"


async def test_a_denied_permission_is_waited_for(fake: FakeEtcd, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.test")
    async with fake.client() as client, fake.client() as other, Count(client) as count:
        revision = await put(other, "b")
        await count.wait_revision(revision)
        faults = await deny(fake)
        await until(lambda: count.error is not None)
        assert isinstance(count.error, PermissionDeniedError)
        assert (count.value, count.revision, count.is_stale, count.has_ended) == (1, revision, True, False)
        with pytest.raises(CacheTimeoutError):
            await count.wait_revision(revision + 1, timeout=5)
        waiting = asyncio.create_task(count.wait_revision(revision + 1, timeout=PATIENCE))
        await asyncio.sleep(60)
        for fault in faults:
            fault.__exit__(None, None, None)
        await put(other, "c")
        await waiting
        assert (count.value, count.is_stale) == (2, False)
        assert count.error is None
    said = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.test"]
    assert len(said) == 2
    assert said[0].startswith("the keys of a/ cannot be read from etcd; the last ones stay, and this is tried again: ")
    assert said[1] == "the keys of a/ are read from etcd again"


@pytest.mark.parametrize("kind", [Count, Fleeting])
async def test_the_end(fake: FakeEtcd, kind: type[Count]) -> None:
    """The last value stays, unless it must not be used any more."""
    async with fake.client() as client:
        count = kind(client)
        for use in (lambda: count.value, count.changes):
            with pytest.raises(ClientUsageError, match="not entered: write `async with Count"):
                use()
        with pytest.raises(ClientUsageError, match="not entered"):
            await count.wait_current()
        async with count:
            with pytest.raises(ClientUsageError, match="entered once"):
                await count.__aenter__()
            await put(client, "b")
            await count.wait_current()
            assert count.value == 1
            waiting = asyncio.create_task(count.wait_revision(10**6, timeout=None))
            await asyncio.sleep(0.1)
        with pytest.raises(ClientUsageError, match="block has ended"):
            await waiting
        assert count.has_ended
        assert count.is_stale
        if kind is Count:
            assert count.value == 1
            assert [change async for change in count.changes()] == [1]
        else:
            with pytest.raises(CacheError):
                count.value  # noqa: B018
            with pytest.raises(CacheError):
                count.changes()


async def test_a_closed_client_ends_rings_and_groups(fake: FakeEtcd) -> None:
    client = await fake.client().connect()
    group = Group(client, "g")
    async with group.ring() as ring, group.cache() as members:
        assert members.view.names == ()
        iterations = [asyncio.create_task(drained(ring.changes())), asyncio.create_task(drained(members.changes()))]
        await asyncio.sleep(0.1)
        await client.aclose()
        async with asyncio.timeout(PATIENCE):
            assert [len(told) for told in await asyncio.gather(*iterations)] == [1, 1]
        assert isinstance(ring.error, ClientClosedError)
        assert isinstance(members.error, ClientClosedError)
        assert members.view.names == ()
        with pytest.raises(CacheError, match="a ring cannot be read"):
            ring.owner("k")


async def drained(changes: AsyncIterator[object]) -> list[object]:
    return [change async for change in changes]


async def test_a_ring_goes_on_when_it_may_be_read_again(fake: FakeEtcd) -> None:
    async with fake.client() as client, fake.client() as other, Group(client, "g").ring() as ring:
        await other.put("g/a", "")
        await ring.wait_current()
        before, changes = ring.epoch, ring.changes()
        await anext(changes)
        faults = await deny(fake)
        await until(lambda: ring.error is not None)
        assert ring.owner("k").name == "a"
        for fault in faults:
            fault.__exit__(None, None, None)
        await other.put("g/b", "")
        while (told := await anext(changes)).members != ("a", "b"):
            pass
        assert told.epoch == ring.epoch > before


async def test_a_key_that_came_and_went_wakes_the_followers_of_a_ring(fake: FakeEtcd) -> None:
    """The content is the same as before, so that nothing but the events tells of it."""
    network = fake.network()
    async with fake.client() as other, fake.client(engine=network.engine) as client, Group(client, "g").ring() as ring:
        changes = ring.changes()
        before = await anext(changes)
        waiting = asyncio.create_task(anext(changes))
        await asyncio.sleep(0.1)
        network.refuse()
        network.reset()
        await other.put("g/a", "")
        gone = await other.delete("g/a")
        network.heal()
        told = await asyncio.wait_for(waiting, PATIENCE)
        assert (told.members, told.epoch) == ((), gone.revision)
        assert told.epoch > before.epoch


async def test_no_task_is_left_when_the_application_cancels_them_all(fake: FakeEtcd) -> None:
    async with fake.client() as client, Count(client) as count:
        changes = count.changes()
        await anext(changes)
        waiting = asyncio.create_task(anext(changes, None))
        await asyncio.sleep(0.1)
        for task in asyncio.all_tasks():
            if "keys of a/" in task.get_name():
                task.cancel()
        assert await waiting is None
        assert count.has_ended
