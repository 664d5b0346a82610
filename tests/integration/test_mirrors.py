"""Mirrors on real servers: whatever is killed, cut, compacted or full, the destination is what its checkpoint says."""

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio import Client, EtcdError, InvalidRequestError, op
from etcd_aio.errors import (
    ClientUsageError,
    EmptyKeyError,
    MirrorConflictError,
    MirrorError,
    NoSpaceError,
    PermissionDeniedError,
    RequestTooLargeError,
    StoreRolledBackError,
)
from etcd_aio.mirror import Checkpoint, Mirror, mirror
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from etcd_aio.testing.options import Membership
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.locks import metric, until
from tests.support.mirrors import contents, copy_of, has_ended, is_alive, running, wait
from tests.support.servers import progress_interval
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture(scope="session")
def other_server() -> Iterator[EtcdServer]:
    """The destination of tests that keep to their own prefix."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.fixture
async def other(other_server: EtcdServer) -> AsyncIterator[Client]:
    async with Client(other_server.endpoint) as client:
        yield client


@dataclass
class Pair:
    """Two clusters of a test's own, and a client of each."""

    source_server: EtcdServer
    server: EtcdServer
    source: Client
    destination: Client


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with (
        EtcdServer() as one,
        EtcdServer() as other,
        Client(one.endpoint) as source,
        Client(other.endpoint) as destination,
    ):
        yield Pair(one, other, source, destination)


async def put_many(client: Client, prefix: str, count: int, value: str = "v") -> int:
    revision = 0
    for start in range(0, count, 100):
        puts = [op.put(f"{prefix}{at:05}", value) for at in range(start, min(start + 100, count))]
        revision = (await client.txn().then(*puts).commit()).revision
    return revision


# Copying.


async def test_the_first_copy_and_every_change(client: Client, other: Client, prefix: str) -> None:
    last = await put_many(client, prefix, 2500)
    await put_many(other, f"{prefix}", 700, "v")  # equal already
    await other.put(f"{prefix}00003", "different")
    await other.put(f"{prefix}extra", "not at the source")
    copy = Mirror(client, other, prefix=prefix)
    assert (copy.revision, copy.statistics()) == (0, mirror.MirrorStatistics())
    async with running(copy) as task:
        await wait(copy, last, task)
        counters = copy.statistics()
        assert (counters.puts, counters.deletes, counters.compared, counters.split) == (1801, 1, 1, 0)
        assert await contents(other, prefix) == await contents(client, prefix)
        await client.put(f"{prefix}new", "1")
        await client.delete(f"{prefix}00007")
        last = (await client.put(f"{prefix}", "the prefix itself")).revision
        await wait(copy, last, task)
        assert await contents(other, prefix) == await contents(client, prefix)
        assert copy.statistics().compared == 1
        assert (
            repr(copy) == f"<Mirror KeyRange({prefix.encode()!r}, {prefix.encode()[:-1] + b'0'!r}) at revision {last}>"
        )
    state = await copy_of(other, prefix)
    assert state.checkpoint is not None
    assert (state.checkpoint.revision, state.checkpoint.is_complete) == (last, True)
    assert state.checkpoint.prefix == prefix.encode()


async def test_keys_that_vanish_while_it_is_down_are_deleted(client: Client, other: Client, prefix: str) -> None:
    last = await put_many(client, prefix, 50)
    async with running(first := Mirror(client, other, prefix=prefix)) as task:
        await wait(first, last, task)
    last = (await client.delete(f"{prefix}00000", range_end=f"{prefix}00030")).revision
    async with running(second := Mirror(client, other, prefix=prefix, takeover_delay=0.01)) as task:
        await wait(second, last, task)
        assert second.statistics().compared == 0
        assert (second.statistics().deletes, second.statistics().txns) == (30, 1)
    assert await contents(other, prefix) == await contents(client, prefix)


async def test_to_another_prefix_and_to_an_empty_one(pair: Pair) -> None:
    await pair.destination.put("zzz", "not of the mirror")
    last = await put_many(pair.source, "a/", 10)
    async with running(copy := Mirror(pair.source, pair.destination, prefix="a/", to_prefix="backup/a/")) as task:
        await wait(copy, last, task)
        last = (await pair.source.put("a/x", "1")).revision
        await pair.source.put("b", "outside")
        await wait(copy, last, task)
    assert await contents(pair.destination, "backup/a/") == await contents(pair.source, "a/")
    assert await pair.destination.get("zzz") is not None
    assert await pair.destination.get("__etcd_aio/mirror/backup/a/") is not None
    async with running(copy := Mirror(pair.source, pair.destination, prefix="a/", to_prefix="")) as task:
        await wait(copy, last, task)
        last = (await pair.source.delete("a/x")).revision
        await wait(copy, last, task)
    found = await contents(pair.destination, "")
    assert found.pop(b"__etcd_aio/mirror/")
    assert found == await contents(pair.source, "a/"), "everything belongs to the mirror"


