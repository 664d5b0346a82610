"""transport/proxy/tunnel.py: dials through small proxies, with and without TLS, and through broken ones."""

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trustme

from etcd_aio.errors import ProxyAuthenticationError, ProxyError, TLSError
from etcd_aio.transport import Proxy, Target, TransportOptions
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.handshake import Handshake, HandshakingProtocol, connect
from etcd_aio.transport.names import Address, Names
from etcd_aio.transport.proxy.http_connect import http_connect
from etcd_aio.transport.proxy.tunnel import Tunnel
from tests.support import loops
from tests.support.small_proxy import SmallProxy, small_proxy
from tests.support.stream_server import stream_server

pytestmark = pytest.mark.anyio

SCHEMES = ("http", "socks5", "socks5h")


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str, *protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    context.set_alpn_protocols([*protocols])
    return context


def client_context(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols([*protocols])
    return context


class Recorder(asyncio.Protocol):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


class BufferedRecorder(asyncio.BufferedProtocol):
    """The same, with a small buffer."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = memoryview(bytearray(3))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += bytes(self._buffer[:nbytes])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An endpoint that speaks first."""
    try:
        writer.write(b"welcome ")
        while data := await reader.read(100):
            writer.write(data)
    except OSError:
        pass
    finally:
        writer.transport.abort()


async def check(to: Target, factory: Callable[[], Any] = Recorder, expected: bytes = b"welcome hello") -> None:
    async with asyncio.timeout(20):
        transport, protocol = await dial(await find_route(to, Names(), 5.0), factory)
        transport.write(b"hello")
        while len(protocol.received) < len(expected):  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.005)
        assert protocol.received == expected
        transport.abort()
        await protocol.lost


async def until_closed(proxy: SmallProxy) -> None:
    """Wait until the client has left no connection."""
    async with asyncio.timeout(10):
        while proxy.open:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)


def through(
    scheme: str,
    proxy_port: int,
    port: int,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    **more: Any,
) -> Target:
    proxy = Proxy(scheme, "127.0.0.1", proxy_port, **more)
    return Target(host, port, "", f"{host}:{port}", tls, "member.test", proxy)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("recorder", [Recorder, BufferedRecorder])
@pytest.mark.parametrize("piece", [0, 1])
async def test_plain_text(scheme: str, recorder: Callable[[], Any], piece: int) -> None:
    proxy = SmallProxy(piece=piece)
    async with stream_server(echo) as port, small_proxy(proxy):
        await check(through(scheme, proxy.port, port), recorder)
        assert proxy.places == [("127.0.0.1", port)]
        proxy.behind = b"early 0123456789 "  # in one piece with the reply
        await check(through(scheme, proxy.port, port), recorder, b"early 0123456789 welcome hello")


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_tls_with_the_endpoint(scheme: str, authority: trustme.CA) -> None:
    tls = server_context(authority, "member.test", "h2")
    async with stream_server(echo, tls=tls) as port, small_proxy() as proxy:
        for recorder in (Recorder, BufferedRecorder):
            await check(through(scheme, proxy.port, port, tls=client_context(authority, "h2")), recorder)
        with pytest.raises(TLSError, match="ALPN"):
            await check(through(scheme, proxy.port, port, tls=client_context(authority)))
        wrong = client_context(trustme.CA(), "h2")
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's report of it
        with pytest.raises(ssl.SSLCertVerificationError):
            await check(through(scheme, proxy.port, port, tls=wrong))


async def test_tls_with_the_proxy_and_within_it_with_the_endpoint(authority: trustme.CA) -> None:
    proxy_tls, member_tls = server_context(authority, "127.0.0.1"), server_context(authority, "member.test", "h2")
    mine = client_context(authority)
    async with small_proxy(tls=proxy_tls) as proxy, stream_server(echo) as plain:
        to = Target("127.0.0.1", plain, "", "a", None, "", Proxy("https", "127.0.0.1", proxy.port, tls=mine))
        await check(to)
        async with stream_server(echo, tls=member_tls) as port:
            inner = client_context(authority, "h2")
            for recorder in (Recorder, BufferedRecorder):
                await check(Target("127.0.0.1", port, "", "a", inner, "member.test", to.proxy), recorder)


