"""balancer/balancer.py, balancer/pool.py, balancer/generation.py: endpoints are dialled, replaced and closed, and calls
wait for one of them.
"""

import asyncio
import random
import ssl
from collections.abc import Sequence

import pytest

from etcd_aio.balancer import Candidate, Endpoint, PolicyName, parse_endpoints
from etcd_aio.errors import (
    AttemptFailure,
    ClientClosedError,
    ConnectError,
    DiscoveryError,
    NoAvailableEndpointsError,
    NoLeaderError,
    UnknownEndpointError,
    WrongLoopError,
)
from etcd_aio.types import ConnectivityState
from tests.support.balancers import BalancerWorld
from tests.support.calls import no_leader
from tests.support.fake_engine import Accept, Hang, Refuse
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

NEVER = float("inf")


async def closed(world: BalancerWorld, within: float = 1.0) -> None:
    started = world.loop.time()
    await world.balancer.aclose()
    assert world.loop.time() - started <= within
    assert not tasks()
    assert world.balancer.pick() is None
    assert world.balancer.ready_count == 0
    with pytest.raises(ClientClosedError):
        await world.balancer.wait_for_pick(NEVER)


# Picking.


async def test_nothing_is_dialled_before_the_start_and_every_endpoint_after_it() -> None:
    world = BalancerWorld()
    await turns()
    assert not world.engine.members
    assert world.balancer.statistics() == ()
    await world.started()
    world.balancer.start()
    await turns()
    assert {name: len(member.dials) for name, member in world.engine.members.items()} == {
        "m1:2379": 1,
        "m2:2379": 1,
        "m3:2379": 1,
    }
    assert set(world.states().values()) == {"READY"}
    await closed(world)


async def test_picks_go_round_over_the_ready_ones() -> None:
    world = await BalancerWorld().refuse("m2").started()
    assert world.balancer.ready_count == 2
    assert world.picks(10) == {"m1:2379": 5, "m3:2379": 5}
    await closed(world)


async def test_a_lost_connection_leaves_the_rotation_in_the_same_turn_and_returns() -> None:
    world = await BalancerWorld().started()
    world.engine["m1:2379"].dial = Hang()
    world.engine["m1:2379"].connection.lose(ConnectionResetError())
    assert world.picks(10) == {"m2:2379": 5, "m3:2379": 5}
    await closed(world)


async def test_a_draining_connection_leaves_the_rotation_in_the_same_turn() -> None:
    world = await BalancerWorld().started()
    world.engine["m1:2379"].connection.go_away()
    assert world.picks(10) == {"m2:2379": 5, "m3:2379": 5}
    await asyncio.sleep(0.06)
    assert world.picks(9) == {"m1:2379": 3, "m2:2379": 3, "m3:2379": 3}
    await closed(world)


async def test_what_is_to_be_avoided_and_whether_there_is_another() -> None:
    world = await BalancerWorld("m1,m2").started()
    one, two = world.balancer.pick(), world.balancer.pick()
    assert one is not None
    assert two is not None
    assert world.balancer.has_other([one])
    assert not world.balancer.has_other([one, two])
    assert all(world.balancer.pick([one]) is two for _ in range(5))
    await closed(world)
    assert not world.balancer.has_other([])


async def test_a_users_policy_is_asked() -> None:
    def last(offered: Sequence[Candidate]) -> Candidate:
        return offered[-1]

    world = await BalancerWorld(policy=last).started()
    assert world.picks(5) == {"m3:2379": 5}
    await closed(world)


# Waiting.


async def test_whoever_waits_is_woken_by_the_first_that_is_ready() -> None:
    world = BalancerWorld().refuse("m1", "m3")
    world.engine["m2:2379"].dial = Accept(seconds=0.7)
    world.balancer.start()
    waiting = [asyncio.ensure_future(world.balancer.wait_for_pick(NEVER)) for _ in range(3)]
    started = world.loop.time()
    assert {one.endpoint_name for one in await asyncio.gather(*waiting)} == {"m2:2379"}
    assert world.loop.time() - started == pytest.approx(0.7)
    await closed(world)


