"""Leases without servers: an invoker that grants and revokes, and a stream that renews, in virtual time.

members = FakeLeases()
members.failures.append(error)    the next unary calls raise these, in turn, without effect
members.is_reachable = False      the stream is lost, and does not come back
members.suspend(60)               the machine sleeps: the clocks of the members go on, the loop's does not
members.is_silent = True          the stream stays open without replies
members.deny.append(member_id)    this member answers next on the stream, falsely, that there is no such lease
members.forbidden.add(lease_id)   the member ends the stream at a renewal of this lease: permission denied
members.is_behind = True          the member of the stream also denies it in calls, until it has caught up
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from etcd_aio import pb
from etcd_aio.balancer import StoreDoubts
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.deadline import deadline_after
from etcd_aio.error_handler.description import explain
from etcd_aio.error_handler.stream_handler import StreamHandler
from etcd_aio.errors import (
    ConnectionLostError,
    EtcdError,
    EtcdTimeoutError,
    LeaseExistsError,
    LeaseNotFoundError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    with_history,
)
from etcd_aio.lease.calls import Leases
from etcd_aio.lease.keeper import LeaseKeeper
from etcd_aio.methods import LEASE_GRANT, LEASE_LEASES, LEASE_REVOKE, LEASE_TIME_TO_LIVE, RANGE, AnyMethod
from etcd_aio.observing import ObserverGroup
from etcd_aio.types import (
    Header,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
    RangeResult,
)
from tests.support.observer import Remembers

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MIN_TTL = 2


class FakeLeases:
    """The members. `leases` maps the id of a lease to its TTL and its expiry; `calls` has the name of every call."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.leases: dict[int, tuple[int, float]] = {}
        self.calls: list[str] = []
        self.timeouts: list[Timeout] = []
        self.failures: deque[EtcdError] = deque()
        self.deny: deque[int] = deque()
        self.forbidden: set[int] = set()
        self.answering: deque[int] = deque()  # which member answers the next unary calls; else 1
        self.is_behind = False
        self.asked: list[str | None] = []  # the endpoint that each call went to
        self.latency = 0.01
        self.is_reachable = True
        self.is_silent = False
        self.streams: list[FakeSupervisor] = []
        ids = iter(range(100, 2000))
        self.suspended = 0.0  # seconds
        self.seen = Remembers()
        self.observers = ObserverGroup([self.seen])
        self.client = ""
        self.doubts = StoreDoubts()
        self.invoker = cast("Invoker", self)
        self.keeper = LeaseKeeper(self.invoker, draw_id=ids.__next__, suspended=lambda: self.suspended)
        self.group = Leases(self.keeper)

    def now(self) -> float:
        """The clock of the members."""
        return self.loop.time() + self.suspended

    def suspend(self, seconds: float) -> None:
        self.suspended += seconds

    def header(self) -> Header:
        return Header(member_id=self.answering.popleft() if self.answering else 1, revision=len(self.calls))

    def ttl_of(self, lease: int) -> int:
        ttl, expiry = self.leases.get(lease, (0, 0.0))
        return ttl if expiry > self.now() else 0

    # As an invoker.

    async def unary(
        self,
        method: object,
        request: Any,
        *,
        timeout: Timeout = UNSET,
        retry: object = None,
        endpoint: str | None = None,
    ) -> Any:
        self.asked.append(endpoint)
        self.calls.append(type(request).__name__.removeprefix("Lease").removesuffix("Request"))
        self.timeouts.append(timeout)
        await asyncio.sleep(self.latency)
        if self.failures:
            raise self.failures.popleft()
        if method is LEASE_GRANT:
            if self.ttl_of(request.id):
                raise LeaseExistsError
            ttl = max(request.ttl, MIN_TTL)
            self.leases[request.id] = (ttl, self.now() + ttl)
            return pb.LeaseGrantResponse(header=pb.ResponseHeader(revision=len(self.calls)), id=request.id, ttl=ttl)
        if method is LEASE_REVOKE:
            if self.leases.pop(request.id, None) is None:
                raise LeaseNotFoundError
            return LeaseRevokeResult(self.header())
        if method is RANGE:
            self.is_behind = self.is_behind and request.serializable
            return RangeResult(self.header(), (), False, 0)
        if method is LEASE_TIME_TO_LIVE:
            ttl = 0 if self.is_behind and endpoint == self.streams[0].endpoint else self.ttl_of(request.id)
            left = int(self.leases[request.id][1] - self.now()) if ttl else -1
            return LeaseTimeToLiveResult(self.header(), request.id, left, ttl)
        assert method is LEASE_LEASES
        return LeaseListResult(self.header(), tuple(LeaseStatus(one) for one in self.leases))

    def explain(self, error: EtcdError, method: AnyMethod, request: pb.Message) -> None:
        explain(error, method, request, None)

    def supervise(
        self, method: object, handler: StreamHandler[Any, Any], name: str, *, needs_token: bool
    ) -> "FakeSupervisor":
        assert not needs_token, "a lease must not wait for a login"
        self.streams.append(FakeSupervisor(self, handler))
        return self.streams[-1]

    def deadline(self, timeout: Timeout, now: float) -> float:
        return now + 5.0 if timeout is UNSET else deadline_after(timeout, now)

    def clock(self) -> float:
        return self.loop.time()

    def renew(self, request: pb.LeaseKeepAliveRequest) -> LeaseKeepAliveResult:
        self.calls.append("KeepAlive")
        if self.deny:
            return LeaseKeepAliveResult(Header(member_id=self.deny.popleft()), request.id, 0)
        ttl = self.ttl_of(request.id)
        if ttl:
            self.leases[request.id] = (ttl, self.now() + ttl)
        return LeaseKeepAliveResult(Header(member_id=1), request.id, ttl)


