"""What only the reference codec is asked: a full stack does not break its promises."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from etcd_aio import pb
from etcd_aio.codec import reference
from etcd_aio.errors import InvalidRequestError, MalformedReplyError

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


def test_no_room_on_the_stack_is_said_as_a_refusal() -> None:
    message = nested(40)
    data = reference.encode(message)
    assert reference.decode(pb.TxnRequest, data) == message
    with pytest.raises(MalformedReplyError, match="nests too deep to be decoded from here"):
        at_the_end_of_the_stack(lambda: reference.decode(pb.TxnRequest, data))
    with pytest.raises(InvalidRequestError, match="nests too deep to be encoded from here"):
        at_the_end_of_the_stack(lambda: reference.encode(message))
