"""error_handler/streamed_reply.py: replies over fake members whose streams do what a script says."""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest

from etcd_aio import codec, pb
from etcd_aio.base.call_options import RetryMode
from etcd_aio.error_handler import RetryPolicy, StreamedReply
from etcd_aio.error_handler.reply import LARGE
from etcd_aio.errors import (
    AttemptFailure,
    ClientClosedError,
    CompactedError,
    ConnectionLostError,
    Delivery,
    EtcdError,
    EtcdTimeoutError,
    LeaderChangedError,
    LocalReason,
    MalformedReplyError,
    NotSupportedByServerError,
    PermissionDeniedError,
    ReplyTooLargeError,
    RequestTooLargeError,
    StatusCode,
    UnknownEndpointError,
)
from etcd_aio.methods import RANGE_STREAM
from etcd_aio.transport import Collect, Metadata
from etcd_aio.types import RangeChunk
from tests.support.calls import CLUSTER, Calls, answered, leader_changed, unknown, unprocessed
from tests.support.fake_engine import FakeConnection, Hang
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

Item: TypeAlias = bytes | AttemptFailure | Hang | None
Read: TypeAlias = StreamedReply[pb.RangeRequest, RangeChunk]


def chunk(*keys: str, cluster_id: int = 0) -> bytes:
    header = pb.ResponseHeader(cluster_id=cluster_id) if cluster_id else None
    kvs = [pb.KeyValue(key=key.encode()) for key in keys]
    return codec.encode(pb.RangeStreamResponse(range_response=pb.RangeResponse(header=header, kvs=kvs)))


def unimplemented() -> AttemptFailure:
    return answered(StatusCode.UNIMPLEMENTED, "unknown method RangeStream for service etcdserverpb.KV")


class ScriptedStream:
    """A stream that gives what its script says, and then is silent. See `seam.Stream`."""

    def __init__(self, items: Sequence[Item], metadata: Metadata) -> None:
        self.items = deque(items)
        self.metadata = metadata
        self.sent: list[bytes] = []
        self.is_half_closed = False
        self.is_cancelled = False
        self._changed = asyncio.Event()

    async def send(self, payload: bytes) -> None:
        self.sent.append(payload)

    async def half_close(self) -> None:
        self.is_half_closed = True

    async def receive(self) -> bytes | None:
        while True:
            if self.items and not isinstance(self.items[0], Hang):
                item = self.items.popleft()
                if isinstance(item, AttemptFailure):
                    self.is_cancelled = True  # it is over
                    raise item
                assert not isinstance(item, Hang)
                return item
            if self.is_cancelled:
                raise AttemptFailure(StatusCode.CANCELLED, "the stream was cancelled", Delivery.UNKNOWN)
            self._changed.clear()
            await self._changed.wait()

    def give(self, item: Item) -> None:
        """End the silence."""
        self.items = deque([item])
        self._changed.set()

    def cancel(self) -> None:
        self.is_cancelled = True
        self._changed.set()


class Streams:
    """The streams that were opened, and the scripts of those that will be."""

    def __init__(self) -> None:
        self.opened: list[ScriptedStream] = []
        self.where: list[str] = []
        self.scripts: dict[str, deque[Sequence[Item]]] = {}
        self.may_open = asyncio.Event()  # as after a wait for a free stream
        self.may_open.set()

    def script(self, member: str, *items: Item) -> None:
        """What the member's next stream without a script will do."""
        self.scripts.setdefault(member, deque()).append(items)

    def requests(self) -> list[bytes]:
        """The key that each stream was opened for."""
        return [codec.decode(pb.RangeRequest, stream.sent[0]).key for stream in self.opened]

    @property
    def is_any_open(self) -> bool:
        return any(not stream.is_cancelled for stream in self.opened)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    streams = Streams()

    async def open_stream(
        connection: FakeConnection, path: str, metadata: Metadata, deadline: float, collect: Collect | None = None
    ) -> ScriptedStream:
        if connection.is_lost or connection.is_draining:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)
        assert path == RANGE_STREAM.path
        assert collect is not None, "large messages are decoded while they arrive"
        assert deadline > asyncio.get_running_loop().time()
        await streams.may_open.wait()
        name = connection._member.authority[:2]
        scripts = streams.scripts.get(name)
        stream = ScriptedStream(scripts.popleft() if scripts else (), metadata)
        streams.opened.append(stream)
        streams.where.append(name)
        return stream

    monkeypatch.setattr(FakeConnection, "open_stream", open_stream)
    return streams


def new(*, resumes: bool = True) -> Read:
    return StreamedReply(RANGE_STREAM, resumes=resumes)


