"""The handshake: proof of HTTP/2, and explanations for what fails."""

import errno
from typing import NoReturn

import pytest

from etcd_aio.errors import ConnectError, ConnectionLostError
from etcd_aio.transport import Target, TransportOptions, handshake
from etcd_aio.transport.handshake import Handshake
from etcd_aio.transport.names import Names

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
