"""The faults: what is done to whom, for how long, and what is demanded of a client meanwhile.

Knows: one row for each fault. Never knows: clients, processes, numbers that were measured.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from benchmarks.failover.stage import Stage, Who
from etcd_aio.testing import EtcdServer

Operation: TypeAlias = Literal["get", "put"]
OPERATIONS: Final[tuple[Operation, ...]] = ("get", "put")

Members: TypeAlias = Sequence[EtcdServer]
Action: TypeAlias = Callable[[Stage, Members], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Demand:
    """What must hold for one operation under one fault; None demands nothing.

    Attributes:
        recovery: seconds it may take, beyond `beyond`.
        beyond: what nobody can be faster than: the servers' own outage, or also the time in which the member that was
            cut off finds it out.
        errors: "none" may fail; "maybe": only if they say that they may have been applied.
        slowest: seconds that no call may take longer than.
        back: seconds after the healing until the client thinks of all members as it did before.
        first_success: seconds after the first member is up.
        idle_cpu: CPU seconds a second of a client that waits.
        median: how many times the median before the fault.
    """

    recovery: float | None = None
    beyond: Literal["nothing", "outage", "detection"] = "nothing"
    errors: Literal["none", "maybe"] | None = "none"
    slowest: float | None = None
    back: float | None = None
    first_success: float | None = None
    idle_cpu: float | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One row.

    Attributes:
        name: for the command line.
        title: for people.
        who: whom it is done to.
        begin, end: what is done, and how it is taken back.
        gets, puts: what is demanded.
        lasts: seconds; None is as long as the command line says.
        after: seconds for which the load goes on; members that start again need one.
        via_proxies: whether clients reach the members through proxies.
        peer_proxies: whether members reach each other through proxies.
        policy: the policy of etcd_aio.
        clients: who takes part.
        is_apart: one client after the other, where together they would be each other's fault.
        burst: calls that are issued at once as the fault begins.
        stall: seconds for which the loop of the client is blocked as the fault begins.
        is_outage: no member can be reached, so that what a waiting client costs is looked at.
    """

    name: str
    title: str
    who: Who
    begin: Action
    end: Action
    gets: Demand
    puts: Demand
    lasts: float | None = None
    after: float = 3.0
    via_proxies: bool = False
    peer_proxies: bool = False
    policy: str = "round_robin"
    clients: tuple[str, ...] = ("etcd_aio", "go")
    is_apart: bool = False
    burst: int = 0
    stall: float = 0.0
    is_outage: bool = False

    def demand(self, operation: Operation) -> Demand:
        """What must hold."""
        return self.gets if operation == "get" else self.puts


async def _nothing(stage: Stage, members: Members) -> None:
    pass


async def _kill(stage: Stage, members: Members) -> None:
    await asyncio.gather(*(member.kill() for member in members))


async def _restart(stage: Stage, members: Members) -> None:
    await asyncio.gather(*(member.restart() for member in members))


async def _freeze(stage: Stage, members: Members) -> None:
    for member in members:
        member.pause()


async def _thaw(stage: Stage, members: Members) -> None:
    for member in members:
        member.resume()


async def _swallow(stage: Stage, members: Members) -> None:
    for member in members:
        stage.road(member).black_hole()


async def _slow_down(stage: Stage, members: Members) -> None:
    for member in members:
        stage.road(member).delay(0.2, "to_client")


async def _heal_roads(stage: Stage, members: Members) -> None:
    for member in members:
        stage.road(member).heal()


async def _isolate(stage: Stage, members: Members) -> None:
    for member in members:
        stage.isolate(member)


async def _reconnect(stage: Stage, members: Members) -> None:
    for member in members:
        stage.reconnect(member)


async def _starve(stage: Stage, members: Members) -> None:
    for member in members:
        stage.starve(member)


async def _feed(stage: Stage, members: Members) -> None:
    for member in members:
        stage.feed(member)


