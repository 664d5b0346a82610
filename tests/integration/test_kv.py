"""get, range, put, delete and compact on a real server.

Every expectation is written from what etcd documents about itself, as plain values: nothing here is computed by the
functions under test.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from etcd_aio import Client, KeyValue, SortBy, SortOrder, op
from etcd_aio.errors import CompactedError, FutureRevisionError, InvalidRequestError
from etcd_aio.testing import EtcdServer
from etcd_aio.types import KeyLike, SortByLike, SortOrderLike

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine", "each_store")]


@pytest.fixture
async def store() -> AsyncIterator[Client]:
    """A client on an empty store of the test's own, for what concerns every key there is."""
    async with EtcdServer() as server, Client(server.endpoint) as client:
        yield client


@dataclass(frozen=True)
class HasId:
    """Any object with an id is a lease."""

    id: int


# get and put.


@pytest.mark.both_engines
async def test_a_key_and_its_history(client: Client, prefix: str) -> None:
    key = prefix + "k"
    assert await client.get(key) is None
    first = await client.put(key, "one", prev_kv=True)
    assert first.prev_kv is None
    second = await client.put(key, "two", prev_kv=True)
    assert second.revision == first.revision + 1
    assert second.prev_kv == KeyValue(key.encode(), b"one", first.revision, first.revision, 1)
    third = await client.put(key, "three")
    assert third.prev_kv is None, "it was not requested"
    assert await client.get(key) == KeyValue(key.encode(), b"three", first.revision, third.revision, 3)

    gone = await client.delete(key)
    assert (gone.deleted, gone.prev_kvs, gone.revision) == (1, (), third.revision + 1)
    again = await client.put(key, "four")
    assert await client.get(key) == KeyValue(key.encode(), b"four", again.revision, again.revision, 1)

    assert await client.get(key, revision=first.revision - 1) is None
    assert await client.get(key, revision=first.revision) == second.prev_kv
    assert await client.get(key, revision=second.revision) == KeyValue(
        key.encode(), b"two", first.revision, second.revision, 2
    )
    assert await client.get(key, revision=gone.revision) is None


async def test_get_options(client: Client, prefix: str) -> None:
    put = await client.put(prefix, "value")
    whole = KeyValue(prefix.encode(), b"value", put.revision, put.revision, 1)
    assert await client.get(prefix, serializable=True) == whole
    assert await client.get(prefix, keys_only=True) == KeyValue(prefix.encode(), b"", put.revision, put.revision, 1)
    assert await client.get(prefix, keys_only=True, serializable=True, revision=put.revision) is not None
    assert await client.get(prefix[:-1]) is None, "a get is of one key, not of a prefix"


async def test_every_kind_of_text_and_bytes(client: Client, prefix: str) -> None:
    cases: list[tuple[KeyLike, bytes]] = [
        ("schön ☃", b"sch\xc3\xb6n \xe2\x98\x83"),
        (b"\x80bytes", b"\x80bytes"),
        (bytearray(b"\x00\xff"), b"\x00\xff"),
        (memoryview(b"\x00a\xff")[1:], b"a\xff"),
        (memoryview(b"abcdef")[::2], b"ace"),
    ]
    for given, sent in cases:
        key: KeyLike = prefix + given if isinstance(given, str) else bytearray(prefix.encode()) + bytes(given)
        await client.put(key, given)
        for form in (given, sent):
            start = prefix.encode() + (form.encode() if isinstance(form, str) else bytes(form))
            found = await client.range(prefix=memoryview(start))
            assert [(kv.key, kv.value) for kv in found] == [(prefix.encode() + sent, sent)]
            assert type(found[0].key) is type(found[0].value) is bytes
    snowman = await client.get(prefix + "schön ☃")
    assert snowman is not None
    assert snowman.text() == "schön ☃"


async def test_every_byte_in_key_and_value(client: Client, prefix: str) -> None:
    everything = bytes(range(256))
    key = prefix.encode() + everything
    await client.put(key, everything * 3)
    kv = await client.get(key)
    assert kv is not None
    assert (kv.key, kv.value) == (key, everything * 3)