async def test_a_key_that_would_be_empty_is_left_out(pair: Pair) -> None:
    """The prefix is a key itself, and the copies have none: etcd has no empty key."""
    await pair.source.put("a/", "the prefix itself")
    last = (await pair.source.put("a/x", "1")).revision
    copy = Mirror(pair.source, pair.destination, prefix="a/", to_prefix="")
    async with running(copy) as task:
        await wait(copy, last, task)
        await pair.source.put("a/", "again")
        last = (await pair.source.put("a/y", "1")).revision
        await wait(copy, last, task)
    found = await contents(pair.destination, "")
    assert found.pop(b"__etcd_aio/mirror/")
    assert found == {b"x": b"1", b"y": b"1"}


async def test_all_keys_from_cluster_to_cluster_in_a_chain(pair: Pair, other_server: EtcdServer) -> None:
    """The checkpoint of the first copy has the key of the second one's, which is left out."""
    async with EtcdServer() as third_server, Client(third_server.endpoint) as third:
        last = await put_many(pair.source, "", 30)
        first = Mirror(pair.source, pair.destination, prefix="")
        second = Mirror(pair.destination, third, prefix="")
        async with running(first) as task, running(second) as other_task:
            await wait(first, last, task)
            last = (await pair.source.put("marker", "1")).revision
            await wait(first, last, task)

            async def is_there() -> bool:
                return is_alive(other_task) and await third.get("marker") is not None

            await until(is_there)
            kv = await third.get("__etcd_aio/mirror/")
            assert kv is not None
            checkpoint = Checkpoint.parse(kv.value)
            assert checkpoint is not None
            assert checkpoint.cluster_id == (await pair.destination.range("k")).header.cluster_id
        found = await contents(third, "")
        del found[b"__etcd_aio/mirror/"]
        assert found == await contents(pair.source, "")


async def test_from_a_namespace_to_a_namespace(client: Client, other: Client, prefix: str) -> None:
    source, destination = client.namespace(f"{prefix}app/"), other.namespace(f"{prefix}copy/")
    await source.put("svc/a", "1")
    await other.put(f"{prefix}svc/outside", "1")
    last = (await source.put("svc/b", "1")).revision
    async with running(copy := Mirror(source, destination, prefix="svc/")) as task:
        await wait(copy, last, task)
        last = (await source.delete("svc/a")).revision
        await wait(copy, last, task)
    found = await contents(other, prefix)
    assert found.pop(b"copy/__etcd_aio/mirror/svc/")
    assert found == {b"copy/svc/b": b"1", b"svc/outside": b"1"}


async def test_a_prefix_of_the_same_cluster(client: Client, prefix: str) -> None:
    last = await put_many(client, f"{prefix}a/", 10)
    copy = Mirror(client, client, prefix=f"{prefix}a/", to_prefix=f"{prefix}b/")
    async with running(copy) as task:
        await wait(copy, last, task)
        last = (await client.put(f"{prefix}a/x", "1")).revision
        await wait(copy, last, task)
        last = (await client.put(f"{prefix}a/x", "2")).revision
        await wait(copy, last, task)
    assert await contents(client, f"{prefix}b/") == await contents(client, f"{prefix}a/")


