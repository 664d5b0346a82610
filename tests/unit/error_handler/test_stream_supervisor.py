"""error_handler/stream_supervisor.py, error_handler/stream_recovery.py, error_handler/stream_sender.py,
error_handler/stream_history.py: a stream outlives its connections.
"""

import asyncio
import gc
import itertools
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec.watch_replies import WatchReplyDecoder
from etcd_aio.error_handler import Credentials
from etcd_aio.error_handler.credentials import Password, StaticToken, TokenSource
from etcd_aio.errors import (
    AttemptFailure,
    AuthenticationFailedError,
    ClientClosedError,
    ClusterChangedError,
    ConnectionLostError,
    Delivery,
    EtcdError,
    InvalidRequestError,
    InvalidTokenError,
    LocalReason,
    MalformedReplyError,
    NoLeaderError,
    NotSupportedByServerError,
    PermissionDeniedError,
    StatusCode,
    TokenUnavailableError,
)
from etcd_aio.methods import BIDIRECTIONAL, Method
from etcd_aio.types import Health
from tests.support.calls import CLUSTER, Calls, answered, no_leader, reply, unknown, unprocessed, unsent
from tests.support.conversations import Recorder
from tests.support.fake_engine import FakeStream, Refuse
from tests.support.tokens import Doorman
from tests.support.virtual_time import tasks, timers, turns

if TYPE_CHECKING:
    from etcd_aio.error_handler.reply import MakeDecoder

pytestmark = pytest.mark.anyio

# Not WATCH itself, whose reply may be decoded into something else.
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
MORE = pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"more"))


def said(number: int = 0, cluster_id: int = CLUSTER) -> bytes:
    return codec.encode(pb.WatchResponse(header=pb.ResponseHeader(cluster_id=cluster_id), watch_id=number))


class World:
    """A supervised stream over fake members, which greet every stream unless told otherwise."""

    def __init__(self, members: int = 3, *, greets: bool = True, credentials: Credentials | None = None) -> None:
        self.calls = Calls(members, credentials=credentials)
        self.engine = self.calls.engine
        self.loop = self.calls.loop
        self.talk: Recorder[pb.WatchRequest, pb.WatchResponse] = Recorder(HELLO)
        self.supervisor = self.calls.invoker.supervise(CHAT, self.talk, "chat")
        if greets:
            for name in self.calls.names:
                self.engine[name].on_stream = lambda stream: stream.say(said())

    async def open(self) -> "World":
        await self.calls.ready()
        self.supervisor.wake()
        await turns(6)
        assert self.supervisor.is_open
        return self

    @property
    def stream(self) -> FakeStream:
        return self.engine.streams[-1]

    def where(self) -> list[str]:
        return [stream.member.authority[:2] for stream in self.engine.streams]

    async def aclose(self) -> None:
        await self.calls.aclose()
        await turns()
        assert not tasks()
        assert not timers()


REQUEST: ContextVar[str] = ContextVar("REQUEST", default="nobody's")


async def test_a_stream_does_not_run_in_the_context_of_the_task_that_needs_it_first() -> None:
    """A log line or a trace of the stream is not a part of the request that opened it."""
    seen: list[str] = []

    class Noting(Recorder[pb.WatchRequest, pb.WatchResponse]):
        def on_open(self, endpoint: str, now: float) -> None:
            super().on_open(endpoint, now)
            seen.append(REQUEST.get())

    world = World()
    await world.calls.ready()
    supervisor = world.calls.invoker.supervise(CHAT, Noting(HELLO), "noting")
    token = REQUEST.set("mine")
    try:
        supervisor.wake()
        await turns(6)
    finally:
        REQUEST.reset(token)
    assert seen == ["nobody's"]
    await world.aclose()


async def test_nothing_is_opened_until_it_is_needed() -> None:
    world = World()
    world.talk.wanted = False
    await world.calls.ready()
    world.supervisor.wake()
    await turns(6)
    assert not world.engine.streams
    assert not world.supervisor.is_open
    world.talk.wanted = True
    world.supervisor.wake()
    await turns(6)
    assert world.talk.heard == ["open", "reply"]
    assert world.supervisor.endpoint == world.talk.endpoints[0]
    await world.aclose()


async def test_the_first_wake_connects_the_client() -> None:
    world = World()
    world.supervisor.wake()
    await turns(10)
    assert world.supervisor.is_open
    await world.aclose()


async def test_the_handlers_requests_are_sent_and_it_gets_the_replies() -> None:
    world = await World().open()
    assert world.stream.sent == [codec.encode(HELLO)]
    assert ("hasleader", "true") in world.stream.metadata
    assert world.stream.path == CHAT.path
    world.talk.waiting.append(MORE)
    world.supervisor.wake()
    await turns(4)
    assert world.stream.sent == [codec.encode(HELLO), codec.encode(MORE)]
    world.stream.say(said(7))
    await turns()
    assert [reply.watch_id for reply in world.talk.replies] == [0, 7]
    await world.aclose()


async def test_what_follows_from_a_reply_is_said_without_a_wake() -> None:
    world = await World().open()
    world.talk.waiting.append(MORE)
    world.stream.say(said())
    await turns(4)
    assert world.stream.sent[-1] == codec.encode(MORE)
    await world.aclose()


async def test_a_server_that_takes_nothing_is_still_heard() -> None:
    world = await World().open()
    world.stream.is_blocked = True
    world.talk.waiting += [MORE] * 100
    world.supervisor.wake()
    await turns(4)
    world.stream.say(said(7))
    await turns()
    assert world.talk.replies[-1].watch_id == 7
    await world.aclose()


