"""One HTTP GET of a small document, such as `/version`, that an endpoint serves beside gRPC.

Without TLS it speaks HTTP/1.0, since etcd takes every HTTP/2 connection in the clear for gRPC. With TLS it speaks
HTTP/2, as calls do: the TLS context offers nothing else, and it may be the user's, shared by clients in other threads,
so it is used as it is.
"""

import asyncio
from typing import Final

from etcd_aio.errors import ConnectError
from etcd_aio.http2 import HeaderBlock, Http2Connection, Http2Stream, RemoteProtocolError, RequestHeaders
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.interface import Target
from etcd_aio.transport.names import Names

_MOST_BYTES: Final = 1 << 16
_PIECE: Final = 1 << 14
_LONGEST_LOOKUP: Final = 15.0  # seconds; the caller gives up earlier


async def http_get(target: Target, path: str, names: Names) -> bytes:
    """The body of `path`. The caller bounds the time, in a task of its own.

    Args:
        target: where.
        path: what, of printable ASCII without spaces.
        names: resolves the host name.

    Raises:
        OSError: the operating system's or TLS's reason.
        ConnectError: the peer answered something else than 200, or not in HTTP, or too much.
        TLSError: TLS failed, or the peer did not agree on HTTP/2.
    """
    reader = asyncio.StreamReader()
    route = await find_route(target, names, _LONGEST_LOOKUP)
    transport, _ = await dial(route, lambda: asyncio.StreamReaderProtocol(reader))
    try:
        read = _over_http1 if route.tls is None else _over_http2
        status, body = await read(reader, transport, target.authority, path)
    finally:
        transport.abort()
    if status != "200":
        shown = f": HTTP status {status[:3]}" if status.isascii() and status.isdigit() else " over HTTP"
        raise ConnectError(f"the peer does not serve {path}{shown}")
    return body


async def _over_http1(
    reader: asyncio.StreamReader, transport: asyncio.Transport, authority: str, path: str
) -> tuple[str, bytes]:
    """Status and body. The server closes when it is done and does not chunk, so reading to the end is the parser."""
    transport.write(f"GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n".encode())
    answer = bytearray()
    while piece := await reader.read(_PIECE):
        answer += piece
        _check_size(answer)
    head, separator, body = bytes(answer).partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ")
    is_http = bool(separator) and words[0].startswith(b"HTTP/1.") and len(words) > 1
    return (words[1].decode("latin-1") if is_http else ""), body


async def _over_http2(
    reader: asyncio.StreamReader, transport: asyncio.Transport, authority: str, path: str
) -> tuple[str, bytes]:
    """Status and body."""
    clock = asyncio.get_running_loop().time
    get = _Get(authority, path)
    http2: Http2Connection[_Get] = Http2Connection(clock(), on_settings=_ignore, on_goaway=_ignore, on_over=get.on_over)
    http2.outgoing.open(get, b"", end=True)
    try:
        while not get.is_over:
            transport.write(http2.outgoing.data_to_send())
            piece = await reader.read(_PIECE)
            if not piece:
                raise ConnectError("the peer closed the connection")
            http2.receive_data(piece, clock())
            _check_size(get.body)
    finally:
        http2.close()
    return get.status, bytes(get.body)


class _Get(Http2Stream):
    """The request, and what comes back."""

    __slots__ = ("body", "is_over", "status")

    def __init__(self, authority: str, path: str) -> None:
        fields = ((":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path))
        super().__init__(RequestHeaders(fields))
        self.status = ""
        self.body = bytearray()
        self.is_over = False

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        self.status = self.status or headers.status
        self.is_over = ended

    def on_data(self, data: bytes) -> None:
        self.body += data

    def on_ended(self) -> None:
        self.is_over = True

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        self.status, self.is_over = "", True

    def on_unprocessed(self, reason: str) -> None:
        self.status, self.is_over = "", True

    def on_over(self, error: RemoteProtocolError) -> None:
        """The peer broke HTTP/2."""
        self.status, self.is_over = "", True


def _check_size(answer: bytearray) -> None:
    if len(answer) > _MOST_BYTES:
        raise ConnectError("the peer's answer is too long")


def _ignore(_: object = None) -> None:
    """What matters is the answer, or the end of the connection."""
