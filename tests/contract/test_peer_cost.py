"""What a peer can make the client spend: the CPU time for hostile bytes, against that for as many harmless ones.

Both are measured in the same run, in CPU time of the thread, and compared by a factor that is far above what a loaded
machine adds: with its limits the client spends less on a flood than on the harmless bytes, without them up to 160
times as much.
"""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

import pytest
from websockets.utils import accept_key

from etcd_aio.base.deadline import NEVER
from etcd_aio.http2 import frames
from etcd_aio.transport import EngineName, TransportOptions
from etcd_aio.transport.gateway.call import HttpCall
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.websocket import WebSocketStream
from tests.support.gateway_examples import route
from tests.support.http2 import data, frame, headers, u32
from tests.support.no_collections import no_collections
from tests.support.transport import settle, soon, target
from tests.support.wired import Socket, Wired

pytestmark = pytest.mark.anyio

SIZE: Final = 2**20
READ: Final = 2**18  # what asyncio reads at once
MOST: Final = 16.0

GRPC: Final = b"\x88\x00\x0ccontent-type\x10application/grpc"
MESSAGE: Final = b"\0" + u32(100) + b"x" * 100


def filled(make: Callable[[int], bytes]) -> bytes:
    """A megabyte of what `make` makes, each time of the next number."""
    found, size = [], 0
    for number in count():
        found.append(make(number))
        size += len(found[-1])
        if size >= SIZE:
            break
    return b"".join(found)


def repeated(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


@dataclass
class Spent:
    seconds: float
    is_ended: bool


def spend(receive: Callable[[bytes], None], is_ended: Callable[[], bool], sent: bytes) -> Spent:
    """Receive it as asyncio would, until the connection is ended."""
    with no_collections():
        began = time.thread_time()
        for start in range(0, len(sent), READ):
            receive(sent[start : start + READ])
            if is_ended():
                break
        return Spent(time.thread_time() - began, is_ended())


# --- HTTP/2 ---


def static_fields(number: int) -> bytes:
    """An informational response of a thousand fields, each of which is one byte; no two are alike."""
    return b"\x08\x03103" + b"\x90" * 1000 + b"\x00\x02xx\x06" + b"%06d" % number


HTTP2_FLOODS: Final = {
    "pings": lambda: repeated(frame(frames.PING, bytes(8))),
    "settings": lambda: repeated(frame(frames.SETTINGS)),
    "empty data": lambda: repeated(data(1, b"")),
    "window updates of a byte": lambda: repeated(frame(frames.WINDOW_UPDATE, u32(1))),
    "unknown frames": lambda: repeated(frame(99)),
    "priority": lambda: repeated(frame(frames.PRIORITY, bytes(5), stream_id=1)),
    "continuations": lambda: (
        frame(frames.HEADERS, b"", stream_id=1) + repeated(frame(frames.CONTINUATION, b"", stream_id=1))
    ),
    "informational responses": lambda: repeated(headers(1, b"\x08\x03103")),
    "large header blocks": lambda: filled(lambda number: headers(1, static_fields(number))),
    "large blocks for a stream that is over": lambda: filled(lambda number: headers(3, static_fields(number))),
    "header blocks of table sizes": lambda: repeated(headers(1, b"\x20" * 16_000 + b"\x08\x03103")),
    "resets of a stream that is over": lambda: repeated(frame(frames.RST_STREAM, u32(8), stream_id=3)),
    "goodbyes": lambda: repeated(frame(frames.GOAWAY, u32(frames.MAX_STREAM_ID) + u32(0))),
    "padding": lambda: repeated(frame(frames.DATA, b"\x01\0", flags=frames.PADDED, stream_id=1)),
}


async def http2_spent(name: EngineName, sent: bytes) -> Spent:
    wired = Wired(name)
    wired.receive(frame(frames.SETTINGS, flags=frames.ACK))  # from now on the stream has the window that was asked for
    stream = await wired.connection.open_stream("/x/Watch", (), soon())
    over = asyncio.ensure_future(wired.connection.unary("/x/Slow", b"", (), soon()))
    await settle()
    wired.receive(headers(3, GRPC))
    over.cancel()
    await asyncio.wait([over])
    await settle()
    if sent[3] == frames.DATA:
        wired.receive(headers(1, GRPC))  # informational responses come before it
    try:
        return spend(wired.receive, lambda: wired.socket.is_over or bool(wired.owner.lost), sent)
    finally:
        stream.cancel()
        wired.connection.close()
        await settle()


@pytest.mark.parametrize("flood", HTTP2_FLOODS)
async def test_a_flood_of_http2_costs_no_more_than_messages(name: EngineName, flood: str) -> None:
    harmless = await http2_spent(name, repeated(data(1, MESSAGE)))
    hostile = await http2_spent(name, HTTP2_FLOODS[flood]())
    assert not harmless.is_ended
    assert hostile.is_ended
    assert hostile.seconds < MOST * harmless.seconds


# --- the gateway ---


class NoPool:
    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        raise AssertionError("no answer ends here")


def channel() -> tuple[Channel, Socket]:
    socket = Socket()
    made = Channel(lambda: None, lambda channel, error: None)
    made.connection_made(socket)
    return made, socket


async def websocket_spent(sent: bytes) -> Spent:
    on, socket = channel()
    stream = WebSocketStream(route("/x/Chat"), target(2379), TransportOptions(), "", lambda stream: None)
    stream.begin(on)
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", socket.written)
    assert key is not None
    on.data_received(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key[1].decode()).encode() + b"\r\n\r\n"
    )
    assert stream.opened.done()
    try:
        return spend(on.data_received, lambda: on.is_lost, sent)
    finally:
        stream.cancel()


