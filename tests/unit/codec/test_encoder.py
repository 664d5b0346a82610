"""Encoding: the functions that are written."""

import pytest

from etcd_aio import pb
from etcd_aio.codec.compiler import function
from etcd_aio.codec.encoder import Encoder, Unusual, Writer


def test_the_source_of_a_writer() -> None:
    assert str(Writer(pb.RequestOp).source()).splitlines()[:4] == [
        "def write_RequestOp(request_range=None, request_put=None, request_delete_range=None, request_txn=None):",
        "    parts = []",
        "    if request_range is not None:",
        r"        parts += b'\n', VARINT_BYTES[len(request_range)], request_range",
    ]


def test_the_source_of_an_encoder() -> None:
    assert (
        str(Encoder(pb.AlarmMember).source())
        == """\
def encode_AlarmMember(message, depth):
    if type(message) is not AlarmMember or depth > 100:
        raise Unusual
    member_id = message.member_id
    if type(member_id) is not int or not 0 <= member_id <= 18446744073709551615:
        raise Unusual
    alarm = message.alarm
    if type(alarm) is not enum_alarm or not -9223372036854775808 <= alarm <= 9223372036854775807:
        raise Unusual
    written = write_AlarmMember(member_id, alarm)
    unknown = message._unknown_fields
    return written + unknown if unknown else written
"""
    )


def test_needs() -> None:
    assert list(Encoder(pb.PutResponse).needs()) == [
        Writer(pb.PutResponse),
        Encoder(pb.ResponseHeader),
        Encoder(pb.KeyValue),
    ]


@pytest.mark.parametrize(
    "message",
    [
        pb.Compare(version=1, lease=0),
        pb.PutRequest(lease=1 << 63),
        pb.PutRequest(prev_kv=1),  # type: ignore[arg-type]
        pb.PutRequest(value=bytearray(b"v")),  # type: ignore[arg-type]
        pb.TxnRequest(compare=()),  # type: ignore[arg-type]
        pb.AuthUserListResponse(users=[b"u"]),  # type: ignore[list-item]
        pb.PutResponse(header=pb.PutResponse()),  # type: ignore[arg-type]
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_not_exactly_right_is_for_others_to_judge(message: pb.Message) -> None:
    with pytest.raises(Unusual):
        function(Encoder(type(message)))(message, 1)


def test_so_is_what_nests_too_deep() -> None:
    encode = function(Encoder(pb.PutResponse))
    message = pb.PutResponse(header=pb.ResponseHeader(revision=1))
    assert encode(message, 99)
    with pytest.raises(Unusual):
        encode(message, 100)
