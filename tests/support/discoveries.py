"""A `Discovery` with its balancer on a fake engine, and a resolver that says what it is told; in virtual time."""

import asyncio
import ssl
from collections.abc import Iterable, Sequence

from etcd_aio.balancer import Balancer, Endpoint, PolicyName, parse_endpoints
from etcd_aio.base.call_options import Timeout
from etcd_aio.discovery import Discovery, Resolution, Resolver
from etcd_aio.errors import ConfigError, DiscoveryError
from etcd_aio.transport import RequestMetadata
from etcd_aio.types import Header, Member, MemberListResult
from tests.support.fake_engine import FakeEngine, Refuse
from tests.support.virtual_time import tasks, timers, turns


def plaintext(endpoint: Endpoint) -> ssl.SSLContext | None:
    return None


def noted() -> None:
    """Nothing to note."""


def member(number: int, *urls: str, name: str | None = None, is_learner: bool = False) -> Member:
    started = f"m{number}" if name is None else name
    return Member(number, started, ("http://p:1",), urls or (f"http://m{number}:2379",), is_learner)


class FakeResolver:
    """A resolver that says what it is told, or fails."""

    is_tls = False

    def __init__(self, name: str = "the records") -> None:
        self.name = name
        self.says: str | Exception = DiscoveryError("not told yet")
        self.ttl = 60.0
        self.asked: list[float] = []
        self.timeouts: set[float] = set()
        self.takes = 0.0

    async def resolve(self, timeout: float) -> Resolution:
        self.asked.append(asyncio.get_running_loop().time())
        self.timeouts.add(timeout)
        await asyncio.sleep(self.takes)
        if isinstance(self.says, Exception):
            raise self.says
        return Resolution(parse_endpoints(self.says), self.ttl)


class Setup:
    def __init__(
        self,
        endpoints: str = "",
        *,
        resolver: Resolver | None = None,
        names: Sequence[Resolver] = (),
        auto_sync: float | None = None,
        has_tls: bool = False,
        policy: PolicyName = "round_robin",
        fail_fast: bool = False,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.engine = FakeEngine()
        given = parse_endpoints(endpoints) if endpoints else ()
        self.balancer = Balancer(
            given,
            self.engine,
            metadata=RequestMetadata("3.7", require_leader=True),
            tls_for=plaintext,
            policy=policy,
            fail_fast=fail_fast,
            random=lambda: 0.5,
        )
        self.members: list[Member] | Exception = [member(1), member(2), member(3)]
        self.listed: list[float] = []
        self.before_listing = noted
        self.unfit = ""
        self.discovery = Discovery(
            self.balancer,
            (*given, *names),
            self.list_members,
            records=resolver,
            check=self.check,
            has_tls=has_tls,
            auto_sync=auto_sync,
            connect_timeout=2.0,
            random=lambda: 0.5,
        )

    def check(self, endpoints: Iterable[Endpoint]) -> None:
        if self.unfit in [endpoint.name for endpoint in endpoints]:
            raise ConfigError("credentials in the clear")

    async def list_members(self, timeout: Timeout) -> MemberListResult:
        self.listed.append(self.loop.time())
        await asyncio.sleep(0.001)
        self.before_listing()
        if isinstance(self.members, Exception):
            raise self.members
        return MemberListResult(Header(1, 1, 1, 1), tuple(self.members))

    async def started(self) -> "Setup":
        self.balancer.start()
        self.discovery.start()
        await turns()
        return self

    @property
    def names(self) -> list[str]:
        return [endpoint.name for endpoint in self.balancer.endpoints]

    def dials(self) -> dict[str, int]:
        return {name.partition(":")[0]: len(one.dials) for name, one in self.engine.members.items()}

    def fail(self, *names: str) -> None:
        """They are gone: connections are lost, dials refused."""
        for name in names:
            found = self.engine[f"{name}:2379"]
            found.dial = Refuse()
            if found.connections:
                found.connection.lose(ConnectionResetError())

    async def closed(self) -> None:
        await self.discovery.aclose()
        await self.discovery.aclose()
        await self.balancer.aclose()
        await turns()
        assert not tasks()
        assert not timers()
