"""What the gateway engine does with every kind of HTTP/1 peer: what becomes of a request, and that nothing hangs."""

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trustme
from websockets.utils import accept_key

from etcd_aio import Client, methods, pb
from etcd_aio.codec import decode, encode
from etcd_aio.errors import (
    AttemptFailure,
    ConnectError,
    ConnectionLostError,
    Delivery,
    LocalReason,
    MalformedReplyError,
    StatusCode,
    TLSError,
)
from etcd_aio.http2 import FloodBudget
from etcd_aio.transport import Connection, Stream, TransportOptions
from etcd_aio.transport.auto import AutoEngine
from etcd_aio.transport.gateway.connection import GatewayConnection
from etcd_aio.transport.gateway.engine import GatewayEngine
from etcd_aio.transport.gateway.pool import MOST_SOCKETS
from etcd_aio.transport.gateway.service import ETCD, Service
from etcd_aio.transport.native.connection import NativeConnection
from tests.support.gateway_examples import EXAMPLES, to_json
from tests.support.no_collections import no_collections
from tests.support.stream_server import stream_server
from tests.support.transport import (
    CLOSE_SECONDS,
    Owner,
    connected,
    example_server,
    failure_of,
    leftovers,
    settle,
    soon,
    target,
)
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio

VERSION = b'{"etcdserver":"3.6.1","etcdcluster":"3.6.0"}'
HTML = b"<html>502 Bad Gateway</html>"
ANSWERED, UNKNOWN = Delivery.ANSWERED, Delivery.UNKNOWN
PLAIN = replace(ETCD, probe=None)


def answer(body: bytes, status: int = 200, *, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Status\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), headers, body)


