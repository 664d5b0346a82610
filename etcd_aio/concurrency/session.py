"""Session: one lease for several things that live and die together. Go's clients call it the same."""

from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from etcd_aio import Lease
from etcd_aio.base import NotAwaitable, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.concurrency.election import Election
from etcd_aio.concurrency.lock import Lock
from etcd_aio.concurrency.rwlock import RWLock
from etcd_aio.concurrency.semaphore import Semaphore
from etcd_aio.concurrency.session_leases import NOT_ENTERED, SessionLeases
from etcd_aio.errors import ClientUsageError, LeaseLostError
from etcd_aio.lease import OnLost
from etcd_aio.types import KeyLike, ValueLike

if TYPE_CHECKING:
    from etcd_aio.lease import LeasePool


class Session(NotAwaitable):
    """A session: `async with client.session(ttl=60) as session:`.

    Entering grants the lease, leaving revokes it, and with it goes everything that is attached to it. A lost session
    loses all its locks; it cancels the block as `Lease` does. Leaving it, or revoking its lease, loses the locks
    of other tasks: the tasks that hold one are told before the lease is revoked, and those that wait raise
    `LockLostError`. Closing the client loses them too, and gives other tasks half a second to end and release them.

    A session has one lock, one reader, one request for permits or one candidate of each name at a time, since all
    would have the same key. Other tasks of the session wait for it, and `try_acquire` returns False, also where etcd
    would let another reader or request in; for those, use `Client.rwlock` and `Client.semaphore`. A task that
    acquires what it has on the session already would wait for itself: `ClientUsageError`.
    """

    usage: ClassVar[str] = NOT_ENTERED

    def __init__(self, store: StoreCalls, pool: "LeasePool", *, ttl: int, on_lost: OnLost = "cancel") -> None:
        check_store(store)
        self._store = store
        self._ttl = ttl
        self._lease = store.lease(ttl, on_lost=on_lost)
        self._leases = SessionLeases(store, pool, self._lease)

    @when_constructed
    def __repr__(self) -> str:
        return f"<Session {self._lease!r}>"

    async def __aenter__(self) -> Self:
        await self._lease.__aenter__()
        self._leases.id = self._lease.id
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leases.end(LeaseLostError("the block of its session has ended"))
        await self._lease.__aexit__(exc_type, exc, traceback)

    # State.

    @property
    def lease(self) -> Lease:
        """The lease, for keys of your own.

        Raises:
            ClientUsageError: the session is not entered.
        """
        if not self._leases.id:
            raise ClientUsageError(NOT_ENTERED)
        return self._lease

    @property
    def id(self) -> int:
        """The id of the lease.

        Raises:
            ClientUsageError: the session is not entered.
        """
        return self.lease.id

    @property
    def is_orphan(self) -> bool:
        """Whether `orphan` was called."""
        return self._leases.is_orphan

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, and return its id.

        The keys live until the TTL ends, or until another process adopts the lease. Within the block of the session,
        locks that are held stay held until shortly before the TTL ends, and those that wait do so until it ends.
        Leaving them or the session deletes nothing.

        Raises:
            ClientUsageError: the session is not entered.
        """
        id_ = self.lease.orphan()
        self._leases.orphan()
        return id_

    # Locks and elections on the lease.

    def lock(
        self,
        name: KeyLike,
        *,
        value: ValueLike | None = None,
        timeout: float | None = None,
        on_lost: OnLost = "cancel",
        reentrant: bool = False,
    ) -> Lock:
        """A lock on the lease of this session; see `Client.lock`."""
        return Lock(
            self._store,
            self._leases,
            name,
            ttl=self._ttl,
            timeout=timeout,
            value=value,
            on_lost=on_lost,
            reentrant=reentrant,
        )

    def rwlock(self, name: KeyLike, *, value: ValueLike | None = None, on_lost: OnLost = "cancel") -> RWLock:
        """A read-write lock on the lease of this session; see `Client.rwlock`."""
        return RWLock(self._store, self._leases, name, ttl=self._ttl, value=value, on_lost=on_lost)

    def semaphore(
        self,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        timeout: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> Semaphore:
        """Permits on the lease of this session; see `Client.semaphore`."""
        return Semaphore(
            self._store,
            self._leases,
            name,
            limit=limit,
            permits=permits,
            ttl=self._ttl,
            timeout=timeout,
            on_lost=on_lost,
        )

    def election(self, name: KeyLike, *, on_lost: OnLost = "cancel") -> Election:
        """An election whose candidates stand on the lease of this session, one at a time; see `Client.election`."""
        return Election(self._store, self._leases, name, ttl=self._ttl, on_lost=on_lost)
