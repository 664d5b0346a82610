"""admin/snapshot.py: chunks of one member, verified at the end, and never continued on another."""

import asyncio
import gc
import random

import pytest

from etcd_aio import codec, pb
from etcd_aio.admin.snapshot import TRAILER_SIZE, Snapshot, TrailingHash
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    ConnectionLostError,
    EtcdTimeoutError,
    MalformedReplyError,
    NotSupportedByServerError,
    SnapshotChecksumError,
    StatusCode,
    UnknownEndpointError,
)
from tests.support.calls import Calls, answered, leader_changed, unknown
from tests.support.snapshots import messages, sends, trailer
from tests.support.virtual_time import tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


DATABASE = random.Random(5).randbytes(2500)
WHOLE = messages(DATABASE)


def new(
    calls: Calls, endpoint: str | None = None, timeout: Timeout = UNSET, retry: RetryMode | None = None
) -> Snapshot:
    return Snapshot(calls.invoker, endpoint, timeout, retry)


async def ready(**scripts: object) -> Calls:
    """Fake members, of whose streams the scripts decide."""
    calls = await Calls().ready()
    for name, script in scripts.items():
        calls[name].on_stream = script  # type: ignore[assignment]
    return calls


def opened(calls: Calls) -> list[str]:
    return [stream.member.authority[:2] for stream in calls.engine.streams]


async def test_a_snapshot_yields_all_chunks_and_the_hash_at_the_end() -> None:
    calls = await ready(m1=sends(*WHOLE))
    snapshot = new(calls)
    assert (snapshot.endpoint, snapshot.size, snapshot.version, snapshot.sha256) == ("", 0, "", "")
    assert not calls.engine.streams, "nothing is asked for before the first chunk is wanted"
    chunks = [chunk async for chunk in snapshot]
    assert [len(chunk) for chunk in chunks] == [1000, 1000, 500, TRAILER_SIZE]
    assert b"".join(chunks) == DATABASE + trailer(DATABASE)
    assert snapshot.size == snapshot.received == 2532
    assert (snapshot.endpoint, snapshot.version) == ("m1:2379", "3.7.0")
    assert snapshot.sha256 == trailer(DATABASE).hex()
    assert repr(snapshot) == "<Snapshot 2532 of 2532 bytes from m1:2379>"
    with pytest.raises(StopAsyncIteration):
        await anext(snapshot)
    assert ("hasleader", "true") not in calls.engine.streams[0].metadata
    assert timers() == 0
    await calls.aclose()
    assert not tasks()


@pytest.mark.parametrize(
    "replies",
    [
        WHOLE[:-1],  # without the hash
        WHOLE[:1],
        (),
        (*WHOLE[:1], *WHOLE[2:]),  # a chunk is missing
        messages(DATABASE, end=trailer(DATABASE[:-1])),
        messages(DATABASE, end=b""),
        messages(DATABASE[:-1] + b"\0", end=trailer(DATABASE)),
        (*WHOLE, WHOLE[-1]),
    ],
    ids=["no hash", "cut short", "nothing", "a gap", "another hash", "an empty hash", "a changed byte", "two hashes"],
)
async def test_an_incomplete_or_damaged_snapshot_is_an_error(replies: tuple[bytes, ...]) -> None:
    calls = await ready(m1=sends(*replies))
    snapshot = new(calls)
    for _ in range(2):  # the error stays
        with pytest.raises(SnapshotChecksumError):
            async for _chunk in snapshot:
                pass
    assert snapshot.sha256 == ""
    assert opened(calls) == ["m1"]
    await calls.aclose()


async def test_a_message_without_the_version_does_not_forget_it() -> None:
    bare = codec.encode(pb.SnapshotResponse(blob=trailer(DATABASE)))
    snapshot = new(await ready(m1=sends(*WHOLE[:-1], bare)))
    async for _ in snapshot:
        pass
    assert snapshot.version == "3.7.0"


async def test_before_the_first_chunk_another_member_may_serve_the_snapshot() -> None:
    calls = await ready(m1=sends(then=unknown()), m2=sends(then=leader_changed()), m3=sends(*WHOLE))
    snapshot = new(calls)
    assert b"".join([chunk async for chunk in snapshot])[:-TRAILER_SIZE] == DATABASE
    assert opened(calls) == ["m1", "m2", "m3"]
    assert snapshot.endpoint == "m3:2379"
    await calls.aclose()


async def test_with_retry_never_the_first_failure_is_raised() -> None:
    calls = await ready(m1=sends(then=unknown()))
    with pytest.raises(ConnectionLostError):
        await anext(new(calls, retry="never"))
    assert opened(calls) == ["m1"]
    await calls.aclose()


async def test_after_the_first_chunk_no_other_member_is_asked() -> None:
    calls = await ready(m1=sends(WHOLE[0], then=unknown()))
    snapshot = new(calls, retry="always")
    assert await anext(snapshot) == DATABASE[:1000]
    with pytest.raises(ConnectionLostError) as caught:
        await anext(snapshot)
    assert [attempt.endpoint for attempt in caught.value.attempts] == ["m1:2379"]
    assert not caught.value.maybe_applied
    for _ in range(2):
        with pytest.raises(ConnectionLostError, match="cannot be resumed"):
            await anext(snapshot)
    assert opened(calls) == ["m1"]
    await calls.aclose()


