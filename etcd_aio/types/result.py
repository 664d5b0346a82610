"""The union of all results."""

from typing import TypeAlias

from etcd_aio.types.auth import AuthenticateResult, AuthStatus, RoleListResult, UserListResult
from etcd_aio.types.cluster import (
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
)
from etcd_aio.types.kv import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    PutResult,
    RangeChunk,
    RangeResult,
    TxnResult,
)
from etcd_aio.types.lease import (
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
)
from etcd_aio.types.maintenance import (
    DefragmentResult,
    DowngradeInfo,
    DowngradeResult,
    HashKVResult,
    HashResult,
    MoveLeaderResult,
    SnapshotChunk,
    StatusResult,
)
from etcd_aio.types.watch import Event, WatchReply

Result: TypeAlias = (
    AuthenticateResult
    | AuthStatus
    | CompactResult
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
    | RoleListResult
    | SnapshotChunk
    | StatusResult
    | TxnResult
    | UserListResult
    | WatchReply
)
"""The classes that a reply, or a part of one, can be decoded into."""
