"""Lease: a kept lease that lives as long as the block that holds it.

The loss of a lease cancels the task inside the block; `TaskCanceller` has the accounting. A loss that this task brings
about itself, by closing the client within the block, cancels nothing: it would cancel the close. Leaving the block
raises `LeaseLostError` all the same, since the lease could not be revoked.
"""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias
from weakref import ref

from etcd_aio.arguments import cancels_block
from etcd_aio.base.aio import TaskCanceller, wake
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.errors import ClientUsageError, LeaseLostError
from etcd_aio.lease.kept_lease import KeptLease

if TYPE_CHECKING:
    from etcd_aio.lease.keeper import LeaseKeeper

OnLost: TypeAlias = Literal["cancel", "signal"]
"""The effect of a loss on the task that holds the lease: `"cancel"` cancels it, `"signal"` leaves it alone."""

LeaseGuard: TypeAlias = Literal["thread"]
"""Other ways of renewing a lease than by the loop of its block: `"thread"` has a thread do it."""


class Lease(KeptLease):
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
    """

    __slots__ = ("_canceller", "_cancels", "_holder", "_leaving", "_requests")

    usage: ClassVar[str] = "the lease is not entered: write `async with client.lease(...) as lease:` (or `with`)"

    def __init__(
        self,
        keeper: "LeaseKeeper",
        ttl: int,
        on_lost: OnLost = "cancel",
        *,
        id: int | None = None,
        adopt: bool = False,
        timeout: Timeout = UNSET,
    ) -> None:
        super().__init__(keeper, ttl, id=id, adopt=adopt, timeout=timeout)
        self._cancels = cancels_block(on_lost)
        self._canceller: TaskCanceller | None = None
        self._holder: ref[asyncio.Task[object]] | None = None  # the task that entered
        self._requests = 0  # to cancel it, that were made before
        self._leaving: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise ClientUsageError("a lease can only be entered once: ask the client for another one")
        await self.begin()
        self._canceller = TaskCanceller(cancels=self._cancels)
        if (task := asyncio.current_task()) is not None:
            self._holder, self._requests = ref(task), task.cancelling()
        self._keeper.blocks[self._left] = None
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cancels = False  # the block is over
        try:
            await self.close(is_cancelled=isinstance(exc, asyncio.CancelledError))
        finally:
            self._keeper.blocks.pop(self._left, None)
            wake(self._leaving)
        if self.error is not None and self._canceller is not None:
            self._canceller.leave_with(self.error, exc)

    def feed(self) -> None:
        """Tell the watchdog that the program works; see `Client.lease`. Thread-safe.

        Raises:
            LeaseLostError: the lease is lost, for example since it was not fed in time.
            ClientUsageError: it has no watchdog, or is not entered, or has ended.
            ForkedError: this is a child of the process that holds it.
        """
        raise ClientUsageError("the lease has no watchdog: write client.lease(ttl, guard='thread', watchdog=seconds)")

    def _left(self) -> "asyncio.Future[None] | None":
        """See `OnClosing`."""
        task = None if self._holder is None else self._holder()
        if self._gone.is_set() or task is None or task is asyncio.current_task() or task.done():
            return None
        if task.cancelling() <= self._requests:
            return None
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().create_future()
        return self._leaving

    def _tell(self, error: LeaseLostError | None) -> None:
        if error is not None and self._cancels and self._canceller is not None:
            self._canceller.cancel()
        super()._tell(error)
