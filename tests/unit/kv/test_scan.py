"""kv/scan.py, kv/limits.py: pages of a size that fits, chunks where the server streams, and always one revision."""

import asyncio
from dataclasses import dataclass, field, replace
from math import inf
from typing import cast

import pytest

from etcd_aio import codec, pb
from etcd_aio.base.aio import start_task
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import deadline_after
from etcd_aio.error_handler import StreamedReply
from etcd_aio.errors import (
    ClientUsageError,
    CompactedError,
    EtcdError,
    FutureRevisionError,
    NoSpaceError,
    NotSupportedByServerError,
    NotSupportedForLearnerError,
    ReplyTooLargeError,
    StatusCode,
    TooManyRequestsError,
)
from etcd_aio.kv import op
from etcd_aio.kv.operations import RangeOp
from etcd_aio.kv.scan import RangeStreamReader, Scan, ScanPages, Timing
from etcd_aio.methods import RANGE_STREAM
from etcd_aio.types import Header, KeyValue, RangeChunk, RangeResult
from etcd_aio.types.keys import KeyRange

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
    chunk_size: int = 0  # 0: it does not stream
    events: list[object] = field(default_factory=list)  # instead of chunks: errors are raised, None ends the stream
    streamed: list[RangeOp] = field(default_factory=list)
    chunks: list["StoreChunks"] = field(default_factory=list)

    async def read_page(self, operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
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
        self.chunks.append(StoreChunks(self))
        stream = self.chunks[-1]
        return Scan(ScanPages(self.read_page, first, page_size=page_size, timeout=timeout, retry=retry, stream=stream))


class StoreChunks(RangeStreamReader):
    """The rest of a range, as the store streams it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.left: list[bytes] | None = None  # None: no stream is open
        self.is_cancelled = False

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        store = self.store
        store.options.append((timeout, retry))
        is_open = False
        if self.left is None:
            store.streamed.append(rest)
            self.left = [key for key in store.keys if key in rest.keys]
        left = self.left
        try:
            await asyncio.sleep(0)
            if self.is_cancelled:
                return None
            if not store.chunk_size:
                raise NotSupportedByServerError
            if store.events:
                event = store.events.pop(0)
                if isinstance(event, Exception):
                    raise event
                return None
            is_open = True
        finally:
            if not is_open:
                self.left = None
        found, self.left = left[: store.chunk_size], left[store.chunk_size :]
        return tuple(KeyValue(key) for key in found)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.left = None


@pytest.fixture(params=[0, 3], ids=["pages", "stream"])
def either(request: pytest.FixtureRequest) -> Store:
    """A store that does not stream, and one that does."""
    return Store(chunk_size=request.param)


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
async def test_the_first_page_decides_the_revision() -> None:
    store = Store()
    scan = store.scan()
    assert scan.revision == 0
    assert repr(scan) == "<Scan KeyRange(b'k', b'l') at revision 0>"
    await anext(scan)
    assert scan.revision == 7
    store.revision = 99
    [kv async for kv in scan]
    assert [asked.revision for asked in store.asked] == [0, 7, 7]
    assert scan.revision == 7


@pytest.mark.anyio
async def test_a_scan_reads_at_the_given_revision() -> None:
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
    assert store.options == [(2.0, "never")] * 4, "three pages, and the question for a stream"


@pytest.mark.anyio
async def test_an_empty_range_has_one_empty_page_and_no_keys() -> None:
    assert [kv async for kv in Store(keys=()).scan()] == []
    [page] = [page async for page in Store(keys=()).scan().pages()]
    assert (len(page), page.revision) == (0, 7)


@pytest.mark.anyio
async def test_a_scan_that_ended_stays_ended(either: Store) -> None:
    store = either
    scan = store.scan()
    asked = 1 if store.chunk_size else 3
    [kv async for kv in scan]
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(scan)
    assert len(store.asked) == asked


@pytest.mark.anyio
async def test_pages_of_a_scan_cover_the_range_once() -> None:
    pages = [page async for page in Store().scan().pages()]
    assert [[kv.key for kv in page] for page in pages] == [list(KEYS[:4]), list(KEYS[4:8]), list(KEYS[8:])]
    assert [(page.more, page.count) for page in pages] == [(True, 10), (True, 6), (False, 2)]


@pytest.mark.anyio
async def test_pages_are_refused_after_single_keys(either: Store) -> None:
    scan = either.scan()
    await anext(scan.pages())
    assert (await anext(scan)).key == KEYS[4]
    with pytest.raises(ClientUsageError, match="keys or pages"):
        scan.pages()


@pytest.mark.anyio
async def test_a_page_that_is_too_large_is_requested_again_with_half_as_many_keys() -> None:
    store = Store(fits=2)
    assert [kv.key async for kv in store.scan(page_size=10)] == list(KEYS)
    assert [asked.limit for asked in store.asked[:3]] == [10, 5, 2]
    assert {asked.keys for asked in store.asked[:3]} == {KeyRange(b"k", b"l")}


@pytest.mark.anyio
async def test_a_size_error_of_the_server_halves_the_page_too() -> None:
    error = EtcdError("trying to send message larger than max", code=StatusCode.RESOURCE_EXHAUSTED)
    store = Store(failures=[error])
    assert [kv.key async for kv in store.scan(page_size=10)] == list(KEYS)
    assert [asked.limit for asked in store.asked] == [10, 5, 6]


@pytest.mark.anyio
async def test_the_page_size_grows_back_slowly_up_to_its_maximum() -> None:
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


class Clock:
    """A clock that a slow store moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def deadline(self, timeout: Timeout) -> float:
        now = self.now
        return now + 5.0 if timeout is UNSET else deadline_after(timeout, now)


@dataclass
class SlowStore(Store):
    """Each request takes 0.75 seconds."""

    clock: Clock = field(default_factory=Clock)

    async def read_page(self, operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        self.clock.now += 0.75
        return await super().read_page(operation, timeout=timeout, retry=retry)

    def slow_scan(self, timeout: Timeout) -> ScanPages:
        self.chunks.append(StoreChunks(self))
        return ScanPages(
            self.read_page,
            op.range(prefix="k"),
            page_size=8,
            timeout=timeout,
            retry=None,
            stream=self.chunks[-1],
            timing=cast("Timing", self.clock),
        )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("timeout", "whole", "left"),
    [(2.0, 2.0, [1.25, 0.5, 0.0]), (UNSET, 5.0, [4.25, 3.5, 2.75]), (None, inf, [inf, inf, inf])],
)
async def test_the_requests_of_a_step_share_one_deadline(timeout: Timeout, whole: float, left: list[float]) -> None:
    store = SlowStore(fits=1)
    pages = store.slow_scan(timeout)
    await anext(pages)
    assert [operation.limit for operation in store.asked] == [8, 4, 2, 1]
    assert [given for given, _ in store.options] == [timeout, *left]
    # The next step has a deadline of its own, also if its stream fails and a page follows.
    store.options.clear()
    store.fits = 8
    await anext(pages)
    assert len(store.streamed) == 1
    assert [given for given, _ in store.options] == [timeout, whole]


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
async def test_after_an_error_the_scan_continues_from_the_same_key() -> None:
    store = Store()
    scan = store.scan()
    keys = [(await anext(scan)).key for _ in range(4)]
    store.failures = [TooManyRequestsError()]
    with pytest.raises(TooManyRequestsError):
        await anext(scan)
    assert keys + [kv.key async for kv in scan] == list(KEYS)


@pytest.mark.anyio
async def test_a_page_of_a_member_that_is_behind_is_read_linearizably() -> None:
    store = Store()
    scan = store.scan(op.range(prefix="k", serializable=True))
    await anext(scan.pages())
    store.failures = [FutureRevisionError()]
    assert [kv.key async for kv in scan] == list(KEYS[4:])
    assert [asked.serializable for asked in store.asked] == [True, True, False, True]
    assert replace(store.asked[2], serializable=True) == store.asked[1]


@pytest.mark.anyio
async def test_a_future_revision_given_by_the_user_is_an_error() -> None:
    store = Store(failures=[FutureRevisionError()])
    with pytest.raises(FutureRevisionError):
        await anext(store.scan(op.range(prefix="k", revision=99, serializable=True)))
    assert len(store.asked) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("chunk_size", "before"), [(0, 4), (3, 7)])
