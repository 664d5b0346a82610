"""balancer/balancer.py: the view of a balancer that is restricted to one endpoint."""

import asyncio

import pytest

from etcd_aio.balancer import parse_endpoints
from etcd_aio.errors import ClientClosedError, NoAvailableEndpointsError, UnknownEndpointError
from tests.support.balancers import BalancerWorld
from tests.support.fake_engine import Accept, Hang, Refuse
from tests.support.virtual_time import timers, turns

pytestmark = pytest.mark.anyio

NEVER = float("inf")


EVERY_FORM = "m1,http://m2,[::1]:1,unix:/run/etcd"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("m1:2379", "m1:2379"),
        ("m1", "m1:2379"),
        (" M1 ", "m1:2379"),
        ("http://m2:2379", "http://m2:2379"),
        ("http://m2/", "http://m2:2379"),
        ("m2:2379", "http://m2:2379"),
        ("[0::1]:1", "[::1]:1"),
        ("unix:///run/etcd", "unix:///run/etcd"),
    ],
)
async def test_an_endpoint_is_found_in_any_spelling(given: str, found: str) -> None:
    world = await BalancerWorld(EVERY_FORM).started()
    only = world.balancer.only(given)
    assert [endpoint.name for endpoint in only.endpoints] == [found]
    picked = only.pick()
    assert picked is not None
    assert picked.endpoint_name == found
    await world.balancer.aclose()


@pytest.mark.parametrize("given", ["m3", "m1:2380", "https://m2", "http://m1", "unixs:/run/etcd", "", "ftp://m1"])
async def test_an_endpoint_of_no_member_is_refused(given: str) -> None:
    world = await BalancerWorld(EVERY_FORM).started()
    with pytest.raises(UnknownEndpointError):
        world.balancer.only(given)
    await world.balancer.aclose()


async def test_the_error_names_the_endpoints_and_no_password() -> None:
    world = BalancerWorld("m1,m2")
    with pytest.raises(
        UnknownEndpointError, match="m3:2379 is not an endpoint of this client; it has m1:2379, m2:2379"
    ):
        world.balancer.only("m3")
    with pytest.raises(UnknownEndpointError) as caught:
        world.balancer.only("http://root:c4n4ry@m1")
    assert "c4n4ry" not in str(caught.value)


async def test_it_is_picked_even_if_it_is_to_be_avoided() -> None:
    world = await BalancerWorld("m1,m2").started()
    only = world.balancer.only("m2")
    chosen = only.pick()
    assert chosen is not None
    assert only.pick([chosen]) is chosen
    assert only.ready_count == 1
    assert only.has_other([])
    assert not only.has_other([chosen])
    world.engine["m2:2379"].dial = Hang()
    world.engine["m2:2379"].connection.lose(ConnectionResetError())
    assert only.pick() is None
    assert only.ready_count == 0
    assert not only.has_other([])
    await world.balancer.aclose()


async def test_a_call_waits_for_it_while_others_are_ready() -> None:
    world = BalancerWorld("m1,m2")
    world.engine["m2:2379"].dial = Accept(seconds=0.5)
    await world.started()
    loop = asyncio.get_running_loop()
    started = loop.time()
    chosen = await world.balancer.only("m2").wait_for_pick(started + 5)
    assert chosen.endpoint_name == "m2:2379"
    assert loop.time() - started == pytest.approx(0.5)
    assert timers() == 0
    await world.balancer.aclose()


async def test_the_wait_ends_at_the_deadline_with_the_error_of_this_endpoint_alone() -> None:
    world = BalancerWorld("m1,m2,m3")
    refused = ConnectionRefusedError(111, "refused")
    for name in ("m2", "m3"):
        world.engine[f"{name}:2379"].dial = Refuse(refused)
    await world.started()
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await world.balancer.only("m2").wait_for_pick(started + 3)
    assert dict(caught.value.errors) == {"m2:2379": refused}
    assert loop.time() - started == pytest.approx(3)
    await world.balancer.aclose()


@pytest.mark.parametrize("is_closed", [False, True])
async def test_the_wait_ends_at_once_when_the_endpoint_is_removed_or_the_client_is_closed(is_closed: bool) -> None:
    world = BalancerWorld("m1,m2")
    world.engine["m2:2379"].dial = Hang()
    await world.started()
    waiting = asyncio.create_task(world.balancer.only("m2").wait_for_pick(NEVER))
    await turns()
    if is_closed:
        await world.balancer.aclose()
    else:
        world.balancer.set_endpoints(parse_endpoints("m1"))
    await turns()
    assert waiting.done()
    with pytest.raises(ClientClosedError if is_closed else UnknownEndpointError):
        await waiting
    await world.balancer.aclose()


async def test_a_removed_endpoint_is_not_waited_for() -> None:
    world = await BalancerWorld("m1,m2").started()
    only = world.balancer.only("m2")
    world.balancer.set_endpoints(parse_endpoints("m1"))
    with pytest.raises(UnknownEndpointError, match="was removed"):
        await only.wait_for_pick(NEVER)
    await world.balancer.aclose()


async def test_looking_at_the_view_connects_nothing() -> None:
    world = await BalancerWorld("m1,m2", policy="pinned").started()
    await turns()
    [unused] = [name for name, state in world.states().items() if state == "IDLE"]
    dials = len(world.engine[unused].dials)
    view = world.balancer.only(unused)
    assert view.ready_count == 0
    assert not view.has_other([])
    assert world.balancer.sub_connection(unused) is None
    await turns()
    assert len(world.engine[unused].dials) == dials
    assert view.pick() is None, "which has it connected"
    await turns()
    assert view.ready_count == 1
    await world.balancer.aclose()