def chunked(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


@dataclass
class Peer:
    """A scripted peer: `reply` gets path and body of each request besides `/version`, and writes what it likes.

    `version` is the answer to that one, `gate` that to a GET of the gateway, and `preface` the answer to HTTP/2.
    """

    reply: Callable[["Peer", str, bytes, asyncio.StreamWriter], Awaitable[None]]
    version: bytes = answer(VERSION)
    gate: bytes = answer(b"Method Not Allowed\n", 405)
    preface: bytes = b""
    prefaces: int = 0
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    sockets: int = 0
    open_now: int = 0
    most: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sockets += 1
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                path = head[0].split(" ")[1]
                if head[0].startswith("PRI "):
                    self.prefaces += 1
                    writer.write(self.preface)
                    await reader.read()  # the rest of what HTTP/2 begins with, until the client has gone
                    return
                headers = dict(line.split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("Content-Length", "0")))
                if path == "/version":
                    writer.write(self.version)
                    continue
                if path == ETCD.gate and head[0].startswith("GET "):
                    writer.write(self.gate)
                    continue
                self.requests.append((path, headers, body))
                await self.reply(self, path, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open_now -= 1
            writer.transport.abort()


def always(data: bytes) -> Callable[[Peer, str, bytes, asyncio.StreamWriter], Awaitable[None]]:
    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return reply


async def silent(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    pass


@asynccontextmanager
async def link(
    peer: Peer, service: Service = EXAMPLES, **options: Any
) -> AsyncIterator[tuple[GatewayConnection, Owner, int]]:
    owner = Owner()
    async with stream_server(peer.serve) as port:
        engine = GatewayEngine(replace(TransportOptions(connect_timeout=PATIENCE), **options), service=service)
        connection = await engine.connect(target(port), owner)
        try:
            yield connection, owner, port
        finally:
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.aclose()
        await settle()
        assert leftovers() == []
        assert len(owner.lost) == 1


async def begun(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Wait for the head of the first request behind `/version`; whether it has come."""
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(VERSION))
        await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    return True


# --- what becomes of a request ---


@pytest.mark.parametrize(
    "whole", [answer(to_json(b"ok")), chunked(to_json(b"ok")), answer(b'{"code":9,"message":"no"}', 400)]
)
async def test_an_answer_that_is_cut_at_any_byte_leaves_the_outcome_unknown(whole: bytes) -> None:
    size = 0

    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole[:size])
        if size < len(whole):
            await writer.drain()
            writer.transport.close()  # its end comes behind what was written

    peer = Peer(reply)
    async with link(peer) as (connection, owner, _):
        for size in range(len(whole)):
            failure = await failure_of(connection.unary("/x/Echo", b"1", (), soon()))
            assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNKNOWN), size
        assert len(peer.requests) == len(whole), "no request is sent twice"
        size = len(whole)
        if b"400" in whole[:20]:
            failure = await failure_of(connection.unary("/x/Echo", b"1", (), soon()))
            assert (failure.code, failure.delivery) == (StatusCode.FAILED_PRECONDITION, Delivery.ANSWERED)
        else:
            assert await connection.unary("/x/Echo", b"1", (), soon()) == b"ok"
        assert owner.lost == []


async def test_a_request_that_did_not_leave_whole_is_unsent() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await begun(reader, writer):
            return
        writer.transport.pause_reading()  # type: ignore[attr-defined] # no body is read
        await asyncio.sleep(0.2)
        writer.transport.abort()

    owner = Owner()
    async with stream_server(serve) as port:
        connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), owner)
        large = b"x" * 12_000_000
        failure = await failure_of(connection.unary("/x/Echo", large, (), soon(0.1)))
        assert (failure.reason, failure.delivery) == (LocalReason.DEADLINE, Delivery.UNSENT)
        await connection.aclose()


async def test_the_end_of_a_socket_before_the_request_left_whole_is_unsent() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await begun(reader, writer)
        writer.transport.abort()

    async with stream_server(serve) as port:
        connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), Owner())
        failure = await failure_of(connection.unary("/x/Echo", b"x" * 12_000_000, (), soon()))
        assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNSENT)
        await connection.aclose()


async def test_a_call_that_waits_for_a_socket_in_vain_is_unsent() -> None:
    async with link(Peer(silent)) as (connection, _, _):
        busy = [asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon())) for _ in range(MOST_SOCKETS)]
        await asyncio.sleep(0)  # they come first
        failure = await failure_of(connection.unary("/x/Echo", b"", (), soon(0.3)))
        assert (failure.reason, failure.delivery) == (LocalReason.DEADLINE, Delivery.UNSENT)
        await connection.aclose()
        for one in busy:
            assert (await failure_of(one)).code is StatusCode.UNAVAILABLE


async def test_the_socket_of_a_ping_is_not_one_more_for_calls() -> None:
    peer = Peer(silent)
    async with link(peer, silence_time=10 * PATIENCE) as (connection, _, _), asyncio.timeout(PATIENCE):
        sockets = connection._pool._channels
        busy = [asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon())) for _ in range(MOST_SOCKETS)]
        waiting = [asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon())) for _ in range(3)]
        await until(lambda: len(peer.requests) == MOST_SOCKETS)
        connection._ping()
        await until(lambda: peer.sockets == MOST_SOCKETS + 1)
        await until(lambda: len(sockets) == MOST_SOCKETS)
        await connection.aclose()
        deliveries = [(await failure_of(one)).delivery for one in (*busy, *waiting)]
        assert deliveries == [Delivery.UNKNOWN] * MOST_SOCKETS + [Delivery.UNSENT] * 3


async def test_no_more_sockets_than_the_limit_and_first_come_first_served() -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, _):
        calls = [connection.unary("/x/Echo", str(number).encode(), (), soon()) for number in range(500)]
        assert await asyncio.gather(*calls) == [str(number).encode() for number in range(500)]
        assert isinstance(connection, GatewayConnection)
        # A ping, which has one more, is sent if this process was stopped for so long that no answer came.
        assert len(connection._pool._channels) in (MOST_SOCKETS, MOST_SOCKETS + 1)


async def test_given_up_calls_end_and_others_stay() -> None:
    async with link(Peer(silent)) as (connection, _, _):
        moving = asyncio.ensure_future(connection.unary("/x/Echo", b"1", (), soon(), may_move=True))
        staying = asyncio.ensure_future(connection.unary("/x/Echo", b"2", (), soon()))
        await asyncio.sleep(0.1)
        connection.give_up("silent")
        assert (await failure_of(moving)).reason is LocalReason.GIVEN_UP
        assert not staying.done()
        await connection.aclose()
        assert (await failure_of(staying)).delivery is Delivery.UNKNOWN


# --- answers that are not etcd's ---


@pytest.mark.parametrize(
    ("data", "code", "delivery", "words"),
    [
        (answer(HTML, 502, headers=b"Server: nginx\r\n"), 14, UNKNOWN, "502 instead of etcd's answer (server: nginx)"),
        (answer(HTML, 503), 14, UNKNOWN, "HTTP status 503"),
        (answer(HTML, headers=b"Content-Type: text/html\r\n"), 13, UNKNOWN, "is not JSON (content-type 'text/html')"),
        (answer(b"", 413), 8, UNKNOWN, "HTTP status 413: a proxy on the way refuses a request of this size"),
        (answer(b"", 421), 7, UNKNOWN, "etcd --host-whitelist"),
        (answer(b"Not Found\n", 404), 12, ANSWERED, "the gateway has no such path"),
        (answer(b"404 page not found\n", 404), 12, ANSWERED, "--enable-grpc-gateway=false"),
        (answer(HTML, 302), 2, UNKNOWN, "or another service"),
        (answer(b'{"code":5, "message":"Not Found"}', 404), 12, ANSWERED, "the gateway has no such path"),
        (answer(b'{"code":5, "message":"etcdserver: requested lease not found"}', 404), 5, ANSWERED, "requested lease"),
        (answer(HTML, 404), 12, UNKNOWN, "HTTP status 404"),
        (answer(b"CommonName of client sending a request", 400), 7, ANSWERED, "auth="),
        (answer(b'{"code":14,"message":"etcdserver: no leader"}', 503), 14, ANSWERED, "etcdserver: no leader"),
        (answer(b'{"code":14,"message":"connection error: desc = \\"remote error: tls: bad certificate\\""}', 503),
         14, ANSWERED, 'bad certificate": the gateway uses the server\'s certificate'),
        (answer(b'{"code":14,"message":"write tcp 10.0.0.1:5->10.0.0.1:2379: write: broken pipe"}', 503),
         14, ANSWERED, "if it always does, the gateway uses the server's certificate"),
        (answer(b'{"error":"etcdserver: e","code":14}', 503), 14, ANSWERED, "etcdserver: e"),
        (answer(b'{"message":["Not Found"]}', 404), 12, UNKNOWN, "HTTP status 404"),
        (answer(b'{"code":503,"message":"no upstream"}', 503), 14, UNKNOWN, "HTTP status 503"),
        (answer(b"[]", 200), 13, UNKNOWN, "does not fit"),
        (answer(b'{"payload":1}', 200), 13, UNKNOWN, "does not fit"),
        (answer(b"[" * 100_000, 200), 13, UNKNOWN, "not JSON"),
        (b"\0\0\0\4\0\0\0\0\0", 13, UNKNOWN, "no HTTP/1 status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n", 13, UNKNOWN, "ambiguous"),
    ],
)  # fmt: skip
async def test_an_answer_is_judged(data: bytes, code: int, delivery: Delivery, words: str) -> None:
    async with link(Peer(always(data))) as (connection, owner, _):
        failure = await failure_of(connection.unary("/x/Echo", b"", (), soon()))
        assert (failure.code, failure.delivery) == (code, delivery)
        assert words in failure.message
        assert owner.lost == []


async def test_a_reply_that_is_too_large_is_refused_by_its_message_and_by_its_json() -> None:
    async with example_server() as (port, _), connected("gateway", port, max_receive_bytes=1000) as (connection, _):
        assert len(await connection.unary("/x/Sized", b"1000", (), soon())) == 1000
        for size in (b"1001", b"1000000"):
            failure = await failure_of(connection.unary("/x/Sized", size, (), soon()))
            assert failure.reason is LocalReason.REPLY_TOO_LARGE
        stream = await connection.open_stream("/x/Chat", (), soon())
        await stream.send(b"y" * 1001)
        failure = await failure_of(stream.receive())
        assert (failure.reason, failure.take_beginning()) == (LocalReason.REPLY_TOO_LARGE, b"y" * 64)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (answer(b"", 421), "etcd --host-whitelist"),
        (answer(b"404 page not found\n", 404), "does not serve /version: HTTP status 404"),
        (
            answer(b"404 page not found\n", 404),
            "does not answer as etcd's JSON gateway does: it may be etcd's peer port",
        ),
        (answer(HTML), "or another service"),
        (answer(b"The plain HTTP request was sent to HTTPS port", 400), "is the endpoint https:// ?"),
        (answer(HTML, 502, headers=b"Server: proxy\r\n"), "HTTP status 502 instead of etcd's answer (server: proxy)"),
        (answer(HTML), "a /version that is not etcd's"),
        (answer(b"{}"), "a /version that is not etcd's"),
        (answer(b'{"etcdserver":"3.3.27"}'), "3.5 or newer is needed"),
        (b"\0\0\x12\4\0\0\0\0\0", "speaks HTTP/2 and no HTTP/1"),
        (b"\x15\x03\x01\0\x02\x02\x16", "is the endpoint https:// ?"),
        (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
    ],
)
async def test_a_peer_that_is_not_etcds_gateway_is_not_connected_to(version: bytes, words: str) -> None:
    owner = Owner()
    async with stream_server(Peer(silent, version).serve) as port:
        with pytest.raises(ConnectError, match=r"\w") as caught:
            await GatewayEngine(TransportOptions()).connect(target(port), owner)
        assert words in str(caught.value)
    assert owner.lost == []
    assert leftovers() == []


async def test_an_etcd_without_a_gateway_is_not_connected_to() -> None:
    """Its peer port is one: it serves `/version` too."""
    peer = Peer(silent, gate=answer(b"404 page not found\n", 404))
    async with stream_server(peer.serve) as port:
        with pytest.raises(ConnectError, match="--enable-grpc-gateway=false"):
            await GatewayEngine(TransportOptions()).connect(target(port), Owner())
    assert leftovers() == []


@pytest.mark.parametrize("gate", [answer(HTML, 404), answer(b"", 503), answer(b"{}"), answer(b"", 403)])
async def test_only_what_an_etcd_without_a_gateway_says_is_a_proof(gate: bytes) -> None:
    async with stream_server(Peer(silent, gate=gate).serve) as port:
        connection = await GatewayEngine(TransportOptions()).connect(target(port), Owner())
        await connection.aclose()


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_second_question_without_an_answer_leaves_nothing(is_cancelled: bool) -> None:
    peer = Peer(silent, gate=b"")
    async with stream_server(peer.serve) as port:
        engine = GatewayEngine(TransportOptions(connect_timeout=PATIENCE if is_cancelled else 0.2))
        dial = asyncio.ensure_future(engine.connect(target(port), Owner()))
        await asyncio.wait([dial], timeout=0.1 if is_cancelled else PATIENCE)
        dial.cancel()
        await asyncio.wait([dial])
        assert dial.cancelled() is is_cancelled
        async with asyncio.timeout(PATIENCE):
            while peer.open_now:  # noqa: ASYNC110 - the peer has no event for it
                await asyncio.sleep(0.01)
        assert peer.sockets == 1
    assert is_cancelled or isinstance(dial.exception(), ConnectError)
    assert leftovers() == []


async def test_a_peer_that_ends_each_socket_behind_an_answer_is_asked_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(VERSION))
        await writer.drain()
        writer.close()

    async with stream_server(serve) as port:
        connection = await GatewayEngine(TransportOptions()).connect(target(port), Owner())
        await connection.aclose()


async def test_a_peer_that_says_nothing_or_hangs_up_is_not_connected_to() -> None:
    async with stream_server(Peer(silent, b"").serve) as port:
        with pytest.raises(ConnectError, match="no answer within"):
            await GatewayEngine(TransportOptions(connect_timeout=0.2)).connect(target(port), Owner())
    with pytest.raises(OSError):
        await GatewayEngine(TransportOptions()).connect(target(port), Owner())


# --- the pool ---


async def test_a_socket_that_the_peer_ends_while_idle_is_replaced_and_the_end_of_the_peer_is_noticed() -> None:
    peer = Peer(always(answer(to_json(b"ok"))))
    owner = Owner()
    async with stream_server(peer.serve) as port:
        connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), owner)
        (channel,) = connection._pool._channels
        channel.abort(ConnectionLostError("as a proxy does"))
        async with asyncio.timeout(PATIENCE):
            while peer.sockets < 2:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert owner.draining == []
        assert owner.lost == []
    async with asyncio.timeout(PATIENCE):
        await owner.is_lost.wait()
    assert (await failure_of(connection.unary("/x/Echo", b"", (), soon()))).delivery is Delivery.UNSENT
    await connection.aclose()


async def test_a_reset_of_the_only_socket_is_the_end_unless_a_stream_is_open() -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, owner):
        assert isinstance(connection, GatewayConnection)
        stream = await connection.open_stream("/x/Chat", (), soon())
        next(iter(connection._pool._channels)).abort(ConnectionResetError("reset"))
        await stream.send(b"1")
        assert await stream.receive() == b"1"
        assert await connection.unary("/x/Echo", b"2", (), soon()) == b"2"
        stream.cancel()
        assert owner.lost == []
        next(iter(connection._pool._channels)).abort(ConnectionResetError("reset"))
        assert [str(error) for error in owner.lost] == ["reset"]


async def test_a_peer_that_accepts_and_does_not_answer_any_more_is_noticed_without_a_call() -> None:
    peer = Peer(silent)
    owner = Owner()
    async with stream_server(peer.serve) as port:
        engine = GatewayEngine(TransportOptions(connect_timeout=0.3), service=EXAMPLES)
        connection = await engine.connect(target(port), owner)
        peer.version = b""
        next(iter(connection._pool._channels)).abort(ConnectionLostError("as a proxy does"))
        async with asyncio.timeout(PATIENCE):
            await owner.is_lost.wait()
        await connection.aclose()


async def test_a_peer_that_takes_one_request_a_socket_serves_all() -> None:
    peer = Peer(always(answer(to_json(b"ok"), headers=b"Connection: close\r\n")))
    async with link(peer) as (connection, owner, _):
        for _ in range(20):
            assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert len(peer.requests) == 20
        calls = [connection.unary("/x/Echo", b"", (), soon()) for _ in range(3 * MOST_SOCKETS)]
        assert await asyncio.gather(*calls) == [b"ok"] * len(calls)
        assert peer.most <= MOST_SOCKETS + 2, "the sockets that end are not counted at once"
        assert owner.lost == []


async def test_a_peer_that_ends_each_socket_behind_any_answer_serves_all() -> None:
    peer = Peer(
        always(answer(to_json(b"ok"), headers=b"Connection: close\r\n")),
        version=answer(VERSION, headers=b"Connection: close\r\n"),
    )
    async with link(peer) as (connection, owner, _):
        for _ in range(10):
            assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        calls = [connection.unary("/x/Echo", b"", (), soon()) for _ in range(3 * MOST_SOCKETS)]
        assert await asyncio.gather(*calls) == [b"ok"] * len(calls)
        assert len(peer.requests) == 10 + len(calls)
        assert (owner.draining, owner.lost) == ([], [])


async def test_many_thousand_calls_that_wait_do_not_stop_the_loop() -> None:
    async with link(Peer(silent)) as (connection, _, _):
        spent = []
        for count in (1500, 6000):
            with no_collections():
                calls = [asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon())) for _ in range(count)]
                begin = time.process_time()
                await asyncio.sleep(0)
                spent.append(time.process_time() - begin)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert spent[1] < 10 * spent[0], "four times the calls cost about four times as much"


async def test_a_peer_that_ends_every_socket_at_once_is_left() -> None:
    peer = Peer(silent)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer.sockets:
            peer.sockets += 1
            writer.transport.abort()
        else:
            await peer.serve(reader, writer)

    owner = Owner()
    async with stream_server(serve) as port:
        connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), owner)
        next(iter(connection._pool._channels)).abort(ConnectionLostError())
        async with asyncio.timeout(PATIENCE):
            await owner.is_lost.wait()
        assert peer.sockets <= 3
        await connection.aclose()


async def test_a_refused_dial_ends_the_connection_but_not_what_runs_on_it() -> None:
    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(answer(to_json(b"ok")))

    owner, peer = Owner(), Peer(reply)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), owner)
    running = asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon()))
    await asyncio.sleep(0.05)
    server.close()
    failure = await failure_of(connection.unary("/x/Echo", b"", (), soon()))
    assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNSENT)
    assert len(owner.draining) == 1
    connection.drain()
    assert await running == b"ok"
    async with asyncio.timeout(PATIENCE):
        await owner.is_lost.wait()
    await connection.aclose()


@pytest.mark.parametrize("answers_version", [True, False])
async def test_a_silent_peer_is_asked_once_more_and_then_given_up(answers_version: bool) -> None:
    peer = Peer(silent)
    async with link(peer, silence_time=0.1, silence_timeout=0.5) as (connection, owner, _):
        if not answers_version:
            peer.version = b""
        seconds = 2.0 if answers_version else PATIENCE
        failure = await failure_of(connection.unary("/x/Echo", b"", (), soon(seconds)))
        if answers_version:
            assert failure.reason is LocalReason.DEADLINE
            assert owner.lost == []
        else:
            assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNKNOWN)
            assert "silent" in str(owner.lost[0])


# --- what requests carry ---


async def test_a_ping_that_one_socket_does_not_answer_gives_the_socket_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etcd_aio.transport.gateway.connection.HEAVY_TIMEOUT", 1.0)
    peer = Peer(always(answer(to_json(b"ok"))))
    async with link(peer, silence_timeout=1.0, keepalive_timeout=1.0) as (connection, owner, _):
        peer.version = b""
        connection._ping()
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert len(connection._pool._channels) == 2
        async with asyncio.timeout(PATIENCE):
            while len(connection._pool._channels) > 1:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert owner.lost == []


async def test_metadata_goes_into_headers() -> None:
    peer = Peer(always(answer(to_json(b""))))
    metadata = (("client-api-version", "3.7"), ("token", "t.1-c4n4ry"), ("hasleader", "true"))
    async with link(peer, user_agent="me/1") as (connection, _, port):
        await connection.unary("/x/Echo", b"", metadata, soon(7.5))
        await connection.unary("/x/Echo", b"", (), float("inf"))
    first, second = (headers for _, headers, _ in peer.requests)
    assert first["Host"] == f"127.0.0.1:{port}"
    assert (first["User-Agent"], first["Content-Type"]) == ("me/1", "application/json")
    assert first["Authorization"] == "t.1-c4n4ry"
    assert (first["Grpc-Metadata-hasleader"], first["Grpc-Metadata-client-api-version"]) == ("true", "3.7")
    assert 7000 <= int(first["Grpc-Timeout"].removesuffix("m")) <= 7600
    assert not {"Grpc-Timeout", "Authorization"} & second.keys()


async def test_a_websocket_carries_the_token_and_the_rest_goes_before_it() -> None:
    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b'{"header":{"revision":"1"}}') if path == "/v3/kv/range" else answer(b"", 403))

    peer = Peer(reply)
    metadata = (("client-api-version", "3.7"), ("token", "t.1-c4n4ry"), ("hasleader", "true"))
    async with link(peer, ETCD) as (connection, _, _):
        failure = await failure_of(connection.open_stream(methods.WATCH.path, metadata, soon()))
        assert failure.code is StatusCode.PERMISSION_DENIED
    (first, probe, body), (second, upgrade, _) = peer.requests
    assert (first, second) == ("/v3/kv/range", "/v3/watch")
    assert (probe["Authorization"], probe["Grpc-Metadata-hasleader"]) == ("t.1-c4n4ry", "true")
    assert json.loads(body) == {"key": "AA==", "serializable": True, "count_only": True}
    assert upgrade["Sec-WebSocket-Protocol"].replace(" ", "") == "Bearer,t.1-c4n4ry"
    assert upgrade["Host"].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (answer(b'{"code":16,"message":"etcdserver: invalid auth token"}', 401), StatusCode.UNAUTHENTICATED),
        (answer(b'{"code":14,"message":"etcdserver: no leader"}', 503), StatusCode.UNAVAILABLE),
        (answer(b'{"code":7,"message":"etcdserver: permission denied"}', 403), None),
        (answer(b'{"code":3,"message":"etcdserver: user name is empty"}', 400), None),
    ],
)
async def test_what_a_websocket_could_not_be_told_is_told_before_it(data: bytes, refused: StatusCode | None) -> None:
    peer = Peer(always(data))
    async with link(peer, ETCD) as (connection, _, _):
        metadata = (("client-api-version", "3.7"), ("hasleader", "true"))
        failure = await failure_of(connection.open_stream(methods.WATCH.path, metadata, soon()))
        assert len(peer.requests) == (1 if refused else 2)
        if refused:
            assert (failure.code, failure.delivery) == (refused, Delivery.ANSWERED)


NO_LEADER = answer(b'{"code":14,"message":"etcdserver: no leader"}', 503)


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (NO_LEADER, True),
        (answer(b'{"header":{"revision":"1"}}'), False),
        (answer(b'{"code":3,"message":"etcdserver: user name is empty"}', 400), False),
        (answer(b'{"code":16,"message":"etcdserver: invalid auth token"}', 401), False),
        (answer(b"a proxy's page", 503), False),
        (b"", False),
    ],
    ids=["no leader", "served", "no user", "old token", "proxy", "silence"],
)
async def test_a_quiet_websocket_ends_if_its_member_has_lost_the_leader(data: bytes, *, ends: bool) -> None:
    """The server ends other streams that need a leader by itself, but no WebSocket, which carries no metadata."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                key = re.search(rb"(?i)sec-websocket-key: (\S+)", head)
                if key is not None:
                    writer.write(
                        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Accept: " + accept_key(key[1].decode()).encode() + b"\r\n\r\n"
                    )
                    while await reader.read(1000):
                        writer.write(b"\x8a\x00")
                elif head.startswith(b"POST"):
                    await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))  # type: ignore[index]
                    asked.append(head)
                    writer.write(data if len(asked) > 1 else answer(b'{"header":{"revision":"1"}}'))
                else:
                    writer.write(answer(VERSION))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    metadata = (("client-api-version", "3.7"), ("token", "t.1-c4n4ry"), ("hasleader", "true"))
    options = TransportOptions(keepalive_time=0.05, keepalive_timeout=2.0)
    async with stream_server(serve) as port:
        connection = await GatewayEngine(options).connect(target(port), Owner())
        stream = await connection.open_stream(methods.WATCH.path, metadata, soon())
        receiving = asyncio.ensure_future(stream.receive())
        async with asyncio.timeout(PATIENCE):
            while len(asked) < 2:  # noqa: ASYNC110 - the peer does it
                await asyncio.sleep(0.01)
        assert b"hasleader: true" in asked[1]
        assert b"c4n4ry" not in asked[1], "a token that has expired since harms no open stream"
        if ends:
            failure = await failure_of(receiving)
            assert (failure.message, failure.delivery) == ("etcdserver: no leader", Delivery.ANSWERED)
        else:
            await asyncio.sleep(0.2)
            assert not receiving.done()
            stream.cancel()
            await failure_of(receiving)
        await connection.aclose()


async def test_rpcs_that_the_gateway_does_not_serve_are_named() -> None:
    peer = Peer(silent)
    async with link(peer, PLAIN) as (connection, _, _):
        failure = await failure_of(connection.open_stream(methods.RANGE_STREAM.path, (), soon()))
        assert (failure.code, failure.delivery) == (StatusCode.UNIMPLEMENTED, Delivery.ANSWERED)
        assert "KV/RangeStream" in failure.message
        assert "engine='native'" in failure.message
        failure = await failure_of(connection.unary(methods.HEALTH_CHECK.path, b"", (), soon()))
        assert "Health/Check" in failure.message
    assert peer.requests == []


async def test_etcd_that_a_websocket_would_crash_gets_none() -> None:
    peer = Peer(silent, answer(b'{"etcdserver":"3.4.25"}'))
    async with link(peer, PLAIN) as (connection, _, _):
        failure = await failure_of(connection.open_stream(methods.WATCH.path, (), soon()))
        assert failure.code is StatusCode.UNIMPLEMENTED
        assert "3.4.25 crashes" in failure.message
    assert peer.requests == []


async def test_messages_are_mapped_both_ways() -> None:
    peer = Peer(always(answer(b'{"header":{"revision":"7"},"count":"1","kvs":[{"key":"aw==","lease":"-1"}]}')))
    async with link(peer, PLAIN) as (connection, _, _):
        request = encode(pb.RangeRequest(key=b"k", revision=2**62))
        reply = decode(pb.RangeResponse, await connection.unary(methods.RANGE.path, request, (), soon()))
    assert reply == pb.RangeResponse(
        header=pb.ResponseHeader(revision=7), count=1, kvs=[pb.KeyValue(key=b"k", lease=-1)]
    )
    assert json.loads(peer.requests[0][2]) == {"key": "aw==", "revision": str(2**62)}


# --- streams ---


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (answer(HTML, 502), 14, "HTTP status 502"),
        (answer(b"", 400), 13, "HTTP status 400"),
        (answer(b"", 426), 14, "blocks WebSockets"),
        (answer(b"Method Not Allowed\n", 405), 12, "blocks WebSockets"),
        (answer(b'{"code":12, "message":"Method Not Allowed"}', 501), 12, "blocks WebSockets"),
        (answer(b"", 405, headers=b"Server: nginx\r\n"), 12, "HTTP status 405 (server: nginx): a proxy"),
        (answer(b"", 200), 14, "blocks WebSockets"),
        (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", 14, "blocks WebSockets"),
        (b"HTTP/1.1 502\r\nContent-Length: 0\r\n\r\n", 14, "blocks WebSockets"),
        (answer(b"x" * 2_000_000, 502), 14, "blocks WebSockets"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", 14, "blocks WebSockets"),
        (b"HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 50_000, 14, "too long: a proxy"),
        (answer(b'{"message":[]}', 404), 12, "HTTP status 404"),
        (answer(b'{"code":16,"message":"etcdserver: invalid auth token"}', 401), 16, "invalid auth token"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         b"Sec-WebSocket-Accept: bm8=\r\n\r\n", 13, "is invalid"),
    ],
)  # fmt: skip
async def test_a_refused_websocket_says_why(data: bytes, code: int, words: str) -> None:
    async with link(Peer(always(data))) as (connection, owner, _):
        failure = await failure_of(connection.open_stream("/x/Chat", (), soon()))
        assert failure.code == code
        assert words in failure.message
        assert owner.lost == []


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 101 Swi", b"HTTP/1.1 502 Bad\r\nContent-Length: 5\r\n\r\n<"])
async def test_a_socket_that_ends_before_the_answer_to_a_websocket_is_a_lost_connection(data: bytes) -> None:
    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.transport.close()

    async with link(Peer(reply)) as (connection, _, _):
        failure = await failure_of(connection.open_stream("/x/Chat", (), soon()))
        assert failure.code is StatusCode.UNAVAILABLE
        assert "the connection was lost" in failure.message


async def test_a_websocket_that_is_never_agreed_on_ends_by_the_deadline() -> None:
    async with link(Peer(silent)) as (connection, _, _):
        failure = await failure_of(connection.open_stream("/x/Chat", (), soon(0.2)))
        assert failure.reason is LocalReason.DEADLINE


@dataclass
class WebSocketPeer:
    """Agrees to every WebSocket, and sends it these bytes, again and again if it `repeats`. It reads nothing more."""

    sends: bytes
    repeats: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                key = re.search(rb"(?i)sec-websocket-key: (\S+)", head)
                if key is None:
                    writer.write(answer(VERSION))
                    continue
                writer.write(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Accept: " + accept_key(key[1].decode()).encode() + b"\r\n\r\n" + self.sends
                )
                while self.repeats:
                    writer.write(self.sends)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def dialogue(peer: WebSocketPeer) -> AsyncIterator[Stream]:
    async with stream_server(peer.serve) as port:
        connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(target(port), Owner())
        yield await connection.open_stream("/x/Chat", (), soon())
        await connection.aclose()


async def test_the_code_of_a_closed_websocket_is_read() -> None:
    async with dialogue(WebSocketPeer(b"\x88\x02\x03\xe8")) as stream:
        assert await stream.receive() is None
    async with dialogue(WebSocketPeer(b"\x88\x02\x03\xe9")) as stream:
        failure = await failure_of(stream.receive())
        assert failure.code is StatusCode.UNAVAILABLE
        assert failure.message.endswith("the server closed the WebSocket: 1001")


async def test_a_peer_that_only_sends_pings_is_left_before_the_answers_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FloodBudget, "spend", lambda *_: True)  # as if they came slowly, for days
    pings = (b"\x89\x7d" + b"p" * 125) * 500
    async with dialogue(WebSocketPeer(pings, repeats=True)) as stream:
        async with asyncio.timeout(PATIENCE):
            failure = await failure_of(stream.receive())
        assert "does not read the answers" in failure.message


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\x00\x00", id="empty continuations"),
        pytest.param(b"\x00\x01 ", id="continuations of a byte"),
        pytest.param(b"\x89\x00", id="pings"),
        pytest.param(b"\x8a\x00", id="pongs"),
    ],
)
async def test_a_flood_of_small_frames_ends_the_stream(frame: bytes) -> None:
    peer = WebSocketPeer(b"\x01\x01{" + frame * 2000)
    async with dialogue(peer) as stream, asyncio.timeout(PATIENCE):
        failure = await failure_of(stream.receive())
        assert (failure.code, failure.delivery) == (StatusCode.INTERNAL, Delivery.UNKNOWN)
        assert "flood" in failure.message
        assert failure.reason is None, "another stream may fare better"


