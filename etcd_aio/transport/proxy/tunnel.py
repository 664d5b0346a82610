"""A tunnel through a proxy: the protocol of its transport, until that of the endpoint takes its place.

The proxy's socket stays the same: first it is used for the conversation with the proxy, then for TLS with the endpoint,
if there is any, and then the engine's protocol gets it. Bytes that have come early go to that protocol first.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from etcd_aio.errors import ProxyAuthenticationError, ProxyError
from etcd_aio.transport.interface import Proxy
from etcd_aio.transport.proxy.conversation import Conversation
from etcd_aio.transport.proxy.http_connect import http_connect
from etcd_aio.transport.proxy.socks5 import socks5
from etcd_aio.transport.race import first_to_succeed

P = TypeVar("P", bound=asyncio.BaseProtocol)

Reach: TypeAlias = Callable[[Callable[[], "Tunnel"]], Coroutine[Any, Any, tuple[asyncio.Transport, "Tunnel"]]]
"""Connects a protocol to the proxy, with TLS if the proxy has it."""

_TLS_SHUTDOWN_TIMEOUT: Final = 1.0  # as of a direct connection


async def through_proxy(proxy: Proxy, places: Sequence[tuple[str, int]], reach: Reach) -> "Tunnel":
    """Let the proxy connect to the first of `places` that it reaches.

    Args:
        proxy: which proxy.
        places: the hosts and ports, which are all those of one endpoint.
        reach: see `Reach`.

    Raises:
        ProxyAuthenticationError: the proxy refused the credentials.
        ProxyError: the proxy is not reached, or reaches none of the places.
    """
    ways = [partial(_open, proxy, host, port, reach) for host, port in places]
    return await first_to_succeed(ways, Tunnel.abort, is_final=_is_of_proxy)


async def _open(proxy: Proxy, host: str, port: int, reach: Reach) -> "Tunnel":
    talk = socks5 if proxy.scheme.startswith("socks") else http_connect
    conversation = talk(proxy, host, port)
    try:
        _, tunnel = await reach(lambda: Tunnel(proxy, conversation))
    except ssl.SSLError as error:
        raise ProxyError(f"TLS with the proxy {proxy.name} failed: {error}") from error
    except OSError as error:
        raise ProxyError(f"the proxy {proxy.name} cannot be reached: {type(error).__name__}: {error}") from error
    try:
        await tunnel.opened
    except BaseException:  # also a cancellation
        tunnel.abort()
        raise
    return tunnel


def _is_of_proxy(error: BaseException) -> bool:
    """Whether an error has nothing to do with the place: the proxy is not reached, or refuses the credentials."""
    return isinstance(error, ProxyAuthenticationError) or isinstance(error.__cause__, OSError)


class Tunnel(asyncio.Protocol):
    """See above.

    Args:
        proxy: which proxy.
        conversation: what is said with it first.

    Attributes:
        opened: has ended when the conversation has.
    """

    def __init__(self, proxy: Proxy, conversation: Conversation) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proxy = proxy
        self._conversation: Conversation | None = conversation  # None once it has ended
        self._transport: asyncio.Transport
        self._early = b""  # bytes of the endpoint
        self._is_lost = False

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        self._converse(b"")

    def data_received(self, data: bytes) -> None:
        """Go on with the conversation, or keep what comes behind it."""
        if self._conversation is None:
            self._early += data
        else:
            self._converse(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy has closed the connection, or this side."""
        self._is_lost = True
        self._fail(ProxyError(f"the proxy {self._proxy.name} closed the connection without a full answer"))

    # For the dial.

    def abort(self) -> None:
        """Close the connection to the proxy."""
        self._transport.abort()

    async def hand_over(
        self, factory: Callable[[], P], tls: ssl.SSLContext | None, server_name: str | None
    ) -> tuple[asyncio.Transport, P]:
        """Begin TLS with the endpoint, if there is any, and give the transport to a protocol from `factory`.

        Raises:
            OSError: TLS failed, or the connection has ended.
        """
        transport = self._transport
        try:
            if tls is not None:
                if self._early:
                    raise ProxyError(f"bytes came through the proxy {self._proxy.name} before TLS had begun")
                # None if the connection ends during the handshake.
                started: asyncio.Transport | None = await asyncio.get_running_loop().start_tls(
                    transport,
                    self,
                    tls,
                    server_hostname=server_name,
                    ssl_shutdown_timeout=_TLS_SHUTDOWN_TIMEOUT,
                )
                self._is_lost = self._is_lost or started is None
                transport = started or transport
            if self._is_lost:
                raise ConnectionResetError(f"the connection through the proxy {self._proxy.name} has ended")
            protocol = factory()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            _feed(protocol, self._early)
        except BaseException:  # also a cancellation
            self._transport.abort()
            raise
        return transport, protocol

    def _converse(self, received: bytes) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        try:
            send = conversation.send(received) if received else next(conversation)
        except StopIteration as end:
            self._conversation = None
            self._early = end.value
            if not self.opened.done():
                self.opened.set_result(None)
        except ProxyError as error:
            self._fail(error)
            self._transport.abort()
        else:
            if send:
                self._transport.write(send)

    def _fail(self, error: ProxyError) -> None:
        self._conversation = None
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # no warning if nothing waits for it any more


def _feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    """Give a protocol bytes as its transport would."""
    if isinstance(protocol, asyncio.BufferedProtocol):
        while data:
            buffer = memoryview(protocol.get_buffer(len(data)))
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            protocol.buffer_updated(size)
            data = data[size:]
    elif data and isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)
