"""What every engine makes of time: in virtual time, with a peer that says at which turn of the loop bytes come."""

import asyncio
from itertools import pairwise

import hpack
import pytest
from h2.errors import ErrorCodes

from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import frames
from etcd_aio.transport import EngineName
from etcd_aio.transport.ping_pace import PingPace
from tests.support.http2 import data, frame, goaway, headers, setting, u32
from tests.support.scripted import framed
from tests.support.transport import failure_of, soon, target
from tests.support.virtual_time import BACKEND, VirtualTimeLoop, turns
from tests.support.wired import Wired

pytestmark = pytest.mark.anyio

HEAD = b"\x88\x5f\x10application/grpc"  # ":status: 200", and "content-type" by its index in the static table
TAIL = b"\x00\x0bgrpc-status\x010"
WHILE = 1200.0  # virtual seconds


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


def stall(seconds: float) -> None:
    """The loop is held up."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._jumping.now += seconds


# --- a loop that was held up ---


async def test_an_answer_that_came_while_the_loop_was_held_up_counts(name: EngineName) -> None:
    wired = Wired(name, silence_time=100.0)
    call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(1.0)))
    await turns()
    stall(1.5)
    body = framed(b"x" * 50_000)
    pieces = [data(1, body[start : start + 5_000]) for start in range(0, len(body), 5_000)]
    wired.receive_in_turns(headers(1, HEAD), *pieces, headers(1, TAIL, end=True))
    assert await call == b"x" * 50_000
    await wired.connection.aclose()


async def test_a_deadline_that_passed_while_the_loop_was_held_up_is_put_off_for_a_moment_only(name: EngineName) -> None:
    wired = Wired(name, silence_time=100.0)
    call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(1.0)))
    await turns()
    stall(60.0)
    resumed = asyncio.get_running_loop().time()
    assert (await failure_of(call)).reason is LocalReason.DEADLINE
    assert asyncio.get_running_loop().time() - resumed <= 0.2
    await wired.connection.aclose()


# --- a full socket ---


async def test_a_socket_that_takes_no_bytes_gets_none_and_what_waits_is_unsent(name: EngineName) -> None:
    wired = Wired(name, silence_time=100.0)
    wired.take_bytes(takes=False)
    call = asyncio.ensure_future(wired.connection.unary("/x/Put", b"one", (), soon(1.0)))
    assert (await failure_of(call)).delivery is Delivery.UNSENT
    assert not wired.sent()
    wired.take_bytes(takes=True)
    call = asyncio.ensure_future(wired.connection.unary("/x/Put", b"two", (), soon(1.0)))
    await turns(5)
    assert [one.kind for one in wired.sent() if one.kind == frames.HEADERS] == [frames.HEADERS]
    assert (await failure_of(call)).delivery is Delivery.UNKNOWN
    await wired.connection.aclose()


# --- uploads ---


def pings(wired: Wired) -> int:
    return sum(one.kind == frames.PING and not one.flags & frames.ACK for one in wired.sent())


async def test_a_peer_that_takes_long_to_get_a_large_request_is_neither_pinged_nor_dead(name: EngineName) -> None:
    wired = Wired(name, setting(frames.Setting.INITIAL_WINDOW_SIZE, 2**20))
    call = asyncio.ensure_future(wired.connection.unary("/x/Put", bytes(60_000), (), soon(100.0)))
    await asyncio.sleep(3.5)
    assert (pings(wired), wired.owner.lost) == (0, [])
    wired.receive(frame(frames.WINDOW_UPDATE, u32(30_000)))
    await asyncio.sleep(3.5)
    assert (pings(wired), wired.owner.lost) == (0, [])
    wired.receive(headers(1, HEAD) + data(1, framed(b"ok")) + headers(1, TAIL, end=True))
    assert await call == b"ok"
    await wired.connection.aclose()


async def test_a_peer_that_never_gets_a_large_request_is_dead_all_the_same(name: EngineName) -> None:
    wired = Wired(name, setting(frames.Setting.INITIAL_WINDOW_SIZE, 2**20))
    call = asyncio.ensure_future(wired.connection.unary("/x/Put", bytes(60_000), (), soon(100.0)))
    assert (await failure_of(call)).delivery is Delivery.UNKNOWN
    assert len(wired.owner.lost) == 1


async def test_a_fast_link_is_judged_fast(name: EngineName) -> None:
    """The answer to one large request shows that the next cannot take long."""
    wired = Wired(name, setting(frames.Setting.INITIAL_WINDOW_SIZE, 2**20))
    first = asyncio.ensure_future(wired.connection.unary("/x/Put", bytes(60_000), (), soon(100.0)))
    await asyncio.sleep(0.01)
    wired.receive(headers(1, HEAD) + data(1, framed(b"ok")) + headers(1, TAIL, end=True))
    wired.receive(frame(frames.WINDOW_UPDATE, u32(60_005)))
    assert await first == b"ok"
    began = asyncio.get_running_loop().time()
    second = asyncio.ensure_future(wired.connection.unary("/x/Put", bytes(60_000), (), soon(100.0)))
    assert (await failure_of(second)).code is StatusCode.UNAVAILABLE
    assert asyncio.get_running_loop().time() - began < 3.0
    assert len(wired.owner.lost) == 1


# --- answers that take long ---


async def test_an_answer_that_has_begun_may_take_longer_than_one_that_has_not(name: EngineName) -> None:
    wired = Wired(name, silence_time=1e6)
    now = asyncio.get_running_loop().time
    began = now()
    calls = [
        asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(1.0), whole_by=soon(whole)))
        for whole in (5.0, 5.0, 2.0)
    ]
    await turns()
    wired.receive(headers(3, HEAD) + headers(5, HEAD))
    assert (await failure_of(calls[0])).reason is LocalReason.DEADLINE
    assert now() - began == pytest.approx(1.0, abs=0.01)
    assert (await failure_of(calls[2])).reason is LocalReason.DEADLINE
    assert now() - began == pytest.approx(2.0, abs=0.01)
    await asyncio.sleep(2.5)
    wired.receive(data(3, framed(b"at last")) + headers(3, TAIL, end=True))
    assert await calls[1] == b"at last"
    await wired.connection.aclose()


async def test_an_answer_that_has_begun_may_take_for_ever_if_its_call_may(name: EngineName) -> None:
    wired = Wired(name, silence_time=1e6)
    call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(1.0), whole_by=float("inf")))
    await turns()
    wired.receive(headers(1, HEAD))
    await asyncio.sleep(1000.0)
    wired.receive(data(1, framed(b"at last")) + headers(1, TAIL, end=True))
    assert await call == b"at last"
    await wired.connection.aclose()


@pytest.mark.parametrize(("whole", "told"), [(None, 1.0), (5.0, 5.0)])
async def test_the_server_is_told_how_long_the_whole_answer_may_take(
    name: EngineName, whole: float | None, told: float
) -> None:
    wired = Wired(name)
    whole_by = None if whole is None else soon(whole)
    call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(1.0), whole_by=whole_by))
    await turns()
    (block,) = [one.payload for one in wired.sent() if one.kind == frames.HEADERS]
    timeout = dict(hpack.Decoder().decode(block, raw=True))[b"grpc-timeout"]
    seconds = int(timeout[:-1]) * {b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}[timeout[-1:]]
    assert seconds == pytest.approx(told, abs=0.2)
    call.cancel()
    await wired.connection.aclose()


# --- idle connections ---


async def test_an_idle_connection_is_neither_pinged_nor_judged(name: EngineName) -> None:
    wired = Wired(name)
    for stream_id in (1, 3):
        call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon()))
        await turns(5)
        wired.receive(headers(stream_id, HEAD) + data(stream_id, framed(b"ok")) + headers(stream_id, TAIL, end=True))
        assert await call == b"ok"
        await asyncio.sleep(WHILE)
        assert (pings(wired), wired.owner.lost) == (0, [])
    await wired.connection.aclose()


# --- pings that are too many ---


async def pings_of_a_while(wired: Wired) -> list[float]:
    """When an idle stream was pinged; each ping is answered at once."""
    loop = asyncio.get_running_loop()
    stream = await wired.connection.open_stream("/x/Watch", (), soon())
    began, found = loop.time(), list[float]()
    while loop.time() < began + WHILE:
        await asyncio.sleep(0.5)
        for one in wired.sent():
            if one.kind == frames.PING:
                found.append(loop.time() - began)
                wired.receive(frame(frames.PING, one.payload, flags=frames.ACK))
    stream.cancel()
    return found


async def test_calls_without_an_answer_earn_no_early_ping(name: EngineName) -> None:
    """A server forgets the pings that it counts when it answers a call, and not before."""
    wired = Wired(name)
    loop = asyncio.get_running_loop()
    pinged: list[float] = []
    for _ in range(20):
        call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(0.9)))
        while not call.done():
            await asyncio.sleep(0.05)
            if pings(wired):
                pinged.append(loop.time())
                wired.receive(frame(frames.PING, b"liveness", flags=frames.ACK))
        assert (await failure_of(call)).reason is LocalReason.DEADLINE
    assert len(pinged) > 2
    assert all(later - earlier > 4.9 for earlier, later in pairwise(pinged))
    await wired.connection.aclose()


async def test_a_server_that_complains_of_pings_gets_half_as_many(name: EngineName) -> None:
    pace = PingPace()
    intervals = []
    for _ in range(3):
        wired = Wired(name, pace=pace)
        pings = await pings_of_a_while(wired)
        intervals.append(WHILE / len(pings))
        wired.receive(goaway(2**31 - 1, ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings"))
        await wired.connection.aclose()
    assert intervals == pytest.approx([10, 20, 40], rel=0.1)


async def test_any_other_goaway_leaves_the_pings_as_they_are(name: EngineName) -> None:
    pace = PingPace()
    wired = Wired(name, pace=pace)
    wired.receive(goaway(2**31 - 1, ErrorCodes.NO_ERROR, b"max_age"))
    await wired.connection.aclose()
    assert pace.factor(target(2379)) == 1


async def test_an_engine_remembers_over_connections(name: EngineName) -> None:
    pace = PingPace()
    wired = Wired(name, pace=pace)
    call = asyncio.ensure_future(wired.connection.unary("/x/Get", b"", (), soon(100.0)))
    await turns()
    wired.receive(goaway(1, ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings"))
    wired.receive(goaway(1, ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings"))
    assert pace.factor(target(2379)) == 2, "once for a connection"
    assert pace.factor(target(2380)) == 1
    call.cancel()
    await wired.connection.aclose()


# --- heavy calls ---


@pytest.mark.parametrize(("is_heavy", "seconds"), [(False, 2.0), (True, 4.5)])
async def test_a_silent_peer_is_dead_later_while_it_may_hash_a_password(
    name: EngineName, is_heavy: bool, seconds: float
) -> None:
    wired = Wired(name)
    call = asyncio.ensure_future(wired.connection.unary("/x/Login", b"", (), soon(100.0), is_heavy=is_heavy))
    await asyncio.sleep(seconds - 0.1)
    assert wired.owner.lost == []
    await asyncio.sleep(0.3)
    assert len(wired.owner.lost) == 1
    with pytest.raises(AttemptFailure):
        await call
