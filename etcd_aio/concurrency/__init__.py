"""Locks and elections (layer 8): what several processes agree on by keys with leases. Imported at first use.

`place.py` is the pure state machine of a contender, `line.py` carries it out, `lease_pool.py` lends the leases, and
`held.py` cancels the block that holds when that is lost.
"""

from typing import TYPE_CHECKING

from etcd_aio.concurrency.election import Election as Election
from etcd_aio.concurrency.election import Leaders as Leaders
from etcd_aio.concurrency.leaders import Leader as Leader
from etcd_aio.concurrency.leadership import Leadership as Leadership
from etcd_aio.concurrency.lease_pool import LeasePool as LeasePool
from etcd_aio.concurrency.lock import Contender as Contender
from etcd_aio.concurrency.lock import Lock as Lock
from etcd_aio.concurrency.rwlock import ReadLock as ReadLock
from etcd_aio.concurrency.rwlock import RWLock as RWLock
from etcd_aio.concurrency.rwlock import WriteLock as WriteLock
from etcd_aio.concurrency.semaphore import Semaphore as Semaphore
from etcd_aio.concurrency.session import Session as Session
from etcd_aio.exports import public_names

if not TYPE_CHECKING:  # type checkers take the imports above
    __all__ = public_names(globals())