async def test_short_messages_are_no_flood() -> None:
    text = b'{"result":{"payload":"YWE="}}'
    async with dialogue(WebSocketPeer(bytes([0x81, len(text)]) + text, repeats=True)) as stream:
        for _ in range(10_000):
            assert await stream.receive() == b"aa"
        stream.cancel()


async def test_messages_that_are_there_already_are_received_with_turns_for_others_between() -> None:
    text = b'{"result":{"payload":""}}'
    async with dialogue(WebSocketPeer((bytes([0x81, len(text)]) + text) * 1000)) as stream:
        assert await stream.receive() == b""
        await asyncio.sleep(0.1)
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            handle[0] = asyncio.get_running_loop().call_soon(turn)

        handle = [asyncio.get_running_loop().call_soon(turn)]
        for _ in range(999):
            assert await stream.receive() == b""
        handle[0].cancel()
        assert turns >= 9


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"\x08\x01", id="not JSON"),
        pytest.param(b'{"result":{"payload":1}}', id="not of its type"),
        pytest.param(b'{"something":{}}', id="neither a result nor an error"),
        pytest.param(b"[" * 100_000, id="nested too deep to be read"),
    ],
)
async def test_a_message_that_cannot_be_read_is_malformed(text: bytes) -> None:
    async with dialogue(WebSocketPeer(b"\x81\x7f" + len(text).to_bytes(8, "big") + text)) as stream:
        failure = await failure_of(stream.receive())
        assert (failure.code, failure.reason) == (StatusCode.INTERNAL, LocalReason.MALFORMED)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\x82\x02\xff\0", id="not JSON"),
        pytest.param(b'\x81\x28{"result":{"events":[{"kv":{"key":1}}]}}', id="not of its type"),
    ],
)
async def test_a_watch_ends_by_a_message_that_cannot_be_read(frame: bytes) -> None:
    header = {"cluster_id": "1", "member_id": "2", "revision": "7", "raft_term": "1"}
    created = json.dumps({"result": {"header": header, "watch_id": str(1 << 32), "created": True}}).encode()
    peer = WebSocketPeer(b"\x81\x7e" + len(created).to_bytes(2, "big") + created + frame)
    async with stream_server(peer.serve) as port, Client(f"http://127.0.0.1:{port}", engine="gateway") as client:
        with pytest.raises(MalformedReplyError):
            async with asyncio.timeout(PATIENCE), client.watch("k") as watcher:
                await anext(watcher)


