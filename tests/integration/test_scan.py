"""scan on a real server: one pinned revision, whatever others write, and pages of any size."""

import asyncio
from dataclasses import dataclass

import pytest

from etcd_aio import Client, EtcdError, op
from etcd_aio.errors import CompactedError, FutureRevisionError, ReplyTooLargeError
from etcd_aio.testing import EtcdServer

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine", "each_store")]


async def fill(client: Client, prefix: str, count: int, size: int = 8) -> list[tuple[bytes, bytes]]:
    """Write so many keys, 64 in a txn, and return what was written, in key order."""
    written = [(f"{prefix}{number:05}".encode(), f"{number:0{size}}".encode()) for number in range(count)]
    for first in range(0, count, 64):
        await client.txn().then(*(op.put(key, value) for key, value in written[first : first + 64])).commit()
    return written


async def test_five_thousand_keys_while_others_write(client: Client, prefix: str) -> None:
    written = await fill(client, prefix, 5_000)
    stop = asyncio.Event()

    async def disturb(offset: int) -> int:
        """Overwrite, delete and add all over the range, before and behind where the scan is."""
        writes = 0
        for number in range(offset, 5_000 * 37, 4 * 37):
            if stop.is_set():
                break
            key = written[number % 5_000][0]
            await client.put(key, "changed")
            await client.put(key + b"+", "added")
            await client.delete(written[(number + 2_500) % 5_000][0])
            writes += 3
        return writes

    scan = client.scan(prefix=prefix, page_size=250)
    found = [await anext(scan)]
    revision = scan.revision
    writers = [asyncio.create_task(disturb(offset)) for offset in range(4)]
    async for kv in scan:
        found.append(kv)
        if not len(found) % 250:
            await client.put(found[-1].key + b"-", "in between")
    now = (await client.range(prefix=prefix, count_only=True)).revision
    stop.set()
    writes = sum(await asyncio.gather(*writers))
    assert [(kv.key, kv.value) for kv in found] == written
    assert max(kv.mod_revision for kv in found) <= revision == scan.revision
    assert now >= revision + 20, "hardly anything was written meanwhile: the test proves nothing"
    assert writes > 20


async def test_what_is_deleted_after_the_first_page_is_still_found(client: Client, prefix: str) -> None:
    written = await fill(client, prefix, 100)
    scan = client.scan(prefix=prefix, page_size=10)
    found = [(kv.key, kv.value) for kv in await anext(scan.pages())]
    assert (await client.delete(prefix=prefix)).deleted == 100
    await client.put(prefix + "00050x", "too late")
    async for page in scan.pages():
        found += [(kv.key, kv.value) for kv in page]
    assert found == written


async def test_pages_tell_what_is_left(client: Client, prefix: str) -> None:
    await fill(client, prefix, 10)
    pages = [page async for page in client.scan(prefix=prefix, page_size=4).pages()]
    assert [(len(page), page.count, page.more) for page in pages] == [(4, 10, True), (4, 6, True), (2, 2, False)]
    even = [page async for page in client.scan(prefix=prefix, page_size=5).pages()]
    assert [(len(page), page.more) for page in even] == [(5, True), (5, False)], "no empty page at the end"
    empty = [page async for page in client.scan(prefix=prefix + "x").pages()]
    assert [(len(page), page.count, page.more) for page in empty] == [(0, 0, False)]


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
async def test_every_form_in_every_page_size(client: Client, prefix: str, page_size: int) -> None:
    root = prefix.encode()
    suffixes = [b"", b"\x00", b"\x00\x00", b"a", b"a\x00", b"a\xff", b"a\xff\xff", b"b", b"\xff"]
    for suffix in suffixes:
        await client.put(root + suffix, suffix)
    whole = [kv.value async for kv in client.scan(prefix=root, page_size=page_size)]
    assert whole == suffixes
    middle = [kv.value async for kv in client.scan(root + b"a", range_end=root + b"b", page_size=page_size)]
    assert middle == [b"a", b"a\x00", b"a\xff", b"a\xff\xff"]
    one = [kv.value async for kv in client.scan(root + b"a", page_size=page_size)]
    assert one == [b"a"]
    high = [kv.value async for kv in client.scan(prefix=root + b"a\xff", page_size=page_size, serializable=True)]
    assert high == [b"a\xff", b"a\xff\xff"]
    bare = [(kv.key, kv.value) async for kv in client.scan(prefix=root, keys_only=True, page_size=page_size)]
    assert bare == [(root + suffix, b"") for suffix in suffixes]


