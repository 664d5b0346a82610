"""transport/handshake.py: proof of HTTP/2, and explanations for what fails."""

import asyncio
import errno
import os
import socket
from contextlib import ExitStack, suppress
from typing import NoReturn

import pytest

from etcd_aio.errors import ConnectError, ConnectionLostError
from etcd_aio.transport import Target, TransportOptions, handshake, shared_patience
from etcd_aio.transport.handshake import Handshake
from etcd_aio.transport.names import Names
from tests.support.stream_server import stream_server

pytestmark = pytest.mark.anyio

OPTIONS = TransportOptions(connect_timeout=1.0)


async def test_settings_end_it_well_and_only_once() -> None:
    handshake = Handshake()
    assert not handshake.is_over
    handshake.succeed()
    handshake.succeed()
    assert handshake.is_over
    await handshake.wait()


async def test_the_first_bytes_explain_more_than_the_end_does() -> None:
    handshake = Handshake()
    for byte in b"HTTP/1.1 400 Bad Request":
        handshake.on_bytes(bytes([byte]))
    assert "HTTP/1" in str(handshake.explain_silence(2.0))
    handshake.fail(OSError("reset"))
    with pytest.raises(ConnectError, match="HTTP/1"):
        await handshake.wait()


async def test_without_bytes_the_real_cause_is_kept() -> None:
    handshake = Handshake()
    assert "no answer within 2 s" in str(handshake.explain_silence(2.0))
    handshake.fail(ConnectionResetError("reset"))
    with pytest.raises(ConnectionResetError, match="reset"):
        await handshake.wait()


@pytest.mark.parametrize("error", [None, ConnectionLostError("the peer closed the connection")])
async def test_an_end_that_says_nothing_is_said_to_be_one_before_http2(error: BaseException | None) -> None:
    handshake = Handshake()
    handshake.fail(error)
    with pytest.raises(ConnectError, match="did not begin HTTP/2"):
        await handshake.wait()


@pytest.mark.parametrize("is_the_systems", [True, False])
async def test_a_timeout_of_the_system_says_more_than_that_of_the_dial(
    monkeypatch: pytest.MonkeyPatch, is_the_systems: bool
) -> None:
    async def dial(*arguments: object, **options: object) -> NoReturn:
        raise TimeoutError(errno.ETIMEDOUT, "no route at all") if is_the_systems else TimeoutError

    monkeypatch.setattr(handshake, "dial", dial)
    with pytest.raises((OSError, ConnectError), match="no route" if is_the_systems else "no answer within 1 s"):
        await handshake.connect(Target("127.0.0.1", 1, "", "m1"), Names(), OPTIONS, handshake.HandshakingProtocol)


async def test_another_protocol_is_the_end_at_once_though_the_peer_stays() -> None:
    handshake = Handshake()
    handshake.on_bytes(b"HTTP/1.1")
    assert not handshake.is_over, "too few to tell"
    handshake.on_bytes(b" 200 OK\r\n")
    assert handshake.is_over
    with pytest.raises(ConnectError, match="HTTP/1") as caught:
        await handshake.wait()
    assert caught.value.lacks_http2
    handshake.fail(ConnectionResetError("what the engine makes of the same bytes"))


async def test_http1_that_is_spoken_is_not_another_protocol() -> None:
    handshake = Handshake(over_http1=True)
    handshake.on_bytes(b"HTTP/1.1 200 OK\r\n")
    assert not handshake.is_over
    handshake.fail(None)
    with pytest.raises(ConnectError, match="did not begin to answer over HTTP/1") as caught:
        await handshake.wait()
    assert not caught.value.lacks_http2


@pytest.mark.parametrize("is_tls", [True, False])
async def test_within_tls_a_redirection_does_not_ask_for_tls(is_tls: bool) -> None:
    handshake = Handshake(over_http1=True)
    handshake.is_tls = is_tls
    handshake.on_bytes(b"HTTP/1.1 302 Found\r\nLocation: https://login.example.com/\r\n\r\n")
    assert handshake.is_over is not is_tls


NOT_ON_UVLOOP = pytest.mark.skipif(
    os.environ.get("ETCD_AIO_TEST_LOOP") == "uvloop",
    reason="uvloop cannot close its loop after these dials that were given up; the cause is not known yet",
)


async def dialled(port: int, *, is_patient: bool = True) -> str:
    """Why a dial fails."""
    options = TransportOptions(connect_timeout=0.05, is_patient=is_patient)
    with pytest.raises((OSError, ConnectError)) as caught:
        await handshake.connect(Target("127.0.0.1", port, "", "m1"), Names(), options, Greeting)
    return str(caught.value)


class Greeting(handshake.HandshakingProtocol):
    """Waits for what never comes."""

    def __init__(self) -> None:
        self.handshake = Handshake()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def abort(self, error: BaseException | None) -> None:
        if self._transport is not None:
            self._transport.abort()


def patience_of(port: int) -> float:
    return shared_patience().of(("127.0.0.1", port, ""), 0.05, lambda: 0.0)


@NOT_ON_UVLOOP
async def test_a_peer_that_was_reached_and_is_silent_has_longer_the_next_time() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say nothing, until the client gives up."""
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with stream_server(hang) as port:
        assert "no answer within 0.05 s" in await dialled(port)
        assert patience_of(port) == 0.1
        assert "no answer within 0.1" in await dialled(port)
        assert 0.2 <= patience_of(port) < 0.25
        assert "no answer within 0.05 s" in await dialled(port, is_patient=False)
    await dialled(port)  # it is refused
    assert patience_of(port) == 0.05


@NOT_ON_UVLOOP
async def test_a_machine_that_does_not_answer_is_dialled_as_often_as_ever() -> None:
    """Its queue is full, so the system answers no further connection."""
    with socket.socket() as full, ExitStack() as others:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(4):
            other = others.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(("127.0.0.1", port))
        await asyncio.sleep(0.05)
        for _ in range(3):
            assert "no answer within 0.05 s" in await dialled(port)
        assert patience_of(port) == 0.05
