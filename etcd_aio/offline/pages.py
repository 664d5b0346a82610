"""Pages of a bbolt file: its meta pages, and page by page what it has, each checked before it is used. Pure.

A file is a row of pages of one size, which its two meta pages say; the newer of those that are intact is valid. Numbers
are little-endian, as on every machine that etcd supports; a file of a big-endian machine is told as such. A page begins
with its id, its kind, the number of its elements, and how many more pages belong to it ("overflow").
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, TypeAlias

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import DatabaseFileError

Read: TypeAlias = Callable[[int, int], bytes]
"""`read(offset, count)` returns so many bytes of the file.

Raises:
    DatabaseFileError: the file ends before.
"""

BRANCH: Final = 0x01
LEAF: Final = 0x02
_META: Final = 0x04
_FREELIST: Final = 0x10
_KINDS: Final = frozenset({BRANCH, LEAF, _META, _FREELIST})

HEADER: Final = Struct("<QHHI")
"""Of a page: id, kind, number of elements, pages of overflow."""
_META_FIELDS: Final = Struct("<IIIIQQQQQ")  # magic, version, page size, flags, root, sequence, free list, pages, txn
_CHECKSUM: Final = Struct("<Q")
_NUMBER: Final = Struct("<Q")
_MAGIC: Final = 0xED0CDAED
_VERSION: Final = 2
_PAGE_SIZES: Final = tuple(1024 << exponent for exponent in range(15))  # that bbolt tries
_FIRST_READ: Final = 4096  # bytes that bbolt wants for the first meta page
_NO_FREELIST: Final = 2**64 - 1
_MANY: Final = 0xFFFF  # elements of a free list, whose number then stands in front of them
READ_AT_ONCE: Final = 1 << 20
"""Bytes of a page, with its overflow, that is read as a whole."""
_CHUNK_BITS: Final = 16
_ALL: Final = bytearray(b"\1") * (1 << _CHUNK_BITS)  # the chunk of every 65536 pages that are all in a set
_NONE: Final = bytearray()


@dataclass(frozen=True, slots=True)
class Meta:
    """The contents of a meta page.

    Attributes:
        page_size: bytes of a page.
        root: the page with the names of the buckets.
        freelist: the page of the free list; None if there is none.
        pages: the number of pages in use, or used before.
        txn: the number of the transaction that has written it.
    """

    page_size: int
    root: int
    freelist: int | None
    pages: int
    txn: int


class PageSet:
    """Ids of pages. Those of a page with its overflow cost next to nothing, however many there are."""

    __slots__ = ("_chunks", "count")

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}
        self.count = 0

    def add(self, page: int) -> bool:
        """Whether the page is new."""
        chunk = self._chunks.get(page >> _CHUNK_BITS)
        if chunk is None:
            chunk = self._chunks[page >> _CHUNK_BITS] = bytearray(len(_ALL))
        at = page & (1 << _CHUNK_BITS) - 1
        if chunk[at]:
            return False
        chunk[at] = 1
        self.count += 1
        return True

    def add_all(self, first: int, end: int) -> None:
        """Add the pages before `end`, none of which is there already."""
        for number, begin, stop in _pieces(first, end):
            if stop - begin == len(_ALL):
                self._chunks[number] = _ALL
            else:
                self._chunks.setdefault(number, bytearray(len(_ALL)))[begin:stop] = _ALL[begin:stop]
        self.count += end - first

    def __contains__(self, page: int) -> bool:
        chunk = self._chunks.get(page >> _CHUNK_BITS)
        return chunk is not None and bool(chunk[page & (1 << _CHUNK_BITS) - 1])

    def find(self, first: int, end: int) -> int | None:
        """The first page before `end` that is in the set."""
        for number, begin, stop in _pieces(first, end):
            at = self._chunks.get(number, _NONE).find(1, begin, stop)
            if at >= 0:
                return (number << _CHUNK_BITS) + at
        return None


def _pieces(first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The chunks that have these pages, each with the positions of the pages in it."""
    while first < end:
        number, begin = first >> _CHUNK_BITS, first & len(_ALL) - 1
        stop = min(len(_ALL), begin + end - first)
        yield number, begin, stop
        first += stop - begin


