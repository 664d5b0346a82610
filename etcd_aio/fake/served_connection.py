"""One connection over a socket. Its first bytes say whether it is HTTP/2 with gRPC, or HTTP/1."""

import asyncio
import struct
from http import HTTPStatus
from typing import Final, cast

from grpclib.config import Configuration
from grpclib.protocol import H2Protocol
from h2.config import H2Configuration
from h2.settings import SettingCodes

from etcd_aio.base.aio import wake
from etcd_aio.fake.documents import HttpDocument
from etcd_aio.fake.host import Host
from etcd_aio.fake.link import Link
from etcd_aio.fake.served_calls import ServedCalls
from etcd_aio.fake.server import FakeServer

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_LONGEST_HEAD: Final = 2**14  # bytes of a request of HTTP/1
_MOST_STREAMS: Final = 2**31 - 1  # etcd's default is no limit
_CLOSING: Final = 5.0  # seconds; a few turns of the loop suffice
_GOAWAY: Final = 7  # the type of the frame
_CONFIG: Final = Configuration(http2_connection_window_size=2**24, http2_stream_window_size=2**22).__for_server__()
_H2_CONFIG: Final = H2Configuration(
    client_side=False,
    header_encoding="latin-1",  # decodes whatever comes
    # As grpclib's own server: clients of gRPC send lower-case names.
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)


class ServedConnection(asyncio.Protocol):
    """One accepted connection.

    Attributes:
        closed: resolves when its socket is closed.
    """

    def __init__(self, host: Host, server: FakeServer) -> None:
        self.link = Link(host)
        self.server = server
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls = ServedCalls(self, self._close_if_drained)
        self._head = b""
        self._http2: H2Protocol | None = None
        self._is_draining = False
        self._is_lost = False
        self._transport: asyncio.Transport | None = None

    # For asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        self.link.add(self)
        if self._is_lost or not self.link.is_up:
            self.lose(None)
        elif self.link.is_silent:
            self.on_pause()

    def data_received(self, data: bytes) -> None:
        if self._http2 is None:
            data = self._head = self._head + data
            if not data.startswith(_PREFACE):
                if not _PREFACE.startswith(data):
                    self._read_http1()
                return
            self._http2 = self._begin_http2()
        try:
            self._http2.data_received(data)
        except Exception as error:  # h2 lets a few of hpack's and Python's own through
            self.lose(error)

    def pause_writing(self) -> None:
        if self._http2 is not None:
            self._http2.pause_writing()

    def resume_writing(self) -> None:
        if self._http2 is not None:
            self._http2.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.link.discard(self)
        if self._http2 is not None:
            self._http2.connection_lost(cast("Exception | None", exc))
        wake(self.closed)

    # For the host.

    def lose(self, error: BaseException | None) -> None:
        self._is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def on_pause(self) -> None:
        """Read nothing more, so that not even pings are answered."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def on_resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        for stream in tuple(self._calls.streams):
            stream.on_resume()

    # For calls.

    def go_away(self, reason: str) -> None:
        """Announce that no new calls are taken; those under way finish."""
        if self._transport is not None and not self._is_draining:
            self._is_draining = True
            self._calls.drain()
            # h2 sends nothing more behind a GOAWAY of its own.
            content = struct.pack(">LL", self._calls.last_id, 0) + reason.encode()
            self._transport.write(struct.pack(">L", len(content))[1:] + bytes([_GOAWAY]) + bytes(5) + content)

    async def aclose(self) -> None:
        """End at once, and wait for the tasks of its calls."""
        self.lose(None)
        await asyncio.wait([self.closed, *self._calls.tasks], timeout=_CLOSING)

    # Inside.

    def _close_if_drained(self) -> None:
        if self._is_draining and self._transport is not None:
            self._transport.close()

    def _begin_http2(self) -> H2Protocol:
        http2 = H2Protocol(self._calls, _CONFIG, _H2_CONFIG)
        if self._transport is not None:
            http2.connection_made(self._transport)
        # grpclib has no public way to raise h2's limit of 100 streams.
        http2.connection._connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: _MOST_STREAMS})
        return http2

    def _read_http1(self) -> None:
        if not self._head[:1].isalpha():  # a handshake of TLS, or noise: as etcd, which closes what is neither protocol
            if self._transport is not None:
                self._transport.close()
            return
        head, separator, _ = self._head.partition(b"\r\n\r\n")
        if separator:
            method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
            target, _, version = rest.partition(b" ")
            if not version.startswith(b"HTTP/1."):
                self._write_http1(HttpDocument(400, "text/plain", b"400 Bad Request"))
            elif method != b"GET":
                self._write_http1(HttpDocument(405, "text/plain", b"Method Not Allowed\n"))
            else:
                self._write_http1(self.server.document(self.link.host.node, target.decode("latin-1")))
        elif len(self._head) > _LONGEST_HEAD:
            self._write_http1(HttpDocument(431, "text/plain", b"431 Request Header Fields Too Large"))

    def _write_http1(self, document: HttpDocument) -> None:
        head = (
            f"HTTP/1.1 {document.status} {HTTPStatus(document.status).phrase}\r\nContent-Type: {document.kind}\r\n"
            f"Content-Length: {len(document.body)}\r\nConnection: close\r\n\r\n"
        )
        if self._transport is not None:
            self._transport.write(head.encode() + document.body)
            self._transport.close()
