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
    read(connection, headers(3, GRPC) + data(3, b"\0\0\0\0\1r") + headers(3, OK, end=True))
    assert len(connection.get_buffer(-1)) == USUAL
    assert await calls[1] == b"r"
    connection.close()


def large_reply(length: int) -> bytes:
    """A reply on the first stream, of so many bytes with all frames."""
    first, last = headers(1, GRPC), headers(1, OK, end=True)
    left = length - len(first) - len(last)
    size = left - 9 * -(-left // (16_384 + 9)) - 5
    message = pack(">BI", 0, size) + bytes(size)
    return first + b"".join(data(1, message[at : at + 16_384]) for at in range(0, len(message), 16_384)) + last


@pytest.mark.parametrize("last", [2**14, 2**17, LARGE], ids=["usual", "long", "full"])
async def test_an_idle_connection_has_no_large_buffer(last: int) -> None:
    wired = Wired("native")
    connection = cast("NativeConnection", wired.connection)
    call = asyncio.ensure_future(connection.unary("/x/Range", b"", (), soon()))
    await settle()
    await connection.open_stream("/x/Watch", (), soon())  # a quiet one
    reply = large_reply(USUAL + last)
    rest = reply[read(connection, reply) :]
    assert len(rest) == last
    assert len(connection.get_buffer(-1)) == LARGE
    assert read(connection, rest) == last
    assert len(connection.get_buffer(-1)) == USUAL
    assert len(await call) > 60_000
    connection.close()


async def test_a_reply_that_just_fills_the_buffer_leaves_it_as_it_is() -> None:
    wired = Wired("native")
    connection = cast("NativeConnection", wired.connection)
    call = asyncio.ensure_future(connection.unary("/x/Range", b"", (), soon()))
    await settle()
    reply = large_reply(USUAL)
    assert read(connection, reply) == len(reply) == USUAL
    assert len(connection.get_buffer(-1)) == USUAL
    await call
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
