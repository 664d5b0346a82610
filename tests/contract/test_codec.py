"""What every codec promises: the same bytes, the same refusals, and silence about what messages carry."""

import itertools
import traceback
from types import ModuleType

import pytest

from etcd_aio import pb
from etcd_aio.codec import compiled
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.types import Event, EventType, Header, KeyValue, RangeResult, WatchReply
from tests.support import reference_codec as reference
from tests.support.codec_backends import codec_backend as codec_backend
from tests.support.results import watch_reply

CODECS = [reference, compiled]


@pytest.fixture(params=CODECS, ids=lambda codec: codec.__name__.rpartition(".")[2])
def codec(request: pytest.FixtureRequest) -> ModuleType:
    found = request.param
    assert isinstance(found, ModuleType)
    return found


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*out, value])


def length_field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


# Written down from protobuf's encoding guide, not taken from any codec.
GOLDEN: list[tuple[pb.Message, bytes]] = [
    (pb.MemberListRequest(), b""),
    (pb.MemberListRequest(linearizable=True), b"\x08\x01"),
    (pb.PutRequest(key=b"k", value=b"v", lease=-1), b"\x0a\x01k\x12\x01v\x18" + b"\xff" * 9 + b"\x01"),
    (pb.PutRequest(key=b"k", lease=(1 << 63) - 1), b"\x0a\x01k\x18" + b"\xff" * 8 + b"\x7f"),
    (pb.ResponseHeader(cluster_id=(1 << 64) - 1, revision=300), b"\x08" + b"\xff" * 9 + b"\x01\x18\xac\x02"),
    (pb.RangeRequest(key=b"k", sort_order=pb.RangeRequestSortOrder.DESCEND), b"\x0a\x01k\x28\x02"),
    (pb.AuthUserListResponse(users=["", "ü"]), b"\x12\x00\x12\x02\xc3\xbc"),
    # Repeated numbers are packed.
    (
        pb.WatchCreateRequest(
            filters=[pb.WatchCreateRequestFilterType.NODELETE, pb.WatchCreateRequestFilterType.NOPUT]
        ),
        b"\x2a\x02\x01\x00",
    ),
    # A member of a oneof is written even if it is 0, and an empty message even if nothing is in it.
    (pb.Compare(key=b"k", version=0), b"\x1a\x01k\x20\x00"),
    (pb.WatchRequest(progress_request=pb.WatchProgressRequest()), b"\x1a\x00"),
    (pb.RangeResponse(kvs=[pb.KeyValue(), pb.KeyValue(key=b"k")]), b"\x12\x00\x12\x03\x0a\x01k"),
    # Field 64 takes two bytes of key.
    (pb.Compare(range_end=b"z"), b"\x82\x04\x01z"),
    (
        pb.TxnRequest(success=[pb.RequestOp(request_txn=pb.TxnRequest(compare=[pb.Compare(lease=1)]))]),
        b"\x12\x06\x22\x04\x0a\x02\x40\x01",
    ),
]
GOLDEN_IDS = [f"{number}-{type(message).__name__}" for number, (message, _) in enumerate(GOLDEN)]


@pytest.mark.parametrize(("message", "data"), GOLDEN, ids=GOLDEN_IDS)
def test_encodes_as_protobuf_says(codec: ModuleType, message: pb.Message, data: bytes) -> None:
    assert codec.encode(message) == data


@pytest.mark.parametrize(("message", "data"), GOLDEN, ids=GOLDEN_IDS)
def test_decodes_as_protobuf_says(codec: ModuleType, message: pb.Message, data: bytes) -> None:
    assert codec.decode(type(message), data) == message


def test_repeated_numbers_are_read_packed_or_not(codec: ModuleType) -> None:
    expected = pb.WatchCreateRequest(filters=[pb.WatchCreateRequestFilterType.NODELETE] * 3)
    assert codec.decode(pb.WatchCreateRequest, b"\x28\x01\x2a\x02\x01\x01") == expected


def test_enum_values_of_a_newer_server_survive(codec: ModuleType) -> None:
    event = codec.decode(pb.Event, b"\x08\x07")
    assert event.type == 7
    assert codec.encode(event) == b"\x08\x07"


