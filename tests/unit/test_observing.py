"""Observing: each call, failed attempt, login and change of a stream is reported once, and no observer can harm one."""

import asyncio
import logging
from collections.abc import Coroutine

import pytest

from etcd_aio import codec, pb
from etcd_aio.call_options import RetryMode
from etcd_aio.error_handler import StreamedReply
from etcd_aio.error_handler.credentials import Password
from etcd_aio.errors import (
    AuthenticationFailedError,
    ClientClosedError,
    ConnectionLostError,
    Delivery,
    NoAvailableEndpointsError,
    NoLeaderError,
    PermissionDeniedError,
    StatusCode,
)
from etcd_aio.methods import BIDIRECTIONAL, RANGE_STREAM, Method
from etcd_aio.observing import (
    AttemptFailed,
    CallEnded,
    CallStarted,
    LoginEnded,
    Record,
    StreamEnded,
    StreamMoved,
    StreamOpened,
)
from tests.support.calls import CLUSTER, Calls, answered, no_leader, unknown
from tests.support.conversations import Recorder
from tests.support.fake_engine import FakeStream, Hang, Refuse
from tests.support.tokens import Doorman
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

CHAT: Method[pb.WatchRequest, pb.WatchResponse] = Method(
    "Test/Chat", "/test.Test/Chat", pb.WatchRequest, pb.WatchResponse, BIDIRECTIONAL, True, False
)
HELLO = pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"hello"))
DENIED = answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")


def greet(stream: FakeStream) -> None:
    stream.say(codec.encode(pb.WatchResponse(header=pb.ResponseHeader(cluster_id=CLUSTER))))


def kinds(records: list[Record]) -> list[str]:
    return [type(record).__name__ for record in records]


async def closed(calls: Calls) -> None:
    await calls.aclose()
    await turns()
    assert not tasks()
    assert not timers()


# Calls.


async def test_a_call_that_succeeds_is_started_and_ended() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    calls["m1"].latency = 0.25
    await calls.read(timeout=3.0)
    started, ended = records
    assert isinstance(started, CallStarted)
    assert (started.method, started.timeout) == ("KV/Range", 3.0)
    assert [name[:2] for name in started.endpoints] == ["m1", "m2", "m3"]
    assert isinstance(ended, CallEnded)
    assert ended.call is started
    assert ended.seconds == pytest.approx(0.25)
    assert ended.error is None
    await closed(calls)


async def test_each_failed_attempt_is_reported_with_its_call() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    calls["m1"].answers.append(unknown())
    calls["m2"].answers.append(no_leader())
    await calls.read()
    assert kinds(records) == ["CallStarted", "AttemptFailed", "AttemptFailed", "CallEnded"]
    _, first, second, ended = records
    assert isinstance(first, AttemptFailed)
    assert isinstance(second, AttemptFailed)
    assert isinstance(ended, CallEnded)
    assert (first.attempt.endpoint[:2], first.attempt.delivery) == ("m1", Delivery.UNKNOWN)
    assert (second.attempt.endpoint[:2], second.attempt.delivery) == ("m2", Delivery.ANSWERED)
    assert first.call is second.call is ended.call
    await closed(calls)


async def test_a_reply_of_another_cluster_is_a_failed_attempt_too() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    await calls.read()
    records.clear()
    stranger = codec.encode(pb.RangeResponse(header=pb.ResponseHeader(cluster_id=0xBAD)))
    calls["m2"].answers.append(stranger)
    await calls.read()
    assert kinds(records) == ["CallStarted", "AttemptFailed", "CallEnded"]
    await closed(calls)


@pytest.mark.parametrize("retry", ["safe", "never"])
async def test_a_call_that_fails_ends_with_its_error(retry: RetryMode) -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    calls["m1"].answers.append(DENIED)
    with pytest.raises(PermissionDeniedError) as caught:
        await calls.put(retry=retry)
    ended = records[-1]
    assert isinstance(ended, CallEnded)
    assert ended.error is caught.value
    assert kinds(records) == ["CallStarted", "AttemptFailed", "CallEnded"]
    await closed(calls)


