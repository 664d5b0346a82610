"""Leases: granted, kept alive, revoked."""

from etcd_aio.lease.calls import Leases
from etcd_aio.lease.keeper import LeaseKeeper
from etcd_aio.lease.lease import Lease, OnLost

__all__ = [
    "Lease",
    "LeaseKeeper",
    "Leases",
    "OnLost",
]