class FakeSupervisor:
    """The stream: it comes back 10 ms after it was lost, if it can."""

    def __init__(self, members: FakeLeases, handler: StreamHandler[Any, Any]) -> None:
        self.members = members
        self.handler = handler
        self.is_open = False
        self.endpoint = "m1"
        self.opened = 0
        self.end: EtcdError | None = None
        self._timer: asyncio.TimerHandle | None = None

    def outage_error(self) -> NoAvailableEndpointsError:
        return NoAvailableEndpointsError(errors={"m1": OSError("refused")})

    def timeout_error(self, since: float, *, maybe_applied: bool = False) -> EtcdError:
        error = EtcdTimeoutError() if self.is_open else self.outage_error()
        return with_history(error, (), maybe_applied=maybe_applied, seconds=self.members.loop.time() - since)

    def wake(self) -> None:
        self.members.loop.call_soon(self.advance)

    def advance(self) -> None:
        loop, handler = self.members.loop, self.handler
        if self.end is not None:
            if handler.is_needed:
                handler.on_end(self.end)
            return
        if self.is_open and not (self.members.is_reachable and handler.is_needed):
            self.lose("gone")
        elif not self.is_open and self.members.is_reachable and handler.is_needed:
            self.is_open = True
            self.opened += 1
            handler.on_open("m1", loop.time())
        if self.is_open:
            for request in handler.requests(loop.time()):
                loop.call_later(self.members.latency, self._answer, request, self.opened)
        if self._timer is not None:
            self._timer.cancel()
        if handler.is_needed:
            soon = 0.01 if not self.is_open and self.members.is_reachable else 3600.0
            due = min(handler.due, loop.time() + soon)
            self._timer = loop.call_at(max(due, loop.time() + 0.001), self._on_timer)

    def close(self, error: EtcdError) -> None:
        """There will be no further stream."""
        self.end = error
        if self.is_open:
            self.lose("closed")
        self.handler.on_end(error)

    def lose(self, reason: str) -> None:
        self.is_open = False
        self.handler.on_lost(ConnectionLostError(reason), self.members.loop.time())

    def _answer(self, request: pb.LeaseKeepAliveRequest, stream: int) -> None:
        if self.is_open and self.opened == stream and self.members.is_reachable and not self.members.is_silent:
            if request.id in self.members.forbidden:
                self.members.calls.append("KeepAlive")
                self.is_open = False
                assert self.handler.on_lost(PermissionDeniedError(), self.members.loop.time())
                self.advance()
                return
            self.handler.on_reply(self.members.renew(request), self.members.loop.time())
            self.advance()

    def _on_timer(self) -> None:
        now = self.members.loop.time()
        if self.handler.due <= now:
            reason = self.handler.on_time(now)
            if reason is not None and self.is_open:
                self.lose(reason)
        self.advance()