async def test_a_call_that_runs_out_of_time_ends_with_its_error() -> None:
    records: list[Record] = []
    calls = Calls(observer=records.append)
    for name in calls.names:
        calls.engine[name].dial = Refuse()
    with pytest.raises(NoAvailableEndpointsError):
        await calls.read(timeout=2.0)
    started, ended = records
    assert isinstance(started, CallStarted)
    assert isinstance(ended, CallEnded)
    assert isinstance(ended.error, NoAvailableEndpointsError)
    assert ended.seconds == pytest.approx(2.0)
    await closed(calls)


async def test_a_call_that_is_cancelled_ends_with_the_cancellation() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    calls["m1"].answers.append(Hang())
    reading = asyncio.ensure_future(calls.read())
    await asyncio.sleep(0.5)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert kinds(records) == ["CallStarted", "CallEnded"]
    ended = records[-1]
    assert isinstance(ended, CallEnded)
    assert isinstance(ended.error, asyncio.CancelledError)
    await closed(calls)


def test_a_call_that_is_destroyed_with_its_loop_ends_in_peace() -> None:
    records: list[Record] = []

    async def begin() -> tuple[Calls, Coroutine[None, None, object]]:
        calls = await Calls(observer=records.append).ready()
        calls["m1"].answers.append(Hang())
        reading = calls.read()
        reading.send(None)
        return calls, reading

    loop = VirtualTimeLoop()
    calls, reading = loop.run_until_complete(begin())
    loop.run_until_complete(calls.aclose())
    loop.close()
    reading.close()
    assert kinds(records) == ["CallStarted", "CallEnded"]


async def test_a_hedged_read_is_one_call() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append, hedge_after=0.05).ready()
    calls["m1"].answers.append(Hang())
    await calls.read()
    assert len(calls.asked()) == 2
    assert kinds(records) == ["CallStarted", "CallEnded"]
    await closed(calls)


async def test_a_call_to_one_endpoint_names_that_endpoint() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    await calls.read(endpoint="m2:2379", timeout=None)
    started = records[0]
    assert isinstance(started, CallStarted)
    assert [name[:2] for name in started.endpoints] == ["m2"]
    assert started.timeout == float("inf")
    await closed(calls)


async def test_each_message_of_a_streamed_reply_is_a_call() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()

    def answer(stream: FakeStream) -> None:
        header = pb.ResponseHeader(cluster_id=CLUSTER)
        stream.say(codec.encode(pb.RangeStreamResponse(range_response=pb.RangeResponse(header=header))))
        calls.loop.call_later(0.01, stream.end)

    calls["m1"].on_stream = lambda stream: stream.fail(unknown())
    calls["m2"].on_stream = calls["m3"].on_stream = answer
    reply = StreamedReply(RANGE_STREAM)
    assert await calls.invoker.read(reply, pb.RangeRequest(key=b"k")) is not None
    assert await calls.invoker.read(reply, pb.RangeRequest(key=b"k")) is None
    assert kinds(records) == ["CallStarted", "AttemptFailed", "CallEnded", "CallStarted", "CallEnded"]
    await closed(calls)


async def test_a_message_that_is_cancelled_ends_with_the_cancellation() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    reading = asyncio.ensure_future(calls.invoker.read(StreamedReply(RANGE_STREAM), pb.RangeRequest(key=b"k")))
    await turns(6)
    reading.cancel()
    await asyncio.wait([reading])
    assert kinds(records) == ["CallStarted", "CallEnded"]
    await closed(calls)


# Logins.


