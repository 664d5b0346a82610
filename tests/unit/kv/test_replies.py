"""Replies: a get finds one key or none, and txn responses are matched with what was asked."""

import pickle

import pytest

from etcd_aio import codec, pb
from etcd_aio.errors import MalformedReplyError
from etcd_aio.kv import op, replies
from etcd_aio.kv.operations import Op, TxnOp
from etcd_aio.types import DeleteResult, Header, KeyValue, PutResult, RangeResult, TxnResult
from tests.support.canary import CANARY

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
NESTED = Header(revision=7)
KV = KeyValue(b"k", b"v", 4, 6, 2, 9)


def wire_header() -> pb.ResponseHeader:
    return pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)


def wire_kv() -> pb.KeyValue:
    return pb.KeyValue(key=b"k", value=b"v", create_revision=4, mod_revision=6, version=2, lease=9)


def txn_result(reply: pb.TxnResponse, txn: TxnOp) -> TxnResult:
    """What a txn gives whose answer is this on the wire."""
    return replies.txn_result(codec.decode(TxnResult, codec.encode(reply)), txn)


def test_get() -> None:
    assert replies.get_result(RangeResult(HEADER, (KV,), count=1)) is KV
    assert replies.get_result(RangeResult(HEADER)) is None


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


def test_what_was_not_asked_for_is_not_told() -> None:
    reply = pb.TxnResponse(header=wire_header(), succeeded=True, responses=[pb.ResponseOp(response_range=wire_range())])
    assert txn_result(reply, op.txn()) == TxnResult(True, HEADER)


def answered_in_turn(*replies_: RangeResult | PutResult, then: tuple[Op, ...]) -> TxnResult:
    return replies.txn_result(TxnResult(True, HEADER, replies_), TxnOp((), then))


def test_a_txn_gives_the_response_of_each_operation() -> None:
    get, put = op.get("k"), op.put("k", "v")
    found, done = RangeResult(NESTED, (KV,), count=1), PutResult(NESTED)
    result = answered_in_turn(found, done, then=(get, put))
    assert result.operations == (get, put)
    assert result[get] is KV
    assert result[put] is done


def test_equal_operations_of_a_txn_are_told_apart() -> None:
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
    result = replies.txn_result(TxnResult(False, HEADER), TxnOp((), (get,)))
    with pytest.raises(LookupError, match=r"not given to otherwise\(\), the branch that ran"):
        result[get]
    with pytest.raises(TypeError, match=r"got int: see \.responses"):
        result[0]  # type: ignore[index]


def test_a_txn_shows_and_compares_nothing_of_what_was_asked() -> None:
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
