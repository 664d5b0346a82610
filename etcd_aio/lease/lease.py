"""Lease: a lease that lives as long as the block that holds it.

Knows: the task that holds the lease, its cancellation and how it is taken back. Never knows: streams, members, when a
renewal is due.

Cancelling follows `asyncio.timeout`: the task that entered is cancelled, and on leaving that one request is taken back.
If none is left beyond those there were on entering, the cancellation was ours alone and becomes `LeaseLostError`; else
somebody else wants the task to end too, and it goes on as the `CancelledError` that it is. So leases, timeouts, task
groups and anyio's scopes nest in any order.

A loss that the holding task brings about itself, by closing the client within the block, cancels nothing: it would
cancel the close. Leaving the block raises `LeaseLostError` all the same, since the lease could not be revoked.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NoReturn, Self, TypeAlias, get_args

from anyio import CancelScope

from etcd_aio.call_options import UNSET, Timeout
from etcd_aio.deadline import time_left
from etcd_aio.errors import ClientUsageError, EtcdError, InvalidRequestError, LeaseLostError, LeaseNotFoundError
from etcd_aio.lease.calls import checked_id, checked_ttl
from etcd_aio.types import LeaseGrantResult, LeaseKeepAliveResult, LeaseRevokeResult, shown_lease

if TYPE_CHECKING:
    from etcd_aio.lease.calls import Leases
    from etcd_aio.lease.keeper import LeaseKeeper
    from etcd_aio.lease.schedule import ScheduledLease

OnLost: TypeAlias = Literal["cancel", "signal"]
"""What the loss of a lease does to the task that holds it: `"cancel"` cancels it, `"signal"` only tells it."""

_NOT_ENTERED: Final = "the lease is not entered: write `async with client.lease(...) as lease:`"
_REVOKE_SECONDS: Final = 2.0  # for leaving the block: etcd's default election timeout is half of it
_CANCELLED_SECONDS: Final = 0.5  # for leaving it by a cancellation: a program that is interrupted ends within a second


class Lease:
    """A lease that is kept alive: `async with client.lease(10) as lease:`.

    Entering grants it, leaving revokes it, and in between it is renewed by itself. It is lost if somebody revokes it,
    or if no renewal was acknowledged until its local deadline. That is the instant at which the request was sent that
    etcd has acknowledged last, plus the TTL, so it passes before etcd itself lets the lease expire.

    A lost lease cancels the task that entered (`on_lost="cancel"`), and leaving raises `LeaseLostError`. With
    `on_lost="signal"` the block goes on: it looks at `is_lost` or awaits `lost()`, and leaving raises `LeaseLostError`
    unless the block ends by an exception of its own. Where a framework enters and leaves in different tasks, `"signal"`
    is the one to use, since the task that entered is not the one at work.

    Closing the client loses its leases; etcd keeps them until their TTLs end. The tasks that hold them are cancelled,
    but not the one that closes: it goes on, and leaving the block raises `LeaseLostError` from a `ClientClosedError`.

    Attributes:
        ttl: the seconds it lasts after each renewal; before it is granted, those that were asked for.
    """

    def __init__(
        self,
        leases: "Leases",
        keeper: "LeaseKeeper",
        ttl: int,
        *,
        id: int | None = None,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> None:
        if on_lost not in get_args(OnLost):
            raise InvalidRequestError(
                f"on_lost must be one of {', '.join(map(repr, get_args(OnLost)))}; got {on_lost!r}"
            )
        self.ttl = checked_ttl(ttl)
        self._id = keeper.draw_id() if id is None else checked_id(id)
        self._is_own_id = id is None
        self._leases = leases
        self._keeper = keeper
        self._mode: OnLost = on_lost
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = 0.0
        self._scheduled: ScheduledLease | None = None
        self._gone = asyncio.Event()
        self._error: LeaseLostError | None = None
        self._is_overdue = False  # somebody was told that the deadline has passed
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._has_cancelled = False

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
            raise ClientUsageError("a lease is entered once: ask the client for another one")
        self._loop = asyncio.get_running_loop()
        began = self._keeper.clock.now()
        # In a task of its own: cut short by a cancellation of this one, it could still be carried out, after whatever
        # would be done to undo it.
        granting = self._keeper.run(
            self._keeper.grant(self._id, self.ttl, self._timeout, is_own_id=self._is_own_id),
            f"grant lease 0x{self._id:x}",
        )
        try:
            await asyncio.wait([granting])
            granted = granting.result()
        except (asyncio.CancelledError, EtcdError):
            self._keeper.run(self._undo(granting), f"undo lease 0x{self._id:x}")
            raise
        self.ttl = granted.ttl
        self._deadline = began + granted.ttl
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self._scheduled = self._keeper.hold(self._id, self.ttl, self._deadline, self._on_renewed, self._on_lost)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._gone.is_set() and self.is_lost:
            self._mode = "signal"  # the block is over: there is nothing to cancel
            self._expire()
        if self._error is None:
            if not self._gone.is_set():
                self._end()
                is_cancelled = isinstance(exc, asyncio.CancelledError)
                await self._revoke_shielded(_CANCELLED_SECONDS if is_cancelled else None)
            return
        is_ours = self._take_back()
        if exc is None or (is_ours and isinstance(exc, asyncio.CancelledError)):
            raise self._error
        exc.add_note(f"Meanwhile: {self._error.message}")

    if not TYPE_CHECKING:  # a type checker finds it, and says so

        def __await__(self) -> NoReturn:
            raise ClientUsageError(_NOT_ENTERED)

    # What the block may ask.

    @property
    def id(self) -> int:
        """The lease's id.

        Raises:
            ClientUsageError: it was not entered yet, so that there is no such lease. Calls that take a lease raise it
                before anything is sent.
        """
        if self._scheduled is None:
            raise ClientUsageError(_NOT_ENTERED)
        return self._id

    @property
    def remaining(self) -> float:
        """Seconds until the local deadline, which every acknowledged renewal moves on; 0 if it is gone."""
        if self._loop is None or self._is_overdue or self._gone.is_set():
            return 0.0
        return time_left(self._deadline, self._now(self._loop))

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost while it was held. Once True, it stays True.

        It is also True if the local deadline has passed and the event loop was too busy to say so, or the machine was
        suspended (on Linux; other systems may not count that time). By being asked then,
        the lease is lost for good, even if an answer has come that nobody has read yet: whoever is told may have acted
        on it. It may be asked in any thread.
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
            Why it was lost; None if it was revoked here, as on leaving the block.

        Cancelling it changes nothing.
        """
        await self._gone.wait()
        return self._error

    # What the block may do.

    async def keep_alive_once(self, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew the lease now, whenever it is due; see `client.leases.keep_alive_once`."""
        return await self._leases.keep_alive_once(self.id, timeout=timeout)

    async def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """End the lease before the block ends; nothing renews it any more, whatever becomes of the call.

        Raises:
            ClientUsageError: it was not entered yet.
            LeaseNotFoundError: it is gone already.
            EtcdError: as every call; the lease then ends by its TTL.
        """
        lease_id = self.id
        if not self._is_overdue:  # else its loss is on the way
            self._end()
        return await self._leases.revoke(lease_id, timeout=timeout)

    def _now(self, loop: asyncio.AbstractEventLoop) -> float:
        """The lease clock, in any thread."""
        awake = loop.time()
        return awake + self._keeper.clock.suspended()

    # What the keeper tells.

    def _on_renewed(self, ttl: int, deadline: float) -> None:
        self.ttl = ttl
        self._deadline = deadline

    def _on_lost(self, error: LeaseLostError) -> None:
        self._error = error
        self._gone.set()
        if self._mode == "cancel" and self._task is not None and self._task is not asyncio.current_task():
            self._has_cancelled = self._task.cancel()

    def _expire(self) -> None:
        if self._scheduled is not None:
            self._keeper.expire(self._scheduled)

    # Leaving.

    def _end(self) -> None:
        self._gone.set()
        if self._scheduled is not None:
            self._keeper.forget(self._scheduled)

    async def _revoke_shielded(self, longest: float | None) -> None:
        task = self._keeper.run(self._revoke_quietly(), f"revoke lease 0x{self._id:x}")
        # Scopes of anyio around this wait for it. A cancellation of asyncio's gets through, and the task goes on alone.
        with CancelScope(shield=True):
            await asyncio.wait([task], timeout=longest)

    async def _undo(self, granting: "asyncio.Task[LeaseGrantResult]") -> None:
        """Revoke what was granted, or may have been, to nobody."""
        try:
            await granting
        except EtcdError as error:
            if not (error.maybe_applied and self._is_own_id):
                return  # there is none, or it could be somebody else's
        await self._revoke_quietly()

    async def _revoke_quietly(self) -> None:
        try:
            await self._leases.revoke(self._id, timeout=_REVOKE_SECONDS)
        except LeaseNotFoundError:
            pass  # what was to be reached
        except EtcdError as error:
            text = f"lease 0x{self._id:x} could not be revoked and ends by its TTL of {self.ttl} s: {error}"
            self._keeper.leftovers.add(text)

    def _take_back(self) -> bool:
        """Take back our request to cancel, if there was one; True if it was the only one.

        It has reached the block already: no loss is told while the task that holds the lease runs, only while it waits.
        """
        task = asyncio.current_task()
        if not self._has_cancelled or task is None or task is not self._task:
            return False
        return task.uncancel() <= self._cancelling
