"""The faults: one row for each, with the affected member, the length, and the requirements on a client."""

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
    """The requirements for one operation under one fault; None means no requirement.

    Attributes:
        recovery: seconds that it may take after `beyond`.
        beyond: the lower limit for every client: the outage of the servers, or also the time until the member that was
            cut off detects it.
        errors: "none": no call may fail; "maybe": calls may fail if they have `maybe_applied`.
        slowest: the longest time of a call, in seconds.
        back: seconds from the healing until all members have their first state in the client again.
        first_success: seconds from the first member being up to the first success.
        idle_cpu: CPU seconds per second of a client that waits.
        median: the median, as a multiple of that before the fault.
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
    """One fault.

    Attributes:
        name: its name on the command line.
        title: its name in tables.
        who: the affected members.
        begin, end: start and end the fault.
        gets, puts: the requirements.
        lasts: seconds; None for the length on the command line.
        after: seconds of load after the fault; members that restart need one.
        via_proxies: whether clients reach the members through proxies.
        peer_proxies: whether members reach each other through proxies.
        policy: the policy of etcd_aio.
        clients: the clients to measure.
        is_apart: whether the clients run one after the other, because together they would disturb each other.
        burst: the number of calls that begin together with the fault.
        stall: seconds for which the loop of the client is blocked when the fault begins.
        is_outage: whether no member can be reached, so that the CPU of a waiting client is measured.
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
        """The requirements for an operation."""
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
        stage.proxy(member).black_hole()


async def _slow_down(stage: Stage, members: Members) -> None:
    for member in members:
        stage.proxy(member).delay(0.2, "to_client")


async def _heal_proxies(stage: Stage, members: Members) -> None:
    for member in members:
        stage.proxy(member).heal()


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
    Fault("healthy", "no fault", "none", _nothing, _nothing, Demand(recovery=0.0), Demand(recovery=0.0)),
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
        _heal_proxies,
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
        _heal_proxies,
        gets=Demand(),
        puts=Demand(),
        via_proxies=True,
    ),
    Fault(
        "slow-link-p2c",
        "200 ms more to a follower, power_of_two",
        "follower",
        _slow_down,
        _heal_proxies,
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
        after=12.0,  # some clients reconnect rarely by then
        is_outage=True,
    ),
    Fault(
        "stall",
        "false alarm: the client's loop is blocked for 2 s",
        "none",
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
        "none",
        _nothing,
        _nothing,
        gets=_NO_ALARM,
        puts=_NO_ALARM,
        lasts=1.0,
        is_apart=True,
        burst=10_000,
    ),
)
