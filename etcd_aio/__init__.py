"""etcd_aio: the asyncio-native client library for etcd v3.

    async with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        await client.put("greeting", "hello")
        kv = await client.get("greeting")

All public names are here; `etcd_aio.errors` has every exception, and `etcd_aio.testing` has real servers and faults for
your own tests.
"""

import logging
from typing import TYPE_CHECKING

from etcd_aio._version import __version__ as __version__
from etcd_aio.admin import Auth as Auth
from etcd_aio.admin import Cluster as Cluster
from etcd_aio.admin import Maintenance as Maintenance
from etcd_aio.admin import Snapshot as Snapshot
from etcd_aio.balancer import Candidate as Candidate
from etcd_aio.base.call_options import UNSET as UNSET
from etcd_aio.base.call_options import RetryMode as RetryMode
from etcd_aio.base.call_options import Timeout as Timeout
from etcd_aio.base.key_space import KeySpace as KeySpace
from etcd_aio.calls import Writer as Writer
from etcd_aio.client import Client as Client
from etcd_aio.config import TLS as TLS
from etcd_aio.error_handler import RetryPolicy as RetryPolicy
from etcd_aio.error_handler import RetryThrottling as RetryThrottling
from etcd_aio.errors import CacheError as CacheError
from etcd_aio.errors import CacheRangeError as CacheRangeError
from etcd_aio.errors import CacheTimeoutError as CacheTimeoutError
from etcd_aio.errors import ClientClosedError as ClientClosedError
from etcd_aio.errors import ConfigError as ConfigError
from etcd_aio.errors import ConnectionLostError as ConnectionLostError
from etcd_aio.errors import DiscoveryError as DiscoveryError
from etcd_aio.errors import ElectionError as ElectionError
from etcd_aio.errors import EtcdError as EtcdError
from etcd_aio.errors import EtcdTimeoutError as EtcdTimeoutError
from etcd_aio.errors import InvalidRequestError as InvalidRequestError
from etcd_aio.errors import LeadershipLostError as LeadershipLostError
from etcd_aio.errors import LeaseExpiredError as LeaseExpiredError
from etcd_aio.errors import LeaseLostError as LeaseLostError
from etcd_aio.errors import LockError as LockError
from etcd_aio.errors import LockLostError as LockLostError
from etcd_aio.errors import LockTimeoutError as LockTimeoutError
from etcd_aio.errors import NoAvailableEndpointsError as NoAvailableEndpointsError
from etcd_aio.errors import NotHeldError as NotHeldError
from etcd_aio.errors import NotLeaderError as NotLeaderError
from etcd_aio.errors import OldClusterError as OldClusterError
from etcd_aio.errors import OutcomeUnknownError as OutcomeUnknownError
from etcd_aio.errors import ResultLostError as ResultLostError
from etcd_aio.errors import ServerError as ServerError
from etcd_aio.exports import public_names
from etcd_aio.kv import Compare as Compare
from etcd_aio.kv import Key as Key
from etcd_aio.kv import Op as Op
from etcd_aio.kv import Scan as Scan
from etcd_aio.kv import Txn as Txn
from etcd_aio.kv import op as op
from etcd_aio.lease import Lease as Lease
from etcd_aio.lease import Leases as Leases
from etcd_aio.store import Store as Store
from etcd_aio.types import ActiveAlarm as ActiveAlarm
from etcd_aio.types import Alarm as Alarm
from etcd_aio.types import AlarmResult as AlarmResult
from etcd_aio.types import AuthenticateResult as AuthenticateResult
from etcd_aio.types import AuthResult as AuthResult
from etcd_aio.types import AuthStatus as AuthStatus
from etcd_aio.types import CompactResult as CompactResult
from etcd_aio.types import ConnectivityState as ConnectivityState
from etcd_aio.types import DefragmentResult as DefragmentResult
from etcd_aio.types import DeleteResult as DeleteResult
from etcd_aio.types import DowngradeAction as DowngradeAction
from etcd_aio.types import DowngradeInfo as DowngradeInfo
from etcd_aio.types import DowngradeResult as DowngradeResult
from etcd_aio.types import EndpointStatistics as EndpointStatistics
from etcd_aio.types import EndpointVersions as EndpointVersions
from etcd_aio.types import Event as Event
from etcd_aio.types import EventType as EventType
from etcd_aio.types import HashKVResult as HashKVResult
from etcd_aio.types import HashResult as HashResult
from etcd_aio.types import Header as Header
from etcd_aio.types import KeyLike as KeyLike
from etcd_aio.types import KeyPermission as KeyPermission
from etcd_aio.types import KeyRange as KeyRange
from etcd_aio.types import KeyValue as KeyValue
from etcd_aio.types import LeaseGrantResult as LeaseGrantResult
from etcd_aio.types import LeaseKeepAliveResult as LeaseKeepAliveResult
from etcd_aio.types import LeaseLike as LeaseLike
from etcd_aio.types import LeaseListResult as LeaseListResult
from etcd_aio.types import LeaseRevokeResult as LeaseRevokeResult
from etcd_aio.types import LeaseStatus as LeaseStatus
from etcd_aio.types import LeaseTimeToLiveResult as LeaseTimeToLiveResult
from etcd_aio.types import Member as Member
from etcd_aio.types import MemberAddResult as MemberAddResult
from etcd_aio.types import MemberListResult as MemberListResult
from etcd_aio.types import MemberPromoteResult as MemberPromoteResult
from etcd_aio.types import MemberRemoveResult as MemberRemoveResult
from etcd_aio.types import MemberUpdateResult as MemberUpdateResult
from etcd_aio.types import MoveLeaderResult as MoveLeaderResult
from etcd_aio.types import OnCompaction as OnCompaction
from etcd_aio.types import Operation as Operation
from etcd_aio.types import Permission as Permission
from etcd_aio.types import PutResult as PutResult
from etcd_aio.types import RangeResult as RangeResult
from etcd_aio.types import Role as Role
from etcd_aio.types import RoleListResult as RoleListResult
from etcd_aio.types import SavedSnapshot as SavedSnapshot
from etcd_aio.types import SortBy as SortBy
from etcd_aio.types import SortOrder as SortOrder
from etcd_aio.types import StatusResult as StatusResult
from etcd_aio.types import StreamStatistics as StreamStatistics
from etcd_aio.types import TxnResult as TxnResult
from etcd_aio.types import User as User
from etcd_aio.types import UserListResult as UserListResult
from etcd_aio.types import ValueLike as ValueLike
from etcd_aio.types import WatchBatch as WatchBatch
from etcd_aio.types import WatchFilter as WatchFilter
from etcd_aio.watch import Watcher as Watcher
from etcd_aio.watch import WatchStatistics as WatchStatistics

# Without a logging configuration the library is silent.
logging.getLogger("etcd_aio").addHandler(logging.NullHandler())

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = [*public_names(globals()), "__version__", "op"]
