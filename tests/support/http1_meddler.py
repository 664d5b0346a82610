"""A proxy of HTTP/1 before one server that does to single requests what proxies do in trouble.

`meddle` gets the method and path of each request, and says how it is answered:
  Pass()              as the server does
  Pass(times=2)       sent to the server so often; the client gets the last answer
  Pass(cut=10)        the server's answer ends behind so many bytes, with a reset or in peace
  Pass(instead=504)   the server acts, and the client gets this status
  Answer(503)         the server gets nothing, and the client this status
A request that asks for a WebSocket is passed on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tests.support.http1_proxies import copy_both_ways
from tests.support.stream_server import stream_server


@dataclass(frozen=True)
class Pass:
    """See above."""

    times: int = 1
    cut: int | None = None
    resets: bool = False
    instead: int | None = None


@dataclass(frozen=True)
class Answer:
    """See above."""

    status: int
    body: bytes = b"<html>in trouble</html>"
    headers: bytes = b""

    @property
    def whole(self) -> bytes:
        """The bytes of the answer."""
        return b"HTTP/1.1 %d Status\r\nServer: meddler\r\n%sContent-Length: %d\r\n\r\n%s" % (
            self.status,
            self.headers,
            len(self.body),
            self.body,
        )


Meddle: TypeAlias = Callable[[str, str], Pass | Answer]


@asynccontextmanager
async def meddler(endpoint: str, meddle: Meddle) -> AsyncIterator[str]:
    """Run the proxy; yields its endpoint."""
    server = int(endpoint.rpartition(":")[2])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _serve_one(reader, writer, server, meddle):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with stream_server(serve) as port:
        yield f"http://127.0.0.1:{port}"


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: int, meddle: Meddle) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    request = head + await reader.readexactly(_length(head))
    method, path, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if b"\r\nupgrade: websocket\r\n" in head.lower():
        await _tunnel(request, reader, writer, server)
        return False
    wanted = meddle(method, path)
    if isinstance(wanted, Answer):
        writer.write(wanted.whole)
        return True
    answer = b""
    for _ in range(wanted.times):
        answer = await _ask(request, server)
    if wanted.instead is not None:
        writer.write(Answer(wanted.instead).whole)
        return True
    if wanted.cut is None:
        writer.write(answer)
        return True
    writer.write(answer[: wanted.cut])
    await writer.drain()
    if wanted.resets:
        writer.transport.abort()
    return False


async def _ask(request: bytes, server: int) -> bytes:
    """The server's whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server)
    try:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b"transfer-encoding: chunked" not in head.lower():
            return head + await reader.readexactly(_length(head))
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            body += await reader.readuntil(b"\r\n")
        return head + body
    finally:
        writer.transport.abort()


async def _tunnel(request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: int) -> None:
    upstream, to_server = await asyncio.open_connection("127.0.0.1", server)
    to_server.write(request)
    try:
        await copy_both_ways((reader, to_server), (upstream, writer))
    finally:
        to_server.transport.abort()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
