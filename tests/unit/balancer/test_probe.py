"""The probe: what is asked, and what an answer says about the member that gave it."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import Health
from etcd_aio.balancer.probe import probe_health
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.methods import RANGE
from tests.support.calls import Calls

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("needs_leader", [True, False])
async def test_a_read_that_costs_next_to_nothing(needs_leader: bool) -> None:
    calls = await Calls().ready()
    member = calls["m1"]
    sub_connection = calls.balancer.sub_connection("m1:2379")
    assert sub_connection is not None
    await probe_health(sub_connection, needs_leader)
    [attempt] = member.attempts
    assert attempt.path == RANGE.path
    assert attempt.payload == codec.encode(
        pb.RangeRequest(key=b"health", keys_only=True, serializable=not needs_leader)
    )
    assert (("hasleader", "true") in attempt.metadata) is needs_leader


@pytest.mark.parametrize(
    ("failure", "health"),
    [
        (AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED), Health.NO_LEADER),
        (
            AttemptFailure(
                StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", Delivery.ANSWERED
            ),
            Health.LEARNER,
        ),
        (
            AttemptFailure(StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", Delivery.ANSWERED),
            Health.HEALTHY,
        ),
        (AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.UNKNOWN), Health.HEALTHY),
        (AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN), Health.HEALTHY),
    ],
)
async def test_what_its_answer_says_is_noted(failure: AttemptFailure, health: Health) -> None:
    calls = await Calls().ready()
    calls["m1"].answers.append(failure)
    sub_connection = calls.balancer.sub_connection("m1:2379")
    assert sub_connection is not None
    await probe_health(sub_connection, True)
    assert sub_connection.quorum.health is health