async def test_many_requests_let_others_run() -> None:
    world = await World().open()
    world.talk.waiting += [MORE] * 1000
    world.supervisor.wake()
    await turns(4)
    assert 1 < len(world.stream.sent) < 1000
    await turns(20)
    assert len(world.stream.sent) == 1001
    await world.aclose()


async def test_many_replies_let_others_run() -> None:
    world = await World().open()
    big = codec.encode(pb.WatchResponse(cancel_reason="x" * 40_000))
    for _ in range(20):
        world.stream.say(big)
    await turns(4)
    assert 1 < len(world.talk.replies) < 21
    await turns(20)
    assert len(world.talk.replies) == 21
    await world.aclose()


async def test_a_reply_beyond_a_step_is_decoded_in_steps() -> None:
    world = await World().open()
    events = [pb.Event(kv=pb.KeyValue(key=b"k", mod_revision=number)) for number in range(1, 30_000)]
    world.stream.say(codec.encode(pb.WatchResponse(watch_id=9, events=events)))
    await turns(3)
    assert len(world.talk.replies) == 1
    await turns(100)
    assert len(world.talk.replies[-1].events) == len(events)
    await world.aclose()


@pytest.mark.parametrize("arrives", ["whole", "in pieces"])
async def test_large_replies_are_read_by_the_decoders_that_the_stream_was_given(arrives: str) -> None:
    made: list[codec.IncrementalDecoder[pb.WatchResponse]] = []

    def make_decoder() -> codec.IncrementalDecoder[pb.WatchResponse]:
        made.append(codec.IncrementalDecoder(pb.WatchResponse))
        return made[-1]

    world = World()
    world.supervisor._make_decoder = make_decoder
    await world.open()
    world.stream.collects = arrives == "in pieces"
    events = [pb.Event(kv=pb.KeyValue(key=b"k", mod_revision=number)) for number in range(1, 3000)]
    large = codec.encode(pb.WatchResponse(watch_id=9, events=events))
    world.stream.say(codec.encode(pb.WatchResponse(watch_id=8, events=events[:1])))
    world.stream.say(large)
    await turns(10)
    assert [(reply.watch_id, len(reply.events)) for reply in world.talk.replies[-2:]] == [(8, 1), (9, len(events))]
    assert len(made) == 1
    assert world.stream.collected == (arrives == "in pieces")
    await world.aclose()


def large_reply(cluster_id: int = CLUSTER) -> bytes:
    events = [pb.Event(kv=pb.KeyValue(key=b"k", value=bytes(300), mod_revision=number)) for number in range(1, 2000)]
    return codec.encode(pb.WatchResponse(header=pb.ResponseHeader(cluster_id), watch_id=9, events=events))


async def with_parts() -> World:
    """A stream whose large replies have parts."""
    world = World()
    make_decoder = partial(WatchReplyDecoder, lambda watch_id: False, lambda watch_id: False)
    world.supervisor._make_decoder = cast("MakeDecoder[pb.WatchResponse]", make_decoder)
    await world.open()
    world.stream.collects = True
    return world


async def test_parts_of_a_reply_are_told_while_the_rest_arrives() -> None:
    world = await with_parts()
    world.stream.say(codec.encode(pb.WatchResponse(watch_id=8)))
    world.stream.say(large_reply())
    world.stream.say(codec.encode(pb.WatchResponse(watch_id=10)))
    await turns(50)
    assert world.stream.parts >= 2
    first, *parts, last = world.talk.replies[-(world.stream.parts + 3) :]
    assert (first.watch_id, last.watch_id) == (8, 10)
    assert [part.fragment for part in parts] == [True] * world.stream.parts + [False]
    assert [event.kv.mod_revision for part in parts for event in part.events if event.kv] == list(range(1, 2000))
    await world.aclose()


@pytest.mark.parametrize("ends", ["not", "lost", "cancelled"])
async def test_a_reply_that_was_told_is_not_kept(ends: str) -> None:
    kept: list[weakref.ref[object]] = []

    class Decoder(codec.IncrementalDecoder[pb.WatchResponse]):
        pass

    def make_decoder() -> Decoder:
        decoder = Decoder(pb.WatchResponse)
        kept.append(weakref.ref(decoder))
        return decoder

    world = World()
    world.supervisor._make_decoder = make_decoder
    await world.open()
    world.stream.collects = True
    gc.disable()
    try:
        world.stream.say(large_reply())
        await turns(50)
        kept.append(weakref.ref(world.talk.replies[-1]))
        assert world.talk.replies[-1].events
        world.talk.replies.clear()
        if ends == "lost":
            await lose_connection(world)
        elif ends == "cancelled":
            world.supervisor.close()
        await turns(50)
        assert [reference() for reference in kept] == [None] * 2
    finally:
        gc.enable()
    await world.aclose()


async def test_parts_from_another_cluster_are_not_told() -> None:
    world = await with_parts()
    stream = world.stream
    stream.say(large_reply(cluster_id=CLUSTER + 1))
    await turns(50)
    assert stream.parts == 1
    assert not any(reply.events for reply in world.talk.replies)
    await world.aclose()


# Losing it.


async def lose_connection(world: World) -> None:
    world.stream.member.connection.lose(ConnectionResetError(104, "reset"))


async def go_away(world: World) -> None:
    world.stream.member.connection.go_away("going away")


async def end_with_ok(world: World) -> None:
    world.stream.end()


async def remove_endpoint(world: World) -> None:
    lost = world.stream.member.authority
    world.calls.balancer.set_endpoints([one for one in world.calls.balancer.endpoints if lost not in one.name])


