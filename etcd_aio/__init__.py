"""etcd_aio: the asyncio-native client library for etcd v3.

    async with Client("http://m1:2379,http://m2:2379,http://m3:2379") as client:
        await client.put("greeting", "hello")
        kv = await client.get("greeting")

This door names everything public; `etcd_aio.errors` has the whole tree of exceptions, and `etcd_aio.testing` real
servers and faults for your own tests.
"""

import logging

from etcd_aio.api import (
    Compare,
    Key,
    KeyRange,
    Lease,
    Leases,
    OnCompaction,
    Op,
    Scan,
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
from etcd_aio.version import __version__

# A library that is not asked to log stays silent.
logging.getLogger("etcd_aio").addHandler(logging.NullHandler())

__all__ = [
    "Candidate",
    "Client",
    "ClientClosedError",
    "CompactResult",
    "Compare",
    "ConfigError",
    "ConnectionLostError",
    "ConnectivityState",
    "DeleteResult",
    "EndpointStatistics",
    "EtcdError",
    "EtcdTimeoutError",
    "Event",
    "EventType",
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
    "NoAvailableEndpointsError",
    "OnCompaction",
    "Op",
    "PutResult",
    "RangeResult",
    "RetryPolicy",
    "RetryThrottling",
    "Scan",
    "ServerError",
    "SortBy",
    "SortOrder",
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