async def test_empty_value_is_a_value(client: Client, prefix: str) -> None:
    await client.put(prefix, "")
    kv = await client.get(prefix)
    assert kv is not None
    assert (kv.value, kv.text(), kv.version) == (b"", "", 1)


@pytest.mark.both_engines
async def test_a_value_of_one_mebibyte(client: Client, prefix: str) -> None:
    value = bytes(range(256)) * 4096
    await client.put(prefix, value)
    kv = await client.get(prefix)
    assert kv is not None
    assert kv.value == value
    replaced = await client.put(prefix, b"", prev_kv=True)
    assert replaced.prev_kv == kv


async def test_put_attaches_and_detaches_a_lease(client: Client, prefix: str) -> None:
    one, other = [(await client.leases.grant(36_000)).id for _ in range(2)]

    async def lease_and_value() -> tuple[int, bytes]:
        kv = await client.get(prefix)
        assert kv is not None
        return kv.lease, kv.value

    await client.put(prefix, "a", lease=one)
    assert await lease_and_value() == (one, b"a")
    await client.put(prefix, "b", ignore_lease=True)
    assert await lease_and_value() == (one, b"b")
    await client.put(prefix, ignore_value=True, lease=HasId(other))
    assert await lease_and_value() == (other, b"b")
    await client.put(prefix, ignore_value=True, ignore_lease=True)
    assert await lease_and_value() == (other, b"b")
    await client.put(prefix, "c")
    assert await lease_and_value() == (0, b"c"), "a put without a lease takes the lease off"
    kv = await client.get(prefix)
    assert kv is not None
    assert kv.version == 5, "every one of them was a put"

    await client.put(prefix, "d", lease=one)
    await client.leases.revoke(one)
    assert await client.get(prefix) is None, "a lease takes its keys along"


# The forms of a range.


async def test_prefixes_end_where_they_should(client: Client, prefix: str) -> None:
    root = prefix.encode()
    suffixes = [
        b"",
        b"\x00",
        b"a",
        b"a\x00",
        b"a\xfe\xff",
        b"a\xff",
        b"a\xff\x00",
        b"a\xff\xff",
        b"a\xff\xffz",
        b"b",
        b"\xff",
    ]
    for suffix in suffixes:
        await client.put(root + suffix, suffix)

    async def under(text: bytes) -> list[bytes]:
        return [kv.value for kv in await client.range(prefix=root + text)]

    assert await under(b"") == suffixes
    assert await under(b"a") == suffixes[2:9]
    assert await under(b"a\xff") == suffixes[5:9]
    assert await under(b"a\xff\xff") == [b"a\xff\xff", b"a\xff\xffz"]
    assert await under(b"a\xff\xff\xff") == []
    assert await under(b"\xff") == [b"\xff"]
    assert await under(b"\x00") == [b"\x00"]

    async def between(first: bytes, end: bytes) -> list[bytes]:
        return [kv.value for kv in await client.range(root + first, range_end=root + end)]

    assert await between(b"a", b"a") == []
    with pytest.raises(InvalidRequestError, match="is before the first key"):
        await between(b"b", b"a")
    assert await between(b"a", b"a\x00") == [b"a"]
    assert await between(b"a\x00", b"a\xff") == [b"a\x00", b"a\xfe\xff"]
    assert await between(b"a\xff\xff\x01", b"\xff") == [b"a\xff\xffz", b"b"]
    assert (await client.delete(prefix=root + b"a\xff")).deleted == 4
    assert await under(b"") == [*suffixes[:5], b"b", b"\xff"]


