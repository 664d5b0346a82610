"""Codecs against everything: any message makes a round trip, any bytes decode or are refused."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_aio import pb
from etcd_aio.codec import reference
from etcd_aio.codec.strictness import Field, fields_of
from etcd_aio.errors import MalformedReplyError
from etcd_aio.methods import ALL

CODECS = [pytest.param(reference, id="reference")]
CLASSES = sorted({found for row in ALL for found in (row.request, row.reply)}, key=lambda found: found.__name__)
MAX_NESTING = 3

INTEGERS = {
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "uint64": st.integers(0, (1 << 64) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "bool": st.booleans(),
}


@st.composite
def messages(draw: st.DrawFn, message_class: type[pb.Message], nesting: int = MAX_NESTING) -> pb.Message:
    """Any message of the class: each field set or left alone, at most one member of a oneof."""
    values: dict[str, object] = {}
    taken: set[str] = set()
    for field in fields_of(message_class).values():
        if (nesting == 0 and field.message_class) or field.oneof in taken or not draw(st.booleans()):
            continue
        if field.oneof is not None:
            taken.add(field.oneof)
        one = items(message_class, field, nesting)
        values[field.name] = draw(st.lists(one, max_size=3) if field.repeated else one)
    return message_class(**values)


def items(message_class: type[pb.Message], field: Field, nesting: int) -> st.SearchStrategy[Any]:
    if field.message_class is not None:
        return messages(field.message_class, nesting - 1)
    if field.proto_type == "bytes":
        return st.binary(max_size=20)
    if field.proto_type == "string":
        return st.text(max_size=20)
    if field.proto_type == "enum":
        enum: Any = message_class()._betterproto.cls_by_field[field.name]  # type: ignore[arg-type]
        return st.sampled_from(list(enum)) | st.integers(10, 1000).map(enum)
    return INTEGERS[field.proto_type]


ANY_MESSAGE = st.sampled_from(CLASSES).flatmap(messages)
UNKNOWN = st.lists(st.sampled_from([b"\xf8\x07\x05", b"\xfa\x07\x02ab", b"\xfd\x071234", b"\xf9\x0712345678"])).map(
    b"".join
)


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE)
@settings(deadline=None)
def test_any_message_makes_a_round_trip(codec: ModuleType, message: pb.Message) -> None:
    data = codec.encode(message)
    assert codec.decode(type(message), data) == message
    assert codec.encode(codec.decode(type(message), data)) == data


@pytest.mark.parametrize("codec", CODECS)
@given(message=messages(pb.TxnRequest, 7))
@settings(deadline=None)
def test_txns_within_txns_make_a_round_trip(codec: ModuleType, message: pb.Message) -> None:
    assert codec.decode(pb.TxnRequest, codec.encode(message)) == message


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE, unknown=UNKNOWN)
@settings(deadline=None)
def test_unknown_fields_survive(codec: ModuleType, message: pb.Message, unknown: bytes) -> None:
    data = codec.encode(message) + unknown
    assert codec.encode(codec.decode(type(message), data)) == data


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE, data=st.data())
@settings(deadline=None)
def test_damaged_bytes_decode_or_are_refused(codec: ModuleType, message: pb.Message, data: st.DataObject) -> None:
    sound = codec.encode(message)
    begin = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(begin, len(sound)))
    decode_or_refuse(codec, type(message), sound[:begin] + data.draw(st.binary(max_size=4)) + sound[end:])


@pytest.mark.parametrize("codec", CODECS)
@given(message_class=st.sampled_from(CLASSES), data=st.binary(max_size=60))
@settings(deadline=None, max_examples=300)
def test_any_bytes_decode_or_are_refused(codec: ModuleType, message_class: type[pb.Message], data: bytes) -> None:
    decode_or_refuse(codec, message_class, data)


def decode_or_refuse(codec: ModuleType, message_class: type[pb.Message], data: bytes) -> None:
    try:
        message = codec.decode(message_class, data)
    except MalformedReplyError:
        return
    # What was taken for a message is one: it can be written, and reads the same again.
    again = codec.decode(message_class, codec.encode(message))
    assert again == message
    assert codec.encode(again) == codec.encode(message)