async def test_a_wait_ends_at_its_deadline_exactly_and_names_every_endpoints_real_error() -> None:
    world = BalancerWorld().refuse("m1", "m2")
    world.engine["m3:2379"].dial = Hang()
    world.balancer.start()
    deadline = world.loop.time() + 3.21
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await world.balancer.wait_for_pick(deadline)
    assert world.loop.time() == pytest.approx(deadline, abs=1e-6)
    assert list(caught.value.errors) == ["m1:2379", "m2:2379", "m3:2379"]
    assert isinstance(caught.value.errors["m1:2379"], ConnectionRefusedError)
    assert isinstance(caught.value.errors["m3:2379"], ConnectError)
    assert "m1:2379: connection refused" in str(caught.value)
    assert "m2:2379: connection refused" in str(caught.value)
    await closed(world)


async def test_the_last_real_error_is_the_newest() -> None:
    world = await BalancerWorld("m1").refuse("m1").started()
    await asyncio.sleep(2)
    world.engine["m1:2379"].dial = Refuse(OSError(113, "No route to host"))
    await asyncio.sleep(2)
    assert "No route" in str(world.balancer.no_available_endpoints())
    await closed(world)


async def test_a_deadline_that_has_passed_is_not_waited_for() -> None:
    world = BalancerWorld()
    world.balancer.start()
    started = world.loop.time()
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.wait_for_pick(started)
    assert world.loop.time() == started
    await turns()
    assert (
        await world.balancer.wait_for_pick(started)
    ).endpoint_name in world.states()  # one that is READY needs no time
    await closed(world)


async def test_a_cancelled_wait_leaves_nothing() -> None:
    world = await BalancerWorld().refuse("m1", "m2", "m3").started()
    waiting = asyncio.ensure_future(world.balancer.wait_for_pick(NEVER))
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert not world.balancer._changes
    with_deadline = asyncio.ensure_future(world.balancer.wait_for_pick(world.loop.time() + 3600.0))
    await turns()
    before = timers()
    with_deadline.cancel()
    await asyncio.wait([with_deadline])
    assert timers() == before - 1
    await closed(world)


# Other endpoints.


async def test_set_endpoints_keeps_drains_and_adds() -> None:
    world = await BalancerWorld("m1,m2").started()
    m1, m2 = world.engine["m1:2379"], world.engine["m2:2379"]
    m1.latency = 5.0
    m1.otherwise = b"late"
    on_m1 = next(
        one for one in (world.balancer.pick(), world.balancer.pick()) if one and one.endpoint_name == "m1:2379"
    )
    running = asyncio.ensure_future(on_m1.unary("/p", b"", (), NEVER))
    await turns()
    world.balancer.set_endpoints(parse_endpoints("m3,m2"))
    assert [endpoint.name for endpoint in world.balancer.endpoints] == ["m3:2379", "m2:2379"]
    assert world.picks(4) == {"m2:2379": 4}
    await turns()
    assert world.picks(4) == {"m2:2379": 2, "m3:2379": 2}
    assert len(m2.dials) == 1
    assert not m1.connection.is_lost
    assert await running == b"late"
    assert m1.connection.is_lost
    await turns()
    assert list(world.states()) == ["m3:2379", "m2:2379"]
    await asyncio.sleep(60)
    assert len(m1.dials) == 1
    await closed(world)


async def test_an_endpoint_that_comes_back_is_dialled_anew() -> None:
    world = await BalancerWorld("m1,m2").started()
    world.balancer.set_endpoints(parse_endpoints("m2"))
    await turns()
    world.balancer.set_endpoints(parse_endpoints("m2,m1"))
    await turns()
    assert len(world.engine["m1:2379"].dials) == 2
    assert world.picks(4) == {"m1:2379": 2, "m2:2379": 2}
    await closed(world)