@pytest.mark.parametrize(
    "unknown",
    [b"\xf8\x07\x05", b"\xf9\x07" + b"12345678", b"\xfa\x07\x02ab", b"\xfd\x07" + b"1234"],
    ids=["varint", "fixed64", "length", "fixed32"],
)
def test_unknown_fields_survive_on_every_level(codec: ModuleType, unknown: bytes) -> None:
    data = length_field(2, b"\x0a\x01k" + unknown) + b"\x20\x01" + unknown
    message = codec.decode(pb.RangeResponse, data)
    assert message.kvs[0].key == b"k"
    assert message.count == 1
    assert codec.encode(message) == data


@pytest.mark.parametrize(
    ("message_class", "data", "expected"),
    [
        (pb.PutRequest, b"\x0a\x01a\x0a\x01b", pb.PutRequest(key=b"b")),
        (pb.PutResponse, b"\x0a\x02\x18\x07\x0a\x02\x08\x01", pb.PutResponse(header=pb.ResponseHeader(cluster_id=1))),
        (pb.Compare, b"\x20\x01\x20\x02", pb.Compare(version=2)),
        (
            pb.AuthUserListResponse,
            b"\x12\x01a\x0a\x00\x12\x01b",
            pb.AuthUserListResponse(pb.ResponseHeader(), ["a", "b"]),
        ),
    ],
    ids=["number", "message", "member of a oneof", "list with something in between"],
)
def test_of_what_comes_twice_the_last_counts_and_lists_grow(
    codec: ModuleType, message_class: type[pb.Message], data: bytes, expected: pb.Message
) -> None:
    assert codec.decode(message_class, data) == expected


def test_any_order_of_fields_is_read(codec: ModuleType) -> None:
    expected = pb.KeyValue(key=b"k", create_revision=300, mod_revision=1 << 40, version=3, value=b"v", lease=-7)
    fields = [codec.encode(one) for one in parts_of(expected)]
    for order in itertools.permutations(fields):
        assert codec.decode(pb.KeyValue, b"".join(order)) == expected


def parts_of(kv: pb.KeyValue) -> list[pb.KeyValue]:
    names = ("key", "create_revision", "mod_revision", "version", "value", "lease")
    return [pb.KeyValue(**{name: getattr(kv, name)}) for name in names]


@pytest.mark.parametrize("number", [0, 1, *(1 << 7 * size for size in range(1, 10)), (1 << 63) - 1, -1, -(1 << 63)])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_numbers_of_every_size(codec: ModuleType, number: int, off: int) -> None:
    signed = min(max(number + off, -(1 << 63)), (1 << 63) - 1)
    unsigned = signed % (1 << 64)
    put, header = pb.PutRequest(lease=signed), pb.ResponseHeader(cluster_id=unsigned)
    assert codec.encode(put) == (b"\x18" + varint(unsigned) if signed else b"")
    assert codec.encode(header) == (b"\x08" + varint(unsigned) if signed else b"")
    for data, message in ((codec.encode(put), put), (codec.encode(header), header)):
        assert codec.decode(type(message), data) == message
        # As an inner message, so that other bytes stand behind the number.
    inside = pb.PutResponse(header=header, prev_kv=pb.KeyValue(lease=signed))
    assert codec.decode(pb.PutResponse, codec.encode(inside)) == inside


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 70_000, 2_097_151, 2_097_152])
def test_content_of_every_size(codec: ModuleType, size: int) -> None:
    message = pb.RangeResponse(kvs=[pb.KeyValue(key=b"k", value=bytes(size)), pb.KeyValue(key=b"l")])
    data = codec.encode(message)
    assert (
        data == length_field(2, b"\x0a\x01k" + (length_field(5, bytes(size)) if size else b"")) + b"\x12\x03\x0a\x01l"
    )
    assert codec.decode(pb.RangeResponse, data) == message


