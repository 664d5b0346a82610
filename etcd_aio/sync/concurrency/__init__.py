"""The blocking classes for those of `etcd_aio.concurrency`.

Made by `python -m release.facade --write` from `etcd_aio.concurrency`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.concurrency.election import Election as Election
    from etcd_aio.sync.concurrency.election import Leaders as Leaders
    from etcd_aio.sync.concurrency.leadership import Leadership as Leadership
    from etcd_aio.sync.concurrency.lock import Lock as Lock
    from etcd_aio.sync.concurrency.rwlock import ReadLock as ReadLock
    from etcd_aio.sync.concurrency.rwlock import RWLock as RWLock
    from etcd_aio.sync.concurrency.rwlock import WriteLock as WriteLock
    from etcd_aio.sync.concurrency.semaphore import Semaphore as Semaphore
    from etcd_aio.sync.concurrency.session import Session as Session
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
