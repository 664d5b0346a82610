"""Helpers for tests of both engines: a recording owner, a connection for one test, a server of grpclib."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import trustme
from grpclib.config import Configuration
from grpclib.const import Cardinality, Handler, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from etcd_aio.errors import AttemptFailure
from etcd_aio.fake.engine import FakeEngine
from etcd_aio.transport import (
    Connection,
    ConnectionOwner,
    Engine,
    EngineName,
    Target,
    TransportOptions,
    create_engine,
)
from etcd_aio.transport.gateway.connection import GatewayConnection
from etcd_aio.transport.gateway.engine import GatewayEngine
from tests.support.fake_examples import FakeExamples
from tests.support.gateway_examples import EXAMPLES, gateway_server
from tests.support.until import PATIENCE


class Owner:
    """Records the callbacks of a connection."""

    def __init__(self) -> None:
        self.draining: list[str] = []
        self.lost: list[BaseException | None] = []
        self.is_lost = asyncio.Event()
        self.is_draining = asyncio.Event()

    def on_draining(self, reason: str) -> None:
        self.draining.append(reason)
        self.is_draining.set()

    def on_lost(self, error: BaseException | None) -> None:
        self.lost.append(error)
        self.is_lost.set()


def target(port: int, **changes: Any) -> Target:
    """A plaintext target on this machine."""
    return replace(Target("127.0.0.1", port, "", f"127.0.0.1:{port}"), **changes)


def tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's and the client's, for 127.0.0.1, with HTTP/2 as what they agree on."""
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    for context in (server, client):
        context.set_alpn_protocols(["h2"])
    return server, client


def engine(name: EngineName, **options: Any) -> Engine:
    """The engine, with short times: nothing here is far away."""
    settings = replace(TransportOptions(connect_timeout=PATIENCE), **options)
    if name == FAKE:
        return FakeEngine(_FAKES.link_to, _FAKES, settings)
    return _ToGateway(settings, service=EXAMPLES) if name == "gateway" else create_engine(name, settings)


class _ToGateway(GatewayEngine):
    """Connects to the gateway beside an `example_server`, by the port of the latter; else to the port itself."""

    async def connect(self, target: Target, owner: ConnectionOwner) -> GatewayConnection:
        return await super().connect(replace(target, port=_GATEWAYS.get(target.port, target.port)), owner)


HTTP2_ENGINES: Final[tuple[EngineName, ...]] = ("native", "grpclib")
"""The engines over HTTP/2."""

FAKE: Final[Any] = "fake"
"""The engine of a fake, where an engine is named: it connects to the examples of `example_server`, without a socket."""
_FAKES: Final = FakeExamples()
_GATEWAYS: Final[dict[int, int]] = {}

CLOSE_SECONDS: Final = 25.0
"""Far above what a loaded machine adds, below what waiting for a peer would take (30 in asyncio's own close)."""


def soon(seconds: float = PATIENCE) -> float:
    """A deadline that only a hanging call reaches."""
    return asyncio.get_running_loop().time() + seconds


