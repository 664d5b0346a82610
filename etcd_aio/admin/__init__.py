"""Administration: users and roles, members, maintenance."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.admin.auth import Auth as Auth
    from etcd_aio.admin.cluster import Cluster as Cluster
    from etcd_aio.admin.maintenance import Maintenance as Maintenance
    from etcd_aio.admin.snapshot import Snapshot as Snapshot
    from etcd_aio.admin.versions import Versions as Versions
    from etcd_aio.types import ActiveAlarm as ActiveAlarm
    from etcd_aio.types import Alarm as Alarm
    from etcd_aio.types import AlarmResult as AlarmResult
    from etcd_aio.types import AuthenticateResult as AuthenticateResult
    from etcd_aio.types import AuthResult as AuthResult
    from etcd_aio.types import AuthStatus as AuthStatus
    from etcd_aio.types import DefragmentResult as DefragmentResult
    from etcd_aio.types import DowngradeAction as DowngradeAction
    from etcd_aio.types import DowngradeInfo as DowngradeInfo
    from etcd_aio.types import DowngradeResult as DowngradeResult
    from etcd_aio.types import EndpointVersions as EndpointVersions
    from etcd_aio.types import HashKVResult as HashKVResult
    from etcd_aio.types import HashResult as HashResult
    from etcd_aio.types import HealthCheck as HealthCheck
    from etcd_aio.types import KeyPermission as KeyPermission
    from etcd_aio.types import Member as Member
    from etcd_aio.types import MemberAddResult as MemberAddResult
    from etcd_aio.types import MemberHealth as MemberHealth
    from etcd_aio.types import MemberListResult as MemberListResult
    from etcd_aio.types import MemberPromoteResult as MemberPromoteResult
    from etcd_aio.types import MemberRemoveResult as MemberRemoveResult
    from etcd_aio.types import MemberUpdateResult as MemberUpdateResult
    from etcd_aio.types import MoveLeaderResult as MoveLeaderResult
    from etcd_aio.types import Permission as Permission
    from etcd_aio.types import Role as Role
    from etcd_aio.types import RoleListResult as RoleListResult
    from etcd_aio.types import SavedSnapshot as SavedSnapshot
    from etcd_aio.types import StatusResult as StatusResult
    from etcd_aio.types import User as User
    from etcd_aio.types import UserListResult as UserListResult
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