_OUTAGE = Demand(recovery=0.2, beyond="outage")
_WRITES_IN_OUTAGE = Demand(recovery=0.2, beyond="outage", errors="maybe")
_SILENT_GETS = Demand(recovery=0.5, slowest=1.0)
_SILENT_PUTS = Demand(recovery=0.5, errors="maybe")
_NO_ALARM = Demand(back=1.0)

FAULTS: Final = (
    Fault("healthy", "no fault", "nobody", _nothing, _nothing, Demand(recovery=0.0), Demand(recovery=0.0)),
    Fault(
        "kill-follower",
        "SIGKILL a follower",
        "follower",
        _kill,
        _restart,
        gets=Demand(recovery=0.05),
        puts=Demand(recovery=0.05, errors="maybe"),
    ),
    Fault("freeze-follower", "SIGSTOP a follower", "follower", _freeze, _thaw, gets=_SILENT_GETS, puts=_SILENT_PUTS),
    Fault("kill-leader", "SIGKILL the leader", "leader", _kill, _restart, gets=_OUTAGE, puts=_WRITES_IN_OUTAGE),
    Fault("freeze-leader", "SIGSTOP the leader", "leader", _freeze, _thaw, gets=_OUTAGE, puts=_WRITES_IN_OUTAGE),
    Fault(
        "black-hole",
        "the link to a follower swallows everything",
        "follower",
        _swallow,
        _heal_roads,
        gets=_SILENT_GETS,
        puts=_SILENT_PUTS,
        via_proxies=True,
    ),
    Fault(
        "cut-off-follower",
        "a follower is cut off from its peers",
        "follower",
        _isolate,
        _reconnect,
        gets=Demand(recovery=0.5),
        puts=Demand(recovery=0.2, beyond="detection", errors="maybe"),
        peer_proxies=True,
    ),
    Fault(
        "cut-off-leader",
        "the leader is cut off from its peers",
        "leader",
        _isolate,
        _reconnect,
        gets=_OUTAGE,
        puts=Demand(recovery=0.2, beyond="detection", errors="maybe"),
        peer_proxies=True,
    ),
    Fault(
        "slow-link",
        "200 ms more to a follower, round_robin",
        "follower",
        _slow_down,
        _heal_roads,
        gets=Demand(),
        puts=Demand(),
        via_proxies=True,
    ),
    Fault(
        "slow-link-p2c",
        "200 ms more to a follower, power_of_two",
        "follower",
        _slow_down,
        _heal_roads,
        gets=Demand(median=1.2),
        puts=Demand(median=1.2),
        via_proxies=True,
        policy="power_of_two",
        clients=("etcd_aio",),
    ),
    Fault(
        "all-down",
        "all members are down for 30 s",
        "all",
        _kill,
        _restart,
        gets=Demand(errors=None, first_success=2.0, idle_cpu=0.01),
        puts=Demand(errors=None, first_success=2.0, idle_cpu=0.01),
        lasts=30.0,
        after=12.0,  # some clients dial seldom by then
        is_outage=True,
    ),
    Fault(
        "stall",
        "false alarm: the client's loop is blocked for 2 s",
        "nobody",
        _nothing,
        _nothing,
        gets=_NO_ALARM,
        puts=_NO_ALARM,
        lasts=2.0,
        clients=("etcd_aio",),
        stall=2.0,
    ),
    Fault("starve", "false alarm: a follower has a fifth of a core", "follower", _starve, _feed, _NO_ALARM, _NO_ALARM),
    Fault(
        "pause",
        "false alarm: a follower pauses for 600 ms",
        "follower",
        _freeze,
        _thaw,
        gets=_NO_ALARM,
        puts=_NO_ALARM,
        lasts=0.6,
    ),
    Fault(
        "burst",
        "false alarm: 10 000 calls at once",
        "nobody",
        _nothing,
        _nothing,
        gets=_NO_ALARM,
        puts=_NO_ALARM,
        lasts=1.0,
        is_apart=True,
        burst=10_000,
    ),
)
