"""Why a connection failed, in words that name the likely mistake, for every engine. Without I/O.

A peer that speaks something else tells what by its first bytes, by the reason of a TLS failure, or by its silence.
Problems with the peer's certificate are explained by `ssl.SSLCertVerificationError`. Problems that the peer has with
this side come as a TLS alert (RFC 8446, section 6), for which OpenSSL has a word in capitals. With TLS 1.3 the alert
arrives after the handshake has ended on this side, or not at all if the peer closes the connection too soon.
"""

import re
import ssl
from typing import Final

from etcd_aio.errors import ConnectError, TLSError

FIRST_BYTES: Final = 1024
"""The number of a peer's first bytes that are examined: the head of an HTTP answer, and the text that often follows."""

ENOUGH: Final = 9
"""The number of bytes that show the protocol: the head of an HTTP/2 frame. Fewer may be its beginning."""

USE_GATEWAY: Final = ': perhaps a proxy passes HTTP/1 only (then use engine="gateway" or engine="auto"), or it is '
"""The advice after the proof that HTTP/2 does not pass; `without_hint` removes it."""

_NOT_GRPC: Final = ': perhaps a proxy turns HTTP/2 into HTTP/1 (then use engine="gateway"), or it is another service'
# What servers of HTTP/1 make of gRPC.
_TURNED: Final = frozenset({"200", "404", "405", "415", "426", "464", "501", "505"})

_OTHERS: Final = "etcd's peer port or another service"
_OTHERS_IN_PLAIN_TEXT: Final = "a port with TLS (then https://), etcd's peer port or another service"
_STOPPED: Final = "perhaps it was stopped just now"
_USE_TLS: Final = "is the endpoint https:// ?"
_HTTP1: Final = b"HTTP/1"
_SETTINGS: Final = b"\x04\x00"  # type and flags of the frame that an HTTP/2 server begins with (RFC 9113, 3.4)
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")
# What servers say, in HTTP/1, of plain text on a port with TLS: Go, nginx, Apache; and a redirection.
_WANTS_TLS: Final = re.compile(
    rb"HTTP/1\.[01] (?:4.*(?:HTTPS server|HTTPS port|SSL-enabled)|3.*\r\nlocation:[ \t]*https://)",
    re.IGNORECASE | re.DOTALL,
)

# Parts of OpenSSL's reasons; their prefixes differ between versions (SSLV3_ALERT_..., SSL/TLS_ALERT_...).
_NO_COMMON_PROTOCOL: Final = "NO_APPLICATION_PROTOCOL"
_ALERTS: Final = (
    ("CERTIFICATE_REQUIRED", "the peer wants a client certificate, and got none: set cert= and key="),
    ("BAD_CERTIFICATE", "the peer refused our client certificate, or wants one and got none: look at cert="),
    ("UNSUPPORTED_CERTIFICATE", "the peer refused our client certificate: it is not made for clients"),
    ("CERTIFICATE_REVOKED", "the peer refused our client certificate: it is revoked"),
    ("CERTIFICATE_EXPIRED", "the peer refused our client certificate: it is not valid at this time"),
    ("CERTIFICATE_UNKNOWN", "the peer refused our client certificate"),
    ("UNKNOWN_CA", "the peer refused our client certificate: it does not trust who issued it"),
    ("ACCESS_DENIED", "the peer refused our client certificate: it is valid, but not allowed here"),
    ("PROTOCOL_VERSION", "the peer and this client have no version of TLS in common: 1.2 or newer is needed"),
    ("UNRECOGNIZED_NAME", "the peer does not know the name that it was asked for"),
    ("HANDSHAKE_FAILURE", "the peer wants a client certificate, or has no cipher in common with this client"),
)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")
_TOO_OLD: Final = "UNSUPPORTED_PROTOCOL"


def explain_first_bytes(data: bytes, *, over_http1: bool = False, is_tls: bool = False) -> str:
    """Guess a wrong protocol from the first bytes of a peer; empty for the right one, or if there are none.

    Args:
        data: what the peer sent first.
        over_http1: HTTP/1 was spoken to it; else HTTP/2.
        is_tls: within TLS; else in plain text.
    """
    if not data:
        return ""
    if data[:2] in _TLS_RECORDS:
        return f"the peer answered in TLS: {_USE_TLS}"
    if not is_tls and _WANTS_TLS.match(data):
        return f"the peer wants TLS: {_USE_TLS}"
    if over_http1:
        if data.startswith(_HTTP1[: len(data)]):
            return ""
        if data[3:5] == _SETTINGS:
            return "the peer speaks HTTP/2 and no HTTP/1: engine='native' is for it"
        return "the peer does not speak HTTP"
    if data[3:5] == _SETTINGS:
        return ""
    if lacks_http2(data, is_tls=is_tls):
        return f"the peer answered in HTTP/1, not HTTP/2{USE_GATEWAY}{_OTHERS if is_tls else _OTHERS_IN_PLAIN_TEXT}"
    return "the peer does not speak HTTP/2"


