"""codec/compiled.py, codec/decodable.py: the compiled codec: results, steps, writers, and errors."""

import enum
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, TypeVar

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec import compiled
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    DowngradeInfo,
    HashKVResult,
    Header,
    KeyValue,
    Member,
    MemberAddResult,
    MemberListResult,
    PutResult,
    RangeChunk,
    RangeResult,
    Result,
    SnapshotChunk,
    StatusResult,
    TxnResult,
)
from tests.support import reference_codec as reference
from tests.support.codec_backends import codec_backend as codec_backend

R = TypeVar("R")

MESSAGE_CLASSES = [
    found
    for found in (*vars(pb).values(), *vars(pb.health).values())
    if isinstance(found, type) and issubclass(found, pb.Message) and found is not pb.Message
]
HEADER = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)


def collected(decodable: Any, data: bytes) -> Any:
    collector = codec.IncrementalDecoder(decodable)
    collector.feed(data)
    return collector.finish()


KV = pb.KeyValue(key=b"k", value=b"v", create_revision=4, mod_revision=6, version=2, lease=9)


def test_the_package_exports_the_compiled_codec() -> None:
    assert (codec.encode, codec.decode) == (compiled.encode, compiled.decode)


@pytest.mark.parametrize("message_class", MESSAGE_CLASSES, ids=lambda found: found.__name__)
def test_every_message_class_is_covered(message_class: type[pb.Message]) -> None:
    message = compiled.decode(message_class, b"")
    assert message == message_class()
    assert vars(message) == vars(message_class())
    assert compiled.encode(message) == b""
    assert compiled.writers[message_class]() == b""


def test_no_two_message_classes_share_a_name() -> None:
    # Functions are found by it.
    assert len({found.__name__ for found in MESSAGE_CLASSES}) == len(set(MESSAGE_CLASSES))


def test_lists_are_not_shared() -> None:
    first, second = compiled.decode(pb.RangeResponse, b""), compiled.decode(pb.RangeResponse, b"")
    first.kvs.append(pb.KeyValue())
    assert second.kvs == []


# Refusals.


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80", "a field is cut short"),
        (b"\x18" + b"\xff" * 10, "a varint has more than 64 bits"),
        (b"\x18" + b"\xff" * 9 + b"\x02", "a varint has more than 64 bits"),
        (b"\x0a" + b"\xff" * 9 + b"\x02", "a varint has more than 64 bits"),
        (b"\x0a\x05abc", "a field is cut short"),
        (b"\x00\x00", "a field number is out of range"),
        (b"\x0b", "field 1 has wire type 3"),
        (b"\x08\x05", "field 1 has wire type 0"),
        (b"\x8a\x00\x01k", "a field number is written longer than it needs"),
        (b"\xfb\x07", "field 127 has wire type 3"),
    ],
)
def test_the_error_names_the_cause(data: bytes, reason: str) -> None:
    for decode in (compiled.decode, collected):
        with pytest.raises(MalformedReplyError) as caught:
            decode(pb.PutRequest, data)
        assert caught.value.message == f"malformed PutRequest: {reason}"
        assert caught.value.__context__ is None


@pytest.mark.usefixtures("codec_backend")
def test_the_error_of_a_result_names_its_message() -> None:
    with pytest.raises(MalformedReplyError, match=r"^malformed RangeResponse: a field is cut short$"):
        compiled.decode(RangeResult, b"\x12\x05")


def test_a_class_that_is_neither_message_nor_result_raises_type_error() -> None:
    with pytest.raises(TypeError, match="bytes is neither a message nor a result of one"):
        compiled.decode(bytes, b"")  # type: ignore[type-var]


def at_the_end_of_the_stack(action: Callable[[], R]) -> R:
    """What `action` returns or raises from the deepest place where it does not fail by entering a function."""
    try:
        return at_the_end_of_the_stack(action)
    except RecursionError:
        return action()


def test_an_exhausted_stack_is_a_clean_error() -> None:
    message = pb.TxnRequest()
    for _ in range(40):
        message = pb.TxnRequest(success=[pb.RequestOp(request_txn=message)])
    data = compiled.encode(message)
    assert compiled.decode(pb.TxnRequest, data) == collected(pb.TxnRequest, data) == message
    with pytest.raises(MalformedReplyError, match="nests too deep to be decoded from here"):
        at_the_end_of_the_stack(lambda: compiled.decode(pb.TxnRequest, data))
    with pytest.raises(InvalidRequestError, match="nests too deep to be encoded from here"):
        at_the_end_of_the_stack(lambda: compiled.encode(message))


