"""The handshake by itself; the engines' own are examined by tests/contract/test_transport_dialling.py."""

import pytest

from etcd_aio.errors import ConnectError, ConnectionLostError
from etcd_aio.transport.handshake import Handshake

pytestmark = pytest.mark.anyio


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
