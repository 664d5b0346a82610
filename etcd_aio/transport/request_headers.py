"""gRPC's request headers, for the engines that speak HTTP/2; cached for the native one."""

from typing import Final

from etcd_aio.http2 import RequestHeaders
from etcd_aio.transport.interface import Metadata, Target
from etcd_aio.transport.metadata import CallHeader

SECRETS: Final = frozenset({"token", "authorization"})
"""Metadata that must not enter a header compression table."""

_MAX_KNOWN: Final = 256
_MAX_TIMEOUTS: Final = 16_384
_SHOWN_DIGITS: Final = 2  # servers need no more precision
_MAX_NUMBER: Final = 10**8  # of a grpc-timeout: eight digits


class BaseHeaders:
    """The headers of every request on one connection, before its metadata."""

    def __init__(self, target: Target, user_agent: str) -> None:
        self._head = (
            (":method", "POST"),
            (":scheme", "https" if target.tls is not None else "http"),
            (":authority", target.authority),
        )
        self._tail = (("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", user_agent))

    def of(self, path: str) -> Metadata:
        """The headers of a method; pseudo-headers come first (RFC 9113, 8.3)."""
        return (*self._head, (":path", path), *self._tail)


class CallHeaders:
    """The headers of all calls on one connection, cached.

    Args:
        target: the server.
        user_agent: value of the `user-agent` header.
    """

    def __init__(self, target: Target, user_agent: str) -> None:
        self._base = BaseHeaders(target, user_agent)
        self._known: dict[tuple[str, Metadata], RequestHeaders] = {}
        self._last: dict[str, tuple[Metadata, RequestHeaders]] = {}
        self._secrets: Metadata = ()  # in the cache
        self._timeouts: dict[int, RequestHeaders] = {}
        self._timeouts_by_text: dict[str, RequestHeaders] = {}

    def of(self, path: str, metadata: Metadata) -> RequestHeaders:
        """The headers of a method with this metadata."""
        last = self._last.get(path)
        if last is not None and last[0] is metadata:  # the usual case, and cheaper than a comparison
            return last[1]
        headers = self._known.get((path, metadata))
        if headers is None:
            own = tuple(pair for pair in metadata if type(pair) is CallHeader)
            if own:
                return self.of(path, tuple(pair for pair in metadata if pair not in own)).with_own(own)
            secrets = tuple(pair for pair in metadata if pair[0] in SECRETS)
            if len(self._known) >= _MAX_KNOWN or (secrets and secrets != self._secrets):
                self._known.clear()  # keep no outdated token
                self._last.clear()
            self._secrets = secrets or self._secrets
            headers = self._known[path, metadata] = RequestHeaders((*self._base.of(path), *metadata))
        self._last[path] = metadata, headers
        return headers

    def timeout(self, seconds: float) -> RequestHeaders:
        """The `grpc-timeout` header, rounded up, so that few values differ. The client enforces the deadline."""
        milliseconds = int(seconds * 1000) + 1
        timeout = self._timeouts.get(milliseconds)
        if timeout is None:
            if len(self._timeouts) >= _MAX_TIMEOUTS:
                self._timeouts.clear()
                self._timeouts_by_text.clear()
            text = timeout_text(milliseconds)
            timeout = self._timeouts_by_text.get(text)
            if timeout is None:
                # The first value is probably the client's default; of the others only the name enters the table.
                is_first = not self._timeouts_by_text
                timeout = RequestHeaders((("grpc-timeout", text),), is_lasting=is_first)
                self._timeouts_by_text[text] = timeout
            self._timeouts[milliseconds] = timeout
        return timeout


def timeout_text(milliseconds: int) -> str:
    """A timeout of at least so many milliseconds in gRPC's notation."""
    step = 10 ** max(len(str(milliseconds)) - _SHOWN_DIGITS, 0)
    rounded = -(-milliseconds // step) * step
    return f"{rounded}m" if rounded < _MAX_NUMBER else f"{min(-(-rounded // 1000), _MAX_NUMBER - 1)}S"
