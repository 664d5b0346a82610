"""Ordered reads on three real members, one of which applies everything late."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from etcd_aio import Client, KeyValue, op
from etcd_aio.once import ExactlyOnce
from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.support.backends import ClientWithADetour
from tests.support.until import PATIENCE

if TYPE_CHECKING:
    from etcd_aio.store import Ordered

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

LAG = 0.05  # seconds
READERS = 16


class CountingClient(ClientWithADetour):
    """A client that counts its operations, by kind."""

    reads = writes = 0

    async def detour(self, operation: Any, **options: Any) -> Any:
        if operation.is_read_only:
            self.reads += 1
        else:
            self.writes += 1
        return await self.send(operation, **options)


@pytest.fixture
async def lagging() -> AsyncIterator[tuple[EtcdCluster, EtcdServer]]:
    """A cluster, and the member of it that is behind."""
    async with EtcdCluster(size=3, peer_proxies=True) as cluster:
        await cluster.wait_healthy()
        follower = (await cluster.followers())[0]
        cluster.lag(follower, LAG)
        await cluster.wait_healthy()
        yield cluster, follower


@pytest.mark.parametrize("reads", [2_000, pytest.param(100_000, marks=pytest.mark.nightly)])
async def test_no_answer_is_older_than_one_before(lagging: tuple[EtcdCluster, EtcdServer], reads: int) -> None:
    cluster, follower = lagging
    went_back = 0
    views: list[Ordered] = []

    async def read(client: CountingClient, times: int) -> None:
        nonlocal went_back
        view, seen, seen_put = client.ordered(), 0, 0
        views.append(view)
        for number in range(times):
            look = op.get("k", serializable=True)
            match number % 4:
                case 0:
                    revision = (await view.range("k", serializable=True)).revision
                case 1:
                    revision = (await view.txn().then(look).commit()).revision
                case 2:
                    kv = await view.get("k", serializable=True)
                    revision = max(seen, view.revision) if kv is None else view.revision
                    assert kv is None or kv.mod_revision >= seen_put
                case _:
                    # Beside it, the same without the view.
                    went_back += (await client.range("k", serializable=True)).revision < seen
                    revision = view.revision
            assert revision >= seen
            seen = revision
            if number % 100 == 0:
                seen_put = (await view.put("k", str(number))).revision
                seen = max(seen, seen_put)

    async def write(client: CountingClient) -> None:
        while True:
            await client.put("other", "v")

    async with CountingClient(cluster.endpoints) as client, CountingClient(cluster.endpoints) as writer:
        writing = asyncio.create_task(write(writer))
        times = reads * 4 // 3 // READERS
        async with asyncio.timeout(PATIENCE * 10), asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(read(client, times))
        writing.cancel()
        behind = (await client.maintenance.status(follower.endpoint)).header.member_id
        repeated = sum(view.statistics().repeated for view in views)
        assert client.reads == READERS * times + repeated  # one call more for each answer that was too old
        assert client.writes == READERS * -(-times // 100)  # and none for writes
        assert 0 < repeated < READERS * times
        answers = sum((Counter(view.statistics().behind) for view in views), Counter[int]())
        assert answers.most_common(1)[0][0] == behind
        assert went_back  # the member is behind, and a client alone shows it
        print(f"{READERS * times} reads, {repeated} repeated; without the view {went_back} went back")


async def test_a_mark_is_carried_to_another_process(lagging: tuple[EtcdCluster, EtcdServer]) -> None:
    """Session consistency: who is told the revision of a write sees the write, whichever member answers."""
    cluster, follower = lagging
    async with Client(cluster.endpoints) as writer, Client(follower.endpoint) as reader:
        for number in range(10):
            put = await writer.put("k", str(number))
            view = reader.ordered()
            view.revision = put.revision
            kv = await view.get("k", serializable=True)
            assert isinstance(kv, KeyValue)
            assert kv.mod_revision >= put.revision


async def test_watches_caches_and_scans_raise_the_mark(client: Client, prefix: str) -> None:
    view = client.ordered()
    async with view.watch(prefix=prefix) as watcher:
        put = await client.put(f"{prefix}a", "1")
        assert view.revision < put.revision
        assert (await anext(watcher)).revision == put.revision == view.revision
        with pytest.raises(Exception, match="batches"):
            watcher.batches()
    async with view.watch(prefix=prefix, start_revision=put.revision) as watcher:
        async for batch in watcher.batches():
            assert [event.key for event in batch] == [f"{prefix}a".encode()]
            break
        newer = await client.put(f"{prefix}b", "2")
        await watcher.next_batch()
        assert view.revision == newer.revision == watcher.revision
    async with view.cache(prefix=prefix) as cache:
        newest = await client.put(f"{prefix}c", "3")
        await cache.wait_revision(newest.revision)
        assert view.revision >= newest.revision
    scan = view.scan(prefix=prefix, page_size=2, serializable=True)
    assert [kv.value async for kv in scan] == [b"1", b"2", b"3"]
    assert view.revision >= scan.revision > newer.revision


async def test_it_serves_as_a_client_for_locks(client: Client, prefix: str) -> None:
    """It is a `Store`: what stands on a client stands on it too."""
    view = client.ordered()
    async with ExactlyOnce(view) as once:
        result = await once.put(f"{prefix}k", "v")
    assert view.revision >= result.revision
    async with view.lease(10, on_lost="signal") as lease:
        await view.put(f"{prefix}leased", "v", lease=lease)
        assert (await view.leases.time_to_live(lease, keys=True)).keys == (f"{prefix}leased".encode(),)
    assert await view.get(f"{prefix}leased", serializable=True) is None or view.revision
    assert (await view.delete(f"{prefix}k")).deleted == 1
    assert await view.versions()
