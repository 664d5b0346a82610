import asyncio

import pytest

from etcd_aio.balancer import SubConnection
from etcd_aio.error_handler.stream_failures import StreamFailures
from etcd_aio.error_handler.stream_verdict import StreamVerdict
from etcd_aio.errors import ConnectError, ConnectionLostError
from tests.support.calls import Calls
from tests.support.fake_engine import Refuse
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio

AT_ONCE, BACKOFF = StreamVerdict.AT_ONCE, StreamVerdict.BACKOFF


def new(calls: Calls) -> StreamFailures:
    return StreamFailures(calls.balancer, calls.policy.backoff(), lambda: 0.5)


def fail(calls: Calls, failures: StreamFailures, reason: str = "lost") -> SubConnection:
    picked = calls.balancer.pick(failures.avoid)
    assert picked is not None
    failures.on_failure(picked, ConnectionLostError(reason))
    return picked


async def test_each_endpoint_is_tried_before_one_is_tried_again() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    first = [fail(calls, failures) for _ in range(3)]
    assert len(set(first)) == 3
    assert failures.avoid == (first[-1],)
    failures.on_reply()
    assert not failures.avoid
    await calls.aclose()


async def test_at_once_waits_only_where_all_have_failed() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(9):
        fail(calls, failures)
        waits.append(failures.wait(AT_ONCE, None))
    assert waits[:3] == [0.0, 0.0, 0.025]
    assert max(waits) > 0.025
    failures.on_reply()
    fail(calls, failures)
    assert failures.wait(AT_ONCE, None) == 0.0
    await calls.aclose()


async def test_a_refusal_waits_after_each_quorum_longer_up_to_the_cap() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(60):
        fail(calls, failures)
        waits.append(failures.wait(BACKOFF, None))
    assert waits[:4] == pytest.approx([0.0, 0.025, 0.0, 0.04])
    assert max(waits) == 1.0
    await calls.aclose()


async def test_the_servers_wish_to_wait_is_obeyed() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    fail(calls, failures)
    assert failures.wait(BACKOFF, 0.7) == 0.7
    assert failures.wait(BACKOFF, -1.0) == 1.0
    await calls.aclose()


async def test_streams_that_answer_and_end_at_once_are_no_busy_loop() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(8):
        failures.on_reply()
        failures.on_served_for(0.01)
        fail(calls, failures)
        waits.append(failures.wait(AT_ONCE, None))
    assert waits[:3] == [0.0] * 3
    assert all(waits[3:]), waits
    failures.on_served_for(60.0)
    failures.on_reply()
    fail(calls, failures)
    assert failures.wait(AT_ONCE, None) == 0.0
    await calls.aclose()


async def test_an_outage_names_each_endpoints_real_cause() -> None:
    calls = Calls()
    calls["m1"].dial = Refuse(ConnectionRefusedError(111, "refused"))
    calls.lifetime.enter()
    calls.balancer.start()
    await turns()
    failures = new(calls)
    fail(calls, failures, "it fell silent")
    error = failures.outage_error()
    texts = {name.split("//")[-1][:2]: str(cause) for name, cause in error.errors.items()}
    assert "refused" in texts["m1"]
    assert sorted((texts["m2"], texts["m3"])) == ["connected, but no stream was opened on it yet", "it fell silent"]
    assert any(isinstance(cause, ConnectError) for cause in error.errors.values())
    await calls.aclose()
    await asyncio.sleep(0)