def test_small_numbers_written_long_are_read(codec: ModuleType) -> None:
    assert codec.decode(pb.PutRequest, b"\x18\x81\x80\x80\x80\x80\x80\x00") == pb.PutRequest(lease=1)
    assert codec.decode(pb.PutRequest, b"\x0a\x81\x80\x80\x80\x00k\x20\x81\x00") == pb.PutRequest(
        key=b"k", prev_kv=True
    )


def test_a_number_of_32_bits_takes_the_low_ones_of_a_longer_one(codec: ModuleType) -> None:
    assert codec.decode(pb.HashResponse, b"\x10" + varint(5 << 32 | 7)) == pb.HashResponse(hash=7)


def test_types_are_those_of_the_fields(codec: ModuleType) -> None:
    request = codec.decode(pb.RangeRequest, b"\x28\x01\x38\x01")
    assert type(request.sort_order) is pb.RangeRequestSortOrder
    assert type(request.sort_target) is pb.RangeRequestSortTarget
    assert request.serializable is True
    assert request.keys_only is False


MALFORMED: dict[str, tuple[type[pb.Message], bytes]] = {
    "key cut short": (pb.PutRequest, b"\x80"),
    "varint missing": (pb.PutRequest, b"\x18"),
    "varint cut short": (pb.PutRequest, b"\x18\xff"),
    "varint of eleven bytes": (pb.PutRequest, b"\x18" + b"\xff" * 10 + b"\x01"),
    "varint of 65 bits": (pb.PutRequest, b"\x18" + b"\xff" * 9 + b"\x02"),
    "length missing": (pb.PutRequest, b"\x0a"),
    "content cut short": (pb.PutRequest, b"\x0a\x05abc"),
    "length beyond memory": (pb.PutRequest, b"\x0a" + b"\xff" * 9 + b"\x01"),
    "inner message cut short": (pb.RangeResponse, b"\x12\x03\x0a\x05k"),
    "inner content reaches out of its message": (pb.RangeResponse, b"\x12\x02\x0a\x02kkkk"),
    "unknown fixed64 cut short": (pb.PutRequest, b"\xf9\x07" + b"1234567"),
    "unknown fixed32 cut short": (pb.PutRequest, b"\xfd\x07" + b"123"),
    "unknown content cut short": (pb.PutRequest, b"\xfa\x07\x02a"),
    "field number 0": (pb.PutRequest, b"\x00\x00"),
    "field number longer than it needs": (pb.PutRequest, b"\x8a\x00\x01k"),
    "unknown field number longer than it needs": (pb.PutRequest, b"\xf8\x87\x00\x05"),
    "field number too large": (pb.PutRequest, varint((1 << 29) << 3) + b"\x00"),
    "group": (pb.PutRequest, b"\xfb\x07\xfc\x07"),
    "end of a group": (pb.PutRequest, b"\xfc\x07"),
    "wire type 6": (pb.PutRequest, b"\x0e"),
    "wire type 7": (pb.PutRequest, b"\xff\x07"),
    "number where bytes belong": (pb.PutRequest, b"\x08\x05"),
    "bytes where a number belongs": (pb.PutRequest, b"\x1a\x01\x05"),
    "fixed64 where a number belongs": (pb.PutRequest, b"\x19" + b"12345678"),
    "number where a message belongs": (pb.RangeResponse, b"\x08\x05"),
    "packed number cut short": (pb.WatchCreateRequest, b"\x2a\x01\x80"),
    "text that is not UTF-8": (pb.AuthenticateResponse, b"\x12\x02\xc3\x28"),
    "surrogates in text": (pb.AuthenticateResponse, b"\x12\x03\xed\xa0\x80"),
    "number reaches out of its message": (pb.RangeResponse, b"\x12\x02\x10\x80\x01"),
    "tag reaches out of its message": (pb.Compare, b"\x82"),
    "inner tag reaches out of its message": (pb.TxnRequest, b"\x0a\x01\x82\x04\x01z"),
    "packed number reaches out of its field": (pb.WatchCreateRequest, b"\x2a\x01\x80\x01"),
    "end of a group where a field belongs": (pb.PutRequest, b"\x0c"),
    "group where a field belongs": (pb.PutRequest, b"\x0b\x0c"),
    "two members of a oneof": (pb.ResponseOp, b"\x0a\x00\x12\x00"),
}


