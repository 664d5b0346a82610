"""Scan: a range of any size, read at one revision, streamed where the server can and page by page where it cannot.

Knows: what is left to read, and in which of the two ways. Never knows: how a page or a stream is asked for; it is given
what reads them.

Theory. The first page is always a page. It tells the revision at once, with which everything after it can be asked for
by anybody at any time, and how many keys there are; a stream would tell both only at its end. Most ranges end with it,
and cost one call. What is left is asked for as one stream, whose chunks are cut into pages. A stream that breaks is
opened again behind the last key that came, on whichever member; where there is no streaming, pages go on from there.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Final, Protocol, Self, TypeAlias

from etcd_aio.call_options import RetryMode, Timeout
from etcd_aio.errors import (
    ClientUsageError,
    EtcdError,
    FutureRevisionError,
    NoSpaceError,
    NotSupportedForLearnerError,
    StatusCode,
    TooManyRequestsError,
)
from etcd_aio.kv.operations import RangeOp
from etcd_aio.types import Header, KeyRange, KeyValue, RangeResult, SortBy, SortOrder

DEFAULT_PAGE_SIZE: Final = 1000
"""What etcd's own mirror reads at once. Decoding as many small keys keeps the event loop for a few milliseconds."""

_GROWTH_DIVISOR: Final = 16  # a sixteenth more after each page that fits, so that about one page in eleven is in vain

_NO_HEADER: Final = Header()

ReadPage: TypeAlias = Callable[[RangeOp, Timeout, RetryMode | None], Awaitable[RangeResult]]
"""Reads one page: the operation, `timeout=` and `retry=`."""


class Chunks(Protocol):
    """Reads what is left of one range by stream."""

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        """The next keys, all that the server sent at once; None after the last ones, and after `cancel()`.

        Args:
            rest: what to ask for if no stream is open.
            timeout: how long to wait for these keys.
            retry: which failed attempts are repeated.

        Whatever it raises, cancellation among it: the stream is closed, and the next call opens another.
        """
        ...

    def cancel(self) -> None:
        """Close the stream at once; a `read` under way returns None."""
        ...