async def read(
    calls: Calls,
    reading: Read,
    rest: str = "k",
    *,
    timeout: float | None = 5.0,
    retry: RetryMode | None = None,
    needs_leader: bool = True,
) -> list[str] | None:
    """The keys of the next chunk."""
    request = pb.RangeRequest(key=rest.encode())
    reply = await calls.invoker.read(reading, request, timeout=timeout, retry=retry, needs_leader=needs_leader)
    if reply is None:
        return None
    assert reply.range_response is not None
    return [kv.key.decode() for kv in reply.range_response]


async def test_replies_come_one_at_a_time_over_one_stream(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), chunk("b", "c"), chunk("d", cluster_id=CLUSTER), None)
    reading = new()
    assert [await read(calls, reading, rest) for rest in "kbdx"] == [["a"], ["b", "c"], ["d"], None]
    (stream,) = streams.opened
    assert streams.requests() == [b"k"]
    assert (len(stream.sent), stream.is_half_closed) == (1, True)
    assert calls.identity.cluster_id == CLUSTER
    assert reading.sub_connection is None
    assert timers() == 0
    await calls.aclose()
    assert not tasks()


async def test_metadata_says_whether_a_leader_is_needed(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    for needs_leader in (True, False):
        streams.script("m1", chunk("a"))
        await read(calls, new(), needs_leader=needs_leader)
    assert [("hasleader", "true") in stream.metadata for stream in streams.opened] == [True, False]
    await calls.aclose()


@pytest.mark.parametrize("failure", [unknown, unprocessed, leader_changed])
async def test_a_stream_that_fails_at_once_is_opened_elsewhere(
    streams: Streams, failure: Callable[[], AttemptFailure]
) -> None:
    calls = await Calls().ready()
    streams.script("m1", failure())
    streams.script("m2", chunk("a"))
    assert await read(calls, new()) == ["a"]
    assert streams.where == ["m1", "m2"]
    await calls.aclose()


async def test_a_stream_that_fails_later_is_opened_elsewhere_for_the_rest(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), unknown())
    streams.script("m2", leader_changed())
    streams.script("m3", chunk("b"), chunk("c"), None)
    reading = new()
    assert [await read(calls, reading, rest) for rest in ("k", "left", "x", "x")] == [["a"], ["b"], ["c"], None]
    assert streams.where == ["m1", "m2", "m3"]
    assert streams.requests() == [b"k", b"left", b"left"]
    await calls.aclose()


async def test_the_error_has_every_attempt_if_nothing_may_be_retried(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), unknown())
    reading = new()
    assert await read(calls, reading, retry="never") == ["a"]
    with pytest.raises(ConnectionError) as caught:
        await read(calls, reading, retry="never")
    assert [attempt.endpoint for attempt in caught.value.attempts] == ["m1:2379"]  # type: ignore[attr-defined]
    assert streams.where == ["m1"]
    await calls.aclose()


async def test_a_final_answer_is_raised_and_the_next_step_begins_anew(streams: Streams) -> None:
    calls = await Calls().ready()
    compacted = answered(StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted")
    streams.script("m1", chunk("a"), compacted)
    streams.script("m2", chunk("b"))
    reading = new()
    await read(calls, reading)
    with pytest.raises(CompactedError):
        await read(calls, reading, "left")
    assert reading.sub_connection is None
    assert await read(calls, reading, "again") == ["b"]
    assert streams.requests() == [b"k", b"again"]
    await calls.aclose()


async def test_a_message_too_large_is_final(streams: Streams) -> None:
    calls = await Calls().ready()
    failure = unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE)
    failure.beginning = b"a value"
    streams.script("m1", failure)
    with pytest.raises(ReplyTooLargeError):
        await read(calls, new())
    assert streams.where == ["m1"]
    assert not failure.beginning, "the failure is the context of the error, and values are secrets"
    await calls.aclose()


@pytest.mark.parametrize("before", [0, 1])
async def test_a_silent_member_is_left_while_time_is_left(streams: Streams, before: int) -> None:
    calls = await Calls().ready()
    streams.script("m1", *[chunk("a")] * before, Hang())
    streams.script("m2", chunk("b"))
    reading = new()
    for _ in range(before):
        await read(calls, reading)
    started = calls.loop.time()
    assert await read(calls, reading, timeout=4.0) == ["b"]
    assert calls.loop.time() - started == pytest.approx(2.0)
    assert streams.opened[0].is_cancelled
    await calls.aclose()


