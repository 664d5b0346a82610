"""Administration: users and roles, members, maintenance."""

from etcd_aio.admin.auth import Auth as Auth
from etcd_aio.admin.cluster import Cluster as Cluster
from etcd_aio.admin.maintenance import Maintenance as Maintenance
from etcd_aio.admin.snapshot import Snapshot as Snapshot
from etcd_aio.admin.versions import Versions as Versions
