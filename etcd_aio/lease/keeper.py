"""LeaseKeeper: grants the leases of a client and keeps them alive, on one stream that moves from member to member.

`keepalive_schedule.py` decides when a lease is due; `kept_lease.py` is one lease, and `lease.py` the block around it.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from etcd_aio import pb
from etcd_aio.base.aio import resolve, start_background_task, start_task, start_timer_at, wait_until, wake
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.base.logs import Log, log_of
from etcd_aio.base.suspension import suspended_seconds
from etcd_aio.codec import header_of
from etcd_aio.error_handler import load_messages
from etcd_aio.errors import (
    ClientClosedError,
    EtcdError,
    LeaseExistsError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
    NotSupportedByServerError,
    PermissionDeniedError,
)
from etcd_aio.lease.clock import LeaseClock, LeaseClockAdapter
from etcd_aio.lease.keepalive_schedule import KeepAliveSchedule, LeaseState, ScheduledLease
from etcd_aio.methods import LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_REVOKE, LEASE_TIME_TO_LIVE, RANGE
from etcd_aio.observing import LeaseChange, LeaseEvent
from etcd_aio.types import Header, LeaseGrantResult, LeaseKeepAliveResult, LeaseRevokeResult

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.leases")

_VERIFY_SECONDS: Final = 5.0  # the client's default for a call; a lease's own deadline may come before
_VERIFY_ATTEMPTS: Final = 3  # an endpoint may stand for several members, and another one may answer each time
_WARNING_PAUSE: Final = 1.0  # seconds between two lines: leases that were renewed one by one are lost one by one, too

OnRenewed: TypeAlias = Callable[[int, float], None]
"""Called with a TTL and a deadline: the lease lasts at least until then."""

OnLoss: TypeAlias = Callable[[LeaseLostError], None]
"""Called with the reason for the loss of a lease."""


class GuardClient(Protocol):
    """A client with the same options in another thread, which renews leases there; see `guard.py`."""

    async def connect(self) -> object:
        """Start it."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


MakeGuardClient: TypeAlias = "Callable[[], tuple[GuardClient, LeaseKeeper]]"
"""Makes such a client, and its keeper; called in that thread."""

OnClosing: TypeAlias = "Callable[[], asyncio.Future[None] | None]"
"""Returns a future that is done when a block is left, if its task was cancelled by another one; else None."""


