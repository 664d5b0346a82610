"""API (floor 6): what users call.

What belongs here: arguments, their checks, and results, one file for each group of calls. What never does: retries,
endpoints, connections; every call goes through the error handler's invoker.
"""

from etcd_aio.api.arguments import HasLeaseId, LeaseLike, ValueLike
from etcd_aio.api.auth import Auth
from etcd_aio.api.cluster import Cluster, MemberLike
from etcd_aio.api.compare import Compare, Key
from etcd_aio.api.enums import (
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
)
from etcd_aio.api.keeper import LeaseKeeper
from etcd_aio.api.keys import KeyLike, KeyRange, prefix_end
from etcd_aio.api.kv import KV
from etcd_aio.api.lease import Lease, OnLost
from etcd_aio.api.leases import Leases
from etcd_aio.api.maintenance import Maintenance
from etcd_aio.api.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.api.scan import Scan, ScanPages
from etcd_aio.api.snapshot import Snapshot
from etcd_aio.api.snapshot_file import OnProgress
from etcd_aio.api.txn import Txn
from etcd_aio.api.versions import Versions
from etcd_aio.api.watch import WatchCalls
from etcd_aio.api.watch_hub import WatchHub
from etcd_aio.api.watcher import WatchBatches, Watcher, WatchStatistics

__all__ = [
    "KV",
    "AlarmLike",
    "Auth",
    "Cluster",
    "Compare",
    "DeleteOp",
    "DowngradeAction",
    "DowngradeActionLike",
    "GetOp",
    "HasLeaseId",
    "Key",
    "KeyLike",
    "KeyRange",
    "Lease",
    "LeaseKeeper",
    "LeaseLike",
    "Leases",
    "Maintenance",
    "MemberLike",
    "OnCompaction",
    "OnCompactionLike",
    "OnLost",
    "OnProgress",
    "Op",
    "PermissionLike",
    "PutOp",
    "RangeOp",
    "Scan",
    "ScanPages",
    "Snapshot",
    "SortBy",
    "SortByLike",
    "SortOrder",
    "SortOrderLike",
    "Txn",
    "TxnOp",
    "ValueLike",
    "Versions",
    "WatchBatches",
    "WatchCalls",
    "WatchFilter",
    "WatchFilterLike",
    "WatchHub",
    "WatchStatistics",
    "Watcher",
    "prefix_end",
]
