"""Requests: every field of every message."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv import op, requests
from etcd_aio.kv.compare import Compare, Key
from etcd_aio.kv.operations import DeleteOp, GetOp, PutOp, RangeOp, TxnOp
from etcd_aio.kv.requests import linearizable
from etcd_aio.types.enums import SortBy, SortByLike, SortOrder, SortOrderLike


def put_request(put: PutOp) -> pb.PutRequest:
    return codec.decode(pb.PutRequest, requests.put_request(put))


def get_request(get: GetOp) -> pb.RangeRequest:
    return codec.decode(pb.RangeRequest, requests.get_request(get))


def range_request(range_: RangeOp) -> pb.RangeRequest:
    return codec.decode(pb.RangeRequest, requests.range_request(range_))


def delete_request(delete: DeleteOp) -> pb.DeleteRangeRequest:
    return codec.decode(pb.DeleteRangeRequest, requests.delete_request(delete))


def txn_request(txn: TxnOp) -> pb.TxnRequest:
    return codec.decode(pb.TxnRequest, requests.txn_request(txn))


def test_put() -> None:
    assert put_request(op.put("k", "v", lease=7, prev_kv=True)) == pb.PutRequest(
        key=b"k", value=b"v", lease=7, prev_kv=True
    )
    assert put_request(op.put("k", ignore_value=True)) == pb.PutRequest(key=b"k", ignore_value=True)
    assert put_request(op.put("k", "v", ignore_lease=True)) == pb.PutRequest(key=b"k", value=b"v", ignore_lease=True)


def test_get() -> None:
    assert get_request(op.get("k")) == pb.RangeRequest(key=b"k")
    assert get_request(op.get("k", revision=3, serializable=True, keys_only=True)) == pb.RangeRequest(
        key=b"k", revision=3, serializable=True, keys_only=True
    )


def test_range() -> None:
    assert range_request(
        op.range(
            "a",
            range_end="b",
            limit=1,
            revision=2,
            serializable=True,
            keys_only=True,
            count_only=True,
            min_mod_revision=3,
            max_mod_revision=4,
            min_create_revision=5,
            max_create_revision=6,
        )
    ) == pb.RangeRequest(
        key=b"a",
        range_end=b"b",
        limit=1,
        revision=2,
        serializable=True,
        keys_only=True,
        count_only=True,
        min_mod_revision=3,
        max_mod_revision=4,
        min_create_revision=5,
        max_create_revision=6,
    )


_TARGET = pb.RangeRequestSortTarget
_ORDER = pb.RangeRequestSortOrder


@pytest.mark.parametrize(
    ("sort_by", "sort_order", "target", "order"),
    [
        ("key", "ascend", _TARGET.KEY, _ORDER.NONE),
        (SortBy.KEY, SortOrder.ASCEND, _TARGET.KEY, _ORDER.NONE),
        ("key", "descend", _TARGET.KEY, _ORDER.DESCEND),
        ("version", "ascend", _TARGET.VERSION, _ORDER.ASCEND),
        ("create_revision", "ascend", _TARGET.CREATE, _ORDER.ASCEND),
        ("mod_revision", "descend", _TARGET.MOD, _ORDER.DESCEND),
        ("value", "descend", _TARGET.VALUE, _ORDER.DESCEND),
    ],
)
def test_sorting(
    sort_by: SortByLike, sort_order: SortOrderLike, target: pb.RangeRequestSortTarget, order: pb.RangeRequestSortOrder
) -> None:
    request = range_request(op.range(prefix="p", sort_by=sort_by, sort_order=sort_order))
    assert (request.sort_target, request.sort_order) == (target, order)


def test_delete() -> None:
    assert delete_request(op.delete(prefix="p", prev_kv=True)) == pb.DeleteRangeRequest(
        key=b"p", range_end=b"q", prev_kv=True
    )


_OF = pb.CompareCompareTarget
_IS = pb.CompareCompareResult


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        (Key("k").version == 1, pb.Compare(result=_IS.EQUAL, target=_OF.VERSION, key=b"k", version=1)),
        (
            Key("k").create_revision != 2,
            pb.Compare(result=_IS.NOT_EQUAL, target=_OF.CREATE, key=b"k", create_revision=2),
        ),
        (Key("k").mod_revision < 3, pb.Compare(result=_IS.LESS, target=_OF.MOD, key=b"k", mod_revision=3)),
        (Key("k").value > "v", pb.Compare(result=_IS.GREATER, target=_OF.VALUE, key=b"k", value=b"v")),
        (Key("k").lease == 5, pb.Compare(result=_IS.EQUAL, target=_OF.LEASE, key=b"k", lease=5)),
        (
            Key(prefix="p").version == 0,
            pb.Compare(result=_IS.EQUAL, target=_OF.VERSION, key=b"p", range_end=b"q", version=0),
        ),
    ],
)
def test_compare(compare: Compare, message: pb.Compare) -> None:
    assert txn_request(TxnOp((compare,))).compare == [message]


def test_txn() -> None:
    txn = op.txn(
        when=[Key("k").missing],
        then=[op.put("k", "v"), op.txn(then=[op.delete("d")])],
        otherwise=[op.get("g"), op.range(prefix="p")],
    )
    nested = pb.TxnRequest(success=[pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=b"d"))])
    assert txn_request(txn) == pb.TxnRequest(
        compare=[pb.Compare(result=_IS.EQUAL, target=_OF.VERSION, key=b"k", version=0)],
        success=[
            pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v")),
            pb.RequestOp(request_txn=nested),
        ],
        failure=[
            pb.RequestOp(request_range=pb.RangeRequest(key=b"g")),
            pb.RequestOp(request_range=pb.RangeRequest(key=b"p", range_end=b"q")),
        ],
    )


def test_comparisons_alone_are_not_left_to_one_member() -> None:
    compares_only = op.txn(when=[Key(prefix="p").version > 0])
    sent = linearizable(compares_only)
    assert sent.when == compares_only.when
    for branch in (sent.then, sent.otherwise):
        assert branch == (op.range("p", count_only=True),)


@pytest.mark.parametrize(
    "txn",
    [
        op.txn(),
        op.txn(when=[Key("k").missing], then=[op.get("k", serializable=True)]),
        op.txn(when=[Key("k").missing], otherwise=[op.put("k", "v")]),
        op.txn(then=[op.get("k")]),
    ],
)
def test_a_txn_that_says_what_it_wants_is_sent_as_it_is(txn: TxnOp) -> None:
    assert linearizable(txn) is txn


def test_what_is_not_set_is_not_written() -> None:
    assert requests.put_request(op.put("k", "v")) == b"\x0a\x01k\x12\x01v"
    assert requests.get_request(op.get("k")) == b"\x0a\x01k"
    assert requests.range_request(op.range(prefix="k")) == b"\x0a\x01k\x12\x01l"
    assert requests.delete_request(op.delete("k")) == b"\x0a\x01k"
    assert requests.txn_request(TxnOp()) == b""


def nested(depth: int) -> TxnOp:
    txn = TxnOp()
    for _ in range(depth - 1):
        txn = TxnOp(then=(txn,))
    return txn


def test_txns_nest_as_deep_as_any_message_may() -> None:
    # Each stands in an operation, so that 50 of them are 99 messages.
    assert codec.encode(txn_request(nested(50))) == requests.txn_request(nested(50))
    for too_deep in (nested(51), nested(500)):
        with pytest.raises(InvalidRequestError, match="nest more than 100 deep"):
            requests.txn_request(too_deep)
