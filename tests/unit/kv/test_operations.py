"""kv/operations.py: immutable values, their messages on the wire, and the results of their replies."""

import pickle
from dataclasses import FrozenInstanceError
from typing import cast

import pytest

from etcd_aio import codec, pb
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.kv import op
from etcd_aio.kv.compare import Compare, Key
from etcd_aio.kv.operations import DeleteOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.types import DeleteResult, Header, KeyRange, KeyValue, PutResult, RangeResult, TxnResult
from etcd_aio.types.enums import SortBy, SortByLike, SortOrder, SortOrderLike
from tests.support.canary import CANARY

READS: list[Op] = [op.get("k"), op.range(prefix="p")]
WRITES: list[Op] = [op.put("k", "v"), op.delete("k")]
STALE: list[Op] = [op.get("k", serializable=True), op.range(prefix="p", serializable=True)]


@pytest.mark.parametrize("operation", [*READS, *WRITES, op.txn()])
def test_operations_are_frozen_slotted_values(operation: Op) -> None:
    field = next(iter(type(operation).__dataclass_fields__))
    with pytest.raises(FrozenInstanceError):
        setattr(operation, field, None)
    assert not hasattr(operation, "__dict__")
    assert len({operation, operation}) == 1


def test_no_repr_shows_a_value() -> None:
    put = op.put("k", "s3cret", lease=4)
    assert repr(put) == "PutOp(key=b'k', value=<6 bytes>, lease=0x4)"
    assert "s3cret" not in repr(op.txn(then=[op.txn(otherwise=[put])]))


@pytest.mark.parametrize("operation", READS)
def test_a_txn_of_reads_is_read_only(operation: Op) -> None:
    assert operation.is_read_only
    assert op.txn(then=[operation], otherwise=[op.txn(then=[operation])]).is_read_only


@pytest.mark.parametrize("operation", WRITES)
def test_one_write_in_any_branch_at_any_depth_makes_a_txn_a_write(operation: Op) -> None:
    assert not operation.is_read_only
    assert not op.txn(then=[*READS, operation]).is_read_only
    assert not op.txn(otherwise=[operation]).is_read_only
    assert not op.txn(then=[op.txn(otherwise=[op.txn(then=[operation])])]).is_read_only


def test_a_txn_without_operations_is_read_only() -> None:
    assert op.txn().is_read_only


@pytest.mark.parametrize("operation", [*READS, *WRITES, op.txn()])
def test_one_linearizable_operation_makes_a_txn_linearizable(operation: Op) -> None:
    assert not operation.serializable
    assert not op.txn(then=[*STALE, operation], otherwise=STALE).serializable
    assert not op.txn(then=STALE, otherwise=[operation]).serializable


def test_serializable_reads_make_a_serializable_txn() -> None:
    assert all(operation.serializable for operation in STALE)
    assert op.txn(then=STALE).serializable
    assert op.txn(otherwise=STALE).serializable


def test_a_nested_txn_is_never_serializable() -> None:
    assert not op.txn(then=[op.txn(then=STALE)]).serializable


def test_the_defaults_of_a_put() -> None:
    assert PutOp(b"k", b"v") == op.put("k", "v")


def test_a_range_and_a_delete_are_checked_however_they_are_made() -> None:
    with pytest.raises(InvalidRequestError, match="limit must not be negative, got -1"):
        RangeOp(KeyRange(b"k"), limit=-1)
    with pytest.raises(TypeError, match="prev_kv must be True or False, got str"):
        DeleteOp(KeyRange(b"k"), "no")  # type: ignore[arg-type]


# Requests.


def request(operation: Op) -> pb.Message:
    """The message that an operation is sent as."""
    return codec.decode(cast("type[pb.Message]", operation.method.request), operation.message())


def txn_request(txn: TxnOp) -> pb.TxnRequest:
    return codec.decode(pb.TxnRequest, txn.message())


def test_the_request_of_a_put() -> None:
    assert request(op.put("k", "v", lease=7, prev_kv=True)) == pb.PutRequest(
        key=b"k", value=b"v", lease=7, prev_kv=True
    )
    assert request(op.put("k", ignore_value=True)) == pb.PutRequest(key=b"k", ignore_value=True)
    assert request(op.put("k", "v", ignore_lease=True)) == pb.PutRequest(key=b"k", value=b"v", ignore_lease=True)


def test_the_request_of_a_get() -> None:
    assert request(op.get("k")) == pb.RangeRequest(key=b"k")
    assert request(op.get("k", revision=3, serializable=True, keys_only=True)) == pb.RangeRequest(
        key=b"k", revision=3, serializable=True, keys_only=True
    )


