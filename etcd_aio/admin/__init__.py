"""Administration: users and roles, members, maintenance."""

from etcd_aio.admin.auth import Auth
from etcd_aio.admin.cluster import Cluster
from etcd_aio.admin.maintenance import Maintenance
from etcd_aio.admin.snapshot import Snapshot
from etcd_aio.admin.versions import Versions

__all__ = [
    "Auth",
    "Cluster",
    "Maintenance",
    "Snapshot",
    "Versions",
]
