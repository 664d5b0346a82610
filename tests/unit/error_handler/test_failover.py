"""error_handler/failover.py: whom the next attempt avoids, and how long it waits."""

import asyncio
from collections.abc import Collection
from typing import cast

import pytest

from etcd_aio.balancer import Balancer, SubConnection
from etcd_aio.base.backoff import Backoff
from etcd_aio.error_handler.failover import StreamFailures, next_avoided, seconds_before_next
from etcd_aio.error_handler.retry_verdicts import RetryVerdict
from etcd_aio.errors import ConnectError, ConnectionLostError
from tests.support.calls import Calls
from tests.support.fake_engine import Refuse
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio

AT_ONCE, BACKOFF = RetryVerdict.AT_ONCE, RetryVerdict.BACKOFF
WAITS = Backoff(initial=1.0, multiplier=2.0, maximum=16.0, jitter=0.0)


class FakeMembers:
    """So many endpoints, of which so many are READY."""

    def __init__(self, endpoints: int, ready: int, *, has_other: bool = False) -> None:
        self.endpoints = range(endpoints)
        self.ready_count = ready
        self._has_other = has_other

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        return self._has_other


def fake_members(endpoints: int, ready: int, *, has_other: bool = False) -> Balancer:
    return cast("Balancer", FakeMembers(endpoints, ready, has_other=has_other))


def wait(failures: int, endpoints: int, *, is_throttled: bool = False, pushback: float | None = None) -> float:
    return seconds_before_next(
        RetryVerdict.BACKOFF,
        failures,
        fake_members(endpoints, endpoints),
        WAITS,
        lambda: 0.5,
        is_another_ready=True,
        is_throttled=is_throttled,
        pushback=pushback,
    )


@pytest.mark.parametrize(
    ("endpoints", "waits"),
    [
        (1, [1, 2, 4, 8, 16, 16, 16, 16, 16]),
        (2, [0, 1, 0, 2, 0, 4, 0, 8, 0]),
        (3, [0, 1, 0, 2, 0, 4, 0, 8, 0]),
        (4, [0, 0, 1, 0, 0, 2, 0, 0, 4]),
        (5, [0, 0, 1, 0, 0, 2, 0, 0, 4]),
    ],
)
def test_a_wait_follows_each_quorum_of_failures(endpoints: int, waits: list[float]) -> None:
    assert [wait(repetition, endpoints) for repetition in range(1, 10)] == waits


def test_the_wait_that_the_server_asks_for_takes_precedence() -> None:
    assert wait(1, 3, pushback=7.5) == 7.5
    assert wait(2, 3, pushback=0.0) == 0.0
    assert wait(2, 3, is_throttled=True, pushback=0.25) == 0.25


def test_throttled_calls_take_the_longest_wait_before_every_attempt() -> None:
    assert [wait(repetition, 3, is_throttled=True) for repetition in (1, 2, 3)] == [16.0, 16.0, 16.0]


def at_once(failures: int, ready: int, *, is_another_ready: bool) -> float:
    return seconds_before_next(
        AT_ONCE, failures, fake_members(3, ready), WAITS, lambda: 0.5, is_another_ready=is_another_ready
    )


def test_at_once_is_at_once_while_another_member_is_ready_or_none_is() -> None:
    assert at_once(9, 3, is_another_ready=True) == 0
    assert at_once(9, 0, is_another_ready=False) == 0


def test_at_once_waits_for_the_backoff_if_every_ready_member_has_failed() -> None:
    assert [at_once(failures, 2, is_another_ready=False) for failures in range(2, 8)] == [1, 1, 2, 2, 4, 4]


def test_the_shortest_wait_is_the_initial_one_even_if_a_member_was_avoided_without_a_failure() -> None:
    # A hedged read avoids the member of the first read, so there are more avoided members than failures.
    assert at_once(1, 2, is_another_ready=False) == WAITS.initial


def test_a_pushback_does_not_concern_attempts_at_once() -> None:
    members = fake_members(3, 3)
    assert seconds_before_next(AT_ONCE, 1, members, WAITS, lambda: 0.5, is_another_ready=True, pushback=7.5) == 0


