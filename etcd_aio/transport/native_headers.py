"""The native engine's request headers: what every call says of itself before its message.

Knows: gRPC's request headers, and which of them repeat. Never knows: connections, HPACK.
"""

from typing import Final

from etcd_aio.http2 import RequestHeaders
from etcd_aio.transport.interface import Metadata, Target

SECRETS: Final = frozenset({"token", "authorization"})
"""Metadata that no table of header compression may hold."""

_MAX_KNOWN: Final = 256
_MAX_TIMEOUTS: Final = 16_384
_SHOWN_DIGITS: Final = 2  # a server needs to know when to give up, not to the millisecond
_MAX_NUMBER: Final = 10**8  # of a grpc-timeout: eight digits


class CallHeaders:
    """The headers of all calls on one connection, each made once.

    Args:
        target: whom they are for.
        user_agent: what names this client.
    """

    __slots__ = ("_head", "_known", "_last", "_secrets", "_tail", "_timeouts", "_timeouts_by_text")

    def __init__(self, target: Target, user_agent: str) -> None:
        self._head = (
            (":method", "POST"),
            (":scheme", "https" if target.tls is not None else "http"),
            (":authority", target.authority),
        )
        self._tail = (("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", user_agent))
        self._known: dict[tuple[str, Metadata], RequestHeaders] = {}
        self._last: dict[str, tuple[Metadata, RequestHeaders]] = {}
        self._secrets: Metadata = ()  # of those that are known
        self._timeouts: dict[int, RequestHeaders] = {}
        self._timeouts_by_text: dict[str, RequestHeaders] = {}

    def of(self, path: str, metadata: Metadata) -> RequestHeaders:
        """What all calls of a method with this metadata have in common."""
        last = self._last.get(path)
        if last is not None and last[0] is metadata:  # as almost always, and cheaper than to compare
            return last[1]
        headers = self._known.get((path, metadata))
        if headers is None:
            secrets = tuple(pair for pair in metadata if pair[0] in SECRETS)
            if len(self._known) >= _MAX_KNOWN or (secrets and secrets != self._secrets):
                self._known.clear()  # a token that is out of use is remembered nowhere
                self._last.clear()
            self._secrets = secrets or self._secrets
            fields = (*self._head, (":path", path), *self._tail, *metadata)
            headers = self._known[path, metadata] = RequestHeaders(fields)
        self._last[path] = metadata, headers
        return headers

    def timeout(self, seconds: float) -> RequestHeaders:
        """What tells a server after how many seconds nobody waits any more: rounded up, so that few values repeat.

        The deadline itself is kept on this side.
        """
        milliseconds = int(seconds * 1000) + 1
        timeout = self._timeouts.get(milliseconds)
        if timeout is None:
            if len(self._timeouts) >= _MAX_TIMEOUTS:
                self._timeouts.clear()
                self._timeouts_by_text.clear()
            text = timeout_text(milliseconds)
            timeout = self._timeouts_by_text.get(text)
            if timeout is None:
                # The first value is most likely the client's own. The others need only the name in the peer's table.
                is_first = not self._timeouts_by_text
                timeout = RequestHeaders((("grpc-timeout", text),), is_lasting=is_first)
                self._timeouts_by_text[text] = timeout
            self._timeouts[milliseconds] = timeout
        return timeout


def timeout_text(milliseconds: int) -> str:
    """At least so many milliseconds, as gRPC spells them."""
    step = 10 ** max(len(str(milliseconds)) - _SHOWN_DIGITS, 0)
    rounded = -(-milliseconds // step) * step
    return f"{rounded}m" if rounded < _MAX_NUMBER else f"{min(-(-rounded // 1000), _MAX_NUMBER - 1)}S"
