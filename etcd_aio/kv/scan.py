"""Scan: a range of any size, read at one revision, streamed where the server can and page by page where it cannot.

Theory of operation. The scan begins with a page. Its header has the revision, with which everything after it can be
read at any time from any member, and its count says how many keys there are; a stream would send both only at its end.
Most ranges end with this page and cost one call. The rest is requested as one stream, whose chunks are cut into pages.
A stream that breaks is opened again after the last received key, on any member. If no member can stream, the scan goes
on with pages from there.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias

from etcd_aio import methods
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.base.reprs import when_constructed
from etcd_aio.error_handler import StreamedReply
from etcd_aio.errors import (
    ClientUsageError,
    EtcdError,
    FutureRevisionError,
    NoSpaceError,
    NotSupportedForLearnerError,
    StatusCode,
    TooManyRequestsError,
)
from etcd_aio.kv.operations import RangeOp, Sends
from etcd_aio.types import Header, KeyRange, KeyValue, RangeResult, SortBy, SortOrder

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_GROWTH_DIVISOR: Final = 16  # grow by a sixteenth after each page that fits: about one page in eleven is too large

_NO_HEADER: Final = Header()


ReadPage: TypeAlias = Sends[RangeOp, RangeResult]
"""Reads one page of a range."""


class Timing(Protocol):
    """Has the clock and the default timeout of a client."""

    def clock(self) -> float:
        """The time of the event loop."""
        ...

    def deadline(self, timeout: Timeout) -> float:
        """The instant at which a timeout ends that begins now."""
        ...


class ChunkReader(Protocol):
    """Reads the rest of one range as a stream."""

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        """Return the next chunk of keys; see `RangeStreamReader.read`."""
        ...

    def cancel(self) -> None:
        """Close the stream at once. A pending `read` returns None."""
        ...


class RangeStreamReader:
    """Reads the rest of one range as a stream (etcd 3.7 and newer)."""

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker
        self._reply = StreamedReply(methods.RANGE_STREAM)

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        """Return the next chunk of keys; None after the last chunk, and after `cancel()`.

        If it raises, including when it is cancelled, the stream is closed, and the next call opens another one.

        Args:
            rest: the range to request if no stream is open.
            timeout: how long to wait for this chunk.
            retry: which failed attempts are retried.
        """
        chunk = await self._invoker.read(
            self._reply, rest.message(), timeout=timeout, retry=retry, needs_leader=not rest.serializable
        )
        if chunk is None:
            return None
        return () if chunk.range_response is None else chunk.range_response.kvs

    def cancel(self) -> None:
        """Close the stream at once. A pending `read` returns None."""
        self._reply.cancel()


class Scan(AsyncIterator[KeyValue]):
    """Every key of a range, in key order, as the store was at one revision.

        async for kv in client.scan(prefix="svc/"): ...

    The first page decides the revision, and everything after it is read at this revision, so later changes are not
    seen. A watch from `revision + 1` continues without a gap.

    Keys that do not fit into the first page are streamed if a connected member supports it (etcd 3.7 and newer), else
    read page by page. A stream holds at most one chunk in memory, about as large as etcd's largest request (1.5 MB),
    and 4 MiB that the server may send ahead. Without a stream only one page is held. A page that is too large for one
    message is requested again with half as many keys; pages that fit let the number grow again. The error is raised
    only if a single key does not fit.

    If a member fails, the scan goes on after the last key, at the same revision, on another member. Iterating raises
    the same errors as `client.range()`, and `CompactedError` if the revision is compacted before the end; the next step
    then tries again from the same key. Cancelling a step leaves nothing behind: the next step requests the same keys.

    Leaving a scan early is free. Its stream is closed at once by `aclose()`, which also ends the scan in a task that
    still iterates, and when the scan is garbage-collected, as it is after a loop over `client.scan(...)` itself. A scan
    that is kept but not read further holds no more than described above, here and on the server.
    """

    def __init__(self, pages: "ScanPages") -> None:
        self._pages = pages
        self._page: RangeResult | None = None
        self._position = 0

    @when_constructed
    def __repr__(self) -> str:
        return f"<Scan {self._pages.keys} at revision {self.revision}>"

    @property
    def revision(self) -> int:
        """The revision that the scan reads; 0 before the first page has arrived."""
        return self._pages.revision

    def pages(self) -> "ScanPages":
        """This scan by whole pages instead of single keys.

        Raises:
            ClientUsageError: single keys were already taken, so the rest of a page would be lost.
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

    def take_ready(self) -> KeyValue | None:
        """The next key, if it has come with the one before; the only method that another thread may call."""
        page, at = self._page, self._position
        if page is None or at >= len(page.kvs):
            return None
        self._position = at + 1
        return page.kvs[at]

    async def aclose(self) -> None:
        """End the scan and drop the page it holds. Safe to repeat."""
        self._page = None
        await self._pages.aclose()


