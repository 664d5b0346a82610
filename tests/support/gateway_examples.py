"""The examples of `tests/support/transport.py` behind a gateway: JSON over HTTP/1, and a WebSocket for the dialogue.

It is written as etcd's gateway behaves: a status is JSON with `code` and `message`, a WebSocket that ends says nothing
more, and a request whose client is gone is cancelled.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from etcd_aio.methods import BIDIRECTIONAL, SERVER_STREAMING, UNARY
from etcd_aio.transport.gateway.call import HttpAnswer
from etcd_aio.transport.gateway.json_mapping import GatewayRoute, MappingError
from etcd_aio.transport.gateway.service import Service
from tests.support.stream_server import stream_server

_KINDS: Final = {"/x/Count": SERVER_STREAMING, "/x/Flood": SERVER_STREAMING, "/x/Chat": BIDIRECTIONAL}


class Counts(Protocol):
    """What the examples count."""

    cancelled: int

    def slow_begins(self) -> None: ...

    def slow_ends(self) -> None: ...


def to_json(payload: bytes) -> bytes:
    """The JSON of a message of the examples."""
    return json.dumps({"payload": base64.b64encode(payload).decode()}).encode()


def to_wire(found: object) -> bytes:
    """The message of its JSON."""
    if not isinstance(found, dict) or not isinstance(found.get("payload"), str):
        raise MappingError("no payload")
    return base64.b64decode(found["payload"])


def route(path: str) -> GatewayRoute:
    """Every path is served, as far as the client knows."""
    return GatewayRoute(path, _KINDS.get(path, UNARY), to_json, to_wire)


def recognise(answer: HttpAnswer) -> str:
    """Every server is the right one."""
    return ""


EXAMPLES: Final = Service(route, "/version", recognise)


class Gateway:
    """One connection at a time, request after request.

    Args:
        counts: gets what `Slow` does.
    """

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one socket."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                _, path, _ = lines[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                if "upgrade" in headers:
                    await self._chat(head, reader, writer)
                    return
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                await self._while_there(reader, self._answer(path, body, headers, writer))
        except (asyncio.IncompleteReadError, ConnectionError, InvalidState):
            pass
        finally:
            writer.transport.abort()

    async def _while_there(self, reader: asyncio.StreamReader, work: Any) -> None:
        """Run `work`, and cancel it when the client is gone. The client sends nothing before its answer."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionResetError
            task.result()
        finally:
            task.cancel()
            gone.cancel()
            await asyncio.wait([task, gone])

    async def _answer(self, path: str, body: bytes, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        if path == "/version":
            self._whole(writer, 200, b"{}")
            return
        payload = to_wire(json.loads(body))
        match path:
            case "/x/Echo":
                self._whole(writer, 200, to_json(payload))
            case "/x/Sized":
                self._whole(writer, 200, to_json(b"x" * int(payload)))
            case "/x/Fail":
                number, _, text = payload.decode().partition(" ")
                self._whole(writer, 400, json.dumps({"code": int(number), "message": text}).encode())
            case "/x/Slow":
                await self._slow(float(payload))
                self._whole(writer, 200, to_json(b"at last"))
            case "/x/Metadata":
                self._whole(writer, 200, to_json(json.dumps(headers).encode()))
            case "/x/Count":
                await self._lines(writer, (str(number).encode() for number in range(int(payload))))
            case "/x/Flood":
                await self._lines(writer, iter(lambda: b"x" * 2**16, b""))
            case _:
                self._whole(writer, 404, b"Not Found\n")

    async def _slow(self, seconds: float) -> None:
        self._counts.slow_begins()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self._counts.cancelled += 1
            raise
        finally:
            self._counts.slow_ends()

    def _whole(self, writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
        writer.write(f"HTTP/1.1 {status} Status\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    async def _lines(self, writer: asyncio.StreamWriter, payloads: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for payload in payloads:
            line = b'{"result":' + to_json(payload) + b"}\n"
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def _chat(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        websocket = ServerProtocol(max_size=None)
        websocket.receive_data(head)
        while True:
            for event in websocket.events_received():
                if isinstance(event, Request):
                    websocket.send_response(websocket.accept(event))
                elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    payload = to_wire(json.loads(bytes(event.data)))
                    websocket.send_text(b'{"result":' + to_json(payload) + b"}")
                    if payload == b"fail":
                        websocket.send_text(b'{"error":{"code":10,"message":"as asked"}}')
                        writer.write(b"".join(websocket.data_to_send()))
                        await writer.drain()
                        return
            writer.write(b"".join(websocket.data_to_send()))
            await writer.drain()
            data = await reader.read(2**16)
            if not data:
                return
            websocket.receive_data(data)


@asynccontextmanager
async def gateway_server(counts: Counts, tls: Any = None) -> AsyncIterator[int]:
    """Serve the examples on 127.0.0.1; yields the port."""
    async with stream_server(Gateway(counts).serve, tls=tls) as port:
        yield port