def test_many_unknown_fields_are_kept_together() -> None:
    data = b"\xf8\x07\x05\xfa\x07\x02ab" * 50_000
    assert compiled.encode(compiled.decode(pb.PutRequest, data)) == data
    assert compiled.decode(PutResult, data) == PutResult(Header())


def test_a_traceback_shows_the_generated_line() -> None:
    with pytest.raises(AttributeError) as caught:
        compiled.writers[pb.AuthenticateRequest](name=5)
    shown = "".join(traceback.format_exception(caught.value))
    assert "<etcd_aio write_AuthenticateRequest>" in shown
    assert "text = name.encode()" in shown


# Messages with unusual contents.


class Word(bytes):
    pass


class Number(enum.IntEnum):
    ONE = 1


UNUSUAL: dict[str, pb.Message] = {
    "subclass of bytes": pb.PutRequest(key=Word(b"k")),
    "truth value for a number": pb.PutRequest(lease=True),
    "number for a truth value": pb.PutRequest(prev_kv=1),  # type: ignore[arg-type]
    "number for an enum": pb.RangeRequest(sort_order=1),  # type: ignore[arg-type]
    "another enum": pb.RangeRequest(sort_order=Number.ONE),  # type: ignore[arg-type]
    "inside of another": pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=Word(b"k")))]),
}