class ScanPages(AsyncIterator[RangeResult]):
    """A scan by whole pages; see `Scan`.

    In each page, `count` and `more` are about the range from this page on. An empty range has one page, which is empty.
    A chunk of a stream is cut if it has more keys than a page may have; its pages have the header of the first page,
    since etcd sends none with them.

    Args:
        read_page: reads a page.
        first: the range, and how it is read.
        page_size: the most keys in a page.
        timeout: seconds for each step, which may take several requests.
        retry: which failed attempts are retried.
        stream: reads the rest as a stream; None to read only pages.
        timing: has the clock of the steps; None if `read_page` bounds the whole scan.
    """

    def __init__(
        self,
        read_page: ReadPage,
        first: RangeOp,
        page_size: int,
        timeout: Timeout,
        retry: RetryMode | None,
        stream: ChunkReader | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._read_page = read_page
        self._timing = timing
        self._deadline: float | None = None  # of this step, once it has sent a request
        self._stream = stream if _is_streamable(first) else None  # None: only pages from here on
        self._first = first
        self._next: RangeOp | None = first
        self._has_begun = False
        self._header = _NO_HEADER  # of the first page
        self._left = 0  # keys not given yet, known once the first page has arrived
        self._chunk: tuple[KeyValue, ...] = ()
        self._position = 0  # in the chunk
        self._page_size = page_size
        self._limit = page_size
        self._revision = first.revision
        self._timeout = timeout
        self._retry: RetryMode | None = retry
        self._is_reading = False

    @property
    def keys(self) -> KeyRange:
        """The range."""
        return self._first.keys

    @property
    def revision(self) -> int:
        """The revision that the scan reads; 0 before the first page has arrived."""
        return self._revision

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RangeResult:
        if self._is_reading:
            raise ClientUsageError("two tasks iterate over one scan: give each task its own scan")
        self._is_reading = True
        self._deadline = None
        try:
            return await self._read_next()
        finally:
            self._is_reading = False

    async def aclose(self) -> None:
        """End the scan and close its stream at once. Safe to repeat."""
        self._next = None
        self._chunk = ()
        if self._stream is not None:
            self._stream.cancel()

    async def _read_next(self) -> RangeResult:
        # Attributes that describe the progress change only after the last await of a step, so a cancelled step has
        # changed nothing but the number of keys to request.
        while self._position >= len(self._chunk):
            rest = self._next
            if rest is None:
                raise StopAsyncIteration
            if self._stream is None or not self._has_begun:
                return self._take_page(rest, await self._read_fitting_page(rest))
            kvs = await self._read_chunk(rest, self._stream)
            if self._next is not None:  # else another task closed the scan meanwhile
                self._take_chunk(rest, kvs)
        return self._cut_page()

    def _next_timeout(self) -> Timeout:
        """Return the timeout of the next request: all requests of a step share one deadline."""
        if self._timing is None:
            return self._timeout
        if self._deadline is None:
            self._deadline = self._timing.deadline(self._timeout)
            return self._timeout
        return time_left(self._deadline, self._timing.clock())

    # Pages.

    def _take_page(self, rest: RangeOp, page: RangeResult) -> RangeResult:
        if self._next is None:  # another task closed the scan meanwhile
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

    async def _read_fitting_page(self, rest: RangeOp) -> RangeResult:
        while True:
            try:
                page = await self._read_page(
                    replace(rest, limit=self._limit), timeout=self._next_timeout(), retry=self._retry
                )
            except FutureRevisionError:
                if not rest.serializable or rest is self._first:
                    raise
                # This member is behind the one that sent the page before. A linearizable read makes it catch up.
                rest = replace(rest, serializable=False)
            except EtcdError as error:
                if not _is_too_large(error) or self._limit == 1:
                    raise
                self._limit //= 2
            else:
                self._limit = min(self._page_size, self._limit + max(1, self._limit // _GROWTH_DIVISOR))
                return page

    # Chunks.

    async def _read_chunk(self, rest: RangeOp, stream: ChunkReader) -> tuple[KeyValue, ...] | None:
        """Read the next chunk; None if the rest has to be read by pages."""
        try:
            return await stream.read(rest, self._next_timeout(), self._retry)
        except FutureRevisionError:
            if not rest.serializable:
                raise
            return await self._read_chunk(replace(rest, serializable=False), stream)  # as with pages
        except EtcdError as error:
            if not _may_succeed_by_pages(error):
                raise
            return None

    def _take_chunk(self, rest: RangeOp, kvs: tuple[KeyValue, ...] | None) -> None:
        if kvs is None:
            self._stream = None  # also if the stream ended early: pages report whether there is more
        elif kvs:
            self._chunk, self._position = kvs, 0
            self._next = self._behind(rest, kvs) if len(kvs) < self._left else None
            if self._next is None and self._stream is not None:
                self._stream.cancel()  # all keys are here: there is no need to wait for the trailers

    def _cut_page(self) -> RangeResult:
        """Cut the next page off the chunk."""
        end = self._position + self._page_size
        kvs = self._chunk[self._position : end]
        count = self._left
        self._left -= len(kvs)
        self._position = end
        if end >= len(self._chunk):
            self._chunk = ()  # frees the memory before the next chunk is read
        return RangeResult(self._header, kvs, more=self._left > 0, count=count)


def _is_streamable(first: RangeOp) -> bool:
    """Whether RangeStream supports this range. etcd answers UNIMPLEMENTED to other orders and to bounds."""
    return (
        first.sort_by is SortBy.KEY
        and first.sort_order is SortOrder.ASCEND
        and not (first.min_mod_revision or first.max_mod_revision)
        and not (first.min_create_revision or first.max_create_revision)
    )


def _is_too_large(error: EtcdError) -> bool:
    return error.code is StatusCode.RESOURCE_EXHAUSTED and not isinstance(error, NoSpaceError | TooManyRequestsError)


def _may_succeed_by_pages(error: EtcdError) -> bool:
    """Whether pages may succeed where a stream failed: in smaller pieces, on older servers, on learners."""
    is_unsupported = error.code is StatusCode.UNIMPLEMENTED or isinstance(error, NotSupportedForLearnerError)
    return is_unsupported or _is_too_large(error)