async def test_the_whole_store() -> None:
    keys = [b"\x00", b"\x00\x00", b"m", b"\xff", b"\xff\xff"]
    async with EtcdServer() as server, Client(server.endpoint) as client:
        for key in keys:
            await client.put(key, "")
        assert [kv.key async for kv in client.scan(all_keys=True, page_size=2)] == keys
        assert [kv.key async for kv in client.scan(prefix="", page_size=2)] == keys
        assert [kv.key async for kv in client.scan(from_key=b"\x00\x00", page_size=2)] == keys[1:]
        assert [kv.key async for kv in client.scan(prefix=b"\xff", page_size=1)] == keys[3:]


async def test_a_revision_in_the_past(client: Client, prefix: str) -> None:
    written = await fill(client, prefix, 10)
    then = (await client.range(prefix=prefix, count_only=True)).revision
    await client.delete(prefix=prefix)
    scan = client.scan(prefix=prefix, revision=then, page_size=3)
    assert [(kv.key, kv.value) async for kv in scan] == written
    assert scan.revision == then
    with pytest.raises(FutureRevisionError):
        await anext(client.scan(prefix=prefix, revision=then + 1_000))


async def test_a_scan_that_meets_a_compaction_says_so(client: Client, prefix: str) -> None:
    await fill(client, prefix, 10)
    scan = client.scan(prefix=prefix, page_size=4)
    found = [await anext(scan) for _ in range(4)]
    await client.compact((await client.put(prefix + "x", "")).revision)
    for _ in range(2):  # not once and then a silent end, as if everything had been read
        with pytest.raises(CompactedError):
            await anext(scan)
    assert len(found) == 4
    assert len([kv async for kv in client.scan(prefix=prefix, page_size=4)]) == 11


@dataclass(frozen=True)
class Outcome:
    """What a scan gave before it ended, and how it ended."""

    keys: list[bytes]
    error: EtcdError | None


async def drain(client: Client, prefix: str, page_size: int) -> Outcome:
    keys: list[bytes] = []
    try:
        async for kv in client.scan(prefix=prefix, page_size=page_size):
            keys.append(kv.key)  # noqa: PERF401 - what came before the error is wanted
    except EtcdError as error:
        return Outcome(keys, error)
    return Outcome(keys, None)


@pytest.mark.both_engines
async def test_pages_too_large_for_a_message_are_read_in_smaller_ones(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint, max_receive_bytes=64 * 1024) as client:
        written = await fill(client, prefix, 200, size=4_096)
        with pytest.raises(ReplyTooLargeError) as caught:
            await client.range(prefix=prefix)
        assert not caught.value.maybe_applied
        scan = client.scan(prefix=prefix)
        pages = [page async for page in scan.pages()]
        assert [(kv.key, kv.value) for page in pages for kv in page] == written
        # 4 096 bytes, the key and the framing of each: 15 fit into 64 KiB, and pages grow back towards that.
        assert max(map(len, pages)) <= 15
        assert 14 <= len(pages) <= 40
        (statistics,) = client.statistics()
        assert statistics.connects == 1, "the connection outlived every reply that was too large"


async def test_one_key_too_large_for_a_message(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint, max_receive_bytes=64 * 1024) as client:
        await fill(client, prefix, 20)
        await client.put(prefix + "00010", b"x" * 70_000)
        outcome = await drain(client, prefix, page_size=8)
        assert isinstance(outcome.error, ReplyTooLargeError)
        assert outcome.keys == [f"{prefix}{number:05}".encode() for number in range(10)], "all before it were given"
        names = [kv.key async for kv in client.scan(prefix=prefix, keys_only=True)]
        assert len(names) == 20, "without the values it fits"
