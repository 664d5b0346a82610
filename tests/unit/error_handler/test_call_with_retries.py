"""error_handler/call_with_retries.py: attempts, retries and failovers of one call, its waits, and its errors."""

import asyncio
import copy
import logging
import pickle
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.base.call_options import RetryMode
from etcd_aio.error_handler import RetryPolicy, RetryThrottling
from etcd_aio.error_handler.credentials import Password, StaticToken
from etcd_aio.error_handler.login import TIMEOUT
from etcd_aio.errors import (
    AttemptFailure,
    AuthenticationFailedError,
    AuthError,
    AuthOldRevisionError,
    ClientClosedError,
    ClusterChangedError,
    ConnectError,
    ConnectionLostError,
    Delivery,
    EtcdError,
    EtcdTimeoutError,
    InvalidTokenError,
    LeaderChangedError,
    LeaseNotFoundError,
    LocalReason,
    MalformedReplyError,
    NoAvailableEndpointsError,
    NoLeaderError,
    NoSpaceError,
    NotSupportedForLearnerError,
    ReplyTooLargeError,
    RequestTooLargeError,
    ServerError,
    StatusCode,
    UnknownServerError,
    UserEmptyError,
)
from etcd_aio.errors.server_error_table import ROWS, Row
from etcd_aio.methods import AUTHENTICATE, PUT, RANGE, STATUS
from etcd_aio.types import Health
from tests.support.calls import (
    CLUSTER,
    Calls,
    Replies,
    answered,
    leader_changed,
    learner,
    no_leader,
    reply,
    unknown,
    unprocessed,
    unsent,
)
from tests.support.fake_engine import Accept, Answer, FakeAttempt, Hang, InPieces, Refuse
from tests.support.tokens import Doorman
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio

Make = Callable[[Calls], Awaitable[object]]


async def read(calls: Calls) -> object:
    return await calls.read()


async def put(calls: Calls) -> object:
    return await calls.put()


EITHER = pytest.mark.parametrize("make", [read, put])


@asynccontextmanager
async def world(members: int = 3, **options: Any) -> AsyncIterator[Calls]:
    """Ready members; afterwards nothing may be left of anything."""
    calls = await Calls(members, **options).ready()
    yield calls
    await turns()
    assert calls.in_flight() == 0
    await calls.aclose()
    assert not tasks()


def answers(calls: Calls, *failures: Answer) -> None:
    """What becomes of the first attempts, whoever gets them: m1 is asked first, then m2, m3, m1 ..."""
    for number, failure in enumerate(failures):
        calls[f"m{number % len(calls.names) + 1}"].answers.append(failure)


# The short path.


async def test_a_call_that_succeeds_is_one_attempt() -> None:
    async with world() as calls:
        started = calls.loop.time()
        assert (await calls.read()).header is not None
        (attempt,) = calls.engine.attempts
        assert attempt.metadata == (("client-api-version", "3.7"), ("hasleader", "true"))
        assert attempt.path == "/etcdserverpb.KV/Range"
        assert calls.loop.time() == started


async def test_calls_go_round() -> None:
    async with world() as calls:
        for _ in range(6):
            await calls.put()
        assert calls.asked() == ["m1", "m2", "m3"] * 2


# UNSENT and UNPROCESSED.


@EITHER
async def test_what_was_not_sent_goes_to_the_next_endpoint_at_once(make: Make) -> None:
    async with world() as calls:
        answers(calls, unsent(), unsent())
        await make(calls)
        assert calls.asked() == ["m1", "m2", "m3"]
        assert calls.times() == [0.0, 0.0]


@EITHER
async def test_what_was_not_processed_goes_on_at_once_but_only_once(make: Make) -> None:
    async with world(2) as calls:
        answers(calls, unprocessed(), unprocessed(), unprocessed())
        await make(calls)
        assert calls.asked() == ["m1", "m2", "m1", "m2"]
        assert calls.times() == pytest.approx([0.0, 0.025, 0.025])


@pytest.mark.parametrize("members", [1, 3])
@EITHER
async def test_a_connection_that_sends_nothing_for_a_while_uses_no_call_up(make: Make, members: int) -> None:
    # It is READY still, since its end was not noticed yet: every attempt fails without any time passing.
    async with world(members) as calls:
        for name in calls.names:
            calls.engine[name].connection.is_draining = True

        def recover() -> None:
            for name in calls.names:
                calls.engine[name].connection.is_draining = False

        calls.loop.call_later(0.5, recover)
        await make(calls)
        assert 0.4 < calls.loop.time() - 1000.0 < 1.5


async def test_an_unsent_attempt_on_the_last_connection_waits_for_its_successor_and_no_longer() -> None:
    async with world(1) as calls:
        await asyncio.sleep(10)
        member = calls["m1"]
        member.dial = Accept(seconds=0.001)

        def lost(attempt: FakeAttempt) -> bytes:
            member.connection.lose(ConnectionResetError(), Delivery.UNSENT)
            return b""

        member.answers.append(lost)
        await calls.put()
        assert calls.times() == pytest.approx([0.001])


# UNKNOWN.


async def test_a_mutation_that_was_sent_is_raised_and_never_sent_again() -> None:
    async with world() as calls:
        answers(calls, unknown())
        with pytest.raises(ConnectionLostError) as caught:
            await calls.put()
        error = caught.value
        assert calls.asked() == ["m1"]
        assert error.maybe_applied
        assert error.endpoint == "m1:2379"
        (attempt,) = error.attempts
        assert (attempt.endpoint, attempt.code, attempt.delivery) == (
            "m1:2379",
            StatusCode.UNAVAILABLE,
            Delivery.UNKNOWN,
        )
        assert any("attempt 1 on m1:2379" in note for note in error.__notes__)
        assert str(error) == ("put 'k': the connection was lost (at m1:2379 after 0 ms; it may have been applied)")
        assert error.__cause__ is None
        assert error.__context__ is None or error.__context__.__traceback__ is None, "its frames hold the request"
        # Without the lines of source: some Pythons quote this test's own, which has the value.
        shown = traceback.format_exception_only(error)
        assert "secret" not in "".join(shown)


async def test_a_read_that_was_sent_goes_to_the_next_endpoint() -> None:
    async with world() as calls:
        answers(calls, unknown(), unknown(), unknown())
        await calls.read()
        assert calls.asked() == ["m1", "m2", "m3", "m1"]
        assert calls.times() == pytest.approx([0.0, 0.025, 0.025])  # a quorum was tried


async def test_a_lost_connection_ends_its_calls_and_the_others_go_on() -> None:
    async with world() as calls:
        calls["m1"].otherwise = Hang()
        reading = asyncio.ensure_future(calls.read())
        await turns()
        calls["m1"].connection.lose(ConnectionResetError(104, "reset"))
        await reading
        assert calls.asked() in (["m1", "m2"], ["m1", "m3"])


