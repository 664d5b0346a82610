"""An HTTP/2 server that accepts every call and answers none, so that calls stay in flight."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

_PREFACE: Final = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_SETTINGS: Final = 4
_PING: Final = 6
_WINDOW_UPDATE: Final = 8
_ACK: Final = 1


class SilentPeer(asyncio.Protocol):
    """One connection of the server."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._to_skip = _PREFACE
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # The window is large from the start: calls must wait for an answer, not for flow control.
        self._transport.write(_frame(_SETTINGS, 0, b"") + _frame(_WINDOW_UPDATE, 0, struct.pack(">I", 1 << 30)))

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self._buffer += data
        while len(self._buffer) >= self._to_skip + 9:
            head = self._buffer[self._to_skip : self._to_skip + 9]
            end = self._to_skip + 9 + int.from_bytes(head[:3])
            if len(self._buffer) < end:
                return
            kind, flags, payload = head[3], head[4], bytes(self._buffer[self._to_skip + 9 : end])
            del self._buffer[:end]
            self._to_skip = 0
            if kind in (_SETTINGS, _PING) and not flags & _ACK:
                transport.write(_frame(kind, _ACK, payload if kind == _PING else b""))


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + bytes(4) + payload


@asynccontextmanager
async def silent_peer() -> AsyncIterator[str]:
    """Listen on a free port of this machine. Yields the endpoint."""
    server = await asyncio.get_running_loop().create_server(SilentPeer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
