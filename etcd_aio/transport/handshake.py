"""From a target to a connection whose peer has proved that it speaks HTTP/2, and why that failed. For every engine.

Problems with the peer's certificate are explained by `ssl.SSLCertVerificationError`. Problems that the peer has with
this side come as a TLS alert (RFC 8446, section 6), for which OpenSSL has a word in capitals. With TLS 1.3 the alert
arrives after the handshake has ended on this side, or not at all if the peer closes the connection too soon.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

from etcd_aio.errors import ConnectError, ConnectionLostError, TLSError
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.interface import Target
from etcd_aio.transport.names import Names
from etcd_aio.transport.response import explain_first_bytes

_FIRST_BYTES: Final = 16  # enough to tell protocols apart
# Parts of OpenSSL's reasons; their prefixes differ between versions (SSLV3_ALERT_..., SSL/TLS_ALERT_...).
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


class Handshake:
    """Waits for the peer's SETTINGS, or the reason why they do not arrive.

    Args:
        explain: guesses a wrong protocol from the peer's first bytes.
        awaited: what the peer should have begun, in words.
    """

    def __init__(self, explain: Callable[[bytes], str] = explain_first_bytes, awaited: str = "HTTP/2") -> None:
        self._explain = explain
        self._awaited = awaited
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first_bytes = b""

    @property
    def has_heard(self) -> bool:
        """Whether the peer has sent anything."""
        return bool(self._first_bytes)

    @property
    def is_over(self) -> bool:
        """Whether it succeeded or failed."""
        return self._done.done()

    def on_bytes(self, data: bytes) -> None:
        """Keep the first bytes from the peer."""
        if len(self._first_bytes) < _FIRST_BYTES:
            self._first_bytes += data[:_FIRST_BYTES]

    def succeed(self) -> None:
        """The peer's SETTINGS arrived, perhaps not for the first time."""
        if not self._done.done():
            self._done.set_result(None)

    def fail(self, error: BaseException | None) -> None:
        """The connection ended first; `error` is the cause, None if the client closed it."""
        text = self._explain(self._first_bytes)
        if error is None or text or isinstance(error, ConnectionLostError):
            error = self._error(text or f"connected, but the peer did not begin {self._awaited}: {error or 'closed'}")
        self._done.set_exception(error)
        self._done.exception()  # no warning if nothing waits for it any more

    def explain_silence(self, seconds: float) -> ConnectError:
        """The error for a timeout."""
        text = self._explain(self._first_bytes)
        return self._error(text or f"connected, but no answer within {seconds:g} s of dialling")

    def _error(self, text: str) -> ConnectError:
        error = ConnectError(text)
        error.lacks_http2 = self._awaited == "HTTP/2" and self._first_bytes.startswith(b"HTTP/1")
        return error

    async def wait(self) -> None:
        """Wait for the end of the handshake; raises the reason if it failed."""
        await self._done


class HandshakingProtocol(asyncio.Protocol):
    """An engine's protocol.

    Attributes:
        handshake: resolves when the peer's SETTINGS arrive; fails with the reason if the connection ends before.
        is_established: whether `connect` returned the connection; before that its owner is not notified.
    """

    handshake: Handshake
    is_established = False

    @property
    def takes_calls(self) -> bool:
        """Whether new calls can be made."""
        raise NotImplementedError

    def abort(self, error: BaseException | None) -> None:
        """End the connection at once."""
        raise NotImplementedError


C = TypeVar("C", bound=HandshakingProtocol)


async def connect(
    target: Target, names: Names, seconds: float, make: Callable[[], C], *, over_http1: bool = False
) -> C:
    """Dial `target` and wait for the handshake. Cleans up if that fails.

    Args:
        target: the server.
        names: resolves host names.
        seconds: timeout of the dial with the handshake, and before that of `find_route`.
        make: creates the protocol.
        over_http1: it is one of HTTP/1.

    Raises:
        OSError: the operating system's reason.
        ConnectError: the peer is not a gRPC server; or the peer, or DNS, did not answer in time.
        TLSError: TLS failed. An invalid certificate of the peer is an `ssl.SSLCertVerificationError` instead.
    """
    route = await find_route(target, names, seconds)
    protocol: C | None = None
    try:
        async with asyncio.timeout(seconds):
            _, protocol = await dial(route, make, over_http1=over_http1)
            await protocol.handshake.wait()
        # A GOAWAY or the end may have arrived right after the SETTINGS.
        if not protocol.takes_calls:
            raise ConnectError("the peer ended the connection as soon as it was open")
    except BaseException as error:  # a cancellation too: no socket may stay behind
        if protocol is not None:
            protocol.abort(None)
        # The kernel's ETIMEDOUT is a TimeoutError too, and more specific.
        if isinstance(error, TimeoutError) and error.errno is None:
            if protocol is not None:
                raise protocol.handshake.explain_silence(seconds) from None
            raise ConnectError(f"no answer within {seconds:g} s of dialling") from None
        if target.tls is not None:
            explained = explain_tls(error)
            if explained is None and protocol is not None and not protocol.handshake.has_heard:
                explained = explain_hang_up(error)
            if explained is not None:
                raise explained from error
        raise
    protocol.is_established = True
    return protocol


def explain_tls(error: BaseException) -> TLSError | None:
    """An error with an explanation; None if OpenSSL's own text is better, or if it is not an error of TLS."""
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
    """The error for a peer that closed the connection after the handshake; None if it did not."""
    is_gone = isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError | ssl.SSLEOFError)
    if not is_gone and type(error) is not ConnectError:  # a subclass is already more specific
        return None
    return TLSError(f"the peer hung up after the TLS handshake: does it want a client certificate? ({error})")