async def test_a_cancelled_step_can_be_repeated(chunk_size: int, before: int) -> None:
    store = Store(chunk_size=chunk_size)
    scan = store.scan()
    keys = [(await anext(scan)).key for _ in range(before)]

    async def step() -> KeyValue:
        return await anext(scan)

    task = start_task(step(), name="test")  # whose first step waits a turn

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

    task = start_task(consume(), name="test")  # whose first step waits a turn

    await asyncio.sleep(0)
    await scan.aclose()
    assert await task == []


@pytest.mark.anyio
async def test_two_tasks_that_iterate_over_one_scan_get_an_error() -> None:
    scan = Store().scan()

    async def step() -> KeyValue:
        return await anext(scan)

    first, second = asyncio.create_task(step()), asyncio.create_task(step())
    assert (await first).key == KEYS[0]
    with pytest.raises(ClientUsageError, match="two tasks"):
        await second


@pytest.mark.anyio
async def test_one_key_and_ranges_without_an_end_can_be_scanned() -> None:
    assert [kv.key async for kv in Store().scan(op.range("k03"))] == [b"k03"]
    store = Store()
    assert [kv.key async for kv in store.scan(op.range(from_key="k05"), page_size=2)] == list(KEYS[5:])
    assert store.asked[1].keys == KeyRange(b"k06\0", b"\0")


