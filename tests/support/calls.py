"""Calls over a fake engine: a balancer, an invoker, and answers with etcd's texts."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any

from etcd_aio import codec, pb
from etcd_aio.balancer import (
    Balancer,
    Choice,
    Endpoint,
    PolicyName,
    parse_endpoints,
)
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.error_handler import Credentials, Invoker, Lifetime, RetryPolicy
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.methods import API_VERSION, PUT, RANGE, STATUS
from etcd_aio.observing import Observer, ObserverGroup
from etcd_aio.transport import RequestMetadata
from etcd_aio.types import PutResult, RangeResult
from tests.support.fake_engine import FakeAttempt, FakeEngine, FakeMember
from tests.support.virtual_time import turns

CLUSTER = 0xC1


def unsent() -> AttemptFailure:
    return AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)


def unprocessed() -> AttemptFailure:
    return AttemptFailure(StatusCode.UNAVAILABLE, "GOAWAY below this stream", Delivery.UNPROCESSED)


def unknown(code: StatusCode = StatusCode.UNAVAILABLE, *, reason: LocalReason | None = None) -> AttemptFailure:
    return AttemptFailure(code, "the connection was lost", Delivery.UNKNOWN, reason=reason)


def answered(code: StatusCode, message: str, pushback: float | None = None) -> AttemptFailure:
    return AttemptFailure(code, message, Delivery.ANSWERED, pushback=pushback)


def no_leader() -> AttemptFailure:
    return answered(StatusCode.UNAVAILABLE, "etcdserver: no leader")


def leader_changed(pushback: float | None = None) -> AttemptFailure:
    return answered(StatusCode.UNAVAILABLE, "etcdserver: leader changed", pushback)


def learner() -> AttemptFailure:
    return answered(StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner")


def is_probe(attempt: FakeAttempt) -> bool:
    """Whether the balancer sent it, to probe a member's health."""
    return attempt.path == RANGE.path and codec.decode(pb.RangeRequest, attempt.payload).key == b"health"


def reply(cluster_id: int = CLUSTER) -> "Replies":
    return Replies(cluster_id)


class Replies:
    """The successful answers of a member of a cluster."""

    def __init__(self, cluster_id: int) -> None:
        self._header = pb.ResponseHeader(cluster_id=cluster_id)

    def __call__(self, attempt: FakeAttempt) -> bytes:
        kinds: dict[str, Any] = {
            RANGE.path: pb.RangeResponse,
            PUT.path: pb.PutResponse,
            STATUS.path: pb.StatusResponse,
        }
        return codec.encode(kinds[attempt.path](header=self._header))


class Calls:
    """An invoker and its balancer over fake members m1, m2, ..., which answer successfully by default."""

    def __init__(
        self,
        members: int = 3,
        *,
        policy: RetryPolicy | None = None,
        timeout: float | None = 5.0,
        retry: RetryMode = "safe",
        require_leader: bool = True,
        max_send_bytes: int = 1000,
        hedge_after: float | None = None,
        pick: PolicyName | Choice = "round_robin",
        credentials: Credentials | None = None,
        observers: Sequence[Observer] = (),
        sends_probes: bool = False,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = FakeEngine()
        if not sends_probes:  # then members get the requests of the test only
            self.engine.unsent = is_probe
        self.lifetime = Lifetime(lambda: self.balancer.start())
        metadata = RequestMetadata(API_VERSION, require_leader=require_leader)
        self.names = [f"m{number}:2379" for number in range(1, members + 1)]
        for name in self.names:
            self.engine[name].otherwise = reply()
        told = ObserverGroup(observers)
        self.balancer = Balancer(
            parse_endpoints(self.names),
            self.engine,
            metadata=metadata,
            tls_for=self._plaintext,
            policy=pick,
            random=lambda: 0.0,
            on_change=told.endpoint_changed,
        )
        self.identity = self.balancer.identity
        self.policy = RetryPolicy(jitter=0.0) if policy is None else policy
        self.invoker = Invoker(
            self.balancer,
            self.lifetime,
            self.identity,
            metadata,
            policy=self.policy,
            timeout=timeout,
            retry=retry,
            max_send_bytes=max_send_bytes,
            hedge_after=hedge_after,
            credentials=credentials,
            random=lambda: 0.5,
            observers=told,
        )

    @staticmethod
    def _plaintext(endpoint: Endpoint) -> ssl.SSLContext | None:
        return None

    def __getitem__(self, name: str) -> FakeMember:
        return self.engine[f"{name}:2379"]

    async def ready(self) -> "Calls":
        self.lifetime.enter()
        await turns()
        assert self.balancer.ready_count == len(self.names)
        return self

    async def read(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None, **more: Any) -> RangeResult:
        return await self.invoker.unary(RANGE, pb.RangeRequest(key=b"k"), timeout=timeout, retry=retry, **more)

    async def put(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None, **more: Any) -> PutResult:
        return await self.invoker.unary(
            PUT, pb.PutRequest(key=b"k", value=b"secret"), timeout=timeout, retry=retry, **more
        )

    def asked(self) -> list[str]:
        """The endpoints that got an attempt of a call, in order."""
        return [attempt.member.authority[:2] for attempt in self.engine.attempts if attempt.path != STATUS.path]

    def times(self) -> list[float]:
        """Seconds between the first attempt and every later one."""
        attempts = [attempt for attempt in self.engine.attempts if attempt.path != STATUS.path]
        return [attempt.at - attempts[0].at for attempt in attempts[1:]]

    def in_flight(self) -> int:
        return sum(one.in_flight for one in self.balancer.statistics())

    async def aclose(self) -> None:
        if self.lifetime.close():
            await self.invoker.aclose()
            await self.balancer.aclose()