async def test_other_endpoints_before_the_start_are_those_that_are_dialled() -> None:
    world = BalancerWorld("m1")
    world.balancer.set_endpoints(parse_endpoints("m2"))
    await world.started()
    assert list(world.engine.members) == ["m2:2379"]
    await closed(world)


async def test_a_new_endpoint_wakes_whoever_waits() -> None:
    world = await BalancerWorld("m1").refuse("m1").started()
    waiting = asyncio.ensure_future(world.balancer.wait_for_pick(NEVER))
    await turns()
    world.balancer.set_endpoints(parse_endpoints("m1,m2"))
    assert (await waiting).endpoint_name == "m2:2379"
    await closed(world)


async def test_if_no_endpoint_can_be_made_nothing_is_changed() -> None:
    world = await BalancerWorld("m1,m2").started()

    def broken(endpoint: Endpoint) -> ssl.SSLContext | None:
        raise OSError("no certificates")

    world.balancer._pool.tls_for = broken
    with pytest.raises(OSError, match="no certificates"):
        world.balancer.set_endpoints(parse_endpoints("m2,m3"))
    assert [endpoint.name for endpoint in world.balancer.endpoints] == ["m1:2379", "m2:2379"]
    assert world.picks(4) == {"m1:2379": 2, "m2:2379": 2}
    await closed(world)


# Closing.


async def test_close_wakes_whoever_waits_at_once() -> None:
    world = await BalancerWorld().refuse("m1", "m2", "m3").started()
    waiting = [asyncio.ensure_future(world.balancer.wait_for_pick(deadline)) for deadline in (NEVER, 5000.0)]
    await turns()
    started = world.loop.time()
    await closed(world)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ClientClosedError, ClientClosedError]
    assert world.loop.time() == started


async def test_close_before_the_start_and_twice() -> None:
    world = BalancerWorld()
    await closed(world)
    await closed(world)
    world.balancer.start()
    world.balancer.set_endpoints(parse_endpoints("m9"))
    await turns()
    assert not world.engine.members


@pytest.mark.parametrize("dial", [Accept(), Accept(seconds=100), Hang(), Refuse(), Accept(lost_at_once=True)])
@pytest.mark.parametrize("after", [0.0, 0.01, 30.0])
async def test_close_in_every_state(dial: Accept | Hang | Refuse, after: float) -> None:
    world = BalancerWorld()
    for name in ("m1", "m2", "m3"):
        world.engine[f"{name}:2379"].dial = dial
    await world.started()
    await asyncio.sleep(after)
    await closed(world, within=0.01)


async def test_close_ends_what_drains_too() -> None:
    world = await BalancerWorld("m1,m2").started()
    for name in ("m1", "m2"):
        world.engine[f"{name}:2379"].otherwise = Hang()
    picked = [one for one in (world.balancer.pick(), world.balancer.pick()) if one is not None]
    running = [asyncio.ensure_future(one.unary("/p", b"", (), NEVER)) for one in picked]
    await turns()
    world.balancer.set_endpoints(parse_endpoints("m2"))
    await world.balancer.aclose()
    assert all(isinstance(outcome, Exception) for outcome in await asyncio.gather(*running, return_exceptions=True))
    await closed(world)


async def test_a_connection_that_does_not_close_holds_nobody_for_longer_than_a_second() -> None:
    world = await BalancerWorld("m1").started()
    member = world.engine["m1:2379"]
    member.otherwise = Hang()
    member.connection.close_takes = 3600.0
    picked = world.balancer.pick()
    assert picked is not None
    running = asyncio.ensure_future(picked.unary("/p", b"", (), NEVER))
    await turns()
    started = world.loop.time()
    await world.balancer.aclose()
    assert 0.5 < world.loop.time() - started <= 1.0
    running.cancel()
    await asyncio.wait([running])
    assert not tasks()


