"""scan where the server streams, where it does not, and where it dies meanwhile; judged by the servers' counters."""

import asyncio
import gc
import re
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from etcd_aio import Client, Scan, op
from etcd_aio.errors import CompactedError, EtcdTimeoutError
from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.support.servers import QUICK_ELECTIONS
from tests.support.versions import need, need_beside

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.cluster,
    pytest.mark.http2_only,
    pytest.mark.usefixtures("each_engine", "each_store"),
]

LARGE = 16 * 1024
STREAMS = "it is the first that has RangeStream"
COUNT = 1500  # of them: 24 MB, far more than the window of a stream


async def counted(server: EtcdServer, what: Literal["started", "handled"]) -> int:
    """How many RangeStream calls the server counts: those that it began, or those that it is done with."""
    line = re.compile(rf'^grpc_server_{what}_total{{.*grpc_method="RangeStream".*}} (\d+)$', re.MULTILINE)
    text = await asyncio.to_thread(_metrics, server.endpoint)
    return sum(int(number) for number in line.findall(text))


def _metrics(endpoint: str) -> str:
    with urllib.request.urlopen(f"{endpoint}/metrics", timeout=10) as reply:
        return str(reply.read().decode())


async def until_counted(server: EtcdServer, what: Literal["started", "handled"], number: int) -> None:
    async with asyncio.timeout(10):
        while await counted(server, what) != number:  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.02)