async def test_a_mirror_of_its_own_writes_is_ended(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    with pytest.raises(InvalidRequestError, match="overlap in one store"):
        Mirror(client, client, prefix=prefix, to_prefix=f"{prefix}copy/")
    await put_many(client, f"{prefix}a/", 5)
    await client.put(f"{prefix}other", "1")
    before = await contents(client, prefix)
    async with Client(shared_server.endpoint) as same:
        for one, other in ((prefix, f"{prefix}copy/"), (f"{prefix}a/", prefix), (prefix, prefix)):
            copy = Mirror(client, same, prefix=one, to_prefix=other)
            async with running(copy) as task:
                with pytest.raises(MirrorError, match="are one cluster"):
                    await has_ended(task)
            assert await contents(client, prefix) == before, "nothing was copied, and nothing deleted"


async def test_two_clusters_with_one_id_are_not_taken_for_one() -> None:
    """Clusters that were set up with the same addresses, such as etcd's defaults, have the same id."""
    setup = Membership({"m0": "http://localhost:2380"})
    async with (
        EtcdServer(membership=setup) as one,
        EtcdServer(membership=setup) as two,
        Client(one.endpoint) as source,
        Client(two.endpoint) as destination,
    ):
        last = await source.put("a/1", "same")
        assert last.header.cluster_id == (await destination.range("k")).header.cluster_id
        async with running(copy := Mirror(source, destination, prefix="a/")) as task:
            await wait(copy, last.revision, task)
            found = await destination.get("a/1")
            assert found is not None
            for number in range(4):  # at least one has the revision of the first write to the destination
                last = await source.put(f"a/{number % 2}", "same")
                await wait(copy, last.revision, task)
            assert last.revision > found.mod_revision
        assert await contents(destination, "a/") == await contents(source, "a/")


async def test_namespaces_of_one_cluster_that_overlap_are_refused(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    await put_many(client, f"{prefix}app/a/", 5)
    await client.put(f"{prefix}other", "1")
    before = await contents(client, prefix)
    space = client.namespace(prefix)
    for source, destination, one, other in (
        (client, space, prefix, "x/"),
        (space, client, "x/", prefix),
        (client, space.ordered(), f"{prefix}app/a/", "app/"),
        (client.ordered(), space.namespace("app/"), f"{prefix}app/a/", "a/"),
    ):
        with pytest.raises(InvalidRequestError, match="overlap in one store"):
            Mirror(source, destination, prefix=one, to_prefix=other)
    with pytest.raises(InvalidRequestError, match="overlap in one store"):
        Mirror(client, client, prefix=f"{prefix}a/", to_prefix=f"{prefix}b/", checkpoint_key=f"{prefix}a/checkpoint")
    async with Client(shared_server.endpoint) as same:
        copy = Mirror(same, space, prefix=f"{prefix}app/a/", to_prefix="app/", checkpoint_key="checkpoint")
        async with running(copy) as task:
            with pytest.raises(MirrorError, match="are one cluster"):
                await has_ended(task)
    after = await contents(client, prefix)
    assert after.pop(b"checkpoint")
    assert after == before, "nothing was copied, and nothing deleted"


# Batches.


async def test_small_revisions_share_a_txn(client: Client, other: Client, prefix: str) -> None:
    last = await put_many(client, prefix, 10)
    async with running(first := Mirror(client, other, prefix=prefix)) as task:
        await wait(first, last, task)
    for number in range(500):
        last = (await client.put(f"{prefix}{number:05}", "w")).revision
    async with running(second := Mirror(client, other, prefix=prefix, takeover_delay=0.01)) as task:
        await wait(second, last, task)
        assert second.statistics().txns <= 10
    assert await contents(other, prefix) == await contents(client, prefix)


async def test_txns_stay_atomic_for_readers_of_the_destination(client: Client, other: Client, prefix: str) -> None:
    pairs = 40

    async def write(number: int) -> int:
        revision = 0
        for turn in range(25):
            keys = [f"{prefix}{number}/{side}" for side in "ab"]
            ops = [op.put(key, str(turn)) if (turn + number) % 5 else op.delete(key) for key in keys]
            revision = (await client.txn().then(*ops).commit()).revision
        return revision

    copy = Mirror(client, other, prefix=prefix, max_txn_ops=7)
    table: dict[bytes, bytes] = {}
    first = (await client.put(f"{prefix}~first", "1")).revision
    async with running(copy) as task, other.watch(prefix=prefix) as watcher:
        await wait(copy, first, task)  # the first copy is not atomic
        revisions = await asyncio.gather(*(write(number) for number in range(pairs)))
        await wait(copy, max(revisions), task)
        end = (await other.put(f"{prefix}~end", "1")).revision
        seen = 0
        async for batch in watcher.batches():
            by_revision: dict[int, list[Any]] = {}
            for event in batch:
                by_revision.setdefault(event.revision, []).append(event)
            for events in by_revision.values():
                for event in events:
                    if event.is_put:
                        table[event.key] = event.value
                    else:
                        table.pop(event.key, None)
                for number in range(pairs):
                    a, b = (table.get(f"{prefix}{number}/{side}".encode()) for side in "ab")
                    assert a == b, "half a txn of the source was seen"
                seen += 1
            if batch.revision >= end:
                break
        assert seen > 10
        assert copy.statistics().split == 0


async def test_a_revision_that_is_larger_than_a_txn_is_split_and_counted(
    client: Client, other: Client, prefix: str
) -> None:
    last = await put_many(client, prefix, 1)
    async with running(copy := Mirror(client, other, prefix=prefix)) as task:
        await wait(copy, last, task)
        last = (await client.txn().then(*(op.put(f"{prefix}{at}", "v") for at in range(128))).commit()).revision
        await wait(copy, last, task)
        assert copy.statistics().split == 1
        last = (await client.txn().then(*(op.put(f"{prefix}{at}", "w") for at in range(126))).commit()).revision
        await wait(copy, last, task)
        assert copy.statistics().split == 1
        big = b"x" * 400_000
        last = (await client.txn().then(*(op.put(f"{prefix}{at}", big) for at in range(3))).commit()).revision
        await wait(copy, last, task)
        assert copy.statistics().split == 2, "by its bytes"
    assert await contents(other, prefix) == await contents(client, prefix)


async def test_a_destination_that_accepts_less_gets_smaller_txns(client: Client, prefix: str) -> None:
    flags = ["--max-txn-ops=16", "--max-request-bytes=100000"]
    async with EtcdServer(flags=flags) as server, Client(server.endpoint) as other:
        last = await put_many(client, prefix, 300)
        async with running(copy := Mirror(client, other, prefix=prefix)) as task:
            await wait(copy, last, task)
            for number in range(30):
                last = (await client.put(f"{prefix}{number:05}", "x" * 20_000)).revision
            await wait(copy, last, task)
            assert await contents(other, prefix) == await contents(client, prefix)
            await client.put(f"{prefix}big", "x" * 200_000)
            with pytest.raises(RequestTooLargeError):
                await has_ended(task)


async def test_more_in_flight_than_memory_holds_is_not_read_ahead(client: Client, other: Client, prefix: str) -> None:
    """The watch holds 16 MiB and stops; nothing is lost."""
    copy = Mirror(client, other, prefix=prefix)
    async with running(copy) as task:
        last = (await client.put(f"{prefix}a", "1")).revision
        await wait(copy, last, task)
        writes = [client.put(f"{prefix}{at}", b"x" * 500_000) for at in range(60)]
        last = max(result.revision for result in await asyncio.gather(*writes))
        await wait(copy, last, task)
    assert await contents(other, prefix) == await contents(client, prefix)


# Going on.


async def test_a_compaction_while_it_is_down(pair: Pair) -> None:
    last = await put_many(pair.source, "a/", 300)
    async with running(copy := Mirror(pair.source, pair.destination, prefix="a/")) as task:
        await wait(copy, last, task)
    await pair.source.delete("a/00000", range_end="a/00100")
    await pair.source.put("a/00200", "w")
    last = (await pair.source.put("a/new", "1")).revision
    await pair.source.compact(last)
    async with running(copy) as task:  # the same object may run again
        await wait(copy, last, task)
        counters = copy.statistics()
        assert (counters.compared, counters.puts, counters.deletes) == (2, 302, 100), "only the differences are copied"
    assert await contents(pair.destination, "a/") == await contents(pair.source, "a/")


async def test_a_compaction_while_it_is_cut_off(pair: Pair) -> None:
    async with FaultProxy(pair.source_server.endpoint) as proxy, Client(proxy.endpoint) as source:
        last = await put_many(pair.source, "a/", 30)
        async with running(copy := Mirror(source, pair.destination, prefix="a/")) as task:
            await wait(copy, last, task)
            proxy.refuse()
            proxy.cut()
            await pair.source.delete("a/00000")
            last = (await pair.source.put("a/new", "1")).revision
            await pair.source.compact(last)
            proxy.accept()
            await wait(copy, last, task)
            assert copy.statistics().compared == 2
        assert await contents(pair.destination, "a/") == await contents(pair.source, "a/")


async def test_another_cluster_and_a_store_that_went_back(pair: Pair, client: Client, prefix: str) -> None:
    last = await put_many(pair.source, prefix, 30)
    async with running(copy := Mirror(pair.source, pair.destination, prefix=prefix)) as task:
        await wait(copy, last, task)
    last = await put_many(client, prefix, 20, "another cluster")
    async with running(copy := Mirror(client, pair.destination, prefix=prefix, takeover_delay=0.01)) as task:
        await wait(copy, last, task)
        assert copy.statistics().compared == 1
    assert await contents(pair.destination, prefix) == await contents(client, prefix)

    last = await put_many(pair.source, prefix, 30, "back")
    async with running(copy := Mirror(pair.source, pair.destination, prefix=prefix, takeover_delay=0.01)) as task:
        await wait(copy, last, task)
        await pair.source_server.restart(wipe=True)
        last = (await pair.source.put(f"{prefix}new", "1")).revision
        assert last == 2

        async def is_new() -> bool:
            return is_alive(task) and copy.revision == 2

        await until(is_new)
        assert await contents(pair.destination, prefix) == {b"new": b"1"}
        assert copy.statistics().compared == 2, "a wiped store keeps its cluster's id"
        last = (await pair.source.put(f"{prefix}more", "1")).revision
        await wait(copy, last, task)
    await pair.source_server.restart(wipe=True)
    assert (await pair.source.put(f"{prefix}third", "1")).revision < last
    async with running(copy := Mirror(pair.source, pair.destination, prefix=prefix, takeover_delay=0.01)) as task:
        await wait(copy, 2, task)
        assert (copy.revision, copy.statistics().compared) == (2, 1)
        assert await contents(pair.destination, prefix) == {b"third": b"1"}


async def test_a_lost_checkpoint_and_another_prefix_compare_everything(
    client: Client, other: Client, prefix: str
) -> None:
    last = await put_many(client, f"{prefix}a/", 30)
    key = f"{prefix}checkpoint"
    copy = Mirror(client, other, prefix=f"{prefix}a/", to_prefix=f"{prefix}c/", checkpoint_key=key)
    async with running(copy) as task:
        await wait(copy, last, task)
        await other.delete(f"{prefix}c/00001")  # by mistake
        await other.delete(key)
        last = (await client.put(f"{prefix}a/x", "1")).revision
        await wait(copy, last, task)
        assert copy.statistics().compared == 2
    assert await contents(other, f"{prefix}c/") == await contents(client, f"{prefix}a/")
    last = await put_many(client, f"{prefix}b/", 20, "w")
    copy = Mirror(client, other, prefix=f"{prefix}b/", to_prefix=f"{prefix}c/", checkpoint_key=key, takeover_delay=0.01)
    async with running(copy) as task:
        await wait(copy, last, task)
        assert copy.statistics().compared == 1
    assert await contents(other, f"{prefix}c/") == await contents(client, f"{prefix}b/")
    copy = Mirror(client, other, prefix=f"{prefix}b/", to_prefix=f"{prefix}d/", checkpoint_key=key, takeover_delay=0.01)
    async with running(copy) as task:
        await wait(copy, last, task)
        assert copy.statistics().compared == 1
    assert await contents(other, f"{prefix}d/") == await contents(client, f"{prefix}b/")
    for name in ("a/", "b/"):
        space = client.namespace(f"{prefix}{name}")
        last = (await space.put("y", "1")).revision
        copy = Mirror(space, other, prefix="", to_prefix=f"{prefix}d/", checkpoint_key=key, takeover_delay=0.01)
        async with running(copy) as task:
            await wait(copy, last, task)
        assert await contents(other, f"{prefix}d/") == await contents(client, f"{prefix}{name}")
    await other.put(key, "something else")
    with pytest.raises(MirrorError, match="not a checkpoint"):
        await copy.run()


async def test_an_ordered_source_that_has_seen_more_than_the_store_has_is_waited_for(
    client: Client, other: Client, prefix: str
) -> None:
    """With pauses, and the statistics say why."""
    head = (await client.put(f"{prefix}a", "1")).revision
    view = client.ordered()
    view.revision = head + 500
    async with running(copy := Mirror(view, other, prefix=prefix)) as task:

        async def says_why() -> bool:
            return is_alive(task) and isinstance(copy.statistics().error, StoreRolledBackError)

        await until(says_why)
        last = head
        while last < view.revision:
            last = (await client.put(f"{prefix}a", "2")).revision
        await wait(copy, last, task)
        assert copy.statistics().error is None
    assert await contents(other, prefix) == {b"a": b"2"}


async def test_a_quiet_prefix_is_not_overtaken_by_a_compaction() -> None:
    async with (
        EtcdServer(flags=[progress_interval(100)]) as one,
        EtcdServer() as two,
        Client(one.endpoint) as source,
        Client(two.endpoint) as destination,
    ):
        await source.put("a/x", "1")
        async with running(copy := Mirror(source, destination, prefix="a/")) as task:
            last = (await source.put("elsewhere", "1")).revision
            await wait(copy, last, task)
            assert copy.statistics().puts == 1
        state = await copy_of(destination, "a/")
        assert state.checkpoint is not None
        assert state.checkpoint.revision >= last


# Lost answers and two mirrors.


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.nightly)])
async def test_every_byte_of_the_answer_is_cut(
    client: Client, other: Client, other_server: EtcdServer, prefix: str, step: int
) -> None:
    cuts = range(0, 240, step)
    async with FaultProxy(other_server.endpoint) as proxy, Client(proxy.endpoint) as cut_off:
        copy = Mirror(client, cut_off, prefix=prefix)
        async with running(copy) as task:
            last = (await client.put(f"{prefix}k", "first")).revision
            await wait(copy, last, task)
            before = copy.statistics().txns
            for n_bytes in cuts:
                proxy.cut_after(n_bytes, "to_client", connection="open")
                last = (await client.put(f"{prefix}k", str(n_bytes))).revision
                await wait(copy, last, task)
                proxy.heal()
            assert copy.statistics().txns - before == len(cuts)
            assert copy.statistics().compared == 1
        kv = await other.get(f"{prefix}k")
        assert kv is not None
        assert (kv.value, kv.version) == (str(cuts[-1]).encode(), 1 + len(cuts)), "each was applied once"