@pytest.mark.parametrize(("message_class", "data"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_bytes_are_refused(codec: ModuleType, message_class: type[pb.Message], data: bytes) -> None:
    with pytest.raises(MalformedReplyError, match=f"^malformed {message_class.__name__}: "):
        codec.decode(message_class, data)


MALFORMED_KEY_VALUES: dict[str, bytes] = {
    "tag alone": b"\x0a",
    "length missing": b"\x10\x01\x0a",
    "key cut short": b"\x0a\x05k",
    "key whose length reaches out of it": b"\x0a\x80",
    "key beyond memory": b"\x0a" + b"\xff" * 9 + b"\x01",
    "key of 65 bits": b"\x0a" + b"\xff" * 9 + b"\x02",
    "number missing": b"\x0a\x01k\x10",
    "number cut short": b"\x0a\x01k\x10\xff",
    "number of eleven bytes": b"\x10" + b"\xff" * 10 + b"\x01",
    "number of 65 bits": b"\x30" + b"\xff" * 9 + b"\x02",
    "value cut short": b"\x0a\x01k\x2a\x02v",
    "wrong wire type": b"\x08\x05",
    "field number 0": b"\x00\x00",
    "group": b"\x0b\x0c",
}
BEHIND: list[bytes] = [b"", b"\x0a\x01k", bytes(300)]  # which a reader of the malformed one must not take for its own


@pytest.mark.usefixtures("codec_backend")
@pytest.mark.parametrize("content", MALFORMED_KEY_VALUES.values(), ids=MALFORMED_KEY_VALUES)
def test_malformed_key_values_and_events_are_refused(content: bytes) -> None:
    good = length_field(1, b"k") + b"\x10\x01\x18\x01\x20\x01"
    for behind in BEHIND:
        for before in (b"", good):
            kvs = b"".join(length_field(2, one) for one in (before, content)) + length_field(2, behind)
            with pytest.raises(MalformedReplyError, match=r"^malformed RangeResponse: "):
                compiled.decode(RangeResult, kvs)
            events = [
                length_field(2, before),
                length_field(2, content),
                length_field(2, good) + length_field(3, content),
            ]
            for event in events[1:]:
                with pytest.raises(MalformedReplyError, match=r"^malformed WatchResponse: "):
                    compiled.decode(WatchReply, length_field(11, events[0]) + length_field(11, event) + behind)


def nested_txn_bytes(depth: int) -> bytes:
    """Messages within messages, `depth` of them."""
    data = b""
    for level in range(depth - 1):
        data = length_field(3 if level % 2 else 4, data)
    return data


@pytest.mark.parametrize("depth", [101, 1_000, 5_000])
def test_bytes_that_nest_too_deep_are_refused(codec: ModuleType, depth: int) -> None:
    outermost = pb.TxnResponse if depth % 2 else pb.ResponseOp
    with pytest.raises(MalformedReplyError, match="deep"):
        codec.decode(outermost, nested_txn_bytes(depth))


def test_a_hundred_messages_deep_is_fine_both_ways(codec: ModuleType) -> None:
    data = nested_txn_bytes(100)
    assert codec.encode(codec.decode(pb.ResponseOp, data)) == data


def nested_txn(depth: int) -> pb.TxnRequest:
    txn = pb.TxnRequest()
    for _ in range(depth):
        txn = pb.TxnRequest(success=[pb.RequestOp(request_txn=txn)])
    return txn


@pytest.mark.parametrize("depth", [50, 400, 5_000])
def test_a_message_that_nests_too_deep_is_refused(codec: ModuleType, depth: int) -> None:
    with pytest.raises(InvalidRequestError, match="deep"):
        codec.encode(nested_txn(depth))


UNWRITABLE: dict[str, pb.Message] = {
    "int64 too large": pb.PutRequest(lease=1 << 63),
    "int64 too small": pb.PutRequest(lease=-(1 << 63) - 1),
    "beyond 64 bits": pb.PutRequest(lease=1 << 80),
    "uint64 negative": pb.MemberRemoveRequest(id=-1),
    "uint64 too large": pb.MemberRemoveRequest(id=1 << 64),
    "bool too large": pb.MemberListRequest(linearizable=2),  # type: ignore[arg-type]
    "float for a number": pb.PutRequest(lease=1.5),  # type: ignore[arg-type]
    "None for a number": pb.PutRequest(lease=None),  # type: ignore[arg-type]
    "text for bytes": pb.PutRequest(key="secret"),  # type: ignore[arg-type]
    "bytes for text": pb.AuthenticateRequest(name=b"secret"),  # type: ignore[arg-type]
    "text that no encoding has": pb.AuthenticateRequest(password="secret\ud800"),
    "a message of another class": pb.RequestOp(request_put=pb.RangeRequest(key=b"secret")),  # type: ignore[arg-type]
    "one for a list": pb.TxnRequest(compare=pb.Compare(key=b"secret")),  # type: ignore[arg-type]
    "None in a list": pb.TxnRequest(compare=[None]),  # type: ignore[list-item]
    "two members of a oneof": pb.Compare(version=1, lease=1),
    "inside of another": pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=b"secret", lease=1 << 63))]),
}