async def test_a_login_is_reported_once_however_many_calls_wait_for_it() -> None:
    records: list[Record] = []
    calls = Calls(credentials=Password("web", "pw-c4n4ry"), observer=records.append)
    Doorman(calls)
    await calls.ready()
    await asyncio.gather(*(calls.read() for _ in range(5)))
    logins = [record for record in records if isinstance(record, LoginEnded)]
    assert [login.error for login in logins] == [None]
    assert kinds(records).count("CallStarted") == kinds(records).count("CallEnded") == 5
    assert "c4n4ry" not in repr(records)
    await closed(calls)


async def test_a_login_that_fails_ends_the_call_that_waits_for_it() -> None:
    records: list[Record] = []
    calls = Calls(credentials=Password("web", "wrong-c4n4ry"), observer=records.append)
    Doorman(calls)
    await calls.ready()
    with pytest.raises(AuthenticationFailedError):
        await calls.read()
    assert kinds(records) == ["CallStarted", "LoginEnded", "CallEnded"]
    _, login, ended = records
    assert isinstance(login, LoginEnded)
    assert isinstance(login.error, AuthenticationFailedError)
    assert isinstance(ended, CallEnded)
    assert isinstance(ended.error, AuthenticationFailedError)
    await closed(calls)


# Streams.


async def test_a_stream_is_opened_moved_and_ended() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
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
    opened, moved, reopened, ended = records
    assert isinstance(opened, StreamOpened)
    assert isinstance(moved, StreamMoved)
    assert isinstance(reopened, StreamOpened)
    assert isinstance(ended, StreamEnded)
    assert opened.method == moved.method == reopened.method == ended.method == "Test/Chat"
    assert opened.endpoint == moved.endpoint != reopened.endpoint
    assert isinstance(moved.error, NoLeaderError)
    assert ended.error is None, "it is not needed any more"
    await closed(calls)


async def test_a_stream_that_is_refused_for_good_ends_with_the_reason() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    for name in calls.names:
        calls.engine[name].on_stream = lambda stream: stream.fail(DENIED)
    calls.invoker.supervise(CHAT, Recorder(HELLO), "chat").wake()
    await turns(8)
    assert kinds(records) == ["StreamOpened", "StreamMoved", "StreamEnded"]
    ended = records[-1]
    assert isinstance(ended, StreamEnded)
    assert isinstance(ended.error, PermissionDeniedError)
    await closed(calls)


async def test_a_client_that_closes_ends_its_streams() -> None:
    records: list[Record] = []
    calls = await Calls(observer=records.append).ready()
    for name in calls.names:
        calls.engine[name].on_stream = greet
    calls.invoker.supervise(CHAT, Recorder(HELLO), "chat").wake()
    await turns(8)
    await closed(calls)
    assert kinds(records) == ["StreamOpened", "StreamEnded"]
    ended = records[-1]
    assert isinstance(ended, StreamEnded)
    assert isinstance(ended.error, ClientClosedError)


# Observers.


async def test_an_observer_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Record] = []

    def broken(record: Record) -> None:
        seen.append(record)
        raise ValueError("a bug in the observer")

    caplog.set_level(logging.ERROR, "etcd_aio.observing")
    calls = await Calls(observer=broken).ready()
    for name in calls.names:
        calls.engine[name].on_stream = greet
    calls["m1"].answers.append(unknown())
    await calls.read()
    supervisor = calls.invoker.supervise(CHAT, Recorder(HELLO), "chat")
    supervisor.wake()
    await turns(8)
    assert supervisor.is_open
    assert kinds(seen) == ["CallStarted", "AttemptFailed", "CallEnded", "StreamOpened"]
    assert [record.getMessage() for record in caplog.records] == [
        f"observer failed on {kind}; the client goes on" for kind in kinds(seen)
    ]
    await closed(calls)


def test_two_records_of_the_same_content_are_different_calls() -> None:
    assert CallStarted("KV/Range", ("m1",), 1.0) != CallStarted("KV/Range", ("m1",), 1.0)
    assert StreamMoved("Watch/Watch", "m1", ConnectionLostError("lost")).error.message == "lost"