async def test_a_second_mirror_is_refused(client: Client, other: Client, prefix: str) -> None:
    last = await put_many(client, prefix, 20)
    first, second = (Mirror(client, other, prefix=prefix) for _ in range(2))
    async with running(first) as task:
        await wait(first, last, task)
        async with running(second) as other_task:
            waiting = asyncio.create_task(second.wait_revision(2**60))
            async with asyncio.timeout(PATIENCE):
                while not other_task.done():
                    last = (await client.put(f"{prefix}x", "1")).revision
                    await wait(first, last, task)
            with pytest.raises(MirrorConflictError, match="another mirror writes the checkpoint") as caught:
                await has_ended(other_task)
        checkpoint = (await copy_of(other, prefix)).checkpoint
        assert checkpoint is not None
        assert checkpoint.writer == caught.value.writer
        assert second.statistics().txns == 0
        with pytest.raises(MirrorConflictError):
            await waiting
        last = (await client.put(f"{prefix}x", "2")).revision
        await wait(first, last, task)
    assert await contents(other, prefix) == await contents(client, prefix)


async def test_one_that_cannot_write_is_taken_over_and_writes_nothing_more(
    client: Client, other: Client, other_server: EtcdServer, prefix: str
) -> None:
    async with FaultProxy(other_server.endpoint) as proxy, Client(proxy.endpoint) as cut_off:
        last = await put_many(client, prefix, 20)
        first = Mirror(client, cut_off, prefix=prefix)
        async with running(first) as task:
            await wait(first, last, task)
            proxy.black_hole()
            last = (await client.put(f"{prefix}x", "1")).revision
            second = Mirror(client, other, prefix=prefix, takeover_delay=0.1)
            async with running(second) as other_task:
                await wait(second, last, other_task)
                last = (await client.put(f"{prefix}x", "2")).revision
                await wait(second, last, other_task)
                version = await other.get(f"{prefix}x")
                proxy.heal()
                with pytest.raises(MirrorConflictError):
                    await has_ended(task)
                assert await other.get(f"{prefix}x") == version
                last = (await client.put(f"{prefix}x", "3")).revision
                await wait(second, last, other_task)


