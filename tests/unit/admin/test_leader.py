"""admin/leader.py, admin/status.py: finds the leader and moves the leadership, over fake members."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from etcd_aio import codec, pb
from etcd_aio.admin.leader import LeaderTransfer
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
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
        leader: the leader, 0 for none; each member reports it, unless `opinions` has another one for this member.
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


async def test_only_the_leader_gets_the_request() -> None:
    cluster = Cluster()
    for leader, target in ((1, 2), (2, 3), (3, 1)):
        assert cluster.leader == leader
        await cluster.move(target)
    assert cluster.moves() == ["m1", "m2", "m3"]
    sent = requests(cluster.calls, MOVE_LEADER, pb.MoveLeaderRequest)
    assert [request.target_id for request in sent] == [2, 3, 1]
    await cluster.calls.aclose()
    assert not tasks()


async def test_nothing_is_sent_if_the_member_leads_already() -> None:
    cluster = Cluster()
    await cluster.move(1)
    assert not cluster.moves()
    await cluster.calls.aclose()


async def test_of_two_leaders_the_one_of_the_later_term_gets_the_request() -> None:
    cluster = Cluster()
    cluster.leader = 2
    cluster.opinions[1] = (1, 1)  # it was cut off, and has not heard of the election
    await cluster.move(3)
    assert cluster.moves() == ["m2"]
    await cluster.calls.aclose()


async def test_a_frozen_member_hardly_delays_the_transfer() -> None:
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


async def test_a_transfer_waits_for_an_election() -> None:
    cluster = Cluster()
    cluster.leader = 0
    cluster.calls.loop.call_later(1.2, cluster.elect, 3)
    await cluster.move(2)
    assert cluster.moves() == ["m3"]
    await cluster.calls.aclose()


async def test_after_a_lost_answer_the_leader_is_looked_up_and_not_asked_again() -> None:
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


async def test_a_request_that_was_lost_before_it_took_effect_is_sent_again() -> None:
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


async def test_if_the_leader_changed_meanwhile_it_is_looked_up_again() -> None:
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
async def test_a_transfer_that_never_succeeds_ends_with_the_last_error(
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


async def test_a_permanent_error_is_raised_at_once() -> None:
    cluster = Cluster()

    def refuse(target: int) -> None:
        raise refused("etcdserver: bad leader transferee")

    cluster.on_move = refuse
    with pytest.raises(BadLeaderTransfereeError) as caught:
        await cluster.move(9)
    assert not caught.value.maybe_applied
    assert cluster.moves() == ["m1"]
    await cluster.calls.aclose()


async def test_a_leader_that_is_no_endpoint_of_the_client_is_named_in_the_error() -> None:
    cluster = Cluster()
    cluster.leader = 0xBEEF
    with pytest.raises(UnknownEndpointError, match="the leader, member beef, is not an endpoint"):
        await cluster.move(2)
    assert not cluster.moves()
    await cluster.calls.aclose()


async def test_a_leader_that_does_not_answer_yet_may_be_one_of_the_endpoints() -> None:
    cluster = Cluster()
    cluster.calls["m1"].answers.append(Hang())
    await cluster.move(2)
    assert cluster.moves() == ["m1"]
    assert cluster.leader == 2
    await cluster.calls.aclose()


async def test_without_a_leader_the_call_ends_by_its_timeout() -> None:
    cluster = Cluster()
    cluster.leader = 0
    started = cluster.calls.loop.time()
    with pytest.raises(EtcdTimeoutError, match="no leader was found"):
        await cluster.move(2, timeout=2.0)
    assert cluster.calls.loop.time() - started <= 2.0
    await cluster.calls.aclose()


async def test_without_any_answer_the_error_has_the_reason_of_every_endpoint() -> None:
    cluster = Cluster()
    for name in cluster.calls.names:
        cluster.calls.engine[name].otherwise = unknown()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await cluster.move(2, timeout=2.0)
    assert list(caught.value.errors) == cluster.calls.names
    assert all(isinstance(error, ConnectionLostError) for error in caught.value.errors.values())
    await cluster.calls.aclose()


async def test_a_closed_client_raises_at_once() -> None:
    cluster = Cluster()
    await cluster.calls.aclose()
    with pytest.raises(ClientClosedError):
        await cluster.move(2)


async def test_a_cancelled_transfer_leaves_no_call_behind() -> None:
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