class LeaseKeeper:
    """The leases that a client keeps alive. Its stream is opened for the first of them and closed after the last.

    Args:
        invoker: runs calls and supervises the stream. It closes the stream with the client, which loses every lease
            that is still held then.
        draw_id: returns a random number of 63 bits. Default: from the system's entropy, so that no two clients draw
            the same.
        suspended: returns how long the machine has been suspended so far.
        guard_client: called in the loop of the client; returns what makes a client like it in another thread.

    Attributes:
        invoker, guard_client: see above.
        clock: the clock of all deadlines of leases.
        doubts: functions to call when the store may be another one than before.
        losses: the warning for leases that were lost.
        refusals: the warning for leases that the server refuses to renew.
        leftovers: the warning for leases that could not be revoked.
        is_closing: the client is being closed, so no lease begins any more.
        blocks: a function of each block that holds a lease.
    """

    def __init__(
        self,
        invoker: "Invoker",
        draw_id: Callable[[], int] | None = None,
        suspended: Callable[[], float] = suspended_seconds,
        guard_client: "Callable[[], MakeGuardClient] | None" = None,
    ) -> None:
        self.invoker = invoker
        self._draw_id = _draw_id if draw_id is None else draw_id
        self.clock = LeaseClock(invoker.clock, suspended)
        self.guard_client = guard_client
        self._on_change = invoker.observers.lease_changed
        self._log = log_of(logger, invoker.client)
        self._schedule = KeepAliveSchedule(self._on_stall)
        # Older releases of etcd renew leases without looking at the token, and a login may outlast a lease.
        adapter = LeaseClockAdapter(self._schedule, self.clock)
        self._supervisor = invoker.supervise(LEASE_KEEP_ALIVE, adapter, "lease keepalive", needs_token=False)
        self.doubts = invoker.doubts
        self._revisions: dict[int, int] = {}  # the last one of each member that has renewed a lease
        self._tasks: set[asyncio.Task[object]] = set()
        self.is_closing = False
        self.blocks: dict[OnClosing, None] = {}
        self._unsettled: set[asyncio.Future[None]] = set()
        self._outage: EtcdError | None = None  # of this turn of the loop
        self.losses = RateLimitedWarning(self._log, "%d leases were lost; the first: %s")
        self.refusals = RateLimitedWarning(self._log, "the server refuses to renew %d leases; the first: %s")
        self.leftovers = RateLimitedWarning(
            self._log, "%d leases could not be revoked; they expire after their TTLs; the first: %s"
        )

    def draw_id(self) -> int:
        """Draw a random id that no other lease has: positive, like the ids that etcd draws."""
        return self._draw_id() or 1

    def call_deadline(self, timeout: Timeout) -> float:
        """The instant of the loop's clock until which a call that begins now may last."""
        return self.invoker.deadline(timeout, self.invoker.clock())

    async def grant(
        self, id: int, ttl: int, timeout: Timeout, retry: RetryMode | None = None, *, is_own_id: bool
    ) -> LeaseGrantResult:
        """Grant a lease. See `Leases.grant`; `is_own_id` is True if this client has drawn the id."""
        deadline = self.call_deadline(timeout)
        await load_messages()
        try:
            reply = await self.invoker.unary(
                LEASE_GRANT, pb.LeaseGrantRequest(ttl=ttl, id=id), timeout=timeout, retry=retry
            )
        except LeaseExistsError as error:
            if not is_own_id or not error.maybe_applied:
                raise
            # No other client draws this id: an attempt whose answer was lost has granted it.
            left = time_left(deadline, self.invoker.clock())
            result = await self.invoker.unary(LEASE_TIME_TO_LIVE, pb.LeaseTimeToLiveRequest(id=id), timeout=left)
            if result.is_expired:
                raise LeaseNotFoundError from error
            return LeaseGrantResult(result.header, id, result.granted_ttl)
        if reply.id != id:
            # kine does so: its leases have their TTLs as ids, and an id that it does not know as a TTL, of centuries.
            text = f"the server answered with lease 0x{reply.id:x}, so it has no leases like etcd's"
            raise NotSupportedByServerError(text, feature=LEASE_GRANT.name)
        return grant_result(reply)

    async def revoke(self, id: int, timeout: Timeout, retry: RetryMode | None = None) -> LeaseRevokeResult:
        """Revoke a lease. See `Leases.revoke`."""
        deadline = self.call_deadline(timeout)
        try:
            return await self.invoker.unary(LEASE_REVOKE, pb.LeaseRevokeRequest(id=id), timeout=timeout, retry=retry)
        except LeaseNotFoundError as error:
            if not error.maybe_applied:
                raise
            # An attempt whose answer was lost has revoked it.
            left = time_left(deadline, self.invoker.clock())
            result = await self.invoker.unary(LEASE_TIME_TO_LIVE, pb.LeaseTimeToLiveRequest(id=id), timeout=left)
            return LeaseRevokeResult(result.header)

    def hold(self, lease_id: int, ttl: int, deadline: float, on_renewed: OnRenewed, on_loss: OnLoss) -> ScheduledLease:
        """Keep a lease alive that lasts at least until `deadline`, and call its holder after renewals and its loss."""
        self._wake()
        listener = _HeldLease(self, lease_id, on_renewed, on_loss)
        return self._schedule.hold(lease_id, ttl, deadline, listener, self.clock.now())

    def tell(self, event: LeaseEvent, lease_id: int, ttl: int, error: EtcdError | None = None) -> None:
        """Tell the observers of a change of a lease."""
        if self._on_change is not None:
            self._on_change(LeaseChange(event, lease_id, ttl, error, self.invoker.client))

    def saw(self, header: Header) -> None:
        """Note the revision of a member. It goes back if the member was restored from a backup."""
        before = self._revisions.get(header.member_id, 0)
        if header.revision != before and header.revision:  # a proxy may not know one
            self._revisions[header.member_id] = header.revision
            if header.revision < before:
                self.doubts.tell()

    def forget(self, scheduled: ScheduledLease) -> None:
        """Renew the lease no more."""
        self._wake()
        self._schedule.forget(scheduled)

    def expire(self, scheduled: ScheduledLease) -> None:
        """Lose a lease whose holder has already noticed that its deadline has passed."""
        self._wake()
        self._schedule.expire(scheduled)

    async def renew_once(self, lease_id: int, timeout: Timeout = UNSET) -> tuple[LeaseKeepAliveResult, float]:
        """Renew a lease now, and return the answer and the local deadline; see `Leases.keep_alive_once`."""
        self._wake()
        began = self.invoker.clock()
        deadline = self.invoker.deadline(timeout, began)
        renewal = _SingleRenewal(self, lease_id)
        scheduled = self._schedule.renew_once(lease_id, renewal, self.clock.now())
        try:
            result = await wait_until(renewal.result, deadline, None)
        finally:
            self.forget(scheduled)
        if result is None:
            error = self._supervisor.timeout_error(began, maybe_applied=True)
            self.explain(error, lease_id)
            raise error
        return result

    def run(self, coroutine: Coroutine[object, object, T], name: str, *, is_awaited: bool = False) -> "asyncio.Task[T]":
        """Run a coroutine in a task that may outlive its caller.

        Args:
            coroutine: what it runs.
            name: of the task.
            is_awaited: the caller waits for it, unless it is cancelled, so it is traced as a part of the caller.
        """
        start = start_task if is_awaited else start_background_task
        task = start(coroutine, name=f"etcd_aio {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def end(
        self, revocation: Coroutine[object, object, None], name: str, *, is_awaited: bool = False
    ) -> "asyncio.Task[None]":
        """Run what revokes a lease, as `run` does; it does not outlive a close for long."""
        task = self.run(revocation, name, is_awaited=is_awaited)
        self._unsettled.add(task)
        task.add_done_callback(self._unsettled.discard)
        return task

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """A block in which a lease is granted, or the revocation of what may be granted is started.

        Raises:
            ClientClosedError: the client is being closed.
        """
        if self.is_closing:
            raise ClientClosedError
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsettled.add(settled)
        try:
            yield
        finally:
            self._unsettled.discard(settled)
            wake(settled)

    @property
    def unsettled(self) -> "Collection[asyncio.Future[None]]":
        """Leases that are being granted or revoked, and blocks that are cancelled: closing waits for them a little."""
        leaving = (left() for left in self.blocks)
        return [*self._unsettled, *(future for future in leaving if future is not None)]

    def verify(self, scheduled: ScheduledLease) -> None:
        """Find out whether a lease exists, after the member of the stream has denied it."""
        self.run(self._verify(scheduled, self._supervisor.endpoint), f"verify lease 0x{scheduled.id:x}")

    def explain(self, error: EtcdError, lease_id: int) -> None:
        """Note on an error that it is about renewing this lease."""
        self.invoker.explain(error, LEASE_KEEP_ALIVE, pb.LeaseKeepAliveRequest(id=lease_id))

    def renewal_error(self, scheduled: ScheduledLease) -> EtcdError | None:
        """Why this lease cannot be renewed at present: the server refuses to, or there is no stream; else None."""
        return scheduled.refusal or self.outage_error()

    def outage_error(self) -> EtcdError | None:
        """Why there is no stream; None if there is one. All leases that are lost in one turn of the loop share it."""
        if self._outage is None and not self._supervisor.is_open:
            self._outage = self._supervisor.outage_error()
            asyncio.get_running_loop().call_soon(self._forget_outage)
        return self._outage

    def _on_stall(self, seconds: float) -> None:
        suspended = self.clock.slept_within(seconds)
        cause = "the machine was suspended" if suspended > seconds / 2 else "the event loop was blocked"
        self._log.warning("%s for %.1f s, more than half of a lease's TTL: no lease could be renewed", cause, seconds)

    def _forget_outage(self) -> None:
        self._outage = None

    def _wake(self) -> None:
        """Have the supervisor look at the schedule in the next turn of the loop.

        Call this before changing the schedule: it raises if the client is used from the wrong loop or process.
        """
        self._supervisor.wake()

    async def _verify(self, scheduled: ScheduledLease, endpoint: str) -> None:
        try:
            is_missing = await self._is_missing(scheduled, endpoint)
        except Exception:
            is_missing = False  # unknown for now: the next renewal tries again, until the deadline decides
        if scheduled.state is not LeaseState.MISSING:
            return
        if is_missing:
            self._schedule.forget(scheduled)
            scheduled.listener.on_lost(LeaseNotFoundError())
        else:
            self._schedule.restore(scheduled, self.clock.now())
        self._wake()

    async def _is_missing(self, scheduled: ScheduledLease, endpoint: str) -> bool:
        """Whether the member at `endpoint`, which denied that the lease exists, still does once it has caught up.

        A member that led before it froze answers from the state of that time. A linearizable read makes it catch up
        with the cluster, or fail. Its next answer about the lease is then true of the cluster.
        """
        clock = self.invoker.clock
        deadline = clock() + min(scheduled.deadline - self.clock.now(), _VERIFY_SECONDS)
        for _ in range(_VERIFY_ATTEMPTS):
            caught_up = await self._catch_up(endpoint, time_left(deadline, clock()))
            result = await self.invoker.unary(
                LEASE_TIME_TO_LIVE,
                pb.LeaseTimeToLiveRequest(id=scheduled.id),
                timeout=time_left(deadline, clock()),
                endpoint=endpoint,
            )
            if not result.is_expired:
                return False
            if caught_up in (0, result.header.member_id):
                return True
        return False

    async def _catch_up(self, endpoint: str, timeout: float) -> int:
        """Make a member catch up with the cluster; return the member's id, 0 if it is unknown."""
        try:
            result = await self.invoker.unary(
                RANGE, pb.RangeRequest(key=b"\0", count_only=True), timeout=timeout, endpoint=endpoint
            )
        except PermissionDeniedError:
            return 0  # etcd checks permissions after it has caught up
        return result.header.member_id


