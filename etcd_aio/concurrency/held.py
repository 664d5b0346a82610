"""Held: a block that is cancelled when what it holds is lost. It is to a lock what `Lease` is to a lease.

Lost means, whichever comes first: the local deadline of the lease, less a margin; the lease revoked or missing; the own
key deleted, or put without its lease, while the lease lives, as by an operator.

The margin. The local deadline is the instant at which the last acknowledged renewal was sent, plus the TTL, so it
passes before etcd itself lets another in, if both clocks run at the same rate. The margin pays for clocks that do not,
for a busy event loop, and for the time that the block needs to end.

The own key of a lock is watched once the block has lasted for `WATCH_AFTER`, so short blocks do not pay for it; that of
a leader at once, since leaderships last. After a stop of the process the block may run before the timers do, so
`is_lost` looks at the clock itself, in any thread.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic

from etcd_aio import Compare, Event, Key, KeyValue
from etcd_aio.base import SOON, Backoff, Latch, Pauses, TaskCanceller, deadline_after, start_background_task
from etcd_aio.concurrency.options import E, HoldOptions
from etcd_aio.errors import EtcdTimeoutError, LeaseExpiredError, LeaseLostError, PermissionDeniedError
from etcd_aio.lease import Loan

if TYPE_CHECKING:
    from etcd_aio import Watcher

WATCH_AFTER: Final = 0.5
"""Seconds after which the own key of a held block is watched."""

_DENIED: Final = Backoff(initial=1.0, multiplier=2.0, maximum=60.0, jitter=0.2)  # rights change rarely
_SHORTEST_WAIT: Final = 0.001  # seconds: a timer may fire a little early


async def later_event(watcher: "Watcher", revision: int) -> Event:
    """The next event that is later than a revision.

    A watch of a member that is behind begins with what that member has still to apply. A lease that is used again gives
    the same key again, so the deletion of an earlier one may come first.
    """
    while True:
        event = await anext(watcher)
        if event.revision > revision:
            return event


class Held(Generic[E]):
    """Guards a block while its key is held. Create it in the task to cancel.

    Args:
        options: how it is held.
        loan: the lease that the key is attached to.
        key: the key.
        revision: its `create_revision`.
        watch_after: seconds after which the key is watched. Default: `WATCH_AFTER`.

    Attributes:
        error: why it was lost; None if it was not.
        is_over: the block has ended, so that nothing is held any more.
    """

    __slots__ = (
        "_canceller",
        "_cancels",
        "_gone",
        "_is_overdue",
        "_loan",
        "_loop",
        "_margin",
        "_store",
        "_subject",
        "_timer",
        "_watch_from",
        "_watching",
        "error",
        "is_over",
        "key",
        "revision",
    )

    def __init__(
        self, options: HoldOptions[E], loan: Loan, key: bytes, revision: int, *, watch_after: float | None = None
    ) -> None:
        self._store = options.store
        self._loan = loan
        self.key = key
        self.revision = revision
        self._margin = options.margin
        self._cancels = options.cancels
        self._subject = options.subject
        self._loop = loop = asyncio.get_running_loop()
        self._gone = Latch()
        self.is_over = False
        left = loan.remaining - options.margin
        self._is_overdue = left <= 0  # the time was up when a caller looked
        self.error: E | None = None
        self._watching: asyncio.Task[None] | None = None
        self._canceller = TaskCanceller()
        watch_after = WATCH_AFTER if watch_after is None else watch_after
        self._watch_from = loop.time() + watch_after
        self._timer = loop.call_later(min(watch_after, max(left, 0.0)), self._on_time)
        loan.on_loss(self._on_lease_lost)
        loan.on_doubt(self._on_doubt)

    # State.

    @property
    def ttl(self) -> int:
        """The TTL of the lease in seconds."""
        return self._loan.ttl

    @property
    def remaining(self) -> float:
        """Seconds until it is lost, unless a renewal is acknowledged before; 0 if it is gone. Thread-safe."""
        if self.is_over or self._is_overdue or self.error is not None:
            return 0.0
        return max(0.0, self._loan.remaining - self._margin)

    @property
    def is_late(self) -> bool:
        """Whether the time was already up when it began, or when a caller looked."""
        return self._is_overdue

    @property
    def is_lost(self) -> bool:
        """Whether it was lost while it was held. Once True, it stays True. Thread-safe.

        It looks at the clock, so it is right at once when the event loop, the process or the machine was stopped.
        """
        if self.error is not None or self._is_overdue:
            return True
        if self.is_over or not self._is_late():
            return False
        self._is_overdue = True
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._expire)
        return True

    def _is_late(self) -> bool:
        return self._loan.remaining <= self._margin  # 0 if the lease is lost

    async def lost(self, timeout: float | None = None) -> E | None:
        """Wait until it is lost, or left. Returns why it was lost; None if it was left.

        Raises:
            EtcdTimeoutError: it was neither within `timeout` seconds.
        """
        if not await self._gone.wait(deadline_after(timeout, self._loop.time())):
            if not self.is_lost:
                raise EtcdTimeoutError(f"{self._subject.what} was not lost in time")
            self._expire()  # by the clock: the loop was stopped, and its timer comes later
        return self.error

    def conditions(self) -> tuple[Compare, Compare]:
        """The conditions of etcd that it is held: the own key is there, with its lease."""
        own = Key(self.key)
        return own.create_revision == self.revision, own.lease == self._loan.id

    def is_own(self, kv: KeyValue | None) -> bool:
        """Whether the own key is this now, so that it is held. A put without the lease lets others in."""
        return kv is not None and kv.create_revision == self.revision and kv.lease == self._loan.id

    # Losing.

    def lose(self, reason: str, cause: BaseException | None = None) -> E:
        """Lose it, and end the block. Returns the error that leaving raises."""
        error = self._lose(reason, cause)
        if self._cancels and not self.is_over:
            # A task that finds the loss by a call of its own goes on with the error: it may catch that.
            self._loop.call_soon(self._canceller.cancel)
        return error

    def _lose(self, reason: str, cause: BaseException | None) -> E:
        if self.error is None and not self.is_over:
            self.error = error = self._subject.lost(f"{self._subject.what} is lost: {reason}")
            error.__cause__ = cause
            self._timer.cancel()
            if self._watching is not None and self._watching is not asyncio.current_task():
                self._watching.cancel()
            self._gone.set()
            if self._cancels:
                self._canceller.cancel()
        return self.error or self._subject.lost(f"the block of {self._subject.what} has ended")

    def loss(self) -> E:
        """The error of the loss, once `is_lost` is True."""
        if self.error is None:
            self._expire()
        return self.lose("")

    def _on_lease_lost(self, error: LeaseLostError) -> None:
        self._lose(error.message, error)  # a task that loses it by closing the client is not cut short

    def _expire(self) -> None:
        lease = f"lease 0x{self._loan.id:x}"
        if self._loan.remaining > 0:
            text = f"no renewal of its {lease} was acknowledged, and it expires in {self._margin:g} s or less"
            self.lose(text, self._loan.renewal_error)
        else:
            self.lose(f"its {lease} has expired", LeaseExpiredError())

    def _on_time(self) -> None:
        if self._is_overdue or self._is_late():
            self._expire()
            return
        until_watched = self._watch_from - self._loop.time()
        wait = self.remaining
        if self._watching is None:
            if until_watched <= 0:
                self._begin_watching()
            else:
                wait = min(wait, until_watched)
        self._timer = self._loop.call_later(max(wait, _SHORTEST_WAIT), self._on_time)

    def _on_doubt(self) -> None:
        """The store may be another one, which lacks the key: look again, without the watch of the store before."""
        if self._watching is not None and not self.is_over and self.error is None:
            self._watching.cancel()
            self._begin_watching()

    def _begin_watching(self) -> None:
        watching = self._watch_key()
        self._watching = start_background_task(watching, name=f"etcd_aio key of {self._subject.what}")

    async def _watch_key(self) -> None:
        """Lose it when its key is deleted: watch from now, then look, so that no deletion falls in between."""
        pauses = Pauses(SOON)
        while True:
            try:
                async with self._store.watch(self.key, timeout=None) as watcher:
                    kv = await self._store.get(self.key)
                    while self.is_own(kv):
                        pauses.reset()
                        event = await later_event(watcher, self.revision)
                        kv = event.kv if event.is_put else None
            except Exception as error:  # if denied, the lease alone decides, until the user may read the key again
                pauses.backoff = _DENIED if isinstance(error, PermissionDeniedError) else SOON
                await pauses.wait()
            else:
                how = "it was deleted" if kv is None else "it was put by another client"
                self.lose(f"its key is gone: {how}, or its lease 0x{self._loan.id:x} was revoked")
                return

    # Leaving.

    def stop(self) -> None:
        """End the block: look at the clock once more, and cancel nothing any more."""
        self._cancels = False
        if self.is_lost and self.error is None:
            self._expire()
        self.is_over = True
        self._timer.cancel()
        self._loan.on_loss(None)
        self._loan.on_doubt(None)
        if self._watching is not None:
            self._watching.cancel()
        self._gone.set()

    def leave_with(self, raised: BaseException | None) -> None:
        """Raise the error of the loss, unless the block ends by an exception of its own; after `stop`."""
        if self.error is not None:
            self._canceller.leave_with(self.error, raised)
