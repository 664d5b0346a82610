"""Lease: a kept lease that lives as long as the block that holds it.

The loss of a lease cancels the task inside the block; `TaskCanceller` has the accounting. A loss that this task brings
about itself, by closing the client within the block, cancels nothing: it would cancel the close. Leaving the block
raises `LeaseLostError` all the same, since the lease could not be revoked.
"""

import asyncio
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, TypeAlias

from etcd_aio.arguments import cancels_block
from etcd_aio.base.aio import TaskCanceller
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.not_awaitable import NotAwaitable
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import ClientUsageError, EtcdError, LeaseLostError
from etcd_aio.lease.kept_lease import KeptLease
from etcd_aio.types import LeaseKeepAliveResult, LeaseRevokeResult

OnLost: TypeAlias = Literal["cancel", "signal"]
"""The effect of a loss on the task that holds the lease: `"cancel"` cancels it, `"signal"` leaves it alone."""

_NOT_ENTERED: Final = "the lease is not entered: write `async with client.lease(...) as lease:`"


class Lease(NotAwaitable):
    """A lease that is kept alive: `async with client.lease(10) as lease:`.

    Entering grants it (with `adopt=True`, it renews one that exists), leaving revokes it, and in between it is renewed
    automatically. It is lost if another client revokes it, or if no renewal was acknowledged until its local deadline.
    That is the instant at which the last acknowledged request was sent, plus the TTL, so it passes before etcd itself
    lets the lease expire.

    A lost lease cancels the task that entered (`on_lost="cancel"`), and leaving raises `LeaseLostError`. With
    `on_lost="signal"` the block goes on: it looks at `is_lost` or awaits `lost()`, and leaving raises `LeaseLostError`
    unless the block ends by an exception of its own. Use `"signal"` where a framework enters and leaves in different
    tasks, since the task that entered is not the one at work.

    Closing the client loses its leases; etcd keeps them until their TTLs end. The tasks that hold them are cancelled,
    except for the task that closes: it goes on, and leaving the block raises `LeaseLostError` from a
    `ClientClosedError`.

    Args:
        kept: the lease, which has not begun; `Leases.kept` makes it. Its `on_end` is the block's from now on, which
            calls the one that it had.
        on_lost: `"cancel"` or `"signal"`.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    def __init__(self, kept: KeptLease, on_lost: OnLost = "cancel") -> None:
        self._kept = kept
        self._cancels = cancels_block(on_lost)
        self._canceller: TaskCanceller | None = None
        self._is_entered = False
        self._tell_holder = kept.on_end
        kept.on_end = self._on_end

    @when_constructed
    def __repr__(self) -> str:
        return f"<Lease {self._kept._shown()}>"

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ClientUsageError("a lease can only be entered once: ask the client for another one")
        self._is_entered = True
        await self._kept.begin()
        self._canceller = TaskCanceller(cancels=self._cancels)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cancels = False  # the block is over
        await self._kept.close(is_cancelled=isinstance(exc, asyncio.CancelledError))
        if self._kept.error is not None and self._canceller is not None:
            self._canceller.leave_with(self._kept.error, exc)

    def _on_end(self, error: LeaseLostError | None) -> None:
        if error is not None and self._cancels and self._canceller is not None:
            self._canceller.cancel()
        if self._tell_holder is not None:
            self._tell_holder(error)

    @property
    def _granted(self) -> KeptLease:
        if self._canceller is None:
            raise ClientUsageError(_NOT_ENTERED)
        return self._kept

    # State.

    @property
    def ttl(self) -> int:
        """The seconds it lasts after each renewal; before it is granted, the requested ones."""
        return self._kept.ttl

    @property
    def id(self) -> int:
        """The lease's id.

        Raises:
            ClientUsageError: the lease was not entered, so it does not exist yet. Calls that take a lease raise this
                before anything is sent.
        """
        return self._granted.id

    @property
    def remaining(self) -> float:
        """Seconds until the local deadline, which every acknowledged renewal extends; 0 if the lease is gone."""
        return self._kept.remaining

    @property
    def renewal_error(self) -> EtcdError | None:
        """Why the lease cannot be renewed at present; None if it can.

        A `NoAvailableEndpointsError`: no member is reached. A `PermissionDeniedError`: the server refuses to renew this
        lease, since the user may not write one of the keys that are attached to it (from etcd 3.5 on).
        """
        return self._kept.renewal_error

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost while it was held. Once True, it stays True.

        It is also True if the local deadline has passed while the event loop was blocked, or while the machine was
        suspended (on Linux; other systems may not count that time). Reading it then loses the lease for good, even if
        an acknowledgement lies unread in the socket, since the caller may have acted on the answer. Thread-safe.
        """
        return self._kept.is_lost

    async def lost(self) -> LeaseLostError | None:
        """Wait until the lease is gone.

        Returns:
            Why it was lost; None if this object revoked it, as on leaving the block.

        Cancelling the wait changes nothing.
        """
        return await self._kept.lost()

    # Calls.

    async def keep_alive_once(self, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew the lease now, before it is due; see `client.leases.keep_alive_once`."""
        return await self._granted.keep_alive_once(timeout=timeout)

    async def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """End the lease before the block ends. It is not renewed any more, even if the call fails.

        Raises:
            ClientUsageError: the lease was not entered yet.
            LeaseNotFoundError: the lease is gone already.
            EtcdError: as every call; the lease then ends by its TTL.
        """
        return await self._granted.revoke(timeout=timeout)

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, also on leaving the block. Returns its id.

        The lease and its keys last until the TTL ends, or for as long as another process renews it.

        Raises:
            ClientUsageError: the lease was not entered yet.
        """
        return self._granted.orphan()
