"""transport/native/connection.py: the buffer to which the bytes of a connection are read."""

import asyncio
from struct import pack
from typing import cast

import pytest

from etcd_aio.transport.native.connection import NativeConnection
from tests.support.http2 import data, headers
from tests.support.transport import settle, soon
from tests.support.wired import Wired

pytestmark = pytest.mark.anyio

USUAL, LARGE = 2**16, 2**18
GRPC = b"\x88\x00\x0ccontent-type\x10application/grpc"
OK = b"\x00\x0bgrpc-status\x010"


def read(connection: NativeConnection, content: bytes) -> int:
    """Have a connection read as much as its buffer holds; returns how much that was."""
    buffer = connection.get_buffer(-1)
    size = min(len(buffer), len(content))
    buffer[:size] = content[:size]
    connection.buffer_updated(size)
    return size


async def test_the_buffer_is_larger_while_a_large_reply_fills_it() -> None:
    wired = Wired("native")
    connection = cast("NativeConnection", wired.connection)
    calls = [asyncio.ensure_future(connection.unary("/x/Range", b"", (), soon())) for _ in range(2)]
    await settle()
    body = b"".join(pack(">I", number) for number in range(300_000))
    message = pack(">BI", 0, len(body)) + body
    frames = [data(1, message[at : at + 16_384]) for at in range(0, len(message), 16_384)]
    rest = headers(1, GRPC) + b"".join(frames) + headers(1, OK, end=True)
    sizes = []
    while rest:
        sizes.append(read(connection, rest))
        rest = rest[sizes[-1] :]
    assert sizes[:2] == [USUAL, LARGE]
    assert set(sizes[2:-1]) == {LARGE}
    assert await calls[0] == body, "not a byte is lost where the size changes"
    assert len(connection.get_buffer(-1)) == LARGE, "more may come"
    read(connection, headers(3, GRPC) + data(3, b"\0\0\0\0\1r") + headers(3, OK, end=True))
    assert len(connection.get_buffer(-1)) == USUAL, "a small reply comes alone"
    assert await calls[1] == b"r"
    connection.close()


async def test_an_idle_connection_has_no_large_buffer() -> None:
    wired = Wired("native")
    connection = cast("NativeConnection", wired.connection)
    call = asyncio.ensure_future(connection.unary("/x/Range", b"", (), soon()))
    await settle()
    message = pack(">BI", 0, 90_000) + bytes(90_000)
    pieces = [data(1, message[at : at + 16_384]) for at in range(0, len(message), 16_384)]
    reply = headers(1, GRPC) + b"".join(pieces) + headers(1, OK, end=True)
    rest = reply[read(connection, reply) :]
    assert len(connection.get_buffer(-1)) == LARGE
    assert read(connection, rest) == len(rest) > 2**14, "its last read is not small"
    assert len(connection.get_buffer(-1)) == USUAL
    assert len(await call) == 90_000
    connection.close()


async def test_small_replies_leave_the_buffer_as_it_is() -> None:
    wired = Wired("native")
    connection = cast("NativeConnection", wired.connection)
    buffer = connection.get_buffer(-1)
    call = asyncio.ensure_future(connection.unary("/x/Range", b"", (), soon()))
    await settle()
    read(connection, headers(1, GRPC) + data(1, b"\0\0\0\0\1r") + headers(1, OK, end=True))
    assert await call == b"r"
    assert connection.get_buffer(-1) is buffer
    assert len(buffer) == USUAL
    connection.close()
