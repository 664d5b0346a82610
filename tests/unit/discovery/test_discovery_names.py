"""discovery/discovery.py, discovery/tracked.py: DNS names beside endpoints, in virtual time."""

import asyncio
import logging
from itertools import pairwise

import pytest

from etcd_aio.balancer import PolicyName, parse_endpoints
from etcd_aio.balancer.dialler import DIAL_BACKOFF
from etcd_aio.discovery import discovery
from etcd_aio.errors import ConnectError, DiscoveryError, NoAvailableEndpointsError
from tests.support.discoveries import FakeResolver, Setup
from tests.support.fake_engine import Accept, Hang, Refuse
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

A, B, C, D = (f"dns:///etcd:2379#10.0.0.{number}" for number in range(1, 5))


def name_of(*endpoints: str, name: str = "dns:///etcd:2379", ttl: float = 60.0) -> FakeResolver:
    resolver = FakeResolver(name)
    resolver.says = ",".join(endpoints)
    resolver.ttl = ttl
    return resolver


def dialled(setup: Setup) -> dict[str, int]:
    return {name.removeprefix("10.0.0.").removesuffix(":2379"): n for name, n in dials(setup).items()}


def dials(setup: Setup) -> dict[str, int]:
    return {name: len(one.dials) for name, one in setup.engine.members.items()}


def lose(setup: Setup, *numbers: int) -> None:
    for number in numbers:
        member = setup.engine[f"10.0.0.{number}:2379"]
        member.dial = Refuse()
        for connection in member.connections:
            connection.lose(ConnectError("reset"))


async def test_each_address_is_connected_beside_the_endpoints_that_were_named() -> None:
    setup = await Setup("http://m1", names=[name_of(A, B)]).started()
    await asyncio.sleep(1)
    assert setup.names == ["http://m1:2379", A, B]
    assert setup.balancer.ready_count == 3
    assert setup.discovery.names == ("http://m1:2379", "dns:///etcd:2379")
    await setup.closed()


async def test_a_dead_address_is_dialled_as_an_endpoint_that_was_named() -> None:
    setup = Setup("http://10.0.0.9", names=[name_of(A)])
    for number in (1, 9):
        setup.engine[f"10.0.0.{number}:2379"].dial = Refuse()
    await setup.started()
    await asyncio.sleep(120)
    of_name, fixed = (setup.engine[f"10.0.0.{number}:2379"].dials for number in (1, 9))
    assert len(fixed) > 100
    assert abs(len(of_name) - len(fixed)) <= 2
    assert max(later - earlier for earlier, later in pairwise(of_name)) <= DIAL_BACKOFF.maximum * (
        1 + DIAL_BACKOFF.jitter
    )
    await setup.closed()


async def test_a_new_address_is_used_within_one_ttl_and_a_removed_one_drains() -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver]).started()
    await asyncio.sleep(1)
    resolver.says = ",".join([B, C])
    await asyncio.sleep(60)
    assert setup.names == [B, C]
    assert dialled(setup) == {"1": 1, "2": 1, "3": 1}
    assert setup.engine["10.0.0.1:2379"].connection.is_lost
    await setup.closed()


async def test_addresses_that_stay_are_not_touched_by_another_order() -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver]).started()
    await turns()
    resolver.says = ",".join([B, A])
    await asyncio.sleep(200)
    assert setup.names == [A, B]
    assert dialled(setup) == {"1": 1, "2": 1}
    await setup.closed()


@pytest.mark.parametrize("error", ["SERVFAIL", "etcd has no address"])
async def test_nothing_is_lost_while_dns_fails_and_one_line_is_logged(
    error: str, caplog: pytest.LogCaptureFixture
) -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver]).started()
    await turns()
    resolver.says = DiscoveryError(error)
    await asyncio.sleep(600)
    assert setup.names == [A, B]
    assert setup.balancer.ready_count == 2
    assert dialled(setup) == {"1": 1, "2": 1}
    assert error in str(setup.balancer.no_available_endpoints().errors["dns:///etcd:2379"])
    warnings = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert error in warnings[0]
    resolver.says = ",".join([B, C])
    await asyncio.sleep(31)
    assert setup.names == [B, C]
    await setup.closed()


