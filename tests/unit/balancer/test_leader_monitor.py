"""balancer/leader_monitor.py: when it searches for the leader, when it stops, and which member it believes."""

import asyncio
from itertools import pairwise

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import SubConnection
from etcd_aio.balancer.leader_monitor import LeaderMonitor, find_leader
from etcd_aio.error_handler.credentials import StaticToken
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.methods import STATUS
from etcd_aio.transport import RequestMetadata
from tests.support.balancers import BalancerWorld
from tests.support.calls import Calls
from tests.support.fake_engine import Answer
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

GONE = AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN)
LEADS = codec.encode(pb.StatusResponse(header=pb.ResponseHeader(member_id=1), leader=1, raft_term=5))


def status(member: int, leader: int, term: int) -> bytes:
    return codec.encode(pb.StatusResponse(header=pb.ResponseHeader(member_id=member), leader=leader, raft_term=term))


class World(BalancerWorld):
    """One member, which answers so, each time after 10 ms."""

    def __init__(self, *answers: Answer, then: Answer = GONE) -> None:
        super().__init__("m1")
        self["m1"].answers.extend(answers)
        self["m1"].otherwise = then
        self["m1"].latency = 0.01
        self.leaders: list[str | None] = []
        metadata = RequestMetadata("3.7", require_leader=True)
        self.monitor = LeaderMonitor(self.ready, metadata, self.on_leader, lambda: 0.5)

    def ready(self) -> tuple[SubConnection, ...]:
        found = self.balancer.pick()
        return () if found is None else (found,)

    def on_leader(self, leader: SubConnection | None) -> None:
        self.leaders.append(None if leader is None else leader.endpoint_name)

    async def closed(self) -> None:
        await self.monitor.aclose()
        await self.balancer.aclose()
        assert not tasks()


async def test_it_searches_once_and_reports_the_leader() -> None:
    world = await World(LEADS).started()
    world.monitor.search()
    world.monitor.search()
    await asyncio.sleep(1)
    assert world.leaders == ["m1:2379"]
    assert world.searches() == 1
    await world.closed()


async def test_it_does_not_search_while_no_member_is_connected() -> None:
    world = World(then=LEADS)
    world.monitor.search()
    await turns()
    assert not tasks()
    assert not timers()
    await world.started()
    world.monitor.search()
    await asyncio.sleep(1)
    assert world.leaders == ["m1:2379"]
    await world.closed()


async def test_a_change_during_a_search_makes_it_search_again() -> None:
    world = await World(then=LEADS).started()
    world.monitor.search()
    await turns()
    world.monitor.search()
    await asyncio.sleep(1)
    assert world.searches() == 2
    await world.closed()


async def test_it_searches_until_a_leader_is_found_slower_and_slower() -> None:
    world = await World(*[GONE] * 6, LEADS).started()
    world.monitor.search()
    await asyncio.sleep(10)
    assert world.leaders == [None] * 6 + ["m1:2379"]
    gaps = [later.at - earlier.at for earlier, later in pairwise(world.asked(STATUS.path))]
    assert gaps == sorted(gaps)
    assert gaps[-1] < 1.1
    assert timers() == 0
    await world.closed()


async def test_no_member_is_asked_while_none_is_ready() -> None:
    world = World()
    world.monitor.search()
    await asyncio.sleep(1)
    assert not world.engine.attempts
    await world.closed()


async def test_closing_ends_the_search() -> None:
    world = await World().started()
    world.monitor.search()
    await asyncio.sleep(0.05)
    await world.closed()
    world.monitor.search()
    assert not tasks()


# Which member it believes.


async def in_use(calls: Calls) -> tuple[SubConnection, ...]:
    await calls.ready()
    found = tuple(calls.balancer.sub_connection(name) for name in calls.names)
    return tuple(one for one in found if one is not None)


@pytest.mark.parametrize(
    ("answers", "leader"),
    [
        ((status(1, 2, 5), status(2, 2, 5), status(3, 2, 5)), "m2:2379"),
        ((status(1, 1, 5), status(2, 2, 6), status(3, 2, 6)), "m2:2379"),
        ((status(1, 1, 6), status(2, 2, 5), GONE), "m1:2379"),
        ((status(1, 1, 5), GONE, status(3, 2, 6)), None),
        ((status(1, 0, 6), status(2, 0, 6), status(3, 0, 6)), None),
        ((GONE, b"\xff", status(3, 3, 6)), "m3:2379"),
        ((GONE, GONE, GONE), None),
        ((status(0, 0, 0), GONE, GONE), None),
    ],
)
async def test_the_leader_is_the_member_that_says_so_in_the_newest_term(
    answers: tuple[bytes | AttemptFailure, ...], leader: str | None
) -> None:
    calls = Calls()
    for name, answer in zip(("m1", "m2", "m3"), answers, strict=True):
        calls[name].answers.append(answer)
    found = await find_leader(await in_use(calls))
    assert (found.endpoint_name if found else None) == leader
    await calls.aclose()


async def test_members_are_asked_with_the_token_that_there_is() -> None:
    calls = Calls(pick="leader_first", credentials=StaticToken("jwt-c4n4ry"))
    await calls.ready()
    await turns()
    assert [dict(attempt.metadata).get("token") for attempt in calls.engine.attempts[:3]] == ["jwt-c4n4ry"] * 3
    await calls.aclose()