class _HeldLease:
    """Passes the renewals and the loss of a lease to its holder."""

    def __init__(self, keeper: LeaseKeeper, lease_id: int, on_renewed: OnRenewed, on_loss: OnLoss) -> None:
        self._keeper = keeper
        self._id = lease_id
        self._on_renewed = on_renewed
        self._on_loss = on_loss

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        self._on_renewed(reply.ttl, deadline)
        self._keeper.saw(reply.header)

    def on_missing(self, lease: ScheduledLease) -> None:
        self._keeper.verify(lease)

    def on_refused(self, error: EtcdError, refusals: int) -> None:
        self._keeper.explain(error, self._id)
        if refusals == 1:
            self._keeper.refusals.add(f"the server refuses to renew lease 0x{self._id:x}: {error.message}")

    def on_lost(self, error: EtcdError) -> None:
        if isinstance(error, LeaseLostError):
            lost = error
            if isinstance(error, LeaseExpiredError) and not isinstance(error.__cause__, PermissionDeniedError):
                lost.__cause__ = self._keeper.outage_error() or error.__cause__
        else:
            lost = LeaseExpiredError(f"lease 0x{self._id:x} does not exist any more: it expired or was revoked")
            lost.__cause__ = error
        self._keeper.losses.add(lost.message)
        self._on_loss(lost)