# Streams.


@pytest.mark.anyio
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 6, 100])
@pytest.mark.parametrize("page_size", [1, 4, 6, 9])
async def test_keys_behind_the_first_page_are_streamed(chunk_size: int, page_size: int) -> None:
    store = Store(chunk_size=chunk_size)
    pages = [page async for page in store.scan(page_size=page_size).pages()]
    assert [kv.key for page in pages for kv in page] == list(KEYS)
    assert len(store.asked) == len(store.streamed) == 1
    assert all(len(page) <= page_size for page in pages)
    assert [page.count for page in pages] == [10 - sum(map(len, pages[:number])) for number in range(len(pages))]
    assert [page.more for page in pages] == [True] * (len(pages) - 1) + [False]
    assert {page.revision for page in pages} == {7}


@pytest.mark.anyio
@pytest.mark.parametrize("page_size", [10, 11])
async def test_a_range_that_fits_into_a_page_is_not_streamed(page_size: int) -> None:
    store = Store(chunk_size=3)
    assert [kv.key async for kv in store.scan(page_size=page_size)] == list(KEYS)
    assert (len(store.asked), len(store.streamed)) == (1, 0)


@pytest.mark.anyio
async def test_nothing_is_streamed_before_the_first_page_is_used_up() -> None:
    store = Store(chunk_size=3)
    scan = store.scan(page_size=4)
    for _ in range(4):
        await anext(scan)
    assert not store.streamed
    await anext(scan)
    assert store.streamed == [op.range("k03\0", range_end="l", revision=7)]


@pytest.mark.anyio
async def test_a_stream_has_the_revision_and_options_of_the_scan() -> None:
    store = Store(chunk_size=3)
    scan = store.scan(op.range(prefix="k", revision=5, keys_only=True, serializable=True), timeout=2.0, retry="never")
    [kv async for kv in scan]
    assert store.streamed == [
        op.range("k03\0", range_end="l", revision=5, keys_only=True, serializable=True),
    ]
    assert set(store.options) == {(2.0, "never")}
    assert scan.revision == 5


