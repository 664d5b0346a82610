"""The blocking classes for those of `etcd_aio.admin`.

Made by `python -m release.facade --write` from `etcd_aio.admin`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.admin.auth import Auth as Auth
    from etcd_aio.sync.admin.cluster import Cluster as Cluster
    from etcd_aio.sync.admin.maintenance import Maintenance as Maintenance
    from etcd_aio.sync.admin.snapshot import Snapshot as Snapshot
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
