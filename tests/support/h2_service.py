"""A server of HTTP/2 over TLS in this process: it answers each request with its own address."""

import asyncio
import ssl
from types import TracebackType
from typing import Self

import h2.config
import h2.connection
import h2.events

from etcd_aio.base.aio import start_task
from tests.support.until import PATIENCE


class H2Service:
    """A server on a free port of 127.0.0.1.

    Attributes:
        connections: how many connections there were.
        authorities: the hosts that were asked for.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["h2"])
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.authorities: set[str] = set()
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = start_task(self._serve(reader, writer), name="h2 service")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        peer.initiate_connection()
        try:
            writer.write(peer.data_to_send())
            while data := await reader.read(65536):
                for event in peer.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        headers = {bytes(name): bytes(value) for name, value in event.headers or ()}
                        self.authorities.add(headers[b":authority"].decode())
                        stream = event.stream_id
                        assert stream is not None
                        peer.send_headers(stream, [(":status", "200")])
                        peer.send_data(stream, self.address.encode(), end_stream=True)
                writer.write(peer.data_to_send())
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
