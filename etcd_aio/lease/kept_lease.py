"""KeptLease: a lease that is granted, kept alive, and told of when it ends; without a block or a task to cancel.

Its callbacks are called in the turn of the loop in which the lease ends, so a holder needs no task that waits for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias

from etcd_aio.arguments import flag
from etcd_aio.base.aio import Latch
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.closing import CANCELLED_SECONDS
from etcd_aio.base.deadline import deadline_after, time_left
from etcd_aio.base.not_awaitable import NotAwaitable
from etcd_aio.base.reprs import when_constructed
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EtcdError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseLostError,
    LeaseNotFoundError,
)
from etcd_aio.lease.arguments import checked_id, checked_ttl
from etcd_aio.types import LeaseGrantResult, LeaseKeepAliveResult, LeaseRevokeResult, shown_lease

if TYPE_CHECKING:
    from etcd_aio.lease.keepalive_schedule import ScheduledLease
    from etcd_aio.lease.keeper import LeaseKeeper

OnEnd: TypeAlias = Callable[[LeaseLostError | None], None]
"""Called once when a lease ends: with the error if it is lost, with None before this process revokes it."""

OnDoubt: TypeAlias = Callable[[], None]
"""Called when the store may be another one than before, which may lack the keys of the lease."""

_REVOKE_SECONDS: Final = 2.0  # on closing: twice etcd's default election timeout


class KeptLease(NotAwaitable):
    """A lease that is kept alive; see `Leases.kept`.

    It is lost as a `Lease` is: if another client revokes it, or if no renewal was acknowledged until its local
    deadline. A holder is told by `on_end`, looks at `is_lost`, or awaits `lost()`.

    Attributes:
        ttl: the seconds it lasts after each renewal; before it is granted, the requested ones.
        error: why it was lost; None if it is not.
        on_end: called when it ends; see `Leases.kept`. It may be replaced at any time.
        on_doubt: called when the store may be another one. It may be replaced at any time.
    """

    __slots__ = (
        "__weakref__",
        "_adopts",
        "_deadline",
        "_gone",
        "_id",
        "_is_closed",
        "_is_orphan",
        "_is_overdue",
        "_is_own_id",
        "_keeper",
        "_loop",
        "_scheduled",
        "_timeout",
        "error",
        "on_doubt",
        "on_end",
        "ttl",
    )

    usage: ClassVar[str] = "the lease has not begun: write `await kept.begin()`"

    def __init__(
        self,
        keeper: "LeaseKeeper",
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        timeout: Timeout = UNSET,
        on_end: OnEnd | None = None,
        on_doubt: OnDoubt | None = None,
    ) -> None:
        if flag(adopt, "adopt") and id is None:
            raise InvalidRequestError("adopt=True takes over a lease that exists: pass its id=")
        self.ttl = checked_ttl(ttl)
        self._id = keeper.draw_id() if id is None else checked_id(id)
        self._is_own_id = id is None
        self._adopts = adopt
        self._keeper = keeper
        self._timeout = timeout
        self.on_end = on_end
        self.on_doubt = on_doubt
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = 0.0
        self._scheduled: ScheduledLease | None = None
        self._gone = Latch()
        self.error: LeaseLostError | None = None
        self._is_closed = False
        self._is_orphan = False
        self._is_overdue = False  # a caller has seen that the deadline has passed

    @when_constructed
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown()}>"

    def _shown(self) -> str:
        if self.error is not None:
            state = "lost"
        elif self._gone.is_set():
            state = "ended"
        else:
            state = f"remaining={self.remaining:.1f}" if self._has_begun else "not granted"
        return f"{shown_lease(self._id)} ttl={self.ttl} {state}"

    async def begin(self) -> Self:
        """Grant the lease, or renew the adopted one, and keep it alive from now on. Returns this object.

        Raises:
            ClientUsageError: it was called before, or the lease is closed, or was closed while it began.
            LeaseNotFoundError: there is no such lease (only with `adopt=True`).
            EtcdError: the lease could not be granted or renewed.

        Cancellation: what was granted is revoked, in the background; an adopted lease is left alone.
        """
        if self._loop is not None or self._is_closed:
            raise ClientUsageError("a kept lease can only begin once: make another one")
        self._loop = asyncio.get_running_loop()
        with self._keeper.beginning():
            await self._obtain(self._loop)
            if self._is_closed or self._keeper.is_closing:
                if self._is_closed or not self._adopts:
                    self._keeper.end(self._revocation(self._id), f"revoke lease 0x{self._id:x}")
                raise (
                    ClientUsageError("the lease was closed while it began") if self._is_closed else ClientClosedError()
                )
        self._hold()
        self._keeper.doubts.add(self._doubt)  # of this lease alone: leases may have the same `on_doubt`
        self._keeper.tell("granted", self._id, self.ttl)
        return self

    async def close(self, *, is_cancelled: bool = False) -> None:
        """End the lease: revoke it, within 2 seconds, unless it is an orphan or gone already. It raises no `EtcdError`.

        If it cannot be revoked, a warning is logged and it ends by its TTL. If its deadline has passed, it is lost.
        A cancelled scope of anyio waits for this.

        Args:
            is_cancelled: the caller is cancelled, and waits for at most half a second.

        Cancellation: the revocation goes on in the background.
        """
        self._is_closed = True
        if self._gone.is_set():
            return
        if not self._has_begun:  # a `begin` that is under way ends with an error, and revokes it
            self._gone.set()
            self._tell(None)
            return
        if self.is_lost:
            self._expire()
        if self._is_orphan:
            self._gone.set()
        elif not self._gone.is_set():
            self._end()
            await self._revoke_shielded(CANCELLED_SECONDS if is_cancelled else None)

    # State.

    @property
    def id(self) -> int:
        """The lease's id.

        Raises:
            ClientUsageError: the lease has not begun, so it does not exist yet.
        """
        if not self._has_begun:
            raise ClientUsageError(self.usage)
        return self._id

    @property
    def remaining(self) -> float:
        """Seconds until the local deadline, which every acknowledged renewal extends; 0 if the lease is gone."""
        if self._loop is None or self._is_overdue or self._gone.is_set():
            return 0.0
        return time_left(self._until, self._now(self._loop))

    @property
    def renewal_error(self) -> EtcdError | None:
        """Why the lease cannot be renewed at present; None if it can.

        A `NoAvailableEndpointsError`: no member is reached. A `PermissionDeniedError`: the server refuses to renew this
        lease, since the user may not write one of the keys that are attached to it (from etcd 3.5 on).
        """
        return None if self._scheduled is None else self._keeper.renewal_error(self._scheduled)

    @property
    def is_held(self) -> bool:
        """Whether it is held now: granted, and neither lost nor ended. Thread-safe, and as exact as `is_lost`."""
        return self._has_begun and not self._is_orphan and not self._gone.is_set() and not self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost while it was held. Once True, it stays True.

        It is also True if the local deadline has passed while the event loop was blocked, or while the machine was
        suspended (on Linux; other systems may not count that time). Reading it then loses the lease for good, even if
        an acknowledgement lies unread in the socket, since the caller may have acted on the answer. Thread-safe.
        """
        if self.error is not None or self._is_overdue:
            return True
        loop = self._loop
        if loop is None or not self._has_begun or self._gone.is_set() or self._now(loop) < self._until:
            return False
        self._is_overdue = True
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._expire)
        return True

    async def lost(self, *, timeout: float | None = None) -> LeaseLostError | None:
        """Wait until the lease is gone. Returns why it was lost; None if this process has ended it.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was not gone in time.

        Cancelling the wait changes nothing.
        """
        if not await self._gone.wait(deadline_after(timeout, asyncio.get_running_loop().time())):
            if not self.is_lost:
                raise EtcdTimeoutError(f"lease {shown_lease(self._id)} was not lost in time")
            self._expire()  # by the clock: the loop was stopped, and the keeper's timer comes later
        return self.error

    # Calls.

    async def keep_alive_once(self, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew the lease now, before it is due; see `Leases.keep_alive_once`."""
        result, _ = await self._keeper.renew_once(self.id, timeout)
        return result

    async def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """End the lease before its block ends. It is not renewed any more, even if the call fails.

        Raises:
            ClientUsageError: the lease has not begun.
            LeaseNotFoundError: the lease is gone already.
            EtcdError: as every call; the lease then ends by its TTL.
        """
        lease_id = self.id
        if self._is_orphan or not self._is_overdue:  # otherwise the call of `_on_lost` is scheduled
            self._end()
        return await self._keeper.revoke(lease_id, timeout)

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, also on closing. Returns its id. `on_end` is not called.

        The lease and its keys last until the TTL ends, or for as long as another process renews it.

        Raises:
            ClientUsageError: the lease has not begun.
        """
        lease_id = self.id
        self._keep_no_more()
        self._is_orphan = True
        return lease_id

    @property
    def _until(self) -> float:
        """The instant of the lease clock at which the lease is lost, unless it is renewed before."""
        return self._deadline

    def _now(self, loop: asyncio.AbstractEventLoop) -> float:
        """The time of the lease clock, in any thread."""
        awake = loop.time()
        return awake + self._keeper.clock.suspended()

    # Callbacks of the keeper.

    def _on_renewed(self, ttl: int, deadline: float) -> None:
        self.ttl = ttl
        self._deadline = deadline
        self._keeper.tell("renewed", self._id, ttl)

    def _on_lost(self, error: LeaseLostError) -> None:
        self.error = error
        self._gone.set()
        self._keeper.doubts.remove(self._doubt)
        self._keeper.tell("lost", self._id, self.ttl, error)
        self._tell(error)

    def _expire(self) -> None:
        if self._scheduled is not None:
            self._keeper.expire(self._scheduled)

    # The renewals.

    @property
    def _has_begun(self) -> bool:
        return self._scheduled is not None

    def _hold(self) -> None:
        self._scheduled = self._keeper.hold(self._id, self.ttl, self._deadline, self._on_renewed, self._on_lost)

    def _forget(self) -> None:
        if self._scheduled is not None:
            self._keeper.forget(self._scheduled)

    # The beginning and the end.

    async def _obtain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Grant the lease, or renew the adopted one, until no renewal is due.

        A grant that took long, because no member answered, leaves little time until the local deadline, or none: which
        of its attempts was applied is not known, so the deadline counts from the first. A renewal settles that. It is
        awaited here, since the first requests of the holder may need more time than is left.
        """
        is_granted = self._adopts
        timeout = self._timeout
        ends = self._keeper.call_deadline(timeout)  # of all the calls
        while True:
            try:
                await (self._renew(timeout) if is_granted else self._grant(timeout))
                is_granted = True
            except LeaseNotFoundError:
                if self._adopts:
                    raise
                is_granted = False  # it has expired since
                if self._is_own_id:
                    self._id = self._keeper.draw_id()
            if is_granted and self._deadline - self._keeper.clock.now() >= self.ttl / 2:
                return
            timeout = time_left(ends, loop.time())

    async def _grant(self, timeout: Timeout) -> None:
        began = self._keeper.clock.now()
        # In a task of its own: if a cancellation cut it short, etcd could still carry it out after the revocation.
        granting = self._keeper.run(
            self._keeper.grant(self._id, self.ttl, timeout, is_own_id=self._is_own_id),
            f"grant lease 0x{self._id:x}",
            is_awaited=True,
        )
        try:
            await asyncio.wait([granting])
            self.ttl = granting.result().ttl
        except BaseException:  # a cancellation too
            self._keeper.end(self._undo(granting, self._id), f"undo lease 0x{self._id:x}")
            raise
        self._deadline = began + self.ttl

    async def _renew(self, timeout: Timeout) -> None:
        try:
            renewed, self._deadline = await self._keeper.renew_once(self._id, timeout)
        except LeaseNotFoundError:
            raise
        except BaseException:  # a cancellation too
            if not self._adopts:
                self._keeper.end(self._revocation(self._id), f"undo lease 0x{self._id:x}")
            raise
        self.ttl = renewed.ttl

    def _end(self) -> None:
        self._keep_no_more()
        self._gone.set()
        self._tell(None)

    def _tell(self, error: LeaseLostError | None) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(error)

    def _keep_no_more(self) -> None:
        if not self._is_orphan and not self._gone.is_set():
            self._keeper.tell("ended", self._id, self.ttl)
        self._keeper.doubts.remove(self._doubt)
        self._forget()

    def _doubt(self) -> None:
        if self.on_doubt is not None:
            self.on_doubt()

    async def _revoke_shielded(self, longest: float | None) -> None:
        task = self._keeper.end(self._revocation(self._id), f"revoke lease 0x{self._id:x}", is_awaited=True)
        from anyio import CancelScope  # with the first lease that is closed

        # Scopes of anyio wait for this. A cancellation by asyncio ends the wait, and the task goes on by itself.
        with CancelScope(shield=True):
            await asyncio.wait([task], timeout=longest)

    async def _undo(self, granting: "asyncio.Task[LeaseGrantResult]", lease_id: int) -> None:
        """Revoke a lease that was granted, or may have been, after the beginning was cancelled or has failed."""
        await asyncio.wait([granting])
        error = granting.exception()  # not raised here: it would get this traceback, and the caller has it too
        if isinstance(error, EtcdError) and not (error.maybe_applied and self._is_own_id):
            return  # there is none, or it could be another client's
        await self._revoke_quietly(lease_id)

    def _revocation(self, lease_id: int) -> Coroutine[object, object, None]:
        """The work of revoking a lease; it raises no `EtcdError`."""
        return self._revoke_quietly(lease_id)

    async def _revoke_quietly(self, lease_id: int) -> None:
        try:
            await self._keeper.revoke(lease_id, _REVOKE_SECONDS)
        except LeaseNotFoundError:
            pass  # the lease is gone, as intended
        except Exception as error:  # of any kind: the lease ends by its TTL, which is logged
            shown = as_etcd_error(error)
            text = f"lease 0x{lease_id:x} could not be revoked; it expires after its TTL of {self.ttl} s: {shown}"
            self._keeper.leftovers.add(text)