def lacks_http2(data: bytes, *, is_tls: bool) -> bool:
    """Whether the first bytes of a peer, to which HTTP/2 was spoken, prove that it speaks HTTP/1 only."""
    return data.startswith(_HTTP1) and (is_tls or not _WANTS_TLS.match(data))


def without_hint(error: BaseException) -> str:
    """An error's text without the advice to use the gateway, which has been followed."""
    return str(error).partition(USE_GATEWAY)[0]


def explain_not_grpc(status: str) -> str:
    """The likely cause of an answer over HTTP/2 without a gRPC status, by its HTTP status; empty if unknown."""
    return _NOT_GRPC if status in _TURNED else ""


def no_http2_by_alpn(chosen: str | None) -> TLSError:
    """The error for a peer that does not agree on HTTP/2, but on `chosen`; None for nothing."""
    error = TLSError(f"the peer did not agree on HTTP/2 by ALPN (it chose {chosen or 'nothing'}){USE_GATEWAY}{_OTHERS}")
    error.lacks_http2 = True
    return error


def explain_tls(error: BaseException, *, over_http1: bool = False) -> TLSError | None:
    """An error with an explanation; None if OpenSSL's own text is better, or if it is not an error of TLS.

    Args:
        error: why the handshake failed.
        over_http1: HTTP/1 was offered to the peer; else HTTP/2.
    """
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLCertVerificationError):
        return None
    reason = _reason(error)
    if "_ALERT_" in reason:
        if _NO_COMMON_PROTOCOL in reason:
            if not over_http1:
                return no_http2_by_alpn(None)
            return TLSError(f"the peer does not agree on HTTP/1.1 by ALPN: try engine='native' (alert {reason})")
        for part, text in _ALERTS:
            if part in reason:
                return TLSError(f"{text} (alert {reason})")
        return TLSError(f"the peer ended the TLS handshake (alert {reason})")
    if any(part in reason for part in _NO_TLS):
        return TLSError(f"the peer does not speak TLS: is the endpoint http:// ? ({reason})")
    if _TOO_OLD in reason:
        return TLSError(f"the peer and this client have no version of TLS in common: 1.2 or newer is needed ({reason})")
    return None


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's word in capitals; empty if it is not known."""
    reason: str | None = getattr(error, "reason", None)  # event loops raise some without
    if reason:
        return reason
    # Python has no word for reasons that are newer than itself: then the text has them, in small letters.
    found = re.match(r"\[SSL\] (.+?)(?: \(_ssl|$)", str(error.args[-1] if error.args else ""))
    return "" if found is None else found[1].upper().replace(" ", "_")


def not_begun(end: object, *, over_http1: bool) -> str:
    """The text for a connection that ended, for the reason `end`, before the peer had begun to answer."""
    awaited = "to answer over HTTP/1" if over_http1 else "HTTP/2"
    return f"connected, but the peer did not begin {awaited}: {end}"


def explain_hang_up(error: BaseException, *, is_tls: bool, over_http1: bool = False) -> ConnectError | None:
    """The error for a peer that closed a connection on which it had said nothing; None if it did not.

    Args:
        error: what is known of the end.
        is_tls: the TLS handshake had ended; else the connection is in plain text.
        over_http1: HTTP/1 was spoken to it; else HTTP/2.
    """
    is_gone = isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError | ssl.SSLEOFError)
    if not is_gone and type(error) is not ConnectError:  # a subclass is already more specific
        return None
    if is_tls:
        return TLSError(
            f"the peer hung up after the TLS handshake: {_STOPPED}, or it wants a client certificate ({error})"
        )
    said = str(error)
    if not isinstance(error, ConnectError):
        said = not_begun(said or type(error).__name__, over_http1=over_http1)
    # The port of etcd's --listen-client-http-urls ends HTTP/2 without a word.
    or_http1 = "" if over_http1 else ', or HTTP/1 only (then use engine="gateway")'
    return ConnectError(f"{said}; {_STOPPED}, or it serves TLS (then https://){or_http1}")