def test_the_request_of_a_range() -> None:
    assert request(
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
def test_the_request_of_a_sorted_range(
    sort_by: SortByLike, sort_order: SortOrderLike, target: pb.RangeRequestSortTarget, order: pb.RangeRequestSortOrder
) -> None:
    message = request(op.range(prefix="p", sort_by=sort_by, sort_order=sort_order))
    assert isinstance(message, pb.RangeRequest)
    assert (message.sort_target, message.sort_order) == (target, order)


def test_the_request_of_a_delete() -> None:
    assert request(op.delete(prefix="p", prev_kv=True)) == pb.DeleteRangeRequest(key=b"p", range_end=b"q", prev_kv=True)


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
def test_the_message_of_a_condition(compare: Compare, message: pb.Compare) -> None:
    assert txn_request(TxnOp((compare,))).compare == [message]


def test_the_request_of_a_txn() -> None:
    txn = op.txn(
        when=[Key("k").missing],
        then=[op.put("k", "v"), op.txn(then=[op.delete("d")])],
        otherwise=[op.get("g"), op.range(prefix="p")],
    )
    nested = pb.TxnRequest(success=[pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=b"d"))])
    assert txn_request(txn) == pb.TxnRequest(
        compare=[pb.Compare(result=_IS.EQUAL, target=_OF.MOD, key=b"k", mod_revision=0)],
        success=[
            pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v")),
            pb.RequestOp(request_txn=nested),
        ],
        failure=[
            pb.RequestOp(request_range=pb.RangeRequest(key=b"g")),
            pb.RequestOp(request_range=pb.RangeRequest(key=b"p", range_end=b"q")),
        ],
    )


def test_comparisons_alone_are_sent_with_a_linearizable_read() -> None:
    compares_only = op.txn(when=[Key(prefix="p").version > 0])
    count = pb.RequestOp(request_range=pb.RangeRequest(key=b"p", count_only=True))
    sent = txn_request(compares_only)
    assert len(sent.compare) == 1
    assert (sent.success, sent.failure) == ([count], [count])


@pytest.mark.parametrize(
    ("txn", "operations"),
    [
        (op.txn(), 0),
        (op.txn(when=[Key("k").missing], then=[op.get("k", serializable=True)]), 1),
        (op.txn(when=[Key("k").missing], otherwise=[op.put("k", "v")]), 1),
        (op.txn(then=[op.get("k")]), 1),
    ],
)
def test_no_read_is_added_to_other_txns(txn: TxnOp, operations: int) -> None:
    sent = txn_request(txn)
    assert len(sent.success) + len(sent.failure) == operations


def test_fields_without_a_value_are_not_encoded() -> None:
    assert op.put("k", "v").message() == b"\x0a\x01k\x12\x01v"
    assert op.get("k").message() == b"\x0a\x01k"
    assert op.range(prefix="k").message() == b"\x0a\x01k\x12\x01l"
    assert op.delete("k").message() == b"\x0a\x01k"
    assert TxnOp().message() == b""


def nested(depth: int) -> TxnOp:
    txn = TxnOp()
    for _ in range(depth - 1):
        txn = TxnOp(then=(txn,))
    return txn


def test_txns_nest_as_deep_as_any_message_may() -> None:
    # Each is in an operation, so that 50 of them are 99 messages.
    assert codec.encode(txn_request(nested(50))) == nested(50).message()
    for too_deep in (nested(51), nested(500)):
        with pytest.raises(InvalidRequestError, match="nest more than 100 deep"):
            too_deep.message()


# Results.

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
NESTED = Header(revision=7)
KV = KeyValue(b"k", b"v", 4, 6, 2, 9)


def wire_header() -> pb.ResponseHeader:
    return pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)


def wire_kv() -> pb.KeyValue:
    return pb.KeyValue(key=b"k", value=b"v", create_revision=4, mod_revision=6, version=2, lease=9)


def txn_result(reply: pb.TxnResponse, txn: TxnOp) -> TxnResult:
    """What a txn gives whose answer is this on the wire."""
    return txn.result(codec.decode(TxnResult, codec.encode(reply)))


def test_the_result_of_a_get_is_its_key_or_none() -> None:
    assert op.get("k").result(RangeResult(HEADER, (KV,), count=1)) is KV
    assert op.get("k").result(RangeResult(HEADER)) is None


def test_the_result_of_a_put_a_range_or_a_delete_is_the_reply() -> None:
    put, found, deleted = PutResult(HEADER), RangeResult(HEADER, (KV,)), DeleteResult(HEADER, 1)
    assert op.put("k", "v").result(put) is put
    assert op.range("k").result(found) is found
    assert op.delete("k").result(deleted) is deleted


def wire_range() -> pb.RangeResponse:
    return pb.RangeResponse(header=pb.ResponseHeader(revision=7), kvs=[wire_kv()], count=1)


OPERATIONS: tuple[Op, ...] = (op.put("k", "v"), op.get("k"), op.get("absent"), op.range("k"), op.delete("k"))


def wire_responses() -> list[pb.ResponseOp]:
    inner = pb.ResponseHeader(revision=7)
    return [
        pb.ResponseOp(response_put=pb.PutResponse(header=inner)),
        pb.ResponseOp(response_range=wire_range()),
        pb.ResponseOp(response_range=pb.RangeResponse(header=inner)),
        pb.ResponseOp(response_range=wire_range()),
        pb.ResponseOp(response_delete_range=pb.DeleteRangeResponse(header=inner, deleted=1)),
    ]