async def test_a_draining_connection_carries_the_snapshot_to_its_end() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls)
    await anext(snapshot)
    calls["m1"].connection.go_away()
    await turns()
    for message in WHOLE[1:]:
        calls["m1"].stream.say(message)
    calls["m1"].stream.end()
    assert len([chunk async for chunk in snapshot]) == 3
    assert opened(calls) == ["m1"]
    await calls.aclose()


async def test_each_chunk_has_the_whole_timeout_and_a_slow_reader_has_all_the_time() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls, timeout=2.0)
    await anext(snapshot)
    await asyncio.sleep(1000)
    calls["m1"].stream.say(WHOLE[1])
    await anext(snapshot)
    started = calls.loop.time()
    with pytest.raises(EtcdTimeoutError):
        await anext(snapshot)
    assert calls.loop.time() - started == pytest.approx(2.0)
    assert calls["m1"].stream.is_cancelled
    await calls.aclose()


async def test_the_snapshot_comes_from_the_given_endpoint() -> None:
    calls = await ready(m1=sends(*WHOLE), m2=sends(then=unknown()), m3=sends(*WHOLE))
    with pytest.raises(ConnectionLostError):
        await anext(new(calls, "m2", retry="never"))
    with pytest.raises(ConnectionLostError) as caught:
        await anext(new(calls, "m2", timeout=1.0))
    assert len(caught.value.attempts) > 2, "until the first chunk it is asked again"
    assert set(opened(calls)) == {"m2"}
    snapshot = new(calls, "m3")
    assert len([chunk async for chunk in snapshot]) == 4
    assert snapshot.endpoint == "m3:2379"
    with pytest.raises(UnknownEndpointError):
        await anext(new(calls, "m4"))
    await calls.aclose()


async def test_the_error_of_the_member_is_raised() -> None:
    missing = answered(StatusCode.UNIMPLEMENTED, "unknown method Snapshot")
    calls = await ready(m1=sends(then=missing), m2=sends(then=missing), m3=sends(then=missing))
    with pytest.raises(NotSupportedByServerError):
        await anext(new(calls))
    await calls.aclose()


async def test_a_malformed_chunk_ends_the_snapshot() -> None:
    calls = await ready(m1=sends(WHOLE[0], b"\xff"))
    snapshot = new(calls)
    await anext(snapshot)
    with pytest.raises(MalformedReplyError):
        await anext(snapshot)
    with pytest.raises(ConnectionLostError):
        await anext(snapshot)
    await calls.aclose()


async def test_closing_a_snapshot_early_ends_its_stream() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls)
    await anext(snapshot)
    waiting = asyncio.create_task(anext(snapshot))
    await turns()
    with pytest.raises(ClientUsageError, match="two tasks"):
        await anext(snapshot)
    for _ in range(2):
        await snapshot.aclose()
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(outcome, StopAsyncIteration)
    with pytest.raises(StopAsyncIteration):
        await anext(snapshot)
    assert calls["m1"].stream.is_cancelled
    assert snapshot.sha256 == ""
    await calls.aclose()


async def test_a_cancelled_step_ends_the_snapshot() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls)
    await anext(snapshot)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await anext(snapshot)
    assert calls["m1"].stream.is_cancelled
    with pytest.raises(ConnectionLostError, match="cannot be resumed"):
        await anext(snapshot)
    assert opened(calls) == ["m1"]
    await calls.aclose()


async def test_a_snapshot_that_is_garbage_collected_ends_its_stream() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls)
    await anext(snapshot)
    del snapshot
    gc.collect()
    await turns()
    assert calls["m1"].stream.is_cancelled
    await calls.aclose()


async def test_closing_the_client_ends_the_snapshot() -> None:
    calls = await ready(m1=sends(WHOLE[0], hangs=True))
    snapshot = new(calls)
    await anext(snapshot)
    waiting = asyncio.create_task(anext(snapshot))
    await turns()
    await calls.aclose()
    with pytest.raises(ClientClosedError):
        await waiting
    with pytest.raises(ClientClosedError):
        await anext(snapshot)


def test_the_hash_does_not_depend_on_the_pieces() -> None:
    random_ = random.Random(7)
    whole = DATABASE + trailer(DATABASE)
    for _ in range(200):
        check, at = TrailingHash(), 0
        while at < len(whole):
            size = random_.choice((1, 5, 31, 32, 33, 64, 500))
            check.feed(whole[at : at + size])
            at += size
        assert check.is_sound
        assert check.hexdigest == trailer(DATABASE).hex()


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100])
def test_bytes_that_do_not_end_with_their_hash_are_not_sound(size: int) -> None:
    check = TrailingHash()
    check.feed(DATABASE[:size])
    assert not check.is_sound


def test_the_hash_of_nothing_is_sound() -> None:
    check = TrailingHash()
    check.feed(trailer(b""))
    assert check.is_sound