class _SingleRenewal:
    """Waits for one renewal of a lease."""

    def __init__(self, keeper: LeaseKeeper, lease_id: int) -> None:
        self._keeper = keeper
        self._id = lease_id
        self.result: asyncio.Future[tuple[LeaseKeepAliveResult, float] | None]
        self.result = asyncio.get_running_loop().create_future()

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        resolve(self.result, (reply, deadline))

    def on_missing(self, lease: ScheduledLease) -> None:
        self._keeper.verify(lease)

    def on_refused(self, error: EtcdError, refusals: int) -> None:
        """A single renewal that is refused is over: see `on_lost`."""

    def on_lost(self, error: EtcdError) -> None:
        if not self.result.done():
            self._keeper.explain(error, self._id)
            self.result.set_exception(error)


class RateLimitedWarning:
    """One log line for many events of a kind, such as the loss of a thousand leases.

    The events of one turn of the loop are one line, and lines are a second apart.

    Args:
        logger: gets the lines.
        several: the line for more than one event: a format for their number and the text of the first.
    """

    __slots__ = ("_count", "_first", "_logger", "_quiet_until", "_several")

    def __init__(self, logger: Log, several: str) -> None:
        self._logger = logger
        self._several = several
        self._count = 0
        self._first = ""
        self._quiet_until = 0.0

    def add(self, text: str) -> None:
        """Count an event: `text` is the line if no other follows soon."""
        self._count += 1
        if self._count > 1:
            return
        self._first = text
        loop = asyncio.get_running_loop()
        start_timer_at(max(loop.time(), self._quiet_until), self._log)

    def _log(self) -> None:
        if self._count == 1:
            self._logger.warning("%s", self._first)
        else:
            self._logger.warning(self._several, self._count, self._first)
        self._count = 0
        self._quiet_until = asyncio.get_running_loop().time() + _WARNING_PAUSE


def _draw_id() -> int:
    return int.from_bytes(os.urandom(8)) >> 1  # as of `secrets`, whose import would take a millisecond


def grant_result(reply: "pb.LeaseGrantResponse") -> LeaseGrantResult:
    """The result of a grant. The message also has an `error`, which etcd never fills."""
    return LeaseGrantResult(header_of(reply.header), reply.id, reply.ttl)
