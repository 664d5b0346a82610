import asyncio

import pytest

from etcd_aio.balancer import SubConnection
from etcd_aio.error_handler.stream_failures import StreamFailures
from etcd_aio.error_handler.verdicts import Verdict
from etcd_aio.errors import ConnectError, ConnectionLostError
from tests.support.calls import Calls
from tests.support.fake_engine import Refuse
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio

AT_ONCE, BACKOFF = Verdict.AT_ONCE, Verdict.BACKOFF


def new(calls: Calls) -> StreamFailures:
    return StreamFailures(calls.balancer, calls.policy.backoff(), lambda: 0.5)


def fail(
    calls: Calls, failures: StreamFailures, reason: str = "lost", *, now: float = 0.0, pushback: float | None = None
) -> SubConnection:
    picked = calls.balancer.pick(failures.avoid(now))
    assert picked is not None
    failures.on_failure(picked, ConnectionLostError(reason), now, pushback=pushback)
    return picked


async def test_each_endpoint_is_tried_before_one_is_tried_again() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    first = [fail(calls, failures) for _ in range(3)]
    assert len(set(first)) == 3
    assert failures.avoid(0.0) == (first[-1],)
    failures.on_reply()
    assert not failures.avoid(0.0)
    await calls.aclose()


async def test_at_once_waits_only_where_all_have_failed() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(9):
        fail(calls, failures)
        waits.append(failures.wait(AT_ONCE))
    assert waits[:3] == [0.0, 0.0, 0.025]
    assert max(waits) > 0.025
    failures.on_reply()
    fail(calls, failures)
    assert failures.wait(AT_ONCE) == 0.0
    await calls.aclose()


async def test_a_refusal_waits_after_each_quorum_longer_up_to_the_cap() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(60):
        fail(calls, failures)
        waits.append(failures.wait(BACKOFF))
    assert waits[:4] == pytest.approx([0.0, 0.025, 0.0, 0.04])
    assert max(waits) == 1.0
    await calls.aclose()


async def test_a_member_that_asks_to_be_left_alone_is_and_the_others_are_tried() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    pushed = fail(calls, failures, pushback=20.0)
    assert failures.wait(BACKOFF) == 0.0
    assert failures.pushed_back_until(0.0) is None
    others = [fail(calls, failures, now=1.0) for _ in range(10)]
    assert pushed not in others
    assert len(set(others)) == 2
    assert max(failures.wait(BACKOFF) for _ in range(3)) <= 1.0
    later = [fail(calls, failures, now=20.5) for _ in range(3)]
    assert pushed in later
    await calls.aclose()


async def test_where_all_ask_for_it_the_first_that_may_be_tried_is_waited_for() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    fail(calls, failures, pushback=8.0)
    first = fail(calls, failures, pushback=0.7)
    fail(calls, failures, pushback=9.0)
    assert failures.pushed_back_until(0.0) == 0.7
    assert failures.pushed_back_until(0.7) is None
    assert calls.balancer.pick(failures.avoid(0.7)) is first
    await calls.aclose()


@pytest.mark.parametrize(("pushback", "seconds"), [(999_999.999, 30.0), (0.0, 0.0), (-1.0, 1.0)])
async def test_a_pushback_is_bounded_and_do_not_retry_is_the_longest_wait(pushback: float, seconds: float) -> None:
    calls = await Calls(1).ready()
    failures = new(calls)
    fail(calls, failures, now=100.0, pushback=pushback)
    assert (failures.pushed_back_until(100.0) or 100.0) == 100.0 + seconds
    assert failures.pushed_back_until(100.0 + seconds) is None
    await calls.aclose()


async def test_streams_that_answer_and_end_at_once_are_no_busy_loop() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(8):
        failures.on_reply()
        failures.on_served_for(0.01)
        fail(calls, failures)
        waits.append(failures.wait(AT_ONCE))
    assert waits[:3] == [0.0] * 3
    assert all(waits[3:]), waits
    failures.on_served_for(60.0)
    failures.on_reply()
    fail(calls, failures)
    assert failures.wait(AT_ONCE) == 0.0
    await calls.aclose()


async def test_an_outage_names_each_endpoints_real_cause() -> None:
    calls = Calls()
    calls["m1"].dial = Refuse(ConnectionRefusedError(111, "refused"))
    calls.lifetime.enter()
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