async def test_forms_that_reach_the_whole_store(store: Client) -> None:
    keys = [b"\x00", b"\x00\x00", b"a", b"b", b"\xff", b"\xff\xff", b"\xff\xffz"]
    assert await store.range(all_keys=True) == await store.range(prefix="")
    assert not await store.range(all_keys=True)
    for key in keys:
        await store.put(key, key)

    def names(found: object) -> list[bytes]:
        assert isinstance(found, tuple)
        return [kv.key for kv in found]

    assert names((await store.range(all_keys=True)).kvs) == keys
    assert names((await store.range(prefix="")).kvs) == keys
    assert names((await store.range(from_key="")).kvs) == keys
    assert names((await store.range(from_key=b"\x00")).kvs) == keys
    assert names((await store.range(b"\x00")).kvs) == [b"\x00"]
    assert names((await store.range(from_key=b"\x00\x00")).kvs) == keys[1:]
    assert names((await store.range(from_key="b")).kvs) == keys[3:]
    assert names((await store.range(from_key=b"\xff\xff\xff")).kvs) == []
    assert names((await store.range(prefix=b"\xff")).kvs) == keys[4:]
    assert names((await store.range(prefix=b"\xff\xff")).kvs) == keys[5:]
    assert names((await store.range(prefix=b"\x00")).kvs) == keys[:2]

    assert names((await store.delete(prefix=b"\xff\xff", prev_kv=True)).prev_kvs) == keys[5:]
    assert names((await store.delete(from_key="b", prev_kv=True)).prev_kvs) == [b"b", b"\xff"]
    assert names((await store.delete(b"\x00", prev_kv=True)).prev_kvs) == [b"\x00"]
    rest = await store.delete(all_keys=True, prev_kv=True)
    assert (rest.deleted, names(rest.prev_kvs)) == (2, [b"\x00\x00", b"a"])
    assert (await store.range(all_keys=True, count_only=True)).count == 0


# The options of a range.


@dataclass(frozen=True)
class History:
    """Three keys that every order sorts differently, and the revisions that made them so.

    key   puts                    version  created  changed last  value
    a     2nd key, at 3, then 6   2        3rd      3rd           "n"
    b     first, at 1, then 4, 5  3        1st      2nd           ""
    c     at 2                    1        2nd      1st           "x"
    """

    revisions: tuple[int, ...]

    def at(self, step: int) -> int:
        """The revision of put number `step`, from 1."""
        return self.revisions[step - 1]


@pytest.fixture
async def history(client: Client, prefix: str) -> History:
    puts = (("b", "q"), ("c", "x"), ("a", "q"), ("b", "r"), ("b", ""), ("a", "n"))
    return History(tuple([(await client.put(prefix + key, value)).revision for key, value in puts]))


def letters(found: object) -> str:
    assert isinstance(found, tuple)
    return b"".join(kv.key[-1:] for kv in found).decode()


ORDERS: list[tuple[SortByLike, str]] = [
    ("key", "abc"),
    ("version", "cab"),
    ("create_revision", "bca"),
    ("mod_revision", "cba"),
    ("value", "bac"),
]


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(("sort_by", "order"), ORDERS)
async def test_every_sort_order(client: Client, prefix: str, sort_by: SortByLike, order: str) -> None:
    ways: tuple[tuple[SortOrderLike, str], ...] = (("ascend", order), ("descend", order[::-1]))
    for way, expected in ways:
        for by in (sort_by, SortBy(sort_by)):
            found = await client.range(prefix=prefix, sort_by=by, sort_order=way)
            assert letters(found.kvs) == expected
            assert (found.count, found.more) == (3, False)
        cut = await client.range(prefix=prefix, sort_by=sort_by, sort_order=SortOrder(way), limit=2)
        assert letters(cut.kvs) == expected[:2], "sorted first, cut then"
        assert (cut.count, cut.more) == (3, True)
        bare = await client.range(prefix=prefix, sort_by=sort_by, sort_order=way, keys_only=True)
        assert letters(bare.kvs) == expected, "sorted by what is then left out"
        assert [kv.value for kv in bare] == [b"", b"", b""]


