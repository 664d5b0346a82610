"""views/translate.py: a table, and every operation against a model of the store."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from etcd_aio import (
    Compare,
    DeleteResult,
    Event,
    EventType,
    Header,
    InvalidRequestError,
    Key,
    KeyRange,
    KeyValue,
    PutResult,
    RangeResult,
    TxnResult,
    WatchBatch,
    op,
)
from etcd_aio.error_handler.description import explain
from etcd_aio.errors import DuplicateKeyError, EmptyKeyError, EtcdError
from etcd_aio.lease import LeaseTimeToLiveResult
from etcd_aio.once.replay import replay
from etcd_aio.types import ResyncEvent
from etcd_aio.views import translate
from etcd_aio.views.translate import Translation, renamed

T = TypeVar("T")
APP = Translation(b"app/")


def run(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


# The table.


@pytest.mark.parametrize(
    ("name", "keys", "inner"),
    [
        (b"pfx/", KeyRange(b"a"), KeyRange(b"pfx/a")),
        (b"pfx/", KeyRange(b"abc", b"def"), KeyRange(b"pfx/abc", b"pfx/def")),
        (b"pfx/", KeyRange(b"abc", b"\0"), KeyRange(b"pfx/abc", b"pfx0")),
        (b"\xff\xff", KeyRange(b"abc", b"\0"), KeyRange(b"\xff\xffabc", b"\0")),
        (b"a\xff", KeyRange(b"abc", b"\0"), KeyRange(b"a\xffabc", b"b")),
        (b"\xff", KeyRange(b"k"), KeyRange(b"\xffk")),
        (b"\xff", KeyRange.of(prefix=b"\xff"), KeyRange(b"\xff\xff", b"\0")),
        (b"pfx/", KeyRange.of(all_keys=True), KeyRange(b"pfx/\0", b"pfx0")),
        (b"pfx/", KeyRange.of(prefix=""), KeyRange(b"pfx/\0", b"pfx0")),
        (b"pfx/", KeyRange.of(from_key=""), KeyRange(b"pfx/\0", b"pfx0")),
        (b"pfx/", KeyRange.of(prefix="p/"), KeyRange(b"pfx/p/", b"pfx/p0")),
        (b"pfx/", KeyRange.of(prefix=b"\xff"), KeyRange(b"pfx/\xff", b"pfx0")),
        (b"pfx/", KeyRange.of("a", range_end="a"), KeyRange(b"pfx/a", b"pfx/a")),
        (b"\0", KeyRange.of(all_keys=True), KeyRange(b"\0\0", b"\x01")),
    ],
)
def test_ranges(name: bytes, keys: KeyRange, inner: KeyRange) -> None:
    assert Translation(name).keys(keys) == inner


def test_the_empty_namespace_is_refused() -> None:
    with pytest.raises(EmptyKeyError, match="the namespace is empty"):
        Translation(b"")


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (op.RangeOp(KeyRange(b"")), EmptyKeyError),
        (op.RangeOp(KeyRange(b"", b"\0")), EmptyKeyError),
        (op.DeleteOp(KeyRange(b"", b"z")), EmptyKeyError),
        (op.GetOp(b""), EmptyKeyError),
        (op.PutOp(b"", b"v"), EmptyKeyError),
        (op.RangeOp(KeyRange(b"b", b"a")), InvalidRequestError),
        (op.RangeOp(KeyRange("a")), TypeError),  # type: ignore[arg-type]
        (op.RangeOp(KeyRange(b"a", "b")), TypeError),  # type: ignore[arg-type]
        (op.PutOp("a", b"v"), TypeError),  # type: ignore[arg-type]
        (KeyRange(b"a"), TypeError),
        ("get a", TypeError),
    ],
)
def test_what_cannot_be_translated_is_refused(operation: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        APP.operation(operation)
    if not isinstance(operation, KeyRange | str):
        with pytest.raises(error):
            APP.operation(op.TxnOp((), (), (op.TxnOp((), (operation,), ()),)))


def test_a_compare_of_a_range_made_elsewhere_is_refused() -> None:
    made = Key("k").version == 1
    compare = Compare(KeyRange(b""), made.target, made.operator, 1)
    with pytest.raises(EmptyKeyError):
        APP.operation(op.TxnOp((compare,)))


# Every operation, against a model.

parts = st.sampled_from([b"a", b"ab", b"b", b"\0", b"\xff", b"a/", b"/", b"\xff\xff"])
keys = st.lists(parts, min_size=1, max_size=3).map(b"".join)
names = st.lists(st.sampled_from([b"a", b"\xff", b"\0", b"/", b"b"]), min_size=1, max_size=3).map(b"".join)
values = st.sampled_from([b"", b"1", b"2"])
revisions = st.integers(1, 20)


@st.composite
def ranges(draw: st.DrawFn) -> KeyRange:
    first, second = sorted((draw(keys), draw(keys)))
    return draw(
        st.sampled_from(
            [
                KeyRange(first),
                KeyRange(first, second) if second != b"\0" else KeyRange(first),
                KeyRange.of(prefix=first),
                KeyRange.of(from_key=first),
                KeyRange.of(all_keys=True),
            ]
        )
    )


@st.composite
def compares(draw: st.DrawFn) -> Compare:
    made = Key("k")
    made._keys = draw(ranges())
    return draw(st.sampled_from([made.version > 0, made.missing, made.mod_revision < 9, made.value == "1"]))


@st.composite
def range_ops(draw: st.DrawFn) -> op.RangeOp:
    asked = op.range(
        all_keys=True,
        limit=draw(st.integers(0, 3)),
        sort_by=draw(st.sampled_from(["key", "version", "create_revision", "mod_revision", "value"])),
        sort_order=draw(st.sampled_from(["ascend", "descend"])),
        keys_only=draw(st.booleans()),
        count_only=draw(st.booleans()),
        min_mod_revision=draw(st.integers(0, 5)),
        max_create_revision=draw(st.sampled_from([0, 10])),
    )
    return replace(asked, keys=draw(ranges()))


simple = st.one_of(
    st.builds(op.GetOp, keys, keys_only=st.booleans()),
    range_ops(),
    st.builds(op.DeleteOp, ranges(), prev_kv=st.booleans()),
    st.builds(op.PutOp, keys, values, lease=st.integers(0, 2), prev_kv=st.booleans()),
)


def txns(inner: st.SearchStrategy[op.Op]) -> st.SearchStrategy[op.Op]:
    some = st.lists(inner, max_size=3).map(tuple)
    return st.builds(op.TxnOp, st.lists(compares(), max_size=2).map(tuple), some, some)


operations = st.recursive(simple, txns, max_leaves=6)


@st.composite
def key_values(draw: st.DrawFn, key: st.SearchStrategy[bytes]) -> dict[bytes, KeyValue]:
    found = draw(st.lists(key, max_size=6, unique=True))
    return {
        one: KeyValue(one, draw(values), draw(revisions), draw(revisions), draw(st.integers(1, 3))) for one in found
    }


@given(name=names, inside=key_values(keys), others=key_values(keys | names), operation=operations)
def test_an_operation_in_a_namespace_is_one_on_a_store_with_its_keys_alone(
    name: bytes, inside: dict[bytes, KeyValue], others: dict[bytes, KeyValue], operation: op.Op
) -> None:
    translation = Translation(name)
    others = {key: kv for key, kv in others.items() if key == name or not key.startswith(name)}
    header = Header(1, 2, 21, 3)
    everything = op.range(all_keys=True)
    within = [replace(kv, key=name + key) for key, kv in inside.items()]
    inner = translation.operation(operation)
    result, after = replay((inner, everything), [*within, *others.values()], header)
    alone, after_alone = replay((operation, everything), inside.values(), header)
    shown = run(translation.result(operation, result))
    assert shown == alone
    assert isinstance(after, RangeResult)
    assert isinstance(after_alone, RangeResult)
    kept = {kv.key: kv for kv in after.kvs if kv.key == name or not kv.key.startswith(name)}
    assert kept == others, "no other key was touched"
    changed = [kv for kv in after.kvs if kv.key not in kept]
    assert [replace(kv, key=kv.key.removeprefix(name)) for kv in changed] == list(after_alone.kvs)


@given(name=names, operation=operations)
def test_an_error_names_keys_as_the_user_wrote_them(name: bytes, operation: op.Op) -> None:
    translation = Translation(name)
    raised, expected = EtcdError(), EtcdError()
    try:
        sent = operation.message()
    except DuplicateKeyError:
        assume(False)  # the client never sends such a txn
    explain(raised, operation.method, translation.operation(operation).message(), None)
    explain(expected, operation.method, sent, None)
    assert renamed(raised.call, translation.names(operation)) == expected.call


@pytest.mark.parametrize("name", [b"\xff", b"\xff\xff"])
def test_a_txn_that_would_end_the_members_is_refused_with_the_keys_of_the_user(name: bytes) -> None:
    txn = op.txn(then=[op.txn(then=[op.delete(from_key="m")]), op.put("z", "")])
    with pytest.raises(DuplicateKeyError) as raised:
        Translation(name).operation(txn).message()
    assert "all keys from b'm' on and put b'z'" in str(raised.value)


def test_a_name_that_has_replaced_another_stays() -> None:
    assert renamed("get 'a/a/a'", {"'a/a/a'": "'a/a'", "'a/a'": "'a'"}) == "get 'a/a'"
    assert renamed("get 'a', range_end='b'", {"'a'": "'x'", "'a', range_end='b'": "all_keys=True"}) == (
        "get all_keys=True"
    )
    assert renamed("get 'a'", {}) == "get 'a'"


# Results.


def test_a_result_knows_the_operations_of_the_user() -> None:
    get, put = op.get("a"), op.put("b", "1", prev_kv=True)
    txn = op.txn(then=[get, op.txn(then=[put])])
    header = Header(revision=7)
    kv = KeyValue(b"app/a", b"1", 1, 2, 3, 4)
    inner = TxnResult(True, header, (PutResult(header, kv),), (put,))
    shown = run(APP.result(txn, TxnResult(True, header, (kv, inner), ())))
    assert isinstance(shown, TxnResult)
    assert shown[get] == replace(kv, key=b"a")
    within = shown[txn.then[1]]
    assert isinstance(within, TxnResult)
    assert within[put].prev_kv == replace(kv, key=b"a")
    assert kv.key == b"app/a", "what the store answered is not changed"


def test_results_without_keys_are_returned_as_they_are() -> None:
    header = Header(revision=7)
    for result in (None, PutResult(header), DeleteResult(header, 3)):
        assert run(APP.result(op.get("a"), result)) is result
    batch = WatchBatch((), 7)
    assert APP.short_batch(batch) is batch
    lease = LeaseTimeToLiveResult(header, 1, 2, 3)
    assert APP.lease(lease) is lease


def test_long_results_are_cut_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "STEP", 10)
    kvs = tuple(KeyValue(b"app/%03d" % number, b"v", mod_revision=number) for number in range(35))
    steps = APP.result(op.range(all_keys=True), RangeResult(Header(), kvs, count=35))
    assert sum(1 for _ in steps) == 3
    assert run(APP.key_values(kvs)) == tuple(replace(kv, key=kv.key[4:]) for kv in kvs)
    batch = WatchBatch(tuple(Event(EventType.PUT, kv) for kv in kvs), 35)
    assert sum(1 for _ in APP.batch(batch)) == 3
    assert [event.kv for event in run(APP.batch(batch))] == [replace(kv, key=kv.key[4:]) for kv in kvs]


# Events and leases.


@given(name=names, kvs=st.lists(st.tuples(keys, revisions, st.booleans(), st.booleans(), st.booleans()), max_size=5))
def test_events(name: bytes, kvs: list[tuple[bytes, int, bool, bool, bool]]) -> None:
    def event(prefix: bytes, key: bytes, revision: int, is_put: bool, has_prev: bool, is_resync: bool) -> Event:
        kv = KeyValue(prefix + key, b"v", 1, revision, 2, 3)
        kind = ResyncEvent if is_resync else Event
        return kind(EventType.PUT if is_put else EventType.DELETE, kv, replace(kv, value=b"w") if has_prev else None)

    before = WatchBatch(tuple(event(name, *one) for one in kvs), 20)
    shared = tuple(before.events)
    shown = Translation(name).short_batch(before)
    assert shown == run(Translation(name).batch(before))
    assert shown == WatchBatch(tuple(event(b"", *one) for one in kvs), 20)
    assert [type(one) for one in shown] == [type(one) for one in before]
    assert shared == tuple(event(name, *one) for one in kvs), (
        "the events beneath are not changed: others may share them"
    )
    for one in shown:
        assert type(one.kv) is KeyValue, "frozen, as every result"


@given(name=names, inside=st.lists(keys, max_size=4), others=st.lists(keys, max_size=4))
def test_a_lease_has_the_keys_that_are_inside(name: bytes, inside: list[bytes], others: list[bytes]) -> None:
    outside = [key for key in (*others, name) if key == name or not key.startswith(name)]
    found = LeaseTimeToLiveResult(Header(1), 7, 8, 9, (*outside, *(name + key for key in inside)))
    assert Translation(name).lease(found) == LeaseTimeToLiveResult(Header(1), 7, 8, 9, tuple(inside))
