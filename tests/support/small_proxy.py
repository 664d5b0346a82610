"""Small proxies that tests write themselves: HTTP CONNECT and SOCKS 5, with what they were told."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.support.stream_server import stream_server


@dataclass
class SmallProxy:
    """A proxy of both kinds.

    Attributes:
        port: its port.
        places: the host and port of each request.
        credentials: the name and password of each request that had them.
        resolve: the address for a host and a port; the same ones by default.
        reply: what it answers to CONNECT, before the tunnel.
        behind: sent together with the reply, as the first bytes of the endpoint.
        piece: bytes that are sent at once; 0 for all.
        silent_about: a host to which it never gets through, by SOCKS.
        open: number of its connections.
    """

    port: int = 0
    places: list[tuple[str, int]] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    resolve: Callable[[str, int], tuple[str, int]] = lambda host, port: (host, port)
    reply: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
    behind: bytes = b""
    piece: int = 0
    silent_about: str = ""
    open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.open += 1
        try:
            first = await reader.readexactly(1)
            if first == b"\x05":
                await self._socks(reader, writer)
            else:
                await self._http(first + await reader.readuntil(b"\r\n\r\n"), reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()

    async def _http(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = head.decode().split("\r\n")
        host, _, port = lines[0].split(" ")[1].rpartition(":")
        for line in lines:
            if line.startswith("Proxy-Authorization: Basic "):
                self.credentials.append(base64.b64decode(line.rpartition(" ")[2]).decode())
        self.places.append((host.strip("[]"), int(port)))
        there = await asyncio.open_connection(*self.resolve(*self.places[-1]))
        await self._send(writer, self.reply + self.behind)
        await relayed((reader, writer), there)

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (count,) = await reader.readexactly(1)
        methods = await reader.readexactly(count)
        await self._send(writer, b"\x05\x02" if 2 in methods else b"\x05\x00")
        if 2 in methods:
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            (size,) = await reader.readexactly(1)
            self.credentials.append(f"{user.decode()}:{(await reader.readexactly(size)).decode()}")
            await self._send(writer, b"\x01\x00")
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            (size,) = await reader.readexactly(1)
            host = (await reader.readexactly(size)).decode()
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, await reader.readexactly(size))
        self.places.append((host, int.from_bytes(await reader.readexactly(2), "big")))
        if host == self.silent_about:
            await reader.read(1)  # until the client hangs up
            return
        try:
            there = await asyncio.open_connection(*self.resolve(*self.places[-1]))
        except OSError:
            await self._send(writer, b"\x05\x05\x00\x01" + bytes(6))
            return
        await self._send(writer, b"\x05\x00\x00\x03\x03abc\x00\x01" + self.behind)
        await relayed((reader, writer), there)

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        step = self.piece or len(data)
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            await asyncio.sleep(0.001 if self.piece else 0)


async def relayed(
    one: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    other: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Copy between two connections until one has ended; then end the other."""
    tasks = [asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        one[1].transport.abort()
        other[1].transport.abort()
        await asyncio.wait(tasks)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def small_proxy(
    proxy: SmallProxy | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[SmallProxy]:
    """Run a proxy.

    Args:
        proxy: how it behaves.
        tls: its own context.
    """
    proxy = proxy or SmallProxy()
    async with stream_server(proxy.serve, tls=tls) as proxy.port:
        yield proxy
