"""Scan against a small model of a store that changes, is upgraded, answers too large, fails and is cancelled meanwhile.

Pages and chunks fail at any point; whatever happens, what comes is one revision of the store, each key once, in order.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    NotSupportedByServerError,
    NotSupportedForLearnerError,
    ReplyTooLargeError,
    StatusCode,
)
from etcd_aio.kv.operations import RangeOp
from etcd_aio.kv.scan import RangeStreamReader, Scan, ScanPages
from etcd_aio.types import Header, KeyValue, RangeResult
from etcd_aio.types.keys import KeyRange

KEYS = st.binary(min_size=1, max_size=3)
INTERVALS = [KeyRange.of(all_keys=True), KeyRange.of(prefix=b"a"), KeyRange.of("a", range_end=b"\xf0")]
PAGE_EVENTS = ["fine", "broken", "cancelled", "too large"]
CHUNK_EVENTS = ["fine", "fine", "broken", "cancelled", "too large", "empty", "ends early", "old", "learner", "lost"]


class WeatherError(Exception):
    """What a step may fail with before the next one is taken."""


class ChangingStore(RangeStreamReader):
    """A store whose every read is preceded by one change, and may go wrong as the scripts say."""

    def __init__(
        self, keys: set[bytes], changes: list[bytes], pages: Iterator[str], chunks: Iterator[str], fits: int
    ) -> None:
        self.history = [frozenset(keys)]
        self.changes = changes
        self.page_events = pages
        self.chunk_events = chunks
        self.fits = fits
        self.left: list[bytes] | None = None  # of the open stream
        self.is_over = False
        self.chunks_given = 0

    def _change(self) -> None:
        if self.changes:
            key = self.changes.pop()
            self.history.append(self.history[-1] ^ {key})

    def _inside(self, operation: RangeOp) -> list[bytes]:
        revision = operation.revision or len(self.history)
        return sorted(key for key in self.history[revision - 1] if key in operation.keys)

    async def read_page(self, operation: RangeOp, *, timeout: Timeout, retry: RetryMode | None) -> RangeResult:
        del timeout, retry
        assert self.left is None, "a stream is left open while pages are read"
        self._change()
        match next(self.page_events, "fine"):
            case "cancelled":
                raise asyncio.CancelledError
            case "broken":
                raise WeatherError
            case "too large":
                raise EtcdError("too large", code=StatusCode.RESOURCE_EXHAUSTED)
            case _:
                pass
        inside = self._inside(operation)
        found = inside[: operation.limit]
        if len(found) > self.fits:
            raise ReplyTooLargeError("too large")
        kvs = tuple(KeyValue(key) for key in found)
        return RangeResult(Header(revision=len(self.history)), kvs, more=len(inside) > len(found), count=len(inside))

    # RangeStreamReader.

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        del timeout, retry
        assert not self.is_over
        assert rest.revision, "a stream is always of a known revision"
        self._change()
        event = next(self.chunk_events, "fine")
        if event == "lost":  # the reader of the stream finds out, and reads the rest from another member
            self.left = None
        if self.left is None:
            self.left = self._inside(rest)
        assert self.left == self._inside(rest), "what is left is not what the stream would bring"
        if event == "empty":
            return ()
        if event != "fine" and event != "lost":
            self.left = None
        match event:
            case "cancelled":
                raise asyncio.CancelledError
            case "broken":
                raise WeatherError
            case "too large":
                raise ReplyTooLargeError("too large")
            case "old":
                raise NotSupportedByServerError
            case "learner":
                raise NotSupportedForLearnerError
            case "ends early":
                return None
            case _:
                assert self.left is not None
        found, self.left = self.left[: self.fits], self.left[self.fits :]
        self.chunks_given += 1
        return tuple(KeyValue(key) for key in found)

    def cancel(self) -> None:
        self.is_over = True
        self.left = None


@dataclass
class Case:
    """A store that changes, a weather, and what is scanned."""

    keys: set[bytes]
    changes: list[bytes]
    pages: list[str]
    chunks: list[str]
    fits: int
    page_size: int
    interval: KeyRange

    def scan(self) -> tuple[ChangingStore, Scan]:
        store = ChangingStore(self.keys, self.changes, iter(self.pages), iter(self.chunks), self.fits)
        whole, size = RangeOp(self.interval), self.page_size
        pages = ScanPages(store.read_page, whole, page_size=size, timeout=UNSET, retry=None, stream=store)
        return store, Scan(pages)


WORLDS = st.builds(
    Case,
    keys=st.sets(KEYS, max_size=20),
    changes=st.lists(KEYS, max_size=20),
    pages=st.lists(st.sampled_from(PAGE_EVENTS), max_size=20),
    chunks=st.lists(st.sampled_from(CHUNK_EVENTS), max_size=20),
    fits=st.integers(1, 8),
    page_size=st.integers(1, 20),
    interval=st.sampled_from(INTERVALS),
)


@given(WORLDS)
def test_a_scan_is_one_revision_of_the_store_whatever_happens(case: Case) -> None:
    async def scan_all() -> None:
        store, scan = case.scan()
        seen: list[bytes] = []
        while True:
            try:
                seen.append((await anext(scan)).key)
            except StopAsyncIteration:
                break
            except (WeatherError, asyncio.CancelledError):
                continue
            except EtcdError:  # even a single key was too large, for now
                continue
        assert seen == sorted(key for key in store.history[scan.revision - 1] if key in case.interval)
        assert store.left is None, "a stream was left open"

    asyncio.run(scan_all())


@given(WORLDS)
def test_pages_tell_what_is_left_whichever_way_they_come(case: Case) -> None:
    async def scan_all() -> None:
        _, scan = case.scan()
        found: list[RangeResult] = []
        while True:
            try:
                found.append(await anext(scan.pages()))
            except StopAsyncIteration:
                break
            except (WeatherError, asyncio.CancelledError, EtcdError):
                continue
        assert all(1 <= len(page) <= case.page_size for page in found[1:])
        assert all(before.count - len(before) == after.count for before, after in pairwise(found))
        assert [page.more for page in found] == [True] * (len(found) - 1) + [False]
        assert found[-1].count == len(found[-1])

    asyncio.run(scan_all())


@given(st.sets(KEYS, min_size=2, max_size=20), st.integers(1, 8), st.integers(1, 20), st.integers(1, 18))
def test_a_compaction_in_the_midst_is_told_and_nothing_is_given_twice(
    keys: set[bytes], fits: int, page_size: int, reads: int
) -> None:
    async def scan_all() -> None:
        class Compacted(ChangingStore):
            async def read(
                self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None
            ) -> tuple[KeyValue, ...] | None:
                if self.chunks_given >= reads:
                    self.left = None
                    raise CompactedError
                return await super().read(rest, timeout, retry)

        store = Compacted(keys, [], iter(()), iter(()), fits)
        whole = RangeOp(INTERVALS[0])
        scan = Scan(ScanPages(store.read_page, whole, page_size=page_size, timeout=UNSET, retry=None, stream=store))
        seen: list[bytes] = []
        is_compacted = False
        try:
            async for kv in scan:
                seen.append(kv.key)  # noqa: PERF401 - what came before the error is wanted
        except CompactedError:
            is_compacted = True
        assert seen == sorted(keys)[: len(seen)]
        assert is_compacted == (len(seen) < len(keys))
        if is_compacted:
            for _ in range(2):  # not once and then a silent end
                try:
                    await anext(scan)
                except CompactedError:
                    continue
                raise AssertionError("the scan went on")

    asyncio.run(scan_all())