# Waiting, and what ends it.


async def test_a_full_destination_is_waited_for(client: Client, prefix: str) -> None:
    async with (
        EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server,
        Client(server.endpoint) as other,
        running(copy := Mirror(client, other, prefix=prefix)) as task,
    ):
        last = (await client.put(f"{prefix}k", "1")).revision
        await wait(copy, last, task)
        with suppress(NoSpaceError):
            for number in range(500):
                await other.put(f"filler{number}", b"x" * 100_000)
        last = (await client.put(f"{prefix}k", "2")).revision

        async def waits() -> bool:
            return is_alive(task) and isinstance(copy.statistics().error, NoSpaceError)

        await until(waits)
        assert not task.done()
        deleted = await other.delete(prefix="filler")
        await other.compact(deleted.revision, physical=True)  # or it is not smaller after the next step
        await other.maintenance.defragment(server.endpoint)
        await other.maintenance.disarm("nospace")
        await wait(copy, last, task)
        assert copy.statistics().error is None
        assert await contents(other, prefix) == {b"k": b"2"}


async def test_outages_of_both_sides_are_waited_for(pair: Pair) -> None:
    last = (await pair.source.put("a/x", "1")).revision
    copy = Mirror(pair.source, pair.destination, prefix="a/")
    assert not copy.statistics().is_connected

    async def waits() -> bool:
        return is_alive(task) and isinstance(copy.statistics().error, EtcdError)

    async def is_connected() -> bool:
        return is_alive(task) and copy.statistics().is_connected

    async def is_cut_off() -> bool:
        return not await is_connected()

    async with running(copy) as task:
        await wait(copy, last, task)
        await until(is_connected)
        await pair.server.kill()
        last = (await pair.source.put("a/x", "2")).revision
        await until(waits)
        await pair.source_server.kill()
        await until(is_cut_off)
        await pair.server.restart()
        await pair.source_server.restart()
        await wait(copy, last, task)
        last = (await pair.source.put("a/x", "3")).revision
        await wait(copy, last, task)
        assert copy.statistics().error is None
        assert copy.statistics().is_connected
    assert not copy.statistics().is_connected
    assert await contents(pair.destination, "a/") == {b"x": b"3"}