async def test_silence_everywhere_ends_by_the_deadline(streams: Streams) -> None:
    calls = await Calls().ready()
    started = calls.loop.time()
    with pytest.raises(EtcdTimeoutError) as caught:
        await read(calls, new(), timeout=4.0)
    assert calls.loop.time() - started == pytest.approx(4.0)
    assert len(caught.value.attempts) == len(streams.opened) == 2
    assert not streams.is_any_open
    assert timers() == 0
    await calls.aclose()


async def test_without_a_timeout_silence_is_waited_for(streams: Streams) -> None:
    calls = await Calls().ready()
    task = asyncio.create_task(read(calls, new(), timeout=None))
    await asyncio.sleep(3600)
    streams.opened[0].give(chunk("a"))
    assert await task == ["a"]
    assert streams.where == ["m1"]
    await calls.aclose()


async def test_the_timeout_is_of_each_step(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    streams.script("m1", *(chunk("a"), chunk("b"), chunk("c")))
    reading = new()
    for key in "abc":
        await asyncio.sleep(60)  # what the reader does meanwhile does not count
        assert await read(calls, reading, timeout=1.0) == [key]
    assert len(streams.opened) == 1
    await calls.aclose()


async def test_an_error_tells_for_how_long_the_reply_was_read(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    streams.script("m1", chunk("a"))
    reading = new(resumes=False)
    assert await read(calls, reading) == ["a"]
    await asyncio.sleep(5.0)
    streams.opened[0].give(unknown())
    with pytest.raises(EtcdError, match=r"\(at m1:2379 after 5 s"):
        await read(calls, reading)
    await calls.aclose()


async def test_a_message_that_is_late_by_a_hair_counts_and_its_stream_is_closed(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    reading = new()
    task = asyncio.create_task(read(calls, reading, timeout=1.0))
    await turns()
    calls.loop.call_later(1.0, streams.opened[0].give, chunk("a"))  # behind the timer of the deadline
    assert await task == ["a"]
    assert reading.sub_connection is None
    assert not streams.is_any_open
    streams.script("m1", chunk("b"))
    assert await read(calls, reading, "left") == ["b"]
    await calls.aclose()


# Members that do not have the RPC.


async def test_a_member_without_the_rpc_is_asked_once_for_each_connection(streams: Streams) -> None:
    calls = await Calls(members=2).ready()
    streams.script("m1", unimplemented())
    for _ in range(4):
        streams.script("m2", chunk("a"))
        assert await read(calls, new()) == ["a"]
    assert streams.where == ["m1", "m2", "m2", "m2", "m2"]
    calls["m1"].connection.lose()
    await asyncio.sleep(5.0)
    streams.script("m1", chunk("upgraded"))
    streams.script("m2", chunk("a"))
    assert sorted([await read(calls, new()) or [] for _ in range(2)]) == [["a"], ["upgraded"]]
    await calls.aclose()


async def test_if_no_member_has_the_rpc_none_is_asked_again(streams: Streams) -> None:
    calls = await Calls().ready()
    for name in ("m1", "m2", "m3"):
        streams.script(name, unimplemented())
    with pytest.raises(NotSupportedByServerError) as caught:
        await read(calls, new())
    assert sorted(streams.where) == ["m1", "m2", "m3"]
    assert len(caught.value.attempts) == 3
    for _ in range(5):
        with pytest.raises(NotSupportedByServerError, match="KV/RangeStream"):
            await read(calls, new())
    assert len(streams.opened) == 3
    assert timers() == 0, "nothing was waited for"
    await calls.aclose()


async def test_without_retries_a_member_without_the_rpc_is_remembered_too(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    streams.script("m1", unimplemented())
    for _ in range(2):
        with pytest.raises(NotSupportedByServerError):
            await read(calls, new(), retry="never")
    assert len(streams.opened) == 1
    await calls.aclose()


async def test_if_the_only_member_that_has_the_rpc_fails_no_other_is_asked(streams: Streams) -> None:
    calls = await Calls(members=2).ready()
    streams.script("m1", unimplemented())
    streams.script("m2", chunk("a"), unknown())
    reading = new()
    assert await read(calls, reading) == ["a"]
    with pytest.raises(NotSupportedByServerError):
        await read(calls, reading, "left")
    assert streams.where == ["m1", "m2"]
    await calls.aclose()


async def test_an_answer_of_an_old_connection_says_nothing_about_the_new_one(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    task = asyncio.create_task(read(calls, new()))
    await turns()
    streams.script("m1", chunk("a"))
    streams.opened[0].give(unimplemented())
    calls["m1"].connection.go_away()
    assert await task == ["a"]
    assert len(calls["m1"].connections) == 2
    assert len(streams.opened) == 2
    await calls.aclose()


# Ends.


async def test_cancellation_closes_the_stream_and_loses_nothing(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    streams.script("m1", chunk("a"), Hang())
    reading = new()
    await read(calls, reading)
    task = asyncio.create_task(read(calls, reading, "left"))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not streams.is_any_open
    assert timers() == 0
    streams.script("m1", chunk("b"))
    assert await read(calls, reading, "left") == ["b"]
    assert streams.requests() == [b"k", b"left"]
    await calls.aclose()


async def test_cancellation_while_a_chunk_is_decoded_closes_the_stream(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    large = chunk(*(f"{number:0100}" for number in range(20_000)))
    assert len(large) > 2 * LARGE
    streams.script("m1", large, chunk("never seen"))
    streams.script("m1", large, chunk("behind it"))
    reading = new()
    task = asyncio.create_task(read(calls, reading))
    await turns(2)
    assert not task.done()
    assert len(streams.opened[0].items) == 1, "the chunk was taken"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not streams.is_any_open
    assert len(await read(calls, reading) or []) == 20_000
    assert await read(calls, reading, "left") == ["behind it"]
    await calls.aclose()


async def test_a_stream_leaves_a_connection_that_drains_and_goes_on_elsewhere(streams: Streams) -> None:
    calls = await Calls(members=2).ready()
    streams.script("m1", chunk("a"), chunk("never taken"))
    streams.script("m2", chunk("b"))
    reading = new()
    await read(calls, reading)
    calls["m1"].connection.go_away()
    await turns()
    assert not streams.is_any_open, "before anybody asks for more"
    calls["m1"].dial = Hang()
    assert await read(calls, reading, "left") == ["b"]
    assert streams.requests() == [b"k", b"left"]
    await calls.aclose()


async def test_a_step_under_way_goes_on_elsewhere_when_its_connection_drains(streams: Streams) -> None:
    calls = await Calls(members=2).ready()
    reading = new()
    task = asyncio.create_task(read(calls, reading))
    await turns()
    streams.script("m2", chunk("a"))
    calls["m1"].dial = Hang()
    started = calls.loop.time()
    calls["m1"].connection.go_away()
    assert await task == ["a"]
    assert calls.loop.time() - started < 1
    await calls.aclose()


async def test_cancel_closes_the_stream_at_once_and_for_good(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), chunk("b"))
    reading = new()
    await read(calls, reading)
    reading.cancel()
    reading.cancel()
    assert not streams.is_any_open
    assert await read(calls, reading) is None
    assert len(streams.opened) == 1
    await calls.aclose()


async def test_cancel_ends_a_step_under_way(streams: Streams) -> None:
    calls = await Calls().ready()
    reading = new()
    task = asyncio.create_task(read(calls, reading))
    await turns()
    reading.cancel()
    assert await task is None
    assert len(streams.opened) == 1, "no other member was asked"
    await calls.aclose()


async def test_cancel_while_the_stream_is_being_opened_sends_nothing_on_it(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.may_open.clear()
    reading = new()
    task = asyncio.create_task(read(calls, reading))
    await turns()
    reading.cancel()
    streams.may_open.set()
    assert await task is None
    (stream,) = streams.opened
    assert stream.is_cancelled
    assert not stream.sent
    await calls.aclose()


async def test_a_reading_that_is_dropped_closes_its_stream(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), chunk("b"))
    reading = new()
    await read(calls, reading)
    gc.disable()  # it must not take the collector of cycles
    try:
        del reading
        assert streams.is_any_open, "not from within a collector, which may run anywhere"
        await turns(1)
        assert not streams.is_any_open
    finally:
        gc.enable()
    await calls.aclose()


def test_a_reading_that_outlives_its_loop_is_dropped_in_peace(streams: Streams) -> None:
    async def begin() -> Read:
        calls = await Calls(members=1).ready()
        streams.script("m1", chunk("a"))
        reading = new()
        await read(calls, reading)
        await calls.aclose()
        return reading

    reading = asyncio.run(begin())
    del reading  # warnings are errors


async def test_a_client_that_closes_ends_the_step(streams: Streams) -> None:
    calls = await Calls(members=1).ready()
    streams.script("m1", chunk("a"))
    reading = new()
    await read(calls, reading)
    await calls.aclose()
    with pytest.raises(ClientClosedError):
        await read(calls, reading)
    assert not tasks()


async def test_a_chunk_of_another_cluster_is_not_taken(streams: Streams) -> None:
    calls = await Calls(members=2).ready()
    calls.identity.check(CLUSTER, "m1")
    streams.script("m1", chunk("foreign", cluster_id=CLUSTER + 1))
    streams.script("m2", chunk("a", cluster_id=CLUSTER))
    started = calls.loop.time()
    assert await read(calls, new()) == ["a"]
    assert calls.loop.time() - started < 1, "the foreign stream was not waited for"
    assert streams.opened[0].is_cancelled
    assert "cluster" in str(calls.balancer.statistics()[0].last_error)
    await calls.aclose()


async def test_a_malformed_chunk_is_an_error_and_closes_the_stream(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", b"\x0a\xff")
    with pytest.raises(MalformedReplyError):
        await read(calls, new())
    assert not streams.is_any_open
    await calls.aclose()


async def test_a_request_that_is_too_large_opens_nothing(streams: Streams) -> None:
    calls = await Calls(max_send_bytes=100).ready()
    with pytest.raises(RequestTooLargeError):
        await read(calls, new(), "k" * 200)
    assert not streams.opened
    await calls.aclose()


async def test_attempts_are_bounded(streams: Streams) -> None:
    calls = await Calls(policy=RetryPolicy(max_attempts=3, jitter=0.0)).ready()
    for name in ("m1", "m2", "m3"):
        streams.script(name, unknown())
    with pytest.raises(ConnectionError):
        await read(calls, new())
    assert len(streams.opened) == 3
    await calls.aclose()


async def test_an_answer_that_comes_with_the_deadline_counts(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", Hang())
    at = calls.loop.time() + 1.0
    reading = asyncio.ensure_future(read(calls, new(), timeout=1.0))
    await turns()
    denied = answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")
    calls.loop.call_at(at, lambda: streams.opened[0].give(denied))
    with pytest.raises(PermissionDeniedError):
        await reading
    await calls.aclose()


# Without resuming.


async def test_what_cannot_be_resumed_is_opened_elsewhere_until_its_first_reply_and_never_after(
    streams: Streams,
) -> None:
    calls = await Calls().ready()
    streams.script("m1", unknown())
    streams.script("m2", chunk("a"), unknown())
    reading = new(resumes=False)
    assert reading.may_open
    assert await read(calls, reading) == ["a"]
    assert (reading.endpoint, reading.may_open) == ("m2:2379", False)
    with pytest.raises(ConnectionLostError) as caught:
        await read(calls, reading, retry="always")
    assert [attempt.endpoint for attempt in caught.value.attempts] == ["m2:2379"]
    with pytest.raises(ConnectionLostError, match="cannot be resumed"):
        await read(calls, reading)
    assert streams.where == ["m1", "m2"]
    await calls.aclose()


async def test_what_cannot_be_resumed_ends_by_the_error_of_its_stream_at_once(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), leader_changed())
    reading = new(resumes=False)
    assert await read(calls, reading) == ["a"]
    began = calls.loop.time()
    with pytest.raises(LeaderChangedError):
        await read(calls, reading)
    assert calls.loop.time() == began
    await calls.aclose()


async def test_what_cannot_be_resumed_and_came_from_a_wrong_cluster_is_opened_elsewhere(streams: Streams) -> None:
    calls = await Calls().ready()
    await calls.read()
    wrong, right = chunk("x", cluster_id=7), chunk("a", cluster_id=CLUSTER)
    for name, first in (("m1", right), ("m2", wrong), ("m3", right)):
        streams.script(name, first)
    reading = new(resumes=False)
    assert await read(calls, reading) == ["a"]
    assert streams.where == ["m2", "m1"]
    assert reading.endpoint == "m1:2379"
    await calls.aclose()


async def test_what_cannot_be_resumed_stays_on_a_connection_that_is_to_be_left(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m1", chunk("a"), Hang())
    reading = new(resumes=False)
    await read(calls, reading)
    calls["m1"].connection.go_away()
    await turns()
    streams.opened[0].give(chunk("b"))
    assert await read(calls, reading) == ["b"]
    assert streams.where == ["m1"]
    await calls.aclose()


# At one endpoint.


async def test_a_reading_of_one_endpoint_is_opened_there_every_time(streams: Streams) -> None:
    calls = await Calls().ready()
    streams.script("m3", chunk("a"), unknown())
    streams.script("m3", leader_changed())
    streams.script("m3", chunk("b"))
    reading = new()
    request = pb.RangeRequest(key=b"k")
    for _ in range(2):
        await calls.invoker.read(reading, request, endpoint="m3")
    assert streams.where == ["m3", "m3", "m3"]
    with pytest.raises(UnknownEndpointError):
        await calls.invoker.read(new(), request, endpoint="m4")
    await calls.aclose()