async def answer_no_leader_to_a_call(world: World) -> None:
    world.stream.member.answers.append(no_leader())
    for _ in range(3):  # one of them meets it
        await world.calls.read()


@pytest.mark.parametrize(
    "lose",
    [lose_connection, go_away, end_with_ok, remove_endpoint, answer_no_leader_to_a_call],
    ids=lambda one: one.__name__,
)
async def test_it_goes_on_elsewhere_at_once(lose: Callable[[World], Awaitable[None]]) -> None:
    world = await World().open()
    first, began = world.stream, world.loop.time()
    await lose(world)
    await turns(8)
    assert world.loop.time() == began
    assert world.talk.heard == ["open", "reply", "lost", "open", "reply"]
    assert isinstance(world.talk.losses[0], ConnectionLostError)
    assert world.talk.losses[0].endpoint == world.talk.endpoints[0]
    assert world.stream.member is not first.member
    assert world.stream.sent == [codec.encode(HELLO)]
    assert world.supervisor.statistics().opened == 2
    assert first.is_over
    await world.aclose()


async def test_an_answer_of_the_server_counts_even_if_this_side_leaves_at_the_same_time() -> None:
    world = await World().open()
    world.stream.member.connection.go_away()
    world.stream.fail(answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"))
    await turns(8)
    assert isinstance(world.talk.losses[0], PermissionDeniedError)
    assert world.talk.heard == ["open", "reply", "lost", "refused", "end"]
    await world.aclose()


async def test_a_draining_connection_is_not_kept_by_streams() -> None:
    world = await World().open()
    connection = world.stream.member.connection
    connection.go_away()
    await turns(8)
    assert connection.is_lost
    await world.aclose()


async def test_what_was_said_before_the_end_is_heard_first() -> None:
    world = await World().open()
    for number in range(1, 4):
        world.stream.say(said(number))
    world.stream.member.connection.lose(ConnectionResetError(104, "reset"))
    await turns(8)
    assert world.talk.heard == ["open", *["reply"] * 4, "lost", "open", "reply"]
    await world.aclose()


async def test_the_handler_does_not_see_streams_that_cannot_be_opened() -> None:
    world = World()
    for name in world.calls.names[:2]:
        world.engine[name].openings.append(unsent())
    await world.open()
    assert world.talk.heard == ["open", "reply"]
    assert world.talk.endpoints[0].endswith("m3:2379")
    await world.aclose()


@pytest.mark.parametrize("failure", [no_leader(), unknown(), unprocessed(), answered(StatusCode.UNKNOWN, "odd")])
async def test_members_that_refuse_are_tried_in_turn_ever_more_slowly(failure: AttemptFailure) -> None:
    world = World(greets=False)
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(failure)
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(60)
    assert set(world.where()[:3]) == {"m1", "m2", "m3"}
    assert 60 < len(world.engine.streams) < 300  # about one wait of a second for each quorum, or each endpoint
    assert not world.talk.ends
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.say(said())
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    opened = len(world.engine.streams)
    began = world.loop.time()
    for number in (1, 2):
        world.stream.fail(failure)
        await turns(8)
        assert len(world.engine.streams) == opened + number, "a reply ends the waiting"
    assert world.loop.time() == began
    await world.aclose()


async def test_members_that_answer_and_then_end_the_stream_are_no_busy_loop() -> None:
    world = World(greets=False)

    def greet_and_end(stream: FakeStream) -> None:
        stream.say(said())
        stream.fail(unknown())

    for name in world.calls.names:
        world.engine[name].on_stream = greet_and_end
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(60)
    assert 50 < len(world.engine.streams) < 100
    await world.aclose()


async def test_what_one_stream_did_not_take_is_not_said_on_the_next() -> None:
    world = await World().open()
    world.stream.is_blocked = True
    world.talk.waiting += [MORE] * 3
    world.supervisor.wake()
    await turns(4)
    world.stream.fail(unknown())
    await turns(8)
    assert world.stream.sent == [codec.encode(HELLO)]
    await world.aclose()


async def test_an_outage_costs_nothing_and_ends_with_the_first_member() -> None:
    world = await World().open()
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
    for name in world.calls.names:
        world.engine[name].connection.lose(ConnectionResetError(104, "reset"))
    await turns(8)
    opened = len(world.engine.streams)
    await asyncio.sleep(600)
    assert len(world.engine.streams) == opened
    assert not world.supervisor.is_open
    error = world.supervisor.outage_error()
    assert len(error.errors) == 3
    assert all("refused" in str(cause) for cause in error.errors.values())
    world.engine["m2:2379"].dial = world.engine["m9:2379"].dial
    await asyncio.sleep(2)
    assert world.supervisor.is_open
    assert world.where()[-1] == "m2"
    await world.aclose()


async def test_a_single_endpoint_is_taken_again_as_soon_as_it_is_back() -> None:
    world = await World(members=1).open()
    await asyncio.sleep(5)
    world.stream.member.connection.go_away()
    await asyncio.sleep(0.2)
    assert world.talk.heard == ["open", "reply", "lost", "open", "reply"]
    await world.aclose()


# The end.


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"), PermissionDeniedError),
        (unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE), EtcdError),
    ],
)
async def test_a_final_answer_ends_the_stream(failure: AttemptFailure, error: type[EtcdError]) -> None:
    world = await World().open()
    world.stream.fail(failure)
    await turns(8)
    assert world.talk.heard == ["open", "reply", "lost", "refused", "end"]
    assert isinstance(world.talk.ends[0], error)
    assert world.talk.ends[0].endpoint == world.talk.endpoints[0]
    assert len(world.engine.streams) == 1
    assert not world.supervisor.is_open
    world.talk.wanted = True
    world.supervisor.wake()
    await turns(8)
    assert world.supervisor.is_open
    await world.aclose()