async def test_a_cut_websocket_ends_its_stream_alone() -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, owner):
        streams = [await connection.open_stream("/x/Chat", (), soon()) for _ in range(2)]
        for stream in streams:
            await stream.send(b"1")
            assert await stream.receive() == b"1"
        assert isinstance(connection, GatewayConnection)
        channel: Any = streams[0].channel  # type: ignore[attr-defined]
        channel._transport.abort()
        failure = await failure_of(streams[0].receive())
        assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNKNOWN)
        with pytest.raises(AttemptFailure):
            await streams[0].send(b"2")
        await streams[1].send(b"2")
        assert await streams[1].receive() == b"2"
        assert owner.lost == []


async def test_a_websocket_that_falls_silent_is_pinged_and_given_up() -> None:
    async with (
        example_server() as (port, _),
        connected("gateway", port, keepalive_time=0.1, keepalive_timeout=0.3) as (connection, owner),
    ):
        living = await connection.open_stream("/x/Chat", (), soon())
        dead = await connection.open_stream("/x/Chat", (), soon())
        channel: Any = dead.channel  # type: ignore[attr-defined]
        channel.let_read(False)  # as if nothing came any more
        failure = await failure_of(dead.receive())
        assert "silent" in failure.message
        await living.send(b"still here")
        assert await living.receive() == b"still here"
        assert owner.lost == []