@pytest.mark.anyio
async def test_the_stream_is_closed_with_the_last_key() -> None:
    store = Store(chunk_size=3)
    scan = store.scan()
    keys = [(await anext(scan)).key for _ in range(10)]
    assert keys == list(KEYS)
    assert store.chunks[0].is_cancelled, "before anybody asks for more"
    with pytest.raises(StopAsyncIteration):
        await anext(scan)


@pytest.mark.anyio
async def test_a_scan_continues_with_pages_if_no_member_can_stream() -> None:
    store = Store(chunk_size=0)
    assert [kv.key async for kv in store.scan(page_size=2)] == list(KEYS)
    assert (len(store.asked), len(store.streamed)) == (5, 1), "asked for once in a scan"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "event",
    [
        None,  # it ended, and keys are missing
        NotSupportedByServerError(),
        NotSupportedForLearnerError(),
        ReplyTooLargeError("too large"),
        EtcdError("trying to send message larger than max", code=StatusCode.RESOURCE_EXHAUSTED),
        EtcdError("HTTP status 404 instead of gRPC", code=StatusCode.UNIMPLEMENTED),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
async def test_a_scan_continues_with_pages_after_a_stream_fails(event: object, before: int) -> None:
    store = Store(chunk_size=3)
    scan = store.scan(page_size=2)
    found = [kv.key for _ in range(1 + 2 * before) for kv in await anext(scan.pages())]
    store.events = [event]
    found += [kv.key async for kv in scan]
    assert found == list(KEYS)
    assert len(store.streamed) == 1
    assert store.asked[1].keys == KeyRange((b"k04" if before else b"k01") + b"\0", b"l")
    assert {asked.revision for asked in store.asked[1:]} == {7}


@pytest.mark.anyio
@pytest.mark.parametrize("error", [NoSpaceError(), TooManyRequestsError(), CompactedError(), FutureRevisionError()])
async def test_every_other_error_of_a_stream_is_raised_and_the_scan_continues_from_the_same_key(
    error: EtcdError,
) -> None:
    store = Store(chunk_size=3)
    scan = store.scan()
    found = [(await anext(scan)).key for _ in range(7)]
    for _ in range(2):
        store.events = [error]
        with pytest.raises(type(error)) as caught:
            await anext(scan)
        assert caught.value is error
    found += [kv.key async for kv in scan]
    assert found == list(KEYS)
    assert [streamed.keys.key for streamed in store.streamed] == [b"k03\0", b"k06\0", b"k06\0"]
    assert len(store.asked) == 1


@pytest.mark.anyio
async def test_a_stream_of_a_member_that_is_behind_is_read_linearizably() -> None:
    store = Store(chunk_size=3, events=[FutureRevisionError()])
    scan = store.scan(op.range(prefix="k", serializable=True))
    assert [kv.key async for kv in scan] == list(KEYS)
    assert [streamed.serializable for streamed in store.streamed] == [True, False]
    assert len(store.asked) == 1


@pytest.mark.anyio
async def test_an_empty_chunk_is_no_page() -> None:
    store = Store(chunk_size=3)
    scan = store.scan(page_size=4)
    pages = [await anext(scan.pages())]
    read, empty = store.chunks[0].read, [()]

    async def read_empty_first(rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        return empty.pop() if empty else await read(rest, timeout, retry)

    store.chunks[0].read = read_empty_first  # type: ignore[method-assign]
    pages += [page async for page in scan.pages()]
    assert [len(page) for page in pages] == [4, 3, 3]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "change",
    [
        {"sort_by": "value"},
        {"sort_order": "descend"},
        {"min_mod_revision": 1},
        {"max_mod_revision": 9},
        {"min_create_revision": 1},
        {"max_create_revision": 9},
    ],
)
async def test_ranges_that_etcd_does_not_stream_are_read_by_pages(change: dict[str, object]) -> None:
    store = Store(chunk_size=3)
    first = op.range(prefix="k", **change)  # type: ignore[arg-type]
    assert [kv.key async for kv in store.scan(first)] == list(KEYS)
    assert (len(store.asked), len(store.streamed)) == (3, 0)


@pytest.mark.anyio
async def test_aclose_closes_the_stream_and_drops_its_chunk() -> None:
    store = Store(chunk_size=5)
    scan = store.scan(page_size=2)
    for _ in range(3):
        await anext(scan)
    await scan.aclose()
    assert store.chunks[0].is_cancelled
    assert [kv async for kv in scan] == []
    assert [page async for page in scan.pages()] == []
    assert (len(store.asked), len(store.streamed)) == (1, 1)


@pytest.mark.anyio
async def test_aclose_while_a_chunk_is_on_its_way_ends_the_step() -> None:
    store = Store(chunk_size=5)
    scan = store.scan(page_size=2)
    for _ in range(2):
        await anext(scan)

    async def consume() -> list[KeyValue]:
        return [kv async for kv in scan]

    task = start_task(consume(), name="test")  # whose first step waits a turn

    await asyncio.sleep(0)
    assert store.streamed
    await scan.aclose()
    assert await task == []
    assert len(store.asked) == 1


@pytest.mark.anyio
async def test_aclose_while_a_chunk_is_decoded_drops_it() -> None:
    store = Store(chunk_size=5)
    scan = store.scan(page_size=2)
    await anext(scan.pages())

    async def read_and_be_closed(
        rest: RangeOp, timeout: Timeout, retry: RetryMode | None
    ) -> tuple[KeyValue, ...] | None:
        del rest, timeout, retry
        await scan.aclose()
        return (KeyValue(KEYS[2]),)

    store.chunks[0].read = read_and_be_closed  # type: ignore[method-assign]
    assert [kv async for kv in scan] == []
    assert [page async for page in scan.pages()] == []


# The reader of a stream.

REST = op.range("k", range_end="l", revision=7, keys_only=True)


class FakeInvoker:
    """Remembers what it was asked, and gives the replies that it was made with."""

    def __init__(self, *replies: RangeChunk | None) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, object]] = []
        self.readings: list[object] = []

    async def read(self, reading: StreamedReply[object, object], rest: bytes, **options: object) -> RangeChunk | None:  # type: ignore[type-var]
        self.readings.append(reading)
        self.asked.append({"rest": codec.decode(pb.RangeRequest, rest), **options})
        return self.replies.pop(0)


