"""codec/decoder.py: decoding: the generated functions, and how often their loop runs."""

import sys
from types import FrameType
from typing import Any

import pytest

from etcd_aio import pb
from etcd_aio.codec.accelerated_runs import AcceleratedReader
from etcd_aio.codec.codegen import function_of
from etcd_aio.codec.decoder import ACCELERATED_ITEM, ITEM, STEP, Decoder
from etcd_aio.codec.kv_runs import KeyValuesReader
from etcd_aio.codec.speedups import Accelerator
from etcd_aio.codec.targets import target_of
from etcd_aio.types import Header, KeyValue, RangeResult, TxnResult


def test_the_source_reads_like_python_written_by_hand() -> None:
    assert (
        str(Decoder(target_of(pb.MemberListRequest)).source())
        == """\
def decode_MemberListRequest(data, at, end, depth):
    linearizable = False
    unknown = []
    while at < end:
        tag = data[at]
        if tag == 8:  # linearizable
            linearizable = data[at + 1]
            if linearizable < 128:
                at += 2
            else:
                linearizable, stop = long_unsigned(data[at + 1 : at + 11])
                at += stop + 1
            linearizable = linearizable > 0
            if at >= end:
                break
            tag = data[at]
        if tag in {8}:
            continue  # out of order
        start = at
        at = skip_unknown(data, start, end, (1,))
        unknown.append(data[start:at])
    if at > end:
        raise WireFormatError('a field is cut short')
    message = new(MemberListRequest)
    message._unknown_fields = b"".join(unknown)
    message.linearizable = linearizable
    return message
"""
    )


def test_no_variable_hides_a_helper_or_a_builtin() -> None:
    source = str(Decoder(target_of(pb.Event)).source())
    assert "type_ = enum_type(type_)" in source
    assert "message.type = type_" in source


def test_a_decoder_has_a_name_and_calls_those_of_its_inner_messages() -> None:
    found = Decoder(target_of(RangeResult), in_steps=True, accelerator=None)
    assert found.name == "decode_RangeResponse_result_in_steps"
    # A message without lists needs no steps.
    one = Decoder(target_of(KeyValue), accelerator=None)
    header = Decoder(target_of(Header), accelerator=None)
    assert list(found.callees()) == [header, KeyValuesReader(one, ITEM)]
    assert list(Decoder(target_of(RangeResult), accelerator=None).callees()) == [header, one]
    txn = Decoder(target_of(TxnResult), in_steps=True, accelerator=None)
    within = next(inner for inner in txn.callees() if inner.name.endswith("_in_steps"))
    assert f"(yield from {within.name}(data, at, stop, depth + 1, True))" in str(txn.source())


def test_an_accelerated_decoder_has_another_name_and_calls_the_accelerator() -> None:
    def read_key_values(*arguments: Any) -> int:
        raise AssertionError("not called here")

    accelerator = Accelerator(*[read_key_values] * 5)
    found = Decoder(target_of(RangeResult), in_steps=True, accelerator=accelerator)
    assert found.name == "decode_RangeResponse_result_in_steps_accelerated"
    one = Decoder(target_of(KeyValue), accelerator=accelerator)
    header = Decoder(target_of(Header), accelerator=accelerator)
    assert list(found.callees()) == [
        header,
        AcceleratedReader(one, ACCELERATED_ITEM, read_key_values, "read_key_values"),
    ]
    whole = Decoder(target_of(RangeResult), accelerator=accelerator)
    assert "at = read_key_values(data, at, end, end, 0, tag, kvs)" in str(whole.source())
    assert whole.namespace()["read_key_values"] is read_key_values
    assert "made = read_range(data, at, end)" in str(whole.source())
    assert "read_range" not in str(found.source())
    # Messages are made by generated Python.
    message = Decoder(target_of(pb.RangeResponse), accelerator=accelerator)
    assert message.name == "decode_RangeResponse"
    assert str(message.source()) == str(Decoder(target_of(pb.RangeResponse), accelerator=None).source())


def rounds(decode: Any, data: bytes) -> int:
    """How often the loop of a decoder starts over."""
    line = decode.__code__.co_firstlineno + next(
        number
        for number, text in enumerate(str(Decoder(target_of(KeyValue)).source()).splitlines())
        if text.startswith("        tag = ")
    )
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if frame.f_code is decode.__code__:
            count += event == "line" and frame.f_lineno == line
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decode(data, 0, len(data), 1)
    finally:
        sys.settrace(before)
    return count


FIELDS = [b"\x0a\x01k", b"\x10\x04", b"\x18\x06", b"\x20\x02", b"\x2a\x01v", b"\x30\x09"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"".join(FIELDS), 1),
        (b"".join(FIELDS[1:5:2]), 1),
        (b"", 0),
        (b"".join(reversed(FIELDS)), 6),
        (FIELDS[4] + b"".join(FIELDS[:4]), 2),
    ],
    ids=["etcd's order", "some left out", "nothing", "backwards", "value first"],
)
def test_fields_in_the_order_of_their_numbers_take_one_round(data: bytes, expected: int) -> None:
    assert rounds(function_of(Decoder(target_of(KeyValue))), data) == expected


def test_a_step_is_short_enough_for_the_loop() -> None:
    shortest = len(b"\x12\x0d\x0a\x03abc\x10\x01\x18\x01\x20\x01\x2a\x00")
    assert STEP // (shortest + ITEM) < 2_500  # at a microsecond each, a quarter of 10 ms
    assert STEP // (shortest + ACCELERATED_ITEM) < 12_000  # at a fifth of a microsecond
