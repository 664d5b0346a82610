"""GuardedLease: a lease for a block that is renewed by a thread, also while the loop of the block is blocked."""

import asyncio
import time
from typing import TYPE_CHECKING, Self

from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.closing import CANCELLED_SECONDS, UNWIND_TIMEOUT
from etcd_aio.errors import ClientClosedError, ClientUsageError, EtcdError, LeaseLostError
from etcd_aio.lease.guard import Guard, GuardedState, GuardThread, LeaseRequest
from etcd_aio.lease.lease import Lease, OnLost
from etcd_aio.types import LeaseRevokeResult

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from etcd_aio.lease.keeper import LeaseKeeper


class GuardedLease(Lease):
    """A `Lease` that a thread renews; see `Client.lease`.

    The thread grants and revokes it, too, since a loop that is too busy would not be in time.
    """

    __slots__ = ("_begun", "_guard", "_state", "_thread", "_watchdog")

    def __init__(
        self,
        keeper: "LeaseKeeper",
        ttl: int,
        on_lost: OnLost,
        guard: Guard,
        watchdog: float | None,
        *,
        id: int | None = None,
        adopt: bool = False,
        timeout: Timeout = UNSET,
    ) -> None:
        super().__init__(keeper, ttl, on_lost, id=id, adopt=adopt, timeout=timeout)
        self._guard = guard
        self._watchdog = watchdog
        self._thread: GuardThread | None = None
        self._begun: GuardedState | None = None  # in the thread
        self._state: GuardedState | None = None  # here, too

    async def begin(self) -> Self:
        """See `KeptLease.begin`."""
        self._keeper.invoker.clock()  # raises if the client cannot be used here
        try:
            self._thread = await self._guard.enter(self)
            return await super().begin()
        except BaseException:  # a cancellation too
            self._leave()
            raise

    async def close(self, *, is_cancelled: bool = False) -> None:
        """See `KeptLease.close`."""
        from anyio import CancelScope

        try:
            await super().close(is_cancelled=is_cancelled)
        finally:
            self._leave()
        with CancelScope(shield=True):
            await self._guard.settled(CANCELLED_SECONDS if is_cancelled else UNWIND_TIMEOUT)

    async def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """See `KeptLease.revoke`."""
        try:
            return await super().revoke(timeout=timeout)
        finally:
            self._leave()

    def orphan(self) -> int:
        """See `KeptLease.orphan`."""
        lease_id = super().orphan()
        self._leave()
        return lease_id

    def feed(self) -> None:
        """See `Lease.feed`."""
        if self._watchdog is None:
            super().feed()
        if self._state is None or self._thread is None:
            raise ClientUsageError(self.usage)
        self._thread.check()
        if self.error is None and self._gone.is_set():
            raise ClientUsageError("the lease has ended: it cannot be fed any more")
        self._state.feed()

    @property
    def renewal_error(self) -> EtcdError | None:
        """See `KeptLease.renewal_error`."""
        if self._state is None or self._thread is None or self._gone.is_set():
            return None
        return self._thread.renewal_error(self._state)

    # For the thread, which calls these in the loop.

    def on_renewed(self, ttl: int, deadline: float) -> None:
        """Note a renewal."""
        if not self._gone.is_set():
            self._on_renewed(ttl, deadline)

    def on_lost(self, error: LeaseLostError) -> None:
        """Note the loss."""
        if self._state is not None and not self._gone.is_set():
            self._on_lost(self._state.lose(error))

    def on_close(self, error: ClientClosedError) -> None:
        """Note that the client is closed, so nothing renews it."""
        lost = LeaseLostError(f"lease 0x{self._id:x} is not kept alive any longer: {error.message}")
        lost.__cause__ = error
        self.on_lost(lost)

    # As of `KeptLease`, on the state that both threads know.

    @property
    def _has_begun(self) -> bool:
        return self._state is not None

    @property
    def _until(self) -> float:
        return self._deadline if self._state is None else self._state.until

    def _now(self, loop: asyncio.AbstractEventLoop) -> float:
        return super()._now(loop) if self._state is None else self._state.now()

    async def _obtain(self, loop: asyncio.AbstractEventLoop) -> None:
        suspended = self._keeper.clock.suspended
        state = GuardedState(self._watchdog, lambda: time.monotonic() + suspended())
        id_ = None if self._is_own_id else self._id
        if self._thread is not None:
            await self._thread.begin(state, self, LeaseRequest(self.ttl, id_, self._adopts, self._timeout))
        self._begun, self._id, self.ttl = state, state.id, state.ttl

    def _hold(self) -> None:
        self._state = self._begun

    def _forget(self) -> None:
        if self._begun is not None and self._thread is not None:
            self._thread.drop(self._begun)

    def _revocation(self, lease_id: int) -> "Coroutine[object, object, None]":
        # Sent now, not when the coroutine begins: the thread may be left before.
        revoking = None if self._thread is None else self._thread.revoke(lease_id)

        async def revoked() -> None:
            if revoking is not None:
                await asyncio.wait([revoking])

        return revoked()

    def _leave(self) -> None:
        self._forget()
        self._guard.leave(self)

    def _expire(self) -> None:
        if self._state is not None and not self._gone.is_set():
            error = self._state.look()
            if error is not None:
                self._on_lost(error)

    def _on_lost(self, error: LeaseLostError) -> None:
        super()._on_lost(error)
        self._leave()