@pytest.mark.anyio
async def test_the_reader_returns_the_keys_of_each_chunk() -> None:
    kv = KeyValue(b"k")
    invoker = FakeInvoker(RangeChunk(RangeResult(Header(), (kv,))), RangeChunk(), None)
    reader = RangeStreamReader(invoker)  # type: ignore[arg-type]
    assert [await reader.read(REST, 2.0, "never") for _ in range(3)] == [(kv,), (), None]
    assert len(set(map(id, invoker.readings))) == 1
    request = pb.RangeRequest(key=b"k", range_end=b"l", revision=7, keys_only=True)
    assert invoker.asked == [{"rest": request, "timeout": 2.0, "retry": "never", "needs_leader": True}] * 3


@pytest.mark.anyio
async def test_a_serializable_rest_needs_no_leader() -> None:
    invoker = FakeInvoker(None)
    await RangeStreamReader(invoker).read(op.range("k", serializable=True), None, None)  # type: ignore[arg-type]
    assert invoker.asked[0]["needs_leader"] is False


@pytest.mark.anyio
async def test_cancel_closes_the_stream() -> None:
    invoker = FakeInvoker(None)
    reader = RangeStreamReader(invoker)  # type: ignore[arg-type]
    await reader.read(REST, None, None)
    reader.cancel()
    (reading,) = invoker.readings
    assert isinstance(reading, StreamedReply)
    assert reading.method is RANGE_STREAM
    assert reading.is_cancelled
