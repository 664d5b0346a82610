"""observing/group.py, observing/observer.py, observing/records.py: observers: told of each call, attempt, login and
change once, and no observer can harm a call or a stream.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.base.call_options import RetryMode
from etcd_aio.error_handler import StreamedReply
from etcd_aio.error_handler.call_with_retries import CallAttempts
from etcd_aio.error_handler.credentials import Password
from etcd_aio.errors import (
    AuthenticationFailedError,
    ClientClosedError,
    ConnectionLostError,
    Delivery,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    NoLeaderError,
    PermissionDeniedError,
    StatusCode,
)
from etcd_aio.methods import BIDIRECTIONAL, RANGE_STREAM, Method
from etcd_aio.observing import (
    AttemptEnded,
    CallObserver,
    CallOutcome,
    CallStarted,
    Observer,
    ObserverGroup,
    StreamChange,
)
from tests.support.calls import CLUSTER, Calls, answered, no_leader, unknown
from tests.support.conversations import Recorder
from tests.support.fake_engine import FakeStream, Hang, Refuse
from tests.support.observer import Remembers
from tests.support.tokens import Doorman
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

CHAT: Method[pb.WatchRequest, pb.WatchResponse] = Method(
    "Test/Chat",
    lambda: pb.WatchRequest,
    lambda: pb.WatchResponse,
    BIDIRECTIONAL,
    package="test",
    repeatable=True,
    is_mutation=False,
)
HELLO = pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"hello"))
DENIED = answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")


def greet(stream: FakeStream) -> None:
    stream.say(codec.encode(pb.WatchResponse(header=pb.ResponseHeader(cluster_id=CLUSTER))))


async def closed(calls: Calls) -> None:
    await calls.aclose()
    await turns()
    assert not tasks()
    assert not timers()


# Calls.


async def test_a_call_that_succeeds_has_one_attempt() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    calls["m1"].latency = 0.25
    await calls.read(timeout=3.0)
    started, outcome = seen.call.started, seen.outcome
    assert (started.method, started.path, started.timeout) == ("KV/Range", "/etcdserverpb.KV/Range", 3.0)
    assert [name[:2] for name in started.endpoints] == ["m1", "m2", "m3"]
    (attempt,) = seen.call.attempts
    assert (attempt.endpoint[:2], attempt.status, attempt.delivery) == ("m1", StatusCode.OK, Delivery.ANSWERED)
    assert attempt.seconds == outcome.seconds == pytest.approx(0.25)
    assert (outcome.status, outcome.error, outcome.attempts, outcome.endpoint[:2]) == (StatusCode.OK, None, 1, "m1")
    assert not outcome.is_cancelled
    assert not outcome.maybe_applied
    await closed(calls)


async def test_each_attempt_is_told_with_its_call() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    calls["m1"].answers.append(unknown())
    calls["m2"].answers.append(no_leader())
    await calls.read()
    assert seen.call.begun == ["m1", "m2", "m3"]
    assert [attempt.endpoint[:2] for attempt in seen.call.attempts] == ["m1", "m2", "m3"]
    deliveries = [attempt.delivery for attempt in seen.call.attempts]
    assert deliveries == [Delivery.UNKNOWN, Delivery.ANSWERED, Delivery.ANSWERED]
    assert [attempt.status for attempt in seen.call.attempts] == [StatusCode.UNAVAILABLE] * 2 + [StatusCode.OK]
    assert seen.outcome.attempts == 3
    assert seen.outcome.status is StatusCode.OK, "a failure that a retry cured is no failure of the call"
    await closed(calls)


async def test_a_reply_of_another_cluster_is_a_failed_attempt_too() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    await calls.read()
    stranger = codec.encode(pb.RangeResponse(header=pb.ResponseHeader(cluster_id=0xBAD)))
    calls["m2"].answers.append(stranger)
    await calls.read()
    assert [attempt.status for attempt in seen.call.attempts] == [StatusCode.FAILED_PRECONDITION, StatusCode.OK]
    await closed(calls)


@pytest.mark.parametrize("retry", ["safe", "never"])
async def test_a_call_that_fails_ends_with_its_error(retry: RetryMode) -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    calls["m1"].answers.append(DENIED)
    with pytest.raises(PermissionDeniedError) as caught:
        await calls.put(retry=retry)
    assert seen.outcome.error is caught.value
    assert seen.outcome.status is StatusCode.PERMISSION_DENIED
    assert not seen.outcome.maybe_applied
    assert seen.events == ["call", "attempt", "PERMISSION_DENIED", "ended"]
    await closed(calls)


async def test_a_write_whose_answer_was_lost_may_be_applied() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    calls["m1"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await calls.put()
    assert seen.outcome.error is caught.value
    assert seen.outcome.maybe_applied
    await closed(calls)


async def test_a_call_without_a_connection_has_no_attempt() -> None:
    seen = Remembers()
    calls = Calls(observers=[seen])
    for name in calls.names:
        calls.engine[name].dial = Refuse()
    with pytest.raises(NoAvailableEndpointsError):
        await calls.read(timeout=2.0)
    assert isinstance(seen.outcome.error, NoAvailableEndpointsError)
    assert (seen.outcome.attempts, seen.outcome.endpoint) == (0, "")
    assert seen.outcome.seconds == pytest.approx(2.0)
    await closed(calls)


async def test_a_call_that_runs_out_of_time_is_an_error() -> None:
    seen = Remembers()
    calls = await Calls(1, observers=[seen]).ready()
    calls["m1"].answers.append(Hang())
    with pytest.raises(EtcdTimeoutError):
        await calls.read(timeout=2.0)
    assert seen.outcome.status is StatusCode.DEADLINE_EXCEEDED
    assert not seen.outcome.is_cancelled
    assert [attempt.status for attempt in seen.call.attempts] == [StatusCode.DEADLINE_EXCEEDED]
    await closed(calls)


@pytest.mark.parametrize("is_write", [False, True])
async def test_a_call_that_is_cancelled_ends_with_the_cancellation(is_write: bool) -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    calls["m1"].answers.append(Hang())
    made: Coroutine[Any, Any, object] = calls.put() if is_write else calls.read()
    calling = asyncio.ensure_future(made)
    await asyncio.sleep(0.5)
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    assert seen.events == ["call", "attempt", "CANCELLED", "ended"]
    assert isinstance(seen.outcome.error, asyncio.CancelledError)
    assert seen.outcome.status is StatusCode.CANCELLED
    assert seen.outcome.is_cancelled
    assert seen.outcome.maybe_applied is is_write
    await closed(calls)


def test_a_call_that_is_destroyed_with_its_loop_ends_in_peace() -> None:
    seen = Remembers()

    async def begin() -> tuple[Calls, Coroutine[None, None, object]]:
        calls = await Calls(observers=[seen]).ready()
        calls["m1"].answers.append(Hang())
        reading = calls.read()
        reading.send(None)
        return calls, reading

    loop = VirtualTimeLoop()
    calls, reading = loop.run_until_complete(begin())
    loop.run_until_complete(calls.aclose())
    loop.close()
    reading.close()
    assert seen.events == ["call", "attempt", "CANCELLED", "ended"]
    assert seen.outcome.is_cancelled


async def test_a_hedged_read_is_one_call_with_two_attempts() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen], hedge_after=0.05).ready()
    calls["m1"].answers.append(Hang())
    await calls.read()
    assert len(calls.asked()) == 2
    assert seen.call.begun == ["m1", "m2"]
    assert [attempt.status for attempt in seen.call.attempts] == [StatusCode.OK, StatusCode.CANCELLED]
    assert seen.outcome.status is StatusCode.OK
    await closed(calls)


async def test_a_call_to_one_endpoint_names_that_endpoint() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    await calls.read(endpoint="m2:2379", timeout=None)
    assert [name[:2] for name in seen.call.started.endpoints] == ["m2"]
    assert seen.call.started.timeout == float("inf")
    await closed(calls)


async def test_each_message_of_a_streamed_reply_is_a_call() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()

    def answer(stream: FakeStream) -> None:
        header = pb.ResponseHeader(cluster_id=CLUSTER)
        stream.say(codec.encode(pb.RangeStreamResponse(range_response=pb.RangeResponse(header=header))))
        calls.loop.call_later(0.01, stream.end)

    calls["m1"].on_stream = lambda stream: stream.fail(unknown())
    calls["m2"].on_stream = calls["m3"].on_stream = answer
    reply = StreamedReply(RANGE_STREAM)
    assert await calls.invoker.read(reply, pb.RangeRequest(key=b"k")) is not None
    assert await calls.invoker.read(reply, pb.RangeRequest(key=b"k")) is None
    assert [call.started.is_continued for call in seen.calls] == [False, True]
    one, two = ["call", "attempt", "UNAVAILABLE", "attempt", "OK", "ended"], ["call", "attempt", "OK", "ended"]
    assert seen.events == [*one, *two]
    await closed(calls)


async def test_a_message_that_is_cancelled_ends_with_the_cancellation() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    reading = asyncio.ensure_future(calls.invoker.read(StreamedReply(RANGE_STREAM), pb.RangeRequest(key=b"k")))
    await turns(6)
    reading.cancel()
    await asyncio.wait([reading])
    assert seen.events == ["call", "attempt", "CANCELLED", "ended"]
    await closed(calls)


# Headers.


async def test_headers_of_a_call_are_sent_with_each_attempt() -> None:
    seen = Remembers(metadata=[("traceparent", "00-1-2-01")])
    calls = await Calls(observers=[seen, Remembers(metadata=[("x-other", "1")])]).ready()
    calls["m1"].answers.append(unknown())
    await calls.read()
    for attempt in calls.engine.attempts:
        assert ("traceparent", "00-1-2-01") in attempt.metadata
        assert ("x-other", "1") in attempt.metadata
        assert ("hasleader", "true") in attempt.metadata
    await closed(calls)


async def test_headers_of_a_call_are_kept_when_its_token_is_renewed() -> None:
    seen = Remembers(metadata=[("traceparent", "00-1-2-01")])
    calls = Calls(credentials=Password("web", "pw-c4n4ry"), observers=[seen])
    doorman = Doorman(calls)
    await calls.ready()
    await calls.read()
    doorman.valid.clear()
    await calls.read()
    reads = [attempt for attempt in calls.engine.attempts if attempt.path.endswith("Range")]
    assert len(reads) == 3
    assert all(("traceparent", "00-1-2-01") in attempt.metadata for attempt in reads)
    logins = [attempt for attempt in calls.engine.attempts if attempt.path.endswith("Authenticate")]
    assert not any(name == "traceparent" for attempt in logins for name, _ in attempt.metadata)
    await closed(calls)


@pytest.mark.parametrize(
    "header",
    [
        ("Trace", "1"),
        ("grpc-timeout", "1S"),
        ("token", "t"),
        ("a b", "1"),
        ("", "1"),
        ("x", "a\r\nb"),
        ("x", "é"),
        ("x", ""),
    ],
)
async def test_a_header_that_cannot_be_sent_is_left_out_and_logged(
    header: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    calls = await Calls(observers=[Remembers(metadata=[header])]).ready()
    await calls.read()
    assert header not in calls.engine.attempts[0].metadata
    assert [record.getMessage() for record in caplog.records] == ["observer Remembers failed; the client continues"]
    await closed(calls)


# Logins.


async def test_a_login_is_told_once_however_many_calls_wait_for_it() -> None:
    seen = Remembers()
    calls = Calls(credentials=Password("web", "pw-c4n4ry"), observers=[seen])
    Doorman(calls)
    await calls.ready()
    await asyncio.gather(*(calls.read() for _ in range(5)))
    assert [login.error for login in seen.logins] == [None]
    assert [call.outcomes[0].status for call in seen.calls] == [StatusCode.OK] * 5
    assert "c4n4ry" not in repr((seen.logins, seen.calls[0].started, seen.calls[0].outcomes))
    await closed(calls)


async def test_a_login_that_fails_ends_the_call_that_waits_for_it() -> None:
    seen = Remembers()
    calls = Calls(credentials=Password("web", "wrong-c4n4ry"), observers=[seen])
    Doorman(calls)
    await calls.ready()
    with pytest.raises(AuthenticationFailedError):
        await calls.read()
    assert seen.events == ["call", "login", "ended"]
    assert isinstance(seen.logins[0].error, AuthenticationFailedError)
    assert isinstance(seen.outcome.error, AuthenticationFailedError)
    await closed(calls)


# Streams.


async def test_a_stream_is_opened_lost_resumed_and_ended() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    for name in calls.names:
        calls.engine[name].on_stream = greet
    handler: Recorder[pb.WatchRequest, pb.WatchResponse] = Recorder(HELLO)
    supervisor = calls.invoker.supervise(CHAT, handler, "chat")
    supervisor.wake()
    await turns(6)
    calls.engine.streams[-1].fail(no_leader())
    await asyncio.sleep(1)
    handler.wanted = False
    supervisor.wake()
    await turns(8)
    opened, lost, reopened, resumed, ended = seen.streams
    assert [change.event for change in seen.streams] == ["opened", "lost", "opened", "resumed", "ended"]
    assert {(change.method, change.name) for change in seen.streams} == {("Test/Chat", "chat")}
    assert opened.endpoint == lost.endpoint != reopened.endpoint == resumed.endpoint
    assert isinstance(lost.error, NoLeaderError)
    assert (ended.endpoint, ended.error) == ("", None), "it is not needed any more"
    await closed(calls)


async def test_a_stream_that_is_refused_for_good_ends_with_the_reason() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    for name in calls.names:
        calls.engine[name].on_stream = lambda stream: stream.fail(DENIED)
    calls.invoker.supervise(CHAT, Recorder(HELLO), "chat").wake()
    await turns(8)
    assert [change.event for change in seen.streams] == ["opened", "lost", "ended"]
    assert isinstance(seen.streams[-1].error, PermissionDeniedError)
    await closed(calls)


async def test_a_client_that_closes_ends_its_streams() -> None:
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    for name in calls.names:
        calls.engine[name].on_stream = greet
    calls.invoker.supervise(CHAT, Recorder(HELLO), "chat").wake()
    await turns(8)
    await closed(calls)
    assert [change.event for change in seen.streams] == ["opened", "ended"]
    assert isinstance(seen.streams[-1].error, ClientClosedError)


# Endpoints.


async def test_each_state_of_an_endpoint_is_told_once() -> None:
    seen = Remembers()
    calls = await Calls(2, observers=[seen]).ready()
    assert [(one.endpoint[:2], one.state) for one in seen.endpoints if one.state == "READY"] == [
        ("m1", "READY"),
        ("m2", "READY"),
    ]
    seen.endpoints.clear()
    calls["m1"].answers.append(no_leader())
    await calls.read()
    assert [(one.endpoint[:2], one.state, one.health) for one in seen.endpoints] == [("m1", "READY", "NO_LEADER")]
    assert "no leader" in seen.endpoints[0].reason
    seen.endpoints.clear()
    await closed(calls)
    assert sorted((one.endpoint[:2], one.state) for one in seen.endpoints) == [("m1", "SHUTDOWN"), ("m2", "SHUTDOWN")]


# Observers.


class Broken(Observer):
    """Raises from every method."""

    def __init__(self) -> None:
        self.told = 0

    def call_started(self, call: CallStarted) -> CallObserver | None:
        self.told += 1
        raise ValueError("a bug in the observer")

    def stream_changed(self, change: StreamChange) -> None:
        self.told += 1
        raise ValueError("a bug in the observer")


class BrokenCalls(Observer):
    """Raises from every method of its calls."""

    def call_started(self, call: CallStarted) -> CallObserver | None:
        class BrokenCall(CallObserver):
            def attempt_started(self, endpoint: str) -> None:
                raise ValueError(endpoint)

            def attempt_ended(self, attempt: AttemptEnded) -> None:
                raise ValueError(attempt)

            def ended(self, outcome: CallOutcome) -> None:
                raise ValueError(outcome)

        return BrokenCall()


async def test_an_observer_that_raises_harms_neither_the_client_nor_the_other_observers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "etcd_aio.observing")
    broken, seen = Broken(), Remembers()
    calls = await Calls(observers=[broken, BrokenCalls(), seen]).ready()
    for name in calls.names:
        calls.engine[name].on_stream = greet
    calls["m1"].answers.append(unknown())
    await calls.read()
    supervisor = calls.invoker.supervise(CHAT, Recorder(HELLO), "chat")
    supervisor.wake()
    await turns(8)
    assert supervisor.is_open
    assert broken.told == 2
    assert seen.events == ["call", "attempt", "UNAVAILABLE", "attempt", "OK", "ended", "opened"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"observer {name} failed; the client continues" for name in ("Broken", "BrokenCalls")], "once"
    await closed(calls)


async def test_what_is_no_observer_of_a_call_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Observer):
        def call_started(self, call: CallStarted) -> CallObserver | None:
            return 42  # type: ignore[return-value] # what this is about; so is a coroutine, of an `async def`

    seen = Remembers()
    calls = await Calls(observers=[Wrong(), seen]).ready()
    await calls.read()
    await calls.put()
    assert seen.outcome.error is None
    assert [record.getMessage() for record in caplog.records] == ["observer Wrong failed; the client continues"]
    await closed(calls)


async def test_a_call_of_no_interest_is_not_followed() -> None:
    class OnlyWrites(Remembers):
        def call_started(self, call: CallStarted) -> CallObserver | None:
            return super().call_started(call) if call.method == "KV/Put" else None

    seen = OnlyWrites()
    calls = await Calls(observers=[seen]).ready()
    await calls.read()
    await calls.put()
    assert [call.started.method for call in seen.calls] == ["KV/Put"]
    assert seen.outcome.status is StatusCode.OK
    await closed(calls)


def test_what_no_observer_overrides_is_not_even_made() -> None:
    group = ObserverGroup([Observer(), Broken()])
    assert group.stream_changed is not None
    assert group.sees_calls
    others = (group.endpoint_changed, group.watch_advanced, group.lease_changed, group.login_ended)
    assert others == (None, None, None, None)
    assert not ObserverGroup().sees_calls


class Ends(CallObserver):
    """Is told of ends only."""

    __slots__ = ("ends",)

    def __init__(self, ends: list[str]) -> None:
        self.ends = ends

    def ended(self, outcome: CallOutcome) -> None:
        self.ends.append(outcome.status.name)


class Attempts(CallObserver):
    """Is told of the ends of attempts only, and sends a header."""

    metadata = (("x-own", "1"),)

    def __init__(self, ends: list[str]) -> None:
        self.ends = ends

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        self.ends.append(attempt.status.name)


class Sends(CallObserver):
    """Is told nothing, and sends a header."""

    def __init__(self) -> None:
        self.metadata = (("x-set", "1"),)


class Offers(Observer):
    """Gives each call the next of its observers."""

    def __init__(self, *own: CallObserver | None) -> None:
        self._own = iter(own)

    def call_started(self, call: CallStarted) -> CallObserver | None:
        return next(self._own)


async def test_each_call_observer_is_told_what_its_class_overrides() -> None:
    ends: list[str] = []
    attempts: list[str] = []
    observers = [Offers(own) for own in (Ends(ends), CallObserver(), Attempts(attempts), None, Sends())]
    calls = await Calls(observers=observers).ready()
    calls["m1"].answers.append(no_leader())
    await calls.read()
    assert (ends, attempts) == (["OK"], ["UNAVAILABLE", "OK"])
    for attempt in calls.engine.attempts:
        assert {("x-own", "1"), ("x-set", "1")} <= {*attempt.metadata}
    await closed(calls)


def test_a_call_observer_that_overrides_nothing_is_not_followed() -> None:
    group = ObserverGroup([Offers(CallObserver(), Sends())])
    started = CallStarted("KV/Put", "/etcdserverpb.KV/Put", ("m1:2379",), 1.0)
    assert group.call_started(started, lambda: 0.0, is_mutation=True) is None
    assert group.call_started(started, lambda: 0.0, is_mutation=True) is not None, "its header must be sent"


def test_classes_of_call_observers_do_not_pile_up() -> None:
    def made() -> CallObserver:
        class Own(CallObserver):  # as a mock, which has a class of its own
            def ended(self, outcome: CallOutcome) -> None:
                ends.append(outcome.status.name)

        return Own()

    ends: list[str] = []
    group = ObserverGroup([Offers(*(made() for _ in range(300)))])
    started = CallStarted("KV/Put", "/etcdserverpb.KV/Put", ("m1:2379",), 1.0)
    for _ in range(300):
        observed = group.call_started(started, lambda: 0.0, is_mutation=True)
        assert observed is not None
        observed.ended(None)
    assert ends == ["OK"] * 300
    assert len(group._overrides) < 100


@pytest.mark.parametrize("endpoint", [None, "m2:2379"])
async def test_the_context_of_an_observed_call_is_that_of_all_calls_otherwise(
    monkeypatch: pytest.MonkeyPatch, endpoint: str | None
) -> None:
    made: list[CallAttempts[Any, Any]] = []
    run = CallAttempts.run

    async def noted(self: CallAttempts[Any, Any], now: float) -> Any:
        made.append(self)
        return await run(self, now)

    monkeypatch.setattr(CallAttempts, "run", noted)
    seen = Remembers()
    calls = await Calls(observers=[seen]).ready()
    await calls.read(endpoint=endpoint)
    (call,) = made
    assert call._context is calls.invoker._context, "no copy, in which a new field could be forgotten"
    assert call._observed is not None
    assert (call._balancer is calls.balancer) is (endpoint is None)
    await closed(calls)
