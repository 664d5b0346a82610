"""compat/etcd3/etcdrpc.py, compat/etcd3/events.py, compat/etcd3/transactions.py, compat/etcd3/utils.py: values."""

import copy
import pickle
from typing import Any

import pytest

from etcd_aio import Header, KeyValue
from etcd_aio.compat.etcd3 import Transactions, etcdrpc, utils
from etcd_aio.compat.etcd3.events import DeleteEvent, PutEvent, new_event
from etcd_aio.compat.etcd3.watch import WatchResponse

KV = KeyValue(b"k", b"new", 3, 5, 2, 9)

COMPARE = etcdrpc.Compare
TX = Transactions()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (TX.value("k") == "v", COMPARE(COMPARE.EQUAL, COMPARE.VALUE, b"k", value=b"v")),
        (TX.value(b"k") != b"v", COMPARE(COMPARE.NOT_EQUAL, COMPARE.VALUE, b"k", value=b"v")),
        (TX.version("k") > 3, COMPARE(COMPARE.GREATER, COMPARE.VERSION, b"k", version=3)),
        (TX.create("k") == "0", COMPARE(COMPARE.EQUAL, COMPARE.CREATE, b"k", create_revision=0)),
        (TX.mod("a", "b") < -4, COMPARE(COMPARE.LESS, COMPARE.MOD, b"a", mod_revision=-4, range_end=b"b")),
    ],
)
def test_a_comparison_builds_its_message(made: Any, expected: etcdrpc.Compare) -> None:
    assert made.build_message() == expected
    assert made.op == expected.result


def test_a_comparison_without_an_operator_or_with_a_wrong_number_is_refused() -> None:
    with pytest.raises(ValueError, match="needs one of the operators"):
        TX.version("k").build_message()
    with pytest.raises(ValueError, match="invalid literal"):
        (TX.version("k") == "many").build_message()
    assert repr(TX.mod("a", "b") > 3).endswith("Mod'>: \"['a', 'b')\" > 3")
    assert "None" in repr(TX.value("a"))


def test_the_constants_are_those_of_etcd() -> None:
    range_request = etcdrpc.RangeRequest
    assert (range_request.NONE, range_request.ASCEND, range_request.DESCEND) == (0, 1, 2)
    targets = (range_request.KEY, range_request.VERSION, range_request.CREATE, range_request.MOD, range_request.VALUE)
    assert targets == (0, 1, 2, 3, 4)
    assert (COMPARE.EQUAL, COMPARE.GREATER, COMPARE.LESS, COMPARE.NOT_EQUAL) == (0, 1, 2, 3)
    assert (COMPARE.VERSION, COMPARE.CREATE, COMPARE.MOD, COMPARE.VALUE, COMPARE.LEASE) == (0, 1, 2, 3, 4)
    assert (etcdrpc.NONE, etcdrpc.NOSPACE, etcdrpc.CORRUPT) == (0, 1, 2)


def test_requests_may_be_filled_and_responses_are_frozen() -> None:
    request = etcdrpc.RangeRequest()
    request.key = b"k"
    assert request == etcdrpc.RangeRequest(key=b"k")
    response: Any = etcdrpc.PutResponse(Header())
    with pytest.raises(AttributeError):
        response.prev_kv = KV
    assert response.prev_kv.key == b""
    txn = etcdrpc.TxnRequest()
    txn.compare.append(COMPARE())
    assert etcdrpc.TxnRequest().compare == []


def test_a_response_of_a_txn_tells_its_kind() -> None:
    put = etcdrpc.ResponseOp(response_put=etcdrpc.PutResponse(Header(revision=3)))
    assert put.WhichOneof("response") == "response_put"
    assert etcdrpc.ResponseOp().WhichOneof("response") is None
    with pytest.raises(ValueError, match="'request'"):
        put.WhichOneof("request")


def test_an_event_has_the_attributes_of_its_keys() -> None:
    event: Any = new_event(etcdrpc.Event(etcdrpc.Event.PUT, KV, KeyValue(b"k", b"old", 3, 4, 1)))
    assert isinstance(event, PutEvent)
    assert (event.key, event.value, event.version, event.create_revision, event.mod_revision) == (b"k", b"new", 2, 3, 5)
    assert (event.lease, event.prev_value, event.prev_version) == (9, b"old", 1)
    assert str(event) == f"{PutEvent} key=b'k' value=b'new'"
    with pytest.raises(AttributeError):
        event.nothing_of_this_name  # noqa: B018 - reading it raises
    deleted: Any = new_event(etcdrpc.Event(etcdrpc.Event.DELETE, KeyValue(b"k")))
    assert isinstance(deleted, DeleteEvent)
    assert (deleted.value, deleted.prev_value) == (b"", b"")
    for copied in (copy.copy(event), pickle.loads(pickle.dumps(event))):
        assert copied.value == b"new"


def test_conversions() -> None:
    assert utils.increment_last_byte(b"foo") == b"fop"
    with pytest.raises(ValueError, match="256"):
        utils.increment_last_byte(b"a\xff")
    assert [utils.prefix_range_end(one) for one in (b"a", b"a\xff", b"\xff", b"")] == [b"b", b"b", b"\0", b"\0"]
    assert (utils.to_bytes("ä"), utils.to_bytes(b"\xff")) == ("ä".encode(), b"\xff")
    with pytest.raises(AttributeError):
        utils.to_bytes(3)  # type: ignore[arg-type] # wrong on purpose

    class Lease:
        id = 7

    assert [utils.lease_to_id(one) for one in (None, 5, Lease())] == [0, 5, 7]
    event = new_event(etcdrpc.Event(etcdrpc.Event.PUT, KV))
    responses = [WatchResponse(Header(), [event, event]), WatchResponse(Header(), []), WatchResponse(Header(), [event])]
    assert list(utils.response_to_event_iterator(responses)) == [event] * 3
