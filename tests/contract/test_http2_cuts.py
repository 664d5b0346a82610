"""A conversation that breaks off behind every byte, by FIN, by RST, by silence: the truth comes out, in time."""

import asyncio
import socket
import struct
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Literal

import pytest

from etcd_aio.errors import AttemptFailure, ConnectError, Delivery, LocalReason, StatusCode
from etcd_aio.transport import Connection, EngineName
from tests.support.http2 import data, frame, headers, setting
from tests.support.scripted import Wire, framed, scripted
from tests.support.transport import Owner, connected, engine, soon, target
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio

End = Literal["FIN", "RST", "silence"]
ENDS: tuple[End, ...] = ("FIN", "RST", "silence")
GREETING = frame(4, setting(3, 100) + setting(5, 16_384))
HEAD = b"\x88\x00\x0ccontent-type\x10application/grpc"
TAIL = b"\x00\x0bgrpc-status\x010"
ANSWER = (
    frame(4, flags=1)
    + frame(1, b"\x03" + HEAD[:10] + bytes(3), flags=8, stream_id=1)  # padded
    + frame(9, HEAD[10:], flags=4, stream_id=1)
    + data(1, framed(b"answer")[:7])
    + frame(0, b"\x02" + framed(b"answer")[7:] + bytes(2), flags=8, stream_id=1)
    + frame(8, b"\0\0\0\x09")
    + headers(1, TAIL, end=True)
)
MESSAGE_AT = len(ANSWER) - len(headers(1, TAIL)) - len(frame(8, bytes(4)))


async def leave(wire: Wire, end: End) -> None:
    if end == "silence":
        await asyncio.Event().wait()  # to read on would be to answer
    await wire.writer.drain()
    await asyncio.sleep(0)
    if end == "RST":
        linger = struct.pack("ii", 1, 0)
        wire.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wire.cut()
    else:
        wire.writer.close()


@pytest.mark.parametrize("end", ENDS)
async def test_a_greeting_that_breaks_off_is_no_connection(name: EngineName, end: End) -> None:
    cuts = iter(range(len(GREETING)))
    all_accepted = asyncio.Event()

    async def script(wire: Wire) -> None:
        cut = next(cuts)
        wire.raw(GREETING[:cut])
        if cut == len(GREETING) - 1:
            all_accepted.set()
        await leave(wire, end)

    async def dial(port: int) -> BaseException | None:
        try:
            await engine(name, connect_timeout=2.0 if end == "silence" else PATIENCE).connect(target(port), Owner())
        except (ConnectError, OSError) as error:
            return error
        return None

    async with scripted(script, speaks=False) as port, asyncio.timeout(2 * PATIENCE):
        results = await asyncio.gather(*(dial(port) for _ in GREETING))
        await all_accepted.wait()  # a busy loop may accept a connection after its client has left
    assert all(isinstance(error, (ConnectError, OSError)) for error in results)


async def unary(connection: Connection, cut: int, seconds: float) -> bytes:
    return await connection.unary(f"/x/{cut}", b"question", (), soon(seconds))


async def stream(connection: Connection, cut: int, seconds: float) -> bytes:
    """A stream of one message, which is read whenever it came."""
    opened = await connection.open_stream(f"/x/{cut}", (), soon())
    try:
        await opened.half_close()
        async with asyncio.timeout(seconds):
            first = await opened.receive()
            assert isinstance(first, bytes)
            assert first == b"answer", "nothing but the whole message is ever seen"
            assert cut >= MESSAGE_AT
            assert await opened.receive() is None
    finally:
        opened.cancel()
    return first


async def outcome(call: Awaitable[bytes]) -> bytes | AttemptFailure | TimeoutError:
    try:
        return await call
    except (AttemptFailure, TimeoutError) as error:
        return error


@pytest.mark.parametrize("kind", [unary, stream])
@pytest.mark.parametrize("end", ENDS)
async def test_an_answer_that_breaks_off_is_a_failure_that_says_so(name: EngineName, kind: object, end: End) -> None:
    call = unary if kind is unary else stream

    async def script(wire: Wire) -> None:
        wire.raw(GREETING)
        stream_id = await wire.request()
        wire.raw(ANSWER[: int(wire.requests[stream_id].headers[":path"].removeprefix("/x/"))])
        await leave(wire, end)

    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(scripted(script, speaks=False))
        cuts = range(len(ANSWER))
        pairs = [await stack.enter_async_context(connected(name, port)) for _ in cuts]
        whole, _ = await stack.enter_async_context(connected(name, port))
        async with asyncio.timeout(2 * PATIENCE):
            seconds = 0.4 if end == "silence" else PATIENCE
            results = await asyncio.gather(
                *(outcome(call(pair[0], cut, seconds)) for cut, pair in zip(cuts, pairs, strict=True))
            )
            if end != "RST":  # which may overtake what was sent before it
                assert await call(whole, len(ANSWER), PATIENCE) == b"answer"
    for cut, result in zip(cuts, results, strict=True):
        if end == "silence":
            is_late = isinstance(result, TimeoutError) or getattr(result, "reason", None) is LocalReason.DEADLINE
            assert is_late, f"cut at {cut}: {result!r}"
            continue
        assert isinstance(result, AttemptFailure), f"cut at {cut}: {result!r}"
        assert (result.code, result.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNKNOWN), f"cut at {cut}: {result!r}"
