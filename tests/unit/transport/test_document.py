"""transport/document.py, transport/document_status.py: one GET, from small servers on loopback:
over HTTP/1 in the clear, over HTTP/2 with TLS.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame

from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport import Target
from etcd_aio.transport.document import http_get
from etcd_aio.transport.names import Names
from tests.support.scripted import Wire, scripted
from tests.support.stream_server import stream_server

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"


@asynccontextmanager
async def serving(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with stream_server(serve, tls=tls) as port:
        yield port, requests


def target(port: int, tls: ssl.SSLContext | None = None, server_name: str = "localhost") -> Target:
    return Target("127.0.0.1", port, "", f"127.0.0.1:{port}", tls, server_name)


async def test_a_document() -> None:
    async with serving(OK + b"x" * 40000) as (port, requests):
        assert await http_get(target(port), "/version", Names()) == b"x" * 40000
    assert requests == [f"GET /version HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()]


async def test_a_document_from_a_unix_socket(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"{}")
        writer.close()

    async with stream_server(serve, path=tmp_path / "e.sock"):
        assert await http_get(Target("", 0, str(tmp_path / "e.sock"), "e.sock"), "/version", Names()) == b"{}"


async def test_metrics_may_be_longer_than_other_documents() -> None:
    async with serving(OK + b"x" * 200_000) as (port, _):
        assert len(await http_get(target(port), "/metrics", Names())) == 200_000
        with pytest.raises(ConnectError, match="too long"):
            await http_get(target(port), "/version", Names())
    async with serving(OK + b"x" * (1 << 21)) as (port, _):
        with pytest.raises(ConnectError, match="too long"):
            await http_get(target(port), "/metrics", Names())


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
            await http_get(target(port), "/version", Names())


UNHEALTHY = b"HTTP/1.0 503 Service Unavailable\r\n\r\n[-]a failed: x\n\n"


@pytest.mark.parametrize("path", ["/health", "/livez?verbose", "/readyz?verbose&exclude=b"])
async def test_a_member_that_is_not_healthy_says_why(path: str) -> None:
    async with serving(UNHEALTHY) as (port, _):
        assert await http_get(target(port), path, Names()) == b"[-]a failed: x\n\n"
        with pytest.raises(ConnectError, match="does not serve /version: HTTP status 503"):
            await http_get(target(port), "/version?readyz", Names())


@pytest.mark.parametrize("status", [b"500", b"404", b"301"])
async def test_other_statuses_are_no_answer_of_etcd(status: bytes) -> None:
    async with serving(UNHEALTHY.replace(b"503", status)) as (port, _):
        with pytest.raises(ConnectError, match=f"does not serve /readyz: HTTP status {status.decode()}"):
            await http_get(target(port), "/readyz?verbose", Names())


class Frozen(ssl.SSLContext):
    """A context that is shared: whoever changes what it offers breaks the dials of others."""

    is_shared = False

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        assert not self.is_shared
        super().set_alpn_protocols(alpn_protocols)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def theirs(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["h2", "http/1.1"])
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
async def ours(authority: trustme.CA) -> ssl.SSLContext:
    context = Frozen(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2"])
    context.is_shared = True
    # What the server thinks of handshakes that its clients break off may come late, and is not looked at.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    return context


def says(*headers: tuple[str, str], body: bytes = b"") -> Callable[[Wire], Awaitable[None]]:
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        assert wire.requests[stream_id].headers == {
            ":method": "GET",
            ":scheme": "https",
            ":authority": "a",
            ":path": "/version",
        }
        wire.headers(stream_id, headers, end=not body)
        if body:
            wire.data(stream_id, body[:-3])
            wire.data(stream_id, body[-3:], end=True)

    return script


async def test_over_tls_http_2_is_spoken_and_the_context_is_left_alone(
    theirs: ssl.SSLContext, ours: ssl.SSLContext
) -> None:
    async with scripted(says((":status", "200"), body=b"{...}"), tls=theirs) as port:
        to = Target("127.0.0.1", port, "", "a", ours, "localhost")
        assert await http_get(to, "/version", Names()) == b"{...}"
        with pytest.raises(ssl.SSLCertVerificationError):
            await http_get(replace(to, server_name="elsewhere"), "/version", Names())


@pytest.mark.parametrize(("status", "text"), [("404", "HTTP status 404"), ("", "does not serve")])
async def test_over_tls_another_status_is_told(
    status: str, text: str, theirs: ssl.SSLContext, ours: ssl.SSLContext
) -> None:
    headers = ((":status", status),) if status else (("x", "y"),)
    async with scripted(says(*headers), tls=theirs) as port:
        with pytest.raises(ConnectError, match=text):
            await http_get(Target("127.0.0.1", port, "", "a", ours, "localhost"), "/version", Names())


async def test_over_tls_a_peer_that_resets_goes_away_or_breaks_the_protocol_serves_nothing(
    theirs: ssl.SSLContext, ours: ssl.SSLContext
) -> None:
    async def reset(wire: Wire) -> None:
        wire.reset(await wire.request(), ErrorCodes.CANCEL)

    async def go_away(wire: Wire) -> None:
        await wire.request()
        wire.go_away(0)

    async def break_protocol(wire: Wire) -> None:
        await wire.request()
        wire.frame(DataFrame(7, b"x"))

    for script in (reset, go_away, break_protocol):
        async with scripted(script, tls=theirs) as port:
            with pytest.raises(ConnectError, match="does not serve"):
                await http_get(Target("127.0.0.1", port, "", "a", ours, "localhost"), "/version", Names())


async def test_over_tls_too_much_is_refused(theirs: ssl.SSLContext, ours: ssl.SSLContext) -> None:
    async def too_much(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, ((":status", "200"),))
        for _ in range(10):
            wire.data(stream_id, b"x" * 10000)

    async with scripted(too_much, tls=theirs) as port:
        with pytest.raises(ConnectError, match="too long"):
            await http_get(Target("127.0.0.1", port, "", "a", ours, "localhost"), "/version", Names())


async def test_over_tls_a_peer_that_speaks_http_1_alone_is_no_endpoint(
    authority: trustme.CA, ours: ssl.SSLContext
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    async with serving(OK + b"{}", context) as (port, _):
        with pytest.raises(TLSError, match="ALPN"):
            await http_get(Target("127.0.0.1", port, "", "a", ours, "localhost"), "/version", Names())


async def test_a_peer_that_hangs_up_before_tls() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async with stream_server(serve) as port:
        with pytest.raises((ConnectError, OSError)):
            await http_get(target(port, ssl.create_default_context()), "/version", Names())
