"""SessionLeases: lends the one lease of a session, to one task at a time for each name, and sweeps keys in doubt.

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
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from etcd_aio import Key, op
from etcd_aio.base import (
    NEVER,
    SOON,
    Backoff,
    HandOver,
    Pauses,
    as_etcd_error,
    current_user,
    log_for,
    start_background_task,
    start_timer,
    wake,
)
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.place import lease_key
from etcd_aio.errors import ClientUsageError, LeaseLostError
from etcd_aio.lease import Lease, Loan
from etcd_aio.types import shown_key

if TYPE_CHECKING:
    from etcd_aio.lease import LeasePool

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.locks")

NOT_ENTERED: Final = "the session is not entered: write `async with client.session(...) as session:` (or `with`)"

_MOST_NAMES: Final = 10_000  # that a session keeps in mind, of those that it uses no more; the oldest are forgotten
_LONGEST_PAUSE: Final = 5.0  # seconds between two looks for keys in doubt, at most; half of the TTL if that is less


class SessionLeases:
    """The `LeaseSource` of one session.

    Args:
        store: looks for keys and deletes them.
        pool: of the client; closing it loses the leases that are lent here, too.
        lease: the session's; an attribute, too.

    Attributes:
        id: of the lease; 0 before the session is entered.
        over: set once it is lent no more.
        is_orphan: whether the keys stay when the session ends.
    """

    def __init__(self, store: StoreCalls, pool: "LeasePool", lease: Lease) -> None:
        self._store = store
        self._pool = pool
        self.lease = lease
        lease.on_end, lease.on_doubt = self._on_end, self._on_doubt
        self.id = 0
        self._queues: dict[bytes, HandOver[None]] = {}  # of names in use: the tasks that wait for them
        self._loans: dict[_SessionLoan, None] = {}
        self._used: dict[bytes, None] = {}  # names whose keys were deleted, in the store of that time
        self._doubtful: dict[bytes, None] = {}  # names whose keys a late copy of a request may create
        self._suspect: dict[bytes, None] = {}  # names whose keys may be back, since the store may be another one
        self._sweeping: asyncio.Task[None] | None = None
        self._deleting = asyncio.Lock()  # held by a sweep
        self._more: asyncio.Future[None] | None = None  # awaited by the sweep between two looks
        self._error: LeaseLostError | None = None  # why it is over
        self.over = asyncio.Event()
        self.is_orphan = False
        self._timer: asyncio.TimerHandle | None = None  # of an orphan

    # The end.

    def end(self, error: LeaseLostError) -> None:
        """The session is over: tell all that use it, before the lease is revoked, so before others may hold."""
        if self._error is not None:
            return
        self._error = error
        self.over.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for loan in tuple(self._loans):
            loan.lose(error)
        for queue in self._queues.values():
            while queue.give(None):
                pass

    def _on_end(self, error: LeaseLostError | None) -> None:
        self.end(error or LeaseLostError("the lease of its session was revoked by this process"))

    def _on_doubt(self) -> None:
        self._suspect |= self._used
        for loan in tuple(self._loans):
            loan.doubt()
        self._sweep_soon()

    def orphan(self) -> None:
        """The lease is not renewed any more, and lent until its TTL ends; the keys stay."""
        self.is_orphan = True
        for loan in self._loans:
            loan.is_orphan = True
        if self._timer is None:
            late = LeaseLostError("its session was orphaned, and the TTL has ended since")
            self._timer = start_timer(self.lease.remaining, self.end, late)

    def _check(self) -> None:
        error = self._error or (self._pool.closing_error if self._pool.over.is_set() else None)
        if error is not None:
            raise error.with_traceback(None)  # of the task that was told before

    # Lending.

    async def borrow(self, ttl: int, key_prefix: bytes, *, waits: bool = True) -> Loan | None:
        """See `LeaseSource.borrow`: wait until no other task of this session uses the name."""
        if not self.id:
            raise ClientUsageError(NOT_ENTERED)
        self._check()
        queue = self._queues.get(key_prefix)
        if queue is not None and not waits:
            return None
        user = current_user()
        if any(loan.key_prefix == key_prefix and loan.holder is user for loan in self._loans):
            text = f"this task uses {shown_key(key_prefix)[1:]} on this session already: one task, one key of each name"
            raise ClientUsageError(text)
        if queue is None:
            self._queues[key_prefix] = HandOver(lambda _: self._next(key_prefix))
        else:
            await queue.wait(NEVER, None)
        try:
            self._check()
            await self._stop_sweeping(key_prefix)
            self._check()
        except BaseException:  # a cancellation too: the next in the queue has its turn
            self._next(key_prefix)
            raise
        loan = _SessionLoan(self, key_prefix)
        self._loans[loan] = None
        self._pool.lent(loan)
        return loan

    async def adopt(self, id: int) -> Loan:
        """See `LeaseSource.adopt`; it is no lease of this session."""
        return await self._pool.adopt(id)

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """See `LeaseSource.run`."""
        return self._pool.run(work, name)

    def returned(self, loan: "_SessionLoan", *, is_clean: bool) -> None:
        """An acquisition has ended: the next task may use the name."""
        if loan not in self._loans:
            return
        self._loans.pop(loan, None)
        self._pool.ended(loan)
        if not is_clean:
            _remember(self._doubtful, loan.key_prefix)
        elif loan.is_doubtful:
            self._suspect[loan.key_prefix] = None
        _remember(self._used, loan.key_prefix)
        self._next(loan.key_prefix)

    def _next(self, key_prefix: bytes) -> None:
        if self._error is not None:
            return  # all that wait were woken
        if self._queues[key_prefix].give(None):
            return
        del self._queues[key_prefix]
        if key_prefix in self._doubtful or key_prefix in self._suspect:
            self._sweep_soon()

    # Keys in doubt.

    async def _stop_sweeping(self, key_prefix: bytes) -> None:
        """Before the key is used again: no deletion is under way, and the key that is there is deleted."""
        if key_prefix in self._doubtful or key_prefix in self._suspect:
            async with self._deleting:
                if await self.delete(lease_key(key_prefix, self.id)):
                    self._suspect.pop(key_prefix, None)

    def _sweep_soon(self) -> None:
        if self.is_orphan or self.lease.remaining <= 0:
            return
        wake(self._more)
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = start_background_task(self._sweep(), name=f"etcd_aio sweep of session 0x{self.id:x}")

    async def _sweep(self) -> None:
        looks = Pauses(Backoff(SOON.initial, 2.0, min(_LONGEST_PAUSE, self.lease.ttl / 2), 0.2))
        while self._doubtful or self._suspect:
            self._more = asyncio.get_running_loop().create_future()
            with suppress(Exception):  # also of a user who may not see a key of the application on this lease
                async with self._deleting:
                    await self._sweep_once()
            done, _ = await asyncio.wait([self._more], timeout=looks.next())
            if done:
                looks.reset()

    async def _sweep_once(self) -> None:
        suspect = dict(self._suspect)
        attached = await self._store.leases.time_to_live(self.lease, keys=True)
        suffix = lease_key(b"", self.id)
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
        while self.lease.remaining > 0:
            try:
                kv = await self._store.get(key, keys_only=True)
                if kv is None:
                    return True
                seen = Key(key).create_revision == kv.create_revision
                await self._store.do(op.txn(when=[seen], then=[op.delete(key)]), retry="always")
            except Exception as raised:
                error = as_etcd_error(raised)
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
    """The session's lease for one acquisition, by the task that must not wait for itself."""

    __slots__ = ("_leases", "key_prefix")

    def __init__(self, leases: SessionLeases, key_prefix: bytes) -> None:
        super().__init__(leases.lease)
        self._leases = leases
        self.key_prefix = key_prefix
        self.is_orphan = leases.is_orphan

    def give_back(self) -> None:
        """See `Loan.give_back`."""
        self._leases.returned(self, is_clean=True)

    abandon = give_back  # the session goes on

    async def revoke(self) -> bool:
        """See `Loan.revoke`: the session deletes the key, and sweeps it until it ends."""
        try:
            return await self._leases.delete(lease_key(self.key_prefix, self.id))
        finally:
            self._leases.returned(self, is_clean=False)
