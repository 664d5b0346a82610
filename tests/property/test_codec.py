"""Codecs against everything: any message makes a round trip, any bytes decode or are refused."""

import itertools
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import codec, pb
from etcd_aio.codec import compiled
from etcd_aio.codec.fields import Field, fields_of
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import (
    RangeResult,
    Result,
    TxnResult,
    WatchReply,
)
from tests.support import reference_codec as reference
from tests.support.codec_backends import codec_backend as codec_backend
from tests.support.results import RESULTS
from tests.support.tiers import nightly_examples

CODECS = [pytest.param(reference, id="reference"), pytest.param(compiled, id="compiled")]
CLASSES = sorted(
    {
        found
        for found in (*vars(pb).values(), *vars(pb.health).values())
        if isinstance(found, type) and issubclass(found, pb.Message) and found is not pb.Message
    },
    key=lambda found: found.__name__,
)
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
        enum: Any = field.enum_class
        return st.sampled_from(list(enum)) | st.integers(10, 1000).map(enum) | st.integers(-(1 << 63), -1).map(enum)
    return INTEGERS[field.proto_type]


ANY_MESSAGE = st.sampled_from(CLASSES).flatmap(messages)
UNKNOWN = st.lists(st.sampled_from([b"\xf8\x07\x05", b"\xfa\x07\x02ab", b"\xfd\x071234", b"\xf9\x0712345678"])).map(
    b"".join
)


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE)
def test_any_message_makes_a_round_trip(codec: ModuleType, message: pb.Message) -> None:
    data = codec.encode(message)
    assert codec.decode(type(message), data) == message
    assert codec.encode(codec.decode(type(message), data)) == data


@pytest.mark.parametrize("codec", CODECS)
@given(message=messages(pb.TxnRequest, 7))
def test_txns_within_txns_make_a_round_trip(codec: ModuleType, message: pb.Message) -> None:
    assert codec.decode(pb.TxnRequest, codec.encode(message)) == message


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE, unknown=UNKNOWN)
def test_unknown_fields_survive(codec: ModuleType, message: pb.Message, unknown: bytes) -> None:
    data = codec.encode(message) + unknown
    assert codec.encode(codec.decode(type(message), data)) == data


@pytest.mark.parametrize("codec", CODECS)
@given(message=ANY_MESSAGE, data=st.data())
def test_damaged_bytes_decode_or_are_refused(codec: ModuleType, message: pb.Message, data: st.DataObject) -> None:
    sound = codec.encode(message)
    begin = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(begin, len(sound)))
    decode_or_refuse(codec, type(message), sound[:begin] + data.draw(st.binary(max_size=4)) + sound[end:])


@pytest.mark.parametrize("codec", CODECS)
@given(message_class=st.sampled_from(CLASSES), data=st.binary(max_size=60))
@nightly_examples(300)
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


# --- the compiled codec against the reference ---


def outcome(codec: ModuleType, message_class: type[pb.Message], data: bytes) -> pb.Message | None:
    """The message, or None if the codec refuses."""
    try:
        message = codec.decode(message_class, data)
    except MalformedReplyError:
        return None
    assert type(message) is message_class
    return message


def assert_both_say_the_same(message_class: type[pb.Message], data: bytes) -> None:
    expected, found = outcome(reference, message_class, data), outcome(compiled, message_class, data)
    assert (found is None) is (expected is None)
    if expected is None or found is None:
        return
    assert found == expected
    assert vars(found) == vars(expected)
    assert reference.encode(expected) == compiled.encode(expected) == compiled.encode(found)


@given(message=ANY_MESSAGE, unknown=UNKNOWN)
@nightly_examples(300)
def test_the_bytes_are_those_of_the_reference(message: pb.Message, unknown: bytes) -> None:
    assert compiled.encode(message) == reference.encode(message)
    assert_both_say_the_same(type(message), reference.encode(message) + unknown)