def leftovers() -> list[str]:
    """The names of the library's tasks that still run."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")]


async def settle() -> None:
    """Let cancelled tasks unwind; they need a few turns of the loop and no time."""
    for _ in range(5):
        await asyncio.sleep(0)


async def failure_of(awaitable: Any) -> AttemptFailure:
    """The failure that `awaitable` ends with."""
    try:
        result = await awaitable
    except AttemptFailure as failure:
        return failure
    raise AssertionError(f"no failure, but {result!r:.100}")


@asynccontextmanager
async def connected(name: EngineName, port: int, **options: Any) -> AsyncIterator[tuple[Connection, Owner]]:
    """A connection and its owner; afterwards it is closed and must have left nothing behind."""
    owner = Owner()
    connection = await engine(name, **options).connect(target(port), owner)
    try:
        yield connection, owner
    finally:
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.aclose()
    await settle()
    assert leftovers() == []
    assert len(owner.lost) == 1, "its end is reported exactly once"
    assert len(owner.draining) <= 1


class _Bytes(CodecBase):
    @property
    def __content_subtype__(self) -> str:
        return "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class Examples:
    """Handlers of well-behaved calls; the paths are `/x/<Name>`."""

    def __init__(self) -> None:
        self.running = 0
        self.cancelled = 0
        self._changed = asyncio.Event()

    async def until_running(self, count: int) -> None:
        """Wait until so many `Slow` calls are running."""
        while self.running != count:
            self._changed.clear()
            await self._changed.wait()

    def __mapping__(self) -> Mapping[str, Handler]:
        kinds = {
            "Echo": (self.echo, Cardinality.UNARY_UNARY),
            "Sized": (self.sized, Cardinality.UNARY_UNARY),
            "Fail": (self.fail, Cardinality.UNARY_UNARY),
            "Slow": (self.slow, Cardinality.UNARY_UNARY),
            "Metadata": (self.metadata, Cardinality.UNARY_UNARY),
            "Count": (self.count, Cardinality.UNARY_STREAM),
            "Flood": (self.flood, Cardinality.UNARY_STREAM),
            "Chat": (self.chat, Cardinality.STREAM_STREAM),
        }
        return {f"/x/{name}": Handler(func, kind, bytes, bytes) for name, (func, kind) in kinds.items()}

    async def echo(self, stream: Any) -> None:
        await stream.send_message(await stream.recv_message())

    async def sized(self, stream: Any) -> None:
        await stream.send_message(b"x" * int(await stream.recv_message()))

    async def fail(self, stream: Any) -> None:
        number, _, text = (await stream.recv_message()).decode().partition(" ")
        raise GRPCError(Status(int(number)), text)

    def slow_begins(self) -> None:
        self.running += 1
        self._changed.set()

    def slow_ends(self) -> None:
        self.running -= 1
        self._changed.set()

    async def slow(self, stream: Any) -> None:
        seconds = float(await stream.recv_message())
        self.slow_begins()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.slow_ends()
        await stream.send_message(b"at last")

    async def metadata(self, stream: Any) -> None:
        await stream.recv_message()
        left = "none" if stream.deadline is None else f"{stream.deadline.time_remaining():.1f}"
        await stream.send_message(f"{sorted(stream.metadata.items())} {stream.user_agent} {left}".encode())

    async def count(self, stream: Any) -> None:
        for number in range(int(await stream.recv_message())):
            await stream.send_message(str(number).encode())

    async def flood(self, stream: Any) -> None:
        await stream.recv_message()
        while True:
            await stream.send_message(b"x" * 2**16)

    async def chat(self, stream: Any) -> None:
        async for message in stream:
            await stream.send_message(message)
            if message == b"fail":
                raise GRPCError(Status.ABORTED, "as asked")


@asynccontextmanager
async def example_server(path: str | None = None, tls: Any = None) -> AsyncIterator[tuple[int, Examples]]:
    """grpclib's server with `Examples`, on 127.0.0.1 or a unix socket; yields its port."""
    examples = Examples()
    config = Configuration(http2_connection_window_size=2**20, http2_stream_window_size=2**18)
    server = Server([examples], codec=_Bytes(), config=config)
    port = 0
    if path is None:
        # Not socket.create_server: asyncio sets TCP_NODELAY only where the protocol is named.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        _FAKES.listen(f"127.0.0.1:{port}", examples)
        await server.start(sock=listener, ssl=tls)
    else:
        await server.start(path=path, ssl=tls)
    try:
        async with gateway_server(examples, tls) as gateway:
            _GATEWAYS[port] = gateway
            yield port, examples
    finally:
        _GATEWAYS.pop(port, None)
        _FAKES.stop(f"127.0.0.1:{port}")
        server.close()
        await server.wait_closed()
