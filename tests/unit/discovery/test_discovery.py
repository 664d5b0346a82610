"""discovery/discovery.py, discovery/resolver.py, discovery/tracked.py: member lists, DNS answers, in virtual time."""

import asyncio
import logging

import pytest

from etcd_aio.balancer import parse_endpoints
from etcd_aio.discovery import discovery
from etcd_aio.errors import ConnectError, ConnectionLostError, DiscoveryError, NoAvailableEndpointsError
from etcd_aio.types import Member
from tests.support.discoveries import FakeResolver, Setup, member
from tests.support.fake_engine import Accept, Hang
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_the_static_list_is_always_the_same_and_sends_no_query() -> None:
    setup = await Setup("m1,m2").started()
    assert setup.discovery._task is None, "there is nothing to keep current"
    setup.fail("m1", "m2")
    await asyncio.sleep(100)
    assert (setup.names, setup.listed) == (["m1:2379", "m2:2379"], [])
    assert not setup.balancer.unresolved
    await setup.closed()


# sync.


async def test_the_members_become_the_endpoints_and_those_that_stay_stay_connected() -> None:
    setup = await Setup("m1,http://m2").started()
    assert await setup.discovery.sync(5.0) == ("m1:2379", "http://m2:2379", "http://m3:2379")
    await turns()
    assert setup.names == ["m1:2379", "http://m2:2379", "http://m3:2379"]
    assert setup.dials() == {"m1": 1, "m2": 1, "m3": 1}
    setup.members = [member(3), member(1)]
    assert await setup.discovery.sync(5.0) == ("m1:2379", "http://m3:2379")
    assert setup.dials() == {"m1": 1, "m2": 1, "m3": 1}
    assert setup.engine["m2:2379"].connection.is_lost
    await setup.closed()


async def test_learners_and_members_that_never_started_are_left_out() -> None:
    setup = await Setup("http://m1").started()
    setup.members = [member(1), member(2, is_learner=True), member(3, name=""), Member(4, "m4")]
    assert await setup.discovery.sync(5.0) == ("http://m1:2379",)
    await setup.closed()


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([], "no voting member"),
        ([member(2, is_learner=True)], "no voting member"),
        ([member(2, "http://0.0.0.0:2379")], "listen"),
        ([member(2, "http://localhost:2379")], "local address"),
        ([member(2, "http://u:c4n4ry@m2:2379")], "credentials"),
    ],
)
async def test_an_answer_without_an_endpoint_is_refused(members: list[Member], says: str) -> None:
    setup = await Setup("http://m1").started()
    setup.members = members
    with pytest.raises(DiscoveryError, match=says) as caught:
        await setup.discovery.sync(5.0)
    assert "c4n4ry" not in str(caught.value)
    assert setup.names == ["http://m1:2379"]
    await setup.closed()


async def test_a_client_with_tls_learns_no_plaintext() -> None:
    setup = await Setup("http://m1", has_tls=True).started()
    setup.members = [member(1), member(2)]
    assert await setup.discovery.sync(5.0) == ("http://m1:2379",), "its own one is believed"
    setup.members = [member(2)]
    with pytest.raises(DiscoveryError, match="plaintext"):
        await setup.discovery.sync(5.0)
    await setup.closed()


async def test_the_last_connection_is_not_given_up_for_addresses_that_cannot_be_reached() -> None:
    setup = await Setup("http://balancer:2379").started()
    setup.fail("m1", "m2")
    setup.engine["m3:2379"].dial = Hang()
    seen: list[int] = []
    setup.loop.call_later(1.0, lambda: seen.append(setup.balancer.ready_count))
    with pytest.raises(DiscoveryError, match="none of the endpoints") as caught:
        await setup.discovery.sync(5.0)
    cause = caught.value.__cause__
    assert isinstance(cause, NoAvailableEndpointsError)
    assert set(cause.errors) == {"http://m1:2379", "http://m2:2379", "http://m3:2379"}
    assert seen == [1], "calls had somewhere to go all the time"
    assert setup.names == ["http://balancer:2379"]
    await setup.closed()


