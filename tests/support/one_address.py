"""One address behind which are several members, as a TCP load balancer has it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from etcd_aio.balancer import parse_endpoint
from etcd_aio.transport import Connection, ConnectionOwner, Engine, Target, TransportOptions


class OneAddress:
    """Makes engines whose connections to any endpoint lead to one of these members after the other.

    Args:
        members: their endpoints.
        make: makes the engine that connects to them.
        choose: the member that a connection leads to, given its number; by default each in turn.

    Attributes:
        chosen: the members that connections have led to.
    """

    def __init__(
        self,
        members: Sequence[str],
        make: Callable[[TransportOptions], Engine],
        choose: Callable[[int], int] = lambda number: number,
    ) -> None:
        self._targets = [parse_endpoint(member).target(None) for member in members]
        self._members = members
        self._make = make
        self._choose = choose
        self._numbers = count()
        self.chosen: list[str] = []

    def engine(self, options: TransportOptions) -> Engine:
        """Make an engine: `Client("http://etcd", engine=one_address.engine)`."""
        return _Engine(self._make(options), self._next)

    def _next(self, target: Target) -> Target:
        index = self._choose(next(self._numbers)) % len(self._targets)
        self.chosen.append(self._members[index])
        return replace(self._targets[index], tls=target.tls, server_name=target.server_name)


class _Engine:
    def __init__(self, engine: Engine, choose: Callable[[Target], Target]) -> None:
        self._engine = engine
        self._choose = choose

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        return await self._engine.connect(self._choose(target), owner)

    async def http_get(self, target: Target, path: str) -> bytes:
        return await self._engine.http_get(self._choose(target), path)
