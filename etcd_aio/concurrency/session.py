"""Session: one lease for several things that live and die together. Go's clients call it the same.

Locks of a session have the same lease, so two of the same name would have the same key. Therefore the tasks of this
process wait for each other in a queue of the session, and one at a time stands in line at etcd.

The lease cannot be revoked when the outcome of a request is in doubt: the other things need it. Such a key is swept
instead: until the session ends, whatever a late copy of the request creates is deleted, except while this session uses
the key. A sweep compares the `create_revision` that it has seen, so it never deletes a later key.

A store that was restored from a backup has the keys that the session had then, and its lease. So when the store may be
another one, all keys that the session has used are looked for once, and swept in the same way. One task asks etcd which
keys the lease has, and deletes those whose names it knows: the lease may have keys of the application, too.
"""

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from etcd_aio import Key, Lease, op
from etcd_aio.base import (
    NEVER,
    SOON,
    Backoff,
    HandOver,
    NotAwaitable,
    Pauses,
    log_for,
    start_background_task,
    start_timer,
    wake,
    when_constructed,
)
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.election import Election
from etcd_aio.concurrency.held import OnLost
from etcd_aio.concurrency.lock import Lock
from etcd_aio.concurrency.rwlock import RWLock
from etcd_aio.concurrency.semaphore import Semaphore
from etcd_aio.errors import ClientUsageError, EtcdError, LeaseLostError
from etcd_aio.lease import KeptLease, Loan, OnLoss
from etcd_aio.types import KeyLike, ValueLike, shown_key

if TYPE_CHECKING:
    from etcd_aio.lease import LeasePool

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.locks")

_MOST_NAMES: Final = 10_000  # that a session keeps in mind, of those that it uses no more; the oldest are forgotten
_LONGEST_PAUSE: Final = 5.0  # seconds between two looks for keys in doubt, at most; half of the TTL if that is less

