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
from collections.abc import Coroutine
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from etcd_aio.base.aio import start_background_task, start_timer, start_timer_at, wake
from etcd_aio.base.pauses import SOON, Pauses
from etcd_aio.errors import (
    ClientClosedError,
    EtcdError,
    EtcdTimeoutError,
    LeaseLostError,
    NoAvailableEndpointsError,
)
from etcd_aio.lease.kept_lease import KeptLease
from etcd_aio.lease.pooled_lease import PooledLease

if TYPE_CHECKING:
    from etcd_aio.lease.keeper import LeaseKeeper

T = TypeVar("T")

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
_EARLY: Final = 0.001  # seconds: a timer may fire a little early


class Closing(Protocol):
    """A session that stands beside a pool."""

    def close(self, error: LeaseLostError) -> None:
        """Lend the lease no more, and tell the holders that it is lost, while its client still works."""
        ...

    def is_lent(self, closer: "asyncio.Task[object] | None") -> bool:
        """Whether a task other than the one that closes has not ended its acquisition yet."""
        ...


class LeasePool:
    """The leases of a client that are lent for one acquisition each: `client.leases.pool`. For recipes.

        lease = await client.leases.pool.borrow(10)
        lease.on_loss(self._on_loss)        put keys with `lease.id`
        ...
        lease.give_back()                   every key is deleted, and every request that attaches one was answered
        await lease.discard()               or not: it is revoked, and its keys are deleted

    Locks, elections and recipes of this library borrow here. `run` runs clean-up that may outlive the caller.

    Args:
        keeper: grants the leases, and keeps them alive.
        name: of the client, for lines in logs.

    Attributes:
        name: the same.
        over: set once it lends no lease any more, since the client is being closed.
    """

    def __init__(self, keeper: "LeaseKeeper", name: str = "") -> None:
        self._keeper = keeper
        self.name = name
        self._idle: dict[int, list[PooledLease]] = {}  # by the TTL asked for; the last one is lent first
        self._lent: dict[PooledLease, None] = {}
        self._sessions: dict[Closing, None] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.over = asyncio.Event()
        self._closer: asyncio.Task[object] | None = None
        self._closed_at = inf  # when closing waits no longer
        self._change: asyncio.Future[None] | None = None  # awaited while closing

    async def borrow(self, ttl: int, key_prefix: bytes = b"") -> PooledLease:
        """Lend an idle lease of this TTL, unless its renewal is overdue, or a new one.

        A grant that is refused by a member in trouble is repeated, for at most the TTL.

        Args:
            ttl: of the lease, in seconds.
            key_prefix: of the key, as of `LeaseSource.borrow`. It changes nothing here: the lease has no other holder.

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
                return self._lend(lease)
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + ttl
        pauses = Pauses(SOON)
        while True:
            if self.over.is_set():
                raise ClientClosedError
            lease = PooledLease(self, KeptLease(self._keeper, ttl))
            lease.holder = asyncio.current_task()
            self._lent[lease] = None  # from now on closing waits for it
            granting = start_background_task(lease.kept.begin(), name="etcd_aio lease of a lock")
            try:
                await _granted(granting)
            except asyncio.CancelledError:
                self.run(self._take_back_later(lease, granting), "lease of a lock")
                raise
            except EtcdError as error:
                self.forget(lease)
                wait = pauses.next()
                # With these two, the client has tried for as long as a call may take.
                is_final = isinstance(error, NoAvailableEndpointsError | EtcdTimeoutError) or not error.retryable
                if is_final or loop.time() + wait > give_up_at:
                    raise
                await asyncio.sleep(wait)
            else:
                return self._lend(lease)

    async def try_borrow(self, ttl: int, key_prefix: bytes = b"") -> PooledLease:
        """As `borrow`: there is a lease for each."""
        return await self.borrow(ttl)

    async def adopt(self, id: int) -> PooledLease:
        """See `LeaseSource.adopt`. The lease is revoked when it is given back."""
        if self.over.is_set():
            raise ClientClosedError
        lease = PooledLease(self, KeptLease(self._keeper, _ADOPTED_TTL, id=id, adopt=True), is_adopted=True)
        await lease.kept.begin()
        if self.over.is_set():
            lease.abandon()
            raise ClientClosedError
        return self._lend(lease)

    def _lend(self, lease: PooledLease) -> PooledLease:
        if self.over.is_set():
            self.take_back(lease)
            raise ClientClosedError
        lease.holder = asyncio.current_task()
        self._lent[lease] = None
        return lease

    async def _take_back_later(self, lease: PooledLease, granting: "asyncio.Task[KeptLease]") -> None:
        try:
            await _granted(granting)
        except EtcdError:
            self.forget(lease)
        else:
            self.take_back(lease)

    def take_back(self, lease: PooledLease) -> None:
        """Keep a clean lease for its next holder, or revoke it if there are enough."""
        self.forget(lease)
        if lease.was_told and not self.over.is_set():
            return  # the lease is gone; a pool that closes sets `was_told` of leases that exist, too
        idle = self._idle.setdefault(lease.wanted_ttl, [])
        if self.over.is_set() or len(idle) >= MAX_IDLE:
            self.run(lease.revoke(), "revocation of an idle lease")
            return
        loop = asyncio.get_running_loop()
        lease.idle_since = loop.time()
        idle.append(lease)
        if self._timer is None:
            self._timer = start_timer(IDLE_SECONDS, self._revoke_idle)

    def forget(self, lease: PooledLease) -> None:
        """A lease is lent no longer."""
        lease.holder = None
        self._lent.pop(lease, None)
        wake(self._change)

    def drop_idle(self, lease: PooledLease) -> bool:
        """See `Lender.drop_idle`."""
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

    def join(self, session: Closing) -> None:
        """Close this session together with the pool."""
        self._sessions[session] = None

    def part(self, session: Closing) -> None:
        """This session has ended."""
        self._sessions.pop(session, None)
        self.wake()

    def wake(self) -> None:
        """An acquisition has ended, which closing may wait for."""
        wake(self._change)

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
            self._closed_at = loop.time() + CLOSE_SECONDS
            self._close(asyncio.current_task())
        while self._tasks or self._is_lent():
            left = self._closed_at - loop.time()
            if left <= 0:
                return
            if self._change is None or self._change.done():
                self._change = loop.create_future()
            await asyncio.wait([self._change], timeout=left)

    def _is_lent(self) -> bool:
        """Whether a task other than the one that closes has not ended its acquisition yet."""
        closer = self._closer
        return any(lease.holder is not closer for lease in self._lent) or any(
            session.is_lent(closer) for session in self._sessions
        )

    def _close(self, closer: "asyncio.Task[object] | None") -> None:
        self._closer = closer
        if self._timer is not None:
            self._timer.cancel()
        for lease in [lease for idle in self._idle.values() for lease in idle]:
            self.run(lease.revoke(), "revocation of an idle lease")
        self._idle.clear()
        error = LeaseLostError("the client is being closed")
        error.__cause__ = ClientClosedError()
        for lease in tuple(self._lent):
            lease.tell(error)
        for session in tuple(self._sessions):
            session.close(error)


async def _granted(granting: "asyncio.Task[KeptLease]") -> None:
    """Wait until a lease is granted; cancelling the wait does not stop the grant."""
    await asyncio.wait([granting])
    if granting.cancelled():
        raise ClientClosedError
    granting.result()
