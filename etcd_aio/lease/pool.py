"""LeasePool: a lease of its own for each acquisition, from leases that wait for their next holder.

Why. Two acquisitions that share a lease share its fate, and two of the same name share a key. With a lease of its own,
an acquisition whose outcome is unknown is undone for certain: revoking the lease deletes its keys, and every copy of a
request that may still travel is refused by etcd from then on, since it attaches a key to that lease. A grant and a
revocation for each acquisition would cost as much as the acquisition, so leases are used again.

A lease goes back into the pool only if it is clean: every request that attached a key to it was answered, and the key
is deleted. Any other is revoked. That is true of one store: in one that was restored from a backup a lease may have the
keys of that time, and would keep them for as long as it is used. So when the store may be another one, idle leases are
revoked, and the others when they are given back. Idle leases are renewed like any other; after `IDLE_SECONDS` they are
revoked.
"""

import asyncio
import logging
from collections.abc import Coroutine
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

from etcd_aio.base.aio import start_background_task, start_timer, start_timer_at, wake
from etcd_aio.base.logs import log_of
from etcd_aio.base.pauses import SOON, Pauses
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.base.user import User, current_user
from etcd_aio.errors import (
    ClientClosedError,
    EtcdTimeoutError,
    LeaseLostError,
    LeaseNotFoundError,
    NoAvailableEndpointsError,
)
from etcd_aio.lease.kept_lease import KeptLease
from etcd_aio.lease.loans import Loan

if TYPE_CHECKING:
    from etcd_aio.lease.keeper import LeaseKeeper

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.locks")

MAX_IDLE: Final = 8
"""Idle leases of one TTL: more than most programs hold at once, and cheap to renew."""

IDLE_SECONDS: Final = 30.0
"""Seconds after which an idle lease is revoked."""

_LEFT: Final = 0.4
"""The part of its TTL that an idle lease must have left to be lent: less than what is left when it is renewed, and more
than the largest margin of a block, which would be lost at once."""

CLOSE_SECONDS: Final = 0.5
"""Seconds that closing waits for revocations; what is left ends by its TTL."""

_ADOPTED_TTL: Final = 1  # of no effect: an adopted lease has its own
_REVOKE_SECONDS: Final = 2.0  # for one attempt: twice etcd's default election timeout
_EARLY: Final = 0.001  # seconds: a timer may fire a little early


class PooledLease(Loan):
    """One lease of a pool. It is the loan of its present holder.

    Args:
        pool: the pool.
        kept: the lease, which has not begun.
        is_adopted: it was another client's, so it is revoked when its holder returns it.

    Attributes:
        wanted_ttl: the TTL that was asked for.
        idle_since: the instant of the loop's clock at which it was returned last.
    """

    __slots__ = ("_is_adopted", "_is_revoked", "_pool", "idle_since", "wanted_ttl")

    def __init__(self, pool: "LeasePool", kept: KeptLease, *, is_adopted: bool = False) -> None:
        super().__init__(kept)
        self._pool = pool
        self._is_adopted = is_adopted
        self._is_revoked = False
        self.wanted_ttl = kept.ttl
        self.idle_since = 0.0
        kept.on_end, kept.on_doubt = self._on_end, self.doubt

    def _on_end(self, error: LeaseLostError | None) -> None:
        self._pool.drop_idle(self)
        if error is not None:
            self.lose(error)

    def doubt(self) -> None:
        """See `Loan.doubt`. It may have keys that were deleted, so it is not lent again."""
        if self._pool.drop_idle(self):
            self._pool.run(self.revoke(), "revocation of an idle lease")
        super().doubt()

    def give_back(self) -> None:
        """See `Loan.give_back`."""
        self._callback = self._doubted = None
        if self._is_adopted or self.is_doubtful or self._pool.over.is_set():
            self._pool.run(self.revoke(), "revocation of a lease")
        elif self._error is not None:
            self._pool.ended(self)  # it is gone
        else:
            self._pool.returned(self)

    def abandon(self) -> None:
        """See `Loan.abandon`: it is not renewed any more, and not revoked."""
        self._callback = self._doubted = None
        self.kept.orphan()
        self._pool.ended(self)

    async def revoke(self) -> bool:
        """See `Loan.revoke`: with patience, until it is done or the TTL has passed.

        A lost lease is revoked too, with one attempt: a new leader may have given it another TTL.
        """
        self._callback = self._doubted = None
        try:
            return await self._revoke_patiently()
        finally:
            self._pool.ended(self)

    async def _revoke_patiently(self) -> bool:
        if self._is_revoked:
            return False
        self._is_revoked = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (0 if self.is_lost else self.ttl)
        pauses = Pauses(SOON)
        while True:
            try:
                await self.kept.revoke(timeout=_REVOKE_SECONDS)
            except LeaseNotFoundError:
                return True
            except Exception as raised:
                error, wait = as_etcd_error(raised), pauses.next()
                if not error.retryable or loop.time() + wait >= deadline:
                    text = "lease 0x%x of a lock could not be revoked; it expires after its TTL: %s"
                    log_of(logger, self._pool.name).warning(text, self.id, error)
                    return False
                await asyncio.sleep(wait)
            else:
                return True


