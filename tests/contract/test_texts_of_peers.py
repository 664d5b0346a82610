"""Every way by which a text of the network gets into errors, log lines and statistics: none brings control characters.

The detector of secrets also fails a test in which an error or a log line is not one printable line. So a test here only
has to open the door, and to look at what the detector does not see.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trustme
from h2.errors import ErrorCodes
from hpack import Encoder
from websockets.utils import accept_key

from etcd_aio import TLS, Client, EtcdError
from etcd_aio.discovery.srv_records import SrvAnswer, SrvRecord, endpoints_of_answer
from etcd_aio.errors import DiscoveryError
from etcd_aio.transport import EngineName
from tests.support.scripted import Wire, scripted
from tests.support.stream_server import stream_server
from tests.support.transport import HTTP2_ENGINES

pytestmark = pytest.mark.anyio

EVIL = "\x1b[31mred\r\nERROR forged\0\x07\x9b\u2028"
QUOTED = "".join(f"%{byte:02X}" for byte in EVIL.encode())
LATIN = EVIL.encode("latin-1", "replace")


def check(error: BaseException, client: Client) -> None:
    """The error, all that belongs to it, and what the client says of itself are printable."""
    texts = [str(error), repr(error), *getattr(error, "__notes__", ())]
    texts += [str(one) for one in getattr(error, "attempts", ())]
    texts += [repr(client), str(client.statistics()), *(str(one.last_error) for one in client.statistics())]
    assert [text for text in texts if not text.isprintable()] == []


async def provoke(endpoint: str, engine: EngineName, tls: TLS | None = None) -> None:
    """Make calls and watch until they end by an error, or for a moment."""
    async with Client(endpoint, engine=engine, tls=tls, timeout=0.4, connect_timeout=0.4) as client:
        for _ in range(2):
            with pytest.raises(EtcdError) as caught:
                await client.get("a")
            check(caught.value, client)
        try:
            async with asyncio.timeout(0.3), client.watch("a") as watch:
                async for _ in watch:
                    pass
        except TimeoutError:
            pass
        except EtcdError as error:
            check(error, client)


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio")


# --- HTTP/2 ---


def trailers(*fields: tuple[bytes, bytes]) -> Callable[[Wire, int], None]:
    def write(wire: Wire, stream_id: int) -> None:
        block = Encoder().encode([(b":status", b"200"), *fields])
        wire.raw_frame(1, block, stream_id=stream_id, flags=5)

    return write


GRPC = (b"content-type", b"application/grpc")
HTTP2_DOORS: dict[str, Callable[[Wire, int], None]] = {
    "debug data of GOAWAY": lambda wire, stream_id: wire.go_away(0, ErrorCodes.ENHANCE_YOUR_CALM, EVIL.encode()),
    "debug data of a late GOAWAY": lambda wire, stream_id: wire.go_away(stream_id, ErrorCodes.NO_ERROR, EVIL.encode()),
    "grpc-message": trailers(GRPC, (b"grpc-status", b"14"), (b"grpc-message", QUOTED.encode())),
    "raw grpc-message": trailers(GRPC, (b"grpc-status", b"9"), (b"grpc-message", b"a\x1b[31m\x07\x9b")),
    "grpc-status": trailers(GRPC, (b"grpc-status", b"\x1b[31m")),
    "content-type": trailers((b"content-type", b"\x1b[31m")),
    "an odd reset": lambda wire, stream_id: wire.raw_frame(3, b"\xff\xff\xff\xff", stream_id=stream_id),
}
"""What a server answers to a request."""


@pytest.mark.parametrize("door", HTTP2_DOORS)
async def test_texts_of_http2(name: EngineName, door: str) -> None:
    async def script(wire: Wire) -> None:
        while True:
            HTTP2_DOORS[door](wire, await wire.opened())

    async with scripted(script) as port:
        await provoke(f"http://127.0.0.1:{port}", name)


async def test_texts_of_a_goaway_that_comes_first(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.go_away(0, ErrorCodes.NO_ERROR, EVIL.encode())

    async with scripted(script) as port:
        await provoke(f"http://127.0.0.1:{port}", name)


# --- HTTP/1, and what is neither ---


def http1(status: bytes = b"200 OK", headers: bytes = b"", body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


VERSION = http1(body=b'{"etcdserver":"3.6.1","etcdcluster":"3.6.0"}')
HEADER = {"cluster_id": "1", "member_id": "2", "revision": "3", "raft_term": "4"}
GATEWAY_DOORS: dict[str, tuple[bytes, bytes]] = {
    "reason phrase": (VERSION, http1(b"502 a\x9b\xe2\x80\xa8b")),
    "malformed reason phrase": (VERSION, http1(b"502 \x1b[31m")),
    "server": (VERSION, http1(b"502 Bad", b"Server: a\x9bb\x85\r\n")),
    "content-type": (VERSION, http1(headers=b"Content-Type: \x9b31m\r\n", body=b"<html>")),
    "message of a status": (VERSION, http1(b"503 U", body=json.dumps({"code": 14, "message": EVIL}).encode())),
    "unknown message": (VERSION, http1(b"400 B", body=json.dumps({"code": 9, "message": EVIL}).encode())),
    "status of a stream": (VERSION, http1(body=json.dumps({"error": {"code": 9, "message": EVIL}}).encode())),
    "body": (VERSION, http1(b"404 Not Found", body=LATIN)),
    "names of fields": (
        VERSION,
        http1(body=json.dumps({"header": HEADER | {EVIL: 1}, EVIL: EVIL, "count": EVIL}).encode()),
    ),
    "version": (http1(body=json.dumps({"etcdserver": f"3.4.{EVIL}"}).encode()), b""),
    "old version": (http1(body=json.dumps({"etcdserver": f"2.3.{EVIL}"}).encode()), b""),
    "status of version": (http1(b"500 \x9b", b"Server: \x9b31m\r\n"), b""),
    "no HTTP": (LATIN, b""),
}


@asynccontextmanager
async def peer(version: bytes, reply: bytes) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"Content-Length: " in head:
                    await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
                key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
                if key:
                    accept = accept_key(key.decode()).encode()
                    writer.write(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
                    writer.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
                    reason = b"\x03\xe9" + EVIL.encode()
                    writer.write(b"\x88" + bytes([len(reason)]) + reason)
                else:
                    writer.write(version if b" /version " in head or b"PRI " in head else reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    async with stream_server(serve) as port:
        yield port


@pytest.mark.parametrize("door", GATEWAY_DOORS)
async def test_texts_of_http1(door: str) -> None:
    async with peer(*GATEWAY_DOORS[door]) as port:
        await provoke(f"http://127.0.0.1:{port}", "gateway")


@pytest.mark.parametrize("engine", [*HTTP2_ENGINES, "auto"])
@pytest.mark.parametrize(
    "first", [LATIN, b"HTTP/1.1 400 \x1b[31m\r\nServer: \x1b\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x1b"]
)
async def test_texts_of_a_peer_that_speaks_no_http2(engine: EngineName, first: bytes) -> None:
    async with peer(first, b"") as port:
        await provoke(f"http://127.0.0.1:{port}", engine)


# --- TLS and DNS ---


@pytest.mark.parametrize("engine", [*HTTP2_ENGINES, "gateway"])
async def test_names_in_certificates(engine: EngineName) -> None:
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("example.org", common_name=EVIL).configure_cert(server)

    async def script(wire: Wire) -> None:
        pass

    context = ssl.create_default_context()
    authority.configure_trust(context)
    # In debug mode asyncio reports that the client has refused the server.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with (
        scripted(script, tls=server) as port,
        Client(f"https://127.0.0.1:{port}", engine=engine, tls=context, timeout=0.4) as client,
    ):
        with pytest.raises(EtcdError) as caught:
            await client.get("a")
        check(caught.value, client)


def test_names_in_dns() -> None:
    records = tuple(SrvRecord(0, 0, port, host) for port, host in ((1, EVIL), (0, "a"), (2, f"m.{EVIL}.b")))
    for within in ("", "b"):
        with pytest.raises(DiscoveryError) as caught:
            endpoints_of_answer(SrvAnswer(records), "service", is_tls=True, within=within, random=lambda: 0.5)
        assert str(caught.value).isprintable()