@pytest.mark.usefixtures("history")
async def test_limit_count_and_more(client: Client, prefix: str) -> None:
    for limit, expected, more in (
        (0, "abc", False),
        (1, "a", True),
        (2, "ab", True),
        (3, "abc", False),
        (4, "abc", False),
    ):
        found = await client.range(prefix=prefix, limit=limit)
        assert (letters(found.kvs), found.count, found.more) == (expected, 3, more)
        counted = await client.range(prefix=prefix, limit=limit, count_only=True)
        assert (counted.kvs, counted.count) == ((), 3)
    one = await client.range(prefix + "b", limit=1)
    assert (letters(one.kvs), one.count, one.more) == ("b", 1, False)
    none = await client.range(prefix=prefix + "d", limit=1)
    assert (none.kvs, none.count, none.more) == ((), 0, False)
    both = await client.range(prefix=prefix, count_only=True, keys_only=True)
    assert (both.kvs, both.count) == ((), 3)


async def test_bounds_of_revisions(client: Client, prefix: str, history: History) -> None:
    at = history.at
    found = await client.range(prefix=prefix, min_mod_revision=at(5))
    assert (letters(found.kvs), found.count) == ("ab", 3), "count ignores the bounds"
    assert letters((await client.range(prefix=prefix, min_mod_revision=at(5) + 1)).kvs) == "a"
    assert letters((await client.range(prefix=prefix, max_mod_revision=at(5))).kvs) == "bc"
    assert letters((await client.range(prefix=prefix, max_mod_revision=at(5) - 1)).kvs) == "c"
    assert letters((await client.range(prefix=prefix, min_create_revision=at(2))).kvs) == "ac"
    assert letters((await client.range(prefix=prefix, min_create_revision=at(2) + 1)).kvs) == "a"
    assert letters((await client.range(prefix=prefix, max_create_revision=at(2))).kvs) == "bc"
    assert letters((await client.range(prefix=prefix, max_create_revision=at(2) - 1)).kvs) == "b"
    together = await client.range(
        prefix=prefix,
        min_mod_revision=at(2),
        max_mod_revision=at(5),
        min_create_revision=at(1),
        max_create_revision=at(1),
    )
    assert letters(together.kvs) == "b"
    first = await client.range(prefix=prefix, min_mod_revision=at(5), sort_order="descend", limit=1)
    assert (letters(first.kvs), first.count, first.more) == ("b", 3, True)
    assert not await client.range(prefix=prefix, min_mod_revision=at(6) + 1)


async def test_revisions_in_the_past(client: Client, prefix: str, history: History) -> None:
    now = (await client.delete(prefix=prefix)).revision
    assert now == history.at(6) + 1
    states = {
        0: [],
        1: ["b:q"],
        2: ["b:q", "c:x"],
        3: ["a:q", "b:q", "c:x"],
        4: ["a:q", "b:r", "c:x"],
        5: ["a:q", "b:", "c:x"],
    }
    for step, expected in states.items():
        revision = history.at(1) - 1 if step == 0 else history.at(step)
        for serializable in (False, True):
            found = await client.range(prefix=prefix, revision=revision, serializable=serializable)
            assert [f"{chr(kv.key[-1])}:{kv.text()}" for kv in found] == expected
            assert found.count == len(expected), "it counts what was there then"
            assert found.revision == now, "the header tells of now"
    past = await client.range(prefix=prefix, revision=history.at(4), limit=1, sort_by="version", sort_order="descend")
    assert (letters(past.kvs), past.count, past.more) == ("b", 3, True)
    assert past[0] == KeyValue(f"{prefix}b".encode(), b"r", history.at(1), history.at(4), 2)
    assert not await client.range(prefix=prefix)


async def test_a_range_result_is_a_sequence(client: Client, prefix: str, history: History) -> None:
    found = await client.range(prefix=prefix, sort_order="descend")
    assert found[0].key.endswith(b"c")
    assert found[-1] in found
    assert [kv.key[-1:] for kv in reversed(found)] == [b"a", b"b", b"c"]
    assert found[1:] == found.kvs[1:]
    assert found.revision == history.at(6)
    assert found.header.cluster_id
    assert found.header.member_id
    assert found.header.raft_term


# delete and compact.