_NOT_ENTERED: Final = "the session is not entered: write `async with client.session(...) as session:`"


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

    Attributes:
        over: set once it lends its lease no more.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    def __init__(self, store: StoreCalls, pool: "LeasePool", *, ttl: int, on_lost: OnLost = "cancel") -> None:
        self._store = store
        self._pool = pool
        self._ttl = ttl
        self._kept = store.leases.kept(ttl, on_end=self._on_end, on_doubt=self._on_doubt)
        self._lease = Lease(self._kept, on_lost)
        self._is_entered = False
        self._is_orphan = False
        self._queues: dict[bytes, HandOver[None]] = {}  # of names in use: who waits for them
        self._loans: dict[_SessionLoan, None] = {}
        self._used: dict[bytes, None] = {}  # names whose keys were deleted, in the store of that time
        self._doubtful: dict[bytes, None] = {}  # names whose keys a late copy of a request may create
        self._suspect: dict[bytes, None] = {}  # names whose keys may be back, since the store may be another one
        self._sweeping: asyncio.Task[None] | None = None
        self._deleting = asyncio.Lock()  # held by a sweep
        self._more: asyncio.Future[None] | None = None  # awaited by the sweep between two looks
        self._error: LeaseLostError | None = None  # why it is over
        self._closing: LeaseLostError | None = None  # why it is about to be over: the client is being closed
        self.over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None  # of an orphan

    @when_constructed
    def __repr__(self) -> str:
        return f"<Session {self._lease!r}>"

    async def __aenter__(self) -> Self:
        await self._lease.__aenter__()
        self._is_entered = True
        self._pool.join(self)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._tell(LeaseLostError("the block of its session has ended"))
        await self._lease.__aexit__(exc_type, exc, traceback)

    def _on_end(self, error: LeaseLostError | None) -> None:
        self._tell(error or LeaseLostError("the lease of its session was revoked by this process"))

    def _on_doubt(self) -> None:
        self._suspect |= self._used
        for loan in tuple(self._loans):
            loan.doubt()
        self._sweep_soon()

    def _tell(self, error: LeaseLostError) -> None:
        """The session is over, for all that uses it; told before the lease is revoked, so before others may hold."""
        if self._error is not None:
            return
        self._error = error
        if self._timer is not None:
            self._timer.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._lend_no_more(error)
        self._pool.part(self)

    def close(self, error: LeaseLostError) -> None:
        """See `Closing.close`: tasks that hold locks of this session release them."""
        self._closing = error
        self._lend_no_more(error)

    def is_lent(self, closer: "asyncio.Task[object] | None") -> bool:
        """See `Closing.is_lent`."""
        return any(loan.holder is not closer for loan in self._loans)

    def _lend_no_more(self, error: LeaseLostError) -> None:
        self.over.set()
        for loan in tuple(self._loans):
            loan.tell(error)
        for queue in self._queues.values():
            while queue.give(None):
                pass

    def _check(self) -> None:
        error = self._error or self._closing
        if error is not None:
            raise error.with_traceback(None)  # of the task that was told before

    # State.

    @property
    def lease(self) -> Lease:
        """The lease, for keys of your own.

        Raises:
            ClientUsageError: the session is not entered.
        """
        if not self._is_entered:
            raise ClientUsageError(_NOT_ENTERED)
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
        return self._is_orphan

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, and return its id.

        The keys live until the TTL ends, or until another process adopts the lease. Within the block of the session,
        locks that are held stay held until shortly before the TTL ends, and those that wait do so until it ends.
        Leaving them or the session deletes nothing.

        Raises:
            ClientUsageError: the session is not entered.
        """
        id_ = self.lease.orphan()
        self._is_orphan = True
        if self._timer is None:
            late = LeaseLostError("its session was orphaned, and the TTL has ended since")
            self._timer = start_timer(self._lease.remaining, self._tell, late)
        return id_

    # What stands on it.

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
            self._store, self, name, ttl=self._ttl, timeout=timeout, value=value, on_lost=on_lost, reentrant=reentrant
        )

    def rwlock(self, name: KeyLike, *, value: ValueLike | None = None, on_lost: OnLost = "cancel") -> RWLock:
        """A read-write lock on the lease of this session; see `Client.rwlock`."""
        return RWLock(self._store, self, name, ttl=self._ttl, value=value, on_lost=on_lost)

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
            self._store, self, name, limit=limit, permits=permits, ttl=self._ttl, timeout=timeout, on_lost=on_lost
        )

    def election(self, name: KeyLike, *, on_lost: OnLost = "cancel") -> Election:
        """An election whose candidates stand on the lease of this session, one at a time; see `Client.election`."""
        return Election(self._store, self, name, ttl=self._ttl, on_lost=on_lost)

    # As the source of leases.

    async def borrow(self, ttl: int, key_prefix: bytes) -> Loan:
        """See `LeaseSource.borrow`: wait until no other task of this session uses the name."""
        id_ = self.id
        self._check()
        task = asyncio.current_task()
        if any(loan.key_prefix == key_prefix and loan.holder is task for loan in self._loans):
            text = f"this task uses {shown_key(key_prefix)[1:]} on this session already: one task, one key of each name"
            raise ClientUsageError(text)
        queue = self._queues.get(key_prefix)
        if queue is None:
            self._queues[key_prefix] = HandOver(lambda _: self._next(key_prefix))
        else:
            await queue.wait(NEVER, None)
        try:
            self._check()
            await self._stop_sweeping(key_prefix, id_)
            self._check()
        except BaseException:  # a cancellation too: the next in the queue has its turn
            self._next(key_prefix)
            raise
        loan = _SessionLoan(self, self._kept, key_prefix)
        self._loans[loan] = None
        return loan

    async def try_borrow(self, ttl: int, key_prefix: bytes) -> Loan | None:
        """See `LeaseSource.try_borrow`."""
        return None if key_prefix in self._queues else await self.borrow(ttl, key_prefix)

    async def adopt(self, id: int) -> Loan:
        """See `LeaseSource.adopt`; it is no lease of this session."""
        return await self._pool.adopt(id)

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """See `LeaseSource.run`."""
        return self._pool.run(work, name)

    def end(self, loan: "_SessionLoan", *, is_clean: bool) -> None:
        """An acquisition has ended: the next task may use the name."""
        if loan not in self._loans:
            return
        self._loans.pop(loan, None)
        self._pool.wake()
        if not is_clean:
            _remember(self._doubtful, loan.key_prefix)
        elif loan.is_doubtful:
            self._suspect[loan.key_prefix] = None
        _remember(self._used, loan.key_prefix)
        self._next(loan.key_prefix)

    def _next(self, key_prefix: bytes) -> None:
        if self.over.is_set():
            return  # all that wait were woken
        if self._queues[key_prefix].give(None):
            return
        del self._queues[key_prefix]
        if key_prefix in self._doubtful or key_prefix in self._suspect:
            self._sweep_soon()

    # Keys in doubt.

    async def _stop_sweeping(self, key_prefix: bytes, id_: int) -> None:
        """Before the key is used again: no deletion is under way, and what is there goes."""
        if key_prefix in self._doubtful or key_prefix in self._suspect:
            async with self._deleting:
                if await self.delete(key_prefix + f"{id_:x}".encode()):
                    self._suspect.pop(key_prefix, None)

    def _sweep_soon(self) -> None:
        if self.over.is_set() or self._is_orphan or self._lease.is_lost:
            return
        wake(self._more)
        if self._sweeping is None or self._sweeping.done():
            name = f"etcd_aio sweep of session 0x{self.id:x}"
            self._sweeping = start_background_task(self._sweep(), name=name)

    async def _sweep(self) -> None:
        looks = Pauses(Backoff(SOON.initial, 2.0, min(_LONGEST_PAUSE, self._ttl / 2), 0.2))
        while self._doubtful or self._suspect:
            self._more = asyncio.get_running_loop().create_future()
            try:
                async with self._deleting:
                    await self._sweep_once()
            except EtcdError:  # also of a user who may not see a key of the application on this lease
                pass
            done, _ = await asyncio.wait([self._more], timeout=looks.next())
            if done:
                looks.reset()

    async def _sweep_once(self) -> None:
        suspect = dict(self._suspect)
        attached = await self._store.leases.time_to_live(self._lease, keys=True)
        suffix = f"{self.id:x}".encode()
        for key in attached.keys:
            name = key[: -len(suffix)]
            is_known = name in self._doubtful or name in suspect
            if is_known and key.endswith(suffix) and name not in self._queues:
                await self.delete(key)
        for name in suspect:
            if name not in self._queues:
                self._suspect.pop(name, None)

    async def delete(self, key: bytes) -> bool:
        """Delete the key that is there now, until that is answered; a session that is over takes its keys along.

        Returns:
            Whether it is gone for sure.
        """
        pauses = Pauses(SOON)
        while self._error is None and not self._lease.is_lost:
            try:
                kv = await self._store.get(key, keys_only=True)
                if kv is None:
                    return True
                seen = Key(key).create_revision == kv.create_revision
                await self._store.do(op.txn(when=[seen], then=[op.delete(key)]), retry="always")
            except EtcdError as error:
                if not error.retryable:
                    text = "the key %r of a session cannot be deleted: %s"
                    log_for(logger, self._store).warning(text, key, error)
                    return False
                await pauses.wait()
        return False


def _remember(names: dict[bytes, None], name: bytes) -> None:
    """Make it the newest of the names."""
    names.pop(name, None)
    names[name] = None
    if len(names) > _MOST_NAMES:
        del names[next(iter(names))]


class _SessionLoan(Loan):
    """The session's lease for one acquisition."""

    __slots__ = ("_session", "key_prefix")

    def __init__(self, session: Session, kept: KeptLease, key_prefix: bytes) -> None:
        super().__init__(kept)
        self._session = session
        self.key_prefix = key_prefix
        self.holder = asyncio.current_task()  # which must not wait for itself

    @property
    def is_orphan(self) -> bool:
        """Whether its keys are to stay when the acquisition ends."""
        return self._session.is_orphan

    def on_loss(self, callback: OnLoss | None) -> None:
        """See `Loan.on_loss`."""
        if callback is None:
            self.holder = None
        super().on_loss(callback)

    def give_back(self) -> None:
        """See `Loan.give_back`."""
        self._session.end(self, is_clean=True)

    def abandon(self) -> None:
        """See `Loan.abandon`."""
        self._session.end(self, is_clean=True)

    async def discard(self) -> bool:
        """See `Loan.discard`: the session deletes the key, and sweeps it until it ends."""
        try:
            return await self._session.delete(self.key_prefix + f"{self.id:x}".encode())
        finally:
            self._session.end(self, is_clean=False)
