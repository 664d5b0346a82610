"""transport/explain.py: why no connection came about: the words for each mistake, and that each names its remedy."""

import ssl

import pytest

from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport.explain import (
    explain_first_bytes,
    explain_hang_up,
    explain_not_grpc,
    explain_tls,
    lacks_http2,
    no_http2_by_alpn,
    without_hint,
)

NGINX = (
    b"HTTP/1.1 400 Bad Request\r\nServer: nginx/1.22.1\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
    b"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head>"
)
GO = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
REDIRECTION = b"HTTP/1.1 301 Moved Permanently\r\nLocation: https://etcd.example.com/\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"HTTP/1.1 400 Bad Request", 'engine="gateway" or engine="auto"'),
        (b"HTTP/1.1 400 Bad Request", "a port with TLS"),
        (b"HTTP/1.1 400 Bad Request", "peer port"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "is the endpoint https:// ?"),
        (b"\x16\x03\x01", "is the endpoint https:// ?"),
        (NGINX, "is the endpoint https:// ?"),
        (GO, "is the endpoint https:// ?"),
        (REDIRECTION, "is the endpoint https:// ?"),
        (b"SSH-2.0", "does not speak HTTP/2"),
        (b"\x00", "does not speak HTTP/2"),
    ],
)
def test_the_first_bytes_tell_what_a_peer_speaks(data: bytes, word: str) -> None:
    assert word in explain_first_bytes(data)


@pytest.mark.parametrize("data", [b"", b"\0\0\x06\x04\0\0\0\0\0", b"\0\0\0\x04\0"])
def test_there_is_nothing_to_explain_about_http2_or_nothing(data: bytes) -> None:
    assert explain_first_bytes(data) == ""


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\0\0\x06\x04\0\0\0\0\0", "engine='native'"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "is the endpoint https:// ?"),
        (NGINX, "is the endpoint https:// ?"),
        (REDIRECTION, "is the endpoint https:// ?"),
        (b"SSH-2.0-OpenSSH", "does not speak HTTP"),
    ],
)
def test_the_same_where_http1_was_spoken(data: bytes, word: str) -> None:
    assert word in explain_first_bytes(data, over_http1=True)


@pytest.mark.parametrize("data", [b"", b"H", b"HTTP/1", b"HTTP/1.1 200 OK\r\nServer: the HTTPS server\r\n\r\n{}"])
def test_there_is_nothing_to_explain_about_http1(data: bytes) -> None:
    assert explain_first_bytes(data, over_http1=True) == ""


@pytest.mark.parametrize("data", [NGINX, GO, REDIRECTION])
def test_within_tls_nothing_asks_for_tls(data: bytes) -> None:
    assert explain_first_bytes(data, over_http1=True, is_tls=True) == ""
    assert "https" not in explain_first_bytes(data, is_tls=True)


def test_the_gateway_is_for_peers_that_speak_http1_in_the_right_kind_of_connection() -> None:
    assert lacks_http2(b"HTTP/1.1 400 Bad Request", is_tls=False)
    for data in (NGINX, GO, b"SSH-2.0-OpenSSH", b"\x15\x03\x01\0\x02", b""):
        assert not lacks_http2(data, is_tls=False)


@pytest.mark.parametrize("status", ["200", "404", "415"])
def test_an_answer_that_is_not_grpc_may_be_that_of_a_server_behind_a_proxy(status: str) -> None:
    assert 'engine="gateway"' in explain_not_grpc(status)


@pytest.mark.parametrize("status", ["502", "503", "401", "", "nonsense"])
def test_a_status_of_a_proxy_itself_tells_nothing(status: str) -> None:
    assert explain_not_grpc(status) == ""


def test_the_advice_can_be_taken_off() -> None:
    error = no_http2_by_alpn("http/1.1")
    assert error.lacks_http2
    assert 'engine="gateway"' in str(error)
    assert without_hint(error) == "the peer did not agree on HTTP/2 by ALPN (it chose http/1.1)"
    assert without_hint(ValueError("other")) == "other"


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
        ("TLSV1_UNRECOGNIZED_NAME", ""),
        ("TLSV1_ALERT_UNRECOGNIZED_NAME", "does not know the name"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "client certificate, or has no cipher in common"),
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


@pytest.mark.parametrize("has_reason", [True, False])
def test_a_server_that_refuses_the_version_of_http_within_tls(has_reason: bool) -> None:
    error = ssl_error("TLSV1_ALERT_NO_APPLICATION_PROTOCOL")
    if not has_reason:  # Python has no word for it where OpenSSL is newer
        error = ssl.SSLError(1, "[SSL] tlsv1 alert no application protocol (_ssl.c:1006)")
    explained = explain_tls(error)
    assert explained is not None
    assert explained.lacks_http2
    assert 'engine="gateway"' in str(explained)
    over_http1 = explain_tls(error, over_http1=True)
    assert over_http1 is not None
    assert not over_http1.lacks_http2
    assert "engine='native' (alert TLSV1_ALERT_NO_APPLICATION_PROTOCOL)" in str(over_http1)


ENDS = (ConnectionResetError("reset"), BrokenPipeError(), ConnectionAbortedError(), ConnectError("closed"))
OTHERS = (TLSError("more is known"), TimeoutError(), OSError("else"), ssl.SSLError(1, "else"), KeyboardInterrupt())


def test_a_peer_that_went_without_a_word_within_tls() -> None:
    for error in (*ENDS, ssl.SSLEOFError(8, "EOF")):
        explained = explain_hang_up(error, is_tls=True)
        assert isinstance(explained, TLSError)
        assert "perhaps it was stopped just now, or it wants a client certificate" in str(explained)


def test_a_peer_that_went_without_a_word_in_plain_text() -> None:
    for error in ENDS:
        explained = explain_hang_up(error, is_tls=False)
        assert type(explained) is ConnectError
        assert not explained.lacks_http2
        assert str(error) in str(explained)
        hint = "perhaps it was stopped just now, or it serves TLS (then https://), or HTTP/1 only (then use engine="
        assert hint in str(explained)
    over_http1 = explain_hang_up(ENDS[0], is_tls=False, over_http1=True)
    assert str(over_http1).endswith(
        "to answer over HTTP/1: reset; perhaps it was stopped just now, or it serves TLS (then https://)"
    )
    assert "did not begin HTTP/2: reset" in str(explain_hang_up(ENDS[0], is_tls=False))


@pytest.mark.parametrize("is_tls", [True, False])
def test_what_is_no_end_is_left_as_it_is(is_tls: bool) -> None:
    for other in OTHERS:
        assert explain_hang_up(other, is_tls=is_tls) is None