async def fill(client: Client, count: int, size: int, prefix: str = "k/") -> list[bytes]:
    """Write so many keys, and return them in order."""
    keys = [f"{prefix}{number:05}".encode() for number in range(count)]
    per_txn = max(1, min(64, 2**20 // size))
    for first in range(0, count, per_txn):
        await client.txn().then(*(op.put(key, b"x" * size) for key in keys[first : first + per_txn])).commit()
    return keys


async def drain(scan: Scan, found: list[bytes]) -> None:
    """Read to the end, and keep what came before an error."""
    async for kv in scan:
        found.append(kv.key)  # noqa: PERF401 - see above


@pytest.fixture
async def streaming() -> AsyncIterator[EtcdServer]:
    """A server of this test's own that has RangeStream."""
    need("3.7", why=STREAMS)
    async with EtcdServer() as server:
        yield server


async def test_a_server_that_streams_is_asked_once_for_a_page_and_once_for_the_rest(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint) as client:
        keys = await fill(client, 3000, 100)
        scan = client.scan(prefix="k/")
        assert [kv.key async for kv in scan] == keys
        (statistics,) = client.statistics()
        attempts = statistics.attempts
        assert await counted(streaming, "started") == 1
        assert [kv.key async for kv in client.scan(prefix="k/", revision=scan.revision, page_size=100)] == keys
        assert client.statistics()[0].attempts == attempts + 1, "one page, whatever its size"
        assert await counted(streaming, "started") == 2
        assert len([kv async for kv in client.scan(prefix="k/0000")]) == 10
        assert await counted(streaming, "started") == 2, "what fits into a page needs no stream"


@pytest.mark.parametrize("version", ["3.4", "3.5", "3.6"])
async def test_a_server_that_does_not_stream_is_asked_once_and_read_by_pages(version: str) -> None:
    need_beside(version)
    async with EtcdServer(version=version) as server, Client(server.endpoint) as client:
        keys = await fill(client, 500, 100)
        (before,) = client.statistics()
        for _ in range(3):
            assert [kv.key async for kv in client.scan(prefix="k/", page_size=100)] == keys
        (after,) = client.statistics()
        assert after.attempts - before.attempts == 15
        assert after.connects == 1


async def test_an_upgraded_server_is_asked_again(tmp_path: Path) -> None:
    need_beside("3.6", "3.7")
    async with EtcdServer(version="3.6", directory=tmp_path) as old:
        ports = urlsplit(old.endpoint).port or 0, urlsplit(old.peer_url).port or 0
        async with Client(old.endpoint, timeout=20) as client:
            keys = await fill(client, 500, 100)
            scan = client.scan(prefix="k/", page_size=100)
            found = [(await anext(scan)).key for _ in range(150)]  # by pages
            await old.terminate()
            async with EtcdServer(version="3.7", directory=tmp_path, ports=ports) as new:
                found += [kv.key async for kv in scan]
                assert found == keys, "a scan that was begun before goes on"
                assert await counted(new, "started") == 0, "by pages, as it was"
                assert [kv.key async for kv in client.scan(prefix="k/", page_size=100)] == keys
                assert await counted(new, "started") == 1


async def test_the_stream_is_of_one_revision_whatever_is_written_meanwhile(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, timeout=20) as client:
        keys = await fill(client, COUNT, LARGE)
        scan = client.scan(prefix="k/", page_size=50)
        found = []
        async for page in scan.pages():
            found += [kv.key for kv in page]
            await client.put(keys[-1], "changed")  # far behind what the server may have sent ahead
            await client.delete(keys[-len(found) // 2])
            await client.put(page[-1].key + b"-", "added")
            assert all(len(kv.value) == LARGE for kv in page)
            assert page.count == COUNT - len(found) + len(page)
        assert found == keys
        assert (await client.range(prefix="k/", count_only=True)).revision > scan.revision + 50


@pytest.mark.both_engines
async def test_breaking_off_ends_the_stream_on_the_server(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, timeout=20) as client:
        await fill(client, COUNT, LARGE)

        async def begin() -> None:
            number = 0
            async for _ in client.scan(prefix="k/", page_size=10):
                number += 1
                if number > 20:
                    break

        gc.disable()  # dropping a scan must not take the collector of cycles
        try:
            await begin()
            await until_counted(streaming, "handled", 1)
        finally:
            gc.enable()
        scan = client.scan(prefix="k/", page_size=10)
        for _ in range(20):
            await anext(scan)
        await until_counted(streaming, "started", 2)
        assert await counted(streaming, "handled") == 1, "it waits for its reader"
        await scan.aclose()
        await until_counted(streaming, "handled", 2)

        async def never_ends() -> None:
            async for _ in client.scan(prefix="k/", page_size=10):
                await asyncio.sleep(0.05)

        task = asyncio.create_task(never_ends())
        await until_counted(streaming, "started", 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_counted(streaming, "handled", 3)


async def test_an_unread_stream_holds_up_no_other_call(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, timeout=20) as client:
        keys = await fill(client, COUNT, LARGE)
        scans = [client.scan(prefix="k/", page_size=10) for _ in range(5)]
        for scan in scans:
            for _ in range(20):
                await anext(scan)
        await until_counted(streaming, "started", 5)
        for _ in range(100):
            assert await client.get("k/00000", timeout=5)
        assert len([kv async for kv in client.scan(prefix="k/")]) == COUNT
        rest = [[kv.key async for kv in scan] for scan in scans]
        assert rest == [keys[20:]] * 5


async def test_a_compaction_ends_a_stream_with_its_error(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, timeout=20) as client:
        keys = await fill(client, COUNT, LARGE)
        scan = client.scan(prefix="k/", page_size=10)
        found = [(await anext(scan)).key for _ in range(20)]
        await client.compact((await client.put("x", "")).revision)
        with pytest.raises(CompactedError):
            await drain(scan, found)
        with pytest.raises(CompactedError):  # not once and then a silent end
            await anext(scan)
        assert 20 <= len(found) < COUNT
        assert found == keys[: len(found)]
        await until_counted(streaming, "handled", await counted(streaming, "started"))


async def test_a_chunk_too_large_for_a_message_is_read_by_pages(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, max_receive_bytes=256 * 1024) as client:
        keys = await fill(client, 200, LARGE)
        assert [kv.key async for kv in client.scan(prefix="k/", page_size=10)] == keys
        (statistics,) = client.statistics()
        assert statistics.connects == 1


@pytest.mark.parametrize("death", ["kill", "terminate", "pause"])
async def test_a_member_that_fails_in_the_midst_is_replaced_without_loss_or_repetition(death: str) -> None:
    need("3.7", why=STREAMS)
    async with EtcdCluster(size=3, **QUICK_ELECTIONS) as cluster:
        await cluster.wait_healthy()
        async with Client(cluster.endpoints, timeout=8) as client:
            keys = await fill(client, COUNT, LARGE)
            scan = client.scan(prefix="k/", page_size=10)
            found = [await anext(scan) for _ in range(20)]
            (serving,) = [one for one in cluster.members if await counted(one, "started")]
            if death == "pause":
                serving.pause()
            elif death == "kill":
                await serving.kill()
            ending = asyncio.create_task(serving.terminate()) if death == "terminate" else None
            found += [kv async for kv in scan]
            assert [kv.key for kv in found] == keys
            assert all(len(kv.value) == LARGE for kv in found)
            others = [one for one in cluster.members if one is not serving]
            if ending is not None:
                await ending
            else:
                assert sum([await counted(one, "started") for one in others]) >= 1, "the rest was streamed too"
            if death == "pause":
                serving.resume()


async def test_a_server_that_falls_silent_ends_the_step_in_time(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint) as client:
        keys = await fill(client, COUNT, LARGE)
        scan = client.scan(prefix="k/", page_size=10, timeout=4.0)
        found = [(await anext(scan)).key for _ in range(20)]
        streaming.pause()
        with pytest.raises((EtcdTimeoutError, ConnectionError)):
            await drain(scan, found)
        streaming.resume()
        async with asyncio.timeout(30):
            while True:
                try:
                    found += [(await anext(scan)).key]
                except StopAsyncIteration:
                    break
                except (EtcdTimeoutError, ConnectionError):
                    continue
        assert found == keys


async def test_a_client_that_closes_ends_its_streams(streaming: EtcdServer) -> None:
    async with Client(streaming.endpoint, timeout=20) as client:
        await fill(client, COUNT, LARGE)
        scan = client.scan(prefix="k/", page_size=10)
        for _ in range(20):
            await anext(scan)
        async with asyncio.timeout(15):
            await client.aclose()
        await until_counted(streaming, "handled", 1)
        await scan.aclose()
