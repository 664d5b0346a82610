"""The blocking classes for those of `etcd_aio.lease`.

Made by `python -m release.facade --write` from `etcd_aio.lease`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.lease.calls import Leases as Leases
    from etcd_aio.sync.lease.lease import Lease as Lease
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
