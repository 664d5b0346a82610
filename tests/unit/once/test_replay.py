"""once/replay.py: which history is read for which results. Its answers are compared with etcd elsewhere."""

import pytest

from etcd_aio import DeleteResult, Header, Key, KeyRange, KeyValue, PutResult, RangeResult, TxnResult, op
from etcd_aio.once.replay import needs_values, ranges_to_read, replay

HEADER = Header(revision=9)
K = KeyValue(b"k", b"v", 2, 4, 3, 7)


@pytest.mark.parametrize(
    ("operations", "ranges", "values"),
    [
        ((), (), False),
        ((op.put("k", "v"), op.put("l", "v")), (), False),
        ((op.put("k", "v", prev_kv=True), op.put("l", "v")), (KeyRange(b"k"), KeyRange(b"l")), True),
        ((op.delete("k"),), (KeyRange(b"k"),), False),
        ((op.delete(prefix="k", prev_kv=True),), (KeyRange(b"k", b"l"),), True),
        ((op.get("k"), op.put("k", "v")), (KeyRange(b"k"),), True),
        ((op.txn(when=[Key("k").exists], then=[op.delete("l")]),), (KeyRange(b"k"), KeyRange(b"l")), True),
    ],
)
def test_what_is_read(operations: tuple[op.Op, ...], ranges: tuple[KeyRange, ...], values: bool) -> None:
    assert ranges_to_read(operations) == ranges
    if ranges:
        assert needs_values(operations) == values


def test_each_operation_sees_what_stands_before_it() -> None:
    found = replay(
        (
            op.get("k"),
            op.put("k", "w", prev_kv=True),
            op.get("k", keys_only=True),
            op.put("l", "x"),
            op.range(prefix="", count_only=True),
            op.delete(prefix="l", prev_kv=True),
            op.delete("none"),
        ),
        (K,),
        HEADER,
    )
    new = KeyValue(b"l", b"x", 9, 9, 1)
    assert found == (
        K,
        PutResult(HEADER, K),
        KeyValue(b"k", b"", 2, 9, 4, 0),
        PutResult(HEADER),
        RangeResult(HEADER, (), more=False, count=2),
        DeleteResult(HEADER, 1, (new,)),
        DeleteResult(HEADER),
    )


def test_before_the_first_change_the_revision_is_that_before_the_txn() -> None:
    read, gone, put, again = replay(
        (op.range("k"), op.delete("none"), op.put("k", "v"), op.range("none")), (K,), HEADER
    )
    assert isinstance(read, RangeResult)
    assert isinstance(gone, DeleteResult)
    assert isinstance(put, PutResult)
    assert isinstance(again, RangeResult)
    assert [result.revision for result in (read, gone, put, again)] == [8, 8, 9, 9]


def test_a_txn_within_is_judged_on_the_state_before() -> None:
    (_, inner) = replay((op.put("k", "w"), op.txn(when=[Key("k").value == "v"], then=[op.get("k")])), (K,), HEADER)
    assert isinstance(inner, TxnResult)
    assert (inner.succeeded, inner.responses) == (True, (KeyValue(b"k", b"w", 2, 9, 4),))