async def test_deleting_nothing_is_no_error_and_no_change(client: Client, prefix: str) -> None:
    put = await client.put(prefix + "other", "")
    for gone in (await client.delete(prefix + "none", prev_kv=True), await client.delete(prefix=prefix + "none")):
        assert (gone.deleted, gone.prev_kvs, gone.revision) == (0, (), put.revision)


@pytest.mark.usefixtures("history")
async def test_deleting_ranges(client: Client, prefix: str) -> None:
    gone = await client.delete(prefix + "b", range_end=prefix + "c", prev_kv=True)
    assert (gone.deleted, letters(gone.prev_kvs), gone.prev_kvs[0].version) == (1, "b", 3)
    gone = await client.delete(prefix=prefix)
    assert (gone.deleted, gone.prev_kvs) == (2, ())
    assert not await client.range(prefix=prefix)


@pytest.mark.parametrize("physical", [False, True])
async def test_compaction_forgets_what_was_before(client: Client, prefix: str, physical: bool) -> None:
    revisions = [(await client.put(prefix, str(number))).revision for number in range(4)]
    compacted = await client.compact(revisions[2], physical=physical)
    assert compacted.revision == revisions[3], "it changes nothing"
    for revision in revisions[:2]:
        with pytest.raises(CompactedError) as caught:
            await client.get(prefix, revision=revision)
        assert (caught.value.compact_revision, caught.value.retryable) == (0, False)
    for number in (2, 3):
        kv = await client.get(prefix, revision=revisions[number])
        assert kv is not None
        assert (kv.text(), kv.version, kv.create_revision) == (str(number), number + 1, revisions[0])
    with pytest.raises(CompactedError):
        await client.compact(revisions[2])
    with pytest.raises(FutureRevisionError):
        await client.compact(revisions[3] + 1000)


# Many at once.


@pytest.mark.both_engines
async def test_two_hundred_tasks_on_one_client(client: Client, prefix: str) -> None:
    async def live(number: int) -> int:
        key = f"{prefix}{number:03}"
        first = await client.put(key, f"value of {number}")
        kv = await client.get(key)
        assert kv == KeyValue(key.encode(), f"value of {number}".encode(), first.revision, first.revision, 1)
        gone = await client.delete(key, prev_kv=True)
        assert gone.prev_kvs == (kv,)
        await client.put(key, bytes([number % 256]) * (number * 10))
        return first.revision

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(live(number)) for number in range(200)]
    revisions = [task.result() for task in tasks]
    assert len(set(revisions)) == 200, "no two puts have one revision"
    found = await client.range(prefix=prefix)
    assert [(kv.key, kv.value) for kv in found] == [
        (f"{prefix}{number:03}".encode(), bytes([number % 256]) * (number * 10)) for number in range(200)
    ]
    assert found.revision - min(revisions) >= 599, "three changes each, nothing lost and nothing twice"
    (statistics,) = client.statistics()
    assert (statistics.in_flight, statistics.connects, statistics.failures) == (0, 1, 0)


# What is large.


@pytest.mark.parametrize(("keys", "size"), [(50, 2**20 - 100), (25_000, 2_000)], ids=["50 of 1 MiB", "25 000 of 2 kB"])
async def test_fifty_megabytes_in_one_answer_while_others_are_served(store: Client, keys: int, size: int) -> None:
    def value(number: int) -> bytes:
        return number.to_bytes(4, "big") * (size // 4)

    names = [f"large/{number:05}" for number in range(keys)]
    at_once = 50 if size < 2**16 else 1
    for start in range(0, keys, at_once):
        puts = [op.put(names[number], value(number)) for number in range(start, min(start + at_once, keys))]
        await store.txn().then(*puts).commit()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    try:
        found = await store.range(prefix="large/", timeout=60)
    finally:
        counting.cancel()
    assert turns > 100, "it is read in steps with others in between"
    assert found.count == len(found) == keys
    assert [kv.key.decode() for kv in found] == names
    assert all(kv.value == value(number) for number, kv in enumerate(found))
    assert all(kv.create_revision == kv.mod_revision == 2 + number // at_once for number, kv in enumerate(found))
    assert {(kv.version, kv.lease) for kv in found} == {(1, 0)}
