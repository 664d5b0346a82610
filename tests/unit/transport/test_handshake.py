"""The handshake: proof of HTTP/2, and explanations for what fails."""

import errno
import ssl
from typing import NoReturn

import pytest

from etcd_aio.errors import ConnectError, ConnectionLostError, TLSError
from etcd_aio.transport import Target, handshake
from etcd_aio.transport.handshake import Handshake, explain_hang_up, explain_tls
from etcd_aio.transport.names import Names

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


@pytest.mark.parametrize("is_the_systems", [True, False])
async def test_a_timeout_of_the_system_says_more_than_that_of_the_dial(
    monkeypatch: pytest.MonkeyPatch, is_the_systems: bool
) -> None:
    async def dial(*arguments: object, **options: object) -> NoReturn:
        raise TimeoutError(errno.ETIMEDOUT, "no route at all") if is_the_systems else TimeoutError

    monkeypatch.setattr(handshake, "dial", dial)
    with pytest.raises((OSError, ConnectError), match="no route" if is_the_systems else "no answer within 1 s"):
        await handshake.connect(Target("127.0.0.1", 1, "", "m1"), Names(), 1.0, handshake.HandshakingProtocol)


def ssl_error(reason: str, kind: type[ssl.SSLError] = ssl.SSLError) -> ssl.SSLError:
    error = kind(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "wants a client certificate, and got none"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "refused our client certificate"),
        ("SSL/TLS_ALERT_BAD_CERTIFICATE", "refused our client certificate"),
        ("SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "not made for clients"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "not valid at this time"),
        ("SSLV3_ALERT_CERTIFICATE_REVOKED", "revoked"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "refused our client certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust who issued it"),
        ("TLSV1_ALERT_ACCESS_DENIED", "not allowed here"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "1.2 or newer"),
        ("TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "ALPN"),
        ("TLSV1_UNRECOGNIZED_NAME", ""),
        ("TLSV1_ALERT_UNRECOGNIZED_NAME", "does not know the name"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "client certificate, or found nothing in common"),
        ("TLSV1_ALERT_INTERNAL_ERROR", "ended the TLS handshake"),
        ("UNSUPPORTED_PROTOCOL", "1.2 or newer"),
        ("WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("HTTP_REQUEST", "does not speak TLS"),
        ("SOMETHING_NEW", ""),
    ],
)
def test_every_reason_in_words_that_name_it(reason: str, text: str) -> None:
    explained = explain_tls(ssl_error(reason))
    if not text:
        assert explained is None, "OpenSSL's own text is kept"
    else:
        assert isinstance(explained, TLSError)
        assert text in str(explained)
        assert reason in str(explained)


def test_what_we_have_against_a_certificate_is_left_as_it_is() -> None:
    assert explain_tls(ssl_error("CERTIFICATE_VERIFY_FAILED", ssl.SSLCertVerificationError)) is None
    assert explain_tls(ConnectionResetError()) is None
    assert explain_tls(ssl.SSLError(1, "without a reason")) is None


def test_a_peer_that_went_without_a_word() -> None:
    for error in (ConnectionResetError("reset"), BrokenPipeError(), ssl.SSLEOFError(8, "EOF"), ConnectError("closed")):
        explained = explain_hang_up(error)
        assert isinstance(explained, TLSError)
        assert "client certificate" in str(explained)
    for other in (TLSError("more is known"), TimeoutError(), OSError("else"), ssl.SSLError(1, "else")):
        assert explain_hang_up(other) is None
