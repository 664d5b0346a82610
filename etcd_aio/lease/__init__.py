"""Leases: granting them, keeping them alive, revoking them.

The calls are in `calls.py`; `kept_lease.py` is a lease that is kept alive, and `lease.py` the `async with` block around
one. `keepalive_schedule.py` is the pure state machine of when to renew, with the numbers of `patience.py`; `keeper.py`
runs its stream and background tasks, on the clock of `clock.py`. `guarded_lease.py` is a block whose lease a thread
renews, by `guard.py`. `pool.py` lends leases for one acquisition each, as
`loans.py` says; it is imported at its first use.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.lease.calls import Leases as Leases
    from etcd_aio.lease.guard import Guard as Guard
    from etcd_aio.lease.keeper import LeaseKeeper as LeaseKeeper
    from etcd_aio.lease.keeper import MakeGuardClient as MakeGuardClient
    from etcd_aio.lease.kept_lease import KeptLease as KeptLease
    from etcd_aio.lease.kept_lease import OnDoubt as OnDoubt
    from etcd_aio.lease.kept_lease import OnEnd as OnEnd
    from etcd_aio.lease.lease import Lease as Lease
    from etcd_aio.lease.lease import LeaseGuard as LeaseGuard
    from etcd_aio.lease.lease import OnLost as OnLost
    from etcd_aio.lease.loans import LeaseSource as LeaseSource
    from etcd_aio.lease.loans import Loan as Loan
    from etcd_aio.lease.loans import OnLoss as OnLoss
    from etcd_aio.lease.pool import LeasePool as LeasePool
    from etcd_aio.types import LeaseGrantResult as LeaseGrantResult
    from etcd_aio.types import LeaseKeepAliveResult as LeaseKeepAliveResult
    from etcd_aio.types import LeaseListResult as LeaseListResult
    from etcd_aio.types import LeaseRevokeResult as LeaseRevokeResult
    from etcd_aio.types import LeaseStatus as LeaseStatus
    from etcd_aio.types import LeaseTimeToLiveResult as LeaseTimeToLiveResult
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