@st.composite
def fields(draw: st.DrawFn) -> bytes:
    """A sound field of any number and wire type, whether or not any message has it."""
    number, wire_type = (
        draw(st.integers(1, 20) | st.sampled_from([64, 1000])),
        draw(st.sampled_from([0, 0, 2, 2, 2, 1, 5])),
    )
    key = varint(number << 3 | wire_type)
    if wire_type == 0:
        return key + varint(draw(st.integers(0, (1 << 64) - 1) | st.integers(0, 300)))
    if wire_type == 2:
        content = draw(
            st.binary(max_size=6) | st.text(max_size=3).map(str.encode) | st.lists(fields(), max_size=3).map(b"".join)
        )
        return key + varint(len(content)) + content
    return (
        key + draw(st.binary(min_size=8, max_size=8))
        if wire_type == 1
        else key + draw(st.binary(min_size=4, max_size=4))
    )


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*out, value])


@given(message_class=st.sampled_from(CLASSES), data=st.lists(fields(), max_size=6).map(b"".join))
@nightly_examples(1000)
def test_any_fields_in_any_order_are_judged_as_by_the_reference(message_class: type[pb.Message], data: bytes) -> None:
    assert_both_say_the_same(message_class, data)


@given(message_class=st.sampled_from(CLASSES), data=st.binary(max_size=60))
@nightly_examples(500)
def test_any_bytes_are_judged_as_by_the_reference(message_class: type[pb.Message], data: bytes) -> None:
    assert_both_say_the_same(message_class, data)


@given(message=ANY_MESSAGE, data=st.data())
@nightly_examples(500)
def test_damaged_bytes_are_judged_as_by_the_reference(message: pb.Message, data: st.DataObject) -> None:
    sound = reference.encode(message)
    begin = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(begin, len(sound)))
    assert_both_say_the_same(type(message), sound[:begin] + data.draw(st.binary(max_size=4)) + sound[end:])


# --- results ---


def in_pieces(result_class: type[Result], data: bytes, size: int) -> Result:
    collector = codec.IncrementalDecoder(result_class)
    for start in range(0, len(data), size):
        collector.feed(data[start : start + size])
        collector.work()
    return collector.finish()


DECODERS: tuple[Callable[[type[Result], bytes], Result], ...] = (
    compiled.decode,
    lambda result_class, data: in_pieces(result_class, data, 1),
    lambda result_class, data: in_pieces(result_class, data, 7),
    lambda result_class, data: in_pieces(result_class, data, 1 << 20),
)


def assert_the_result_says_what_the_message_says(result_class: type[Result], data: bytes) -> None:
    message_class, build = RESULTS[result_class]
    message = outcome(reference, message_class, data)
    for decode in DECODERS:
        if message is None:
            with pytest.raises(MalformedReplyError, match=f"^malformed {message_class.__name__}: "):
                decode(result_class, data)
            continue
        result = decode(result_class, data)
        assert type(result) is result_class
        assert result == build(message)
        assert repr(result) == repr(build(message))
        if result_class is not TxnResult:  # it lacks the operations that the client adds to it
            assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.usefixtures("codec_backend")
@given(result_class=st.sampled_from(list(RESULTS)), unknown=UNKNOWN, data=st.data())
@nightly_examples(300)
def test_a_result_is_what_its_message_says(result_class: type[Result], unknown: bytes, data: st.DataObject) -> None:
    message = data.draw(messages(RESULTS[result_class][0], 5))
    assert_the_result_says_what_the_message_says(result_class, reference.encode(message) + unknown)


@pytest.mark.usefixtures("codec_backend")
@given(result_class=st.sampled_from(list(RESULTS)), data=st.lists(fields(), max_size=6).map(b"".join))
@nightly_examples(500)
def test_a_result_of_any_fields_is_what_its_message_says(result_class: type[Result], data: bytes) -> None:
    assert_the_result_says_what_the_message_says(result_class, data)


@pytest.mark.usefixtures("codec_backend")
@given(result_class=st.sampled_from(list(RESULTS)), data=st.data())
@nightly_examples(300)
def test_a_result_of_damaged_bytes_is_judged_as_its_message(result_class: type[Result], data: st.DataObject) -> None:
    sound = reference.encode(data.draw(messages(RESULTS[result_class][0], 5)))
    begin = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(begin, len(sound)))
    damaged = sound[:begin] + data.draw(st.binary(max_size=4)) + sound[end:]
    assert_the_result_says_what_the_message_says(result_class, damaged)


# --- runs of key-values, which are read by guessing ---