class LeasePool:
    """The leases of a client that are lent for one acquisition each: `client.leases.pool`. For recipes.

        lease = await client.leases.pool.borrow(10)
        lease.on_loss(self._on_loss)        put keys with `lease.id`
        ...
        lease.give_back()                   every key is deleted, and every request that attaches one was answered
        await lease.revoke()                or not: its keys are deleted with it

    Locks, elections and recipes of this library borrow here. `run` runs clean-up that may outlive the caller.

    Args:
        keeper: grants the leases, and keeps them alive.
        name: of the client, for lines in logs; an attribute, too.

    Attributes:
        over: set once it lends no lease any more, since the client is being closed.
        closing_error: the error that holders get then.
    """

    def __init__(self, keeper: "LeaseKeeper", name: str = "") -> None:
        self._keeper = keeper
        self.name = name
        self._idle: dict[int, list[PooledLease]] = {}  # by the TTL asked for; the last one is lent first
        self._lent: dict[Loan, None] = {}  # of sessions too
        self._tasks: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.over = asyncio.Event()
        self.closing_error = LeaseLostError("the client is being closed")
        self.closing_error.__cause__ = ClientClosedError()
        self._closer: User | None = None
        self._closed_at = inf  # when closing waits no longer
        self._change: asyncio.Future[None] | None = None  # awaited while closing

    async def borrow(self, ttl: int, key_prefix: bytes = b"", *, waits: bool = True) -> Loan:
        """Borrow an idle lease of this TTL, unless its renewal is overdue, or a new one.

        A grant that is refused by a member in trouble is repeated, for at most the TTL.

        Args:
            ttl: of the lease, in seconds.
            key_prefix: as of `LeaseSource.borrow`, like `waits`: of no effect, since the lease has no other holder.
            waits: of no effect.

        Raises:
            ClientClosedError: the client is closed.
            InvalidRequestError, LeaseTTLTooLargeError, TypeError: the TTL is invalid.
            EtcdError: no lease was granted.

        Cancellation: a lease that is granted later becomes an idle one.
        """
        idle = self._idle.get(ttl, [])
        for lease in reversed(idle):
            if lease.remaining > lease.ttl * _LEFT and not self.over.is_set():
                idle.remove(lease)
                lease.holder = current_user()
                self.lent(lease)
                return lease
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + ttl
        pauses = Pauses(SOON)
        while True:
            lease = PooledLease(self, KeptLease(self._keeper, ttl))
            self.lent(lease)  # from now on closing waits for it
            granting = start_background_task(lease.kept.begin(), name="etcd_aio lease of a lock")
            try:
                await _granted(granting)
            except asyncio.CancelledError:
                self.run(self._take_back_later(lease, granting), "lease of a lock")
                raise
            except Exception as raised:
                self.ended(lease)
                error, wait = as_etcd_error(raised), pauses.next()
                # With these two, the client has tried for as long as a call may take.
                is_final = isinstance(error, NoAvailableEndpointsError | EtcdTimeoutError) or not error.retryable
                if is_final or loop.time() + wait > give_up_at:
                    raise
                await asyncio.sleep(wait)
            else:
                if self.over.is_set():
                    lease.give_back()
                    raise ClientClosedError
                return lease

    async def adopt(self, id: int) -> Loan:
        """See `LeaseSource.adopt`. The lease is revoked when it is returned."""
        lease = PooledLease(self, KeptLease(self._keeper, _ADOPTED_TTL, id=id, adopt=True), is_adopted=True)
        await lease.kept.begin()
        self.lent(lease)
        return lease

    async def _take_back_later(self, lease: PooledLease, granting: "asyncio.Task[KeptLease]") -> None:
        try:
            await _granted(granting)
        except Exception:  # of any kind: there is no lease to give back
            self.ended(lease)
        else:
            lease.give_back()

    # The other side of loans.

    def lent(self, loan: Loan) -> None:
        """A lease is borrowed: closing loses it, and waits for its end."""
        self._lent[loan] = None

    def ended(self, loan: Loan) -> None:
        """A lease is borrowed no longer."""
        loan.holder = None
        self._lent.pop(loan, None)
        wake(self._change)

    def returned(self, lease: PooledLease) -> None:
        """Keep a clean lease for its next holder, or revoke it if there are enough."""
        self.ended(lease)
        idle = self._idle.setdefault(lease.wanted_ttl, [])
        if len(idle) >= MAX_IDLE:
            self.run(lease.revoke(), "revocation of an idle lease")
            return
        loop = asyncio.get_running_loop()
        lease.idle_since, lease.was_idle = loop.time(), True
        idle.append(lease)
        if self._timer is None:
            self._timer = start_timer(IDLE_SECONDS, self._revoke_idle)

    def drop_idle(self, lease: PooledLease) -> bool:
        """Never lend this lease again. Returns whether it was idle."""
        idle = self._idle.get(lease.wanted_ttl, [])
        was_idle = lease in idle
        if was_idle:
            idle.remove(lease)
        return was_idle

    def _revoke_idle(self) -> None:
        """Revoke what was idle for too long, and come back for the next."""
        loop = asyncio.get_running_loop()
        due = loop.time() + _EARLY  # without this it would come back at once, and again, until the clock has moved
        self._timer = None
        oldest = inf
        for idle in self._idle.values():
            while idle and idle[0].idle_since + IDLE_SECONDS <= due:
                self.run(idle.pop(0).revoke(), "revocation of an idle lease")
            oldest = min([oldest, *(lease.idle_since for lease in idle)])
        if oldest < inf:
            self._timer = start_timer_at(oldest + IDLE_SECONDS, self._revoke_idle)

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """See `LeaseSource.run`."""
        task = start_background_task(work, name=f"etcd_aio {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        wake(self._change)

    async def aclose(self) -> None:
        """Lend no more leases, lose those that are lent, and revoke what can be revoked within `CLOSE_SECONDS`.

        The holders are told before the client is closed, so that their keys are deleted while it still works. The task
        that closes is not waited for: a lock that it holds ends with the TTL of its lease.

        Cancellation: the rest ends by its TTL.
        """
        loop = asyncio.get_running_loop()
        if not self.over.is_set():
            self.over.set()
            self._keeper.is_closing = True
            self._closed_at = loop.time() + CLOSE_SECONDS
            self._close(current_user())
        while self._tasks or self._is_lent():
            left = self._closed_at - loop.time()
            if left <= 0:
                return
            if self._change is None or self._change.done():
                self._change = loop.create_future()
            await asyncio.wait([self._change], timeout=left)

    def _is_lent(self) -> bool:
        """Whether a task other than the one that closes has not ended its acquisition yet."""
        return any(loan.holder is not self._closer for loan in self._lent)

    def _close(self, closer: User | None) -> None:
        self._closer = closer
        if self._timer is not None:
            self._timer.cancel()
        for lease in [lease for idle in self._idle.values() for lease in idle]:
            self.run(lease.revoke(), "revocation of an idle lease")
        self._idle.clear()
        for loan in tuple(self._lent):
            loan.lose(self.closing_error)


async def _granted(granting: "asyncio.Task[KeptLease]") -> None:
    """Wait until a lease is granted; cancelling the wait does not stop the grant."""
    await asyncio.wait([granting])
    if granting.cancelled():
        raise ClientClosedError
    granting.result()
