"""compat/aetcd/transactions.py, compat/_ranges.py: comparisons and operations of aetcd as those of etcd_aio."""

from typing import Any

import pytest

from etcd_aio import Compare, DeleteResult, Header, Key, KeyRange, KeyValue, PutResult, RangeResult, TxnResult, op
from etcd_aio.compat.aetcd.leases import Lease
from etcd_aio.compat.aetcd.transactions import (
    BaseCompare,
    ResponseOp,
    Transactions,
    Value,
    compares,
    operations,
    responses,
)

made = Transactions()
HEADER = Header(revision=7)
KV = KeyValue(b"k", b"v", 3, 4, 2, 0)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (made.value(b"k") == b"v", Key(b"k").value == b"v"),
        (made.value("k") != "v", Key("k").value != "v"),
        (made.version(b"k") > 2, Key(b"k").version > 2),
        (made.create(b"k") == 0, Key(b"k").create_revision == 0),
        (made.mod(b"k", b"m") < 9, Key(b"k", range_end=b"m").mod_revision < 9),
        (made.mod(b"k", b"\0") < "9", Key(from_key=b"k").mod_revision < 9),
    ],
)
def test_comparisons(given: BaseCompare, meant: Compare) -> None:
    assert compares([given]) == [meant]


def test_a_comparison_that_was_not_completed_is_an_error() -> None:
    with pytest.raises(ValueError, match="==, !=, < and >"):
        compares([Value(b"k")])


def test_a_comparison_shows_what_it_compares() -> None:
    assert repr(made.version(b"k", b"m") > 2).endswith("\"[b'k', b'm')\" > 2")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (made.put(b"k", b"v"), op.put(b"k", b"v")),
        (made.put(b"k", b"v", 5, True), op.put(b"k", b"v", lease=5, prev_kv=True)),
        (made.put(b"k", b"v", Lease(6, 10, None)), op.put(b"k", b"v", lease=6)),  # type: ignore[arg-type] # no client
        (made.get(b"k"), op.RangeOp(KeyRange(b"k"))),
        (made.get(b"k", b"m"), op.RangeOp(KeyRange(b"k", b"m"))),
        (made.delete(b"k", b"\0", True), op.DeleteOp(KeyRange(b"k", b"\0"), True)),
        (
            made.txn([made.version(b"k") == 1], [made.get(b"k")]),
            op.txn(when=[Key(b"k").version == 1], then=[op.RangeOp(KeyRange(b"k"))]),
        ),
    ],
)
def test_operations(given: object, meant: object) -> None:
    assert operations([given]) == [meant]


def test_what_is_no_operation_is_refused() -> None:
    with pytest.raises(TypeError, match="not an operation of a transaction: str"):
        operations(["put"])
    assert operations(None) == []


def test_responses_of_reads_are_values_with_their_keys_and_others_are_named() -> None:
    inner = TxnResult(True, HEADER, (RangeResult(HEADER, (KV,), count=1),))
    read, put, deleted, txn = responses(
        TxnResult(
            True, HEADER, (RangeResult(HEADER, (KV,), count=1), PutResult(HEADER), DeleteResult(HEADER, 1), inner)
        )
    )
    ((value, found),) = read
    assert (value, found.key, found.mod_revision, found.header.revision) == (b"v", b"k", 4, 7)
    assert (put.WhichOneof("response"), put.response_put.header.revision) == ("response_put", 7)
    assert (deleted.WhichOneof("response"), deleted.response_delete_range.deleted) == ("response_delete_range", 1)
    (of_inner,) = txn.response_txn.responses
    assert (txn.WhichOneof("response"), txn.response_txn.succeeded) == ("response_txn", True)
    assert of_inner.response_range.kvs == (KV,)
    nothing: Any = ResponseOp(None)
    assert nothing.WhichOneof("response") is None
