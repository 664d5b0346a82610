"""Locks and elections: what several processes agree on by keys with leases. Imported at first use.

`place.py` is the pure state machine of a contender. `own_key.py` is a key under a borrowed lease, and `line.py` a
contender's, which waits for its turn. `held.py` cancels the block that holds when that is lost, and `holding.py` is
what locks, permits and leaderships say of it. Other recipes that hold something by a key with a lease use
`HoldOptions`, `OwnKey` and `Holding` too.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.concurrency.election import Election as Election
    from etcd_aio.concurrency.election import Leaders as Leaders
    from etcd_aio.concurrency.holding import Holding as Holding
    from etcd_aio.concurrency.leaders import Leader as Leader
    from etcd_aio.concurrency.leadership import Leadership as Leadership
    from etcd_aio.concurrency.lock import Contender as Contender
    from etcd_aio.concurrency.lock import Lock as Lock
    from etcd_aio.concurrency.options import HoldOptions as HoldOptions
    from etcd_aio.concurrency.own_key import OwnKey as OwnKey
    from etcd_aio.concurrency.rwlock import ReadLock as ReadLock
    from etcd_aio.concurrency.rwlock import RWLock as RWLock
    from etcd_aio.concurrency.rwlock import WriteLock as WriteLock
    from etcd_aio.concurrency.semaphore import Semaphore as Semaphore
    from etcd_aio.concurrency.session import Session as Session
    from etcd_aio.lease import OnLost as OnLost
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
