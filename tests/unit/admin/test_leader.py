"""LeaderTransfer: who leads is found, and moved, over fake members that elect whom the test says."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from etcd_aio import codec, pb
from etcd_aio.admin.leader import LeaderTransfer
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import (
    AttemptFailure,
    BadLeaderTransfereeError,
    ClientClosedError,
    ConnectionLostError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    NotRaftLeaderError,
    TimeoutLeaderTransferError,
    UnknownEndpointError,
)
from etcd_aio.errors import StatusCode as Code
from etcd_aio.methods import MOVE_LEADER, STATUS
from tests.support.answers import asked, header, refused, requests
from tests.support.calls import Calls, unknown
from tests.support.fake_engine import FakeAttempt, Hang
from tests.support.virtual_time import tasks, turns

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

NOT_LEADER = "etcdserver: not leader"


class Cluster:
    """Members m1, m2, m3 with the ids 1, 2, 3.

    Attributes:
        leader: who leads, 0 is nobody; each member says so, unless `opinions` has another one for it.
        on_move: what becomes of a request that reached the leader; by default the leader changes and the answer comes.
    """

    def __init__(self) -> None:
        self.leader = 1
        self.term = 2
        self.opinions: dict[int, tuple[int, int]] = {}
        self.on_move: Callable[[int], object] = self.elect
        self.calls = Calls()
        for name in self.calls.names:
            self.calls.engine[name].otherwise = self._answer
        self.leadership = LeaderTransfer(self.calls.invoker)

    def elect(self, member: int) -> None:
        self.leader = member
        self.term += 1

    async def move(self, target: int, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> None:
        await self.leadership.move(target, timeout, retry)

    def moves(self) -> list[str]:
        return asked(self.calls, MOVE_LEADER)

    def _answer(self, attempt: FakeAttempt) -> bytes:
        own = int(attempt.member.authority[1])
        leader, term = self.opinions.get(own, (self.leader, self.term))
        if attempt.path == STATUS.path:
            return codec.encode(pb.StatusResponse(header=header(own, term), leader=leader, raft_term=term))
        if own != self.leader:
            raise refused(NOT_LEADER)
        self.on_move(codec.decode(pb.MoveLeaderRequest, attempt.payload).target_id)
        return codec.encode(pb.MoveLeaderResponse())


async def test_the_leader_is_asked_and_nobody_else() -> None:
    cluster = Cluster()
    for leader, target in ((1, 2), (2, 3), (3, 1)):
        assert cluster.leader == leader
        await cluster.move(target)
    assert cluster.moves() == ["m1", "m2", "m3"]
    sent = requests(cluster.calls, MOVE_LEADER, pb.MoveLeaderRequest)
    assert [request.target_id for request in sent] == [2, 3, 1]
    await cluster.calls.aclose()
    assert not tasks()


async def test_who_leads_already_is_left_alone() -> None:
    cluster = Cluster()
    await cluster.move(1)
    assert not cluster.moves()
    await cluster.calls.aclose()


async def test_of_two_leaders_that_of_the_later_term_is_believed() -> None:
    cluster = Cluster()
    cluster.leader = 2
    cluster.opinions[1] = (1, 1)  # it was cut off, and has not heard of the election
    await cluster.move(3)
    assert cluster.moves() == ["m2"]
    await cluster.calls.aclose()


async def test_a_frozen_member_is_hardly_waited_for() -> None:
    cluster = Cluster()
    await cluster.calls.ready()
    cluster.calls["m3"].otherwise = Hang()
    started = cluster.calls.loop.time()
    await cluster.move(2)
    assert cluster.calls.loop.time() - started < 0.2
    await turns()
    assert cluster.calls.in_flight() == 0, "what was asked of it is given up"
    await cluster.calls.aclose()
    assert not tasks()


async def test_an_election_is_waited_for() -> None:
    cluster = Cluster()
    cluster.leader = 0
    cluster.calls.loop.call_later(1.2, cluster.elect, 3)
    await cluster.move(2)
    assert cluster.moves() == ["m3"]
    await cluster.calls.aclose()


async def test_an_answer_that_was_lost_is_looked_up_and_not_asked_again() -> None:
    cluster = Cluster()

    def move(target: int) -> None:
        cluster.elect(target)
        raise unknown()

    cluster.on_move = move
    await cluster.move(2)
    assert cluster.moves() == ["m1"]
    await cluster.move(3, retry="never")
    assert cluster.moves() == ["m1", "m2"]
    await cluster.calls.aclose()


async def test_what_was_lost_before_it_was_done_is_asked_again() -> None:
    cluster = Cluster()
    failures = [unknown(), refused("etcdserver: request timed out, leader transfer took too long", Code.UNKNOWN)]

    def move(target: int) -> None:
        if failures:
            raise failures.pop()
        cluster.elect(target)

    cluster.on_move = move
    await cluster.move(2)
    assert cluster.moves() == ["m1", "m1", "m1"]
    await cluster.calls.aclose()


async def test_a_leader_that_was_deposed_meanwhile_is_looked_for_again() -> None:
    cluster = Cluster()

    def depose(target: int) -> None:
        cluster.elect(3)
        cluster.on_move = cluster.elect
        raise refused(NOT_LEADER)

    cluster.on_move = depose
    await cluster.move(2)
    assert cluster.moves() == ["m1", "m3"]
    assert cluster.leader == 2
    await cluster.calls.aclose()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (unknown(), ConnectionLostError),
        (refused(NOT_LEADER), NotRaftLeaderError),
        (
            refused("etcdserver: request timed out, leader transfer took too long", Code.UNKNOWN),
            TimeoutLeaderTransferError,
        ),
    ],
)
@pytest.mark.parametrize("retry", ["never", None])
async def test_what_never_succeeds_ends_with_its_reason(
    failure: AttemptFailure, error: type[Exception], retry: RetryMode | None
) -> None:
    cluster = Cluster()

    def fail(target: int) -> None:
        raise failure

    cluster.on_move = fail
    started = cluster.calls.loop.time()
    with pytest.raises(error):
        await cluster.move(2, retry=retry, timeout=3.0)
    assert cluster.calls.loop.time() - started <= 3.0
    assert 1 <= len(cluster.moves()) <= (1 if retry else 61)
    await cluster.calls.aclose()


async def test_a_final_answer_is_raised() -> None:
    cluster = Cluster()

    def refuse(target: int) -> None:
        raise refused("etcdserver: bad leader transferee")

    cluster.on_move = refuse
    with pytest.raises(BadLeaderTransfereeError) as caught:
        await cluster.move(9)
    assert not caught.value.maybe_applied
    assert cluster.moves() == ["m1"]
    await cluster.calls.aclose()


async def test_a_leader_that_the_client_does_not_know_is_named() -> None:
    cluster = Cluster()
    cluster.leader = 0xBEEF
    with pytest.raises(UnknownEndpointError, match="the leader, member beef, is not an endpoint"):
        await cluster.move(2)
    assert not cluster.moves()
    await cluster.calls.aclose()


async def test_without_a_leader_it_ends_in_time() -> None:
    cluster = Cluster()
    cluster.leader = 0
    started = cluster.calls.loop.time()
    with pytest.raises(EtcdTimeoutError, match="no leader was found"):
        await cluster.move(2, timeout=2.0)
    assert cluster.calls.loop.time() - started <= 2.0
    await cluster.calls.aclose()


async def test_without_any_answer_every_endpoint_has_its_reason() -> None:
    cluster = Cluster()
    for name in cluster.calls.names:
        cluster.calls.engine[name].otherwise = unknown()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await cluster.move(2, timeout=2.0)
    assert list(caught.value.errors) == cluster.calls.names
    assert all(isinstance(error, ConnectionLostError) for error in caught.value.errors.values())
    await cluster.calls.aclose()


async def test_what_no_member_lets_us_ask_is_raised_at_once() -> None:
    cluster = Cluster()
    await cluster.calls.aclose()
    with pytest.raises(ClientClosedError):
        await cluster.move(2)


async def test_cancelling_leaves_nothing() -> None:
    cluster = Cluster()
    await cluster.calls.ready()
    for name in cluster.calls.names:
        cluster.calls.engine[name].otherwise = Hang()
    task = asyncio.create_task(cluster.move(2, timeout=None))
    await turns()
    assert cluster.calls.in_flight() == 3
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError)
    assert cluster.calls.in_flight() == 0
    await cluster.calls.aclose()
    assert not tasks()