@pytest.mark.parametrize(
    "failure",
    [
        answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"),
        answered(StatusCode.UNIMPLEMENTED, "unknown service"),
        answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token"),
        unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE),
    ],
)
async def test_nothing_is_final_if_the_handler_tries_again_all_the_same(failure: AttemptFailure) -> None:
    world = World(greets=False, credentials=StaticToken("jwt-c4n4ry"))
    world.talk.persists = True
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(failure)
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(60)
    assert world.talk.refusals
    assert 60 < len(world.engine.streams) < 300, "no busy loop"
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.say(said())
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    assert not world.talk.ends
    await world.aclose()


async def test_one_member_that_asks_to_be_left_alone_holds_up_no_stream() -> None:
    world = World()
    busy = answered(StatusCode.UNAVAILABLE, "busy", pushback=999_999.0)
    world.engine["m1:2379"].on_stream = lambda stream: stream.fail(busy)
    await world.calls.ready()
    world.supervisor.wake()
    for _ in range(5):
        await asyncio.sleep(2)
        assert world.supervisor.is_open
        world.stream.fail(unknown())
    assert world.where().count("m1") == 1
    await world.aclose()


async def test_while_all_members_ask_for_a_pause_one_that_gets_connected_is_tried() -> None:
    world = World(members=2)
    busy = answered(StatusCode.UNAVAILABLE, "busy", pushback=999_999.0)
    world.engine["m1:2379"].on_stream = lambda stream: stream.fail(busy)
    good, world.engine["m2:2379"].dial = world.engine["m2:2379"].dial, Refuse()
    world.supervisor.wake()
    await asyncio.sleep(5)
    assert world.where() == ["m1"]
    world.engine["m2:2379"].dial = good
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    assert world.where() == ["m1", "m2"]
    await world.aclose()


async def test_a_member_without_any_other_is_left_alone_for_half_a_minute_at_most() -> None:
    world = World(members=1)
    busy = answered(StatusCode.UNAVAILABLE, "busy", pushback=999_999.0)
    world.engine["m1:2379"].on_stream = lambda stream: stream.fail(busy)
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(29)
    assert len(world.engine.streams) == 1
    await asyncio.sleep(2)
    assert len(world.engine.streams) == 2
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(6)
    assert "etcd_aio chat" not in {task.get_name() for task in tasks()}
    await world.aclose()


UNKNOWN_METHOD = answered(StatusCode.UNIMPLEMENTED, "unknown service test.Test")


async def test_a_member_that_does_not_know_the_method_is_left_for_others() -> None:
    world = World()
    for name in world.calls.names[:2]:
        world.engine[name].on_stream = lambda stream: stream.fail(UNKNOWN_METHOD)
    await world.calls.ready()
    world.supervisor.wake()
    for _ in range(6):
        await asyncio.sleep(2)
        assert world.supervisor.is_open
        assert world.where()[-1] == "m3"
        world.stream.fail(unknown())
    assert not world.talk.ends
    assert not world.talk.refusals
    await world.aclose()


async def test_a_method_that_no_endpoint_knows_ends_it() -> None:
    world = World(greets=False)
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(UNKNOWN_METHOD)
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(5)
    assert sorted(world.where()) == ["m1", "m2", "m3"]
    assert [type(error) for error in world.talk.ends] == [NotSupportedByServerError]
    await world.aclose()


async def test_what_will_be_asked_for_in_another_way_is_worth_another_stream() -> None:
    world = await World().open()
    world.talk.will_retry_differently = True
    world.stream.fail(unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE))
    await turns(8)
    assert world.talk.heard[:4] == ["open", "reply", "lost", "open"]
    assert len(world.engine.streams) == 2
    await world.aclose()


