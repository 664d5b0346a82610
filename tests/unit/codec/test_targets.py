"""codec/targets.py: every attribute of a result is a field of its message, and results contain results."""

import dataclasses
from typing import get_args

import pytest

from etcd_aio import pb
from etcd_aio.codec.fields import fields_of
from etcd_aio.codec.targets import DecodeTarget, Unwrapped, message_class_of, target_of
from etcd_aio.types import (
    CompactResult,
    Event,
    Header,
    KeyValue,
    RangeResult,
    Result,
    TxnResult,
    WatchReply,
)

RESULTS = get_args(Result)


@pytest.mark.parametrize("result_class", RESULTS, ids=lambda found: found.__name__)
def test_a_result_has_the_fields_of_its_message(result_class: type[Result]) -> None:
    names = {field.name for field in fields_of(message_class_of(result_class)).values()}
    # Which operations a txn had is not in its message: the client adds them. The size is that of the message itself.
    assert {field.name for field in dataclasses.fields(result_class)} - {"operations", "encoded_size"} == names


def test_a_message_stands_for_itself_and_a_result_for_its_message() -> None:
    assert target_of(pb.RangeResponse) == DecodeTarget(pb.RangeResponse, None)
    assert target_of(RangeResult) == DecodeTarget(pb.RangeResponse, RangeResult)
    with pytest.raises(TypeError, match="int is neither a message nor a result of one"):
        target_of(int)


def test_messages_contain_messages_and_results_contain_results() -> None:
    kvs = fields_of(pb.RangeResponse)[2]
    assert target_of(pb.RangeResponse).inner(kvs) == DecodeTarget(pb.KeyValue, None)
    assert target_of(RangeResult).inner(kvs) == DecodeTarget(pb.KeyValue, KeyValue)
    assert target_of(TxnResult).inner(fields_of(pb.TxnResponse)[3]) == DecodeTarget(pb.ResponseOp, Unwrapped)
    with pytest.raises(TypeError, match=r"RangeResponse_result\.count contains no message"):
        target_of(RangeResult).inner(fields_of(pb.RangeResponse)[4])


def test_each_target_has_its_own_name() -> None:
    assert target_of(pb.KeyValue).name != target_of(KeyValue).name


@pytest.mark.parametrize(
    ("decodable", "is_endless"),
    [
        (Header, False),
        (KeyValue, False),
        (RangeResult, True),
        (TxnResult, True),
        (CompactResult, False),
        (Event, False),
        (WatchReply, True),
    ],
)
def test_only_messages_with_lists_are_endless(decodable: type[Result], is_endless: bool) -> None:
    assert target_of(decodable).is_endless is is_endless