async def test_a_cancelled_close_has_closed_all_the_same() -> None:
    world = await BalancerWorld("m1").started()
    member = world.engine["m1:2379"]
    member.otherwise = Hang()
    member.connection.close_takes = 0.5
    picked = world.balancer.pick()
    assert picked is not None
    running = asyncio.ensure_future(picked.unary("/p", b"", (), NEVER))
    await turns()
    closing = asyncio.ensure_future(world.balancer.aclose())
    await turns()
    assert member.connection.is_lost
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    assert isinstance((await asyncio.gather(running, return_exceptions=True))[0], AttemptFailure)
    await turns()
    assert not tasks()
    await closed(world)


async def test_statistics_stand_in_the_order_given() -> None:
    world = await BalancerWorld("m3,m1,m2").refuse("m1").started()
    assert world.states() == {"m3:2379": "READY", "m1:2379": "TRANSIENT_FAILURE", "m2:2379": "READY"}
    assert world.balancer.statistics()[0].state is ConnectivityState.READY
    await closed(world)


# Policies that keep one connection.


def connected(world: BalancerWorld) -> list[str]:
    return [name for name, state in world.states().items() if state == "READY"]


async def test_pinned_dials_all_and_keeps_the_first() -> None:
    world = BalancerWorld(policy="pinned")
    for name, seconds in (("m1", 0.2), ("m2", 0.1), ("m3", 0.3)):
        world.engine[f"{name}:2379"].dial = Accept(seconds=seconds)
    await world.started()
    assert {name: len(member.dials) for name, member in world.engine.members.items()} == dict.fromkeys(
        ("m1:2379", "m2:2379", "m3:2379"), 1
    )
    await asyncio.sleep(1)
    assert connected(world) == ["m2:2379"]
    assert world.states() == {"m1:2379": "IDLE", "m2:2379": "READY", "m3:2379": "IDLE"}
    assert world.picks(5) == {"m2:2379": 5}
    await closed(world)


async def test_pinned_switches_when_its_connection_is_lost() -> None:
    world = await BalancerWorld(policy="pinned").started()
    [kept] = connected(world)
    world.engine[kept].dial = Refuse(ConnectionRefusedError(111, "gone"))
    world.engine[kept].connection.lose(ConnectionResetError(104, "reset"))
    await turns(9)
    [other] = connected(world)
    assert other != kept
    assert world.picks(5) == {other: 5}
    await asyncio.sleep(60)
    assert connected(world) == [other], "the old one is not dialled any more"
    assert isinstance(world.balancer.no_available_endpoints().errors[kept], OSError), "its error is remembered"
    await closed(world)


async def test_random_pinned_keeps_one_and_draws_another_when_it_fails() -> None:
    world = await BalancerWorld(policy="random_pinned").started()
    [kept] = connected(world)
    assert sum(len(member.dials) for member in world.engine.members.values()) == 1, "the others were never dialled"
    world.engine[kept].connection.lose(ConnectionResetError(104, "reset"))
    await turns(9)
    [other] = connected(world)
    assert other != kept
    await closed(world)


async def test_random_pinned_does_not_dial_in_a_busy_loop() -> None:
    world = BalancerWorld(policy="random_pinned", chance=random.Random(1).random).refuse("m1", "m2", "m3")
    await world.started()
    await asyncio.sleep(30)
    dials = sum(len(member.dials) for member in world.engine.members.values())
    assert 20 < dials < 80
    assert all(member.dials for member in world.engine.members.values())
    world.engine["m2:2379"].dial = Accept()
    await asyncio.sleep(6)
    assert connected(world) == ["m2:2379"]
    await closed(world)


async def test_a_call_that_names_an_endpoint_has_it_connected_for_the_while() -> None:
    world = await BalancerWorld(policy="pinned").started()
    [kept] = connected(world)
    wanted = next(name for name in ("m1:2379", "m2:2379", "m3:2379") if name != kept)
    only = world.balancer.only(wanted)
    assert (await only.wait_for_pick(world.loop.time() + 1)).endpoint_name == wanted
    assert set(connected(world)) == {kept, wanted}
    await asyncio.sleep(31)
    assert connected(world) == [kept]
    await closed(world)