async def test_a_proxy_whose_certificate_is_wrong_or_that_has_no_tls(authority: trustme.CA) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's report of it
    mine = client_context(authority)
    async with small_proxy(tls=server_context(authority, "other.test")) as proxy:
        to = Target("m1", 1, "", "m1:1", None, "", Proxy("https", "127.0.0.1", proxy.port, tls=mine))
        with pytest.raises(ProxyError, match=rf"TLS with the proxy https://127.0.0.1:{proxy.port} failed: .*certif"):
            await check(to)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with stream_server(refuse) as port:
        to = Target("m1", 1, "", "m1:1", None, "", Proxy("https", "127.0.0.1", port, tls=mine))
        with pytest.raises(ProxyError, match=rf"TLS with the proxy https://127.0.0.1:{port} failed"):
            await check(to)


async def test_bytes_before_tls_are_refused(authority: trustme.CA) -> None:
    async with stream_server(echo) as port, small_proxy(SmallProxy(behind=b"early")) as proxy:
        with pytest.raises(ProxyError, match="before TLS had begun"):
            await check(through("http", proxy.port, port, tls=client_context(authority, "h2")))
        await until_closed(proxy)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_ipv6(scheme: str) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    async with stream_server(echo, host="::1") as port, stream_server(SmallProxy().serve, host="::1") as proxy_port:
        await check(Target("::1", port, "", "a", None, "", Proxy(scheme, "::1", proxy_port)))


async def test_which_side_resolves_a_name() -> None:
    def lookup(host: str) -> list[Address]:
        assert host == "m1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    async with stream_server(echo) as port, small_proxy() as proxy:
        proxy.resolve = lambda host, port: ("127.0.0.1", port)
        for scheme in SCHEMES:
            to = through(scheme, proxy.port, port, "m1")
            transport, protocol = await dial(await find_route(to, Names(lookup), 5.0), Recorder)
            transport.abort()
            await protocol.lost
        assert proxy.places == [("m1", port), ("127.0.0.1", port), ("m1", port)]


async def test_of_the_addresses_of_a_name_the_first_that_the_proxy_reaches_is_taken() -> None:
    def lookup(host: str) -> list[Address]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", 0)) for last in (2, 3, 1)]

    async with stream_server(echo) as port, small_proxy() as proxy:
        transport, protocol = await dial(
            await find_route(through("socks5", proxy.port, port, "m1"), Names(lookup), 5.0), Recorder
        )
        transport.abort()
        await protocol.lost
        assert [host for host, _ in proxy.places] == ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    async with small_proxy() as proxy:
        with pytest.raises(ProxyError, match=r"cannot connect to 127.0.0.2:1: the connection was refused") as caught:
            await dial(await find_route(through("socks5", proxy.port, 1, "m1"), Names(lookup), 5.0), Recorder)
        assert len(caught.value.__notes__) == 2