@dataclass(slots=True)
class Page:
    """A branch or leaf page with its overflow, or the page of a small bucket, which stands within a leaf.

    Attributes:
        name: for errors.
        kind: `BRANCH` or `LEAF`.
        count: the number of elements.
        size: bytes, with the header and the overflow.
        read: reads its bytes, counted from its beginning.
    """

    name: str
    kind: int
    count: int
    size: int
    read: Read


class DatabaseFile:
    """The pages of a bbolt file.

    Args:
        read: reads the file.
        size: its size in bytes.

    Attributes:
        meta: the valid meta page.

    Raises:
        DatabaseFileError: it is no such file, or both meta pages are damaged, or it is cut short.
    """

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self.meta = _meta(read, size)
        if self.meta.pages * self.meta.page_size > size:
            raise DatabaseFileError(
                f"the file is cut short: it has {size} bytes, and should have {self.meta.pages} pages of "
                f"{self.meta.page_size} bytes"
            )
        self._reached = PageSet()
        self._freed = PageSet()
        for page in (0, 1):
            self._header(page)
        self._reached.add_all(0, 2)
        if self.meta.freelist is not None:
            self._read_freelist(self.meta.freelist)

    def page(self, number: int) -> Page:
        """A branch or leaf page, which is reached for the first time.

        Raises:
            DatabaseFileError: the page is another one, damaged, free, or was reached before.
        """
        kind, count, overflow = self._header(number)
        if kind not in (BRANCH, LEAF):
            raise DatabaseFileError(f"page {number} is damaged: its kind is {kind:#x}, which is no branch and no leaf")
        self._reach(number, overflow)
        start, size = number * self.meta.page_size, (1 + overflow) * self.meta.page_size
        read = self._read
        if size <= READ_AT_ONCE:
            read = in_memory(read(start, size))
            start = 0
        return Page(f"page {number}", kind, count, size, _shifted(read, start) if start else read)

    def check_rest(self) -> None:
        """Check, after all pages were reached, that the others are free.

        Raises:
            DatabaseFileError: there is a page that is neither.
        """
        if self.meta.freelist is not None and self._reached.count + self._freed.count != self.meta.pages:
            lost = self.meta.pages - self._reached.count - self._freed.count
            raise DatabaseFileError(f"{lost} pages are neither in use nor in the free list")

    def _header(self, number: int) -> tuple[int, int, int]:
        """The kind, the number of elements and the overflow of a page."""
        if not 0 <= number < self.meta.pages:
            raise DatabaseFileError(f"there is no page {number}: {self.meta.pages} pages are in use")
        found, kind, count, overflow = HEADER.unpack(self._read(number * self.meta.page_size, HEADER.size))
        if found != number:
            raise DatabaseFileError(f"page {number} is damaged: it says that it is page {found}")
        if kind not in _KINDS:
            raise DatabaseFileError(f"page {number} is damaged: there is no kind {kind:#x}")
        return kind, count, overflow

    def _reach(self, number: int, overflow: int) -> None:
        if number + overflow >= self.meta.pages:
            raise DatabaseFileError(f"page {number} is damaged: its overflow of {overflow} pages goes beyond the last")
        end = number + overflow + 1
        page = self._reached.find(number, end)
        if page is not None:
            raise DatabaseFileError(f"page {page} is damaged: there is more than one reference to it")
        page = self._freed.find(number, end)
        if page is not None:
            raise DatabaseFileError(f"page {page} is damaged: it is in use, and in the free list")
        self._reached.add_all(number, end)

    def _read_freelist(self, number: int) -> None:
        kind, count, overflow = self._header(number)
        if kind != _FREELIST:
            raise DatabaseFileError(f"page {number} is damaged: its kind is {kind:#x}, which is no free list")
        self._reach(number, overflow)
        at = number * self.meta.page_size + HEADER.size
        end = (number + 1 + overflow) * self.meta.page_size
        if count == _MANY:
            (count,) = _NUMBER.unpack(self._read(at, _NUMBER.size))
            at += _NUMBER.size
        if count * _NUMBER.size > end - at:
            raise DatabaseFileError(f"page {number} is damaged: a free list of {count} pages does not fit into it")
        for page in self._numbers(at, count):
            if not 1 < page < self.meta.pages or page in self._reached or not self._freed.add(page):
                raise DatabaseFileError(f"the free list is damaged: page {page} cannot be in it, or is there twice")

    def _numbers(self, at: int, count: int) -> Iterator[int]:
        end = at + count * _NUMBER.size
        for start in range(at, end, READ_AT_ONCE):
            for (number,) in _NUMBER.iter_unpack(self._read(start, min(READ_AT_ONCE, end - start))):
                yield number


