"""Optimistic writes on real servers: whatever is cut, the verdict is that of the store."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest

from etcd_aio import Candidate, Client, EtcdError, Operation
from etcd_aio.errors import CompactedError
from etcd_aio.recipes import Kubernetes, OptimisticResult
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support.recipes import golayers
from tests.support.tampered import TamperedClient
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    """A member of this test's own: nothing else writes to it."""
    async with EtcdServer() as server:
        yield server


def patient(endpoint: str) -> Client:
    """A client with time for what a busy machine delays."""
    return Client(endpoint, timeout=PATIENCE, connect_timeout=PATIENCE)


async def seen(client: Client, key: str) -> int:
    """The revision to expect."""
    kv = await client.get(key)
    assert kv is not None
    return kv.mod_revision


async def answer_bytes(server: EtcdServer, key: str) -> int:
    """The size of what a server sends for an optimistic put."""
    async with FaultProxy(server.endpoint) as proxy, Client(proxy.endpoint) as client:
        expected = (await client.put(key, "start")).revision
        before = proxy.statistics().bytes_to_client
        assert await client.kubernetes().optimistic_put(key, "measured", expected)
        return proxy.statistics().bytes_to_client - before


async def test_every_byte_of_the_answer_cut(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    """`succeeded` is true if and only if the store has the write, and that at the revision told."""
    size = await answer_bytes(shared_server, f"{prefix}k")
    turns = asyncio.Semaphore(16)

    async def cut_at(n_bytes: int) -> None:
        """Each with a connection of its own: one that has broken often is dialled ever later."""
        key = f"{prefix}{n_bytes}"
        async with turns, FaultProxy(shared_server.endpoint) as proxy, patient(proxy.endpoint) as cut:
            expected = (await cut.put(key, "start")).revision
            proxy.cut_after(n_bytes, "to_client", connection="open")
            result = await cut.kubernetes().optimistic_put(key, f"value {n_bytes}", expected)
            kv = await client.get(key)
            assert kv is not None
            assert (result.succeeded, result.revision) == (True, kv.mod_revision)
            assert (kv.text(), kv.version) == (f"value {n_bytes}", 2)
            # Of other bytes: the cut may come only now, and the same ones could not be told from the write before.
            again = await cut.kubernetes().optimistic_put(key, f"late {n_bytes}", expected)
            assert (again.succeeded, again.kv) == (False, kv)

    assert size > 0
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for n_bytes in range(size + 1):
            group.create_task(cut_at(n_bytes))


async def test_every_byte_of_the_answer_cut_while_others_write(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    """Against the history of the key: each revision has one writer, and is told to that one."""
    key = f"{prefix}k"
    size = await answer_bytes(shared_server, f"{prefix}other")
    first = (await client.put(key, "start")).revision
    told: dict[int, bytes] = {}
    conflicts = 0

    async def write(through: Client, value: bytes, proxy: FaultProxy | None = None, n_bytes: int = 0) -> bool:
        nonlocal conflicts
        kubernetes = through.kubernetes()
        found = await kubernetes.get(key)
        assert found.kv is not None
        if proxy is not None:
            proxy.cut_after(n_bytes, "to_client", connection="open")
        result = await kubernetes.optimistic_put(key, value, found.kv.mod_revision)
        if result.succeeded:
            assert result.revision not in told
            told[result.revision] = value
        else:
            conflicts += 1
            assert result.kv is not None
            assert result.kv.mod_revision > found.kv.mod_revision
        return result.succeeded

    async def write_and_lose(worker: int) -> None:
        for n_bytes in range(worker, size + 1, 8):
            async with FaultProxy(shared_server.endpoint) as proxy, patient(proxy.endpoint) as cut:
                await write(cut, b"cut %d" % n_bytes, proxy, n_bytes)

    async def write_on(cutting: "asyncio.Future[list[None]]") -> None:
        number = 0
        while not cutting.done():
            number += await write(client, b"direct %d" % number)

    async with asyncio.timeout(PATIENCE):
        cutting = asyncio.gather(*(write_and_lose(worker) for worker in range(8)))
        await write_on(cutting)
        await cutting
    in_store: dict[int, bytes] = {}
    last = await seen(client, key)
    async with client.watch(key, start_revision=first + 1) as watcher:
        async for event in watcher:
            in_store[event.revision] = event.value
            if event.revision == last:
                break
    assert told == in_store
    assert conflicts


async def test_a_lost_answer_of_a_delete(shared_server: EtcdServer, prefix: str) -> None:
    key = f"{prefix}k"
    async with TamperedClient(shared_server.endpoint) as client:
        put = await client.put(key, "v")
        client.lose_answer(lambda operation: not operation.is_read_only)
        result = await client.kubernetes().optimistic_delete(key, put.revision)
        async with client.watch(key, start_revision=put.revision + 1) as watcher:
            deleted = await anext(watcher)
        assert (result.succeeded, result.revision, deleted.is_delete) == (True, deleted.revision, True)
        assert not await client.kubernetes().optimistic_delete(key, put.revision)


async def test_another_writer_after_the_lost_answer_does_not_hide_it(shared_server: EtcdServer, prefix: str) -> None:
    key = f"{prefix}k"
    async with TamperedClient(shared_server.endpoint) as client, Client(shared_server.endpoint) as other:
        put = await client.put(key, "v")
        client.lose_answer(lambda operation: not operation.is_read_only)

        async def write_too(operation: Operation[Any]) -> None:
            if client.sent.count(operation) == 2:  # the put is sent again
                await other.put(key, "theirs")

        client.before = write_too
        result = await client.kubernetes().optimistic_put(key, "mine", put.revision)
        kv = await other.get(key, revision=result.revision)
        assert kv is not None
        assert (result.succeeded, kv.text(), kv.mod_revision) == (True, "mine", result.revision)
        assert await seen(other, key) > result.revision


async def test_a_true_conflict_behind_a_request_that_was_lost(shared_server: EtcdServer, prefix: str) -> None:
    key = f"{prefix}k"
    async with TamperedClient(shared_server.endpoint) as client, Client(shared_server.endpoint) as other:
        put = await client.put(key, "v")
        client.hold_back(lambda operation: not operation.is_read_only)
        await other.put(key, "theirs")
        result = await client.kubernetes().optimistic_put(key, "mine", put.revision)
        assert not result.succeeded
        assert result.kv is not None
        assert result.kv.text() == "theirs"


async def test_a_compacted_history_is_said(shared_server: EtcdServer, prefix: str) -> None:
    key = f"{prefix}k"
    async with TamperedClient(shared_server.endpoint) as client, Client(shared_server.endpoint) as other:
        put = await client.put(key, "v")
        client.lose_answer(lambda operation: not operation.is_read_only)

        async def compact(operation: Operation[Any]) -> None:
            if client.sent.count(operation) == 2:
                await other.compact((await other.put(key, "later")).revision)

        client.before = compact
        with pytest.raises(EtcdError) as caught:
            await client.kubernetes().optimistic_put(key, "mine", put.revision)
        assert caught.value.maybe_applied
        assert isinstance(caught.value.__cause__, CompactedError)


async def test_through_exactly_once_writes(shared_server: EtcdServer, prefix: str) -> None:
    """Equal bytes of two writers are told apart, and a new key is created once."""
    key = f"{prefix}k"
    async with TamperedClient(shared_server.endpoint) as client, client.exactly_once() as once:
        kubernetes = client.kubernetes(writer=once)
        await once.put(f"{prefix}other", "v")  # there is a slot
        client.lose_answer(lambda operation: not operation.is_read_only)
        result = await kubernetes.optimistic_put(key, "mine", 0)
        assert result.succeeded
        again = await kubernetes.optimistic_put(key, "mine", 0)
        assert not again.succeeded
        assert again.kv is not None
        assert again.kv.version == 1


async def test_pages_of_one_revision(client: Client, prefix: str) -> None:
    kubernetes = client.kubernetes()
    keys = [f"{prefix}{number:02}".encode() for number in range(7)]
    for key in keys:
        await client.put(key, "v")
    assert await kubernetes.count(prefix) == 7
    page = await kubernetes.list(prefix, limit=3)
    listed, counts, revision = [kv.key for kv in page.kvs], [page.count], page.revision
    await client.put(f"{prefix}99", "later")
    while page.next_key is not None:
        page = await kubernetes.list(prefix, limit=3, revision=revision, continue_key=page.next_key)
        assert page.revision == revision
        listed += [kv.key for kv in page.kvs]
        counts.append(page.count)
    assert listed == keys
    assert counts == [7, 4, 1]


async def test_a_list_over_a_compaction_says_where_to_start_anew(client: Client, prefix: str) -> None:
    kubernetes = client.kubernetes()
    for number in range(3):
        await client.put(f"{prefix}{number}", "v")
    page = await kubernetes.list(prefix, limit=2)
    newer = (await client.put(f"{prefix}new", "v")).revision
    await client.compact(newer)
    with pytest.raises(CompactedError) as caught:
        await kubernetes.list(prefix, limit=2, revision=page.revision, continue_key=page.next_key)
    assert caught.value.compact_revision == newer
    assert (await kubernetes.list(prefix, revision=newer)).count == 4


async def script(kubernetes: Kubernetes, client: Client, prefix: str) -> list[object]:
    """What `tests/support/golayers` does too, in the same order; revisions are counted from the start."""
    start = (await client.put(f"{prefix}other", "v")).revision
    key = f"{prefix}k"

    def told(result: OptimisticResult) -> list[object]:
        kv = result.kv
        return [result.succeeded, result.revision - start, None if kv is None else [kv.text(), kv.mod_revision - start]]

    lines: list[object] = []
    found = await kubernetes.get(key)
    lines.append([found.kv, found.revision - start])
    lines.append(told(await kubernetes.optimistic_put(key, "a", 0)))
    lines.append(told(await kubernetes.optimistic_put(key, "b", 0)))
    lines.append(told(await kubernetes.optimistic_put(key, "b", 0, get_on_failure=False)))
    lines.append(told(await kubernetes.optimistic_put(key, "b", start + 1)))
    lines.append(told(await kubernetes.optimistic_put(key, "c", start + 1)))
    lines.append(told(await kubernetes.optimistic_delete(key, start + 1)))
    lines.append(told(await kubernetes.optimistic_delete(key, start + 1, get_on_failure=False)))
    found = await kubernetes.get(key, revision=start + 1)
    assert found.kv is not None
    lines.append([found.kv.text(), found.revision - start])
    for name in ("x", "y", "z"):
        await kubernetes.optimistic_put(f"{prefix}list/{name}", name, 0)
    page = await kubernetes.list(f"{prefix}list/", limit=2)
    lines.append([[kv.text() for kv in page.kvs], page.count, page.revision - start])
    page = await kubernetes.list(f"{prefix}list/", limit=2, revision=page.revision, continue_key=page.next_key)
    lines.append([[kv.text() for kv in page.kvs], page.count, page.revision - start])
    lines.append(await kubernetes.count(prefix))
    lines.append(told(await kubernetes.optimistic_delete(key, start + 2)))
    lines.append(told(await kubernetes.optimistic_delete(key, start + 2)))
    lines.append(told(await kubernetes.optimistic_delete(key, 0)))
    return lines


# What `client/v3/kubernetes` 3.7.3 answers, as the last test sees where there is Go.
GO_ANSWERS: Final = json.loads(
    """[[null, 0], [true, 1, null], [false, 1, ["a", 1]], [false, 1, null], [true, 2, null], [false, 2, ["b", 2]],
    [false, 2, ["b", 2]], [false, 2, null], ["a", 2], [["x", "y"], 3, 5], [["z"], 1, 5], 5, [true, 6, null],
    [false, 6, null], [true, 6, null]]"""
)


async def test_a_list_over_a_compaction_that_another_member_has_not_made_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """That member serves a watch of the compacted history, which then waits for ever."""
    async with EtcdCluster(3, peer_proxies=True) as cluster:
        await cluster.wait_healthy()
        leader, behind = await cluster.leader(), (await cluster.followers())[0]
        choice = leader.endpoint

        def choose(candidates: Sequence[Candidate]) -> Candidate:
            named = {str(getattr(candidate, "endpoint_name", "")): candidate for candidate in candidates}
            return named.get(choice, candidates[0])

        async def look(kubernetes: Kubernetes, *arguments: Any) -> int:
            nonlocal choice
            choice = behind.endpoint
            return await oldest(kubernetes, *arguments)

        oldest = Kubernetes._oldest
        monkeypatch.setattr(Kubernetes, "_oldest", look)
        async with Client([leader.endpoint, behind.endpoint], policy=choose) as client:
            first = (await client.put("pods/a", "1")).revision
            last = (await client.put("elsewhere", "1")).revision
            cluster.lag(behind, 0.5)
            await cluster.wait_healthy()
            await client.compact(last)
            with pytest.raises(CompactedError) as caught:
                await asyncio.wait_for(client.kubernetes().list("pods/", revision=first, timeout=None), PATIENCE)
            assert caught.value.compact_revision in {0, last}  # 0 on a busy machine


async def test_the_answers_are_those_of_go(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        assert await script(client.kubernetes(), client, "a/") == GO_ANSWERS


async def test_go_answers_what_is_recorded(own_server: EtcdServer) -> None:
    async with golayers("kubernetes", own_server.endpoint, "a/") as go:
        assert json.loads(await go.line()) == GO_ANSWERS
