"""What every engine does with a peer that misbehaves: the right failure, by the deadline, and no needless damage."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, PushPromiseFrame, WindowUpdateFrame

from etcd_aio.base.aio import start_task
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.transport import Connection, EngineName
from etcd_aio.transport.grpclib import engine as grpclib_engine
from etcd_aio.transport.interface import BEGINNING
from etcd_aio.transport.native.calls import UnaryCall
from tests.support.scripted import GRPC, OK, Request, Wire, framed, scripted
from tests.support.transport import Owner, connected, engine, failure_of, soon, target
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio

PRIORITY, PING, WINDOW_UPDATE, ALTSVC = 2, 6, 8, 10
U, A, N, S = Delivery.UNKNOWN, Delivery.ANSWERED, Delivery.UNPROCESSED, Delivery.UNSENT


async def echo(connection: Connection, payload: bytes = b"hello", seconds: float = PATIENCE) -> bytes:
    return await connection.unary("/x/Echo", payload, (), soon(seconds))


# --- a bad response costs its own call only ---


def reset_at(stage: int, code: ErrorCodes) -> Callable[[Wire, int], None]:
    def respond(wire: Wire, stream_id: int) -> None:
        if stage > 0:
            wire.headers(stream_id, GRPC)
        if stage > 1:
            wire.data(stream_id, framed(b"partial")[:-2])
        if stage > 2:
            wire.data(stream_id, framed(b"partial")[-2:])
        wire.reset(stream_id, code)

    return respond


def respond(*headers: tuple[str, str], body: bytes = b"", trailers: Any = None) -> Callable[[Wire, int], None]:
    def write(wire: Wire, stream_id: int) -> None:
        wire.headers(stream_id, headers, end=trailers is None and not body)
        if body:
            wire.data(stream_id, body, end=trailers is None)
        if trailers is not None:
            wire.headers(stream_id, tuple(trailers), end=True)

    return write


STATUS = (":status", "200"), ("content-type", "application/grpc")
C = StatusCode
BAD_RESPONSES: dict[str, tuple[Callable[[Wire, int], None], StatusCode, Delivery]] = {
    "refused": (reset_at(0, ErrorCodes.REFUSED_STREAM), C.UNAVAILABLE, N),
    "reset before headers": (reset_at(0, ErrorCodes.INTERNAL_ERROR), C.UNAVAILABLE, U),
    "cancelled by the peer": (reset_at(0, ErrorCodes.CANCEL), C.UNAVAILABLE, U),
    "told to be calm": (reset_at(0, ErrorCodes.ENHANCE_YOUR_CALM), C.UNAVAILABLE, U),
    "reset without an error": (reset_at(0, ErrorCodes.NO_ERROR), C.UNAVAILABLE, U),
    "reset with an unknown code": (reset_at(0, ErrorCodes(13)), C.UNAVAILABLE, U),
    "refused after headers": (reset_at(1, ErrorCodes.REFUSED_STREAM), C.UNAVAILABLE, U),
    "refused inside the message": (reset_at(2, ErrorCodes.REFUSED_STREAM), C.UNAVAILABLE, U),
    "refused after the message": (reset_at(3, ErrorCodes.REFUSED_STREAM), C.UNAVAILABLE, U),
    "reset after headers": (reset_at(1, ErrorCodes.CANCEL), C.UNAVAILABLE, U),
    "reset inside the message": (reset_at(2, ErrorCodes.CANCEL), C.UNAVAILABLE, U),
    "reset after the message": (reset_at(3, ErrorCodes.NO_ERROR), C.UNAVAILABLE, U),
    "no trailers": (respond(*STATUS, body=framed(b"x")), C.UNKNOWN, U),
    "nothing but headers": (respond(*STATUS), C.UNKNOWN, U),
    "trailers without a status": (respond(*STATUS, body=framed(b"x"), trailers=[("a", "b")]), C.UNKNOWN, U),
    "a status that is no number": (respond(*STATUS, body=framed(b"x"), trailers=[("grpc-status", "OK")]), C.UNKNOWN, U),
    "an undefined status": (respond(*STATUS, trailers=[("grpc-status", "99")]), C.UNKNOWN, A),
    "trailers only": (respond(*STATUS, ("grpc-status", "14"), ("grpc-message", "no")), C.UNAVAILABLE, A),
    "an error after a message": (respond(*STATUS, body=framed(b"x"), trailers=[("grpc-status", "5")]), C.NOT_FOUND, A),
    "an error inside a message": (respond(*STATUS, body=b"\0\0", trailers=[("grpc-status", "8")]), C(8), A),
    "502 from a proxy": (
        respond((":status", "502"), ("content-type", "text/html"), body=b"<html>bad gateway</html>"),
        C.UNAVAILABLE,
        U,
    ),
    "404 from a web server": (respond((":status", "404"), ("content-type", "text/html")), C.UNIMPLEMENTED, U),
    "200 from a web server": (respond((":status", "200"), ("content-type", "text/html"), body=b"hi"), C.UNKNOWN, U),
    "no HTTP status": (respond(("content-type", "application/grpc"), trailers=OK), C.UNKNOWN, U),
    "OK without a message": (respond(*STATUS, trailers=OK), C.INTERNAL, U),
    "OK in one block": (respond(*STATUS, *OK), C.INTERNAL, U),
    "two messages": (respond(*STATUS, body=framed(b"x") * 2, trailers=OK), C.INTERNAL, U),
    "a compressed message": (respond(*STATUS, body=framed(b"x", compressed=1), trailers=OK), C.INTERNAL, U),
    "a message cut short": (respond(*STATUS, body=framed(b"xyz")[:-1], trailers=OK), C.INTERNAL, U),
    "a message without its body": (respond(*STATUS, body=framed(b"xyz")[:5], trailers=OK), C.INTERNAL, U),
    "a prefix cut short": (respond(*STATUS, body=b"\0\0\0", trailers=OK), C.INTERNAL, U),
    "a message cut short, no trailers": (respond(*STATUS, body=framed(b"xyz")[:-1]), C.INTERNAL, U),
}


@pytest.mark.parametrize("case", BAD_RESPONSES)
async def test_a_bad_response_fails_its_call_and_leaves_the_connection_usable(name: EngineName, case: str) -> None:
    write, code, delivery = BAD_RESPONSES[case]

    async def script(wire: Wire) -> None:
        write(wire, await wire.request())
        wire.answer(await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        failure = await failure_of(echo(connection))
        assert (failure.code, failure.delivery) == (code, delivery)
        assert failure.reason is (LocalReason.MALFORMED if case == "a compressed message" else None)
        assert await echo(connection) == b"ok"
        assert (owner.lost, owner.draining) == ([], [])


@pytest.mark.parametrize("case", BAD_RESPONSES)
async def test_a_stream_ends_with_the_same_failures(name: EngineName, case: str) -> None:
    write, code, delivery = BAD_RESPONSES[case]
    ends_well = {"OK without a message", "OK in one block", "two messages"}  # for a stream these are good responses

    async def script(wire: Wire) -> None:
        write(wire, await wire.opened())
        wire.answer(await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        if case in ends_well:
            while await stream.receive() is not None:
                pass
        else:

            async def read_all() -> None:
                while await stream.receive() is not None:
                    pass

            failure = await failure_of(read_all())
            assert (failure.code, failure.delivery) == (code, delivery)
            assert (await failure_of(stream.receive())).code is code, "and says so again"
        assert await echo(connection) == b"ok"


async def test_a_reply_above_the_limit_is_not_taken_and_no_other_attempt_would_be(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        first = await wire.request()
        wire.headers(first, GRPC)
        wire.data(first, b"\0\xff\xff\xff\xff" + b"x" * 1000)
        await wire.until(lambda: wire.requests[first].reset is not None)
        wire.answer(await wire.request(), b"x" * 1000)
        wire.answer(await wire.request(), b"x" * 1001)

    async with scripted(script) as port, connected(name, port, max_receive_bytes=1000) as (connection, _):
        failure = await failure_of(echo(connection))
        assert (failure.code, failure.delivery, failure.reason) == (
            C.RESOURCE_EXHAUSTED,
            U,
            LocalReason.REPLY_TOO_LARGE,
        )
        assert "max_receive_bytes" in failure.message
        assert await echo(connection) == b"x" * 1000
        assert (await failure_of(echo(connection))).reason is LocalReason.REPLY_TOO_LARGE


async def test_a_streams_message_above_the_limit_shows_its_beginning(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        first = await wire.opened()
        wire.headers(first, GRPC)
        wire.data(first, b"\0\xff\xff\xff\xff" + bytes(range(100)))
        await wire.until(lambda: wire.requests[first].reset is not None)

    async with scripted(script) as port, connected(name, port, max_receive_bytes=1000) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        failure = await failure_of(stream.receive())
        assert (failure.reason, failure.beginning) == (LocalReason.REPLY_TOO_LARGE, bytes(range(BEGINNING)))
        stream.cancel()


async def test_headers_that_are_too_large_cost_their_own_call_only(name: EngineName) -> None:
    if name != "native":
        pytest.skip("h2 ends the connection")

    async def script(wire: Wire) -> None:
        first, second = await wire.request(), await wire.request()
        block = wire.encoder.encode((*GRPC, *((f"x-{number}", "y" * 150) for number in range(200))))
        wire.frame(HeadersFrame(first, block[:16_000]))
        wire.frame(ContinuationFrame(first, block[16_000:]), "END_HEADERS")
        wire.headers(second, (*GRPC, ("x-199", "y" * 150)))
        wire.message(second, b"fine")
        wire.headers(second, OK, end=True)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        first, second = asyncio.ensure_future(echo(connection)), asyncio.ensure_future(echo(connection))
        assert (await failure_of(first)).delivery is U
        assert await second == b"fine"
        assert owner.lost == []


async def test_pushback_is_handed_on(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        trailers = (("grpc-status", "14"), ("grpc-retry-pushback-ms", "250"))
        respond(*STATUS, trailers=trailers)(wire, await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert (await failure_of(echo(connection))).pushback == 0.25


async def test_frames_that_mean_nothing_are_ignored(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, ((":status", "103"), ("link", "x")))
        wire.headers(stream_id, ((":status", "100"),))
        for number in (0, stream_id):
            wire.raw_frame(0xBE, b"whatever", stream_id=number, flags=0xFF)
        wire.raw_frame(PRIORITY, b"\0\0\0\0\x07", stream_id=stream_id)
        wire.raw_frame(ALTSVC, b"\0\x05a.orgh2=:1")
        block = wire.encoder.encode((*GRPC, ("x-unknown", "1"), ("grpc-encoding", "identity")))
        wire.frame(HeadersFrame(stream_id, block[:3]))
        wire.frame(ContinuationFrame(stream_id, block[3:5]))
        wire.frame(ContinuationFrame(stream_id, block[5:]), "END_HEADERS")
        wire.raw_frame(PING, b"12345678")
        wire.frame(DataFrame(stream_id, framed(b"fine"), pad_length=200), "PADDED")
        wire.headers(stream_id, OK, end=True)
        wire.reset(stream_id, ErrorCodes.NO_ERROR)  # after a whole response it says only "send no more"
        wire.raw_frame(WINDOW_UPDATE, b"\0\0\0\x64", stream_id=stream_id)  # for a stream that is closed
        wire.answer(await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        assert await echo(connection) == b"fine"
        assert await echo(connection) == b"ok"
        assert (owner.lost, owner.draining) == ([], [])


async def test_text_that_is_not_ascii_does_not_cost_the_connection(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, (*STATUS, ("grpc-status", "5"), ("grpc-message", "größe %E2%98%83")), end=True)
        wire.answer(await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert (await failure_of(echo(connection))).message == "größe ☃"
        assert await echo(connection) == b"ok"


async def test_an_answer_that_comes_too_late_disturbs_no_other_call(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        late = await wire.request()
        await wire.until(lambda: wire.requests[late].reset is not None)
        wire.headers(late, (*GRPC, ("x-new", "goes into the table")))
        wire.message(late, b"x" * 100_000)
        wire.headers(late, OK, end=True)
        second = await wire.request()
        wire.headers(second, (*GRPC, ("x-new", "goes into the table")))
        wire.message(second, b"in time")
        wire.headers(second, OK, end=True)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert (await failure_of(echo(connection, seconds=0.3))).reason is LocalReason.DEADLINE
        assert await echo(connection) == b"in time"


# --- requests that the peer does not take ---


async def test_a_request_that_the_window_never_lets_out_is_unsent(name: EngineName) -> None:
    async with (
        scripted(Wire.forever, acknowledges=False) as port,
        connected(name, port, silence_time=0.05, silence_timeout=0.1) as (connection, owner),
    ):
        failure = await failure_of(echo(connection, b"x" * 200_000, seconds=0.3))
        assert (failure.code, failure.delivery) == (C.DEADLINE_EXCEEDED, S)
        assert owner.lost == [], "a peer that answers pings is alive"
        failure = await failure_of(echo(connection, b"", seconds=0.05))
        assert failure.reason is LocalReason.DEADLINE, "the connection's window is used up too"


async def test_an_answer_before_the_whole_request_counts(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        wire.headers(stream_id, (*STATUS, ("grpc-status", "8"), ("grpc-message", "too large")), end=True)
        await wire.until(lambda: wire.requests[stream_id].reset is not None)
        stream_id = await wire.opened()
        wire.headers(stream_id, (*STATUS, ("grpc-status", "8"), ("grpc-message", "too large")), end=True)
        wire.reset(stream_id, ErrorCodes.NO_ERROR)  # as RFC 9113, 8.1 has it

    window = {SettingCodes.INITIAL_WINDOW_SIZE: 1000}
    async with (
        scripted(script, acknowledges=False, settings=window) as port,
        connected(name, port) as (connection, _),
    ):
        for _ in range(2):
            failure = await failure_of(echo(connection, b"x" * 50_000))
            assert (failure.code, failure.message, failure.delivery) == (C.RESOURCE_EXHAUSTED, "too large", A)


async def test_a_window_that_opens_bit_by_bit_lets_the_request_out(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        request = wire.requests[stream_id]
        while not request.is_ended:
            if len(request.body) == 3000:  # the window is used up; this makes it negative
                wire.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 500})
                wire.flush()
                await wire.read()
            wire.http2.increment_flow_control_window(500, stream_id)
            wire.flush()
            await wire.read()
        assert len(request.body) == 10_005
        wire.answer(stream_id)

    window = {SettingCodes.INITIAL_WINDOW_SIZE: 1000}
    async with (
        scripted(script, acknowledges=False, settings=window) as port,
        connected(name, port) as (connection, _),
    ):
        assert await echo(connection, b"x" * 10_000) == b"ok"


@pytest.mark.parametrize("way", ["deadline", "given up"])
async def test_a_window_that_opens_just_after_a_call_has_failed_lets_nothing_out(
    name: EngineName, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller was told UNSENT; its task, which resets the stream, runs behind the peer's next bytes."""
    seen: list[Request] = []
    blocked, over = asyncio.Event(), asyncio.Event()

    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        wire.http2.increment_flow_control_window(10_000, stream_id)
        wire.http2.data_to_send()  # which is never sent: the client shall read the same at the worst moment
        await wire.until(lambda: len(wire.requests[stream_id].body) >= 500)
        blocked.set()
        await wire.until(lambda: wire.requests[stream_id].reset is not None)
        seen.append(wire.requests[stream_id])
        over.set()

    async with (
        scripted(script, settings={SettingCodes.INITIAL_WINDOW_SIZE: 500}, acknowledges=False) as port,
        connected(name, port) as (connection, _),
    ):
        protocol: Any = connection if name == "native" else connection.protocol  # type: ignore[attr-defined]
        kind: Any = UnaryCall if name == "native" else grpclib_engine._GrpclibCall
        fail = kind.fail

        def fail_as_the_window_opens(call: Any, failure: AttemptFailure) -> None:
            frame = WindowUpdateFrame(1, window_increment=10_000).serialize()
            asyncio.get_running_loop().call_soon(protocol.data_received, frame)
            fail(call, failure)

        monkeypatch.setattr(kind, "fail", fail_as_the_window_opens)
        deadline = soon(1.0) if way == "deadline" else soon()
        call = asyncio.ensure_future(connection.unary("/x/Put", b"x" * 995, (), deadline, None, True))
        if way == "given up":
            async with asyncio.timeout(PATIENCE):
                await blocked.wait()
            connection.give_up("others answer")
        assert (await failure_of(call)).delivery is S
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        assert (len(seen[0].body), seen[0].is_ended) == (500, False)