def in_memory(data: bytes) -> Read:
    """A reader of bytes that are in memory."""

    def read(offset: int, count: int) -> bytes:
        if offset + count > len(data):
            raise DatabaseFileError("a page is damaged: something goes beyond its end")
        return data[offset : offset + count]

    return read


def _shifted(read: Read, start: int) -> Read:
    return lambda offset, count: read(start + offset, count)


def _meta(read: Read, size: int) -> Meta:
    """The valid meta page.

    Raises:
        DatabaseFileError: there is none.
    """
    if not size:
        raise DatabaseFileError("the file is empty")
    if size < _FIRST_READ:
        raise DatabaseFileError(f"the file is no database of etcd: it has only {size} bytes")
    found, reason = _meta_at(read, 0)
    page_size = None if found is None else found.page_size
    for at in _PAGE_SIZES:
        if page_size is None and at < size - 1024:
            other, _ = _meta_at(read, at)
            page_size = None if other is None else other.page_size
    if page_size is None:
        raise DatabaseFileError(f"the file is no database of etcd, or both meta pages are damaged: {reason}")
    if page_size not in _PAGE_SIZES:
        raise DatabaseFileError(f"a meta page is damaged: it says that pages have {page_size} bytes")
    if size < 2 * page_size:
        raise DatabaseFileError(f"the file is cut short: it has {size} bytes, and one page has {page_size}")
    both = (found, _meta_at(read, page_size)[0])
    intact = [one for one in both if one is not None and one.page_size == page_size]
    if not intact:
        raise DatabaseFileError("both meta pages are damaged: the size of a page differs from that of the file")
    return max(intact, key=lambda one: one.txn)


def _meta_at(read: Read, at: int) -> tuple[Meta | None, str]:
    """The meta page at this position, or None and the reason."""
    data = read(at + HEADER.size, _META_FIELDS.size + _CHECKSUM.size)
    magic, version, page_size, _, root, _, freelist, pages, txn = _META_FIELDS.unpack_from(data)
    if magic != _MAGIC:
        if magic == int.from_bytes(_MAGIC.to_bytes(4, "little"), "big"):
            return None, "it was written on a big-endian machine, which etcd does not support"
        return None, f"it does not begin as one (magic number {magic:#010x})"
    if version != _VERSION:
        return None, f"its format has the version {version}, and only {_VERSION} is known"
    if _fnv(data[: _META_FIELDS.size]) != _CHECKSUM.unpack_from(data, _META_FIELDS.size)[0]:
        return None, "the checksum does not fit"
    return Meta(page_size, root, None if freelist == _NO_FREELIST else freelist, pages, txn), ""


def _fnv(data: bytes) -> int:
    """FNV-1a with 64 bits."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 & 2**64 - 1
    return found
