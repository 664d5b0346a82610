"""Lease: a lease that lives as long as the block that holds it.

The loss of a lease cancels the task inside the block; `TaskCanceller` has the accounting. A loss that this task brings
about itself, by closing the client within the block, cancels nothing: it would cancel the close. Leaving the block
raises `LeaseLostError` all the same, since the lease could not be revoked.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, TypeAlias, get_args

from etcd_aio.arguments import flag
from etcd_aio.base.aio import Latch, TaskCanceller
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.base.not_awaitable import NotAwaitable
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import ClientUsageError, EtcdError, InvalidRequestError, LeaseLostError, LeaseNotFoundError
from etcd_aio.lease.calls import Leases, checked_id, checked_ttl
from etcd_aio.types import LeaseGrantResult, LeaseKeepAliveResult, LeaseRevokeResult, shown_lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from etcd_aio.lease.keepalive_schedule import ScheduledLease
    from etcd_aio.lease.keeper import LeaseKeeper

OnLost: TypeAlias = Literal["cancel", "signal"]
"""The effect of a loss on the task that holds the lease: `"cancel"` cancels it, `"signal"` leaves it alone."""

_NOT_ENTERED: Final = "the lease is not entered: write `async with client.lease(...) as lease:`"
_REVOKE_SECONDS: Final = 2.0  # on leaving the block: twice etcd's default election timeout
_CANCELLED_SECONDS: Final = 0.5  # on leaving it by a cancellation: an interrupted program ends within a second


class Lease(NotAwaitable):
    """A lease that is kept alive: `async with client.lease(10) as lease:`.

    Entering grants it (with `adopt=True`, it renews one that exists), leaving revokes it, and in between it is renewed
    automatically. It is lost if another client
    revokes it, or if no renewal was acknowledged until its local deadline. That is the instant at which the last
    acknowledged request was sent, plus the TTL, so it passes before etcd itself lets the lease expire.

    A lost lease cancels the task that entered (`on_lost="cancel"`), and leaving raises `LeaseLostError`. With
    `on_lost="signal"` the block goes on: it looks at `is_lost` or awaits `lost()`, and leaving raises `LeaseLostError`
    unless the block ends by an exception of its own. Use `"signal"` where a framework enters and leaves in different
    tasks, since the task that entered is not the one at work.

    Closing the client loses its leases; etcd keeps them until their TTLs end. The tasks that hold them are cancelled,
    except for the task that closes: it goes on, and leaving the block raises `LeaseLostError` from a
    `ClientClosedError`.

    Attributes:
        ttl: the seconds it lasts after each renewal; before it is granted, the requested ones.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    def __init__(
        self,
        leases: Leases,
        keeper: "LeaseKeeper",
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> None:
        if flag(adopt, "adopt") and id is None:
            raise InvalidRequestError("adopt=True takes over a lease that exists: pass its id=")
        if on_lost not in get_args(OnLost):
            raise InvalidRequestError(
                f"on_lost must be one of {', '.join(map(repr, get_args(OnLost)))}; got {on_lost!r}"
            )
        self.ttl = checked_ttl(ttl)
        self._id = keeper.draw_id() if id is None else checked_id(id)
        self._is_own_id = id is None
        self._adopts = adopt
        self._leases = leases
        self._keeper = keeper
        self._cancels = on_lost == "cancel"
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = 0.0
        self._scheduled: ScheduledLease | None = None
        self._gone = Latch()
        self._error: LeaseLostError | None = None
        self._is_orphan = False
        self._is_overdue = False  # a caller has seen that the deadline has passed
        self._canceller: TaskCanceller | None = None
        self._on_gone: Callable[[LeaseLostError | None], None] | None = (
            None  # of its session or pool; also before a revocation
        )
        self._on_doubt: Callable[[], None] | None = None  # the store may be another one; set before it is entered

    @when_constructed
    def __repr__(self) -> str:
        if self._error is not None:
            state = "lost"
        elif self._gone.is_set():
            state = "ended"
        else:
            state = "not granted" if self._scheduled is None else f"remaining={self.remaining:.1f}"
        return f"<Lease {shown_lease(self._id)} ttl={self.ttl} {state}>"

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise ClientUsageError("a lease can only be entered once: ask the client for another one")
        self._loop = asyncio.get_running_loop()
        await self._obtain(self._loop)
        self._canceller = TaskCanceller(cancels=self._cancels)
        self._scheduled = self._keeper.hold(self._id, self.ttl, self._deadline, self._on_renewed, self._on_lost)
        if self._on_doubt is not None:
            self._keeper.doubts.add(self._on_doubt)
        self._keeper.tell("granted", self._id, self.ttl)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._gone.is_set() and self.is_lost:
            self._cancels = False  # the block is over
            self._expire()
        if self._error is not None and self._canceller is not None:
            self._canceller.leave_with(self._error, exc)
        elif self._is_orphan:
            self._gone.set()
        elif not self._gone.is_set():
            self._end()
            is_cancelled = isinstance(exc, asyncio.CancelledError)
            await self._revoke_shielded(_CANCELLED_SECONDS if is_cancelled else None)

    # State.

    @property
    def id(self) -> int:
        """The lease's id.

        Raises:
            ClientUsageError: the lease was not entered, so it does not exist yet. Calls that take a lease raise this
                before anything is sent.
        """
        if self._scheduled is None:
            raise ClientUsageError(_NOT_ENTERED)
        return self._id

    @property
    def remaining(self) -> float:
        """Seconds until the local deadline, which every acknowledged renewal extends; 0 if the lease is gone."""
        if self._loop is None or self._is_overdue or self._gone.is_set():
            return 0.0
        return time_left(self._deadline, self._now(self._loop))

    @property
    def renewal_error(self) -> EtcdError | None:
        """Why the lease cannot be renewed at present; None if it can.

        A `NoAvailableEndpointsError`: no member is reached. A `PermissionDeniedError`: the server refuses to renew this
        lease, since the user may not write one of the keys that are attached to it (from etcd 3.5 on).
        """
        return None if self._scheduled is None else self._keeper.renewal_error(self._scheduled)

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost while it was held. Once True, it stays True.

        It is also True if the local deadline has passed while the event loop was blocked, or while the machine was
        suspended (on Linux; other systems may not count that time). Reading it then loses the lease for good, even if
        an acknowledgement lies unread in the socket, since the caller may have acted on the answer. Thread-safe.
        """
        if self._error is not None or self._is_overdue:
            return True
        loop = self._loop
        if loop is None or self._scheduled is None or self._gone.is_set() or self._now(loop) < self._deadline:
            return False
        self._is_overdue = True
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._expire)
        return True

    async def lost(self) -> LeaseLostError | None:
        """Wait until the lease is gone.

        Returns:
            Why it was lost; None if this object revoked it, as on leaving the block.

        Cancelling the wait changes nothing.
        """
        await self._gone.wait()
        return self._error

    # Calls.

    async def keep_alive_once(self, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew the lease now, before it is due; see `client.leases.keep_alive_once`."""
        return await self._leases.keep_alive_once(self.id, timeout=timeout)

    async def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """End the lease before the block ends. It is not renewed any more, even if the call fails.

        Raises:
            ClientUsageError: the lease was not entered yet.
            LeaseNotFoundError: the lease is gone already.
            EtcdError: as every call; the lease then ends by its TTL.
        """
        lease_id = self.id
        if not self._is_overdue:  # otherwise the call of `_on_lost` is scheduled
            self._end()
        return await self._leases.revoke(lease_id, timeout=timeout)

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, also on leaving the block. Returns its id.

        The lease and its keys last until the TTL ends, or for as long as another process renews it.

        Raises:
            ClientUsageError: the lease was not entered yet.
        """
        lease_id = self.id
        if not self._is_orphan and not self._gone.is_set():
            self._keeper.tell("ended", self._id, self.ttl)
        self._is_orphan = True
        self._doubt_no_more()
        if self._scheduled is not None:
            self._keeper.forget(self._scheduled)
        return lease_id

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
        self._error = error
        self._gone.set()
        self._doubt_no_more()
        self._keeper.tell("lost", self._id, self.ttl, error)
        if self._cancels and self._canceller is not None:
            self._canceller.cancel()
        if self._on_gone is not None:
            self._on_gone(error)

    def _expire(self) -> None:
        if self._scheduled is not None:
            self._keeper.expire(self._scheduled)

    # Entering and leaving.

    async def _obtain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Grant the lease, or renew the adopted one, until no renewal is due.

        A grant that took long, because no member answered, leaves little time until the local deadline, or none: which
        of its attempts was applied is not known, so the deadline counts from the first. A renewal settles that. It is
        awaited here, since the first requests of the block may need more time than is left.
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
        except (asyncio.CancelledError, EtcdError):
            self._keeper.end(self._undo(granting, self._id), f"undo lease 0x{self._id:x}")
            raise
        self._deadline = began + self.ttl

    async def _renew(self, timeout: Timeout) -> None:
        try:
            renewed, self._deadline = await self._keeper.renew_once(self._id, timeout)
        except LeaseNotFoundError:
            raise
        except (asyncio.CancelledError, EtcdError):
            if not self._adopts:
                self._keeper.end(self._revoke_quietly(self._id), f"undo lease 0x{self._id:x}")
            raise
        self.ttl = renewed.ttl

    def _end(self) -> None:
        if not self._is_orphan and not self._gone.is_set():
            self._keeper.tell("ended", self._id, self.ttl)
        self._gone.set()
        self._doubt_no_more()
        if self._scheduled is not None:
            self._keeper.forget(self._scheduled)
        if self._on_gone is not None:
            self._on_gone(None)

    def _doubt_no_more(self) -> None:
        if self._on_doubt is not None:
            self._keeper.doubts.remove(self._on_doubt)

    async def _revoke_shielded(self, longest: float | None) -> None:
        task = self._keeper.end(self._revoke_quietly(self._id), f"revoke lease 0x{self._id:x}", is_awaited=True)
        from anyio import CancelScope  # with the first lease that is left

        # Scopes of anyio wait for this. A cancellation by asyncio ends the wait, and the task goes on by itself.
        with CancelScope(shield=True):
            await asyncio.wait([task], timeout=longest)

    async def _undo(self, granting: "asyncio.Task[LeaseGrantResult]", lease_id: int) -> None:
        """Revoke a lease that was granted, or may have been, after entering was cancelled or failed."""
        await asyncio.wait([granting])
        error = granting.exception()  # not raised here: it would get this traceback, and the caller has it too
        if isinstance(error, EtcdError) and not (error.maybe_applied and self._is_own_id):
            return  # there is none, or it could be another client's
        await self._revoke_quietly(lease_id)

    async def _revoke_quietly(self, lease_id: int) -> None:
        try:
            await self._leases.revoke(lease_id, timeout=_REVOKE_SECONDS)
        except LeaseNotFoundError:
            pass  # the lease is gone, as intended
        except EtcdError as error:
            text = f"lease 0x{lease_id:x} could not be revoked; it expires after its TTL of {self.ttl} s: {error}"
            self._keeper.leftovers.add(text)