async def test_an_address_about_which_the_proxy_is_silent_does_not_hold_up_the_others() -> None:
    """Such as one of IPv6, where the proxy's network drops what goes there."""
    async with stream_server(echo) as port, small_proxy(SmallProxy(silent_about="fd00::1")) as proxy:

        def lookup(host: str) -> list[Address]:
            return [
                (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fd00::1", 0, 0, 0)),
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
            ]

        to = through("socks5", proxy.port, port, "m1")
        async with asyncio.timeout(20):
            transport, _ = await dial(await find_route(to, Names(lookup), 5.0), Recorder)
        assert [host for host, _ in proxy.places] == ["fd00::1", "127.0.0.1"]
        transport.abort()
        await until_closed(proxy)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_proxy_that_is_down(scheme: str) -> None:
    with pytest.raises(ProxyError, match=rf"the proxy {scheme}://127.0.0.1:1 cannot be reached: ConnectionRefused"):
        await check(through(scheme, 1, 2))
    with pytest.raises(ProxyError, match=rf"the proxy {scheme}://p.invalid:1 cannot be reached"):
        await check(Target("127.0.0.1", 1, "", "a", None, "", Proxy(scheme, "p.invalid", 1)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("said", [b"", b"H", b"\x05", b"HTTP/1.1 200 OK\r\n"])
async def test_a_proxy_that_hangs_up(scheme: str, said: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        writer.close()

    async with stream_server(hang_up) as port:
        with pytest.raises(ProxyError, match=rf"{scheme}://127.0.0.1:{port} (closed the connection|does not answer)"):
            await check(through(scheme, port, 1))


async def test_a_proxy_that_never_ends_its_answer() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"a: b\r\n" * 1000)
                await writer.drain()
                sent += 6000
        except OSError:
            writer.transport.abort()

    async with stream_server(flood) as port:
        with pytest.raises(ProxyError, match="more than 16384 bytes"):
            await check(through("http", port, 1))
    assert sent < 2**24  # what sockets buffer


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_time_limit_of_a_dial_covers_the_proxy(scheme: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(100):
            pass
        writer.close()

    class Engine(HandshakingProtocol, asyncio.Protocol):
        def __init__(self) -> None:
            self.handshake = Handshake()

    async with stream_server(silent) as port:
        address = replace(through(scheme, port, 9), authority="etcd-headless.etcd:9")  # of a DNS name
        with pytest.raises(
            ProxyError,
            match=rf"the proxy {scheme}://127.0.0.1:{port} did not open a tunnel to 127.0.0.1:9 within 0.05 s",
        ):
            await connect(address, Names(), TransportOptions(connect_timeout=0.05), Engine)


async def test_credentials_are_sent_and_a_refusal_is_told() -> None:
    async with stream_server(echo) as port, small_proxy() as proxy:
        for scheme in SCHEMES:
            await check(through(scheme, proxy.port, port, user="m\u00e9", password="c4n4ry"))
        assert proxy.credentials == ["m\u00e9:c4n4ry"] * 3
        proxy.reply = b"HTTP/1.1 407 c4n4ry\r\n\r\n"
        with pytest.raises(ProxyAuthenticationError, match="refused the name and password") as caught:
            await check(through("http", proxy.port, port, user="me", password="c4n4ry"))
        assert "c4n4ry" not in repr(caught.value)
    to = through("http", 1, 2, user="me-c4n4ry", password="c4n4ry")
    assert "c4n4ry" not in repr(to)


async def test_a_connection_that_ends_before_it_is_handed_over_is_told() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async with stream_server(reset) as port:
        proxy = Proxy("http", "127.0.0.1", port)
        _, tunnel = await asyncio.get_running_loop().create_connection(
            lambda: Tunnel(proxy, http_connect(proxy, "m1", 1)), "127.0.0.1", port
        )
        await tunnel.opened
        async with asyncio.timeout(10):
            while not tunnel._is_lost:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)
        with pytest.raises(ConnectionResetError, match=rf"through the proxy http://127.0.0.1:{port} has ended"):
            await tunnel.hand_over(Recorder, None, None)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("has_tls", [False, True])
async def test_a_dial_cancelled_at_any_turn_leaves_no_socket(scheme: str, has_tls: bool, authority: trustme.CA) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's report of hang-ups
    tls = server_context(authority, "member.test", "h2") if has_tls else None
    mine = client_context(authority, "h2") if has_tls else None
    async with stream_server(echo, tls=tls) as port, small_proxy() as proxy:
        for turns in range(0, 60, 2):
            route = await find_route(through(scheme, proxy.port, port, tls=mine), Names(), 5.0)
            task = asyncio.create_task(dial(route, Recorder))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                transport, protocol = task.result()
                transport.abort()
                await protocol.lost
            for _ in range(5):
                await asyncio.sleep(0)
        await until_closed(proxy)
        gc.collect()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")] == []