class Scan(AsyncIterator[KeyValue]):
    """Every key of a range, in key order, as the store was at one revision.

        async for kv in client.scan(prefix="svc/"): ...

    The first page decides the revision and all that follows is read at it, so changes made meanwhile are not seen; a
    watch from `revision + 1` continues without a gap.

    What does not fit into the first page is streamed if a member that is connected has RangeStream (etcd 3.7 and
    newer), and else read page by page. Of a stream no more is held in memory than one chunk, which etcd makes about as
    large as its largest request (1.5 MB), and 4 MiB that the server may send ahead. Of pages only one is held. A page
    that is too large for one message is asked for again with half as many keys, and pages that fit let the number grow
    back. Only if a single key does not fit is the error raised.

    A member that fails is no matter: the scan goes on behind the last key, at the same revision, on another one.
    Iterating raises what `client.range()` raises, and `CompactedError` if the revision is compacted before the end;
    the next step then tries again where it was. Cancelling a step leaves nothing behind: the next one asks for the same
    keys again.

    Breaking off is free. The stream is closed at once by `aclose()`, which also ends the scan for whoever still
    iterates, or when the scan is dropped, as it is by leaving a loop over `client.scan(...)` itself. A scan that is
    kept, and read no further, costs the server as little as here: neither side holds more than said above.
    """

    def __init__(
        self,
        read_page: ReadPage,
        first: RangeOp,
        *,
        page_size: int,
        timeout: Timeout,
        retry: RetryMode | None,
        chunks: Chunks | None = None,
    ) -> None:
        self._pages = ScanPages(read_page, first, page_size=page_size, timeout=timeout, retry=retry, chunks=chunks)
        self._keys = first.keys
        self._page: RangeResult | None = None
        self._position = 0

    def __repr__(self) -> str:
        return f"<Scan {self._keys} at revision {self.revision}>"

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
    A chunk of a stream is cut where it has more keys than a page may have; such pages have the header of the first one,
    since etcd sends none with them.
    """

    def __init__(
        self,
        read_page: ReadPage,
        first: RangeOp,
        *,
        page_size: int,
        timeout: Timeout,
        retry: RetryMode | None,
        chunks: Chunks | None = None,
    ) -> None:
        self._read_page = read_page
        self._chunks = chunks if _is_streamable(first) else None  # None: pages from here on
        self._first = first
        self._next: RangeOp | None = first
        self._has_begun = False
        self._header = _NO_HEADER  # of the first page
        self._left = 0  # keys that were not given yet, known from the first page on
        self._chunk: tuple[KeyValue, ...] = ()
        self._position = 0  # in the chunk
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
        """End the scan, and close its stream at once. Safe to repeat."""
        self._next = None
        self._chunk = ()
        if self._chunks is not None:
            self._chunks.cancel()

    async def _read_next(self) -> RangeResult:
        # Nothing that is told by the attributes changes before the last await of a step: a cancelled one has changed
        # nothing but the number of keys to ask for.
        while self._position >= len(self._chunk):
            rest = self._next
            if rest is None:
                raise StopAsyncIteration
            if self._chunks is None or not self._has_begun:
                return self._took_page(rest, await self._read_fitting(rest))
            kvs = await self._read_chunk(rest, self._chunks)
            if self._next is not None:  # else closed by another task meanwhile
                self._took_chunk(rest, kvs)
        return self._cut()

    # Pages.

    def _took_page(self, rest: RangeOp, page: RangeResult) -> RangeResult:
        if self._next is None:  # closed by another task meanwhile
            raise StopAsyncIteration
        if not self._has_begun:
            self._has_begun, self._header = True, page.header
            self._revision = self._revision or page.revision
        self._left = page.count - len(page.kvs)
        self._next = self._behind(rest, page.kvs) if page.more and page.kvs else None
        return page

    def _behind(self, rest: RangeOp, kvs: tuple[KeyValue, ...]) -> RangeOp:
        keys = KeyRange(kvs[-1].key + b"\0", rest.keys.range_end)
        return replace(rest, keys=keys, revision=self._revision)

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

    # Chunks.

    async def _read_chunk(self, rest: RangeOp, chunks: Chunks) -> tuple[KeyValue, ...] | None:
        """The next chunk; None if what is left has to be read by pages."""
        try:
            return await chunks.read(rest, self._timeout, self._retry)
        except FutureRevisionError:
            if not rest.serializable:
                raise
            return await self._read_chunk(replace(rest, serializable=False), chunks)  # as with pages
        except EtcdError as error:
            if not _calls_for_pages(error):
                raise
            return None

    def _took_chunk(self, rest: RangeOp, kvs: tuple[KeyValue, ...] | None) -> None:
        if kvs is None:
            self._chunks = None  # also if the stream ended early: pages know how far they go
        elif kvs:
            self._chunk, self._position = kvs, 0
            self._next = self._behind(rest, kvs) if len(kvs) < self._left else None
            if self._next is None and self._chunks is not None:
                self._chunks.cancel()  # its last word, that all went well, need not be waited for

    def _cut(self) -> RangeResult:
        """The next page of the chunk."""
        end = self._position + self._page_size
        kvs = self._chunk[self._position : end]
        count = self._left
        self._left -= len(kvs)
        self._position = end
        if end >= len(self._chunk):
            self._chunk = ()  # or the next one would have to find room beside it
        return RangeResult(self._header, kvs, more=self._left > 0, count=count)


def _is_streamable(first: RangeOp) -> bool:
    """Whether RangeStream serves it; etcd calls other orders and bounds unimplemented, as if it had no RangeStream."""
    return (
        first.sort_by is SortBy.KEY
        and first.sort_order is SortOrder.ASCEND
        and not (first.min_mod_revision or first.max_mod_revision)
        and not (first.min_create_revision or first.max_create_revision)
    )


def _is_too_large(error: EtcdError) -> bool:
    return error.code is StatusCode.RESOURCE_EXHAUSTED and not isinstance(error, NoSpaceError | TooManyRequestsError)


def _calls_for_pages(error: EtcdError) -> bool:
    """Whether pages may succeed where a stream did not: in smaller pieces, on older servers, on learners."""
    is_unserved = error.code is StatusCode.UNIMPLEMENTED or isinstance(error, NotSupportedForLearnerError)
    return is_unserved or _is_too_large(error)