@pytest.mark.parametrize("has_other", [True, False])
async def test_members_that_failed_are_avoided_until_all_have_failed(has_other: bool) -> None:
    calls = await Calls(2).ready()
    first, second = calls.balancer.pick(), calls.balancer.pick()
    assert first is not None
    assert second is not None
    members = fake_members(2, 2, has_other=has_other)
    assert next_avoided((first,), second, members) == (((first, second) if has_other else (second,)), has_other)
    await calls.aclose()


# Streams.


def new(calls: Calls) -> StreamFailures:
    return StreamFailures(calls.balancer, calls.policy.backoff(), lambda: 0.5)


def fail(
    calls: Calls, failures: StreamFailures, reason: str = "lost", *, now: float = 0.0, pushback: float | None = None
) -> SubConnection:
    picked = calls.balancer.pick(failures.avoid(now))
    assert picked is not None
    failures.on_failure(picked, ConnectionLostError(reason), now, pushback=pushback)
    return picked


async def test_a_stream_tries_each_endpoint_before_it_tries_one_again() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    first = [fail(calls, failures) for _ in range(3)]
    assert len(set(first)) == 3
    assert failures.avoid(0.0) == (first[-1],)
    failures.on_reply()
    assert not failures.avoid(0.0)
    await calls.aclose()


async def test_at_once_waits_only_if_all_members_have_failed() -> None:
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


async def test_a_reply_ends_the_errors_of_an_outage() -> None:
    calls = await Calls(1).ready()
    failures = new(calls)
    fail(calls, failures)
    assert failures.is_everywhere(ConnectionLostError)
    failures.on_reply()
    assert not failures.is_everywhere(ConnectionLostError)
    await calls.aclose()


async def test_refusals_wait_longer_after_each_quorum_up_to_the_maximum() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    waits = []
    for _ in range(60):
        fail(calls, failures)
        waits.append(failures.wait(BACKOFF))
    assert waits[:4] == pytest.approx([0.0, 0.025, 0.0, 0.04])
    assert max(waits) == 1.0
    await calls.aclose()


async def test_a_member_that_asks_for_a_pause_gets_it_and_the_others_are_tried() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    pushed = fail(calls, failures, pushback=20.0)
    assert failures.wait(BACKOFF) == 0.0
    assert failures.paused_until(0.0) is None
    others = [fail(calls, failures, now=1.0) for _ in range(10)]
    assert pushed not in others
    assert len(set(others)) == 2
    assert max(failures.wait(BACKOFF) for _ in range(3)) <= 1.0
    later = [fail(calls, failures, now=20.5) for _ in range(3)]
    assert pushed in later
    await calls.aclose()


async def test_a_member_that_has_failed_is_tried_again_before_one_whose_pause_has_not_ended() -> None:
    calls = await Calls(2).ready()
    failures = new(calls)
    pushed = fail(calls, failures, pushback=20.0)
    assert pushed not in [fail(calls, failures, now=1.0) for _ in range(6)]
    await calls.aclose()


async def test_if_all_members_ask_for_a_pause_the_shortest_one_is_waited_for() -> None:
    calls = await Calls().ready()
    failures = new(calls)
    fail(calls, failures, pushback=8.0)
    first = fail(calls, failures, pushback=0.7)
    fail(calls, failures, pushback=9.0)
    assert failures.paused_until(0.0) == 0.7
    assert failures.paused_until(0.7) is None
    assert calls.balancer.pick(failures.avoid(0.7)) is first
    await calls.aclose()


@pytest.mark.parametrize(("pushback", "seconds"), [(999_999.999, 30.0), (0.0, 0.0), (-1.0, 1.0)])
async def test_a_pause_is_bounded_and_do_not_retry_means_the_longest_wait(pushback: float, seconds: float) -> None:
    calls = await Calls(1).ready()
    failures = new(calls)
    fail(calls, failures, now=100.0, pushback=pushback)
    assert (failures.paused_until(100.0) or 100.0) == 100.0 + seconds
    assert failures.paused_until(100.0 + seconds) is None
    await calls.aclose()


async def test_streams_that_end_right_after_a_reply_are_not_reopened_in_a_busy_loop() -> None:
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


async def test_the_error_of_an_outage_has_the_cause_of_each_endpoint() -> None:
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
