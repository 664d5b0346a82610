"""Shapes: what a reply is decoded into, a message or the result that stands for it.

Knows: which result stands for which message; the attributes of a result are named like the fields of its message.
Never knows: any bytes.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from etcd_aio import pb
from etcd_aio.codec.fields import Field, fields_of
from etcd_aio.types import (
    CompactResult,
    DefragmentResult,
    DeleteResult,
    DowngradeInfo,
    DowngradeResult,
    Event,
    EventType,
    HashKVResult,
    HashResult,
    Header,
    KeyValue,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
    MoveLeaderResult,
    PutResult,
    RangeChunk,
    RangeResult,
    Result,
    SnapshotChunk,
    StatusResult,
    TxnResult,
    WatchReply,
)

Decodable = TypeVar("Decodable", bound=pb.Message | Result)


class OnlyMember:
    """In the place of a result: the message is nothing but a oneof, and its member stands for it."""


_RESULTS: Final[Mapping[type[pb.Message], type[object]]] = {
    pb.ResponseHeader: Header,
    pb.KeyValue: KeyValue,
    pb.PutResponse: PutResult,
    pb.RangeResponse: RangeResult,
    pb.RangeStreamResponse: RangeChunk,
    pb.DeleteRangeResponse: DeleteResult,
    pb.TxnResponse: TxnResult,
    pb.CompactionResponse: CompactResult,
    pb.LeaseRevokeResponse: LeaseRevokeResult,
    pb.LeaseKeepAliveResponse: LeaseKeepAliveResult,
    pb.LeaseTimeToLiveResponse: LeaseTimeToLiveResult,
    pb.LeaseStatus: LeaseStatus,
    pb.LeaseLeasesResponse: LeaseListResult,
    pb.Member: Member,
    pb.MemberListResponse: MemberListResult,
    pb.MemberAddResponse: MemberAddResult,
    pb.MemberRemoveResponse: MemberRemoveResult,
    pb.MemberUpdateResponse: MemberUpdateResult,
    pb.MemberPromoteResponse: MemberPromoteResult,
    pb.DowngradeInfo: DowngradeInfo,
    pb.StatusResponse: StatusResult,
    pb.DefragmentResponse: DefragmentResult,
    pb.HashResponse: HashResult,
    pb.HashKvResponse: HashKVResult,
    pb.MoveLeaderResponse: MoveLeaderResult,
    pb.DowngradeResponse: DowngradeResult,
    pb.SnapshotResponse: SnapshotChunk,
    pb.ResponseOp: OnlyMember,
    pb.Event: Event,
    pb.WatchResponse: WatchReply,
}
_MESSAGES: Final[Mapping[type[object], type[pb.Message]]] = {
    result: message for message, result in _RESULTS.items() if result is not OnlyMember
}


RESULT_ENUMS: Final[Mapping[object, Mapping[int, Enum]]] = {
    pb.EventEventType: {int(number): EventType[number.name or ""] for number in pb.EventEventType}
}
"""What stands in a result for the numbers of an enum. A number that is not here is refused: nobody could act on it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What to decode a message into.

    Attributes:
        message_class: what the bytes are.
        result_class: what becomes of them; None is the message itself.
    """

    message_class: type[pb.Message]
    result_class: type[object] | None

    @property
    def name(self) -> str:
        """A name for it that no other shape has."""
        return self.message_class.__name__ + ("_result" if self.result_class else "")

    @property
    def fields(self) -> Mapping[int, Field]:
        """The fields of the message."""
        return fields_of(self.message_class)

    @property
    def is_endless(self) -> bool:
        """Whether a sound message of this shape may hold any number of things."""
        return _is_endless(self.message_class)

    def inner(self, field: Field) -> "Shape":
        """The shape of a field that holds a message: a message holds messages, and a result results."""
        if field.message_class is None:
            raise TypeError(f"{self.name}.{field.name} holds no message")
        return Shape(field.message_class, None if self.result_class is None else _RESULTS[field.message_class])


def shape_of(decodable: type[object]) -> Shape:
    """What decoding into this class, a message's or a result's, takes.

    Raises:
        TypeError: it is neither.
    """
    if decodable in _MESSAGES:
        return Shape(_MESSAGES[decodable], decodable)
    if isinstance(decodable, type) and issubclass(decodable, pb.Message):
        return Shape(decodable, None)
    raise TypeError(f"{decodable.__name__} is no message and stands for none")


def message_class_of(decodable: type[Decodable]) -> type[pb.Message]:
    """The class of the message that travels for it: its own, if it is one."""
    return shape_of(decodable).message_class


@functools.cache
def _is_endless(message_class: type[pb.Message]) -> bool:
    seen: set[type[pb.Message]] = set()
    ahead = [message_class]
    while ahead:
        one = ahead.pop()
        seen.add(one)
        for field in fields_of(one).values():
            if field.repeated:
                return True
            if field.message_class is not None and field.message_class not in seen:
                ahead.append(field.message_class)
    return False


def header_of(message: pb.ResponseHeader | None) -> Header:
    """The header of a reply that was decoded as its message."""
    sent = message or pb.ResponseHeader()
    return Header(sent.cluster_id, sent.member_id, sent.revision, sent.raft_term)