async def test_each_endpoint_is_tried_before_any_is_tried_again() -> None:
    async with world(4) as calls:
        calls["m1"].dial = Hang()

        def lost(attempt: FakeAttempt) -> bytes:
            attempt.member.connection.lose(ConnectionResetError())
            raise unknown()

        calls["m1"].answers.append(lost)  # m1 leaves the rotation, and counts for nothing from here on
        for name in ("m2", "m3", "m4"):
            calls[name].answers.append(unknown())
        await calls.read()
        asked = calls.asked()
        assert asked[0] == "m1"
        assert set(asked[1:4]) == {"m2", "m3", "m4"}
        assert len(asked) == 5


# ANSWERED.


async def test_no_leader_to_a_call_that_asks_for_one_moves_a_mutation_on() -> None:
    async with world() as calls:
        answers(calls, no_leader())
        await calls.put()
        assert calls.asked()[0] == "m1"
        assert calls.asked()[1:] in (["m2"], ["m3"])


@pytest.mark.parametrize("options", [{"require_leader": False}, {}])
async def test_no_leader_to_a_call_that_does_not_proves_nothing(options: dict[str, Any]) -> None:
    async with world(**options) as calls:
        answers(calls, no_leader())
        with pytest.raises(NoLeaderError) as caught:
            await calls.put(needs_leader=bool(options))
        assert caught.value.maybe_applied
        assert calls.asked() == ["m1"]
        assert ("hasleader", "true") not in calls.engine.attempts[0].metadata
        await calls.read(needs_leader=False)  # the first turn of its kind, or the second
        first = calls.asked()[1]
        assert first == ("m1" if options else "m2")


async def test_no_leader_to_a_read_that_needs_none_moves_it_on() -> None:
    async with world() as calls:
        answers(calls, no_leader())
        await calls.read(needs_leader=False)
        assert calls.asked() == ["m1", "m2"]


async def test_leader_changed_moves_a_read_on_and_ends_a_mutation() -> None:
    async with world() as calls:
        answers(calls, leader_changed(), leader_changed())
        await calls.read()
        assert calls.asked() == ["m1", "m2", "m3"]
        calls["m1"].answers.append(leader_changed())
        with pytest.raises(LeaderChangedError) as caught:
            await calls.put()
        assert caught.value.maybe_applied
        assert len(calls.engine.attempts) == 4


@EITHER
async def test_a_learner_refuses_and_another_member_takes_it(make: Make) -> None:
    async with world(2) as calls:
        answers(calls, learner())
        await make(calls)
        assert calls.asked() == ["m1", "m2"]


@EITHER
async def test_a_learner_alone_refuses_for_good(make: Make) -> None:
    async with world(1) as calls:
        answers(calls, learner())
        with pytest.raises(NotSupportedForLearnerError) as caught:
            await make(calls)
        assert not caught.value.maybe_applied
        assert calls.asked() == ["m1"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests"),
        (StatusCode.UNKNOWN, "raft proposal dropped"),
        (StatusCode.FAILED_PRECONDITION, "etcdserver: not capable"),
    ],
)
async def test_what_was_refused_before_it_could_run_moves_on(code: StatusCode, text: str) -> None:
    async with world() as calls:
        answers(calls, answered(code, text))
        await calls.put()
        assert calls.asked() == ["m1", "m2"]


