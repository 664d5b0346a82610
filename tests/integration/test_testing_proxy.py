"""Every fault of the proxy, between plain sockets: an echo behind it, a client before it, on both event loops."""

# The echo behind the proxy has no events to wait for.
# ruff: noqa: ASYNC110

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from etcd_aio.testing import Directions, FaultProxy
from etcd_aio.testing.ports import free_ports
from tests.support import loops
from tests.support.stream_server import stream_server
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio

LONG_ENOUGH = 0.15  # to see that nothing comes


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


class Echo:
    """A server that sends back what it gets, and ends its side after the client has ended its own."""

    def __init__(self) -> None:
        self.accepted = 0
        self.received = 0
        self.ends: list[str] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end = "fin"
        self.accepted += 1
        try:
            while data := await reader.read(1 << 16):
                self.received += len(data)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            end = "rst"
        self.ends.append(end)
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with stream_server(self._serve) as port:
            yield f"http://127.0.0.1:{port}"


class Peer:
    """A client on a bare socket, so that FIN and RST can be told apart."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.flooded = 0

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def flood(self) -> None:
        """Send for ever."""
        while True:
            await asyncio.get_running_loop().sock_sendall(self.socket, bytes(1 << 16))
            self.flooded += 1 << 16

    async def receive(self, size: int) -> bytes:
        """Exactly `size` bytes, or fewer at the end of the connection."""
        data = bytearray()
        async with asyncio.timeout(PATIENCE):
            while len(data) < size:
                chunk = await asyncio.get_running_loop().sock_recv(self.socket, size - len(data))
                if not chunk:
                    break
                data += chunk
        return bytes(data)

    async def echo(self, data: bytes) -> bytes:
        await self.send(data)
        return await self.receive(len(data))

    async def hears_nothing(self) -> bool:
        try:
            async with asyncio.timeout(LONG_ENOUGH):
                await asyncio.get_running_loop().sock_recv(self.socket, 1)
        except TimeoutError:
            return True
        return False

    async def end(self) -> str:
        """How the connection ends: "fin" or "rst". Bytes before it count as neither."""
        try:
            return "fin" if not await self.receive(1) else "bytes"
        except ConnectionResetError:
            return "rst"


@asynccontextmanager
async def connected(proxy: FaultProxy) -> AsyncIterator[Peer]:
    url = urlsplit(proxy.endpoint)
    with contextlib.closing(socket.socket()) as connection:
        connection.setblocking(False)
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_connect(connection, (url.hostname, url.port))
        yield Peer(connection)


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, FaultProxy]]:
    server = Echo()
    async with server.running() as endpoint, FaultProxy(endpoint) as proxy:
        yield server, proxy
    assert proxy.statistics().connections_open == 0
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert not [name for name in names if name.startswith("fault-proxy")], "no task is left"


Case = tuple[Echo, FaultProxy]


async def eventually(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_without_a_fault_everything_passes_and_is_counted(echo: Case) -> None:
    _, proxy = echo
    data = bytes(range(256)) * 4096
    async with connected(proxy) as peer:
        sending = asyncio.create_task(peer.send(data))
        assert await peer.receive(len(data)) == data
        await sending
        counted = proxy.statistics()
        assert (counted.connections_accepted, counted.connections_open) == (1, 1)
        assert counted.bytes_to_server == counted.bytes_to_client == len(data)
    await eventually(lambda: proxy.statistics().connections_open == 0)
    assert proxy.endpoint.startswith("http://127.0.0.1:")


async def test_a_half_closed_connection_passes_as_one(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        await peer.send(b"last words")
        peer.socket.shutdown(socket.SHUT_WR)
        assert await peer.receive(100) == b"last words"
    assert server.ends == ["fin"]


async def test_a_reset_passes_as_one(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    await eventually(lambda: server.ends)
    assert server.ends == ["rst"]


async def test_refuse_and_accept_again_on_the_same_port(echo: Case) -> None:
    _, proxy = echo
    endpoint = proxy.endpoint
    async with connected(proxy) as early:
        proxy.refuse()
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            async with connected(proxy):
                pass
        assert await early.echo(b"open ones go on") == b"open ones go on"
        proxy.accept()
        proxy.accept()
        async with connected(proxy) as late:
            assert await late.echo(b"again") == b"again"
    assert proxy.endpoint == endpoint


async def test_a_target_that_is_down_shows_as_a_reset() -> None:
    (port,) = free_ports(1)
    async with FaultProxy(f"http://127.0.0.1:{port}") as proxy, connected(proxy) as peer:
        assert await peer.end() == "rst"


async def test_cut_ends_both_sides_with_fin(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer, connected(proxy) as other:
        assert await peer.echo(b"x") == await other.echo(b"x") == b"x"
        proxy.cut()
        assert proxy.statistics().connections_open == 0
        assert await peer.end() == await other.end() == "fin"
        await eventually(lambda: len(server.ends) == 2)
        assert server.ends == ["fin", "fin"]
        async with connected(proxy) as new:
            assert await new.echo(b"new ones are served") == b"new ones are served"


async def test_cut_is_a_fin_even_while_bytes_are_on_their_way(echo: Case) -> None:
    _, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.black_hole()
        await peer.send(b"unread" * 1000)  # close() would answer these with RST
        proxy.cut()
        assert await peer.end() == "fin"
        await peer.send(b"into the half-closed connection")
        await asyncio.sleep(LONG_ENOUGH)
        assert peer.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0, "no RST follows the FIN"


async def test_reset_ends_both_sides_with_rst(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.reset()
        assert await peer.end() == "rst"
        await eventually(lambda: server.ends)
        assert server.ends == ["rst"]


async def test_a_black_hole_towards_the_server(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.black_hole("to_server")
        await peer.send(b"later")
        assert await peer.hears_nothing()
        assert server.received == 1
        proxy.heal()
        assert await peer.receive(5) == b"later"


async def test_a_black_hole_towards_the_client(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.black_hole("to_client")
        await peer.send(b"later")
        assert await peer.hears_nothing()
        assert server.received == 6, "the other direction goes on"
        proxy.heal()
        assert await peer.receive(5) == b"later"


async def test_new_connections_into_a_black_hole_are_accepted_and_silent(echo: Case) -> None:
    server, proxy = echo
    proxy.black_hole()
    async with connected(proxy) as peer:
        await peer.send(b"hello")
        assert await peer.hears_nothing()
        assert server.accepted == 0
        assert proxy.statistics().connections_open == 1
        proxy.heal()
        assert await peer.receive(5) == b"hello"


async def test_a_black_hole_hides_the_end_of_a_connection(echo: Case) -> None:
    server, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.black_hole()
    await asyncio.sleep(LONG_ENOUGH)
    assert server.ends == []


@pytest.mark.parametrize("fault", [FaultProxy.black_hole, lambda proxy: proxy.throttle(1), None])
async def test_back_pressure_reaches_the_sender(echo: Case, fault: Callable[[FaultProxy], None] | None) -> None:
    _, proxy = echo  # without a fault it is ourselves that do not read the echo
    async with connected(proxy) as peer:
        if fault is not None:
            fault(proxy)
        flood = asyncio.create_task(peer.flood())
        _, waiting = await asyncio.wait({flood}, timeout=1.0)
        assert peer.flooded < 64 << 20, "buffers without a bound would take this for ever"
        assert waiting, "it is held up"
        flood.cancel()


@pytest.mark.parametrize("direction", ["to_server", "to_client", "both"])
async def test_delay_is_a_latency_in_each_direction(echo: Case, direction: Directions) -> None:
    _, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.delay(0.1, direction)
        began = time.monotonic()
        # Messages one after the other are delayed together, not in sum.
        for _ in range(200):
            await peer.send(b"y")
            await asyncio.sleep(0.001)
        assert await peer.receive(200) == b"y" * 200
        took = time.monotonic() - began
        assert took >= (0.2 if direction == "both" else 0.1)
        assert took < 0.1 * 200, "the delays did not add up"
        proxy.heal()
        assert await peer.echo(b"z") == b"z"


async def test_throttle_slows_one_direction(echo: Case) -> None:
    server, proxy = echo
    proxy.throttle(20_000, "to_client")
    async with connected(proxy) as peer:
        began = time.monotonic()
        await peer.send(bytes(8_000))
        await eventually(lambda: server.received == 8_000)
        assert proxy.statistics().bytes_to_client < 8_000, "the echo still drips"
        assert await peer.receive(8_000) == bytes(8_000)
        assert time.monotonic() - began >= 0.3
        proxy.throttle(None)
        assert await peer.echo(bytes(100_000)) == bytes(100_000)


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("n_bytes", [0, 1, 700])
async def test_cut_after_so_many_bytes_to_the_client(echo: Case, n_bytes: int, how: str) -> None:
    _, proxy = echo
    proxy.cut_after(n_bytes, "to_client", "fin" if how == "fin" else "rst")
    async with connected(proxy) as peer:
        await peer.send(bytes(1000))
        if how == "fin":
            assert await peer.receive(1000) == bytes(n_bytes)
        else:
            # RST may overtake bytes that were not read yet, as it may in any network.
            assert await peer.end() in ("rst", "bytes")
    assert proxy.statistics().bytes_to_client == n_bytes
    async with connected(proxy) as peer:
        assert await peer.echo(bytes(1000)) == bytes(1000), "it was for one connection"


async def test_cut_after_so_many_bytes_to_the_server(echo: Case) -> None:
    server, proxy = echo
    proxy.cut_after(10, "to_server", "fin")
    async with connected(proxy) as peer:
        await peer.send(bytes(25))
        assert await peer.receive(25) in (bytes(10), b"")
    await eventually(lambda: server.ends)
    assert server.received == proxy.statistics().bytes_to_server == 10


async def test_cut_after_counts_across_pieces_and_can_end_in_silence(echo: Case) -> None:
    _, proxy = echo
    proxy.cut_after(5, "to_client", "silence")
    async with connected(proxy) as peer, connected(proxy) as other:
        assert await peer.echo(b"abc") == b"abc"
        await peer.send(b"defg")
        assert await peer.receive(2) == b"de"
        assert await peer.hears_nothing()
        assert await other.echo(b"other connections live") == b"other connections live"
        proxy.heal()
        assert await peer.receive(2) == b"fg"


async def test_cut_after_on_open_connections(echo: Case) -> None:
    _, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"abc") == b"abc"
        proxy.cut_after(2, "to_client", "fin", connection="open")
        assert await peer.echo(b"def") == b"de"


async def test_heal_forgets_cuts_and_listens_again(echo: Case) -> None:
    _, proxy = echo
    async with connected(proxy) as peer:
        proxy.cut_after(2, "to_client", "fin", connection="open")
        proxy.cut_after(2, "to_client", "fin")
        proxy.refuse()
        proxy.heal()
        assert await peer.echo(b"abcdef") == b"abcdef"
        async with connected(proxy) as other:
            assert await other.echo(b"abcdef") == b"abcdef"


async def test_a_connection_that_admit_rejects_stays_silent(echo: Case) -> None:
    server, proxy = echo
    asked: list[int] = []

    async def admit(port: int) -> bool:
        asked.append(port)
        return len(asked) > 1

    target = f"http://127.0.0.1:{urlsplit(proxy.endpoint).port}"
    async with FaultProxy(target, admit=admit) as guarded, connected(guarded) as first, connected(guarded) as second:
        await first.send(b"a")
        assert await second.echo(b"b") == b"b"
        assert asked == [first.socket.getsockname()[1], second.socket.getsockname()[1]]
        assert await first.hears_nothing()
        assert server.received == 1


async def test_closing_resets_and_refuses_and_may_be_repeated(echo: Case) -> None:
    _, proxy = echo
    async with connected(proxy) as peer:
        assert await peer.echo(b"x") == b"x"
        proxy.black_hole()
        await proxy.aclose()
        await proxy.aclose()
        assert await peer.end() == "rst"
        with pytest.raises(ConnectionRefusedError):
            async with connected(proxy):
                pass


async def test_closing_at_once_after_a_connection_leaks_nothing(echo: Case) -> None:
    _, proxy = echo
    assert proxy._listener is not None
    asyncio.get_running_loop().remove_reader(proxy._listener)
    async with connected(proxy), connected(proxy):
        proxy._on_connection()
        links = list(proxy._connections.values())
        assert len(links) == 2
        await proxy.aclose()  # before the links had their first turn
        assert [(link._client.fileno(), link._server.fileno()) for link in links] == [(-1, -1)] * 2


async def test_a_proxy_keeps_the_scheme_and_serves_ipv6() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async with stream_server(hello, host="::1") as port, FaultProxy(f"https://[::1]:{port}") as proxy:
        assert proxy.endpoint.startswith("https://127.0.0.1:")
        async with connected(proxy) as peer:
            assert await peer.receive(9) == b"hello"
