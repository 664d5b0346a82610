"""Gets a document, such as `/version`, that an endpoint serves over HTTP beside gRPC.

Without TLS this uses HTTP/1.0, since etcd treats every plain-text HTTP/2 connection as gRPC. With TLS it uses HTTP/2:
the TLS context offers only that, and is not changed, since the application may share it between threads.
"""

import asyncio
from typing import Final

from etcd_aio.errors import ConnectError
from etcd_aio.http2 import HeaderBlock, Http2Connection, Http2Stream, RemoteProtocolError, RequestHeaders
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.document_status import check_document
from etcd_aio.transport.interface import Target
from etcd_aio.transport.names import Names

_MOST_BYTES: Final = 1 << 16
_MOST_BYTES_OF: Final = {"/metrics": 1 << 21}  # etcd 3.7 sends 180 kB; less than the window of an HTTP/2 stream
_PIECE: Final = 1 << 14
_LONGEST_LOOKUP: Final = 15.0  # seconds; the caller's timeout is shorter


def most_bytes(path: str) -> int:
    """The most bytes of the document at a path; a longer one is not from etcd."""
    return _MOST_BYTES_OF.get(path, _MOST_BYTES)


async def http_get(target: Target, path: str, names: Names) -> bytes:
    """Return the body of `path`. The caller runs this in a separate task, with a timeout.

    Args:
        target: the server.
        path: the path, of printable ASCII without spaces.
        names: resolves the host name.

    Raises:
        OSError: the connection failed.
        ConnectError: the answer is not HTTP, not a success, or too long.
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
    check_document(path, int(status[:3]) if status.isascii() and status.isdigit() else 0)
    return body


async def _over_http1(
    reader: asyncio.StreamReader, transport: asyncio.Transport, authority: str, path: str
) -> tuple[str, bytes]:
    """Return status and body. In HTTP/1.0 the end of the connection is the end of the body."""
    transport.write(f"GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n".encode())
    answer = bytearray()
    while piece := await reader.read(_PIECE):
        answer += piece
        _check_size(answer, path)
    head, separator, body = bytes(answer).partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ")
    is_http = bool(separator) and words[0].startswith(b"HTTP/1.") and len(words) > 1
    return (words[1].decode("latin-1") if is_http else ""), body


async def _over_http2(
    reader: asyncio.StreamReader, transport: asyncio.Transport, authority: str, path: str
) -> tuple[str, bytes]:
    """Return status and body."""
    clock = asyncio.get_running_loop().time
    get = _Get(authority, path)
    http2: Http2Connection[_Get] = Http2Connection(
        clock(), on_settings=lambda: None, on_goaway=lambda reason: None, on_over=get.on_over
    )
    http2.outgoing.open(get, b"", end=True)
    try:
        while not get.is_over:
            transport.write(http2.outgoing.data_to_send())
            piece = await reader.read(_PIECE)
            if not piece:
                raise ConnectError("the peer closed the connection")
            http2.receive_data(piece, clock())
            _check_size(get.body, path)
    finally:
        http2.close()
    return get.status, bytes(get.body)


class _Get(Http2Stream):
    """The request, with the status and body of its response."""

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


def _check_size(answer: bytearray, path: str) -> None:
    if len(answer) > most_bytes(path):
        raise ConnectError("the peer's answer is too long")
