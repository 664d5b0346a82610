"""admin/cluster.py: cluster calls: their requests, their results, and the arguments that they refuse."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from etcd_aio import pb
from etcd_aio.admin.cluster import Cluster, member_id
from etcd_aio.errors import ConnectionLostError, InvalidRequestError, MemberNotFoundError, StatusCode
from etcd_aio.methods import MEMBER_ADD, MEMBER_LIST, MEMBER_PROMOTE, MEMBER_REMOVE, MEMBER_UPDATE
from etcd_aio.types import Member
from tests.support.answers import always, asked, header, refused, requests
from tests.support.calls import Calls, unknown

pytestmark = pytest.mark.anyio

SENT = pb.Member(id=2**63 + 5, name="m2", peer_urls=["http://h:2380"], client_urls=["http://h:2379"])
FOUND = Member(2**63 + 5, "m2", ("http://h:2380",), ("http://h:2379",))


async def new(answer: pb.Message) -> tuple[Calls, Cluster]:
    calls = await Calls().ready()
    for member in calls.engine.members.values():
        member.otherwise = always(answer)
    return calls, Cluster(calls.invoker)


@pytest.mark.parametrize("serializable", [False, True])
async def test_members_are_listed_linearizably_or_locally(serializable: bool) -> None:
    calls, cluster = await new(pb.MemberListResponse(header=header(), members=[SENT, pb.Member(id=3)]))
    listing = await cluster.members(serializable=serializable)
    assert listing.members == (FOUND, Member(3))
    assert listing.header.revision == 7
    assert requests(calls, MEMBER_LIST, pb.MemberListRequest) == [pb.MemberListRequest(linearizable=not serializable)]
    (attempt,) = calls.engine.attempts
    assert (("hasleader", "true") in attempt.metadata) is not serializable
    await calls.aclose()


@pytest.mark.parametrize("is_learner", [False, True])
async def test_adding_sends_the_peer_urls_and_returns_the_member(is_learner: bool) -> None:
    calls, cluster = await new(pb.MemberAddResponse(header=header(), member=pb.Member(id=3), members=[SENT]))
    add = cluster.add_learner if is_learner else cluster.add
    added = await add(["http://i:2380", "http://j:2380"])
    assert (added.member, added.members) == (Member(3), (FOUND,))
    expected = pb.MemberAddRequest(peer_urls=["http://i:2380", "http://j:2380"], is_learner=is_learner)
    assert requests(calls, MEMBER_ADD, pb.MemberAddRequest) == [expected]
    await calls.aclose()


async def test_an_answer_without_a_member_has_an_empty_one() -> None:
    calls, cluster = await new(pb.MemberAddResponse())
    assert (await cluster.add("http://i:2380")).member == Member()
    await calls.aclose()


@pytest.mark.parametrize("member", [FOUND, FOUND.id], ids=["member", "id"])
async def test_remove_update_and_promote_take_an_id_or_a_member(member: int | Member) -> None:
    calls, cluster = await new(pb.MemberRemoveResponse(members=[SENT]))  # the three replies are alike
    assert (await cluster.remove(member)).members == (FOUND,)
    assert (await cluster.promote(member)).members == (FOUND,)
    assert (await cluster.update(member, "http://i:1")).members == (FOUND,)
    assert requests(calls, MEMBER_REMOVE, pb.MemberRemoveRequest) == [pb.MemberRemoveRequest(id=FOUND.id)]
    assert requests(calls, MEMBER_PROMOTE, pb.MemberPromoteRequest) == [pb.MemberPromoteRequest(id=FOUND.id)]
    updates = requests(calls, MEMBER_UPDATE, pb.MemberUpdateRequest)
    assert updates == [pb.MemberUpdateRequest(id=FOUND.id, peer_urls=["http://i:1"])]
    await calls.aclose()


async def test_a_change_without_an_answer_is_not_repeated() -> None:
    calls, cluster = await new(pb.MemberAddResponse())
    calls["m1"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await cluster.add("http://i:2380")
    assert caught.value.maybe_applied
    assert asked(calls, MEMBER_ADD) == ["m1"]
    await calls.aclose()


async def test_a_refusal_raises_the_class_of_its_text() -> None:
    calls, cluster = await new(pb.MemberRemoveResponse())
    calls["m1"].answers.append(refused("etcdserver: member not found", StatusCode.NOT_FOUND))
    with pytest.raises(MemberNotFoundError) as caught:
        await cluster.remove(7)
    assert not caught.value.maybe_applied
    await calls.aclose()


WRONG: list[tuple[Callable[[Any], Awaitable[object]], type[Exception]]] = [
    (lambda cluster: cluster.add("m1:2380"), InvalidRequestError),
    (lambda cluster: cluster.add_learner([]), InvalidRequestError),
    (lambda cluster: cluster.update(5, "http://m1"), InvalidRequestError),
    (lambda cluster: cluster.update(0, "http://m1:1"), InvalidRequestError),
    (lambda cluster: cluster.remove(2**64), InvalidRequestError),
    (lambda cluster: cluster.remove("8e9e05c52164694d"), TypeError),
    (lambda cluster: cluster.promote(True), TypeError),
    (lambda cluster: cluster.promote(None), TypeError),
    (lambda cluster: cluster.members(serializable=1), TypeError),
]


@pytest.mark.parametrize(("call", "error"), WRONG)
async def test_invalid_arguments_are_not_sent(call: Callable[[Any], Awaitable[object]], error: type[Exception]) -> None:
    calls, cluster = await new(pb.MemberListResponse())
    with pytest.raises(error):
        await call(cluster)
    assert not calls.engine.attempts
    await calls.aclose()


def test_member_ids_use_all_64_bits() -> None:
    assert member_id(1) == 1
    assert member_id(Member(2**64 - 1)) == 2**64 - 1
    with pytest.raises(InvalidRequestError, match="to must be"):
        member_id(Member(), "to")
