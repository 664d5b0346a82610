"""codec/fields.py: the reference codec of these tests: it covers every class, and its errors name the cause."""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import pytest

from etcd_aio import pb
from etcd_aio.codec.fields import fields_of
from etcd_aio.codec.wire import MAX_DEPTH
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from tests.support import reference_codec as reference
from tests.support.reference_codec import check_bytes, check_message

MESSAGE_CLASSES = [
    found
    for found in (*vars(pb).values(), *vars(pb.health).values())
    if isinstance(found, type) and issubclass(found, pb.Message) and found is not pb.Message
]


@pytest.mark.parametrize("message_class", MESSAGE_CLASSES, ids=lambda found: found.__name__)
def test_every_message_class_is_covered(message_class: type[pb.Message]) -> None:
    names = {field.name for field in fields_of(message_class).values()}
    assert names == {field.name for field in dataclasses.fields(message_class)}  # type: ignore[arg-type]
    check_bytes(message_class, b"")
    check_message(message_class())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80", "a varint is cut short"),
        (b"\x18" + b"\xff" * 10, "a varint has more than 64 bits"),
        (b"\x18" + b"\xff" * 9 + b"\x02", "a varint has more than 64 bits"),
        (b"\x0a\x05abc", "field 1 is cut short"),
        (b"\x00\x00", "a field number is out of range"),
        (b"\x0b", "field 1 has wire type 3"),
        (b"\x08\x05", "field 1 has wire type 0"),
    ],
)
def test_the_error_names_the_cause(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedReplyError) as caught:
        check_bytes(pb.PutRequest, data)
    assert caught.value.message == f"malformed PutRequest: {reason}"
    assert caught.value.__context__ is None


def test_two_members_of_a_oneof_are_named_by_their_oneof() -> None:
    with pytest.raises(MalformedReplyError, match="oneof response has two members"):
        check_bytes(pb.ResponseOp, b"\x0a\x00\x12\x00")
    check_bytes(pb.ResponseOp, b"\x0a\x00\x0a\x00")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (pb.PutRequest(lease=1 << 63), f"PutRequest.lease is out of range: int64 is {-(1 << 63)} to {(1 << 63) - 1}"),
        (pb.PutRequest(key="k"), "PutRequest.key cannot be of type str"),  # type: ignore[arg-type]
        (pb.TxnRequest(compare=()), "TxnRequest.compare must be a list, not tuple"),  # type: ignore[arg-type]
        (pb.Compare(version=1, lease=1), "Compare: both version and lease are set"),
        (
            pb.RequestOp(request_range=pb.RangeRequest(limit=None)),  # type: ignore[arg-type]
            "RangeRequest.limit cannot be of type NoneType",
        ),
    ],
)
def test_the_error_names_the_field(message: pb.Message, reason: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_message(message)
    assert caught.value.message == reason


def test_the_depth_limit_is_the_same_both_ways() -> None:
    data, message = b"", pb.TxnRequest()
    for _ in range(MAX_DEPTH // 2 - 1):
        message = pb.TxnRequest(success=[pb.RequestOp(request_txn=message)])
    data = bytes(message)
    check_message(message)
    check_bytes(pb.TxnRequest, data)
    deeper = pb.TxnRequest(success=[pb.RequestOp(request_txn=message)])
    check_message(pb.RequestOp(request_txn=message))
    with pytest.raises(InvalidRequestError, match=f"more than {MAX_DEPTH} deep"):
        check_message(deeper)
    with pytest.raises(MalformedReplyError, match=f"more than {MAX_DEPTH} deep"):
        check_bytes(pb.TxnRequest, bytes(deeper))


R = TypeVar("R")


def at_the_end_of_the_stack(action: Callable[[], R]) -> R:
    """What `action` returns or raises from the deepest place where it does not fail by entering a function."""
    try:
        return at_the_end_of_the_stack(action)
    except RecursionError:
        return action()


def nested(depth: int) -> pb.TxnRequest:
    txn = pb.TxnRequest()
    for _ in range(depth):
        txn = pb.TxnRequest(success=[pb.RequestOp(request_txn=txn)])
    return txn


def test_an_exhausted_stack_is_a_clean_error() -> None:
    message = nested(40)
    data = reference.encode(message)
    assert reference.decode(pb.TxnRequest, data) == message
    with pytest.raises(MalformedReplyError, match="nests too deep to be decoded from here"):
        at_the_end_of_the_stack(lambda: reference.decode(pb.TxnRequest, data))
    with pytest.raises(InvalidRequestError, match="nests too deep to be encoded from here"):
        at_the_end_of_the_stack(lambda: reference.encode(message))