async def test_a_member_that_looks_bad_loses_its_pin() -> None:
    world = await BalancerWorld(policy="pinned").started()
    [kept] = connected(world)
    sub = world.balancer.sub_connection(kept)
    assert sub is not None
    sub.note_refusal(NoLeaderError())
    await turns(9)
    [other] = connected(world)
    assert other != kept
    await closed(world)


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_without_a_quorum_the_one_member_that_is_left_stays_connected(policy: PolicyName) -> None:
    world = BalancerWorld(policy=policy, chance=random.Random(1).random).refuse("m2", "m3")
    world.engine["m1:2379"].otherwise = no_leader()  # to probes, too
    await world.started()
    await asyncio.sleep(15)
    assert connected(world) == ["m1:2379"]
    for _ in range(300):
        sub = world.balancer.pick()
        assert sub is not None
        sub.note_refusal(NoLeaderError())
        await asyncio.sleep(0.1)
    assert [one.is_lost for one in world.engine["m1:2379"].connections].count(False) == 1
    assert not world.engine["m1:2379"].connections[0].is_lost, "no other connection was better"
    assert len(world.engine["m1:2379"].connections) < 10, "other connections to it are tried at growing distances"
    assert sum(len(world.engine[name].dials) for name in ("m2:2379", "m3:2379")) < 100, "a second apart, each"
    await closed(world)


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_without_a_quorum_nothing_is_dialled_in_a_busy_loop(policy: PolicyName) -> None:
    world = BalancerWorld(policy=policy, chance=random.Random(1).random)
    for name in ("m1", "m2", "m3"):
        world.engine[f"{name}:2379"].otherwise = no_leader()
    await world.started()
    for _ in range(300):
        for name in connected(world):
            sub = world.balancer.sub_connection(name)
            assert sub is not None
            sub.note_refusal(NoLeaderError())
        await asyncio.sleep(0.1)
    assert sum(len(member.dials) for member in world.engine.members.values()) < 100, "a second apart"
    await closed(world)


# The leader.


@pytest.mark.parametrize("what", ["attempt", "stream"])
async def test_a_call_that_names_an_endpoint_and_takes_long_keeps_it_until_30_s_after_its_end(what: str) -> None:
    world = await BalancerWorld("m1,m2", policy="pinned").started()
    named = await world.balancer.only("m2").wait_for_pick(NEVER)
    if what == "attempt":
        world.engine["m2:2379"].latency = 100.0
        await named.unary("/defragment", b"", (), NEVER)
    else:
        stream = await named.open_stream("/snapshot", (), NEVER)
        await asyncio.sleep(100)
        stream.cancel()
    assert named.state is ConnectivityState.READY
    await asyncio.sleep(24)
    assert world.balancer.only("m2").pick() is named, "which is a new demand"
    await asyncio.sleep(29)
    assert "m2:2379" in connected(world)
    await asyncio.sleep(2)
    assert "m2:2379" not in connected(world)
    await closed(world)


async def test_an_endpoint_that_a_call_waits_for_is_dialled_for_as_long_as_it_waits() -> None:
    world = BalancerWorld("m1,m2", policy="pinned").refuse("m2")
    await world.started()
    began = world.loop.time()
    waiting = asyncio.create_task(world.balancer.only("m2").wait_for_pick(began + 120))
    await asyncio.sleep(90)
    world.engine["m2:2379"].dial = Accept()
    await asyncio.sleep(2)
    assert waiting.done()
    assert (await waiting).state is ConnectivityState.READY
    await closed(world)


async def test_both_kinds_of_calls_have_turns_of_their_own() -> None:
    world = await BalancerWorld("m1,m2").started()
    picked = [world.balancer.pick((), needs_leader) for _ in range(4) for needs_leader in (True, False)]
    assert len(set(picked[::2])) == len(set(picked[1::2])) == 2
    await closed(world)