@pytest.mark.parametrize("message", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_messages_are_encoded_as_the_reference_does(message: pb.Message) -> None:
    data = compiled.encode(message)
    assert data == reference.encode(message)
    assert data


def test_a_subclass_of_a_message_is_encoded_as_the_reference_does() -> None:
    class Special(pb.PutRequest):
        pass

    assert compiled.encode(pb.RequestOp(request_put=Special(key=b"k"))) == b"\x12\x03\x0a\x01k"


# Writers.


def test_a_writer_encodes_fields_as_their_message_would_be() -> None:
    put = compiled.writers[pb.PutRequest](key=b"k", value=b"v", lease=-1, prev_kv=True)
    assert put == compiled.encode(pb.PutRequest(key=b"k", value=b"v", lease=-1, prev_kv=True))
    operation = compiled.writers[pb.RequestOp](request_put=put)
    compare = compiled.writers[pb.Compare](key=b"k", create_revision=0, range_end=b"l")
    assert compiled.decode(
        pb.TxnRequest, compiled.writers[pb.TxnRequest](compare=[compare], success=[operation, operation])
    ) == pb.TxnRequest(
        compare=[pb.Compare(key=b"k", create_revision=0, range_end=b"l")],
        success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v", lease=-1, prev_kv=True))] * 2,
    )
    watch = compiled.writers[pb.WatchCreateRequest](filters=[1, 0])
    assert watch == b"\x2a\x02\x01\x00"
    assert compiled.writers[pb.AuthUserListResponse](users=["", "ü"]) == b"\x12\x00\x12\x02\xc3\xbc"


# Results.


RESULTS: list[tuple[pb.Message, Result]] = [
    (HEADER, Header(1, 2, 7, 3)),
    (KV, KeyValue(b"k", b"v", 4, 6, 2, 9)),
    (pb.PutResponse(header=HEADER, prev_kv=KV), PutResult(Header(1, 2, 7, 3), KeyValue(b"k", b"v", 4, 6, 2, 9))),
    (pb.PutResponse(), PutResult(Header())),
    (
        pb.RangeResponse(header=HEADER, kvs=[KV, pb.KeyValue(key=b"l")], more=True, count=5),
        RangeResult(Header(1, 2, 7, 3), (KeyValue(b"k", b"v", 4, 6, 2, 9), KeyValue(b"l")), more=True, count=5),
    ),
    (pb.RangeResponse(), RangeResult(Header())),
    (
        pb.RangeStreamResponse(range_response=pb.RangeResponse(kvs=[KV])),
        RangeChunk(RangeResult(Header(), (KeyValue(b"k", b"v", 4, 6, 2, 9),))),
    ),
    (pb.RangeStreamResponse(), RangeChunk()),
    (
        pb.DeleteRangeResponse(header=HEADER, deleted=1, prev_kvs=[KV]),
        DeleteResult(Header(1, 2, 7, 3), 1, (KeyValue(b"k", b"v", 4, 6, 2, 9),)),
    ),
    (pb.CompactionResponse(header=HEADER), CompactResult(Header(1, 2, 7, 3))),
    (
        pb.TxnResponse(
            header=HEADER,
            succeeded=True,
            responses=[
                pb.ResponseOp(response_put=pb.PutResponse(header=pb.ResponseHeader(revision=7))),
                pb.ResponseOp(response_range=pb.RangeResponse(kvs=[KV], count=1)),
                pb.ResponseOp(response_delete_range=pb.DeleteRangeResponse(deleted=2)),
                pb.ResponseOp(response_txn=pb.TxnResponse()),
                pb.ResponseOp(),
            ],
        ),
        TxnResult(
            True,
            Header(1, 2, 7, 3),
            (
                PutResult(Header(revision=7)),
                RangeResult(Header(), (KeyValue(b"k", b"v", 4, 6, 2, 9),), count=1),
                DeleteResult(Header(), 2),
                TxnResult(False, Header()),
                None,
            ),
        ),
    ),
    (
        pb.MemberListResponse(
            header=HEADER, members=[pb.Member(id=2**64 - 1, name="ü", peer_urls=["a", "b"]), pb.Member()]
        ),
        MemberListResult(Header(1, 2, 7, 3), (Member(2**64 - 1, "ü", ("a", "b")), Member())),
    ),
    (pb.MemberAddResponse(member=pb.Member(is_learner=True)), MemberAddResult(Header(), Member(is_learner=True))),
    (pb.MemberAddResponse(), MemberAddResult(Header(), Member())),
    (
        pb.StatusResponse(header=HEADER, version="3.7.0", errors=["a", "b"], db_size_quota=2**62),
        StatusResult(Header(1, 2, 7, 3), "3.7.0", errors=("a", "b"), db_size_quota=2**62),
    ),
    (
        pb.StatusResponse(downgrade_info=pb.DowngradeInfo(target_version="3.6.0")),
        StatusResult(Header(), downgrade_info=DowngradeInfo(target_version="3.6.0")),
    ),
    (pb.HashKvResponse(hash=2**32 - 1, compact_revision=-1), HashKVResult(Header(), 2**32 - 1, -1)),
    (pb.SnapshotResponse(blob=b"x" * 20_000, version="3.7.0"), SnapshotChunk(Header(), 0, b"x" * 20_000, "3.7.0")),
]


@pytest.mark.usefixtures("codec_backend")
@pytest.mark.parametrize(("message", "expected"), RESULTS, ids=lambda one: type(one).__name__)
def test_replies_are_decoded_into_results(message: pb.Message, expected: Result) -> None:
    for decode in (compiled.decode, collected):
        result = decode(type(expected), compiled.encode(message))
        assert result == expected
        assert hash(result) == hash(expected)
        assert type(result) is type(expected)


@pytest.mark.usefixtures("codec_backend")
@pytest.mark.parametrize(("message", "expected"), RESULTS, ids=lambda one: type(one).__name__)
def test_decoded_results_are_frozen(message: pb.Message, expected: Result) -> None:
    result: Any = compiled.decode(type(expected), compiled.encode(message))
    for part in (
        result,
        *getattr(result, "kvs", ()),
        *getattr(result, "responses", ()),
        getattr(result, "header", None),
    ):
        if part is None:
            continue
        field = next(iter(type(part).__dataclass_fields__))
        with pytest.raises(FrozenInstanceError):
            setattr(part, field, None)
        with pytest.raises(FrozenInstanceError):
            delattr(part, field)
        assert not hasattr(part, "__dict__")


# In steps: see also test_incremental.


@pytest.mark.usefixtures("codec_backend")
def test_steps_begin_by_waiting_for_the_first_byte() -> None:
    steps = compiled.steps_of(RangeResult)
    assert steps.send((b"\x20\x05\x12\x02\x0a", 0, 5, False)) == (2, 1)
    with pytest.raises(StopIteration) as end:
        steps.send((b"\x12\x02\x0a\x00", 0, 4, True))
    assert end.value.value == RangeResult(header=Header(), kvs=(KeyValue(key=b""),), count=5)