@pytest.mark.parametrize(
    ("code", "text", "error", "maybe_applied"),
    [
        (StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", NoSpaceError, True),
        (StatusCode.NOT_FOUND, "etcdserver: requested lease not found", LeaseNotFoundError, False),
        (StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", UserEmptyError, False),
        (StatusCode.UNKNOWN, "what is this", UnknownServerError, True),
    ],
)
async def test_what_was_answered_for_good_is_raised(
    code: StatusCode, text: str, error: type[EtcdError], maybe_applied: bool
) -> None:
    async with world() as calls:
        answers(calls, answered(code, text), answered(code, text))
        with pytest.raises(error) as caught:
            await calls.put()
        assert caught.value.maybe_applied is maybe_applied
        with pytest.raises(error) as caught:
            await calls.read()
        assert not caught.value.maybe_applied
        assert calls.asked() == ["m1", "m2"]


async def test_an_early_doubt_stays() -> None:
    async with world(retry="always") as calls:
        answers(calls, unknown(), answered(StatusCode.NOT_FOUND, "etcdserver: requested lease not found"))
        with pytest.raises(LeaseNotFoundError) as caught:
            await calls.put()
        assert caught.value.maybe_applied
        assert [attempt.endpoint for attempt in caught.value.attempts] == ["m1:2379", "m2:2379"]


# Retry modes.


@pytest.mark.parametrize("failure", [unsent(), unprocessed(), unknown(), no_leader(), leader_changed()])
@EITHER
async def test_never_is_one_attempt(make: Make, failure: AttemptFailure) -> None:
    async with world(retry="never") as calls:
        answers(calls, failure)
        with pytest.raises(EtcdError):
            await make(calls)
        assert calls.asked() == ["m1"]


async def test_always_repeats_a_mutation_too() -> None:
    async with world() as calls:
        answers(calls, unknown(), leader_changed())
        await calls.put(retry="always")
        assert calls.asked() == ["m1", "m2", "m3"]


async def test_a_call_goes_before_the_client() -> None:
    async with world(retry="never") as calls:
        answers(calls, unknown())
        await calls.read(retry="safe")
        assert calls.asked() == ["m1", "m2"]


async def test_attempts_end_at_the_policys_limit() -> None:
    async with world(policy=RetryPolicy(max_attempts=4, jitter=0.0)) as calls:
        for name in ("m1", "m2", "m3"):
            calls[name].otherwise = unknown()
        with pytest.raises(ConnectionLostError) as caught:
            await calls.read()
        assert len(caught.value.attempts) == len(calls.asked()) == 4
        assert not caught.value.maybe_applied


# Waits.


@pytest.mark.parametrize(
    ("members", "times"),
    [
        (1, [0.025, 0.065, 0.129]),
        (3, [0.0, 0.025, 0.025, 0.065]),
        (5, [0.0, 0.0, 0.025, 0.025, 0.025, 0.065]),
    ],
)
async def test_backoff_comes_after_each_quorum_and_grows(members: int, times: list[float]) -> None:
    async with world(members) as calls:
        answers(calls, *(leader_changed() for _ in times))
        await calls.read()
        assert calls.times() == pytest.approx(times)


async def test_what_the_server_asks_for_is_obeyed() -> None:
    async with world() as calls:
        answers(calls, leader_changed(pushback=1.5), no_leader())
        await calls.read()
        assert calls.times()[0] == pytest.approx(1.5)


@EITHER
async def test_a_server_may_forbid_another_attempt(make: Make) -> None:
    async with world() as calls:
        answers(calls, answered(StatusCode.UNAVAILABLE, "etcdserver: no leader", pushback=-1.0))
        with pytest.raises(NoLeaderError):
            await make(calls)
        assert calls.asked() == ["m1"]


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    async with world() as calls:
        answers(calls, leader_changed(pushback=3600.0))
        started = calls.loop.time()
        with pytest.raises(LeaderChangedError):
            await calls.read()
        assert calls.loop.time() == started


async def test_an_exhausted_budget_slows_every_repetition_down() -> None:
    throttling = RetryThrottling(max_tokens=4, token_ratio=0.5)
    policy = RetryPolicy(jitter=0.0, max_backoff=0.5, throttling=throttling)
    async with world(policy=policy) as calls:
        answers(calls, leader_changed(), leader_changed(), leader_changed())
        await calls.read()
        assert calls.times() == pytest.approx([0.0, 0.5, 1.0])
        for _ in range(5):
            await calls.read()
        before = len(calls.engine.attempts)
        for name in ("m1", "m2", "m3"):
            calls[name].answers.append(leader_changed())
            await calls.read()
            await calls.read()
        at = [attempt.at for attempt in calls.engine.attempts[before:]]
        assert at[-1] - at[0] == 0.0  # enough was earned again


async def test_a_refusal_that_health_tells_to_all_costs_no_budget() -> None:
    """During an election every call is refused; what follows it must not wait for the longest backoff."""
    throttling = RetryThrottling(max_tokens=4, token_ratio=0.5)
    async with world(policy=RetryPolicy(jitter=0.0, max_backoff=0.5, throttling=throttling)) as calls:
        answers(calls, *[no_leader()] * 6)
        began = calls.loop.time()
        await calls.read()
        assert calls.loop.time() - began < 0.5


@pytest.mark.parametrize("make", [unsent, unprocessed])
async def test_what_is_repeated_at_once_costs_no_budget(make: Callable[[], AttemptFailure]) -> None:
    throttling = RetryThrottling(max_tokens=2, token_ratio=0.001)
    async with world(policy=RetryPolicy(jitter=0.0, throttling=throttling)) as calls:
        for _ in range(9):
            calls["m1"].answers.append(make())
            await calls.read()
            await calls.read()
            await calls.read()
        budget = calls.invoker._context.budget
        assert budget is not None
        assert not budget.is_exhausted


@pytest.mark.parametrize(
    ("slow", "waiting", "seconds"), [(0.0, 0, 2.5), (0.01, 0, 1.0), (0.2, 0, 1.6), (0.2, 400, 2.0), (9.0, 0, 2.5)]
)
async def test_an_attempt_waits_for_several_times_what_the_slowest_take(
    slow: float, waiting: int, seconds: float
) -> None:
    async with world() as calls:
        calls.balancer._health.p99_latency = slow
        sub_connection = calls.balancer.sub_connection("m1:2379")
        assert sub_connection is not None
        sub_connection.local_health.in_flight = waiting
        began = calls.loop.time()
        await calls.read()
        sub_connection.local_health.in_flight = 0
        assert calls.engine.attempts[0].deadline - began == pytest.approx(seconds)


def give_up_all(calls: Calls) -> None:
    for name in calls.names:
        calls.engine[name].connection.give_up("others answer")


async def test_a_read_that_is_given_up_moves_at_once_and_costs_budget() -> None:
    throttling = RetryThrottling(max_tokens=1, token_ratio=0.001)
    async with world(policy=RetryPolicy(jitter=0.0, max_backoff=0.5, throttling=throttling)) as calls:
        calls["m1"].answers.append(Hang())
        reading = asyncio.ensure_future(calls.read())
        await turns()
        began = calls.loop.time()
        give_up_all(calls)
        await reading
        assert calls.loop.time() == began
        assert calls.asked()[0] == "m1"
        budget = calls.invoker._context.budget
        assert budget is not None
        assert budget.is_exhausted
        for member in ("m1", "m2", "m3"):
            calls[member].latency = 0.5
        reading = asyncio.ensure_future(calls.read())
        await turns()
        give_up_all(calls)
        await reading
        assert len(calls.asked()) == 4, "where nothing answers, nothing is spared by staying"


async def test_a_read_leaves_each_member_once_and_then_stays() -> None:
    async with world() as calls:
        for name in ("m1", "m2", "m3"):
            calls[name].work = lambda attempt: 0.9
        reading = asyncio.ensure_future(calls.read())
        for _ in range(40):
            await asyncio.sleep(0.1)
            give_up_all(calls)
        await reading
        asked = calls.asked()
        assert sorted(asked[:3]) == ["m1", "m2", "m3"]
        assert len(asked) == 4


async def test_a_read_that_stays_has_all_the_time_that_is_left() -> None:
    async with world() as calls:
        for name in ("m1", "m2", "m3"):
            calls[name].work = lambda attempt: 4.0
        reading = asyncio.ensure_future(calls.read())
        for _ in range(3):
            await asyncio.sleep(0.1)
            give_up_all(calls)
        await reading
        assert len(calls.asked()) == 4


@pytest.mark.parametrize("attempts", [1, 2])
async def test_the_last_attempt_is_not_given_up(attempts: int) -> None:
    async with world(policy=RetryPolicy(max_attempts=attempts, jitter=0.0)) as calls:
        for name in ("m1", "m2", "m3"):
            calls[name].work = lambda attempt: 0.5
        reading = asyncio.ensure_future(calls.read())
        for _ in range(5):
            await asyncio.sleep(0.1)
            give_up_all(calls)
        await reading
        assert len(calls.asked()) == attempts


async def test_a_read_that_is_given_up_when_no_time_is_left_timed_out() -> None:
    async with world(2) as calls:
        for name in ("m1", "m2"):
            calls[name].otherwise = Hang()
        reading = asyncio.ensure_future(calls.read(timeout=0.3))
        await asyncio.sleep(0.1)
        give_up_all(calls)
        await asyncio.sleep(0.19)
        give_up_all(calls)  # the wait before the next attempt ends later than the call
        with pytest.raises(EtcdTimeoutError) as caught:
            await reading
        assert [attempt.message for attempt in caught.value.attempts] == ["others answer"] * 2


@pytest.mark.parametrize("every", [0.02, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("retry", ["safe", "always"])
async def test_a_read_that_is_slower_than_others_is_made_once(every: float, seconds: float, retry: RetryMode) -> None:
    async with world(sends_probes=True) as calls:

        def work(attempt: FakeAttempt) -> float:
            return seconds if b"report" in attempt.payload else 0.002

        for name in ("m1", "m2", "m3"):
            calls[name].work = work
        for _ in range(800):
            await calls.read()

        async def quick() -> None:
            while True:
                await calls.read()
                await asyncio.sleep(every)

        beside = asyncio.create_task(quick())
        for _ in range(20):
            request = pb.RangeRequest(key=b"report") if retry == "safe" else pb.PutRequest(key=b"report")
            method: Any = RANGE if retry == "safe" else PUT
            before = reports(calls)
            await calls.invoker.unary(method, request, retry=retry)
            assert reports(calls) == before + 1
            await asyncio.sleep(seconds)
        beside.cancel()
        assert {one.health for one in calls.balancer.statistics()} == {Health.HEALTHY}


def reports(calls: Calls) -> int:
    return sum(b"report" in attempt.payload for attempt in calls.engine.attempts)


@pytest.mark.parametrize("outage", [0.9, 1.4, 1.9])
async def test_a_frozen_leader_costs_the_election_and_little_more(outage: float) -> None:
    """No member answers for a while; then one does, another soon, and the third never."""
    async with world(sends_probes=True) as calls:
        for name in calls.names:
            calls.engine[name].latency = 0.002
        for _ in range(300):
            await calls.read()
        began = calls.loop.time()
        back = {"m1": 9999.0, "m2": outage, "m3": outage + 0.3}

        def work(attempt: FakeAttempt) -> float:
            return max(began + back[attempt.member.authority[:2]] - attempt.at, 0.0)

        for name in back:
            calls[name].work = work

        async def read() -> float:
            at = calls.loop.time() - began
            await calls.read()
            return max(calls.loop.time() - began - outage, 0.0) if calls.loop.time() - began > at + 0.2 else 0.0

        reads = []
        while calls.loop.time() < began + outage + 2:
            reads.append(asyncio.create_task(read()))
            await asyncio.sleep(0.002)
        assert max(await asyncio.gather(*reads)) < 0.2
        assert calls.balancer.statistics()[0].health is Health.SILENT
        calls["m1"].connection.lose(ConnectionResetError())


@pytest.mark.parametrize("silent", [["m1"], ["m1", "m2"], ["m2", "m3"], ["m1", "m3"]])
async def test_members_that_fall_silent_together_are_found_as_soon_as_one(silent: list[str]) -> None:
    """By one caller, whose reads come one after the other."""
    async with world(sends_probes=True) as calls:
        for name in calls.names:
            calls.engine[name].latency = 0.002
        for _ in range(30):
            await calls.read()
        for name in silent:
            calls[name].otherwise = Hang()
        longest = 0.0
        for _ in range(30):
            began = calls.loop.time()
            await calls.read()
            longest = max(longest, calls.loop.time() - began)
        assert longest < 0.6
        for name in silent:
            calls[name].connection.lose(ConnectionResetError())


@pytest.mark.parametrize("trip", [0.2, 0.3, 0.5])
async def test_round_trips_that_are_long_waste_no_attempts(trip: float) -> None:
    async with world(sends_probes=True) as calls:
        for name in calls.names:
            calls.engine[name].latency = trip
            calls.engine[name].work = lambda attempt: 0.4 if b"report" in attempt.payload else 0.0
        for _ in range(6):
            await calls.read()
        for _ in range(10):
            await calls.invoker.unary(RANGE, pb.RangeRequest(key=b"report"))
        assert reports(calls) == 10
        assert {one.health for one in calls.balancer.statistics()} == {Health.HEALTHY}


async def test_a_call_that_names_its_endpoint_waits_there() -> None:
    """Behind a slow link it would be given up again and again."""
    async with world() as calls:
        calls["m1"].latency = 0.5
        reading = asyncio.ensure_future(calls.read(endpoint="m1"))
        await turns()
        calls["m1"].connection.give_up("others answer")
        await reading
        assert calls.asked() == ["m1"]


async def test_without_a_budget_nothing_is_throttled() -> None:
    async with world(policy=RetryPolicy(jitter=0.0, throttling=None)) as calls:
        answers(calls, *[leader_changed()] * 5)
        await calls.read()
        assert calls.times() == pytest.approx([0.0, 0.025, 0.025, 0.065, 0.065])


# Deadlines.


@EITHER
@pytest.mark.parametrize("members", [1, 2, 3])
async def test_a_call_ends_by_its_deadline_whichever_member_hangs(make: Make, members: int) -> None:
    async with world(members) as calls:
        for name in calls.names:
            calls.engine[name].otherwise = Hang()
        started = calls.loop.time()
        with pytest.raises(EtcdTimeoutError) as caught:
            await make(calls)
        assert calls.loop.time() - started == pytest.approx(5.0, abs=1e-6)
        assert caught.value.maybe_applied is (make is put)
        assert caught.value.code is StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("failure", [unknown(), leader_changed(), unsent(), unprocessed(), no_leader()])
@pytest.mark.parametrize("timeout", [0.01, 0.3, 2.0, 7.0])
async def test_a_call_ends_by_its_deadline_whatever_fails(failure: AttemptFailure, timeout: float) -> None:
    async with world() as calls:
        for name in calls.names:
            calls.engine[name].otherwise = failure
            calls.engine[name].latency = 0.007
        started = calls.loop.time()
        with pytest.raises(EtcdError) as caught:
            await calls.read(timeout=timeout)
        assert calls.loop.time() - started <= timeout + 1e-6
        assert not caught.value.maybe_applied


async def test_a_read_leaves_a_silent_member_at_half_of_its_time_and_then_waits_for_the_rest() -> None:
    async with world() as calls:
        answers(calls, Hang(), Hang())
        started = calls.loop.time()
        with pytest.raises(EtcdTimeoutError):
            await calls.read()
        assert calls.asked() == ["m1", "m2"]
        assert calls.times() == pytest.approx([2.5])
        assert [attempt.deadline - started for attempt in calls.engine.attempts] == pytest.approx([2.5, 5.0])
        assert [attempt.whole_by for attempt in calls.engine.attempts] == [started + 5.0] * 2, "an answer may take all"


async def test_a_server_that_notices_the_half_first_is_the_same() -> None:
    async with world() as calls:
        calls["m1"].latency = 2.4999
        answers(calls, answered(StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"), Hang())
        started = calls.loop.time()
        with pytest.raises(EtcdTimeoutError):
            await calls.read()
        assert [attempt.deadline - started for attempt in calls.engine.attempts] == pytest.approx([2.5, 5.0])


@pytest.mark.parametrize(
    ("members", "options"),
    [
        (1, {}),
        (3, {"retry": "never"}),
        (3, {"policy": RetryPolicy(max_attempts=1)}),
    ],
)
async def test_a_read_that_no_other_member_can_take_over_has_all_the_time(
    members: int, options: dict[str, Any]
) -> None:
    async with world(members, **options) as calls:
        answers(calls, Hang())
        started = calls.loop.time()
        with pytest.raises(EtcdTimeoutError):
            await calls.read()
        assert calls.engine.attempts[0].deadline - started == pytest.approx(5.0)


async def test_the_last_attempt_of_the_policy_has_all_the_time() -> None:
    async with world(policy=RetryPolicy(max_attempts=2)) as calls:
        answers(calls, unknown(), Hang())
        with pytest.raises(EtcdTimeoutError):
            await calls.read()
        assert calls.loop.time() - calls.engine.attempts[0].at == pytest.approx(5.0)


async def test_a_mutation_has_all_the_time_and_one_that_may_run_twice_half() -> None:
    async with world() as calls:
        started = calls.loop.time()
        await calls.put()
        await calls.put(retry="always")
        assert [attempt.deadline - started for attempt in calls.engine.attempts] == pytest.approx([5.0, 2.5])


async def test_a_short_call_is_not_cut_below_a_second() -> None:
    async with world() as calls:
        started = calls.loop.time()
        await calls.read(timeout=1.5)
        await calls.read(timeout=0.4)
        assert [attempt.deadline - started for attempt in calls.engine.attempts] == pytest.approx([1.0, 0.4])


async def test_a_call_without_a_timeout_waits_until_it_is_served() -> None:
    async with world() as calls:
        for name in calls.names:
            calls.engine[name].latency = 600.0
        await calls.read(timeout=None)
        assert calls.engine.attempts[0].deadline == float("inf")


# No connection.


@EITHER
async def test_without_any_connection_the_error_names_every_reason(make: Make) -> None:
    calls = Calls()
    for name in calls.names:
        calls.engine[name].dial = Refuse(ConnectionRefusedError(111, f"{name} refused"))
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await make(calls)
    assert calls.loop.time() - 1000.0 == pytest.approx(5.0, abs=1e-6)
    assert set(caught.value.errors) == set(calls.names)
    assert all(name in str(caught.value) for name in calls.names)
    assert not caught.value.maybe_applied
    await calls.aclose()
    assert not tasks()


async def test_a_call_waits_for_the_first_connection() -> None:
    calls = Calls()
    for name in calls.names:
        calls.engine[name].dial = Accept(seconds=1.0)
    await calls.put()
    assert calls.loop.time() - 1000.0 == pytest.approx(1.0)
    await calls.aclose()


async def test_the_error_has_the_attempts_made_before_all_connections_were_lost() -> None:
    async with world(1, retry="always") as calls:
        member = calls["m1"]
        member.dial = Refuse()

        def lost(attempt: FakeAttempt) -> bytes:
            member.connection.lose(ConnectionResetError())
            raise unknown()

        member.answers.append(lost)
        with pytest.raises(NoAvailableEndpointsError) as caught:
            await calls.put()
        assert caught.value.maybe_applied
        assert len(caught.value.attempts) == 1


# Answers that are large.


def large_reply() -> bytes:
    kv = pb.KeyValue(key=b"k", value=bytes(1000), mod_revision=5)
    return codec.encode(pb.RangeResponse(header=pb.ResponseHeader(cluster_id=CLUSTER), kvs=[kv] * 1000, count=1000))


async def turns_during(calls: Calls) -> int:
    """How often other tasks run while a call is under way."""
    turns_taken = 0

    async def count() -> None:
        nonlocal turns_taken
        while True:
            turns_taken += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    try:
        found = await calls.read()
    finally:
        counting.cancel()
    assert len(found) == found.count
    return turns_taken


async def test_a_large_reply_is_read_in_steps_with_others_in_between() -> None:
    async with world() as calls:
        before = await turns_during(calls)
        for name in calls.names:
            calls.engine[name].otherwise = large_reply()
        assert await turns_during(calls) - before >= 1, "a megabyte takes two steps"


async def test_a_reply_in_pieces_is_read_as_it_comes() -> None:
    async with world() as calls:
        answers(calls, InPieces(large_reply()))
        assert len(await calls.read()) == 1000


@pytest.mark.parametrize("then", [InPieces(large_reply()), large_reply(), reply()], ids=["pieces", "whole", "small"])
async def test_what_came_of_a_reply_that_broke_off_is_dropped(then: Answer) -> None:
    async with world() as calls:
        answers(calls, InPieces(large_reply(), then=unknown()), then)
        found = await calls.read()
        assert calls.asked() == ["m1", "m2"]
        assert len(found) == found.count == (0 if isinstance(then, Replies) else 1000)


@pytest.mark.parametrize("payload", [large_reply() + b"\xff", b"\xff" * 20 + large_reply()], ids=["last", "first"])
async def test_a_malformed_reply_in_pieces_ends_the_call_as_a_whole_one_does(payload: bytes) -> None:
    async with world() as calls:
        answers(calls, InPieces(payload))
        with pytest.raises(MalformedReplyError) as caught:
            await calls.read()
        assert caught.value.__suppress_context__
        assert len(caught.value.attempts) == 1


async def test_a_large_reply_is_judged_like_a_small_one() -> None:
    async with world() as calls:
        await calls.read()  # which tells the cluster
        calls["m2"].answers.append(large_reply() + b"\xff")
        with pytest.raises(MalformedReplyError) as caught:
            await calls.read()
        assert len(caught.value.attempts) == 1
        foreign = pb.RangeResponse(header=pb.ResponseHeader(cluster_id=7), kvs=[pb.KeyValue(value=bytes(100_000))])
        calls["m3"].answers.append(codec.encode(foreign))
        with pytest.raises(ClusterChangedError):
            await calls.read(retry="never")


# Answers that are none.


async def test_a_malformed_reply_ends_the_call() -> None:
    async with world() as calls:
        for name in calls.names:
            calls.engine[name].otherwise = b"\xff\xff"
        with pytest.raises(MalformedReplyError) as caught:
            await calls.put()
        assert caught.value.maybe_applied
        assert caught.value.attempts[0].endpoint == "m1:2379"
        with pytest.raises(MalformedReplyError) as caught:
            await calls.read()
        assert not caught.value.maybe_applied
        assert calls.asked() == ["m1", "m2"]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE), ReplyTooLargeError),
        (unknown(StatusCode.INTERNAL), MalformedReplyError),
        (unknown(StatusCode.UNAVAILABLE), ConnectionLostError),
        (unknown(StatusCode.CANCELLED), ConnectionLostError),
    ],
)
async def test_a_failure_on_this_side_has_its_class(failure: AttemptFailure, error: type[EtcdError]) -> None:
    async with world() as calls:
        answers(calls, failure)
        with pytest.raises(error) as caught:
            await calls.put()
        assert type(caught.value) is error
        assert caught.value.code is failure.code
        assert caught.value.maybe_applied


async def test_a_reply_that_is_too_large_is_not_asked_for_again() -> None:
    async with world() as calls:
        answers(calls, unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE))
        with pytest.raises(ReplyTooLargeError):
            await calls.read()
        assert calls.asked() == ["m1"]


# Repetitions say so.


async def test_repetitions_carry_the_number_of_attempts_before() -> None:
    async with world() as calls:
        answers(calls, unknown(), no_leader(), unsent())
        await calls.read()
        counts = [dict(attempt.metadata).get("grpc-previous-rpc-attempts") for attempt in calls.engine.attempts]
        assert counts == [None, "1", "2", "3"]
        assert all(("hasleader", "true") in attempt.metadata for attempt in calls.engine.attempts)
        assert all(len(attempt.metadata) == len(dict(attempt.metadata)) for attempt in calls.engine.attempts)
        await calls.read()
        assert "grpc-previous-rpc-attempts" not in dict(calls.engine.attempts[-1].metadata)


# Another cluster.


async def test_a_read_that_another_cluster_answered_moves_on() -> None:
    async with world() as calls:
        await calls.read()
        calls["m2"].otherwise = reply(0xBAD)
        await calls.read()
        assert calls.asked() in (["m1", "m2", "m1"], ["m1", "m2", "m3"])
        assert dict(calls.engine.attempts[-1].metadata)["grpc-previous-rpc-attempts"] == "1"
        await asyncio.sleep(30)
        for _ in range(4):
            await calls.read()
        assert "m2" not in calls.asked()[3:]
        assert any(attempt.path == STATUS.path for attempt in calls["m2"].attempts)
        error = {one.endpoint: one.last_error for one in calls.balancer.statistics()}["m2:2379"]
        assert isinstance(error, ClusterChangedError)
        calls["m2"].otherwise = reply()
        await asyncio.sleep(2)
        for _ in range(3):
            await calls.read()
        assert "m2" in calls.asked()[-3:]


async def test_a_mutation_that_another_cluster_answered_is_raised() -> None:
    async with world() as calls:
        await calls.read()
        calls["m2"].otherwise = reply(0xBAD)
        with pytest.raises(ClusterChangedError, match="bad") as caught:
            await calls.put()
        assert caught.value.maybe_applied
        assert caught.value.endpoint == "m2:2379"
        assert calls.asked() == ["m1", "m2"]
        await calls.put()
        await calls.put()
        assert set(calls.asked()[2:]) == {"m1", "m3"}


async def test_if_every_endpoint_is_of_another_cluster_the_error_says_so() -> None:
    async with world(2) as calls:
        await calls.read()
        for name in calls.names:
            calls.engine[name].otherwise = reply(0xBAD)
        started = calls.loop.time()
        with pytest.raises(NoAvailableEndpointsError, match="ClusterChangedError") as caught:
            await calls.read()
        assert calls.loop.time() - started == pytest.approx(5.0, abs=1e-6)
        assert len(caught.value.attempts) == 2


# Cancellation and close.


STAGES: list[tuple[str, float]] = [
    ("attempt", 0.5),
    ("backoff", 0.5),
    ("waiting", 0.5),
    ("attempt", 0.0),
    ("backoff", 0.0),
]


async def staged(calls: Calls, stage: str) -> None:
    """Arrange that a read is, for some seconds, where `stage` says."""
    for name in calls.names:
        member = calls.engine[name]
        if stage == "attempt":
            member.otherwise = Hang()
        elif stage == "backoff":
            member.otherwise = leader_changed(pushback=4.0)
        else:
            member.dial = Refuse()
            member.connection.lose(ConnectionResetError())


@pytest.mark.parametrize(("stage", "after"), STAGES)
async def test_a_cancelled_call_ends_at_once_and_leaves_nothing(stage: str, after: float) -> None:
    async with world() as calls:
        await staged(calls, stage)
        call = asyncio.ensure_future(calls.read())
        await turns()
        await asyncio.sleep(after)
        cancelled_at = calls.loop.time()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        assert calls.loop.time() == cancelled_at
        assert calls.in_flight() == 0


@pytest.mark.parametrize("turn", range(12))
async def test_a_call_can_be_cancelled_at_any_turn(turn: int) -> None:
    async with world() as calls:
        answers(calls, unknown(), leader_changed(), no_leader())
        call = asyncio.ensure_future(calls.read())
        await turns(turn)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled() or call.result() is not None
        assert calls.in_flight() == 0
        for name in calls.names:
            calls.engine[name].answers.clear()
        for _ in calls.names:
            await calls.put()  # every connection is still good


@pytest.mark.parametrize(("stage", "after"), [("attempt", 0.5), ("backoff", 0.5), ("waiting", 0.5)])
async def test_close_ends_every_call_at_once(stage: str, after: float) -> None:
    async with world() as calls:
        await staged(calls, stage)
        call = asyncio.ensure_future(calls.read())
        await asyncio.sleep(after)
        closed_at = calls.loop.time()
        await calls.aclose()
        with pytest.raises(ClientClosedError) as caught:
            await call
        assert calls.loop.time() == closed_at
        assert len(caught.value.attempts) == (0 if stage == "waiting" else 1)


@EITHER
async def test_no_attempt_follows_the_close(make: Make) -> None:
    async with world() as calls:

        def lost(attempt: FakeAttempt) -> bytes:
            calls.lifetime.close()  # and the connections a moment later
            raise unsent()

        calls["m1"].answers.append(lost)
        with pytest.raises(ClientClosedError):
            await make(calls)
        assert calls.asked() == ["m1"]
        await calls.balancer.aclose()


async def test_close_tells_of_a_mutation_that_it_may_have_been_applied() -> None:
    async with world() as calls:
        await staged(calls, "attempt")
        call = asyncio.ensure_future(calls.put())
        await turns()
        await calls.aclose()
        with pytest.raises(ClientClosedError) as caught:
            await call
        assert caught.value.maybe_applied
        assert calls.asked() == ["m1"]


# Tokens.


@asynccontextmanager
async def guarded(**options: Any) -> AsyncIterator[tuple[Calls, Doorman]]:
    """Members that want a token, and a client that has one."""
    calls = Calls(credentials=Password("web", "pw-c4n4ry"), **options)
    doorman = Doorman(calls)
    await calls.ready()
    await calls.read()
    yield calls, doorman
    await turns()
    assert calls.in_flight() == 0
    await calls.aclose()
    assert not tasks()


def tokens_of(calls: Calls) -> list[str]:
    """The tokens that attempts of calls carried, logins left out."""
    return [dict(one.metadata).get("token", "") for one in calls.engine.attempts if one.path != AUTHENTICATE.path]


@EITHER
async def test_a_refused_token_is_renewed_and_the_call_repeated(make: Make) -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        await make(calls)
        assert tokens_of(calls) == ["t1-c4n4ry", "t1-c4n4ry", "t2-c4n4ry"]
        assert dict(calls.engine.attempts[-1].metadata)["grpc-previous-rpc-attempts"] == "1"
        assert dict(calls.engine.attempts[-1].metadata)["hasleader"] == "true"
        await calls.read(needs_leader=False)
        assert "hasleader" not in dict(calls.engine.attempts[-1].metadata)
        assert doorman.given == 2


@EITHER
async def test_500_refusals_cost_one_login(make: Make) -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        for name in calls.names:
            calls.engine[name].latency = 0.01
        await asyncio.gather(*(make(calls) for _ in range(500)))
        assert (doorman.given, doorman.refusals) == (2, 500)


async def test_who_waits_for_a_token_ends_by_his_own_deadline() -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        for name in calls.names:
            calls.engine[name].otherwise = Hang()
        calls["m3"].answers.append(answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token"))
        started = calls.loop.time()
        with pytest.raises(EtcdTimeoutError) as caught:
            await calls.put(timeout=1.5)
        assert calls.loop.time() - started == pytest.approx(1.5)
        assert not caught.value.maybe_applied
        assert len(caught.value.attempts) == 1
        await asyncio.sleep(TIMEOUT)  # the login goes on for others, until its own deadline


OLD = answered(StatusCode.INVALID_ARGUMENT, "etcdserver: revision of auth store is old")
INVALID = answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")


@EITHER
async def test_a_call_is_repeated_as_often_as_the_users_change_and_needs_no_login_for_it(make: Make) -> None:
    async with guarded() as (calls, doorman):
        for name in ("m1", "m2", "m3"):
            calls[name].answers.extend([OLD] * 3)
        await make(calls)
        assert len(calls.asked()) == 1 + 1 + 10  # the login, the first read
        assert doorman.given == 1


async def test_but_not_beyond_its_deadline() -> None:
    async with guarded() as (calls, doorman):
        for name in calls.names:
            calls.engine[name].otherwise = OLD
        started = calls.loop.time()
        with pytest.raises(AuthOldRevisionError) as caught:
            await calls.put()
        assert 3 < calls.loop.time() - started <= 5
        assert not caught.value.maybe_applied
        assert len(caught.value.attempts) < 30, "it is no busy loop"
        assert doorman.given == 1


async def test_a_new_token_that_a_member_does_not_know_yet_is_taken_to_another_one() -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        calls["m2"].answers.append(INVALID)  # behind the login at m1
        calls["m3"].answers.append(INVALID)
        await calls.put()
        assert (doorman.given, doorman.refusals) == (2, 0)
        assert tokens_of(calls)[-3:] == ["t1-c4n4ry", "t2-c4n4ry", "t2-c4n4ry"]


async def test_new_tokens_that_every_member_refuses_are_tried_until_the_deadline_without_a_storm_of_logins() -> None:
    async with guarded() as (calls, doorman):
        for name in calls.names:
            calls.engine[name].otherwise = lambda attempt: doorman.answer(attempt) if "Auth" in attempt.path else no()
        started = calls.loop.time()
        with pytest.raises(InvalidTokenError) as caught:
            await calls.put()
        assert 3 < calls.loop.time() - started <= 5
        assert not caught.value.maybe_applied
        assert 2 < doorman.given <= 8
        assert len(caught.value.attempts) < 40


async def test_a_token_that_is_refused_as_the_time_runs_out_is_a_timeout_and_no_error_of_the_user() -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()

        def block(attempt: FakeAttempt) -> bytes:
            if "Auth" in attempt.path:
                return doorman.answer(attempt)
            calls.loop._selector.now += TIMEOUT  # type: ignore[attr-defined]  # the loop is blocked before it reads
            raise INVALID

        for name in calls.names:
            calls.engine[name].otherwise = block
        with pytest.raises(EtcdTimeoutError, match="refused") as caught:
            await calls.put()
        assert not caught.value.maybe_applied
        assert [attempt.message for attempt in caught.value.attempts] == ["etcdserver: invalid auth token"]
        with pytest.raises(InvalidTokenError):
            await calls.put(retry="never")


@pytest.mark.parametrize("seconds", [0.5, 3.0])
async def test_members_that_lag_behind_the_logins_delay_the_call_and_do_not_end_it(seconds: float) -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        caught_up = calls.loop.time() + seconds

        def answer(attempt: FakeAttempt) -> bytes:
            if "Auth" not in attempt.path and calls.loop.time() < caught_up:
                raise INVALID
            return doorman.answer(attempt)

        for name in calls.names:
            calls.engine[name].otherwise = answer
        await calls.put()
        assert caught_up <= calls.loop.time() < caught_up + 1.5
        assert doorman.given <= 2 + 2 * seconds


def no() -> bytes:
    raise INVALID


@pytest.mark.parametrize("lag", [0.3, 1.0, 2.0])
async def test_a_named_member_that_lags_behind_knows_a_token_once_it_is_old_enough(lag: float) -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        known: dict[str, float] = {}  # since when the cluster has each token

        def answer(attempt: FakeAttempt) -> bytes:
            if "Auth" in attempt.path:
                raw = doorman.answer(attempt)
                known.update(dict.fromkeys(doorman.valid - known.keys(), calls.loop.time()))
                return raw
            token = dict(attempt.metadata)["token"]
            if attempt.member.authority == "m2:2379" and calls.loop.time() < known.get(token, float("inf")) + lag:
                raise INVALID
            return doorman.answer(attempt)

        for name in calls.names:
            calls.engine[name].otherwise = answer
        began = calls.loop.time()
        await calls.read(endpoint="m2")
        assert calls.loop.time() - began < 2 * lag + 2
        assert doorman.given <= 4


async def test_a_named_member_that_never_learns_a_token_leaves_other_calls_alone() -> None:
    async with guarded() as (calls, doorman):
        calls["m2"].otherwise = lambda attempt: no() if attempt.path == RANGE.path else doorman.answer(attempt)
        with pytest.raises(InvalidTokenError):
            await calls.read(endpoint="m2")
        given, now = doorman.given, calls.loop.time()
        for _ in range(6):
            await calls.put()
        assert calls.loop.time() - now < 0.1
        assert doorman.given == given, "the others know the token"


async def test_a_call_raises_the_error_of_its_failed_login() -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        doorman.password = "other-c4n4ry"
        with pytest.raises(AuthenticationFailedError) as caught:
            await calls.put()
        assert not caught.value.maybe_applied
        (attempt,) = caught.value.attempts
        assert attempt.message == "etcdserver: invalid auth token"
        assert len(caught.value.__notes__) == 1
        shown = "".join(traceback.format_exception(caught.value))
        assert "c4n4ry" not in shown


async def test_an_uncertain_attempt_stays_uncertain_over_a_refused_token() -> None:
    async with guarded() as (calls, doorman):
        calls["m3"].answers.append(unknown())
        calls["m1"].answers.append(answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token"))
        doorman.logins.append(answered(StatusCode.INVALID_ARGUMENT, "etcdserver: user name not found"))
        with pytest.raises(ServerError) as caught:
            await calls.put(retry="always")
        assert caught.value.maybe_applied


async def test_a_call_that_is_not_repeated_has_the_next_one_log_in() -> None:
    async with guarded() as (calls, doorman):
        doorman.valid.clear()
        with pytest.raises(InvalidTokenError):
            await calls.put(retry="never")
        await calls.put(retry="never")
        assert doorman.given == 2


async def test_a_static_token_is_never_renewed() -> None:
    calls = Calls(credentials=StaticToken("jwt-c4n4ry"))
    doorman = Doorman(calls)
    doorman.valid = {"jwt-c4n4ry"}
    await calls.ready()
    await calls.put()
    doorman.valid.clear()
    with pytest.raises(InvalidTokenError) as caught:
        await calls.put()
    assert len(caught.value.attempts) == 1
    await calls.aclose()


async def test_a_user_named_by_a_certificate_repeats_once() -> None:
    async with world() as calls:
        answers(calls, INVALID)
        await calls.put()
        assert calls.asked() == ["m1", "m2"]
        answers(calls, *[INVALID] * 3)
        with pytest.raises(AuthError) as caught:
            await calls.put()
        assert len(caught.value.attempts) == 2


async def test_and_as_often_as_the_users_change() -> None:
    async with world() as calls:
        answers(calls, *[OLD] * 7)
        await calls.put()
        assert len(calls.asked()) == 8


async def test_nothing_of_the_token_is_left_after_the_close() -> None:
    calls = Calls(credentials=Password("web", "pw-c4n4ry"))
    Doorman(calls)
    await calls.ready()
    await calls.read()
    await calls.aclose()
    assert "c4n4ry" not in repr(vars(calls.invoker))
    assert all("c4n4ry" not in repr(pair) for pair in calls.invoker._metadata.with_leader)
    with pytest.raises(ClientClosedError):
        await calls.read()


async def test_a_close_ends_a_call_that_waits_for_its_token() -> None:
    calls = await Calls(credentials=Password("web", "pw-c4n4ry")).ready()
    for name in calls.names:
        calls.engine[name].otherwise = Hang()
    waiting = asyncio.create_task(calls.read())
    await turns()
    await calls.aclose()
    with pytest.raises(ClientClosedError):
        await waiting
    assert not tasks()


# What an error says.


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message)
async def test_every_answer_tells_the_call_its_key_the_place_the_time_and_the_outcome(row: Row) -> None:
    async with world(1) as calls:
        calls["m1"].otherwise = answered(row.code, row.message)
        calls["m1"].latency = 0.25
        with pytest.raises(row.error) as caught:
            await calls.put(retry="never")
        error = caught.value
        assert error.message == row.message
        outcome = "" if row.error.is_definite else "; it may have been applied"
        detail = f": {error.detail}" if error.detail else ""
        assert str(error) == f"put 'k': {row.message}{detail} (at m1:2379 after 0.25 s{outcome})"
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (str(twin), twin.message, twin.call) == (str(error), error.message, error.call)


async def lose(calls: Calls) -> None:
    calls["m1"].otherwise = unknown()


async def hang(calls: Calls) -> None:
    calls["m1"].otherwise = Hang()


async def cannot_send(calls: Calls) -> None:
    calls["m1"].otherwise = AttemptFailure(
        StatusCode.DEADLINE_EXCEEDED, "late", Delivery.UNSENT, reason=LocalReason.DEADLINE
    )


async def send_too_much(calls: Calls) -> None:
    calls["m1"].otherwise = unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE)


async def send_nonsense(calls: Calls) -> None:
    calls["m1"].otherwise = b"\xff"


async def be_of_another_cluster(calls: Calls) -> None:
    await calls.read()
    calls["m1"].otherwise = reply(CLUSTER + 1)


async def break_off(calls: Calls) -> None:
    calls["m1"].dial = Refuse(ConnectError("refused"))
    calls["m1"].connection.lose(ConnectionResetError(104, "reset"))
    await turns()


@pytest.mark.parametrize(
    ("happens", "kind", "says"),
    [
        (
            lose,
            ConnectionLostError,
            "put 'k': the connection was lost (at m1:2379 after 0 ms; it may have been applied)",
        ),
        (hang, EtcdTimeoutError, "put 'k': no answer from m1:2379 within 2 s (it may have been applied)"),
        (send_too_much, ReplyTooLargeError, "put 'k': * (at m1:2379 after 0 ms; it may have been applied)"),
        (send_nonsense, MalformedReplyError, "put 'k': * (at m1:2379 after 0 ms; it may have been applied)"),
        (be_of_another_cluster, ClusterChangedError, "put 'k': * (at m1:2379 after 0 ms; it may have been applied)"),
        (break_off, NoAvailableEndpointsError, "put 'k': no endpoint is available: m1:2379: * (after 2 s)"),
        (cannot_send, EtcdTimeoutError, "put 'k': not sent to m1:2379 within *"),
    ],
)
async def test_every_end_without_an_answer_tells_the_same(
    happens: Callable[[Calls], Awaitable[None]], kind: type[EtcdError], says: str
) -> None:
    async with world(1) as calls:
        await happens(calls)
        with pytest.raises(kind) as caught:
            await calls.put(timeout=2.0, retry="never")
        head, star, tail = says.partition("*")
        shown = str(caught.value)
        assert shown == says if not star else shown.startswith(head) and shown.endswith(tail)
        assert str(pickle.loads(pickle.dumps(caught.value))) == shown


async def test_attempts_that_end_alike_are_listed_once() -> None:
    async with world() as calls:
        for name in calls.names:
            calls.engine[name].otherwise = no_leader()
        with pytest.raises(NoLeaderError) as caught:
            await calls.read(timeout=2.0)
        error = caught.value
        count = len(error.attempts)
        assert count > 3
        assert str(error).startswith("get 'k': etcdserver: no leader (at m")
        assert str(error).endswith(f" and {count} attempts)")
        (note,) = error.__notes__
        assert note == (
            f"attempts 1 to {count} on m1:2379, m2:2379 and m3:2379: "
            "answered after 0 ms: etcdserver: no leader (UNAVAILABLE)"
        )


async def test_a_request_that_is_too_large_to_be_sent_tells_which_it_is() -> None:
    async with world(1, max_send_bytes=3) as calls:
        with pytest.raises(RequestTooLargeError) as caught:
            await calls.put()
        assert str(caught.value).startswith("put 'k': the request has ")


async def test_each_attempt_after_which_a_call_moves_on_is_logged_with_its_fields(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio.calls")
    async with world() as calls:
        calls["m1"].answers.append(no_leader())
        await calls.read()
        await calls.read()
    async with world(1) as calls:
        calls["m1"].answers.append(unknown())
        with pytest.raises(ConnectionLostError):
            await calls.put()
    (line,) = [record for record in caplog.records if record.name == "etcd_aio.calls"]  # no line for the end of a call
    said = "call KV/Range: attempt 1 failed at m1:2379 with UNAVAILABLE, and the call moves on"
    assert line.getMessage() == said
    fields = [vars(line)[name] for name in ("method", "endpoint", "code", "attempts")]
    assert fields == ["KV/Range", "m1:2379", "UNAVAILABLE", 1]