@pytest.mark.parametrize("side", ["source", "destination"])
async def test_another_cluster_at_the_address_is_waited_out(pair: Pair, side: str) -> None:
    """The client talks to one cluster, so nothing is copied from or to another; a new client copies the difference."""
    last = (await pair.source.put("a/x", "1")).revision
    server = pair.source_server if side == "source" else pair.server
    async with running(copy := Mirror(pair.source, pair.destination, prefix="a/")) as task:
        await wait(copy, last, task)
        await server.rejoin(Membership({server.name: "http://localhost:2380"}))
        async with Client(server.endpoint) as client:
            for number in range(10):  # beyond the revision of the checkpoint
                await client.put("a/other", str(number))
            if side == "destination":
                await pair.source.put("a/x", "2")

            async def waits() -> bool:
                return is_alive(task) and "ClusterChangedError" in str(copy.statistics().error)

            async def is_cut_off() -> bool:
                return is_alive(task) and not copy.statistics().is_connected

            await until(waits if side == "destination" else is_cut_off)
            if side == "destination":
                assert await contents(client, "a/") == {b"other": b"9"}
            else:
                assert await contents(pair.destination, "a/") == {b"x": b"1"}
            task.cancel()
            await asyncio.wait([task])
            assert copy.statistics().error is None, "nothing is repeated any more"
            source, destination = (client, pair.destination) if side == "source" else (pair.source, client)
            async with running(second := Mirror(source, destination, prefix="a/", takeover_delay=0.01)) as other_task:
                last = (await source.put("a/y", "1")).revision
                await wait(second, last, other_task)
                assert second.statistics().compared == 1
            assert await contents(destination, "a/") == await contents(source, "a/")


