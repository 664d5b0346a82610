"""Scan: a range of any size, read page by page at one revision.

Knows: where the next page begins and how many keys to ask for. Never knows: how a page is asked for; it is given what
reads one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final, Self, TypeAlias

from etcd_aio.api.keys import KeyRange
from etcd_aio.api.operations import RangeOp
from etcd_aio.errors import (
    ClientUsageError,
    EtcdError,
    FutureRevisionError,
    NoSpaceError,
    StatusCode,
    TooManyRequestsError,
)
from etcd_aio.options import RetryMode, Timeout
from etcd_aio.results import KeyValue, RangeResult

DEFAULT_PAGE_SIZE: Final = 1000
"""What etcd's own mirror reads at once. Decoding as many small keys keeps the event loop for a few milliseconds."""

_GROWTH_DIVISOR: Final = 16  # a sixteenth more after each page that fits, so that about one page in eleven is in vain

ReadPage: TypeAlias = Callable[[RangeOp, Timeout, RetryMode | None], Awaitable[RangeResult]]
"""Reads one page: the operation, `timeout=` and `retry=`."""


class Scan(AsyncIterator[KeyValue]):
    """Every key of a range, in key order, as the store was at one revision.

        async for kv in client.scan(prefix="svc/"): ...

    The first page decides the revision and later pages are read at it, so changes made meanwhile are not seen; a watch
    from `revision + 1` continues without a gap. No more than one page is held in memory.

    A page that is too large for one message is asked for again with half as many keys, and pages that fit let the
    number grow back. Only if a single key does not fit is the error raised.

    Iterating raises what `client.range()` raises, and `CompactedError` if the revision is compacted before the end.
    Cancelling a step leaves nothing behind: the next one asks for the same page again. A scan holds nothing open, so
    breaking off is free; `aclose()` ends it for whoever still iterates.
    """

    def __init__(
        self,
        read_page: ReadPage,
        first: RangeOp,
        *,
        page_size: int,
        timeout: Timeout,
        retry: RetryMode | None,
    ) -> None:
        self._pages = ScanPages(read_page, first, page_size=page_size, timeout=timeout, retry=retry)
        self._page: RangeResult | None = None
        self._position = 0

    @property
    def revision(self) -> int:
        """The revision the scan reads at; 0 before the first page has told."""
        return self._pages.revision

    def pages(self) -> "ScanPages":
        """The same scan by whole pages, for whoever wants them instead of single keys.

        Raises:
            ClientUsageError: keys were already iterated over, so that the rest of a page would be lost.
        """
        if self._page is not None:
            raise ClientUsageError("the scan already gave single keys: take keys or pages, not both")
        return self._pages

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> KeyValue:
        while self._page is None or self._position == len(self._page.kvs):
            self._page = await anext(self._pages)
            self._position = 0
        kv = self._page.kvs[self._position]
        self._position += 1
        return kv

    async def aclose(self) -> None:
        """End the scan and forget the page it holds. Safe to repeat."""
        self._page = None
        await self._pages.aclose()


class ScanPages(AsyncIterator[RangeResult]):
    """A scan by whole pages; see `Scan`.

    Of each page, `count` and `more` speak of the range from this page on. An empty range has one page, which is empty.
    """

    def __init__(
        self,
        read_page: ReadPage,
        first: RangeOp,
        *,
        page_size: int,
        timeout: Timeout,
        retry: RetryMode | None,
    ) -> None:
        self._read_page = read_page
        self._first = first
        self._next: RangeOp | None = first
        self._page_size = page_size
        self._limit = page_size
        self._revision = first.revision
        self._timeout = timeout
        self._retry: RetryMode | None = retry
        self._is_reading = False

    @property
    def revision(self) -> int:
        """The revision the scan reads at; 0 before the first page has told."""
        return self._revision

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RangeResult:
        if self._is_reading:
            raise ClientUsageError("two tasks iterate over one scan: give each its own")
        self._is_reading = True
        try:
            return await self._read_next()
        finally:
            self._is_reading = False

    async def aclose(self) -> None:
        """End the scan. Safe to repeat."""
        self._next = None

    async def _read_next(self) -> RangeResult:
        wanted = self._next
        if wanted is None:
            raise StopAsyncIteration
        page = await self._read_fitting(wanted)
        if self._next is None:  # closed by another task meanwhile
            raise StopAsyncIteration
        # From here on nothing awaits: a cancelled step has changed nothing but the number of keys asked for.
        self._revision = self._revision or page.revision
        if page.more and page.kvs:
            rest = KeyRange(page.kvs[-1].key + b"\0", wanted.keys.range_end)
            self._next = replace(wanted, keys=rest, revision=self._revision)
        else:
            self._next = None
        return page

    async def _read_fitting(self, wanted: RangeOp) -> RangeResult:
        while True:
            try:
                page = await self._read_page(replace(wanted, limit=self._limit), self._timeout, self._retry)
            except FutureRevisionError:
                if not wanted.serializable or wanted is self._first:
                    raise
                # This member is behind the one that answered the page before. A linearizable read makes it catch up.
                wanted = replace(wanted, serializable=False)
            except EtcdError as error:
                if not _is_too_large(error) or self._limit == 1:
                    raise
                self._limit //= 2
            else:
                self._limit = min(self._page_size, self._limit + max(1, self._limit // _GROWTH_DIVISOR))
                return page


def _is_too_large(error: EtcdError) -> bool:
    return error.code is StatusCode.RESOURCE_EXHAUSTED and not isinstance(error, NoSpaceError | TooManyRequestsError)
