"""offline/contents.py, offline/pages.py, offline/tree.py, errors/offline.py: what a database has, for every layout of
pages, and an error for every damage, within bounds of time and memory.
"""

import random
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import DatabaseFileError, EtcdError
from etcd_aio.offline.contents import Contents, contents_of
from etcd_aio.offline.crc32c import crc32c
from etcd_aio.offline.pages import DatabaseFile, in_memory
from tests.support.bolt_files import BRANCH, FREELIST, LEAF, BoltFile, database, key_value, revision

PAGE_SIZES = (4096, 8192, 16384, 32768, 65536)
KEYS = {revision(number): key_value(b"k%d" % number, b"v" * number) for number in range(2, 90)}


def read(data: bytes) -> Contents:
    return contents_of(DatabaseFile(in_memory(data), len(data)))


def expected(buckets: Mapping[bytes, Any]) -> int:
    """The hash, by its definition."""
    crc = 0
    for name, items in sorted({b"meta": {b"storageVersion": b"3.7.0"}, **buckets}.items()):
        crc = crc32c(name, crc)
        for key, value in sorted(items.items()):
            crc = crc32c(key, crc)
            crc = crc32c(value if isinstance(value, bytes) else b"", crc)
    return crc


def refused(data: bytes, text: str) -> None:
    with pytest.raises(DatabaseFileError, match=text) as caught:
        read(data)
    assert isinstance(caught.value, EtcdError)
    assert not caught.value.retryable


# Layouts.


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("is_inline", [False, True])
@pytest.mark.parametrize("most", [2, 20, 1000])
def test_every_layout_has_the_same_contents(page_size: int, is_inline: bool, most: int) -> None:
    buckets: dict[bytes, Any] = {b"key": KEYS, b"lease": {}, b"auth": {b"a": b"\x01"}}
    found = read(database(buckets, page_size=page_size, is_inline=is_inline, most=most))
    assert found == Contents(expected(buckets), 89, 88, "3.7.0")


@pytest.mark.parametrize("size", [5000, 70_000, 3_000_000])
def test_values_that_need_more_pages(size: int) -> None:
    buckets = {b"key": {revision(2): key_value(b"a", b"x" * size), revision(3): key_value(b"b", b"y" * size)}}
    assert read(database(buckets)) == Contents(expected(buckets), 3, 2, "3.7.0")


def test_the_last_version_of_a_key_tells_whether_it_exists() -> None:
    keys = {
        revision(2): key_value(b"a"),
        revision(2, 1): key_value(b"b"),
        revision(3): key_value(b"a"),
        revision(4, is_deleted=True): b"\x0a\x01b",
        revision(5, is_deleted=True): b"\x0a\x01c",  # was put before a compaction
        revision(6): key_value(b"x" * 300),
        revision(7): key_value(b"x" * 301),
        revision(8, is_deleted=True): b"\x0a\xac\x02" + b"x" * 300,
    }
    found = read(database({b"key": keys}))
    assert (found.revision, found.total_keys) == (8, 2)


@pytest.mark.parametrize(
    "value",
    [
        key_value(b"k", b"v" * 300, lease=9),
        b"\x0a\x01k\x30\x09\x10\x02",  # in another order
        b"\x0a\x01j\x0a\x01k",  # the last counts
        b"\x0a\x01k\x10" + b"\xff" * 9 + b"\x01",  # a negative number
        b"\x0a\x01k\x3a\x01x\x45abcd\x49abcdefgh",  # fields of later releases
        b"\x08\x05\x0a\x01k",  # another type
        b"\x0a\x81\x00k",  # a length in more bytes than it needs
    ],
)
def test_every_way_to_write_a_key_value(value: bytes) -> None:
    keys = {revision(2): key_value(b"k"), revision(3): value, revision(4, is_deleted=True): b"\x0a\x01k"}
    assert read(database({b"key": keys})).total_keys == 0