async def test_missing_permissions_are_raised(client: Client, prefix: str) -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        await client.put(f"{prefix}k", "1")
        async with Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as other:
            with pytest.raises(PermissionDeniedError):
                await Mirror(client, other, prefix=prefix, to_prefix="app/").run()
            allowed = Mirror(client, other, prefix=prefix, to_prefix="app/copy/", checkpoint_key="app/checkpoint")
            async with running(allowed) as task:
                await wait(allowed, 1, task)
            with pytest.raises(PermissionDeniedError):
                await Mirror(other, client, prefix="secret/", to_prefix=f"{prefix}x/").run()


async def test_a_closed_client_ends_it(shared_server: EtcdServer, other: Client, prefix: str) -> None:
    source = await Client(shared_server.endpoint).connect()
    async with running(copy := Mirror(source, other, prefix=prefix)) as task:
        last = (await source.put(f"{prefix}k", "1")).revision
        await wait(copy, last, task)
        with pytest.raises(ClientUsageError, match="is running"):
            await copy.run()
        waiting = asyncio.create_task(copy.wait_revision(last + 1000))
        await source.aclose()
        with pytest.raises(ClientUsageError):
            await has_ended(task)
        with pytest.raises(ClientUsageError):
            await waiting


async def test_wait_ends_with_the_mirror(client: Client, other: Client, prefix: str) -> None:
    copy = Mirror(client, other, prefix=prefix)
    waiting = asyncio.create_task(copy.wait_revision(2**60))
    async with running(copy):
        await copy.wait_revision(1)
        assert not waiting.done()
    with pytest.raises(ClientUsageError, match="was cancelled"):
        await waiting
    last = (await client.put(f"{prefix}k", "1")).revision
    waiting = asyncio.create_task(copy.wait_revision(last))
    async with running(copy), asyncio.timeout(PATIENCE):
        await waiting


@pytest.mark.parametrize(
    "arguments",
    [
        {"prefix": 7},
        {"max_txn_ops": 0},
        {"checkpoint_key": ""},
        {"takeover_delay": -1.0},
        {"takeover_delay": float("nan")},
        {"takeover_delay": "1"},
        {"to_prefix": 7},
    ],
)
async def test_invalid_arguments_are_refused(client: Client, other: Client, arguments: dict[str, Any]) -> None:
    keywords: dict[str, Any] = {"prefix": "a/"} | arguments
    with pytest.raises((InvalidRequestError, EmptyKeyError, TypeError)):
        Mirror(client, other, **keywords)


async def test_it_is_cancelled_at_every_await(pair: Pair) -> None:
    """Whenever that is: no task and no watch stays, and the next one copies exactly what is missing."""
    turns = 0
    last = await put_many(pair.source, "a/", 260)
    while True:
        copy = Mirror(pair.source, pair.destination, prefix="a/", takeover_delay=0)
        task: asyncio.Task[None] = asyncio.create_task(copy.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled()
        assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("etcd_aio mirror")]
        if copy.revision == last and copy.statistics().txns > 4:
            break
        if copy.revision == last:
            if turns > 400:
                break
            await pair.destination.delete("__etcd_aio/mirror/a/")  # from the beginning
            await pair.destination.delete("a/00000", range_end="a/00200")
        turns += 1 if turns < 100 else 41
        assert turns < 20_000
    last = (await pair.source.put("a/x", "1")).revision
    async with running(copy := Mirror(pair.source, pair.destination, prefix="a/", takeover_delay=0)) as task:
        await wait(copy, last, task)
    assert await contents(pair.destination, "a/") == await contents(pair.source, "a/")

    async def is_clean() -> bool:
        return not await metric(pair.source_server, "etcd_debugging_mvcc_watcher_total")

    await until(is_clean)


# Killed.


class Load:
    """Writes to a source: single puts, deletes of ranges, small txns, and now and then one that has to be split."""

    def __init__(self, client: Client, prefix: str, seed: int) -> None:
        self.client, self.prefix = client, prefix
        self.random = random.Random(seed)
        self.writes = 0

    async def write(self) -> None:
        draw = self.random
        key = f"{self.prefix}{draw.randrange(300):03}"
        match draw.randrange(10):
            case 0:
                await self.client.delete(key, range_end=f"{key[:-1]}~")
            case 1 if draw.random() < 0.1:
                await self.client.delete(key, range_end=f"{self.prefix}~")
            case 2:
                picked = draw.sample(range(300), draw.randrange(2, 60))
                puts = [op.put(f"{self.prefix}{at:03}", str(self.writes)) for at in picked]
                await self.client.txn().then(*puts).commit()
            case _:
                await self.client.put(key, str(self.writes))
        self.writes += 1

    async def run(self) -> None:
        while True:
            await self.write()


