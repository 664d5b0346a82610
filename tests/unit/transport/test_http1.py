"""One GET over HTTP/1, from small servers on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from etcd_aio.errors import ConnectError
from etcd_aio.transport import Target, http_get

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@asynccontextmanager
async def serving(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        server.close()
        await server.wait_closed()


def target(port: int, tls: ssl.SSLContext | None = None, server_name: str = "localhost") -> Target:
    return Target("127.0.0.1", port, "", f"127.0.0.1:{port}", tls, server_name)


async def test_a_document() -> None:
    async with serving(OK + b"x" * 40000) as (port, requests):
        assert await http_get(target(port), "/version") == b"x" * 40000
    assert requests == [f"GET /version HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()]


async def test_a_document_from_a_unix_socket(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"{}")
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "e.sock")
    try:
        assert await http_get(Target("", 0, str(tmp_path / "e.sock"), "e.sock"), "/version") == b"{}"
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "does not serve"),
        (b"\0\0\x12\4\0\0\0\0\0", "does not serve"),
        (b"SSH-2.0-x\r\n\r\n", "does not serve"),
        (b"HTTP/1.0 404 Not Found\r\n\r\n404", "HTTP status 404"),
        (OK + b"x" * 70000, "too long"),
    ],
)
async def test_what_is_no_document(answer: bytes, says: str) -> None:
    async with serving(answer) as (port, _):
        with pytest.raises(ConnectError, match=says):
            await http_get(target(port), "/version")


async def test_over_tls_http_1_is_offered_and_the_context_is_left_as_it_was() -> None:
    authority = trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.set_alpn_protocols(["h2", "http/1.1"])
    offered: list[str | None] = []
    authority.issue_cert("localhost").configure_cert(theirs)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    ours.set_alpn_protocols(["h2"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offered.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(OK + b"y" * 50000)
        await writer.drain()
        writer.close()

    # What the server thinks of handshakes that its clients break off may come late, and is not looked at.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=theirs)
    port = server.sockets[0].getsockname()[1]
    try:
        assert await http_get(target(port, ours), "/version") == b"y" * 50000
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ours, server_hostname="localhost")
        writer.transport.abort()
        with pytest.raises(ssl.SSLCertVerificationError):
            await http_get(target(port, ours, "elsewhere"), "/version")
        with pytest.raises(ssl.SSLCertVerificationError):
            await http_get(target(port, ssl.create_default_context()), "/version")
    finally:
        server.close()
        await server.wait_closed()
    assert offered[:2] == ["http/1.1", "h2"]


async def test_a_peer_that_hangs_up_before_tls() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        with pytest.raises((ConnectError, OSError)):
            await http_get(target(server.sockets[0].getsockname()[1], ssl.create_default_context()), "/version")
    finally:
        server.close()
        await server.wait_closed()