async def test_the_new_ones_take_over_once_one_of_them_is_connected() -> None:
    setup = await Setup("http://balancer:2379").started()
    setup.fail("m1", "m2")
    setup.engine["m3:2379"].dial = Accept(seconds=1.5)
    await setup.discovery.sync(5.0)
    assert setup.names == ["http://m1:2379", "http://m2:2379", "http://m3:2379"]
    assert setup.balancer.ready_count == 1
    await setup.closed()


@pytest.mark.parametrize("seconds", [0.0, 0.5])
async def test_a_cancelled_sync_leaves_the_old_endpoints(seconds: float) -> None:
    setup = await Setup("http://balancer:2379").started()
    setup.fail("m1", "m2", "m3")
    task = asyncio.ensure_future(setup.discovery.sync(5.0))
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert setup.names == ["http://balancer:2379"]
    await setup.closed()


async def test_a_cancelled_sync_does_not_undo_what_the_user_has_just_set() -> None:
    setup = await Setup("http://balancer:2379").started()
    setup.fail("m1", "m2", "m3")
    task = asyncio.ensure_future(setup.discovery.sync(5.0))
    await asyncio.sleep(0.5)
    setup.discovery.set_endpoints(parse_endpoints("http://other"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert setup.names == ["http://other:2379"]
    await setup.closed()


@pytest.mark.parametrize("is_reachable", [True, False])
@pytest.mark.parametrize("when", ["while members are listed", "while new endpoints are connected"])
async def test_a_sync_does_not_undo_what_the_user_sets_meanwhile(when: str, is_reachable: bool) -> None:
    setup = await Setup("http://balancer:2379").started()
    if is_reachable:
        setup.engine["m1:2379"].dial = setup.engine["m2:2379"].dial = Hang()
        setup.engine["m3:2379"].dial = Accept(seconds=1.5)
    else:
        setup.fail("m1", "m2", "m3")

    def set_other() -> None:
        setup.discovery.set_endpoints(parse_endpoints("http://other"))

    if when == "while members are listed":
        setup.before_listing = set_other
    else:
        setup.loop.call_later(1.0, set_other)
    assert await setup.discovery.sync(5.0) == ("http://other:2379",)
    assert setup.names == ["http://other:2379"]
    await asyncio.sleep(5.0)
    assert setup.names == ["http://other:2379"]
    await setup.closed()


async def test_records_that_were_asked_for_before_the_user_set_endpoints_are_dropped() -> None:
    resolver = FakeResolver()
    resolver.says, resolver.takes, resolver.ttl = "m1,m2", 3.0, 60.0
    setup = await Setup(resolver=resolver).started()
    setup.discovery.set_endpoints(parse_endpoints("http://other"))
    await asyncio.sleep(5.0)
    assert setup.names == ["http://other:2379"]
    await asyncio.sleep(65.0)
    assert setup.names == ["m1:2379", "m2:2379"], "the next answer is as good as any"
    await setup.closed()


async def test_what_the_client_would_have_refused_is_not_learnt_either() -> None:
    setup = await Setup("http://m1").started()
    setup.unfit = "http://m2:2379"
    with pytest.raises(DiscoveryError, match="must not be used: credentials"):
        await setup.discovery.sync(5.0)
    assert setup.names == ["http://m1:2379"]
    await setup.closed()
    resolver = FakeResolver()
    resolver.says = "http://m2"
    setup = Setup(resolver=resolver)
    setup.unfit = "http://m2:2379"
    await setup.started()
    with pytest.raises(NoAvailableEndpointsError, match="credentials"):
        await setup.balancer.wait_for_pick(setup.loop.time() + 3.0)
    assert not setup.engine.members
    await setup.closed()


# auto_sync.


async def test_without_auto_sync_there_is_no_task() -> None:
    setup = await Setup("m1").started()
    assert not [task for task in tasks() if "discovery" in task.get_name()]
    await asyncio.sleep(1000)
    assert not setup.listed
    await setup.closed()


async def test_auto_sync_goes_on_and_on_beginning_after_one_interval() -> None:
    setup = await Setup("m1", auto_sync=30.0).started()
    started = setup.loop.time()
    assert [task.get_name() for task in tasks() if "discovery" in task.get_name()] == ["etcd_aio discovery"]
    await asyncio.sleep(100)
    assert [round(at - started) for at in setup.listed] == [30, 60, 90]
    assert setup.names == ["m1:2379", "http://m2:2379", "http://m3:2379"]
    await setup.closed()


async def test_the_schedule_is_jittered() -> None:
    setup = Setup("m1", auto_sync=30.0)
    setup.discovery._random = lambda: 0.0
    await setup.started()
    started = setup.loop.time()
    await asyncio.sleep(29)
    assert [round(at - started) for at in setup.listed] == [27]
    await setup.closed()


async def test_failures_are_logged_once_and_tried_again_sooner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.discovery")
    setup = await Setup("m1", auto_sync=30.0).started()
    setup.members = ConnectionLostError("gone")
    started = setup.loop.time()
    await asyncio.sleep(33.9)
    assert [round(at - started, 1) for at in setup.listed] == [30.0, 30.5, 31.5, 33.5]
    setup.members = ValueError("a bug")  # whatever it is
    await asyncio.sleep(10)
    setup.members = [member(1), member(2)]
    await asyncio.sleep(60)
    assert setup.names == ["m1:2379", "http://m2:2379"]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "auto_sync failed" in warnings[0]
    assert "auto_sync works again" in caplog.messages
    await setup.closed()


async def test_while_nothing_is_connected_the_named_endpoints_are_tried_too() -> None:
    setup = await Setup("http://seed", auto_sync=30.0).started()
    await asyncio.sleep(31)
    assert setup.names == ["http://m1:2379", "http://m2:2379", "http://m3:2379"]
    setup.fail("m1", "m2", "m3")
    await asyncio.sleep(2.0)
    assert setup.names == ["http://seed:2379", "http://m1:2379", "http://m2:2379", "http://m3:2379"]
    await turns()
    assert setup.balancer.ready_count == 1
    setup.members = [member(4)]
    await asyncio.sleep(31)
    assert setup.names == ["http://m4:2379"]
    await setup.closed()


async def test_members_are_not_listed_while_nothing_is_connected() -> None:
    setup = Setup("m1,m2", auto_sync=5.0)
    setup.fail("m1", "m2")
    await setup.started()
    await asyncio.sleep(60)
    assert not setup.listed
    await setup.closed()


async def test_what_the_user_sets_is_what_the_client_goes_back_to() -> None:
    setup = await Setup("http://seed", auto_sync=30.0).started()
    setup.discovery.set_endpoints(parse_endpoints("http://other"))
    await asyncio.sleep(31)
    setup.fail("m1", "m2", "m3")
    await asyncio.sleep(2.0)
    assert setup.names[0] == "http://other:2379"
    await setup.closed()


# Resolvers that have to be asked.


async def test_a_client_without_endpoints_asks_and_calls_wait_for_the_answer() -> None:
    resolver = FakeResolver()
    resolver.says, resolver.takes = "m1,m2", 0.5
    setup = await Setup(resolver=resolver).started()
    assert setup.names == []
    chosen = await setup.balancer.wait_for_pick(setup.loop.time() + 5.0)
    assert chosen.endpoint_name in setup.names
    assert setup.names == ["m1:2379", "m2:2379"]
    await setup.closed()


async def test_calls_that_waited_in_vain_raise_the_error_of_the_resolver() -> None:
    resolver = FakeResolver()
    resolver.says = DiscoveryError("NXDOMAIN")
    setup = await Setup(resolver=resolver).started()
    with pytest.raises(NoAvailableEndpointsError, match="the records: DiscoveryError: NXDOMAIN"):
        await setup.balancer.wait_for_pick(setup.loop.time() + 3.0)
    assert 2 <= len(resolver.asked) <= 5, "tried again, with growing waits"
    resolver.says = "m1"
    await asyncio.sleep(5)
    assert setup.balancer.ready_count == 1
    assert not setup.balancer.no_available_endpoints("nobody").errors
    await setup.closed()


async def test_records_are_read_again_when_their_time_is_over() -> None:
    resolver = FakeResolver()
    resolver.says = "m1,m2"
    setup = await Setup(resolver=resolver).started()
    await turns()
    started = setup.loop.time()
    resolver.says = "m2,m3"
    await asyncio.sleep(53)
    assert setup.names == ["m1:2379", "m2:2379"]
    await asyncio.sleep(2)
    assert setup.names == ["m2:2379", "m3:2379"]
    assert setup.dials() == {"m1": 1, "m2": 1, "m3": 1}
    resolver.ttl = 0.0
    await asyncio.sleep(100)
    assert [round(at - started) for at in resolver.asked] == [
        0,
        54,
        108,
        112,
        117,
        122,
        126,
        130,
        135,
        140,
        144,
        148,
        153,
    ]
    await setup.closed()


async def test_old_answers_hold_while_the_resolver_fails() -> None:
    resolver = FakeResolver()
    resolver.says = "m1,m2"
    setup = await Setup(resolver=resolver).started()
    await turns()
    resolver.says = DiscoveryError("SERVFAIL")
    await asyncio.sleep(600)
    assert len(resolver.asked) > 10
    assert setup.names == ["m1:2379", "m2:2379"]
    assert setup.balancer.ready_count == 2
    await setup.closed()


async def test_while_nothing_is_connected_the_resolver_is_asked_with_growing_waits() -> None:
    resolver = FakeResolver()
    resolver.says, resolver.ttl = "m1,m2", 3000.0
    setup = await Setup(resolver=resolver).started()
    await asyncio.sleep(10)
    setup.fail("m1", "m2")
    lost = setup.loop.time()
    await asyncio.sleep(61)
    assert [round(at - lost) for at in resolver.asked[1:]] == [1, 3, 7, 15, 30, 45, 60]
    resolver.says = "m3"
    await asyncio.sleep(16)
    assert setup.names == ["m3:2379"]
    assert setup.balancer.ready_count == 1
    asked = len(resolver.asked)
    await asyncio.sleep(500)
    assert len(resolver.asked) == asked, "and not once it works again"
    await setup.closed()


async def test_with_auto_sync_members_are_asked_once_there_are_connections() -> None:
    resolver = FakeResolver()
    resolver.says = "http://m1"
    setup = await Setup(resolver=resolver, auto_sync=20.0).started()
    await asyncio.sleep(21)
    assert setup.names == ["http://m1:2379", "http://m2:2379", "http://m3:2379"]
    resolver.says = "http://m9"
    seen: list[int] = []
    setup.before_listing = lambda: seen.append(len(setup.names))
    await asyncio.sleep(20)
    assert seen == [3], "members know best who they are"
    assert "m9" not in setup.dials()
    assert len(resolver.asked) == 3
    await setup.closed()


async def test_a_lost_connection_that_comes_back_causes_no_query() -> None:
    resolver = FakeResolver()
    resolver.says, resolver.ttl = "m1", 3000.0
    setup = await Setup(resolver=resolver).started()
    await asyncio.sleep(10)
    for _ in range(20):
        setup.engine["m1:2379"].connection.lose(ConnectError("reset"))
        await asyncio.sleep(3)
    assert len(resolver.asked) == 1
    await setup.closed()


async def test_closing_ends_a_question_under_way() -> None:
    resolver = FakeResolver()
    resolver.takes = 1000.0
    setup = await Setup(resolver=resolver).started()
    started = setup.loop.time()
    await setup.closed()
    assert setup.loop.time() - started < 0.1


async def test_a_slow_name_server_has_more_time_than_a_dial_and_calls_say_what_they_wait_for() -> None:
    resolver = FakeResolver()
    resolver.says, resolver.takes = "m1", 8.0
    setup = Setup(resolver=resolver)
    setup.balancer.start()
    setup.discovery.start()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await setup.balancer.wait_for_pick(setup.loop.time() + 5.0)
    assert {name: str(error) for name, error in caught.value.errors.items()} == {
        "the records": "DNS has not answered yet"
    }
    await setup.balancer.wait_for_pick(setup.loop.time() + 5.0)
    assert resolver.timeouts == {discovery._RESOLVE_TIMEOUT} == {10.0}
    assert setup.balancer.unresolved == {}
    await setup.closed()
