"""A connection of either engine without a socket: the test is its peer, and feeds bytes at chosen turns of the loop."""

import asyncio
from typing import Any, cast

from etcd_aio.http2 import frames
from etcd_aio.transport import Connection, EngineName, TransportOptions
from etcd_aio.transport.grpclib.engine import GrpclibConnection
from etcd_aio.transport.native.connection import NativeConnection
from etcd_aio.transport.ping_pace import PingPace
from tests.support.http2 import Frame, frame, parse
from tests.support.transport import Owner, target


class Socket(asyncio.Transport):
    """Records the written bytes.

    Attributes:
        buffered: bytes that the connection believes to be waiting for the kernel.
    """

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.buffered = 0
        self.is_over = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_over

    def abort(self) -> None:
        self.is_over = True

    def close(self) -> None:
        self.is_over = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class Wired:
    """The connection, its owner and its socket.

    Args:
        name: the engine.
        settings: payload of the peer's SETTINGS.
        pace: what the engine remembers of pings.
        options: of the transport.
    """

    def __init__(self, name: EngineName, settings: bytes = b"", pace: PingPace | None = None, **options: Any) -> None:
        pace = pace or PingPace()
        self.owner = Owner()
        self.socket = Socket()
        where = target(2379)
        times = TransportOptions(**options)
        self.connection: Connection
        self._protocol: NativeConnection | asyncio.Protocol
        if name == "native":
            native = NativeConnection(where, times, self.owner, pace)
            native.is_established = True
            self.connection = self._protocol = native
        else:
            grpclib = GrpclibConnection(where, times, self.owner, pace)
            grpclib.protocol.is_established = True
            self._protocol = cast("asyncio.Protocol", grpclib.protocol)
            self.connection = grpclib
        self._protocol.connection_made(self.socket)
        self.receive(frame(frames.SETTINGS, settings))
        self.socket.written = self.socket.written[len(frames.PREFACE) :]
        self.sent()

    def receive(self, data: bytes) -> None:
        """Receive bytes from the peer."""
        if not self.socket.is_over:
            self._protocol.data_received(data)

    def receive_in_turns(self, *pieces: bytes) -> None:
        """Receive one piece in each of the next turns of the loop."""
        loop = asyncio.get_running_loop()
        if pieces:
            loop.call_soon(self.receive, pieces[0])
            loop.call_soon(self.receive_in_turns, *pieces[1:])

    def take_bytes(self, *, takes: bool) -> None:
        """The socket takes no more bytes, or takes them again."""
        (self._protocol.resume_writing if takes else self._protocol.pause_writing)()

    def sent(self) -> list[Frame]:
        """The frames that were written since the last call."""
        written, self.socket.written = self.socket.written, b""
        return list(parse(written))