async def test_a_request_that_will_be_sent_later_is_no_fault_of_the_member(caplog: pytest.LogCaptureFixture) -> None:
    """Each stream has an answer, then ends with the refusal of one request: the others must not wait for a backoff."""
    caplog.set_level(logging.INFO, "etcd_aio.streams")
    world = await World().open()
    world.talk.will_retry_differently = True
    begun = world.loop.time()
    for _ in range(50):
        world.stream.fail(answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"))
        await turns(8)
    assert len(world.engine.streams) == 51
    assert world.loop.time() - begun < 0.1
    assert not world.talk.refusals
    assert world.supervisor.is_open
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    world.stream.fail(no_leader())
    await turns(8)
    assert len(world.engine.streams) == 52, "nor does a later failure"
    await world.aclose()


async def test_one_that_is_closed_in_the_turn_that_needs_it_ends_in_that_turn() -> None:
    """A task that closes the client must not hear of the end later, while it waits for the close."""
    world = World()
    await world.calls.ready()
    world.supervisor.wake()
    closing = asyncio.create_task(world.calls.aclose())
    world.calls.invoker.close()
    assert world.talk.heard == ["end"]
    await closing
    await world.aclose()


async def test_a_malformed_reply_ends_the_stream() -> None:
    world = await World().open()
    world.stream.say(b"\xff\xff\xff")
    await turns(8)
    assert isinstance(world.talk.ends[0], MalformedReplyError)
    await world.aclose()


async def test_a_member_of_another_cluster_is_left_and_rejected() -> None:
    world = await World().open()
    await world.calls.read()
    stranger = world.stream.member
    world.stream.say(said(cluster_id=0xBAD))
    await turns(8)
    assert world.talk.heard == ["open", "reply", "lost", "open", "reply"]
    assert isinstance(world.talk.losses[0], ClusterChangedError)
    assert world.stream.member is not stranger
    assert stranger.connections[0].is_lost
    await world.aclose()


async def test_an_exception_of_the_handler_reaches_its_consumers() -> None:
    world = await World().open()

    def fails(reply: pb.WatchResponse, now: float) -> None:
        raise KeyError("a value of the user's")

    world.talk.on_reply = fails  # type: ignore[method-assign]
    world.stream.say(said())
    await turns(8)
    assert "KeyError" in str(world.talk.ends[0])
    assert world.talk.heard[-2:] == ["lost", "end"]
    await world.aclose()


@pytest.mark.parametrize("is_open", [True, False])
async def test_an_exception_raised_outside_of_the_task_reaches_the_consumers_too(is_open: bool) -> None:
    world = World()
    if is_open:
        await world.open()
    else:
        for name in world.calls.names:
            world.engine[name].dial = Refuse()
        world.supervisor.wake()
        await turns(8)

    def fails(now: float) -> None:
        raise KeyError("a value of the user's")

    world.talk.on_time = fails  # type: ignore[method-assign]
    world.talk.due = world.loop.time()
    world.supervisor.wake()
    await asyncio.sleep(1)
    assert "KeyError" in str(world.talk.ends[0])
    assert world.talk.heard[-1] == "end"
    await world.aclose()


async def test_a_request_that_cannot_be_written_ends_it() -> None:
    world = await World().open()
    world.talk.waiting.append(pb.WatchRequest(create_request=pb.WatchCreateRequest(start_revision=2**70)))
    world.supervisor.wake()
    await turns(8)
    assert isinstance(world.talk.ends[0], InvalidRequestError)
    await world.aclose()


# Who needs it.


async def test_a_stream_is_closed_while_it_is_not_needed() -> None:
    world = await World().open()
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(8)
    assert world.stream.is_cancelled
    assert world.talk.heard == ["open", "reply", "lost"]
    assert not any(task.get_name().startswith("etcd_aio chat") for task in tasks())
    world.talk.wanted = True
    world.supervisor.wake()
    await turns(8)
    assert world.talk.heard == ["open", "reply", "lost", "open", "reply"]
    await world.aclose()


async def test_one_that_is_needed_again_in_the_same_moment_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    world = await World().open()
    for _ in range(20):
        world.talk.wanted = False
        world.supervisor.wake()
        await turns(1)
        world.talk.wanted = True
        world.supervisor.wake()
        await turns(8)
        assert world.supervisor.is_open
    assert world.supervisor.statistics().last_error is None
    assert not caplog.records
    await world.aclose()


async def test_a_reply_may_make_it_unneeded() -> None:
    world = await World().open()
    handle = world.talk.on_reply

    def last(reply: pb.WatchResponse, now: float) -> None:
        handle(reply, now)
        world.talk.wanted = False

    world.talk.on_reply = last  # type: ignore[method-assign]
    world.stream.say(said())
    await turns(8)
    assert not world.supervisor.is_open
    assert world.stream.is_cancelled
    await world.aclose()


async def test_a_stream_that_is_not_needed_any_more_ends_its_task_during_an_outage() -> None:
    world = World()
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
    world.supervisor.wake()
    await asyncio.sleep(1)
    assert {"etcd_aio chat"} <= {task.get_name() for task in tasks()}
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(6)
    assert "etcd_aio chat" not in {task.get_name() for task in tasks()}, "its task waits for nobody"
    for name in world.calls.names:
        world.engine[name].dial = world.engine["m9:2379"].dial
    await asyncio.sleep(5)
    assert not world.engine.streams
    await world.aclose()


async def test_the_end_of_a_stream_shows_all_others_that_its_member_has_no_leader() -> None:
    world = await World().open()
    member = world.stream.member
    left: list[str] = []
    sub = world.calls.balancer.sub_connection(member.authority)
    assert sub is not None
    other = await sub.open_stream("/other", (), world.loop.time() + 1, left.append)
    member.on_stream = None
    member.streams[0].fail(no_leader())
    await turns(8)
    assert left == ["etcdserver: no leader"], "the server ends it only seconds later"
    assert {one.endpoint for one in world.calls.balancer.statistics() if one.health is Health.NO_LEADER} == {
        member.authority
    }
    assert world.supervisor.endpoint != member.authority
    other.cancel()
    await world.aclose()


async def test_a_client_that_has_only_a_stream_leaves_the_one_member_that_it_is_connected_to() -> None:
    """Behind its one address are others."""
    world = World(1, greets=False)
    world.engine.unsent = lambda attempt: False
    member = world.engine["m1:2379"]
    member.behind = [no_leader(), reply()]
    member.on_stream = lambda stream: stream.fail(no_leader()) if len(member.connections) < 2 else stream.say(said())
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(5)
    assert world.supervisor.is_open
    assert world.talk.heard[-1] == "reply"
    assert [one.is_lost for one in member.connections] == [True, False]
    await world.aclose()


async def test_a_stream_that_is_needed_again_before_a_wait_ends_is_opened() -> None:
    world = World(greets=False)
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(no_leader())
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(10)
    assert not world.supervisor.is_open, "it waits before it tries again"
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.say(said())
    for wanted in (False, True, False, True):
        world.talk.wanted = wanted
        world.supervisor.wake()
        await turns(1)
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    assert not world.talk.ends
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(6)
    assert "etcd_aio chat" not in {task.get_name() for task in tasks()}
    await world.aclose()


# Time.


async def test_a_handler_that_gives_up_on_a_silent_server_moves_the_stream() -> None:
    world = await World().open()
    silent = world.stream.member
    world.talk.gives_up = "no answer within 2 s"
    world.talk.due = world.loop.time() + 2
    world.supervisor.wake()
    await asyncio.sleep(3)
    assert world.talk.heard == ["open", "reply", "time", "lost", "open", "reply"]
    assert world.talk.losses[0].message == "no answer within 2 s"
    assert world.stream.member is not silent
    assert world.engine.streams[0].is_cancelled
    await world.aclose()


async def test_time_passes_without_a_stream_too() -> None:
    world = World()
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
    world.talk.due = world.loop.time() + 5
    world.supervisor.wake()
    await asyncio.sleep(10)
    assert world.talk.heard == ["time"]
    await world.aclose()


async def test_what_becomes_due_by_a_loss_is_said_however_long_the_stream_has_lived() -> None:
    """A loss is followed by no wake and, in an outage, by no other stream: it alone has to set the timer."""
    world = await World().open()
    await asyncio.sleep(100)
    world.talk.patience = 1.0
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
    for name in world.calls.names:
        world.engine[name].connection.lose(ConnectionResetError(104, "reset"))
    lost = world.loop.time()
    await asyncio.sleep(5)
    assert world.talk.heard[-2:] == ["lost", "time"]
    assert world.talk.instants[-1] == pytest.approx(lost + 1.0, abs=0.01)
    await world.aclose()


async def test_requests_that_become_due_are_sent() -> None:
    world = await World().open()
    on_time = world.talk.on_time

    def renew(now: float) -> str | None:
        world.talk.waiting.append(MORE)
        return on_time(now)

    world.talk.on_time = renew  # type: ignore[method-assign]
    world.talk.due = world.loop.time() + 1
    world.supervisor.wake()
    await asyncio.sleep(2)
    assert world.stream.sent == [codec.encode(HELLO), codec.encode(MORE)]
    await world.aclose()


async def test_after_a_stall_replies_sent_in_time_are_read_before_the_timer_fires() -> None:
    world = await World().open()
    on_reply = world.talk.on_reply

    def answered_in_time(reply: pb.WatchResponse, now: float) -> None:
        on_reply(reply, now)
        world.talk.due = now + 10

    world.talk.on_reply = answered_in_time  # type: ignore[method-assign]
    world.talk.due = world.loop.time() + 2
    world.supervisor.wake()
    await turns()
    # The reply becomes readable in the very turn in which the timer fires, as everything does after a stall.
    world.loop.call_at(world.talk.due, world.loop.call_soon, world.stream.say, said())
    await asyncio.sleep(5)
    assert "time" not in world.talk.heard
    assert len(world.engine.streams) == 1
    await world.aclose()


# Closing.


async def test_a_close_ends_it_at_once_and_for_good() -> None:
    world = await World().open()
    began = world.loop.time()
    await world.supervisor.aclose()
    await world.supervisor.aclose()
    assert world.loop.time() == began
    assert world.stream.is_cancelled
    assert world.talk.heard == ["open", "reply", "lost", "end"]
    assert isinstance(world.talk.ends[0], ClientClosedError)
    assert not any(task.get_name().startswith("etcd_aio chat") for task in tasks())
    world.talk.wanted = True
    world.supervisor.wake()
    await turns()
    assert [type(error) for error in world.talk.ends] == [ClientClosedError] * 2
    assert len(world.engine.streams) == 1
    await world.aclose()


async def test_what_becomes_needed_during_the_close_ends_too() -> None:
    """A consumer that subscribes again as soon as it is told comes while the task is still unwinding."""
    world = await World().open()
    on_end = world.talk.on_end

    def again(error: EtcdError) -> None:
        on_end(error)
        if len(world.talk.ends) < 4:
            world.talk.wanted = True
            world.supervisor.wake()

    world.talk.on_end = again  # type: ignore[method-assign]
    began = world.loop.time()
    await world.supervisor.aclose()
    await turns(8)
    assert [type(error) for error in world.talk.ends] == [ClientClosedError] * 4
    assert world.loop.time() == began
    assert len(world.engine.streams) == 1
    await world.aclose()


async def test_what_becomes_needed_before_the_stream_of_a_closing_client_is_closed_ends_too() -> None:
    world = await World().open()
    world.calls.lifetime.close()
    world.supervisor.wake()
    await turns(3)
    assert [type(error) for error in world.talk.ends] == [ClientClosedError]
    assert world.talk.heard == ["open", "reply", "lost", "end"]
    await turns(5)
    assert world.stream.is_cancelled
    await world.calls.invoker.aclose()
    await world.calls.balancer.aclose()
    await turns()
    assert not tasks()
    assert world.talk.heard == ["open", "reply", "lost", "end"]


@pytest.mark.parametrize("state", ["sending", "waiting for an endpoint", "backing off", "just woken"])
async def test_a_client_that_closes_ends_it_in_any_state(state: str) -> None:
    world = World()
    if state == "sending":
        await world.open()
        world.stream.is_blocked = True
        world.talk.waiting += [MORE] * 10
        world.supervisor.wake()
        await turns(4)
    elif state == "waiting for an endpoint":
        for name in world.calls.names:
            world.engine[name].dial = Refuse()
        world.supervisor.wake()
        await turns(6)
    elif state == "backing off":
        await world.calls.ready()
        for name in world.calls.names:
            world.engine[name].on_stream = lambda stream: stream.fail(no_leader())
        world.supervisor.wake()
        await asyncio.sleep(30)
    else:
        world.supervisor.wake()
    began = world.loop.time()
    await world.calls.aclose()
    assert world.loop.time() - began < 1
    await turns()
    assert [type(error) for error in world.talk.ends] == [ClientClosedError]
    await world.aclose()


async def test_cancelling_the_task_from_outside_ends_the_stream_for_its_consumers() -> None:
    world = await World().open()
    next(task for task in tasks() if task.get_name() == "etcd_aio chat").cancel()
    await turns(6)
    assert isinstance(world.talk.ends[0], ClientClosedError)
    await world.aclose()


# What can be seen.


async def test_the_statistics() -> None:
    world = await World().open()
    await asyncio.sleep(5)
    seen = world.supervisor.statistics()
    assert (seen.method, seen.endpoint, seen.is_open) == (CHAT.name, world.talk.endpoints[0], True)
    assert (seen.since, seen.opened, seen.last_error) == (5.0, 1, None)
    world.stream.fail(no_leader())
    await turns(8)
    seen = world.supervisor.statistics()
    assert (seen.since, seen.opened) == (0.0, 2)
    assert isinstance(seen.last_error, NoLeaderError)
    assert sum(one.streams for one in world.calls.balancer.statistics()) == 1
    assert world.calls.invoker.streams() == (seen,)
    await world.aclose()
    assert world.calls.invoker.streams() == ()


async def test_a_stream_that_was_never_open_tells_how_long_it_has_been_needed() -> None:
    world = World()
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
    assert world.calls.invoker.streams() == ()
    await asyncio.sleep(3)
    world.supervisor.wake()
    await asyncio.sleep(4)
    [seen] = world.calls.invoker.streams()
    assert (seen.since, seen.opened, seen.is_open, seen.endpoint) == (4.0, 0, False, "")
    world.talk.wanted = False
    world.supervisor.wake()
    await asyncio.sleep(1)
    assert world.calls.invoker.streams() == (), "nobody needs it"
    world.talk.wanted = True
    world.supervisor.wake()
    await asyncio.sleep(2)
    [seen] = world.calls.invoker.streams()
    assert seen.since == 2.0
    await world.aclose()


async def test_a_stream_that_is_needed_again_was_not_lost_in_between() -> None:
    world = await World().open()
    await asyncio.sleep(3)
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(6)
    for name in world.calls.names:
        world.engine[name].dial = Refuse()
        world.engine[name].connections[-1].lose()
    await asyncio.sleep(10)
    world.talk.wanted = True
    world.supervisor.wake()
    await asyncio.sleep(2)
    [seen] = world.calls.invoker.streams()
    assert (seen.since, seen.is_open, seen.opened) == (2.0, False, 1)
    await world.aclose()


async def test_the_log_has_one_line_for_each_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.streams")
    world = await World().open()
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(
            AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN)
        )
    world.stream.fail(no_leader())
    await asyncio.sleep(30)
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.say(said())
    await asyncio.sleep(5)
    world.stream.fail(no_leader())
    await asyncio.sleep(5)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if "streams" in record.name]
    assert [level for level, _ in lines] == ["WARNING", "INFO"] * 2
    assert "lost at" in lines[0][1]
    assert "no leader" in lines[0][1]
    assert "resumed at" in lines[1][1]
    await world.aclose()


