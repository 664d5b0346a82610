"""Values that users pass and get, with the checks that all calls share."""

from typing import TypeAlias

from etcd_aio.types.arguments import (
    MIN_INT64,
    KeyLike,
    LeaseLike,
    ValueLike,
    check_text,
    encode_key,
    flag,
    is_encodable,
    lease_id,
    to_bytes,
    whole_number,
)
from etcd_aio.types.auth import (
    AuthenticateResult,
    AuthResult,
    AuthStatus,
    KeyPermission,
    Permission,
    Role,
    RoleListResult,
    User,
    UserListResult,
)
from etcd_aio.types.cluster import (
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
)
from etcd_aio.types.enums import (
    AlarmLike,
    DowngradeAction,
    DowngradeActionLike,
    OnCompaction,
    OnCompactionLike,
    PermissionLike,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    WatchFilter,
    WatchFilterLike,
    parse_word,
)
from etcd_aio.types.fast_frozen import mutable_twin
from etcd_aio.types.host_port import split_host_port
from etcd_aio.types.keys import NO_END, KeyRange
from etcd_aio.types.kv import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    Operation,
    OpResult,
    PutResult,
    RangeChunk,
    RangeResult,
    TxnResult,
    shown_key,
    shown_keys,
    shown_lease,
    shown_text,
)
from etcd_aio.types.lease import (
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
)
from etcd_aio.types.maintenance import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    DefragmentResult,
    DowngradeInfo,
    DowngradeResult,
    EndpointVersions,
    HashKVResult,
    HashResult,
    MoveLeaderResult,
    SavedSnapshot,
    SnapshotChunk,
    StatusResult,
    newest_leader,
    version_tuple,
)
from etcd_aio.types.watch import Event, EventType, ResyncEvent, WatchBatch, WatchReply

Result: TypeAlias = (
    CompactResult
    | DefragmentResult
    | DeleteResult
    | DowngradeInfo
    | DowngradeResult
    | Event
    | HashKVResult
    | HashResult
    | Header
    | KeyValue
    | LeaseKeepAliveResult
    | LeaseListResult
    | LeaseRevokeResult
    | LeaseStatus
    | LeaseTimeToLiveResult
    | Member
    | MemberAddResult
    | MemberListResult
    | MemberPromoteResult
    | MemberRemoveResult
    | MemberUpdateResult
    | MoveLeaderResult
    | PutResult
    | RangeChunk
    | RangeResult
    | SnapshotChunk
    | StatusResult
    | TxnResult
    | WatchReply
)
"""The classes that a reply, or a part of one, can be decoded into."""

__all__ = [
    "MIN_INT64",
    "NO_END",
    "ActiveAlarm",
    "Alarm",
    "AlarmLike",
    "AlarmResult",
    "AuthResult",
    "AuthStatus",
    "AuthenticateResult",
    "CompactResult",
    "DefragmentResult",
    "DeleteResult",
    "DowngradeAction",
    "DowngradeActionLike",
    "DowngradeInfo",
    "DowngradeResult",
    "EndpointVersions",
    "Event",
    "EventType",
    "HashKVResult",
    "HashResult",
    "Header",
    "KeyLike",
    "KeyPermission",
    "KeyRange",
    "KeyValue",
    "LeaseGrantResult",
    "LeaseKeepAliveResult",
    "LeaseLike",
    "LeaseListResult",
    "LeaseRevokeResult",
    "LeaseStatus",
    "LeaseTimeToLiveResult",
    "Member",
    "MemberAddResult",
    "MemberListResult",
    "MemberPromoteResult",
    "MemberRemoveResult",
    "MemberUpdateResult",
    "MoveLeaderResult",
    "OnCompaction",
    "OnCompactionLike",
    "OpResult",
    "Operation",
    "Permission",
    "PermissionLike",
    "PutResult",
    "RangeChunk",
    "RangeResult",
    "Result",
    "ResyncEvent",
    "Role",
    "RoleListResult",
    "SavedSnapshot",
    "SnapshotChunk",
    "SortBy",
    "SortByLike",
    "SortOrder",
    "SortOrderLike",
    "StatusResult",
    "TxnResult",
    "User",
    "UserListResult",
    "ValueLike",
    "WatchBatch",
    "WatchFilter",
    "WatchFilterLike",
    "WatchReply",
    "check_text",
    "encode_key",
    "flag",
    "is_encodable",
    "lease_id",
    "mutable_twin",
    "newest_leader",
    "parse_word",
    "shown_key",
    "shown_keys",
    "shown_lease",
    "shown_text",
    "split_host_port",
    "to_bytes",
    "version_tuple",
    "whole_number",
]
