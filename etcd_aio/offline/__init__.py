"""Reading the files of etcd without a server: the status of snapshots and of databases."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.offline.status import read_snapshot_status as read_snapshot_status
    from etcd_aio.offline.status import snapshot_status as snapshot_status
    from etcd_aio.types import SnapshotStatus as SnapshotStatus
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