async def test_a_status_without_a_newline_at_the_end_of_a_response_is_read() -> None:
    body = b'{"result":{"payload":"YQ=="}}\n{"error":{"grpc_code":11,"message":"etcdserver: gone"}}'
    async with link(Peer(always(chunked(body)))) as (connection, _, _):
        stream = await connection.open_stream("/x/Count", (), soon())
        await stream.send(b"1")
        await stream.half_close()
        assert await stream.receive() == b"a"
        failure = await failure_of(stream.receive())
        assert (failure.code, failure.message) == (StatusCode.OUT_OF_RANGE, "etcdserver: gone")


@pytest.mark.parametrize("code", [b"code", b"grpc_code"])
async def test_a_stream_that_ends_before_its_first_message_has_its_status_deeper(code: bytes) -> None:
    data = answer(b'{"error":{"%b":16,"message":"etcdserver: invalid auth token"}}' % code, 401)
    async with link(Peer(always(data))) as (connection, _, _):
        stream = await connection.open_stream("/x/Count", (), soon())
        await stream.send(b"1")
        failure = await failure_of(stream.receive())
        assert (failure.code, failure.delivery) == (StatusCode.UNAUTHENTICATED, Delivery.ANSWERED)


async def test_a_response_of_lines_that_is_cut_at_any_byte_does_not_end_well() -> None:
    whole = chunked(b'{"result":{"payload":"YQ=="}}\n{"result":{"payload":"Yg=="}}\n')
    size = 0

    async def reply(peer: Peer, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole[:size])
        await writer.drain()
        writer.transport.close()

    async with link(Peer(reply)) as (connection, _, _):
        for size in range(len(whole)):  # noqa: B007 - the peer reads it
            stream = await connection.open_stream("/x/Count", (), soon())
            await stream.send(b"1")
            await stream.half_close()
            got: bytes | None = b""
            with pytest.raises(AttemptFailure) as caught:  # noqa: PT012 - some messages come first
                while got is not None:
                    got = await stream.receive()
            assert caught.value.delivery is Delivery.UNKNOWN
            stream.cancel()


