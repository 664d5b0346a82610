"""Decode targets: which result class a reply is decoded into.

The attributes of a result have the names of its message's fields.
"""

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Final

from etcd_aio import pb
from etcd_aio.codec.decodable import Decodable
from etcd_aio.codec.fields import Field, fields_of
from etcd_aio.dataclass import dataclass
from etcd_aio.types import (
    AuthenticateResult,
    AuthStatus,
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
    RoleListResult,
    SnapshotChunk,
    StatusResult,
    TxnResult,
    UserListResult,
    WatchReply,
)

SIZE: Final = "encoded_size"
"""The attribute of a result that is no field of its message: the size of the message."""


class Unwrapped:
    """Used instead of a result class: the message is only a oneof, and is decoded to its member."""


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
    pb.AuthStatusResponse: AuthStatus,
    pb.AuthenticateResponse: AuthenticateResult,
    pb.AuthUserListResponse: UserListResult,
    pb.AuthRoleListResponse: RoleListResult,
    pb.ResponseOp: Unwrapped,
    pb.Event: Event,
    pb.WatchResponse: WatchReply,
}
_MESSAGES: Final[Mapping[type[object], type[pb.Message]]] = {
    result: message for message, result in _RESULTS.items() if result is not Unwrapped
}


RESULT_ENUMS: Final[Mapping[object, Mapping[int, Enum]]] = {
    pb.EventEventType: {int(number): EventType[number.name or ""] for number in pb.EventEventType}
}
"""The enum members that results have instead of numbers. Unknown numbers are rejected."""


@dataclass(frozen=True, slots=True)
class DecodeTarget:
    """The class that a message is decoded into.

    Attributes:
        message_class: class of the encoded message.
        result_class: class of the result; None decodes to the message itself.
    """

    message_class: type[pb.Message]
    result_class: type[object] | None

    @property
    def name(self) -> str:
        """A unique name."""
        return self.message_class.__name__ + ("_result" if self.result_class else "")

    @property
    def fields(self) -> Mapping[int, Field]:
        """The fields of the message."""
        return fields_of(self.message_class)

    @property
    def has_size(self) -> bool:
        """Whether the result says how many bytes it was decoded from."""
        return SIZE in getattr(self.result_class, "__slots__", ())

    @property
    def is_endless(self) -> bool:
        """Whether a valid message may contain any number of items."""
        return _is_endless(self.message_class)

    def inner(self, field: Field) -> "DecodeTarget":
        """The target of a field that contains a message: messages contain messages, results contain results."""
        if field.message_class is None:
            raise TypeError(f"{self.name}.{field.name} contains no message")
        return DecodeTarget(field.message_class, None if self.result_class is None else _RESULTS[field.message_class])


def target_of(decodable: type[object]) -> DecodeTarget:
    """The target for a message class or a result class.

    Raises:
        TypeError: the class is neither.
    """
    if decodable in _MESSAGES:
        return DecodeTarget(_MESSAGES[decodable], decodable)
    if isinstance(decodable, type) and issubclass(decodable, pb.Message):
        return DecodeTarget(decodable, None)
    raise TypeError(f"{decodable.__name__} is neither a message nor a result of one")


def message_class_of(decodable: type[Decodable]) -> type[pb.Message]:
    """The message class that a result stands for; a message class is returned as it is."""
    return target_of(decodable).message_class


@functools.cache
def _is_endless(message_class: type[pb.Message]) -> bool:
    seen: set[type[pb.Message]] = set()
    ahead = [message_class]
    while ahead:
        current = ahead.pop()
        seen.add(current)
        for field in fields_of(current).values():
            if field.repeated:
                return True
            if field.message_class is not None and field.message_class not in seen:
                ahead.append(field.message_class)
    return False
