"""error_handler/invoker.py: timeouts, retry modes, endpoints and hedging, as client and call choose them."""

import asyncio

import pytest

from etcd_aio import pb
from etcd_aio.error_handler.credentials import TokenSource
from etcd_aio.errors import (
    ClientClosedError,
    ConnectionLostError,
    EtcdTimeoutError,
    InvalidRequestError,
    NoAvailableEndpointsError,
    RequestTooLargeError,
    TokenUnavailableError,
    UnknownEndpointError,
    WrongLoopError,
)
from etcd_aio.methods import API_VERSION, LEASE_GRANT, PUT, TXN
from tests.support.calls import Calls, leader_changed, unknown
from tests.support.fake_engine import Hang
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio


async def test_the_first_call_begins_to_connect() -> None:
    calls = Calls()
    await turns()
    assert all(not member.dials for member in calls.engine.members.values())
    await calls.read()
    await turns()
    assert [len(member.dials) for member in calls.engine.members.values()] == [1, 1, 1]
    await calls.aclose()
    assert not tasks()


async def test_a_closed_client_refuses() -> None:
    calls = Calls()
    await calls.aclose()
    with pytest.raises(ClientClosedError):
        await calls.read()
    assert all(not member.dials for member in calls.engine.members.values())


def test_another_loop_is_refused() -> None:
    async def make() -> Calls:
        calls = Calls()
        calls.lifetime.enter()
        return calls

    async def use(calls: Calls) -> None:
        with pytest.raises(WrongLoopError):
            await calls.read()

    asyncio.run(use(asyncio.run(make())))


# Timeouts.


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
async def test_an_invalid_timeout_is_rejected_before_anything_is_sent(timeout: float) -> None:
    calls = await Calls().ready()
    with pytest.raises(InvalidRequestError):
        await calls.put(timeout=timeout)
    assert calls.asked() == []
    await calls.aclose()


async def test_a_timeout_of_zero_is_over_before_anything_is_sent() -> None:
    calls = Calls()
    with pytest.raises(NoAvailableEndpointsError):
        await calls.put(timeout=0)
    await calls.ready()
    with pytest.raises(EtcdTimeoutError) as caught:
        await calls.put(timeout=0)
    assert not caught.value.maybe_applied
    assert calls.asked() == []
    await calls.aclose()


async def test_the_timeout_is_the_clients_unless_the_call_says_otherwise() -> None:
    calls = await Calls(timeout=7.0).ready()
    started = calls.loop.time()
    await calls.put()
    await calls.put(timeout=2.0)
    await calls.put(timeout=None)
    assert [attempt.deadline - started for attempt in calls.engine.attempts] == [
        pytest.approx(7.0),
        pytest.approx(2.0),
        float("inf"),
    ]
    await calls.aclose()


# Requests.


async def test_a_request_that_is_too_large_is_refused_before_anything_is_sent() -> None:
    calls = await Calls(max_send_bytes=100).ready()
    await calls.invoker.unary(PUT, pb.PutRequest(key=b"k", value=b"v" * 90))
    with pytest.raises(RequestTooLargeError, match="max_send_bytes") as caught:
        await calls.invoker.unary(PUT, pb.PutRequest(key=b"k", value=b"v" * 200))
    assert not caught.value.maybe_applied
    assert calls.asked() == ["m1"]
    await calls.aclose()


@pytest.mark.parametrize("retry", ["", "nver", "ALWAYS"])
async def test_an_unknown_retry_mode_is_rejected(retry: str) -> None:
    calls = await Calls().ready()
    with pytest.raises(InvalidRequestError, match="retry"):
        await calls.put(retry=retry)  # type: ignore[arg-type]
    assert calls.asked() == []
    await calls.aclose()


async def test_metadata_says_which_api_and_whether_a_leader_is_needed() -> None:
    calls = await Calls().ready()
    await calls.read(needs_leader=False)
    await calls.read()
    plain = ("client-api-version", API_VERSION)
    assert [attempt.metadata for attempt in calls.engine.attempts] == [(plain,), (plain, ("hasleader", "true"))]
    await calls.aclose()


# What may be repeated.


async def test_a_request_that_only_reads_is_repeated_and_leaves_no_doubt() -> None:
    calls = await Calls(max_send_bytes=1000).ready()
    for name in ("m1", "m2"):
        calls[name].answers.append(unknown())
    calls["m3"].answers.append(b"")
    await calls.invoker.unary(TXN, pb.TxnRequest(), repeatable=True)
    assert calls.asked() == ["m1", "m2", "m3"]
    for name in calls.names:
        calls.engine[name].otherwise = Hang()
    with pytest.raises(EtcdTimeoutError) as caught:
        await calls.invoker.unary(TXN, pb.TxnRequest(), repeatable=True)
    assert not caught.value.maybe_applied
    await calls.aclose()


