"""A scripted HTTP/2 peer, which may also break the protocol.

h2 in server role parses the bytes of the client. The script has its own frames: h2 would reject invalid ones.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, PingAckReceived, PingReceived, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hpack import Encoder, NeverIndexedHeaderTuple
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, RstStreamFrame, SettingsFrame

from tests.support.stream_server import stream_server

E = TypeVar("E", bound=Event)

GRPC = ((":status", "200"), ("content-type", "application/grpc"))
OK = (("grpc-status", "0"),)
Headers: TypeAlias = tuple[tuple[str, str], ...]


class PeerGone(Exception):  # noqa: N818 - an event of the script, no error
    """The client closed the connection."""


@dataclass
class Request:
    """The request of the client on one stream."""

    stream_id: int
    headers: dict[str, str]
    never_indexed: frozenset[str] = frozenset()
    body: bytes = b""
    is_ended: bool = False
    reset: int | None = None


@dataclass
class Wire:
    """One accepted connection, as a script sees it.

    Attributes:
        requests: by stream number, in the order of arrival.
        pings: how many the client sent.
        answered_pings: how many of the script's it answered.
        acknowledges: whether received data is given back to the client's window.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    settings: Mapping[SettingCodes, int] = field(default_factory=dict)
    acknowledges: bool = True
    requests: dict[int, Request] = field(default_factory=dict)
    pings: int = 0
    answered_pings: int = 0

    def __post_init__(self) -> None:
        self.http2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.encoder = Encoder()
        self._taken: set[int] = set()

    # Receiving.

    async def start(self) -> None:
        """Send SETTINGS."""
        # h2 does not know of the responses, so it must not enforce the limit that the client gets.
        unlimited = {**self.settings, SettingCodes.MAX_CONCURRENT_STREAMS: 2**31 - 1}
        self.http2.local_settings = Settings(client=False, initial_values=unlimited)
        self.http2.initiate_connection()
        self.flush()
        self.limit_streams(self.settings.get(SettingCodes.MAX_CONCURRENT_STREAMS, 2**31 - 1))

    async def read(self) -> None:
        """Take in what the client sends next."""
        data = await self.reader.read(2**16)
        if not data:
            raise PeerGone
        for event in self.http2.receive_data(data):
            self._note(event)
        self.flush()

    def _note(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(stream_id), headers=list(headers)):
                secret = frozenset(str(one[0]) for one in headers if isinstance(one, NeverIndexedHeaderTuple))
                self.requests[stream_id] = Request(stream_id, {str(k): str(v) for k, v in headers}, secret)
            case DataReceived(stream_id=int(stream_id), data=bytes(data), flow_controlled_length=int(size)):
                self.requests[stream_id].body += data
                if self.acknowledges and size:
                    self.http2.acknowledge_received_data(size, stream_id)
            case StreamEnded(stream_id=int(stream_id)):
                self.requests[stream_id].is_ended = True
            case StreamReset(stream_id=int(stream_id), error_code=code):
                self.requests[stream_id].reset = int(code or 0)
            case PingReceived():
                self.pings += 1
            case PingAckReceived():
                self.answered_pings += 1

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Read until `is_true`."""
        while not is_true():
            await self.read()

    async def opened(self) -> int:
        """The number of the next stream, as soon as its headers came."""
        await self.until(lambda: bool(self.requests.keys() - self._taken))
        stream_id = min(self.requests.keys() - self._taken)
        self._taken.add(stream_id)
        return stream_id

    async def request(self) -> int:
        """The number of the next stream, once its request is whole."""
        stream_id = await self.opened()
        await self.until(lambda: self.requests[stream_id].is_ended)
        return stream_id

    async def forever(self) -> None:
        """Read until the client is gone."""
        while True:
            await self.read()

    # Sending.

    def flush(self) -> None:
        """Write the bytes that h2 has ready."""
        self.writer.write(self.http2.data_to_send())

    def limit_streams(self, limit: int) -> None:
        """SETTINGS with another MAX_CONCURRENT_STREAMS."""
        self.frame(SettingsFrame(0, {SettingsFrame.MAX_CONCURRENT_STREAMS: limit}))

    def raw(self, data: bytes) -> None:
        """Write these very bytes."""
        self.writer.write(data)

    def raw_frame(self, kind: int, payload: bytes, *, stream_id: int = 0, flags: int = 0) -> None:
        """A frame of any type, known or not."""
        self.raw(len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload)

    def frame(self, frame: Frame, *flags: str) -> None:
        """Write this frame."""
        for flag in flags:
            frame.flags.add(flag)
        self.raw(frame.serialize())

    def headers(self, stream_id: int, headers: Headers, *, end: bool = False) -> None:
        """A header block in one frame."""
        block = self.encoder.encode(headers)
        self.frame(HeadersFrame(stream_id, block), "END_HEADERS", *(["END_STREAM"] if end else []))

    def data(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        """One DATA frame."""
        self.frame(DataFrame(stream_id, data), *(["END_STREAM"] if end else []))

    def message(self, stream_id: int, payload: bytes, *, end: bool = False) -> None:
        """One gRPC message in frames of at most 16 KiB."""
        data = framed(payload)
        for start in range(0, len(data), 2**14):
            chunk = data[start : start + 2**14]
            self.data(stream_id, chunk, end=end and start + len(chunk) == len(data))

    def answer(self, stream_id: int, payload: bytes = b"ok") -> None:
        """A whole good response."""
        self.headers(stream_id, GRPC)
        self.message(stream_id, payload)
        self.headers(stream_id, OK, end=True)

    def reset(self, stream_id: int, code: int) -> None:
        """RST_STREAM."""
        self.frame(RstStreamFrame(stream_id, code))

    def go_away(self, last_stream_id: int, code: ErrorCodes = ErrorCodes.NO_ERROR, debug: bytes = b"") -> None:
        """GOAWAY."""
        self.frame(GoAwayFrame(0, last_stream_id, code, debug))

    def cut(self) -> None:
        """End the connection with a TCP reset or close, whatever the loop does."""
        self.writer.transport.abort()


Script: TypeAlias = Callable[[Wire], Awaitable[None]]


def framed(payload: bytes, *, compressed: int = 0) -> bytes:
    """A gRPC message as it stands in DATA."""
    return bytes([compressed]) + len(payload).to_bytes(4, "big") + payload


@asynccontextmanager
async def scripted(
    script: Script,
    *,
    settings: Mapping[SettingCodes, int] | None = None,
    acknowledges: bool = True,
    speaks: bool = True,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Listen on 127.0.0.1, run `script` for every connection; yields the port. A script that fails fails the test.

    Args:
        script: is run for each connection; when it returns, the connection stays open and is read from.
        settings: of the peer.
        acknowledges: whether received data is given back to the client's window.
        speaks: whether SETTINGS are sent before the script runs.
        tls: the server's context.
    """
    failures: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer, settings or {}, acknowledges)
        try:
            if speaks:
                await wire.start()
            await script(wire)
            await wire.forever()
        except (PeerGone, ConnectionError):
            pass
        except asyncio.CancelledError:
            pass  # the test is over
        except BaseException as error:
            failures.append(error)
        finally:
            writer.transport.abort()

    try:
        async with stream_server(serve, tls=tls) as port:
            yield port
    finally:
        if failures:
            raise failures[0]
