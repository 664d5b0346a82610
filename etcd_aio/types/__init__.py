"""Values that users pass and get."""

from typing import TypeAlias

from etcd_aio.arguments import KeyLike as KeyLike
from etcd_aio.arguments import LeaseLike as LeaseLike
from etcd_aio.arguments import ValueLike as ValueLike
from etcd_aio.types.auth import AuthenticateResult as AuthenticateResult
from etcd_aio.types.auth import AuthResult as AuthResult
from etcd_aio.types.auth import AuthStatus as AuthStatus
from etcd_aio.types.auth import KeyPermission as KeyPermission
from etcd_aio.types.auth import Permission as Permission
from etcd_aio.types.auth import Role as Role
from etcd_aio.types.auth import RoleListResult as RoleListResult
from etcd_aio.types.auth import User as User
from etcd_aio.types.auth import UserListResult as UserListResult
from etcd_aio.types.cluster import Member as Member
from etcd_aio.types.cluster import MemberAddResult as MemberAddResult
from etcd_aio.types.cluster import MemberListResult as MemberListResult
from etcd_aio.types.cluster import MemberPromoteResult as MemberPromoteResult
from etcd_aio.types.cluster import MemberRemoveResult as MemberRemoveResult
from etcd_aio.types.cluster import MemberUpdateResult as MemberUpdateResult
from etcd_aio.types.enums import AlarmLike as AlarmLike
from etcd_aio.types.enums import DowngradeAction as DowngradeAction
from etcd_aio.types.enums import DowngradeActionLike as DowngradeActionLike
from etcd_aio.types.enums import OnCompaction as OnCompaction
from etcd_aio.types.enums import OnCompactionLike as OnCompactionLike
from etcd_aio.types.enums import PermissionLike as PermissionLike
from etcd_aio.types.enums import SortBy as SortBy
from etcd_aio.types.enums import SortByLike as SortByLike
from etcd_aio.types.enums import SortOrder as SortOrder
from etcd_aio.types.enums import SortOrderLike as SortOrderLike
from etcd_aio.types.enums import WatchFilter as WatchFilter
from etcd_aio.types.enums import WatchFilterLike as WatchFilterLike
from etcd_aio.types.fast_frozen import fast_init as fast_init
from etcd_aio.types.fast_frozen import mutable_twin as mutable_twin
from etcd_aio.types.keys import NO_END as NO_END
from etcd_aio.types.keys import KeyRange as KeyRange
from etcd_aio.types.keys import prefix_end as prefix_end
from etcd_aio.types.keys import range_arguments as range_arguments
from etcd_aio.types.kv import CompactResult as CompactResult
from etcd_aio.types.kv import DeleteResult as DeleteResult
from etcd_aio.types.kv import Header as Header
from etcd_aio.types.kv import KeyValue as KeyValue
from etcd_aio.types.kv import Operation as Operation
from etcd_aio.types.kv import OpResult as OpResult
from etcd_aio.types.kv import PutResult as PutResult
from etcd_aio.types.kv import RangeChunk as RangeChunk
from etcd_aio.types.kv import RangeResult as RangeResult
from etcd_aio.types.kv import TxnResult as TxnResult
from etcd_aio.types.kv import shown_key as shown_key
from etcd_aio.types.kv import shown_keys as shown_keys
from etcd_aio.types.kv import shown_lease as shown_lease
from etcd_aio.types.kv import shown_text as shown_text
from etcd_aio.types.lease import LeaseGrantResult as LeaseGrantResult
from etcd_aio.types.lease import LeaseKeepAliveResult as LeaseKeepAliveResult
from etcd_aio.types.lease import LeaseListResult as LeaseListResult
from etcd_aio.types.lease import LeaseRevokeResult as LeaseRevokeResult
from etcd_aio.types.lease import LeaseStatus as LeaseStatus
from etcd_aio.types.lease import LeaseTimeToLiveResult as LeaseTimeToLiveResult
from etcd_aio.types.maintenance import ActiveAlarm as ActiveAlarm
from etcd_aio.types.maintenance import Alarm as Alarm
from etcd_aio.types.maintenance import AlarmResult as AlarmResult
from etcd_aio.types.maintenance import DefragmentResult as DefragmentResult
from etcd_aio.types.maintenance import DowngradeInfo as DowngradeInfo
from etcd_aio.types.maintenance import DowngradeResult as DowngradeResult
from etcd_aio.types.maintenance import EndpointVersions as EndpointVersions
from etcd_aio.types.maintenance import HashKVResult as HashKVResult
from etcd_aio.types.maintenance import HashResult as HashResult
from etcd_aio.types.maintenance import MoveLeaderResult as MoveLeaderResult
from etcd_aio.types.maintenance import SavedSnapshot as SavedSnapshot
from etcd_aio.types.maintenance import SnapshotChunk as SnapshotChunk
from etcd_aio.types.maintenance import StatusResult as StatusResult
from etcd_aio.types.maintenance import newest_leader as newest_leader
from etcd_aio.types.maintenance import version_tuple as version_tuple
from etcd_aio.types.replayed import ReplayedDeleteResult as ReplayedDeleteResult
from etcd_aio.types.replayed import ReplayedPutResult as ReplayedPutResult
from etcd_aio.types.replayed import ReplayedTxnResult as ReplayedTxnResult
from etcd_aio.types.replayed import result_within as result_within
from etcd_aio.types.statistics import ConnectivityState as ConnectivityState
from etcd_aio.types.statistics import EndpointStatistics as EndpointStatistics
from etcd_aio.types.statistics import Health as Health
from etcd_aio.types.statistics import StreamStatistics as StreamStatistics
from etcd_aio.types.watch import EarlyProgress as EarlyProgress
from etcd_aio.types.watch import Event as Event
from etcd_aio.types.watch import EventType as EventType
from etcd_aio.types.watch import ResyncEvent as ResyncEvent
from etcd_aio.types.watch import WatchBatch as WatchBatch
from etcd_aio.types.watch import WatchReply as WatchReply
from etcd_aio.types.watch import WatchView as WatchView

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