async def test_a_draining_connection_finishes_its_dialogue() -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, owner):
        stream = await connection.open_stream("/x/Chat", (), soon())
        call = asyncio.ensure_future(connection.unary("/x/Slow", b"0.05", (), soon()))
        await asyncio.sleep(0)
        connection.drain()
        assert (await failure_of(connection.unary("/x/Echo", b"", (), soon()))).delivery is Delivery.UNSENT
        assert (await failure_of(connection.open_stream("/x/Chat", (), soon()))).delivery is Delivery.UNSENT
        assert await call == b"at last"
        await stream.send(b"b")
        assert await stream.receive() == b"b"
        assert owner.lost == []
        stream.cancel()
        assert owner.lost == [None]


async def test_a_cancelled_receive_loses_no_text() -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        for number in range(50):
            receiving = asyncio.ensure_future(stream.receive())
            for _ in range(number % 4):
                await asyncio.sleep(0)
            receiving.cancel()
            await stream.send(str(number).encode())
            try:
                assert await receiving == str(number).encode()
            except asyncio.CancelledError:
                assert await stream.receive() == str(number).encode()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
async def test_aborted_streams_leave_no_socket_on_either_side(count: int) -> None:
    async with example_server() as (port, _), connected("gateway", port) as (connection, owner):
        for number in range(count):
            stream = await connection.open_stream("/x/Chat", (), soon())
            if number % 3:
                await stream.send(b"1")
            stream.cancel()
        assert isinstance(connection, GatewayConnection)
        assert not connection._others
        assert owner.lost == []
        assert await connection.unary("/x/Echo", b"1", (), soon()) == b"1"