async def test_a_request_that_must_not_be_repeated_is_not_whatever_its_method_says() -> None:
    calls = await Calls().ready()
    calls["m1"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await calls.invoker.unary(LEASE_GRANT, pb.LeaseGrantRequest(ttl=5), repeatable=False)
    assert caught.value.maybe_applied
    assert calls.asked() == ["m1"]
    await calls.aclose()


async def test_a_read_that_must_not_be_repeated_is_still_no_mutation() -> None:
    calls = await Calls().ready()
    calls["m1"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await calls.read(repeatable=False)
    assert not caught.value.maybe_applied
    await calls.aclose()


async def test_a_mutation_that_may_be_repeated_is_still_a_mutation() -> None:
    calls = await Calls(timeout=1.0).ready()
    for name in calls.names:
        calls.engine[name].otherwise = leader_changed()
    with pytest.raises(Exception, match="leader changed") as caught:
        await calls.invoker.unary(LEASE_GRANT, pb.LeaseGrantRequest(ttl=5, id=7))
    assert caught.value.maybe_applied  # type: ignore[attr-defined]
    assert len(calls.asked()) > 3
    await calls.aclose()


# One endpoint.


async def test_a_call_to_one_endpoint_goes_there_and_nowhere_else() -> None:
    calls = await Calls().ready()
    for name in ("m2", "m2", "m3", "m1"):
        await calls.read(endpoint=name)
    assert calls.asked() == ["m2", "m2", "m3", "m1"]
    calls["m2"].answers.extend([unknown(), leader_changed(), unknown()])
    await calls.read(endpoint="m2")
    assert calls.asked()[4:] == ["m2"] * 4
    await calls.read()
    assert calls.asked()[8] == "m1", "the turns of the others are as they were"
    await calls.aclose()


async def test_a_mutation_at_one_endpoint_is_not_repeated_there_either() -> None:
    calls = await Calls().ready()
    calls["m2"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await calls.put(endpoint="m2")
    assert caught.value.maybe_applied
    assert calls.asked() == ["m2"]
    await calls.aclose()


async def test_a_call_to_one_endpoint_is_given_all_its_time_there() -> None:
    calls = await Calls().ready()
    calls["m2"].otherwise = Hang()
    started = calls.loop.time()
    with pytest.raises(EtcdTimeoutError) as caught:
        await calls.read(endpoint="m2")
    assert calls.loop.time() - started == pytest.approx(5.0)
    assert len(caught.value.attempts) == 1
    await calls.aclose()


async def test_an_unknown_endpoint_is_rejected_before_anything_is_sent() -> None:
    calls = await Calls().ready()
    with pytest.raises(UnknownEndpointError, match="m1:2379, m2:2379, m3:2379"):
        await calls.read(endpoint="m4")
    assert calls.asked() == []
    assert calls.invoker.endpoints == ("m1:2379", "m2:2379", "m3:2379")
    await calls.aclose()


async def test_an_endpoint_that_is_removed_ends_the_wait_for_it() -> None:
    calls = await Calls().ready()
    calls["m2"].dial = Hang()
    calls["m2"].connection.lose(ConnectionResetError())
    waiting = asyncio.create_task(calls.read(endpoint="m2", timeout=None))
    await turns()
    calls.balancer.set_endpoints(calls.balancer.endpoints[:1])
    with pytest.raises(UnknownEndpointError, match="was removed"):
        await waiting
    await calls.aclose()


# Hedging.


async def test_a_slow_read_is_asked_of_another_member_and_a_write_never() -> None:
    calls = await Calls(hedge_after=0.05).ready()
    calls["m1"].answers.append(Hang())
    began = calls.loop.time()
    await calls.read()
    assert calls.loop.time() - began == pytest.approx(0.05)
    assert calls.asked() == ["m1", "m2"]
    calls["m1"].latency = calls["m2"].latency = calls["m3"].latency = 0.2
    before = len(calls.asked())
    await calls.put()
    assert len(calls.asked()) == before + 1
    await calls.aclose()


async def test_a_hedged_read_that_fails_does_not_move_to_the_member_of_its_hedge() -> None:
    calls = await Calls(hedge_after=0.05, pick=lambda candidates: candidates[0]).ready()
    calls["m1"].latency = 0.1
    calls["m1"].answers.append(leader_changed())
    calls["m2"].answers.append(Hang())
    await calls.read()
    assert calls.asked() == ["m1", "m2", "m3"]
    await calls.aclose()


async def test_a_read_that_must_not_be_retried_is_not_hedged_either() -> None:
    calls = await Calls(hedge_after=0.05).ready()
    calls["m1"].latency = 0.2
    await calls.read(retry="never")
    assert calls.asked() == ["m1"]
    await calls.aclose()


async def test_an_error_of_a_token_function_names_the_call_that_needed_the_token() -> None:
    async def give() -> str:
        raise ValueError("the vault is closed")

    calls = await Calls(credentials=TokenSource(give)).ready()
    with pytest.raises(TokenUnavailableError) as caught:
        await calls.put()
    assert str(caught.value).startswith("put 'k': token= raised ValueError")
    assert not caught.value.maybe_applied
    await calls.aclose()
