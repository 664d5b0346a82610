"""Keeper: grants the leases of a client and keeps them alive, on one stream that moves from member to member.

Knows: the schedule (`keepalive.py`), the supervisor of its stream, the background tasks of leases. Never knows: when a
lease is due (the schedule does), what becomes of a user's task that holds one (`lease.py` does).
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from etcd_aio.aio import start_background_task
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.codec import header_of
from etcd_aio.deadline import time_left
from etcd_aio.errors import (
    EtcdError,
    LeaseExistsError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
    PermissionDeniedError,
)
from etcd_aio.lease.clock import LeaseClock, LeaseClockAdapter, suspended_seconds
from etcd_aio.lease.log_summary import LogSummary
from etcd_aio.lease.schedule import KeepAliveSchedule, LeaseState, ScheduledLease
from etcd_aio.methods import LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_TIME_TO_LIVE, RANGE
from etcd_aio.pb import (
    LeaseGrantRequest,
    LeaseGrantResponse,
    LeaseKeepAliveRequest,
    LeaseTimeToLiveRequest,
    RangeRequest,
)
from etcd_aio.types import LeaseGrantResult, LeaseKeepAliveResult

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.leases")

_VERIFY_SECONDS: Final = 5.0  # the client's default for a call; a lease's own deadline may come before
_VERIFY_ASKS: Final = 3  # an endpoint may stand for several members, and another one may answer each time


OnRenewed: TypeAlias = Callable[[int, float], None]
"""Told a TTL and a deadline: the lease lasts at least until then."""

OnLoss: TypeAlias = Callable[[LeaseLostError], None]
"""Told why the lease is lost."""


class LeaseKeeper:
    """The leases that a client keeps alive. Its stream is opened for the first of them and closed after the last.

    Args:
        invoker: runs calls and supervises the stream, which it also closes with the client: every lease that is still
            held then is lost.
        draw_id: returns a random number of 63 bits. Default: from the system's entropy, so that no two clients draw
            the same.
        suspended: how long the machine has been suspended so far.

    Attributes:
        clock: what all deadlines of leases are instants of.
        losses: the log of what was lost.
        leftovers: the log of what could not be revoked.
    """

    def __init__(
        self,
        invoker: "Invoker",
        draw_id: Callable[[], int] | None = None,
        suspended: Callable[[], float] = suspended_seconds,
    ) -> None:
        self._invoker = invoker
        self._draw_id = _draw_id if draw_id is None else draw_id
        self.clock = LeaseClock(invoker.clock, suspended)
        self._schedule = KeepAliveSchedule(self._on_stall)
        # Older releases of etcd renew leases without looking at the token, and a login may outlast a lease.
        timed = LeaseClockAdapter(self._schedule, self.clock)
        self._supervisor = invoker.supervise(LEASE_KEEP_ALIVE, timed, "lease keepalive", needs_token=False)
        self._tasks: set[asyncio.Task[object]] = set()
        self._outage: EtcdError | None = None  # of this turn
        self.losses = LogSummary(logger, "%d leases were lost; the first: %s")
        self.leftovers = LogSummary(logger, "%d leases could not be revoked and end by their TTLs; the first: %s")

    def draw_id(self) -> int:
        """A random id that no other lease has: positive, as those that etcd draws itself."""
        return self._draw_id() or 1

    async def grant(
        self, id: int, ttl: int, timeout: Timeout, retry: RetryMode | None = None, *, is_own_id: bool
    ) -> LeaseGrantResult:
        """Grant a lease; `is_own_id` says that this client has drawn the id. See `Leases.grant`."""
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        try:
            reply = await self._invoker.unary(
                LEASE_GRANT, LeaseGrantRequest(ttl=ttl, id=id), timeout=timeout, retry=retry
            )
        except LeaseExistsError as error:
            if not is_own_id or not error.maybe_applied:
                raise
            # Nobody else draws this id: an attempt whose answer was lost has granted it.
            left = time_left(deadline, self._invoker.clock())
            found = await self._invoker.unary(LEASE_TIME_TO_LIVE, LeaseTimeToLiveRequest(id=id), timeout=left)
            if found.is_expired:
                raise LeaseNotFoundError from error
            return LeaseGrantResult(found.header, id, found.granted_ttl)
        return grant_result(reply)

    def hold(self, lease_id: int, ttl: int, deadline: float, on_renewed: OnRenewed, on_loss: OnLoss) -> ScheduledLease:
        """Keep a lease alive that lasts at least until `deadline`, and tell its holder what becomes of it."""
        self._wake()
        held = _HeldLease(self, on_renewed, on_loss)
        held.scheduled = self._schedule.hold(lease_id, ttl, deadline, held, self.clock.now())
        return held.scheduled

    def forget(self, scheduled: ScheduledLease) -> None:
        """Leave the lease alone."""
        self._wake()
        self._schedule.forget(scheduled)

    def expire(self, scheduled: ScheduledLease) -> None:
        """Its holder was told that its deadline has passed: it is lost."""
        self._wake()
        self._schedule.expire(scheduled)

    async def renew_once(self, lease_id: int, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew a lease now; see `Leases.keep_alive_once`."""
        self._wake()
        loop = asyncio.get_running_loop()
        asked = _SingleRenewal(self, loop.time())
        asked.scheduled = self._schedule.ask(lease_id, asked, self.clock.now())
        deadline = self._invoker.deadline(timeout, loop.time())
        # A timer and no timeout scope: this is the user's task.
        timer = None if deadline == float("inf") else loop.call_at(deadline, self._give_up, asked)
        try:
            return await asked.answer
        finally:
            if timer is not None:
                timer.cancel()
            self.forget(asked.scheduled)

    def run(self, coroutine: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """Run something in the background that may outlive whoever asked for it."""
        task = start_background_task(coroutine, name=f"etcd_aio {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def verify(self, listener: "_Listener", reply: LeaseKeepAliveResult) -> None:
        """A member says that there is no such lease: find out whether that is so."""
        self.run(self._verify(listener, self._supervisor.endpoint), f"verify lease 0x{reply.id:x}")

    def explain(self, error: EtcdError, lease_id: int) -> None:
        """Note on an error that it is about renewing this lease."""
        self._invoker.explain(error, LEASE_KEEP_ALIVE, LeaseKeepAliveRequest(id=lease_id))

    def outage_error(self) -> EtcdError | None:
        """Why there is no stream; None if there is one. All leases that are lost in one turn of the loop share it."""
        if self._outage is None and not self._supervisor.is_open:
            self._outage = self._supervisor.outage_error()
            asyncio.get_running_loop().call_soon(self._forget_outage)
        return self._outage

    def _on_stall(self, seconds: float) -> None:
        slept = self.clock.slept_within(seconds)
        what = "the machine was suspended" if slept > seconds / 2 else "the event loop was held up"
        logger.warning("%s for %.1f s, more than half of a lease's time: nothing could be renewed", what, seconds)

    def _forget_outage(self) -> None:
        self._outage = None

    def _wake(self) -> None:
        """Tell the stream that the schedule changes in this turn; it looks at it in the next.

        Before the change, since this is what refuses a wrong loop or process.
        """
        self._supervisor.wake()

    def _give_up(self, asked: "_SingleRenewal") -> None:
        asked.on_lost(self._supervisor.timeout_error(asked.since, maybe_applied=True))

    async def _verify(self, listener: "_Listener", endpoint: str) -> None:
        scheduled = listener.scheduled
        try:
            is_missing = await self._is_missing(scheduled, endpoint)
        except EtcdError:
            is_missing = False  # nobody can tell now: the next renewal asks again, until the deadline decides
        if scheduled.state is not LeaseState.MISSING:
            return
        if is_missing:
            self._schedule.forget(scheduled)
            listener.on_lost(LeaseNotFoundError())
        else:
            self._schedule.restore(scheduled, self.clock.now())
        self._wake()

    async def _is_missing(self, scheduled: ScheduledLease, endpoint: str) -> bool:
        """Whether the member at `endpoint`, which said that there is no such lease, says so with the cluster's word.

        A member that led before it froze answers from what it knew then. A linearizable read makes it catch up with the
        cluster, or fail: what it says of the lease afterwards is what the cluster knows.
        """
        clock = self._invoker.clock
        deadline = clock() + min(scheduled.deadline - self.clock.now(), _VERIFY_SECONDS)
        for _ in range(_VERIFY_ASKS):
            caught_up = await self._caught_up(endpoint, time_left(deadline, clock()))
            found = await self._invoker.unary(
                LEASE_TIME_TO_LIVE,
                LeaseTimeToLiveRequest(id=scheduled.id),
                timeout=time_left(deadline, clock()),
                endpoint=endpoint,
            )
            if not found.is_expired:
                return False
            if caught_up in (0, found.header.member_id):
                return True
        return False

    async def _caught_up(self, endpoint: str, timeout: float) -> int:
        """Have a member catch up with the cluster; returns its id, 0 if it does not say."""
        try:
            found = await self._invoker.unary(
                RANGE, RangeRequest(key=b"\0", count_only=True), timeout=timeout, endpoint=endpoint
            )
        except PermissionDeniedError:
            return 0  # etcd looks at permissions after it has caught up
        return found.header.member_id


class _Listener:
    """What the schedule tells, on its way to whoever it concerns."""

    scheduled: ScheduledLease

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper

    def on_missing(self, reply: LeaseKeepAliveResult) -> None:
        self._keeper.verify(self, reply)

    def on_lost(self, error: EtcdError) -> None:
        raise NotImplementedError  # each kind of listener has its own


class _HeldLease(_Listener):
    """For a lease that somebody holds."""

    def __init__(self, keeper: LeaseKeeper, on_renewed: OnRenewed, on_loss: OnLoss) -> None:
        super().__init__(keeper)
        self._on_renewed = on_renewed
        self._on_loss = on_loss

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        self._on_renewed(reply.ttl, deadline)

    def on_lost(self, error: EtcdError) -> None:
        if isinstance(error, LeaseLostError):
            lost = error
            if isinstance(error, LeaseExpiredError):
                lost.__cause__ = self._keeper.outage_error() or error.__cause__
        else:
            lost = LeaseExpiredError(
                f"lease 0x{self.scheduled.id:x} does not exist any more: it expired or was revoked"
            )
            lost.__cause__ = error
        self._keeper.losses.add(lost.message)
        self._on_loss(lost)


class _SingleRenewal(_Listener):
    """For a lease that is renewed once."""

    def __init__(self, keeper: LeaseKeeper, since: float) -> None:
        super().__init__(keeper)
        self.since = since
        self.answer: asyncio.Future[LeaseKeepAliveResult] = asyncio.get_running_loop().create_future()

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        if not self.answer.done():
            self.answer.set_result(reply)

    def on_lost(self, error: EtcdError) -> None:
        if not self.answer.done():
            self._keeper.explain(error, self.scheduled.id)
            self.answer.set_exception(error)


def _draw_id() -> int:
    return secrets.randbits(63)


def grant_result(reply: LeaseGrantResponse) -> LeaseGrantResult:
    """The result of a grant. The message has an `error` besides, which etcd never fills."""
    return LeaseGrantResult(header_of(reply.header), reply.id, reply.ttl)