async def test_if_all_addresses_have_changed_the_old_ones_stay_until_a_new_one_is_connected() -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver]).started()
    await turns()
    setup.engine["10.0.0.3:2379"].dial = Hang()
    resolver.says = C
    await asyncio.sleep(60)
    assert setup.names == [C, A, B], "A and B still serve"
    assert setup.balancer.ready_count == 2
    resolver.says = ",".join([C, D])
    setup.engine["10.0.0.4:2379"].dial = Accept(seconds=0.5)
    await asyncio.sleep(60)
    assert setup.names == [C, D]
    assert setup.balancer.ready_count == 1
    await setup.closed()


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_a_policy_of_one_connection_moves_to_the_new_addresses_too(policy: PolicyName) -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver], policy=policy).started()
    await asyncio.sleep(1)
    assert setup.balancer.ready_count == 1
    resolver.says = ",".join([C, D])
    await asyncio.sleep(91)
    assert setup.names == [C, D]
    assert setup.balancer.ready_count == 1, "the other one was connected until it was clear that it is not needed"
    asked = len(resolver.asked)
    await asyncio.sleep(600)
    assert len(resolver.asked) - asked <= 12, "the other address is not connected on purpose"
    await setup.closed()


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_a_policy_of_one_connection_keeps_it_until_a_new_one_is_made(policy: PolicyName) -> None:
    resolver = name_of(A)
    setup = await Setup(names=[resolver], policy=policy).started()
    await turns()
    for number in (3, 4):
        setup.engine[f"10.0.0.{number}:2379"].dial = Refuse()
    resolver.says = ",".join([C, D])
    await asyncio.sleep(600)
    assert setup.balancer.ready == {A}
    assert dialled(setup)["1"] == 1
    setup.engine["10.0.0.4:2379"].dial = Accept()
    await asyncio.sleep(10)
    assert setup.names == [C, D]
    assert setup.balancer.ready == {D}
    await setup.closed()


@pytest.mark.parametrize("policy", ["pinned", "random_pinned"])
async def test_a_policy_of_one_connection_can_sync_to_other_endpoints(policy: PolicyName) -> None:
    setup = await Setup(names=[name_of(A)], policy=policy).started()
    await turns()
    assert await setup.discovery.sync(1.0) == ("http://m1:2379", "http://m2:2379", "http://m3:2379")
    await setup.closed()


async def test_if_no_address_of_a_name_can_be_connected_it_is_asked_again_within_a_second() -> None:
    resolver = name_of(A, B, ttl=3000.0)
    setup = await Setup("http://m1", names=[resolver]).started()
    await asyncio.sleep(10)
    assert len(resolver.asked) == 1
    resolver.says = ",".join([C, D])
    lose(setup, 1)
    await asyncio.sleep(10)
    assert len(resolver.asked) == 1, "B is left"
    lost = asyncio.get_running_loop().time()
    lose(setup, 2)
    await asyncio.sleep(1.1)
    assert [round(at - lost, 1) for at in resolver.asked[1:]] == [1.0]
    assert setup.names == ["http://m1:2379", C, D]
    await asyncio.sleep(100)
    assert len(resolver.asked) == 2
    await setup.closed()


async def test_a_name_without_an_answer_does_not_hold_up_the_others() -> None:
    silent, other = name_of(A, name="dns:///silent:2379"), name_of(B, ttl=10.0)
    silent.takes, silent.says = 10.0, DiscoveryError("no answer")
    setup = await Setup(names=[silent, other]).started()
    await asyncio.sleep(2)
    assert setup.balancer.ready == {B}
    await asyncio.sleep(300)
    assert max(after - before for before, after in pairwise(other.asked)) <= 11.0
    assert min(after - before for before, after in pairwise(silent.asked)) > 10.0, "one question at a time"
    await setup.closed()


async def test_no_lookup_is_left_if_the_client_closes_during_some() -> None:
    resolvers = [name_of(A, name=f"dns:///n{number}:2379") for number in range(3)]
    for resolver in resolvers:
        resolver.takes = 10.0
    setup = await Setup(names=resolvers).started()
    await asyncio.sleep(2.5)
    assert [len(resolver.asked) for resolver in resolvers] == [1, 1, 1]
    await setup.closed()


async def test_at_most_one_question_in_a_second_whatever_happens() -> None:
    resolvers = [
        name_of(f"dns:///n{number}:2379#10.0.1.{number}", name=f"dns:///n{number}:2379", ttl=0.0)
        for number in range(10)
    ]
    setup = Setup(names=resolvers)
    for number in range(0, 10, 2):
        setup.engine[f"10.0.1.{number}:2379"].dial = Refuse()
    resolvers[1].says = DiscoveryError("SERVFAIL")
    await setup.started()
    for second in range(120):
        await asyncio.sleep(0.5)
        setup.discovery.set_endpoints(resolvers[second % 2 :])
    asked = sorted(at for resolver in resolvers for at in resolver.asked)
    gaps = [after - before for before, after in pairwise(asked)]
    assert len(asked) > 50
    assert min(gaps) >= 1.0 - 1e-6
    assert discovery._QUESTION_INTERVAL == 1.0
    assert all(resolver.asked for resolver in resolvers)
    await setup.closed()


async def test_several_names_keep_their_own_ttls() -> None:
    slow, fast = name_of(A, ttl=1000.0), name_of("http+dns://b#10.0.0.9", name="http+dns://b:2379", ttl=10.0)
    setup = await Setup(names=[slow, fast]).started()
    await asyncio.sleep(95)
    assert setup.names == [A, "http+dns://b:2379#10.0.0.9"]
    assert len(slow.asked) == 1
    assert len(fast.asked) == 11
    await setup.closed()


