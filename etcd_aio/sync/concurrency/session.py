"""Session, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.session`: do not edit.
"""

from collections.abc import Callable
from typing import Self

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Losable
from etcd_aio.sync.concurrency.election import Election
from etcd_aio.sync.concurrency.lock import Lock
from etcd_aio.sync.concurrency.rwlock import RWLock
from etcd_aio.sync.concurrency.semaphore import Semaphore
from etcd_aio.sync.lease.lease import Lease


class Session(Losable):
    """A session: `with client.session(ttl=60) as session:`.

    Entering grants the lease, leaving revokes it, and with it goes everything that is attached to it. A lost session
    loses all its locks. Leaving it, or revoking its lease, loses the locks of other threads: the threads that hold one
    are told before the lease is revoked, and those that wait raise `LockLostError`. Closing the client loses them too,
    and gives other threads half a second to end and release them.

    A session has one lock, one reader, one request for permits or one candidate of each name at a time, since all would
    have the same key. Other threads of the session wait for it, and `try_acquire` returns False, also where etcd would
    let another reader or request in; for those, use `Client.rwlock` and `Client.semaphore`. A thread that acquires what
    it has on the session already would wait for itself.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    @property
    def lease(self) -> Lease:
        """The lease, for keys of your own.

        Raises:
            ClientUsageError: the session is not entered.
        """
        return self._wrap(self._aio.lease)

    @property
    def id(self) -> int:
        """The id of the lease.

        Raises:
            ClientUsageError: the session is not entered.
        """
        return self._aio.id

    @property
    def is_orphan(self) -> bool:
        """Whether `orphan` was called."""
        return self._aio.is_orphan

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, and return its id.

        The keys live until the TTL ends, or until another process adopts the lease. Within the block of the session,
        locks that are held stay held until shortly before the TTL ends, and those that wait do so until it ends.
        Leaving them or the session deletes nothing.

        Raises:
            ClientUsageError: the session is not entered.
        """
        return self._run(self._aio.orphan)

    def lock(
        self,
        name: KeyLike,
        *,
        value: ValueLike | None = None,
        timeout: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
        reentrant: bool = False,
    ) -> Lock:
        """A lock on the lease of this session; see `Client.lock`."""
        return self._made("lock", name, value=value, timeout=timeout, on_lost="signal", reentrant=reentrant)._telling(
            on_lost
        )

    def rwlock(
        self, name: KeyLike, *, value: ValueLike | None = None, on_lost: Callable[[EtcdError], object] | None = None
    ) -> RWLock:
        """A read-write lock on the lease of this session; see `Client.rwlock`."""
        return self._made("rwlock", name, value=value, on_lost="signal")._telling(on_lost)

    def semaphore(
        self,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        timeout: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
    ) -> Semaphore:
        """Permits on the lease of this session; see `Client.semaphore`."""
        return self._made("semaphore", name, limit=limit, permits=permits, timeout=timeout, on_lost="signal")._telling(
            on_lost
        )

    def election(self, name: KeyLike, *, on_lost: Callable[[EtcdError], object] | None = None) -> Election:
        """An election whose candidates stand on the lease of this session, one at a time; see `Client.election`."""
        return self._made("election", name, on_lost="signal")._telling(on_lost)
