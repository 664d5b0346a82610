"""Locks and elections: what several processes agree on by keys with leases. Imported at first use.

`place.py` is the pure state machine of a contender, `line.py` carries it out with a lease of `client.leases.pool`, and
`held.py` cancels the block that holds when that is lost. Other recipes that hold something by a key with a lease use
the parts too.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.concurrency.election import Election as Election
    from etcd_aio.concurrency.election import Leaders as Leaders
    from etcd_aio.concurrency.held import Held as Held
    from etcd_aio.concurrency.held import OnLost as OnLost
    from etcd_aio.concurrency.held import Subject as Subject
    from etcd_aio.concurrency.held import check_timeout as check_timeout
    from etcd_aio.concurrency.held import checked_margin as checked_margin
    from etcd_aio.concurrency.interruption import Interruption as Interruption
    from etcd_aio.concurrency.leaders import Leader as Leader
    from etcd_aio.concurrency.leadership import Leadership as Leadership
    from etcd_aio.concurrency.line import CANCELLED_SECONDS as CANCELLED_SECONDS
    from etcd_aio.concurrency.lock import Contender as Contender
    from etcd_aio.concurrency.lock import Lock as Lock
    from etcd_aio.concurrency.rwlock import ReadLock as ReadLock
    from etcd_aio.concurrency.rwlock import RWLock as RWLock
    from etcd_aio.concurrency.rwlock import WriteLock as WriteLock
    from etcd_aio.concurrency.semaphore import Semaphore as Semaphore
    from etcd_aio.concurrency.session import Session as Session
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