# --- GOAWAY ---


async def test_goaway_below_a_call_leaves_it_unprocessed_and_lets_the_others_finish(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        one, two, three = [await wire.request() for _ in range(3)]
        assert one < two < three
        # All in one piece, as a server that shuts down writes it; the second PING asks whether all was read.
        wire.raw_frame(PING, b"12345678")
        wire.go_away(one, debug=b"max_age")
        wire.raw_frame(PING, b"12345678")
        wire.headers(one, GRPC)
        await wire.until(lambda: wire.answered_pings == 2)
        wire.message(one, b"finished")
        wire.headers(one, OK, end=True)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        calls = [asyncio.ensure_future(echo(connection)) for _ in range(3)]
        assert await calls[0] == b"finished"
        for call in calls[1:]:
            failure = await failure_of(call)
            assert (failure.code, failure.delivery) == (C.UNAVAILABLE, N)
        assert len(owner.draining) == 1
        assert "max_age" in owner.draining[0]
        assert (await failure_of(echo(connection))).delivery is S
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)
        assert "GOAWAY" in str(owner.lost[0]), "closed by itself once the last call had ended"


async def test_goaway_below_a_call_whose_answer_has_begun_leaves_its_outcome_unknown(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        one, two = await wire.request(), await wire.request()
        wire.headers(two, GRPC)
        wire.go_away(one)
        wire.answer(one)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        first, second = asyncio.ensure_future(echo(connection)), asyncio.ensure_future(echo(connection))
        assert (await failure_of(second)).delivery is U, "what is answered was processed"
        assert await first == b"ok"


async def test_a_graceful_goaway_in_two_steps(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        one, two = await wire.request(), await wire.opened()
        wire.go_away(2**31 - 1)
        wire.answer(one, b"first")
        wire.headers(two, GRPC)
        await wire.until(lambda: wire.requests[two].body[5:] == b"asked")
        wire.go_away(two)
        wire.message(two, b"said")
        wire.headers(two, OK, end=True)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        call = asyncio.ensure_future(echo(connection))
        await asyncio.sleep(0)
        stream = await connection.open_stream("/x/Chat", (), soon())
        assert await call == b"first"
        assert owner.lost == []
        assert len(owner.draining) == 1
        await stream.send(b"asked")
        assert await stream.receive() == b"said"
        assert await stream.receive() is None
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)


async def test_a_complaint_about_pings_outlives_its_connection(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.go_away(await wire.request(), ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")

    async with scripted(script) as port:
        where, options = target(port), {"silence_time": 60.0}
        opener: Any = engine(name, **options)
        for factor in (1, 2, 4):
            owner = Owner()
            connection = await opener.connect(where, owner)
            liveness = connection._liveness if name == "native" else connection.protocol.liveness
            assert liveness._ping_interval == 5.0 * factor
            call = asyncio.ensure_future(failure_of(echo(connection)))
            async with asyncio.timeout(PATIENCE):
                await owner.is_draining.wait()
            await connection.aclose()
            await call


async def test_goaway_on_an_idle_connection_ends_it(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        await wire.until(lambda: wire.http2.remote_settings.initial_window_size != 65535)
        wire.answer(await wire.request())
        wire.go_away(0, ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")
        wire.cut()

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        assert await echo(connection) == b"ok"
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)
        assert "ENHANCE_YOUR_CALM" in owner.draining[0]
        assert "too_many_pings" in owner.draining[0]
        assert (await failure_of(echo(connection))).delivery is S


async def test_a_call_that_waits_for_a_free_stream_is_unsent_at_goaway(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.go_away(await wire.request())

    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    async with scripted(script, settings=limit) as port, connected(name, port) as (connection, _):
        first = asyncio.ensure_future(echo(connection, seconds=0.3))
        second = asyncio.ensure_future(echo(connection))
        assert (await failure_of(second)).delivery is S
        assert (await failure_of(first)).reason is LocalReason.DEADLINE


# --- the connection breaks ---


def end(wire: Wire, gently: bool) -> None:
    """End the connection with FIN, or with RST."""
    if not gently:
        linger = struct.pack("ii", 1, 0)
        wire.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    wire.cut()


@pytest.mark.parametrize("gently", [True, False])
async def test_a_connection_lost_after_the_request_leaves_the_outcome_unknown(name: EngineName, gently: bool) -> None:
    was_received = asyncio.Event()

    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, GRPC)
        wire.data(stream_id, framed(b"whole"))
        await wire.request()
        await was_received.wait()  # a reset takes along what was not read yet
        end(wire, gently)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Chat", (), soon())
        await stream.half_close()
        calls = [asyncio.ensure_future(one) for one in (stream.receive(), echo(connection))]
        assert await calls[0] == b"whole"
        was_received.set()
        assert (await failure_of(calls[1])).delivery is U
        failure = await failure_of(stream.receive())
        assert (failure.code, failure.delivery) == (C.UNAVAILABLE, U)
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)
        assert isinstance(owner.lost[0], OSError), "the real cause, never None"
        assert (await failure_of(echo(connection))).delivery is S


async def test_a_connection_lost_before_the_request_was_out_is_unsent(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        await wire.opened()
        wire.cut()

    async with scripted(script, acknowledges=False) as port, connected(name, port) as (connection, _):
        failure = await failure_of(echo(connection, b"x" * 200_000))
        assert (failure.code, failure.delivery) == (C.UNAVAILABLE, S)


async def test_a_response_that_is_whole_counts_even_if_the_connection_breaks_behind_it(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.answer(await wire.request(), b"just in time")
        wire.writer.close()

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        assert await echo(connection) == b"just in time"
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)


async def test_a_stream_that_had_ended_can_be_read_to_its_end_on_a_lost_connection(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        wire.headers(stream_id, GRPC)
        for number in range(50):
            wire.message(stream_id, str(number).encode())
        wire.headers(stream_id, OK, end=True)
        wire.writer.close()

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Count", (), soon())
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)
        if name == "grpclib":  # as if this were the 2**30th byte, at which it wants to tell the peer of its window
            http2 = connection.protocol.connection._connection  # type: ignore[attr-defined]
            http2._inbound_flow_control_window_manager._bytes_processed = 2**30
        assert [await stream.receive() for _ in range(50)] == [str(number).encode() for number in range(50)]
        assert await stream.receive() is None


async def test_goaway_behind_a_whole_response_changes_nothing_about_it(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.answer(await wire.request(), b"answered")
        wire.go_away(0)
        wire.writer.close()

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert await echo(connection) == b"answered"


@pytest.mark.parametrize("gently", [True, False])
async def test_a_call_on_a_connection_whose_end_has_been_read_is_unsent(name: EngineName, gently: bool) -> None:
    async def script(wire: Wire) -> None:
        await wire.opened()
        end(wire, gently)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        await connection.open_stream("/x/Chat", (), soon())
        calls = []
        while not owner.lost:  # one in every turn of the loop
            calls.append(start_task(failure_of(echo(connection)), name="call"))
            await asyncio.sleep(0)
        failures = await asyncio.gather(*calls)
        # Made in the turn in which the end was read, or after it. The grpclib engine sends a turn after it was asked.
        in_vain = failures[-3:] if name == "grpclib" and not gently else failures[-2:]
        assert {failure.delivery for failure in in_vain} == {S}, "what goes into a dead socket is not sent"
        assert all(failure.code is C.UNAVAILABLE for failure in failures)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"\xff" * 100, id="noise"),
        pytest.param(b"\0\0\0\1\4\0\0\0\1", id="an empty header block without a status"),
        pytest.param(b"\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff", id="a header block that HPACK cannot read"),
        pytest.param(b"\0\0\1\0\0\0\0\0\0x", id="DATA on stream 0"),
        pytest.param(b"\0\0\1\0\0\0\0\0\x63x", id="DATA on a stream that was never opened"),
        pytest.param(b"\0\0\4\x08\0\0\0\0\0\0\0\0\0", id="WINDOW_UPDATE of 0"),
        pytest.param(b"\0\0\4\x08\0\0\0\0\0\x7f\xff\xff\xff", id="WINDOW_UPDATE beyond the maximum"),
        pytest.param(b"\0\0\5\4\0\0\0\0\0xxxxx", id="SETTINGS of a wrong length"),
        pytest.param(b"\0\0\3\6\0\0\0\0\0xxx", id="PING of a wrong length"),
        pytest.param(b"\0\0\1\x09\0\0\0\0\1x", id="CONTINUATION out of nowhere"),
        pytest.param(b"\0\0\2\0\x08\0\0\0\1\x09x", id="more padding than frame"),
    ],
)
async def test_a_peer_that_breaks_http2_fails_the_call_at_once_or_by_its_deadline(
    name: EngineName, garbage: bytes
) -> None:
    async def script(wire: Wire) -> None:
        await wire.request()
        wire.raw(garbage)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        failure = await failure_of(echo(connection, seconds=0.5))
        assert failure.delivery is U


async def test_a_push_promise_is_no_way_in(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        block = wire.encoder.encode(((":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")))
        wire.frame(PushPromiseFrame(stream_id, 2, block), "END_HEADERS")
        wire.answer(2, b"pushed")
        wire.answer(stream_id, b"asked for")

    async with scripted(script) as port, connected(name, port) as (connection, _):
        # To refuse the whole connection is allowed as well (RFC 9113, 8.4); to take the pushed answer is not.
        results = await asyncio.gather(echo(connection), return_exceptions=True)
        assert [getattr(one, "delivery", one) for one in results] in ([b"asked for"], [U])


# --- silence ---


async def freeze(wire: Wire) -> None:
    await asyncio.sleep(3600)


async def test_a_peer_that_freezes_is_pinged_and_then_dead(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.answer(await wire.request())
        await freeze(wire)

    times = {"silence_time": 0.3, "silence_timeout": 0.5, "keepalive_time": 60.0, "keepalive_timeout": 60.0}
    async with scripted(script) as port, connected(name, port, **times) as (connection, owner):
        began = asyncio.get_running_loop().time()  # the silence begins with the answer to this request
        assert await echo(connection, b"x" * 50_000) == b"ok"  # which shows that the link is fast
        stream = await connection.open_stream("/x/Chat", (), soon())
        receiving = asyncio.ensure_future(stream.receive())
        calls = [
            asyncio.ensure_future(connection.unary("/x/Echo", payload, (), deadline))
            for payload, deadline in ((b"", soon()), (b"", float("inf")), (b"x" * 2**20, soon()))
        ]
        failures = [await failure_of(one) for one in (*calls, receiving)]
        assert asyncio.get_running_loop().time() - began > 0.79
        assert [failure.delivery for failure in failures] == [U, U, S, U]
        assert all(failure.code is C.UNAVAILABLE for failure in failures)
        assert "silent" in str(owner.lost[0])


async def test_a_silent_peer_with_only_streams_open_is_dead_by_the_keepalive_times(name: EngineName) -> None:
    times = {"silence_time": 0.01, "silence_timeout": 60.0, "keepalive_time": 0.1, "keepalive_timeout": 0.1}
    began = asyncio.get_running_loop().time()  # the silence begins with the last frame of the set-up
    async with scripted(freeze) as port, connected(name, port, **times) as (connection, owner):
        stream = await connection.open_stream("/x/Watch", (), soon())
        failure = await failure_of(stream.receive())
        assert asyncio.get_running_loop().time() - began > 0.19
        assert (failure.code, failure.delivery) == (C.UNAVAILABLE, U)
        assert "silent" in str(owner.lost[0])


async def test_a_quiet_stream_is_no_reason_to_ping_a_peer(name: EngineName) -> None:
    times = {"silence_time": 0.05, "silence_timeout": 0.05, "keepalive_time": 0.05, "keepalive_timeout": 0.05}
    async with scripted(freeze) as port, connected(name, port, **times) as (connection, owner):
        quiet = await connection.open_stream("/x/Watch", (), soon(), is_quiet=True)
        await asyncio.sleep(0.5)
        assert not owner.lost
        counted = await connection.open_stream("/x/Watch", (), soon())
        counted.cancel()
        await asyncio.sleep(0.5)
        assert not owner.lost
        await connection.open_stream("/x/Watch", (), soon())
        await failure_of(quiet.receive())
        assert "silent" in str(owner.lost[0])


async def test_a_slow_peer_that_answers_its_ping_lives(name: EngineName) -> None:
    pings = 0

    async def script(wire: Wire) -> None:
        nonlocal pings
        stream_id = await wire.request()
        await wire.until(lambda: wire.pings > 0)
        with pytest.raises(TimeoutError):  # goes on answering pings, but not the call
            await asyncio.wait_for(wire.forever(), 1.5)
        pings = wire.pings
        wire.answer(stream_id)

    times = {"silence_time": 0.1, "silence_timeout": 1.0}
    async with scripted(script) as port, connected(name, port, **times) as (connection, owner):
        assert await echo(connection) == b"ok"
        assert owner.lost == []
        assert pings == 1, "etcd counts pings closer than 5 s as abuse"


async def test_windows_that_come_back_in_small_pieces_are_no_flood(name: EngineName) -> None:
    """As Go's HTTP server returns them: it takes a megabyte in one frame and gives it back by 16 KiB."""
    size = 2**20

    async def script(wire: Wire) -> None:
        wire.http2.max_inbound_frame_size = size + 5  # h2 would wait for an acknowledgement of its own SETTINGS
        wire.http2.increment_flow_control_window(2**30)
        wire.flush()
        for _ in range(40):
            stream_id = await wire.request()
            for _ in range(size // 2**14):
                wire.raw_frame(8, (2**14).to_bytes(4, "big"))
            wire.answer(stream_id)

    settings = {SettingCodes.MAX_FRAME_SIZE: size + 5, SettingCodes.INITIAL_WINDOW_SIZE: 2**30}
    async with (
        scripted(script, settings=settings, acknowledges=False) as port,
        connected(name, port) as (connection, owner),
    ):
        for _ in range(40):
            assert await connection.unary("/x/Put", b"x" * size, (), soon()) == b"ok"
        assert owner.lost == []


# --- attempts that are made elsewhere ---


async def test_giving_up_ends_what_may_move_and_has_no_answer_yet(name: EngineName) -> None:
    came = asyncio.Event()

    async def script(wire: Wire) -> None:
        first, second, third = await wire.request(), await wire.request(), await wire.request()
        wire.headers(third, STATUS)  # its answer has begun
        came.set()
        await wire.until(lambda: wire.requests[first].reset is not None)
        wire.answer(second)
        wire.data(third, b"\x00\x00\x00\x00\x02ok")
        wire.headers(third, (("grpc-status", "0"),), end=True)
        await wire.forever()

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        movable, fixed, begun = (
            asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon(), None, may_move))
            for may_move in (True, False, True)
        )
        await came.wait()
        await asyncio.sleep(0.2)
        connection.give_up("others answer")
        failure = await failure_of(movable)
        assert (failure.code, failure.delivery, failure.reason) == (C.UNAVAILABLE, U, LocalReason.GIVEN_UP)
        assert failure.message == "others answer"
        assert await fixed == b"ok"
        assert await begun == b"ok"
        connection.give_up("nothing is left")
        assert owner.lost == []