@pytest.mark.parametrize(
    "value",
    [
        b"\x0a",
        b"\x0a\x05k",
        b"\x0a\x01k\x10",
        b"\x0a\x01k\x10" + b"\xff" * 11,
        b"\x0a\x01k\x2a\x05v",
        b"\x0a\x01k\x00\x00",
        b"\x0a\x01k\x13",
        b"\x0a\x01k\x2a" + b"\xff" * 10,
        b"\x0a\x01k\x10" + b"\xff" * 9 + b"\x02",
        b"\x0a\x01k\x41abc",
    ],
)
def test_what_is_no_key_value_is_refused(value: bytes) -> None:
    refused(database({b"key": {revision(2): value}}), "no key-value")


@pytest.mark.parametrize(
    "key", [b"", b"short", revision(2)[:-1], revision(2).replace(b"_", b"-"), revision(2**63), revision(2, 2**63)]
)
def test_what_is_no_revision_is_refused(key: bytes) -> None:
    refused(database({b"key": {key: key_value(b"k")}}), "no revision")


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        (b"3.6.0", "3.6.0"),
        (b"03.6.0", "3.6.0"),
        (b"3.7.0-rc.1+x", "3.7.0-rc.1+x"),
        (b"3.7", ""),
        (b"a.b.c", ""),
        (b"", ""),
    ],
)
def test_storage_versions(raw: bytes, version: str) -> None:
    assert read(database({b"meta": {b"storageVersion": raw}})).version == version
    assert read(database({b"meta": {b"other": raw}})).version == ""


def test_a_bucket_within_a_bucket_is_hashed_by_its_name() -> None:
    buckets: dict[bytes, Any] = {b"auth": {b"a": b"1", b"inner": {b"x": {b"y": b"2"}, b"z": b"3"}}}
    assert read(database(buckets)).hash == expected(buckets)


def test_bytes_between_two_elements_are_not_hashed() -> None:
    file = BoltFile()
    elements = file.leaf({b"a": b"1", b"b": b"2"})
    number = file.page(LEAF, [(fields, content + b"left over") for fields, content in elements])
    buckets = file.leaf({b"meta": {b"storageVersion": b"3.7.0"}})
    any_bucket = (pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", number, 0))
    found = read(file.written(file.page(LEAF, [any_bucket, *buckets])))
    assert found.hash == expected({b"any": {b"a": b"1", b"b": b"2"}})


@given(st.dictionaries(st.binary(min_size=1, max_size=40), st.binary(max_size=3000), max_size=60), st.integers(2, 9))
def test_any_contents(items: dict[bytes, bytes], most: int) -> None:
    assert read(database({b"any": items}, most=most)).hash == expected({b"any": items})


# Meta pages and free lists.


def test_the_newer_meta_page_is_valid_unless_it_is_damaged() -> None:
    file = BoltFile()
    old = file.tree({b"meta": {}})
    new = file.tree({b"meta": {}, b"key": {revision(5): key_value(b"k")}})
    data = bytearray(file.written(new))
    second = file.meta(old, txn=8)
    data[4096 + 16 : 4096 + 16 + len(second)] = second
    assert read(bytes(data)).revision == 0
    data[4096 + 40] ^= 1
    assert read(bytes(data)).revision == 5
    data[60] ^= 1
    refused(bytes(data), "both meta pages are damaged: the checksum does not fit")


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_the_size_of_a_page_is_found_without_the_first_meta_page(page_size: int) -> None:
    data = bytearray(database({b"key": KEYS}, page_size=page_size))
    data[16] ^= 1
    assert read(bytes(data)).revision == 89


@pytest.mark.parametrize("count", [0, 3, 70_000])
def test_a_free_list_has_all_pages_that_are_not_in_use(count: int) -> None:
    file = BoltFile()
    free = list(range(2, 2 + count))
    file.pages += [bytes(4096)] * count
    root = file.tree({b"meta": {}, b"key": KEYS})
    assert read(file.written(root, free=free)).revision == 89
    if not count:
        return
    for wrong in (free[:-1], [*free, root], [*free, 2], [*free, 1], [*free, 10**9]):
        again = BoltFile(pages=file.pages[: file.pages.index(bytes(4096)) + count])
        refused(again.written(again.tree({b"meta": {}, b"key": KEYS}), free=wrong), "free")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"magic": 1}, r"magic number 0x00000001"),
        ({"version": 3}, "version 3"),
        ({"checksum": 5}, "checksum"),
        ({"page_size": 1000}, "1000 bytes"),
        ({"page_size": 2**31}, "bytes"),
        ({"page_size": 2**24}, "cut short"),
        ({"pages": 10**15}, "cut short"),
        ({"freelist": 10**15}, "no page"),
        ({"freelist": 2}, "which is no free list"),
    ],
)
def test_wrong_meta_pages(changed: dict[str, Any], text: str) -> None:
    file = BoltFile()
    root = file.tree({b"meta": {}})
    refused(file.written(root, **changed), text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty"),
        (b"x" * 4095, "only 4095 bytes"),
        (b"x" * 10_000, "no database of etcd"),
        (bytes(10_000), "0x00000000"),
    ],
)
def test_other_files(data: bytes, text: str) -> None:
    refused(data, text)