async def test_a_slow_answer_is_waited_for_and_calls_say_so() -> None:
    resolver = name_of(A)
    resolver.takes = 4.0
    setup = await Setup("http://m1", names=[resolver]).started()
    setup.engine["m1:2379"].dial = Refuse()
    setup.engine["m1:2379"].connection.lose(ConnectError("reset"))
    with pytest.raises(NoAvailableEndpointsError, match="DNS has not answered yet"):
        await setup.balancer.wait_for_pick(setup.loop.time() + 1.0)
    assert (await setup.balancer.wait_for_pick(setup.loop.time() + 5.0)).endpoint_name == A
    assert not setup.balancer.unresolved
    await setup.closed()


# Fail fast.


async def test_fail_fast_waits_for_the_first_answer_and_no_longer() -> None:
    resolver = name_of(A)
    resolver.takes = 0.5
    setup = Setup("http://m1", names=[resolver], fail_fast=True)
    setup.engine["m1:2379"].dial = Refuse()
    await setup.started()
    assert (await setup.balancer.wait_for_pick(setup.loop.time() + 5.0)).endpoint_name == A
    await setup.closed()
    resolver.says = DiscoveryError("etcd has no address")
    setup = await Setup(names=[resolver], fail_fast=True).started()
    began = setup.loop.time()
    with pytest.raises(NoAvailableEndpointsError, match="has no address"):
        await setup.balancer.wait_for_pick(began + 5.0)
    assert setup.loop.time() - began < 0.6
    await setup.closed()


# set_endpoints.


async def test_a_name_that_stays_keeps_its_addresses_and_their_connections() -> None:
    resolver, other = name_of(A, B), name_of("dns:///b#10.0.0.9", name="dns:///b:2379")
    setup = await Setup("http://m1", names=[resolver]).started()
    await turns()
    setup.discovery.set_endpoints([name_of(C), other])
    assert setup.names == [A, B], "the known resolver is kept"
    await asyncio.sleep(1.1)
    assert setup.names == [A, B, "dns:///b:2379#10.0.0.9"]
    assert dialled(setup)["1"] == 1
    setup.discovery.set_endpoints([other])
    assert setup.names == ["dns:///b:2379#10.0.0.9"]
    asked = len(resolver.asked)
    await asyncio.sleep(300)
    assert len(resolver.asked) == asked
    await setup.closed()


async def test_names_can_be_set_later_and_taken_back() -> None:
    setup = await Setup("http://m1").started()
    assert not [task for task in tasks() if "discovery" in task.get_name()]
    resolver = name_of(A)
    resolver.takes = 1.0
    setup.discovery.set_endpoints([resolver])
    assert setup.names == []
    await asyncio.sleep(0.5)
    setup.discovery.set_endpoints(parse_endpoints("http://m2"))
    await asyncio.sleep(100)
    assert setup.names == ["http://m2:2379"], "the answer came too late"
    assert not setup.balancer.unresolved
    setup.discovery.set_endpoints([resolver])
    await asyncio.sleep(1.1)
    assert setup.names == [A]
    await setup.closed()


async def test_an_error_of_a_name_that_is_gone_is_not_shown() -> None:
    resolver = name_of()
    resolver.says = DiscoveryError("SERVFAIL")
    setup = await Setup(names=[resolver]).started()
    await turns()
    assert "dns:///etcd:2379" in setup.balancer.unresolved
    setup.discovery.set_endpoints(parse_endpoints("http://m2"))
    assert not setup.balancer.unresolved
    await setup.closed()


# auto_sync.


async def test_with_auto_sync_members_replace_addresses_which_come_back_in_an_outage() -> None:
    resolver = name_of(A, B)
    setup = await Setup(names=[resolver], auto_sync=20.0).started()
    await asyncio.sleep(10)
    assert setup.names == [A, B]
    await asyncio.sleep(11)
    assert setup.names == ["http://m1:2379", "http://m2:2379", "http://m3:2379"]
    resolver.says = DiscoveryError("SERVFAIL")
    setup.fail("m1", "m2", "m3")
    await asyncio.sleep(2.0)
    assert setup.names[:2] == [A, B], "the last answer is tried although DNS fails"
    assert setup.balancer.ready_count == 2
    await setup.closed()


async def test_before_the_first_sync_answers_are_used() -> None:
    resolver = name_of(A)
    setup = await Setup("http://m1", names=[resolver], auto_sync=1000.0).started()
    await turns()
    assert setup.names == ["http://m1:2379", A]
    await setup.closed()


async def test_members_in_plaintext_are_refused_if_a_name_is_for_tls() -> None:
    resolver = name_of(A)
    resolver.is_tls = True
    setup = await Setup("http://m1", names=[resolver]).started()
    assert await setup.discovery.sync(5.0) == ("http://m1:2379",), "that was named, the others were not"
    await setup.closed()


async def test_what_the_client_must_not_use_is_not_taken_from_dns() -> None:
    setup = Setup(names=[name_of(A)])
    setup.unfit = A
    await setup.started()
    with pytest.raises(NoAvailableEndpointsError, match="must not be used: credentials"):
        await setup.balancer.wait_for_pick(setup.loop.time() + 1.0)
    assert not setup.engine.members
    await setup.closed()