# Tokens.

TOKEN_REFUSED = answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")


class Guarded(World):
    """Members that want a token, and open a stream with any."""

    def __init__(self, *, greets: bool = True) -> None:
        super().__init__(greets=greets, credentials=Password("web", "pw-c4n4ry"))
        self.doorman = Doorman(self.calls)

    async def open(self) -> "Guarded":
        await self.calls.ready()
        await self.calls.read()
        await super().open()
        return self

    def tokens(self) -> list[str]:
        return [dict(stream.metadata).get("token", "") for stream in self.engine.streams]


async def test_a_stream_is_opened_with_a_token() -> None:
    world = Guarded()
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(0.1)
    assert world.tokens() == ["t1-c4n4ry"]
    await world.calls.put()
    assert world.doorman.given == 1
    await world.aclose()


OLD_REVISION = answered(StatusCode.INVALID_ARGUMENT, "etcdserver: revision of auth store is old")


async def test_a_stream_whose_token_is_refused_is_opened_with_another() -> None:
    world = await Guarded(greets=False).open()
    world.doorman.valid.clear()
    began = world.loop.time()
    world.stream.fail(TOKEN_REFUSED)
    await turns(20)
    assert world.loop.time() == began
    assert world.tokens() == ["t1-c4n4ry", "t2-c4n4ry"]
    await world.aclose()