@pytest.mark.parametrize("message", UNWRITABLE.values(), ids=UNWRITABLE)
def test_unwritable_messages_are_refused(codec: ModuleType, message: pb.Message) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        codec.encode(message)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_an_error_shows_nothing_of_the_bytes(codec: ModuleType) -> None:
    data = length_field(2, b"secret\xff")
    with pytest.raises(MalformedReplyError) as caught:
        codec.decode(pb.AuthenticateResponse, data)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_encoding_does_not_change_the_message(codec: ModuleType) -> None:
    message = pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k"))])
    assert codec.encode(message) == codec.encode(message)
    assert message == pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k"))])


# What a watch says: the reference reads the messages, and the compiled codec the results that stand for them.

WATCH_REPLIES: dict[str, tuple[bytes, WatchReply]] = {
    "nothing": (b"", WatchReply()),
    "created": (b"\x0a\x04\x08\x01\x18\x07\x10\x00\x18\x01", WatchReply(Header(1, 0, 7), created=True)),
    "refused": (
        b"\x10" + b"\xff" * 9 + b"\x01\x18\x01\x20\x01\x32\x02no",
        WatchReply(watch_id=-1, created=True, canceled=True, cancel_reason="no"),
    ),
    "compacted": (b"\x10\x05\x20\x01\x28\xac\x02", WatchReply(watch_id=5, canceled=True, compact_revision=300)),
    "events": (
        b"\x10\x05\x38\x01"
        + length_field(11, length_field(2, b"\x0a\x01k\x18\x09") + length_field(3, b"\x0a\x01k"))
        + length_field(11, b"\x08\x01" + length_field(2, b"\x0a\x01k\x18\x0a"))
        + length_field(11, b""),
        WatchReply(
            watch_id=5,
            fragment=True,
            events=(
                Event(EventType.PUT, KeyValue(b"k", mod_revision=9), KeyValue(b"k")),
                Event(EventType.DELETE, KeyValue(b"k", mod_revision=10)),
                Event(EventType.PUT, KeyValue(b"")),
            ),
        ),
    ),
}


@pytest.mark.usefixtures("codec_backend")
@pytest.mark.parametrize(("data", "expected"), WATCH_REPLIES.values(), ids=WATCH_REPLIES)
def test_what_a_watch_says(codec: ModuleType, data: bytes, expected: WatchReply) -> None:
    assert watch_reply(codec.decode(pb.WatchResponse, data)) == expected
    if codec is compiled:
        assert codec.decode(WatchReply, data) == expected


@pytest.mark.usefixtures("codec_backend")
@pytest.mark.parametrize("number", [2, 7, -1])
def test_an_event_of_an_unknown_kind_is_refused(number: int) -> None:
    data = compiled.encode(pb.WatchResponse(events=[pb.Event(type=number)]))  # type: ignore[arg-type]
    with pytest.raises(MalformedReplyError, match="unknown"):
        compiled.decode(WatchReply, data)
