"""Scan: pages at one revision, of a size that fits."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from etcd_aio.api import op
from etcd_aio.api.keys import KeyRange
from etcd_aio.api.operations import RangeOp
from etcd_aio.api.scan import Scan
from etcd_aio.errors import (
    ClientUsageError,
    CompactedError,
    EtcdError,
    FutureRevisionError,
    NoSpaceError,
    ReplyTooLargeError,
    StatusCode,
    TooManyRequestsError,
)
from etcd_aio.options import UNSET, RetryMode, Timeout
from etcd_aio.results import Header, KeyValue, RangeResult

KEYS = tuple(f"k{number:02}".encode() for number in range(10))


@dataclass
class Store:
    """One revision of a store; `fits` is how many keys a reply can hold, `failures` are raised first."""

    keys: tuple[bytes, ...] = KEYS
    revision: int = 7
    fits: int = 1000
    failures: list[Exception] = field(default_factory=list)
    asked: list[RangeOp] = field(default_factory=list)
    options: list[tuple[Timeout, RetryMode | None]] = field(default_factory=list)

    async def read_page(self, operation: RangeOp, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        await asyncio.sleep(0)
        self.asked.append(operation)
        self.options.append((timeout, retry))
        if self.failures:
            raise self.failures.pop(0)
        inside = [key for key in self.keys if key in operation.keys]
        found = inside[: operation.limit]
        if len(found) > self.fits:
            raise ReplyTooLargeError("too large")
        return RangeResult(
            Header(revision=self.revision),
            tuple(KeyValue(key) for key in found),
            more=len(inside) > len(found),
            count=len(inside),
        )

    def scan(
        self,
        first: RangeOp | None = None,
        *,
        page_size: int = 4,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> Scan:
        first = op.range(prefix="k") if first is None else first
        return Scan(self.read_page, first, page_size=page_size, timeout=timeout, retry=retry)


@pytest.mark.anyio
@pytest.mark.parametrize("page_size", [1, 3, 4, 5, 9, 10, 11])
async def test_a_scan_gives_every_key_once_in_order(page_size: int) -> None:
    store = Store()
    assert [kv.key async for kv in store.scan(page_size=page_size)] == list(KEYS)
    assert len(store.asked) == -(-10 // page_size)


@pytest.mark.anyio
async def test_each_page_begins_behind_the_last_key_of_the_one_before() -> None:
    store = Store()
    [kv async for kv in store.scan()]
    assert [asked.keys for asked in store.asked] == [
        KeyRange(b"k", b"l"),
        KeyRange(b"k03\0", b"l"),
        KeyRange(b"k07\0", b"l"),
    ]


@pytest.mark.anyio
async def test_the_first_page_pins_the_revision() -> None:
    store = Store()
    scan = store.scan()
    assert scan.revision == 0
    await anext(scan)
    assert scan.revision == 7
    store.revision = 99
    [kv async for kv in scan]
    assert [asked.revision for asked in store.asked] == [0, 7, 7]
    assert scan.revision == 7


@pytest.mark.anyio
async def test_a_given_revision_is_the_scans() -> None:
    store = Store()
    scan = store.scan(op.range(prefix="k", revision=5))
    assert scan.revision == 5
    [kv async for kv in scan]
    assert [asked.revision for asked in store.asked] == [5, 5, 5]
    assert scan.revision == 5


@pytest.mark.anyio
async def test_every_page_has_the_options_of_the_scan() -> None:
    store = Store()
    scan = store.scan(op.range(prefix="k", keys_only=True, serializable=True), timeout=2.0, retry="never")
    [kv async for kv in scan]
    assert all(asked.keys_only and asked.serializable for asked in store.asked)
    assert store.options == [(2.0, "never")] * 3


@pytest.mark.anyio
async def test_an_empty_range() -> None:
    assert [kv async for kv in Store(keys=()).scan()] == []
    [page] = [page async for page in Store(keys=()).scan().pages()]
    assert (len(page), page.revision) == (0, 7)


@pytest.mark.anyio
async def test_a_scan_that_ended_stays_ended() -> None:
    store = Store()
    scan = store.scan()
    [kv async for kv in scan]
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(scan)
    assert len(store.asked) == 3


@pytest.mark.anyio
async def test_pages() -> None:
    pages = [page async for page in Store().scan().pages()]
    assert [[kv.key for kv in page] for page in pages] == [list(KEYS[:4]), list(KEYS[4:8]), list(KEYS[8:])]
    assert [(page.more, page.count) for page in pages] == [(True, 10), (True, 6), (False, 2)]


@pytest.mark.anyio
async def test_keys_and_pages_are_not_mixed_where_keys_would_be_lost() -> None:
    scan = Store().scan()
    await anext(scan.pages())
    assert (await anext(scan)).key == KEYS[4]
    with pytest.raises(ClientUsageError, match="keys or pages"):
        scan.pages()


@pytest.mark.anyio
async def test_a_page_too_large_is_asked_for_again_with_half_as_many_keys() -> None:
    store = Store(fits=2)
    assert [kv.key async for kv in store.scan(page_size=10)] == list(KEYS)
    assert [asked.limit for asked in store.asked[:3]] == [10, 5, 2]
    assert {asked.keys for asked in store.asked[:3]} == {KeyRange(b"k", b"l")}


@pytest.mark.anyio
async def test_a_servers_own_size_error_counts_too() -> None:
    error = EtcdError("trying to send message larger than max", code=StatusCode.RESOURCE_EXHAUSTED)
    store = Store(failures=[error])
    assert [kv.key async for kv in store.scan(page_size=10)] == list(KEYS)
    assert [asked.limit for asked in store.asked] == [10, 5, 6]


@pytest.mark.anyio
async def test_the_page_size_grows_back_slowly_and_not_beyond_itself() -> None:
    store = Store(keys=tuple(f"k{number:04}".encode() for number in range(2000)))
    store.failures = [ReplyTooLargeError("too large")] * 2
    [kv async for kv in store.scan(page_size=128)]
    limits = [asked.limit for asked in store.asked]
    assert limits[:5] == [128, 64, 32, 34, 36]
    assert limits[2:] == sorted(limits[2:])
    assert max(limits[2:]) <= 128
    # Full size again after 22 pages: 32 * (17/16)**22 is about 128.
    store.asked.clear()
    store.failures = [ReplyTooLargeError("too large")]
    [kv async for kv in store.scan(page_size=8)]
    assert [asked.limit for asked in store.asked[:7]] == [8, 4, 5, 6, 7, 8, 8]


@pytest.mark.anyio
async def test_one_key_that_does_not_fit_is_an_error() -> None:
    store = Store(fits=0)
    with pytest.raises(ReplyTooLargeError):
        await anext(store.scan(page_size=4))
    assert [asked.limit for asked in store.asked] == [4, 2, 1]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [NoSpaceError(), TooManyRequestsError(), CompactedError(), FutureRevisionError()])
async def test_every_other_error_is_raised_at_once(error: EtcdError) -> None:
    store = Store()
    scan = store.scan()
    await anext(scan.pages())
    store.failures = [error]
    with pytest.raises(type(error)) as caught:
        await anext(scan)
    assert caught.value is error
    assert len(store.asked) == 2


@pytest.mark.anyio
async def test_after_an_error_the_scan_goes_on_where_it_was() -> None:
    store = Store()
    scan = store.scan()
    keys = [(await anext(scan)).key for _ in range(4)]
    store.failures = [TooManyRequestsError()]
    with pytest.raises(TooManyRequestsError):
        await anext(scan)
    assert keys + [kv.key async for kv in scan] == list(KEYS)


@pytest.mark.anyio
async def test_a_page_from_a_member_that_is_behind_is_asked_for_linearizably() -> None:
    store = Store()
    scan = store.scan(op.range(prefix="k", serializable=True))
    await anext(scan.pages())
    store.failures = [FutureRevisionError()]
    assert [kv.key async for kv in scan] == list(KEYS[4:])
    assert [asked.serializable for asked in store.asked] == [True, True, False, True]
    assert replace(store.asked[2], serializable=True) == store.asked[1]


@pytest.mark.anyio
async def test_a_future_revision_of_the_users_own_is_an_error() -> None:
    store = Store(failures=[FutureRevisionError()])
    with pytest.raises(FutureRevisionError):
        await anext(store.scan(op.range(prefix="k", revision=99, serializable=True)))
    assert len(store.asked) == 1


@pytest.mark.anyio
async def test_a_cancelled_step_is_taken_again() -> None:
    store = Store()
    scan = store.scan()
    keys = [(await anext(scan)).key for _ in range(4)]

    async def step() -> KeyValue:
        return await anext(scan)

    task = asyncio.create_task(step())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert keys + [kv.key async for kv in scan] == list(KEYS)


@pytest.mark.anyio
async def test_aclose_ends_the_scan() -> None:
    store = Store()
    scan = store.scan()
    await anext(scan)
    await scan.aclose()
    await scan.aclose()
    assert [kv async for kv in scan] == []
    assert [page async for page in scan.pages()] == []
    assert len(store.asked) == 1


@pytest.mark.anyio
async def test_aclose_while_a_page_is_on_its_way_drops_it() -> None:
    scan = Store().scan()

    async def consume() -> list[KeyValue]:
        return [kv async for kv in scan]

    task = asyncio.create_task(consume())
    await asyncio.sleep(0)
    await scan.aclose()
    assert await task == []


@pytest.mark.anyio
async def test_two_tasks_on_one_scan_are_told() -> None:
    scan = Store().scan()

    async def step() -> KeyValue:
        return await anext(scan)

    first, second = asyncio.create_task(step()), asyncio.create_task(step())
    assert (await first).key == KEYS[0]
    with pytest.raises(ClientUsageError, match="two tasks"):
        await second


@pytest.mark.anyio
async def test_one_key_and_open_ranges() -> None:
    assert [kv.key async for kv in Store().scan(op.range("k03"))] == [b"k03"]
    store = Store()
    assert [kv.key async for kv in store.scan(op.range(from_key="k05"), page_size=2)] == list(KEYS[5:])
    assert store.asked[1].keys == KeyRange(b"k06\0", b"\0")