async def test_leader_first_follows_the_leader() -> None:
    world = await BalancerWorld(policy="leader_first").elect("m2").started()
    await asyncio.sleep(0.01)
    assert world.picks(9) == {"m2:2379": 9}
    assert [one.endpoint for one in world.balancer.statistics() if one.is_leader] == ["m2:2379"]
    world.elect("m3")
    world.balancer.look_for_leader()
    await asyncio.sleep(0.01)
    assert world.picks(9) == {"m3:2379": 9}
    world.engine["m3:2379"].dial = Hang()
    world.engine["m3:2379"].connection.lose(ConnectionResetError())
    world.elect("m1")
    assert world.picks(8) == {"m1:2379": 4, "m2:2379": 4}, "every one in turn, until the new leader is found"
    await asyncio.sleep(0.01)
    assert world.picks(9) == {"m1:2379": 9}
    await closed(world)


async def test_other_policies_do_not_look_for_the_leader() -> None:
    world = await BalancerWorld().started()
    world.balancer.look_for_leader()
    await turns()
    assert world.searches() == 0
    await closed(world)


# What keeps the endpoints current.


async def test_a_change_of_what_is_ready_is_waited_for() -> None:
    world = await BalancerWorld("m1,m2").started()
    started = world.loop.time()
    assert not await world.balancer.readiness.wait(started + 5.0)
    assert world.loop.time() == started + 5.0
    world.refuse("m1", "m2")
    for name in ("m1", "m2"):
        waiting = asyncio.ensure_future(world.balancer.readiness.wait(NEVER))
        await turns()
        world.engine[f"{name}:2379"].connection.lose(ConnectionResetError())
        await turns()
        assert await waiting
    waiting = asyncio.ensure_future(world.balancer.readiness.wait(NEVER))
    await turns()
    world.balancer.set_endpoints(parse_endpoints("m3"))
    assert await waiting
    await closed(world)
    with pytest.raises(ClientClosedError):
        await world.balancer.readiness.wait(NEVER)


async def test_the_task_that_waits_for_a_change_hears_of_the_close() -> None:
    world = await BalancerWorld("m1").started()
    waiting = asyncio.ensure_future(world.balancer.readiness.wait(NEVER))
    await turns()
    await closed(world)
    with pytest.raises(ClientClosedError):
        await waiting
    assert not timers()


async def test_why_the_endpoints_are_not_known_is_part_of_the_error() -> None:
    world = await BalancerWorld("m1").refuse("m1").started()
    reason = DiscoveryError("NXDOMAIN")
    world.balancer.set_unresolved({"the records": reason}, is_resolving=False)
    assert world.balancer.no_available_endpoints().errors["the records"] is reason
    assert list(world.balancer.no_available_endpoints("m1:2379").errors) == ["m1:2379"]
    await closed(world)


async def test_what_is_dialled_for_an_endpoint() -> None:
    world = BalancerWorld("http://m1,http://m2:1")
    target = world.balancer.target("http://m2:1")
    assert (target.host, target.port, target.authority, target.tls) == ("m2", 1, "m2:1", None)
    with pytest.raises(UnknownEndpointError):
        world.balancer.target("m3")
    await world.balancer.aclose()


# Fail fast.


async def test_without_fail_fast_a_call_waits_for_a_connection_until_its_deadline() -> None:
    world = await BalancerWorld().refuse("m1", "m2", "m3").started()
    started = world.loop.time()
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.wait_for_pick(started + 5.0)
    assert world.loop.time() - started == 5.0
    await closed(world)


async def test_with_fail_fast_a_call_fails_once_every_endpoint_has_refused() -> None:
    world = await BalancerWorld(fail_fast=True).refuse("m1", "m2").started()
    world.balancer.set_endpoints(parse_endpoints("m1,m2,m4"))
    world.engine["m4:2379"].dial = Hang()
    await turns()
    call = asyncio.ensure_future(world.balancer.wait_for_pick(NEVER))
    patient = asyncio.ensure_future(world.balancer.wait_for_pick(NEVER, is_patient=True))
    await asyncio.sleep(3.0)
    assert not call.done(), "one of them has not refused yet"
    world.refuse("m4")
    world.balancer.set_endpoints(parse_endpoints("m1,m2"))
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await call
    assert {name: str(error) for name, error in caught.value.errors.items()} == {
        "m1:2379": "[Errno 111] m1 refused",
        "m2:2379": "[Errno 111] m2 refused",
    }
    started = world.loop.time()
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.wait_for_pick(NEVER)
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.only("m1").wait_for_pick(NEVER)
    assert world.loop.time() == started
    assert not patient.done()
    world.engine["m2:2379"].dial = Accept()
    assert (await patient).endpoint_name == "m2:2379"
    assert (await world.balancer.wait_for_pick(NEVER)).endpoint_name == "m2:2379"
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.only("m1").wait_for_pick(NEVER)
    await closed(world)


