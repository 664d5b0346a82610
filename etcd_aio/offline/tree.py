"""Trees of a bbolt file: the elements of a bucket in order, leaf by leaf, with what `bbolt check` checks. Pure.

A bucket is a tree of branch pages, whose elements have the first key of a page below, and of leaf pages. An element of
a leaf may be a bucket, whose value says where its tree is; a small bucket stands there itself.

Everything is bounded, whatever a damaged file says: a page is reached once, elements have no more bytes than their
page, and a tree is no deeper than one can be that bbolt has written.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import DatabaseFileError
from etcd_aio.offline.pages import BRANCH, HEADER, LEAF, READ_AT_ONCE, DatabaseFile, Page, in_memory

_BRANCH_ELEMENT: Final = Struct("<IIQ")  # position of the key, its size, the page
_LEAF_ELEMENT: Final = Struct("<IIII")  # flags, position of the key, its size, that of the value
_BUCKET: Final = Struct("<QQ")  # root, sequence
_IS_BUCKET: Final = 0x01
_DEEPEST: Final = 32  # levels; each has at least two elements for one of the level above
_MOST_BRANCH_BYTES: Final = 32 << 20  # of the branches above a leaf; bbolt splits one that is larger than a page
_MOST_BYTES: Final = 64 << 20  # of a key or a value; etcd's limit for a request is 1.5 MiB, unless it is configured


@dataclass(slots=True)
class Leaf:
    """The elements of a leaf.

    Attributes:
        items: key, value and whether the value is a bucket.
        hashed: the keys and values as they stand in the page, one after the other; None if they do not stand so.
    """

    items: list[tuple[bytes, bytes, bool]]
    hashed: bytes | None


def leaves(file: DatabaseFile, root: int) -> Iterator[Leaf]:
    """The leaves of a tree, in order, in parts if they are large.

    Raises:
        DatabaseFileError: a page is damaged, or keys are out of order.
    """
    page = file.page(root)
    if page.kind == LEAF:
        yield from _leaf(page, b"", None)
        return
    levels = [_Level(page.size, _children(page, b"", None))]
    while levels:
        child = next(levels[-1].left, None)
        if child is None:
            levels.pop()
            continue
        number, least, end = child
        page = file.page(number)
        if page.kind == BRANCH:
            levels.append(_Level(page.size, _children(page, least, end)))
            if len(levels) > _DEEPEST or sum(level.size for level in levels) > _MOST_BRANCH_BYTES:
                raise DatabaseFileError(f"page {number} is damaged: no tree of bbolt has so many branches above it")
            continue
        yield from _leaf(page, least, end)


@dataclass(slots=True)
class _Level:
    """A branch on the way to a leaf: its bytes, and the pages below it that are left."""

    size: int
    left: Iterator[tuple[int, bytes, bytes | None]]


def bucket_leaves(file: DatabaseFile, value: bytes) -> Iterator[Leaf]:
    """The leaves of a bucket, by the value that the bucket has where its name stands.

    Raises:
        DatabaseFileError: it is damaged.
    """
    if len(value) < _BUCKET.size:
        raise DatabaseFileError("a bucket is damaged: it is too short")
    root, _ = _BUCKET.unpack_from(value)
    if root:
        yield from leaves(file, root)
        return
    inline = value[_BUCKET.size :]
    if len(inline) < HEADER.size:
        raise DatabaseFileError("a small bucket is damaged: it is too short")
    _, kind, count, _ = HEADER.unpack_from(inline)
    if kind != LEAF:
        raise DatabaseFileError(f"a small bucket is damaged: its kind is {kind:#x}, which is no leaf")
    yield from _leaf(Page("a small bucket", kind, count, len(inline), in_memory(inline)), b"", None)


def _children(page: Page, least: bytes, end: bytes | None) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The pages below a branch, each with its first key, and the key that ends it."""
    if page.size > _MOST_BRANCH_BYTES:
        raise _damaged(page, "it is too large for a branch")
    if not page.count:
        raise _damaged(page, "it is a branch without elements")
    data = page.read(0, page.size)
    table_end = HEADER.size + page.count * _BRANCH_ELEMENT.size
    if table_end > page.size:
        raise _damaged(page, f"{page.count} elements do not fit into it")

    def key_of(index: int) -> bytes:
        start = HEADER.size + index * _BRANCH_ELEMENT.size
        position, size, _ = _BRANCH_ELEMENT.unpack_from(data, start)
        if start + position < table_end or start + position + size > page.size:
            raise _damaged(page, "the key of an element goes beyond it")
        return data[start + position : start + position + size]

    key = key_of(0)
    if key < least:
        raise _damaged(page, "its first key is less than that of the page above")
    for index in range(page.count):
        following = key_of(index + 1) if index + 1 < page.count else end
        if following is not None and key >= following:
            raise _damaged(page, "its keys are out of order")
        _, _, number = _BRANCH_ELEMENT.unpack_from(data, HEADER.size + index * _BRANCH_ELEMENT.size)
        yield number, key, following
        if following is not None:
            key = following


def _leaf(page: Page, least: bytes, end: bytes | None) -> Iterator[Leaf]:
    """The elements of a leaf page; of a large one each for itself, which has then one value in memory."""
    table_end = HEADER.size + page.count * _LEAF_ELEMENT.size
    if table_end > page.size:
        raise _damaged(page, f"{page.count} elements do not fit into it")
    table = page.read(HEADER.size, table_end - HEADER.size)
    data = page.read(0, page.size) if page.size <= READ_AT_ONCE else None
    items: list[tuple[bytes, bytes, bool]] = []
    left = page.size - table_end
    start, first, at = HEADER.size, table_end, table_end
    before: bytes | None = None
    is_dense = True
    for flags, position, key_size, value_size in _LEAF_ELEMENT.iter_unpack(table):
        begin = start + position
        middle = begin + key_size
        stop = middle + value_size
        left -= key_size + value_size
        if begin < table_end or stop > page.size or left < 0:
            raise _damaged(page, "an element goes beyond it, or lies over another one")
        if data is None:
            if max(key_size, value_size) > _MOST_BYTES:
                raise _damaged(
                    page, f"a key or a value has more than {_MOST_BYTES >> 20} MiB, which etcd does not write"
                )
            key, value = page.read(begin, key_size), page.read(middle, value_size)
        else:
            key, value = data[begin:middle], data[middle:stop]
        if key < least or (before is not None and key <= before):
            raise _damaged(page, "its keys are out of order")
        before = key
        if begin != at or flags & _IS_BUCKET:
            is_dense = False
        at = stop
        start += _LEAF_ELEMENT.size
        if data is None:
            yield Leaf([(key, value, bool(flags & _IS_BUCKET))], None)
        else:
            items.append((key, value, bool(flags & _IS_BUCKET)))
    if end is not None and before is not None and before >= end:
        raise _damaged(page, "its last key is not less than the first of the next page")
    if data is not None:
        yield Leaf(items, data[first:at] if is_dense else None)


def _damaged(page: Page, why: str) -> DatabaseFileError:
    return DatabaseFileError(f"{page.name} is damaged: {why}")