EXPECTED = (PutResult(NESTED), KV, None, RangeResult(NESTED, (KV,), count=1), DeleteResult(NESTED, 1))


@pytest.mark.parametrize("succeeded", [True, False])
def test_txn_responses_are_those_of_the_branch_that_ran(succeeded: bool) -> None:
    other = (op.delete("other"),)
    txn = op.txn(then=OPERATIONS if succeeded else other, otherwise=other if succeeded else OPERATIONS)
    reply = pb.TxnResponse(header=wire_header(), succeeded=succeeded, responses=wire_responses())
    assert txn_result(reply, txn) == TxnResult(succeeded, HEADER, EXPECTED)


def test_a_nested_txn_has_the_header_of_the_outer() -> None:
    innermost = pb.TxnResponse(succeeded=True, header=pb.ResponseHeader())
    inner = pb.TxnResponse(succeeded=False, responses=[pb.ResponseOp(response_txn=innermost)])
    reply = pb.TxnResponse(header=wire_header(), succeeded=True, responses=[pb.ResponseOp(response_txn=inner)])
    txn = op.txn(then=[op.txn(otherwise=[op.txn()])])
    expected = TxnResult(True, HEADER, (TxnResult(False, HEADER, (TxnResult(True, HEADER),)),))
    assert txn_result(reply, txn) == expected


def test_responses_to_no_operation_are_left_out() -> None:
    reply = pb.TxnResponse(header=wire_header(), succeeded=True, responses=[pb.ResponseOp(response_range=wire_range())])
    assert txn_result(reply, op.txn()) == TxnResult(True, HEADER)


def test_a_txn_without_conditions_cannot_have_failed() -> None:
    """kine answers so to a delete that it has not done; an empty txn would seem to have done it."""
    reply = pb.TxnResponse(header=wire_header(), responses=[pb.ResponseOp(response_range=wire_range())])
    with pytest.raises(MalformedReplyError, match="without conditions"):
        txn_result(reply, op.txn(then=[op.get("k"), op.delete("k")]))


def answered_in_turn(*responses: RangeResult | PutResult, then: tuple[Op, ...]) -> TxnResult:
    return TxnOp((), then).result(TxnResult(True, HEADER, responses))


def test_a_txn_gives_the_response_of_each_operation() -> None:
    get, put = op.get("k"), op.put("k", "v")
    found, done = RangeResult(NESTED, (KV,), count=1), PutResult(NESTED)
    result = answered_in_turn(found, done, then=(get, put))
    assert result.operations == (get, put)
    assert result[get] is KV
    assert result[put] is done


def test_equal_operations_of_a_txn_have_their_own_results() -> None:
    before, after = op.get("k"), op.get("k")
    assert before == after
    result = answered_in_turn(
        RangeResult(NESTED),
        PutResult(NESTED),
        RangeResult(NESTED, (KV,), count=1),
        then=(before, op.put("k", "v"), after),
    )
    assert (result[before], result[after]) == (None, KV)


def test_an_operation_that_did_not_run_has_no_response() -> None:
    get = op.get("k")
    result = TxnOp((), (get,)).result(TxnResult(False, HEADER))
    with pytest.raises(LookupError, match=r"not in otherwise\(\), the branch that ran"):
        result[get]
    with pytest.raises(TypeError, match=r"got int: see \.responses"):
        result[0]  # type: ignore[index]


def test_a_txn_result_neither_shows_nor_compares_its_operations() -> None:
    result = answered_in_turn(PutResult(NESTED), then=(op.put("k", CANARY),))
    assert CANARY not in repr(result)
    assert result == TxnResult(True, HEADER, (PutResult(NESTED),))
    twin = pickle.loads(pickle.dumps(result))
    assert (twin, twin.operations) == (result, result.operations)


def test_a_txn_answered_by_another_number_of_responses_is_malformed() -> None:
    reply = pb.TxnResponse(header=wire_header(), succeeded=True, responses=wire_responses()[:1])
    with pytest.raises(MalformedReplyError, match="a txn of 5 operations was answered by 1 responses"):
        txn_result(reply, op.txn(then=OPERATIONS))


@pytest.mark.parametrize("operation", [*OPERATIONS, op.txn()])
def test_a_response_of_another_kind_is_malformed(operation: Op) -> None:
    wrong = pb.ResponseOp(response_txn=pb.TxnResponse())
    if operation == op.txn():
        wrong = pb.ResponseOp(response_put=pb.PutResponse())
    reply = pb.TxnResponse(header=wire_header(), succeeded=True, responses=[wrong])
    with pytest.raises(MalformedReplyError, match=f"the response to a {type(operation).__name__} is of another kind"):
        txn_result(reply, op.txn(then=[operation]))
