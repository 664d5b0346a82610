"""transport/dial.py, transport/race.py: plain, TLS, unix; the first address wins, the others leave nothing."""

import asyncio
import gc
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport import dial as dial_module
from etcd_aio.transport import race
from etcd_aio.transport.dial import _alternating, _race, dial, find_route
from etcd_aio.transport.interface import Target
from etcd_aio.transport.names import Address, Names
from tests.support import loops
from tests.support.stream_server import stream_server

pytestmark = pytest.mark.anyio


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("member.test").configure_cert(context)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2"])
    return context


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(100):
            writer.write(data)
    except OSError:
        pass
    finally:
        writer.transport.abort()


class Recorder(asyncio.Protocol):
    def __init__(self) -> None:
        self.got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.got.done():
            self.got.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


async def dialled(to: Target, factory: Callable[[], Recorder]) -> tuple[asyncio.Transport, Recorder]:
    return await dial(await find_route(to, Names(), 5.0), factory)


async def check_echo(to: Target) -> None:
    async with asyncio.timeout(5):
        transport, protocol = await dialled(to, Recorder)
        transport.write(b"hello")
        assert await protocol.got == b"hello"
        transport.abort()
        await protocol.lost


def plain(port: int, host: str = "127.0.0.1") -> Target:
    return Target(host, port, "", "a")


async def test_plain() -> None:
    async with stream_server(echo) as port:
        await check_echo(plain(port))
        await check_echo(plain(port, "localhost"))


async def test_a_unix_socket_with_and_without_tls(tmp_path: Path, authority: trustme.CA) -> None:
    bare, secure = str(tmp_path / "a"), str(tmp_path / "b")
    async with stream_server(echo, path=bare), stream_server(echo, tls=server_context(authority, "h2"), path=secure):
        await check_echo(Target("", 0, bare, "localhost"))
        await check_echo(Target("", 0, secure, "localhost", client_context(authority), "member.test"))
    with pytest.raises(FileNotFoundError):
        await dialled(Target("", 0, str(tmp_path / "none"), "localhost"), Recorder)


async def test_tls_that_agrees_on_http2(authority: trustme.CA) -> None:
    async with stream_server(echo, tls=server_context(authority, "http/1.1", "h2")) as port:
        await check_echo(Target("127.0.0.1", port, "", "a", client_context(authority), "member.test"))


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
async def test_tls_that_does_not_agree_on_http2(authority: trustme.CA, protocols: tuple[str, ...]) -> None:
    made: list[Recorder] = []

    def factory() -> Recorder:
        made.append(Recorder())
        return made[0]

    async with stream_server(echo, tls=server_context(authority, *protocols)) as port:
        to = Target("127.0.0.1", port, "", "a", client_context(authority), "member.test")
        with pytest.raises(TLSError, match="ALPN"):
            await dialled(to, factory)
        await asyncio.wait_for(made[0].lost, 15)


async def test_a_certificate_of_another_name_or_authority_is_refused(authority: trustme.CA) -> None:
    # In debug mode asyncio reports what the server makes of a client that hangs up; it is no news here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with stream_server(echo, tls=server_context(authority, "h2")) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await dialled(Target("127.0.0.1", port, "", "a", client_context(authority), "other.test"), Recorder)
        with pytest.raises(ssl.SSLCertVerificationError):
            await dialled(Target("127.0.0.1", port, "", "a", client_context(trustme.CA()), "member.test"), Recorder)


async def test_tls_to_a_plain_port_is_an_os_error(authority: trustme.CA) -> None:
    async with stream_server(echo) as port:
        with pytest.raises(OSError, match=r"(?i)ssl|tls"):
            await dialled(Target("127.0.0.1", port, "", "a", client_context(authority), "member.test"), Recorder)


async def test_a_peer_that_hangs_up_on_a_handshake_is_a_tls_error(authority: trustme.CA) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with stream_server(hang_up) as port:
        with pytest.raises(
            TLSError, match=r"hung up .* it was stopped just now, or it does not serve TLS, or requires a client cert"
        ):
            await dialled(Target("127.0.0.1", port, "", "a", client_context(authority), "member.test"), Recorder)


async def test_nobody_there() -> None:
    with pytest.raises(ConnectionRefusedError):
        await dialled(plain(1), Recorder)