# --- other ways there ---


def contexts(*alpn: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("member.test").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    client.set_alpn_protocols([*alpn])
    return server, client


@pytest.mark.parametrize("server_offers", [(), ("http/1.1",), ("h2", "http/1.1")])
async def test_over_tls(server_offers: tuple[str, ...]) -> None:
    server, client = contexts("http/1.1")
    if server_offers:
        server.set_alpn_protocols([*server_offers])
    async with example_server(tls=None) as (_, examples):
        from tests.support.gateway_examples import gateway_server

        async with gateway_server(examples, server) as port:
            connection = await GatewayEngine(TransportOptions(), service=EXAMPLES).connect(
                target(port, tls=client, server_name="member.test"), Owner()
            )
            payload = b"x" * 300_000
            assert await connection.unary("/x/Echo", payload, (), soon()) == payload
            stream = await connection.open_stream("/x/Chat", (), soon())
            await stream.send(payload)
            assert await stream.receive() == payload
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.aclose()


async def test_a_tls_peer_that_insists_on_http2_is_refused_clearly() -> None:
    server, client = contexts("h2", "http/1.1")
    server.set_alpn_protocols(["h2"])
    async with stream_server(Peer(silent).serve, tls=server) as port:
        with pytest.raises(TLSError, match=r"must offer http/1\.1 instead of h2"):
            await GatewayEngine(TransportOptions()).connect(
                target(port, tls=client, server_name="member.test"), Owner()
            )


async def test_a_document() -> None:
    async with stream_server(Peer(silent).serve) as port:
        engine = GatewayEngine(TransportOptions())
        assert await engine.http_get(target(port), "/version") == VERSION


async def test_a_redirection_within_tls_is_not_one_to_tls() -> None:
    server, client = contexts("http/1.1")
    login = answer(b"", 302, headers=b"Location: https://login.example.com/\r\n")
    async with stream_server(Peer(silent, login).serve, tls=server) as port:
        with pytest.raises(ConnectError, match="HTTP status 302 instead of etcd's answer"):
            await GatewayEngine(TransportOptions()).connect(
                target(port, tls=client, server_name="member.test"), Owner()
            )
    async with stream_server(Peer(silent, login).serve) as port:
        with pytest.raises(ConnectError, match="is the endpoint https"):
            await GatewayEngine(TransportOptions()).connect(target(port), Owner())


async def test_metrics_are_a_longer_document() -> None:
    metrics = b"# HELP\n" * 100_000
    async with stream_server(Peer(always(answer(metrics))).serve) as port:
        engine = GatewayEngine(TransportOptions())
        assert await engine.http_get(target(port), "/metrics") == metrics
        with pytest.raises(ConnectError, match="too long"):
            await engine.http_get(target(port), "/health")


@pytest.mark.parametrize("offers", [(), ("http/1.1",)])
async def test_auto_gets_a_document_before_it_has_connected(offers: tuple[str, ...]) -> None:
    server, client = contexts("h2", "http/1.1")
    if offers:
        server.set_alpn_protocols([*offers])
    async with stream_server(Peer(silent).serve, tls=server) as port:
        to = target(port, tls=client, server_name="member.test")
        assert await AutoEngine(TransportOptions()).http_get(to, "/version") == VERSION


def is_connection(one: Connection) -> Connection:
    """The type checker agrees that it is one."""
    return one


def test_it_is_a_connection() -> None:
    assert callable(is_connection)
    _: Callable[[GatewayConnection], Connection] = is_connection


# --- the engine that chooses ---


@pytest.mark.parametrize("offers", [None, (), ("http/1.1",)])
async def test_auto_takes_the_gateway_where_the_handshake_shows_no_http2(offers: tuple[str, ...] | None) -> None:
    peer = Peer(always(answer(b"{}")))
    server = client = None
    if offers is None:
        peer.preface = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    else:
        server, client = contexts("h2", "http/1.1")
        if offers:
            server.set_alpn_protocols([*offers])
    engine = AutoEngine(TransportOptions(connect_timeout=PATIENCE))
    async with stream_server(peer.serve, tls=server) as port:
        to = target(port, tls=client, server_name="member.test")
        for _ in range(2):
            connection = await engine.connect(to, Owner())
            assert isinstance(connection, GatewayConnection)
            await connection.aclose()
        assert await engine.http_get(to, "/version") == VERSION
        assert peer.prefaces == 1, "what was proved is not tried again"


async def test_auto_takes_http2_where_it_passes() -> None:
    async with example_server() as (port, _):
        connection = await AutoEngine(TransportOptions()).connect(target(port), Owner())
        assert isinstance(connection, NativeConnection)
        await connection.aclose()


async def test_auto_does_not_take_silence_or_a_refusal_for_a_proof() -> None:
    peer = Peer(silent, b"")
    engine = AutoEngine(TransportOptions(connect_timeout=0.2))
    async with stream_server(peer.serve) as port:
        with pytest.raises(ConnectError, match="no answer within") as caught:
            await engine.connect(target(port), Owner())
        assert not caught.value.lacks_http2
        assert peer.sockets == 1
    with pytest.raises(ConnectionRefusedError):
        await engine.connect(target(port), Owner())


async def test_auto_names_both_reasons_where_neither_passes() -> None:
    peer = Peer(silent, answer(HTML, 502))
    peer.preface = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    async with stream_server(peer.serve) as port:
        with pytest.raises(ConnectError, match="in HTTP/1, not HTTP/2") as caught:
            await AutoEngine(TransportOptions()).connect(target(port), Owner())
    assert "over HTTP/1: ConnectError: the peer does not serve /version: HTTP status 502" in str(caught.value)
    assert "engine=" not in str(caught.value), "the advice has been followed"