NIGHTLY = [pytest.param(10, part, marks=pytest.mark.nightly) for part in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "part"), [(2, -1), *NIGHTLY])
async def test_killed_and_restarted_under_load(pair: Pair, rounds: int, part: int, run_seed: int) -> None:
    """The process of the mirror is killed, the source compacted in between; the copy is what its checkpoint says."""
    seed = run_seed * 100 + part
    draw = random.Random(seed)
    complete = split = 0
    load = Load(pair.source, "s/", seed)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(load.run())
        command = (sys.executable, "-m", "tests.support.mirrors", pair.source_server.endpoint, pair.server.endpoint)
        before = (await pair.destination.range("k")).revision
        for number in range(rounds):
            process = await asyncio.create_subprocess_exec(*command, "s/", "d/")
            try:
                await until_moved(pair, before, process)
                await asyncio.sleep(draw.random() * 0.5)  # anywhere
            finally:
                process.kill()
                await process.wait()
            copy = await copy_of(pair.destination, "d/")
            assert copy.checkpoint is not None
            if copy.checkpoint.revision and copy.checkpoint.is_complete:
                complete += 1
                assert copy.contents == await contents(pair.source, "s/", copy.checkpoint.revision), f"round {number}"
            elif copy.checkpoint.revision:
                split += 1
                await assert_between(pair, copy.contents, copy.checkpoint.revision)
            before = (await pair.destination.range("k")).revision
            if draw.random() < 0.5:
                await pair.source.compact((await pair.source.range("k")).revision)
        writing.cancel()
    assert complete + split > 0
    assert load.writes > rounds
    last = (await pair.source.put("s/end", "1")).revision
    async with running(final := Mirror(pair.source, pair.destination, prefix="s/", to_prefix="d/")) as task:
        await wait(final, last, task)
    assert await contents(pair.destination, "d/") == await contents(pair.source, "s/")
    print(f"{rounds} kills, {complete} at a complete checkpoint, {split} within a split revision, {load.writes} writes")


async def test_one_that_was_stopped_is_refused_when_it_goes_on(pair: Pair) -> None:
    """Its process is stopped for longer than any timeout of the takeover, with writes on the way."""
    command = (sys.executable, "-m", "tests.support.mirrors", pair.source_server.endpoint, pair.server.endpoint)
    before = (await pair.destination.range("k")).revision
    await pair.source.put("s/0", "0")
    process = await asyncio.create_subprocess_exec(*command, "s/", "d/", stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        await until_moved(pair, before, process)
        await asyncio.gather(*(pair.source.put(f"s/{number}", "1") for number in range(100)))
        process.send_signal(signal.SIGSTOP)
        results = await asyncio.gather(*(pair.source.put(f"s/{number}", "2") for number in range(200)))
        second = Mirror(pair.source, pair.destination, prefix="s/", to_prefix="d/", takeover_delay=0.1)
        async with running(second) as task:
            await wait(second, max(result.revision for result in results), task)
            process.send_signal(signal.SIGCONT)
            reading = asyncio.create_task(process.stderr.read())
            async with asyncio.timeout(PATIENCE):
                while not reading.done():
                    last = (await pair.source.put("s/x", "3")).revision
                    await wait(second, last, task)
            assert b"MirrorConflictError" in await reading
        assert await contents(pair.destination, "d/") == await contents(pair.source, "s/")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
async def test_leaders_of_both_clusters_are_killed_under_load() -> None:
    """A failover ends no mirror, and loses and repeats nothing."""
    async with (
        EtcdCluster() as one,
        EtcdCluster() as two,
        Client(one.endpoints) as source,
        Client(two.endpoints) as destination,
        running(copy := Mirror(source, destination, prefix="s/", to_prefix="d/")) as task,
    ):
        load = Load(source, "s/", 1)
        first = (await source.put("s/first", "1")).revision
        await wait(copy, first, task)
        for cluster in (two, one, two):
            leader = await cluster.leader()
            await leader.kill()
            await cluster.leader(other_than=leader)
            for _ in range(50):
                with suppress(EtcdError):  # a write of the load may be cut off
                    await load.write()
            last = (await source.put("s/last", str(load.writes), timeout=PATIENCE)).revision
            await wait(copy, last, task)
            await leader.restart()
        assert await contents(destination, "d/") == await contents(source, "s/")
        assert copy.statistics().compared == 1


async def assert_between(pair: Pair, copy: dict[bytes, bytes], revision: int) -> None:
    """A revision that is split is copied in part: each key is as before it, or as after it."""
    async with pair.source.watch(prefix="s/", start_revision=revision + 1) as watcher:
        split = (await anext(watcher)).revision
    before, after = await contents(pair.source, "s/", revision), await contents(pair.source, "s/", split)
    for key in before.keys() | after.keys() | copy.keys():
        assert copy.get(key) in (before.get(key), after.get(key))


async def until_moved(pair: Pair, before: int, process: asyncio.subprocess.Process) -> None:
    """Wait until a mirror has written something."""

    async def has_written() -> bool:
        assert process.returncode is None, "the mirror has ended"
        return (await pair.destination.range("k")).revision > before

    await until(has_written)
