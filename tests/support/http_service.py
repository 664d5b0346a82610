"""A server of HTTP/1.1 in this process, for clients of services: it keeps what it was asked, and ends gracefully."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from etcd_aio.base.aio import start_task
from tests.support.until import PATIENCE


@dataclass(frozen=True)
class Request:
    """A request: its target, its headers in lower case, its body."""

    target: str
    headers: dict[str, str]
    body: bytes


class HttpService:
    """A server on a free port. It answers each request with its own address, in a body that may take a while.

    Attributes:
        requests: the requests so far.
        connections: how many connections there were, and `idle` how many are open and wait for a request.
        answers: while it is not set, answers wait.
        extra: further lines of the header of each answer.
        status: of each answer.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self._tls, self._host, self._port = tls, host, port
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._busy: set[asyncio.StreamWriter] = set()
        self.requests: list[Request] = []
        self.connections = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.extra: list[str] = []
        self.status = "200 OK"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._host, self._port, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def address(self) -> str:
        return f"{self._host}:{self._port}"

    @property
    def idle(self) -> int:
        return len(self._writers - self._busy)

    async def stop(self) -> None:
        """Take no more connections, close those that are idle, and the others behind their answers."""
        self._server.close()
        for writer in self._writers - self._busy:
            writer.close()
        for task in self._tasks:
            task.add_done_callback(self._tasks.discard)
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=PATIENCE)
            assert not left, (left, [(w in self._busy, w.transport.is_closing()) for w in self._writers])

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = start_task(self._serve(reader, writer), name="http service")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            async for request in self._requests(reader):
                self._busy.add(writer)
                self.requests.append(request)
                await self.answers.wait()
                ends = not self._server.is_serving()
                body = self.address.encode()
                lines = [f"HTTP/1.1 {self.status}", f"Content-Length: {len(body)}", *self.extra]
                lines += ["Connection: close"] * ends
                writer.write("\r\n".join([*lines, "", ""]).encode() + body)
                await writer.drain()
                self._busy.discard(writer)
                if ends:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._busy.discard(writer)
            self._writers.discard(writer)
            writer.close()

    async def _requests(self, reader: asyncio.StreamReader) -> AsyncIterator[Request]:
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                return
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            while headers.get("transfer-encoding") == "chunked":
                size = int(await reader.readline(), 16)
                body += (await reader.readexactly(size + 2))[:-2]
                if not size:
                    break
            yield Request(first.split()[1], headers, body)
