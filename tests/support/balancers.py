"""A balancer over fake members, in virtual time."""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Self

from etcd_aio import codec, pb
from etcd_aio.balancer import Balancer, Choice, Endpoint, PolicyName, SubConnection, parse_endpoints
from etcd_aio.methods import STATUS
from etcd_aio.observing import EndpointChange
from etcd_aio.transport import CertificateRenewal, RequestMetadata
from tests.support.fake_engine import FakeAttempt, FakeEngine, FakeMember, Refuse
from tests.support.virtual_time import turns


def plaintext(endpoint: Endpoint) -> ssl.SSLContext | None:
    """No endpoint has TLS."""


class BalancerWorld:
    """A balancer, and its members behind a fake engine: m1, m2 and m3 by default."""

    def __init__(
        self,
        endpoints: str = "m1,m2,m3",
        policy: PolicyName | Choice = "round_robin",
        chance: Callable[[], float] = lambda: 0.5,
        *,
        fail_fast: bool = False,
        on_change: Callable[[EndpointChange], None] | None = None,
        certificates: CertificateRenewal | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = FakeEngine()
        self.balancer = Balancer(
            parse_endpoints(endpoints) if endpoints else (),
            self.engine,
            metadata=RequestMetadata("3.7", require_leader=True),
            tls_for=plaintext if certificates is None else lambda endpoint: certificates,
            policy=policy,
            fail_fast=fail_fast,
            random=chance,
            on_change=on_change,
            certificates=certificates,
        )

    def __getitem__(self, name: str) -> FakeMember:
        return self.engine[f"{name}:2379"]

    async def started(self) -> Self:
        self.balancer.start()
        await turns()
        return self

    def refuse(self, *names: str) -> Self:
        """These members refuse connections from now on."""
        for name in names:
            self[name].dial = Refuse(ConnectionRefusedError(111, f"{name} refused"))
        return self

    def elect(self, leader: str) -> Self:
        """The members say from now on that this one leads."""
        number = int(leader.removeprefix("m"))
        for index, name in enumerate(("m1", "m2", "m3"), start=1):
            reply = pb.StatusResponse(header=pb.ResponseHeader(member_id=index), leader=number, raft_term=2)
            raw = codec.encode(reply)
            self[name].otherwise = lambda attempt, raw=raw: raw
        return self

    def searches(self) -> int:
        """How often the leader was searched for, by what the busiest member was asked."""
        return max(Counter(attempt.member.authority for attempt in self.asked(STATUS.path)).values(), default=0)

    def asked(self, path: str) -> list[FakeAttempt]:
        """The attempts of one RPC."""
        return [attempt for attempt in self.engine.attempts if attempt.path == path]

    def sub(self, name: str) -> SubConnection:
        """The sub-connection of a member, which there is."""
        found = self.balancer.sub_connection(f"{name}:2379")
        assert found is not None
        return found

    def picks(self, number: int) -> Counter[str]:
        """The endpoints of so many picks."""
        picked = (self.balancer.pick() for _ in range(number))
        return Counter(one.endpoint_name for one in picked if one is not None)

    def states(self) -> dict[str, str]:
        """The connectivity state of each endpoint."""
        return {one.endpoint: one.state.name for one in self.balancer.statistics()}
