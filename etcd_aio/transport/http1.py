"""HTTP/1: one GET of a small document from an endpoint that also serves such, on a connection of its own.

Knows: sockets, TLS, as much of HTTP/1.0 as a GET needs. Never knows: gRPC, what the document says.

The TLS context of an endpoint offers HTTP/2 only, and a server that is offered it speaks it. What is offered is a
property of the context at the moment when a session is made, so it is changed for that moment; asyncio makes its
sessions at moments of its own, so this one is driven by hand.
"""

import asyncio
import ssl
from typing import Final

from etcd_aio.errors import ConnectError
from etcd_aio.transport.seam import Target

_MOST_BYTES: Final = 1 << 16
_PIECE: Final = 1 << 14


async def http_get(target: Target, path: str) -> bytes:
    """The body of `path`. The caller bounds the time, in a task of its own.

    Args:
        target: where.
        path: what, of printable ASCII without spaces.

    Raises:
        OSError: the operating system's or TLS's reason.
        ConnectError: the peer answered something else than 200, or not in HTTP/1, or too much.
    """
    if target.path:
        reader, writer = await asyncio.open_unix_connection(target.path)
    else:
        reader, writer = await asyncio.open_connection(target.host, target.port)
    # HTTP/1.0: the server closes when it is done and does not chunk, so reading to the end is the whole parser.
    request = f"GET {path} HTTP/1.0\r\nHost: {target.authority}\r\n\r\n".encode()
    try:
        if target.tls is None:
            writer.write(request)
            answer = await _read(reader)
        else:
            context = target.tls if isinstance(target.tls, ssl.SSLContext) else await target.tls.context()
            answer = await _Session(reader, writer, context, target.server_name).exchange(request)
    finally:
        writer.transport.abort()
    head, separator, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if not separator or not words[0].startswith(b"HTTP/1.") or len(words) < 2:
        raise ConnectError(f"the peer does not serve {path} over HTTP/1")
    if words[1] != b"200":
        raise ConnectError(f"the peer does not serve {path}: HTTP status {words[1][:3].decode('ascii', 'replace')}")
    return body


async def _read(reader: asyncio.StreamReader) -> bytes:
    answer = bytearray()
    while piece := await reader.read(_PIECE):
        answer += piece
        _check_size(len(answer))
    return bytes(answer)


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise ConnectError("the peer's answer is too long")


class _Session:
    """One TLS session over a pair of streams."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext, server_name: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        tls.set_alpn_protocols(["http/1.1"])
        try:
            self._ssl = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        finally:
            tls.set_alpn_protocols(["h2"])

    async def exchange(self, request: bytes) -> bytes:
        """Send a request, and read to the end."""
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                if not await self._pump():
                    raise ConnectError("the peer hung up during the TLS handshake") from None
            else:
                break
        self._ssl.write(request)
        answer = bytearray()
        while True:
            try:
                piece = self._ssl.read(_PIECE)
            except ssl.SSLWantReadError:
                if not await self._pump():
                    return bytes(answer)
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return bytes(answer)
            else:
                if not piece:
                    return bytes(answer)
                answer += piece
                _check_size(len(answer))

    async def _pump(self) -> bool:
        """Send what is to be sent and wait for more; False if no more comes."""
        self._writer.write(self._outgoing.read())
        piece = await self._reader.read(_PIECE)
        if piece:
            self._incoming.write(piece)
        else:
            self._incoming.write_eof()
        return bool(piece)