NUMBERS = st.integers(0, 1 << 36) | st.integers(0, 300) | st.integers(-(1 << 63), (1 << 63) - 1)
LIKELY = st.builds(
    lambda key, value, create, later, version, lease: pb.KeyValue(
        key=key, value=value, create_revision=create, mod_revision=create + later, version=version, lease=lease
    ),
    st.binary(max_size=140),
    st.binary(max_size=20) | st.integers(100, 20_000).map(bytes),
    st.integers(0, 1 << 36),
    st.integers(0, 1 << 36) | st.just(0),
    st.integers(0, 1 << 22) | st.integers(0, 300),
    st.just(0) | st.integers(-(1 << 63), (1 << 63) - 1),
)
UNLIKELY = st.builds(
    pb.KeyValue,
    key=st.binary(max_size=5),
    value=st.binary(max_size=5),
    create_revision=NUMBERS,
    mod_revision=NUMBERS,
    version=NUMBERS,
    lease=NUMBERS,
)
RUNS = st.lists(LIKELY | UNLIKELY, max_size=12)


@pytest.mark.usefixtures("codec_backend")
@given(run=RUNS, tail=st.sampled_from([b"", b"\x20\x05", b"\x18\x01\x20\x05", bytes(200)]), data=st.data())
@nightly_examples(300)
def test_a_run_of_key_values_is_read_whatever_its_cuts(
    run: list[pb.KeyValue], tail: bytes, data: st.DataObject
) -> None:
    # With an unknown field behind them the reader guesses at all of them, else only at those far from the end.
    padding = data.draw(st.sampled_from([b"", b"\xfa\x07\xfe\x01" + bytes(254)]))
    whole = reference.encode(pb.RangeResponse(kvs=run)) + tail + padding
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    assert_pieces_say_what_the_whole_says(RangeResult, whole, cuts, works=data.draw(st.booleans()))


@pytest.mark.usefixtures("codec_backend")
@given(run=RUNS, data=st.data())
@nightly_examples(500)
def test_a_damaged_run_is_judged_alike_whatever_its_cuts(run: list[pb.KeyValue], data: st.DataObject) -> None:
    whole = damaged(reference.encode(pb.RangeResponse(kvs=run)), data)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    assert_pieces_say_what_the_whole_says(RangeResult, whole, cuts, works=True)
    assert_the_result_says_what_the_message_says(RangeResult, whole)


PUTS = st.builds(lambda kv: pb.Event(kv=kv), LIKELY)
ANY_EVENTS = st.builds(
    pb.Event,
    type=st.sampled_from([pb.EventEventType.PUT, pb.EventEventType.DELETE]),
    kv=st.none() | UNLIKELY,
    prev_kv=st.none() | LIKELY,
)
EVENTS = st.lists(PUTS | ANY_EVENTS, max_size=12)


@pytest.mark.usefixtures("codec_backend")
@given(run=EVENTS, is_damaged=st.booleans(), data=st.data())
@nightly_examples(800)
def test_a_run_of_events_is_read_whatever_its_cuts(run: list[pb.Event], is_damaged: bool, data: st.DataObject) -> None:
    whole = reference.encode(pb.WatchResponse(events=run)) + data.draw(st.sampled_from([b"", bytes(200)]))
    if is_damaged:
        whole = damaged(whole, data)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    assert_pieces_say_what_the_whole_says(WatchReply, whole, cuts, works=data.draw(st.booleans()))


def damaged(sound: bytes, data: st.DataObject) -> bytes:
    begin = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(begin, min(len(sound), begin + 3)))
    return sound[:begin] + data.draw(st.binary(max_size=3)) + sound[end:]


def assert_pieces_say_what_the_whole_says(
    decodable: type[RangeResult] | type[WatchReply], whole: bytes, cuts: list[int], *, works: bool
) -> None:
    expected: RangeResult | WatchReply | None
    try:
        expected = compiled.decode(decodable, whole)
    except MalformedReplyError:
        expected = None
    collector = codec.IncrementalDecoder(decodable)
    for begin, end in itertools.pairwise([0, *cuts, len(whole)]):
        collector.feed(whole[begin:end])
        if works:
            collector.work()
    if expected is None:
        with pytest.raises(MalformedReplyError):
            collector.finish()
    else:
        assert collector.finish() == expected