async def test_with_fail_fast_a_lost_connection_counts_only_once_it_could_not_be_made_again() -> None:
    world = await BalancerWorld("m1", fail_fast=True).started()
    await asyncio.sleep(5.0)
    member = world.engine["m1:2379"]
    member.dial = Accept(seconds=0.5)
    member.connection.lose(ConnectionResetError())
    assert (await world.balancer.wait_for_pick(NEVER)).endpoint_name == "m1:2379"
    member.dial = Refuse()
    member.connection.lose(ConnectionResetError())
    with pytest.raises(NoAvailableEndpointsError):
        await world.balancer.wait_for_pick(NEVER)
    await closed(world)


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_with_fail_fast_a_policy_that_keeps_one_connection_tries_all_first(policy: PolicyName) -> None:
    world = BalancerWorld(policy=policy, chance=random.Random(7).random, fail_fast=True).refuse("m1", "m2", "m3")
    world.balancer.start()
    started = world.loop.time()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await world.balancer.wait_for_pick(NEVER)
    assert world.loop.time() - started < 5.0
    assert {str(error) for error in caught.value.errors.values()} == {f"[Errno 111] m{n} refused" for n in (1, 2, 3)}
    await closed(world)


# Mistakes of the program.


@pytest.mark.parametrize("policy", ["round_robin", "leader_first", "pinned", "random_pinned"])
async def test_a_dial_that_is_refused_for_a_mistake_of_the_program_ends_the_calls_that_wait(policy: PolicyName) -> None:
    world = BalancerWorld(policy=policy, chance=random.Random(7).random)
    for name in ("m1", "m2", "m3"):
        world[name].dial = Refuse(WrongLoopError())
    world.balancer.start()
    started = world.loop.time()
    waiting = [world.balancer.wait_for_pick(NEVER), world.balancer.wait_for_pick(NEVER, is_patient=True)]
    waiting.append(world.balancer.only("m2").wait_for_pick(NEVER))
    raised = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in raised] == [WrongLoopError] * 3
    assert len({id(error) for error in raised}) == 3, "each adds its own traceback and history"
    with pytest.raises(WrongLoopError):
        await world.balancer.wait_for_pick(NEVER)
    assert world.loop.time() == started
    await closed(world)


async def test_a_mistake_that_is_mended_is_forgotten() -> None:
    world = BalancerWorld("m1")
    member = world.engine["m1:2379"]
    member.dial = Refuse(WrongLoopError())
    await world.started()
    with pytest.raises(WrongLoopError):
        await world.balancer.wait_for_pick(NEVER)
    member.dial = Accept()
    await asyncio.sleep(5.0)
    assert world.balancer.pick() is not None
    member.dial = Accept(seconds=0.5)
    member.connection.drain()
    assert world.balancer.pick() is None
    assert (await world.balancer.wait_for_pick(NEVER)).endpoint_name == "m1:2379"
    await closed(world)


async def test_an_endpoint_that_is_connected_serves_whatever_another_one_refused_for() -> None:
    world = BalancerWorld("m1,m2")
    world["m2"].dial = Refuse(WrongLoopError())
    await world.started()
    await asyncio.sleep(5.0)
    assert (await world.balancer.wait_for_pick(NEVER)).endpoint_name == "m1:2379"
    with pytest.raises(WrongLoopError):
        await world.balancer.only("m2").wait_for_pick(NEVER)
    await closed(world)