def test_a_file_of_a_big_endian_machine_is_told_as_such() -> None:
    file = BoltFile(order=">")
    refused(file.written(file.tree({b"meta": {}})), "big-endian")


def test_a_database_of_another_program() -> None:
    file = BoltFile()
    refused(file.written(file.tree({b"users": {b"a": b"1"}})), "no bucket 'meta'")
    refused(file.written(file.tree({b"meta": {}, b"x": b"1"})), "is no bucket")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_short(part: float) -> None:
    data = database({b"key": KEYS})
    refused(data[: int(len(data) * part)], "cut short|only")


# Damaged pages.


def changed(data: bytes, at: int, content: bytes) -> bytes:
    return data[:at] + content + data[at + len(content) :]


def damaged_leaf(at: int, content: bytes) -> bytes:
    file = BoltFile()
    number = file.page(LEAF, file.leaf({b"a": b"1", b"b": b"2"}))
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", number, 0))])
    return changed(file.written(root), number * 4096 + at, content)


@pytest.mark.parametrize(
    ("at", "content", "text"),
    [
        (0, pack("<Q", 9), "says that it is page 9"),
        (8, pack("<H", 3), "no kind 0x3"),
        (8, pack("<H", FREELIST), "no branch and no leaf"),
        (10, pack("<H", 0xFFFF), "do not fit"),
        (10, pack("<H", 255), "goes beyond|out of order"),
        (12, pack("<I", 1), "more than one reference|beyond the last"),
        (12, pack("<I", 2**32 - 1), "beyond the last"),
        (20, pack("<I", 2**31), "goes beyond"),
        (20, pack("<I", 0), "goes beyond"),
        (24, pack("<I", 2**32 - 1), "goes beyond"),
        (28, pack("<I", 4096), "goes beyond"),
        (24, pack("<I", 0), "out of order|no bucket"),
        (48, b"z", "out of order"),
        (50, b"a", "out of order"),
    ],
)
def test_a_damaged_leaf(at: int, content: bytes, text: str) -> None:
    if at == 24 and content == pack("<I", 0):  # an empty key is in order, and the file is none of etcd
        refused(damaged_leaf(at, content), "no bucket 'meta'")
        return
    refused(damaged_leaf(at, content), text)


@pytest.mark.parametrize(
    ("children", "text"),
    [
        ([], "without elements"),
        ([(b"a", 0)], "no branch and no leaf"),
        ([(b"a", 10**12)], "no page"),
        ([(b"a", -1)], "is page|more than one|no page"),
        ([(b"a", 2), (b"m", 2)], "more than one reference|out of order"),
        ([(b"b", 2)], "out of order"),  # the first key of the page is less
        ([(b"a", 2), (b"a", 3)], "out of order"),
        ([(b"a", 2), (b"aa", 3)], "last key"),
        ([(b"m", 3), (b"a", 2)], "out of order"),
    ],
)
def test_a_damaged_branch(children: list[tuple[bytes, int]], text: str) -> None:
    file = BoltFile()
    assert file.page(LEAF, file.leaf({b"a": b"1", b"b": b"2"})) == 2
    assert file.page(LEAF, file.leaf({b"m": b"1", b"n": b"2"})) == 3
    number = len(file.pages)
    file.page(BRANCH, file.branch([(key, number if page < 0 else page) for key, page in children]))
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", number, 0))])
    refused(file.written(root), text)


