"""Finding the leader: whom to believe."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import SubConnection
from etcd_aio.balancer.leader import find_leader
from etcd_aio.error_handler.credentials import StaticToken
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from tests.support.calls import Calls

pytestmark = pytest.mark.anyio

GONE = AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN)


def status(member: int, leader: int, term: int) -> bytes:
    return codec.encode(pb.StatusResponse(header=pb.ResponseHeader(member_id=member), leader=leader, raft_term=term))


def subs(calls: Calls) -> tuple[SubConnection, ...]:
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
async def test_who_says_of_itself_that_it_leads_in_the_newest_term(
    answers: tuple[bytes | AttemptFailure, ...], leader: str | None
) -> None:
    calls = await Calls().ready()
    for name, answer in zip(("m1", "m2", "m3"), answers, strict=True):
        calls[name].answers.append(answer)
    found = await find_leader(subs(calls))
    assert (found.endpoint_name if found else None) == leader
    await calls.aclose()


async def test_members_are_asked_with_the_token_that_there_is() -> None:
    calls = await Calls(credentials=StaticToken("jwt-c4n4ry")).ready()
    await calls.invoker.find_leader(subs(calls))
    assert [dict(attempt.metadata).get("token") for attempt in calls.engine.attempts[-3:]] == ["jwt-c4n4ry"] * 3
    await calls.aclose()
