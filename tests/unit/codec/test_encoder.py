"""codec/encoder.py: encoding: the generated functions."""

import pytest

from etcd_aio import pb
from etcd_aio.codec.codegen import function_of
from etcd_aio.codec.encoder import Encoder, Writer
from etcd_aio.errors import InvalidRequestError


def test_the_source_of_a_writer_is_straight_line_python() -> None:
    assert str(Writer(pb.RequestOp).source()).splitlines()[:4] == [
        "def write_RequestOp(request_range: bytes | None = None, request_put: bytes | None = None, "
        "request_delete_range: bytes | None = None, request_txn: bytes | None = None) -> bytes:",
        "    parts: list[bytes] = []",
        "    if request_range is not None:",
        r"        parts += b'\n', VARINT_BYTES[len(request_range)], request_range",
    ]


def test_the_source_of_an_encoder_checks_every_field() -> None:
    assert (
        str(Encoder(pb.AlarmMember).source())
        == """\
def encode_AlarmMember(message, depth):
    if not isinstance(message, AlarmMember):
        raise InvalidRequestError('a message is not AlarmMember')
    if depth > 100:
        raise InvalidRequestError('AlarmMember: messages nest more than 100 deep')
    member_id = message.member_id
    if not isinstance(member_id, int) or not 0 <= member_id <= 18446744073709551615:
        raise InvalidRequestError('AlarmMember.member_id has the wrong type, or is out of range')
    alarm = message.alarm
    if not isinstance(alarm, int) or not -9223372036854775808 <= alarm <= 9223372036854775807:
        raise InvalidRequestError('AlarmMember.alarm has the wrong type, or is out of range')
    written = write_AlarmMember(member_id, alarm)
    unknown = message._unknown_fields
    return written + unknown if unknown else written
"""
    )


def test_an_encoder_calls_its_writer_and_those_of_its_inner_messages() -> None:
    assert list(Encoder(pb.PutResponse).callees()) == [
        Writer(pb.PutResponse),
        Encoder(pb.ResponseHeader),
        Encoder(pb.KeyValue),
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (pb.Compare(version=1, lease=0), "Compare: more than one member of target_union is set"),
        (pb.PutRequest(lease=1 << 63), "PutRequest.lease has the wrong type, or is out of range"),
        (pb.PutRequest(prev_kv=2), "PutRequest.prev_kv has the wrong type, or is out of range"),  # type: ignore[arg-type]
        (
            pb.PutRequest(value=bytearray(b"v")),  # type: ignore[arg-type]
            "PutRequest.value has the wrong type, or is out of range",
        ),
        (pb.TxnRequest(compare=()), "TxnRequest.compare has the wrong type, or is out of range"),  # type: ignore[arg-type]
        (
            pb.AuthUserListResponse(users=[b"u"]),  # type: ignore[list-item]
            "AuthUserListResponse.users has the wrong type, or is out of range",
        ),
        (pb.PutResponse(header=pb.PutResponse()), "a message is not ResponseHeader"),  # type: ignore[arg-type]
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_invalid_field_is_rejected_by_name(message: pb.Message, reason: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        function_of(Encoder(type(message)))(message, 1)
    assert caught.value.message == reason


def test_a_message_that_nests_too_deep_is_rejected() -> None:
    encode = function_of(Encoder(pb.PutResponse))
    message = pb.PutResponse(header=pb.ResponseHeader(revision=1))
    assert encode(message, 99)
    with pytest.raises(InvalidRequestError, match="more than 100 deep"):
        encode(message, 100)