@pytest.mark.parametrize(
    ("refusal", "tokens"),
    [(TOKEN_REFUSED, range(1, 9)), (OLD_REVISION, [1] * 8)],
    ids=["another is fetched each time", "a simple token survives a change of users"],
)
async def test_a_refused_token_is_worth_as_many_streams_as_it_takes(
    refusal: AttemptFailure, tokens: Iterable[int]
) -> None:
    world = Guarded(greets=False)
    for name in world.calls.names:
        world.engine[name].on_stream = lambda stream: stream.fail(refusal) if len(world.tokens()) < 8 else None
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(10)
    assert world.supervisor.is_open
    assert world.tokens() == [f"t{number}-c4n4ry" for number in tokens]
    assert not world.talk.ends
    await world.aclose()


async def test_a_token_that_is_refused_whatever_it_is_ends_the_stream_in_the_end() -> None:
    world = Guarded(greets=False)
    opened: list[float] = []

    def refuse(stream: FakeStream) -> None:
        opened.append(world.loop.time())
        stream.fail(TOKEN_REFUSED)

    for name in world.calls.names:
        world.engine[name].on_stream = refuse
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(60)
    (error,) = world.talk.ends
    assert isinstance(error, InvalidTokenError)
    assert world.doorman.given == len(opened) == 11
    waits = [later - earlier for earlier, later in itertools.pairwise(opened)]
    assert waits == sorted(waits), "ever more slowly"
    assert waits[-1] > waits[1] > waits[0] == 0
    await world.aclose()


