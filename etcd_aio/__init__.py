"""etcd_aio: the asyncio-native client library for etcd v3.

    async with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        await client.put("greeting", "hello")
        kv = await client.get("greeting")

This door names everything public; `etcd_aio.errors` has the whole tree of exceptions, and `etcd_aio.testing` real
servers and faults for your own tests.
"""

import logging

from etcd_aio.api import (
    Cluster,
    Compare,
    DowngradeAction,
    Key,
    KeyRange,
    Lease,
    Leases,
    Maintenance,
    OnCompaction,
    Op,
    Scan,
    Snapshot,
    SortBy,
    SortOrder,
    Txn,
    Watcher,
    WatchFilter,
    WatchStatistics,
    op,
)
from etcd_aio.balancer import Candidate, ConnectivityState, EndpointStatistics
from etcd_aio.client import Client
from etcd_aio.cluster_results import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    DefragmentResult,
    DowngradeInfo,
    DowngradeResult,
    HashKVResult,
    HashResult,
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
    MoveLeaderResult,
    SavedSnapshot,
    StatusResult,
)
from etcd_aio.error_handler import RetryPolicy, RetryThrottling, StreamStatistics
from etcd_aio.errors import (
    ClientClosedError,
    ConfigError,
    ConnectionLostError,
    EtcdError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseLostError,
    NoAvailableEndpointsError,
    ServerError,
)
from etcd_aio.events import Event, EventType, WatchBatch
from etcd_aio.results import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
    PutResult,
    RangeResult,
    TxnResult,
)
from etcd_aio.tls import TLS
from etcd_aio.version import __version__

# A library that is not asked to log stays silent.
logging.getLogger("etcd_aio").addHandler(logging.NullHandler())

__all__ = [
    "TLS",
    "ActiveAlarm",
    "Alarm",
    "AlarmResult",
    "Candidate",
    "Client",
    "ClientClosedError",
    "Cluster",
    "CompactResult",
    "Compare",
    "ConfigError",
    "ConnectionLostError",
    "ConnectivityState",
    "DefragmentResult",
    "DeleteResult",
    "DowngradeAction",
    "DowngradeInfo",
    "DowngradeResult",
    "EndpointStatistics",
    "EtcdError",
    "EtcdTimeoutError",
    "Event",
    "EventType",
    "HashKVResult",
    "HashResult",
    "Header",
    "InvalidRequestError",
    "Key",
    "KeyRange",
    "KeyValue",
    "Lease",
    "LeaseExpiredError",
    "LeaseGrantResult",
    "LeaseKeepAliveResult",
    "LeaseListResult",
    "LeaseLostError",
    "LeaseRevokeResult",
    "LeaseStatus",
    "LeaseTimeToLiveResult",
    "Leases",
    "Maintenance",
    "Member",
    "MemberAddResult",
    "MemberListResult",
    "MemberPromoteResult",
    "MemberRemoveResult",
    "MemberUpdateResult",
    "MoveLeaderResult",
    "NoAvailableEndpointsError",
    "OnCompaction",
    "Op",
    "PutResult",
    "RangeResult",
    "RetryPolicy",
    "RetryThrottling",
    "SavedSnapshot",
    "Scan",
    "ServerError",
    "Snapshot",
    "SortBy",
    "SortOrder",
    "StatusResult",
    "StreamStatistics",
    "Txn",
    "TxnResult",
    "WatchBatch",
    "WatchFilter",
    "WatchStatistics",
    "Watcher",
    "__version__",
    "op",
]