@pytest.mark.parametrize("host", ["a" * 70 + ".invalid", "a..b"])
async def test_a_host_that_cannot_be_one(host: str) -> None:
    with pytest.raises((ConnectError, OSError)):
        await dialled(plain(1, host), Recorder)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_dial_needs_no_thread_of_the_application(host: str) -> None:
    go = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        busy = asyncio.get_running_loop().run_in_executor(None, go.wait)
        try:
            async with stream_server(echo) as port:
                await check_echo(plain(port, host))
        finally:
            go.set()
            await busy


async def test_a_name_that_is_not_resolved_in_time_is_told() -> None:
    go = threading.Event()

    def slow(host: str) -> list[Address]:
        go.wait()
        return []

    try:
        with pytest.raises(ConnectError, match="'m1' was not resolved in time"):
            await find_route(plain(1, "m1"), Names(slow), 0.01)
    finally:
        go.set()


async def test_files_that_are_not_read_in_time_are_told() -> None:
    class Slow:
        server_name = ""

        async def context(self) -> ssl.SSLContext:
            await asyncio.Event().wait()
            raise AssertionError

        def on_handshake(self, tls: ssl.SSLObject) -> None:
            raise AssertionError

    with pytest.raises(ConnectError, match="certificate files were not read"):
        await find_route(Target("m1", 1, "", "a", Slow(), "a"), Names(), 0.01)


# --- the race of addresses ---


def address(port: int, family: int = socket.AF_INET, host: str = "127.0.0.1") -> Any:
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))


@asynccontextmanager
async def black_hole() -> AsyncIterator[int]:
    """A local listener that nobody accepts from and whose backlog is full."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    fillers = [socket.socket() for _ in range(8)]
    try:
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port
    finally:
        for one in (listener, *fillers):
            one.close()


async def test_a_refused_address_gives_way_to_the_next_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "DELAY", 3600.0)
    async with stream_server(echo) as port:
        sock = await _race([address(1), address(port)])
        assert sock.getpeername()[1] == port
        sock.close()


async def test_a_silent_address_does_not_hold_up_the_next() -> None:
    async with stream_server(echo) as port, black_hole() as silent:
        sock = await asyncio.wait_for(_race([address(silent), address(port)]), 15)
        assert sock.getpeername()[1] == port
        sock.close()
    await asyncio.sleep(0)
    gc.collect()  # the loser's socket would warn, and warnings are errors


async def test_when_all_fail_every_reason_is_told() -> None:
    ports = [7, 19]
    with pytest.raises(ConnectionRefusedError, match=str(ports[0])) as caught:
        await _race([address(port) for port in ports])
    assert str(ports[1]) in caught.value.__notes__[0]
    with pytest.raises(OSError, match="no address"):
        await _race([])


async def cancelled_after(turns: int, call: Callable[[], Awaitable[Any]]) -> list[Any]:
    got: list[Any] = []

    async def run() -> None:
        got.append(await call())

    task = asyncio.create_task(run())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return got


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_dial_cancelled_at_any_turn_leaves_no_socket(host: str) -> None:
    async with stream_server(echo) as port:
        for turns in range(30):
            for transport, _ in await cancelled_after(turns, lambda: dialled(plain(port, host), Recorder)):
                transport.abort()
            for _ in range(5):
                await asyncio.sleep(0)
        gc.collect()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")] == []


async def test_a_peer_that_resets_at_once_leaves_no_socket_that_closes_the_descriptor_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closed twice, a descriptor may be another connection's by the second time."""
    sockets: list[socket.socket] = []

    async def remembered(where: Address) -> socket.socket:
        sockets.append(await connect_socket(where))
        return sockets[-1]

    connect_socket = dial_module._connect_socket
    monkeypatch.setattr(dial_module, "_connect_socket", remembered)

    class Resetting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()  # type: ignore[attr-defined]

    class Greeting(Recorder):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.write(b"hello")  # type: ignore[attr-defined]  # which may fail at once

    async def reset(to: Target) -> None:
        try:
            transport, protocol = await dialled(to, Greeting)
        except OSError:
            return
        transport.abort()
        await protocol.lost

    async with await asyncio.get_running_loop().create_server(Resetting, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            await asyncio.gather(*(reset(plain(port)) for _ in range(30)))
    await asyncio.sleep(0)
    assert len(sockets) == 30
    assert [sock for sock in sockets if sock.fileno() != -1] == []


async def test_families_take_turns() -> None:
    four, six = socket.AF_INET, socket.AF_INET6
    given = [address(1, six), address(2, six), address(3, six), address(4, four), address(5, four)]
    assert [one[4][1] for one in _alternating(given)] == [1, 4, 2, 5, 3]
    assert [one[4][1] for one in _alternating(given[3:])] == [4, 5]