async def test_a_stream_that_was_served_in_between_renews_its_token_again() -> None:
    world = await Guarded().open()
    for number in range(2, 5):
        world.doorman.valid.clear()
        world.stream.fail(TOKEN_REFUSED)
        await asyncio.sleep(5)
        assert world.doorman.given == number
    assert not world.talk.ends
    assert world.supervisor.is_open
    await world.aclose()


async def test_a_stream_takes_the_token_that_a_call_has_renewed() -> None:
    world = await Guarded().open()
    world.doorman.valid.clear()
    await world.calls.put()
    world.stream.fail(TOKEN_REFUSED)
    await asyncio.sleep(0.1)
    assert world.tokens() == ["t1-c4n4ry", "t2-c4n4ry"]
    assert world.doorman.given == 2
    await world.aclose()


async def test_without_another_token_the_stream_ends_with_the_servers_error() -> None:
    world = await Guarded().open()
    world.doorman.valid.clear()
    world.doorman.password = "other-c4n4ry"
    world.stream.fail(TOKEN_REFUSED)
    await asyncio.sleep(0.1)
    (error,) = world.talk.ends
    assert isinstance(error, InvalidTokenError)
    assert isinstance(error.__cause__, AuthenticationFailedError)
    await world.aclose()


async def test_without_a_first_token_it_ends_with_the_reason() -> None:
    world = Guarded()
    world.doorman.password = "other-c4n4ry"
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(0.1)
    (error,) = world.talk.ends
    assert isinstance(error, AuthenticationFailedError)
    assert not world.engine.streams
    await world.aclose()


class Vault:
    """A user's function that gives tokens, unless it is broken."""

    def __init__(self) -> None:
        self.is_broken = False
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.is_broken:
            raise OSError("the secret store is down")
        return f"t{self.asked}-c4n4ry"


async def test_a_function_that_gives_no_token_is_asked_again() -> None:
    vault = Vault()
    vault.is_broken = True
    world = World(credentials=TokenSource(vault))
    await world.calls.ready()
    world.supervisor.wake()
    await asyncio.sleep(60)
    assert not world.engine.streams
    assert not world.talk.ends
    assert 20 < vault.asked < 100, "about one a second, and no storm"
    causes = set(map(type, world.supervisor.outage_error().errors.values()))
    assert causes == {TokenUnavailableError}
    assert isinstance(world.supervisor.statistics().last_error, TokenUnavailableError)
    vault.is_broken = False
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    await world.aclose()


async def test_a_function_that_returns_no_token_does_not_end_a_stream_whose_token_is_refused() -> None:
    vault = Vault()
    world = await World(credentials=TokenSource(vault)).open()
    vault.is_broken = True
    world.stream.fail(TOKEN_REFUSED)
    await asyncio.sleep(20)
    assert len(world.engine.streams) == 1
    vault.is_broken = False
    await asyncio.sleep(3)
    assert world.supervisor.is_open
    assert not world.talk.ends
    await world.aclose()


async def test_a_stream_that_cannot_wait_for_a_login_is_opened_with_the_current_token() -> None:
    vault = Vault()
    world = World(credentials=TokenSource(vault))
    world.supervisor = world.calls.invoker.supervise(CHAT, world.talk, "chat", needs_token=False)
    vault.is_broken = True
    await world.open()
    assert vault.asked == 0
    assert "token" not in dict(world.stream.metadata)
    vault.is_broken = False
    world.stream.fail(TOKEN_REFUSED)
    await turns(20)
    assert world.supervisor.is_open
    assert dict(world.stream.metadata)["token"] == "t1-c4n4ry"
    await world.aclose()


async def test_a_static_token_ends_it() -> None:
    world = await World(credentials=StaticToken("jwt-c4n4ry")).open()
    assert dict(world.stream.metadata)["token"] == "jwt-c4n4ry"
    world.stream.fail(TOKEN_REFUSED)
    await turns(6)
    assert [type(error) for error in world.talk.ends] == [InvalidTokenError]
    await world.aclose()


async def test_a_stream_that_is_not_needed_any_more_stops_waiting_for_a_token() -> None:
    world = Guarded()
    world.engine["m1:2379"].latency = 3.0
    await world.calls.ready()
    world.supervisor.wake()
    await turns(6)
    world.talk.wanted = False
    world.supervisor.wake()
    await turns(6)
    assert not world.engine.streams
    assert not world.talk.ends
    await world.calls.put()  # the login goes on for others
    assert world.doorman.given == 1
    await world.aclose()


async def test_a_renewal_for_the_owner_tells_only_why_there_will_be_no_token() -> None:
    tokens = ["one"]

    async def give() -> str:
        return tokens.pop()  # or an IndexError, which may pass

    world = await World(credentials=TokenSource(give)).open()
    assert await world.supervisor.renew_token(InvalidTokenError()) is None
    await world.aclose()
    guarded = await Guarded().open()
    guarded.doorman.password = "another"
    assert isinstance(await guarded.supervisor.renew_token(InvalidTokenError()), AuthenticationFailedError)
    await guarded.aclose()


async def test_a_refused_token_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = await Guarded().open()
    world.doorman.valid.clear()
    world.stream.fail(TOKEN_REFUSED)
    await asyncio.sleep(0.1)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    await world.aclose()
