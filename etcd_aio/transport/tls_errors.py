"""TLS errors: what a failed handshake means, in words that say what to look at. The same for every engine.

Knows: OpenSSL's names of reasons, TLS's alerts (RFC 8446, section 6). Never knows: engines, certificates.

What we have against the peer's certificate is left as it is: `ssl.SSLCertVerificationError` names it. What the peer has
against us, it says in an alert, for which OpenSSL has a word in capitals. With TLS 1.3 that comes after the handshake
has ended on this side, as the first thing that is read, or not at all if the peer hangs up too soon behind it.
"""

import ssl
from typing import Final

from etcd_aio.errors import ConnectError, TLSError

# Parts of OpenSSL's reasons, whose beginnings differ from version to version (SSLV3_ALERT_..., SSL/TLS_ALERT_...).
_ALERTS: Final = (
    ("CERTIFICATE_REQUIRED", "the peer wants a client certificate, and got none: set cert= and key="),
    ("BAD_CERTIFICATE", "the peer refused our client certificate, or wants one and got none: look at cert="),
    ("UNSUPPORTED_CERTIFICATE", "the peer refused our client certificate: it is not made for clients"),
    ("CERTIFICATE_REVOKED", "the peer refused our client certificate: it is revoked"),
    ("CERTIFICATE_EXPIRED", "the peer refused our client certificate: it is not valid at this time"),
    ("CERTIFICATE_UNKNOWN", "the peer refused our client certificate"),
    ("UNKNOWN_CA", "the peer refused our client certificate: it does not trust who issued it"),
    ("ACCESS_DENIED", "the peer refused our client certificate: it is valid, but not allowed here"),
    ("PROTOCOL_VERSION", "the peer speaks no version of TLS that we do: 1.2 or newer is needed"),
    ("NO_APPLICATION_PROTOCOL", "the peer did not agree on HTTP/2 by ALPN: it offers something else"),
    ("UNRECOGNIZED_NAME", "the peer does not know the name that it was asked for"),
    ("HANDSHAKE_FAILURE", "the peer wants a client certificate, or found nothing in common with us"),
)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")
_TOO_OLD: Final = "UNSUPPORTED_PROTOCOL"


def explain_tls(error: BaseException) -> TLSError | None:
    """The same in words, None if OpenSSL's own are the best there are, or if it is no error of TLS's."""
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLCertVerificationError):
        return None
    reason: str = getattr(error, "reason", None) or ""  # event loops raise some without
    if "_ALERT_" in reason:
        for part, text in _ALERTS:
            if part in reason:
                return TLSError(f"{text} (alert {reason})")
        return TLSError(f"the peer ended the TLS handshake (alert {reason})")
    if any(part in reason for part in _NO_TLS):
        return TLSError(f"the peer does not speak TLS: is the endpoint http:// ? ({reason})")
    if _TOO_OLD in reason:
        return TLSError(f"the peer speaks no version of TLS that we do: 1.2 or newer is needed ({reason})")
    return None


def explain_hang_up(error: BaseException) -> TLSError | None:
    """Why a peer may have gone after the handshake without a word; None if it did not go."""
    is_gone = isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError | ssl.SSLEOFError)
    if not is_gone and type(error) is not ConnectError:  # a subclass says more already
        return None
    return TLSError(f"the peer hung up after the TLS handshake: does it want a client certificate? ({error})")