async def http1_spent(sent: bytes) -> Spent:
    on, _ = channel()
    call = HttpCall(NoPool(), b"GET / HTTP/1.1\r\n\r\n", limit=2**22, deadline=NEVER)
    call.begin(on)
    try:
        return spend(on.data_received, lambda: on.is_lost, sent)
    finally:
        call.close()


def chunks(piece: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + repeated(b"%x\r\n%s\r\n" % (len(piece), piece))


TEXT: Final = b'{"result":{"payload":"%s"}}' % (b"x" * 97)

WEBSOCKET_FLOODS: Final = {
    "empty continuations": lambda: b"\x01\x01{" + repeated(b"\x00\x00"),
    "continuations of a byte": lambda: b"\x01\x01{" + repeated(b"\x00\x01 "),
    "pings": lambda: repeated(b"\x89\x00"),
    "pongs": lambda: repeated(b"\x8a\x00"),
    "empty messages": lambda: repeated(b"\x81\x00"),
    "messages of a byte": lambda: repeated(b"\x82\x01x"),
}
HTTP1_FLOODS: Final = {
    "chunks of a byte": lambda: chunks(b"x"),
    "interim responses": lambda: repeated(b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("flood", WEBSOCKET_FLOODS)
async def test_a_flood_on_a_websocket_costs_no_more_than_messages(flood: str) -> None:
    harmless = await websocket_spent(repeated(bytes([0x81, len(TEXT)]) + TEXT))
    hostile = await websocket_spent(WEBSOCKET_FLOODS[flood]())
    assert not harmless.is_ended
    assert hostile.is_ended
    assert hostile.seconds < MOST * harmless.seconds


@pytest.mark.parametrize("flood", HTTP1_FLOODS)
async def test_a_flood_over_http1_costs_no_more_than_an_answer(flood: str) -> None:
    harmless = await http1_spent(chunks(b"x" * 100))
    hostile = await http1_spent(HTTP1_FLOODS[flood]())
    assert not harmless.is_ended
    assert hostile.is_ended
    assert hostile.seconds < MOST * harmless.seconds
