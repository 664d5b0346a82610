"""balancer/redialler.py: when the client moves to another connection of one address, and when it stays."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import PolicyName
from etcd_aio.balancer.redial_schedule import PATIENCE
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, NoLeaderError, StatusCode
from etcd_aio.methods import RANGE, STATUS
from etcd_aio.types import ConnectivityState, Health
from tests.support.balancers import BalancerWorld
from tests.support.calls import learner, no_leader
from tests.support.fake_engine import Accept, Answer, FakeConnection, Hang, Refuse
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio

SERVES = codec.encode(pb.RangeResponse(header=pb.ResponseHeader(cluster_id=7)))
OF_ANOTHER_CLUSTER = codec.encode(pb.RangeResponse(header=pb.ResponseHeader(cluster_id=8)))
HANGS = Hang()
REFUSES = AttemptFailure(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied", Delivery.ANSWERED)


class World(BalancerWorld):
    """One endpoint, m1; its first connection leads to the first of these members, and so on."""

    def __init__(self, *behind: Answer, endpoints: str = "m1", policy: PolicyName = "round_robin") -> None:
        super().__init__(endpoints, policy)
        self.balancer.identity.cluster_id = 7
        self["m1"].behind = list(behind)
        self.attempts: list[asyncio.Task[bytes]] = []

    def call(self, *, may_move: bool = False, seconds: float = 7.0) -> "asyncio.Task[bytes]":
        picked = self.balancer.pick()
        assert picked is not None
        work = picked.unary("/x", b"", (), self.loop.time() + seconds, may_move=may_move)
        self.attempts.append(asyncio.ensure_future(work))
        return self.attempts[-1]

    async def call_for(self, seconds: float) -> None:
        """Ten calls a second, which may fail."""
        end = self.loop.time() + seconds
        while self.loop.time() < end:
            self.call()
            await asyncio.sleep(0.1)

    @property
    def connections(self) -> list[FakeConnection]:
        return self["m1"].connections

    @property
    def open(self) -> list[int]:
        """The numbers of the connections to m1 that are open."""
        return [number for number, one in enumerate(self.connections) if not one.is_lost]


@asynccontextmanager
async def world(*behind: Answer, endpoints: str = "m1", policy: PolicyName = "round_robin") -> AsyncIterator[World]:
    made = await World(*behind, endpoints=endpoints, policy=policy).started()
    yield made
    for attempt in made.attempts:
        attempt.cancel()
    await asyncio.gather(*made.attempts, return_exceptions=True)
    await made.balancer.aclose()
    assert not tasks()
    assert all(one.is_lost for member in made.engine.members.values() for one in member.connections)


async def test_the_client_moves_to_a_connection_that_serves(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    async with world(no_leader(), SERVES) as it:
        await it.call_for(PATIENCE - 0.1)
        assert it.open == [0], "an election would not be over"
        await it.call_for(0.3)
        assert it.open == [1], "the old one had nothing to finish"
        assert await it.call() == SERVES
        [found] = it.balancer.statistics()
        assert (found.state, found.health) == (ConnectivityState.READY, Health.HEALTHY)
        assert (found.connects, found.in_flight) == (2, 0)
        assert found.last_error is None
        assert found.attempts >= 27, "those of both connections"
        await it.call_for(60)
        assert it.open == [1]
        assert len(it.connections) == 2
    assert [one.message.partition(": ")[2] for one in caplog.records] == [
        "unhealthy for linearizable calls: no leader: etcdserver: no leader",
        "moved to another connection of the same endpoint, over which calls are served, after 2.5 s",
    ]


async def test_a_member_that_leaves_writes_unanswered_is_left_too() -> None:
    """A leader that is cut off has no refusal to give for some seconds."""
    async with world(HANGS, SERVES) as it:
        read, write = it.call(may_move=True), it.call()
        await asyncio.sleep(3.5)
        assert len(it.connections) == 2
        with pytest.raises(AttemptFailure) as caught:
            await read
        assert caught.value.reason is LocalReason.GIVEN_UP
        assert not write.done(), "it may have been applied, so it stays"
        assert it.open == [0, 1], "so does its connection"
        assert await it.call() == SERVES
        with pytest.raises(AttemptFailure, match="deadline"):
            await write
        await turns()
        assert it.open == [1]


async def test_an_idle_client_whose_calls_have_ended_moves_all_the_same() -> None:
    async with world(HANGS, SERVES) as it:
        with pytest.raises(AttemptFailure):
            await it.call(seconds=1.0)
        await asyncio.sleep(6)
        assert it.open == [1]
        count = len(it.engine.attempts)
        await asyncio.sleep(60)
        assert len(it.engine.attempts) == count, "an idle healthy client sends nothing"


async def test_slow_calls_of_a_member_that_serves_move_nothing() -> None:
    async with world() as it:
        it["m1"].otherwise = SERVES
        it["m1"].work = lambda attempt: 20.0 if attempt.path == "/x" else 0.01
        slow = it.call(seconds=60.0)
        await slow
        assert len(it.connections) == 1
        assert len(it.engine.attempts) < 15, "one question in two seconds"


@pytest.mark.parametrize("silent", [True, False])
async def test_an_ordinary_election_dials_nothing(*, silent: bool) -> None:
    async with world() as it:
        it["m1"].otherwise = HANGS if silent else no_leader()
        it.call(may_move=True)
        await asyncio.sleep(2.0)
        it["m1"].otherwise = SERVES
        await asyncio.sleep(10)
        assert it.open == [0]
        assert len(it.connections) == 1


async def test_streams_move_along() -> None:
    async with world(HANGS, SERVES) as it:
        left: list[str] = []
        old = await it.sub("m1").open_stream("/w", (), it.loop.time() + 1, left.append)
        it.call()
        await asyncio.sleep(3.5)
        assert left == ["moved to another connection of the same endpoint, over which calls are served"]
        assert it.balancer.statistics()[0].streams == 1
        new = await it.sub("m1").open_stream("/w", (), it.loop.time() + 1, left.append)
        old.cancel()
        await asyncio.sleep(7)
        assert it.open == [1]
        assert it.balancer.statistics()[0].streams == 1
        new.cancel()


@pytest.mark.parametrize(
    "other",
    [
        no_leader(),
        learner(),
        HANGS,
        OF_ANOTHER_CLUSTER,
        b"\xff",
        AttemptFailure(StatusCode.UNAVAILABLE, "", Delivery.UNKNOWN),
    ],
    ids=["no leader", "a learner", "silent", "of another cluster", "malformed", "broken"],
)
async def test_the_client_stays_if_the_new_connection_is_no_better(other: Answer) -> None:
    async with world(no_leader(), other) as it:
        await it.call_for(70)
        assert it.open in ([0], [0, len(it.connections) - 1])
        assert 6 <= len(it.connections) <= 9, "at growing distances"
        [found] = it.balancer.statistics()
        assert (found.health, found.connects, found.last_error) == (Health.NO_LEADER, 1, None)


async def test_a_new_connection_that_cannot_be_made_changes_nothing() -> None:
    async with world(no_leader()) as it:
        it["m1"].dial = Refuse()
        await it.call_for(10)
        assert it.open == [0]
        [found] = it.balancer.statistics()
        assert (found.state, found.connects) == (ConnectivityState.READY, 1)
        it["m1"].dial = Accept(lost_at_once=True)
        await it.call_for(10)
        assert it.open == [0]


async def test_the_third_member_is_found_if_the_second_one_is_cut_off_as_well() -> None:
    async with world(no_leader(), no_leader(), SERVES) as it:
        await it.call_for(PATIENCE + 0.8)
        assert it.open == [2]


async def test_a_refusal_of_the_request_alone_is_served() -> None:
    """With authentication on, the probe is refused for want of a token."""
    async with world(no_leader(), REFUSES) as it:
        await it.call_for(3)
        assert it.open == [1]


async def test_the_client_stays_if_the_old_member_serves_again_meanwhile() -> None:
    async with world() as it:
        it["m1"].otherwise = no_leader()
        it["m1"].dial = Accept(seconds=1.0)
        await it.call_for(PATIENCE + 0.2)
        it["m1"].otherwise = SERVES
        await it.call_for(5)
        assert it.open == [0]
        assert len(it.connections) == 2


async def test_a_late_refusal_on_the_old_connection_says_nothing_about_the_new_one() -> None:
    async with world() as it:
        it["m1"].behind = [HANGS, SERVES]
        it.sub("m1").note_refusal(NoLeaderError())
        late = it.call()
        old = await it.sub("m1").open_stream("/w", (), it.loop.time() + 1)
        await asyncio.sleep(3.5)
        assert it.open == [0, 1]
        for future in it.connections[0]._running:
            future.set_exception(no_leader())
        with pytest.raises(AttemptFailure):
            await late
        old.note_end(NoLeaderError())
        assert it.sub("m1").quorum_health.health is Health.HEALTHY
        old.cancel()


async def test_the_new_connection_is_lost_and_made_again_as_every_other_one() -> None:
    async with world(no_leader(), SERVES, SERVES) as it:
        await it.call_for(3)
        assert it.open == [1]
        it.connections[1].lose(ConnectionResetError())
        await asyncio.sleep(0.1)
        assert it.open == [2]
        assert len(it["m1"].dials) == 3


@pytest.mark.parametrize("at", [PATIENCE + 0.1, PATIENCE + 1.5])
@pytest.mark.parametrize("removed", [True, False])
async def test_a_dial_under_way_ends_with_the_endpoint_and_with_the_client(at: float, *, removed: bool) -> None:
    async with world(no_leader(), HANGS) as it:
        it["m1"].dial = Accept(seconds=1.0)
        await it.call_for(at)
        if removed:
            it.balancer.set_endpoints([])
            await asyncio.sleep(4)
            assert it.open == []


async def test_several_endpoints_are_dialled_anew_in_turn_only_if_none_serves() -> None:
    async with world(endpoints="m1,m2,m3") as it:
        for name in ("m1", "m2"):
            it[name].otherwise = no_leader()
        it["m3"].otherwise = SERVES
        await it.call_for(20)
        assert [len(it[name].dials) for name in ("m1", "m2", "m3")] == [1, 1, 1]
        it["m3"].otherwise = no_leader()
        await it.call_for(60)
        again = [len(it[name].dials) - 1 for name in ("m1", "m2", "m3")]
        assert 5 <= sum(again) <= 8, "as many as of one endpoint"
        assert max(again) - min(again) <= 1


async def test_the_leader_is_searched_for_after_a_move() -> None:
    async with world(policy="leader_first") as it:
        it["m1"].otherwise = no_leader()
        await it.call_for(1)
        it["m1"].behind = [no_leader(), codec.encode(pb.StatusResponse(header=pb.ResponseHeader(7, 1), leader=1))]
        it.sub("m1").is_leader = True
        before = len([one for one in it.asked(STATUS.path) if one.at > it.loop.time()])
        await it.call_for(3)
        assert len(it.asked(STATUS.path)) > before
        assert it.open == [1]
    assert it.asked(RANGE.path)


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_a_pinned_client_compares_a_silent_member_with_another_one(policy: PolicyName) -> None:
    async with world(endpoints="m1,m2,m3", policy=policy) as it:
        await asyncio.sleep(0.1)
        [kept] = [one.endpoint for one in it.balancer.statistics() if one.state is ConnectivityState.READY]
        others = [it[name] for name in ("m1", "m2", "m3") if name != kept[:2]]
        it[kept[:2]].otherwise = HANGS
        for other in others:
            other.otherwise = SERVES
        read = it.call(may_move=True)
        await asyncio.sleep(2.0)
        assert it.balancer.ready_count == 1, "it may be an election"
        with pytest.raises(AttemptFailure) as caught:
            await read
        assert caught.value.reason is LocalReason.GIVEN_UP
        assert it.loop.time() < 1003.5
        await asyncio.sleep(0.5)
        [now] = [one.endpoint for one in it.balancer.statistics() if one.state is ConnectivityState.READY]
        assert now != kept


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_a_pinned_client_stays_where_it_is_through_a_long_election(policy: PolicyName) -> None:
    async with world(endpoints="m1,m2,m3", policy=policy) as it:
        await asyncio.sleep(0.1)
        [kept] = [one.endpoint for one in it.balancer.statistics() if one.state is ConnectivityState.READY]
        for name in ("m1", "m2", "m3"):
            it[name].otherwise = HANGS
        it.call(may_move=True)
        await asyncio.sleep(4.0)
        assert it.balancer.ready_count == 2, "it has one to compare with"
        for name in ("m1", "m2", "m3"):
            it[name].otherwise = SERVES
        await asyncio.sleep(5.0)
        assert [one.endpoint for one in it.balancer.statistics() if one.state is ConnectivityState.READY] == [kept]