@pytest.mark.parametrize(
    "value", [b"", b"short", pack("<QQ", 0, 0), pack("<QQQHHI", 0, 0, 0, BRANCH, 1, 0), pack("<QQ", 99, 0)]
)
def test_a_damaged_bucket(value: bytes) -> None:
    file = BoltFile()
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, len(value)), b"any" + value)])
    refused(file.written(root), "bucket is damaged|no page")


def test_a_tree_that_is_deeper_than_any() -> None:
    file = BoltFile()
    number = file.tree({b"a": b"1"})
    for _ in range(40):
        number = file.page(BRANCH, file.branch([(b"a", number)]))
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", number, 0))])
    refused(file.written(root), "no tree of bbolt")


def test_buckets_within_buckets_without_end() -> None:
    items: Any = {b"x": b"1"}
    for _ in range(30):
        items = {b"b": items}
    refused(database({b"any": items}), "nested")


def test_elements_that_lie_over_each_other_are_refused_at_once() -> None:
    """Else a page of 64 MiB could be hashed ten thousand times."""
    file = BoltFile()
    count = 1000
    fields = [pack("<IIII", 0, (count - at) * 16, 4 + at, 10**6) for at in range(count)]
    body = pack("<QHHI", 2, LEAF, count, 249) + b"".join(fields) + bytes(250 * 4096)
    file.pages += [body[at * 4096 : (at + 1) * 4096] for at in range(250)]
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", 2, 0))])
    refused(file.written(root), "over another")


def test_a_value_that_etcd_cannot_have_written_is_not_read() -> None:
    size = 80 << 20
    file = BoltFile()
    root = file.page(LEAF, [(pack("<I", 1) + b"POSI" + pack("<II", 3, 16), b"any" + pack("<QQ", 3, 0))])
    pages = size // 4096 + 2
    head = pack("<QHHI", 3, LEAF, 1, pages - 1) + pack("<IIII", 0, 16, 1, size)
    file.pages += [head.ljust(4096, b"\0"), b""]
    data = file.written(root, pages=3 + pages)
    asked: list[int] = []

    def sparse(offset: int, count: int) -> bytes:
        asked.append(count)
        return data[offset : offset + count].ljust(count, b"\0")

    with pytest.raises(DatabaseFileError, match="64 MiB"):
        contents_of(DatabaseFile(sparse, (3 + pages) * 4096))
    assert max(asked) <= 4096


def test_a_page_with_millions_of_others_costs_nothing() -> None:
    """A sparse file of terabytes is cheap: else one of 256 GiB would take a byte and 0.2 us for each of its pages."""
    file = BoltFile()
    root = file.tree({b"meta": {b"storageVersion": b"3.7.0"}})
    pages = 1 << 26
    data = bytearray(file.written(root, pages=pages))
    data[root * 4096 + 12 : root * 4096 + 16] = pack("<I", pages - root - 1)

    def sparse(offset: int, count: int) -> bytes:
        return bytes(data[offset : offset + count].ljust(count, b"\0"))

    tracemalloc.start()
    try:
        assert contents_of(DatabaseFile(sparse, pages * 4096)).version == "3.7.0"
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_give_an_error_or_the_contents_that_are_left(seed: int) -> None:
    rng = random.Random(seed)
    file = BoltFile(most=5)
    root = file.tree({b"meta": {}, b"key": KEYS, b"big": {b"a": b"x" * 9000}, b"in": {b"b": {b"c": b"1"}}})
    data = file.written(root, free=[])
    for _ in range(100):
        flipped = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            page = rng.randrange(len(data) // 4096)
            flipped[page * 4096 + rng.randrange(rng.choice((16, 120, 4096)))] ^= 1 << rng.randrange(8)
        calls = 0

        def counted(offset: int, count: int, flipped: bytes = bytes(flipped)) -> bytes:
            nonlocal calls
            calls += 1
            return in_memory(flipped)(offset, count)

        with suppress(DatabaseFileError):
            contents_of(DatabaseFile(counted, len(flipped)))
        assert calls < 1000


def test_reading_can_be_ended_between_two_pages() -> None:
    calls = 0

    def go_on() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    data = database({b"key": KEYS}, most=2)
    with pytest.raises(KeyboardInterrupt):
        contents_of(DatabaseFile(in_memory(data), len(data)), go_on)
    assert calls == 3
