"""Dialling: from a target to a connected asyncio transport, the same for every engine and every event loop.

There are two steps: `find_route` resolves the host name and reads the certificate files, `dial` connects. Each has a
timeout of its own, so that a slow name server does not use up the peer's time.
"""

import asyncio
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConnectError, ProxyError, TLSError
from etcd_aio.transport.explain import no_http2_by_alpn
from etcd_aio.transport.interface import Target, TLSContext
from etcd_aio.transport.names import Address, Names
from etcd_aio.transport.race import first_to_succeed
from etcd_aio.transport.time_limit import TimeLimit

P = TypeVar("P", bound=asyncio.BaseProtocol)

_TLS_SHUTDOWN_TIMEOUT: Final = 1.0  # asyncio's 30 s would hold a closing client; we abort what is dead anyway


@dataclass(frozen=True, slots=True)
class DialRoute:
    """The addresses and the TLS context of one dial.

    Attributes:
        target: where to.
        addresses: its addresses, or those of its proxy; empty for a unix socket.
        tls: the context of this dial; None for plaintext.
        proxy_tls: the context of the proxy; None if it has no TLS.
        places: the hosts and ports of the target to which the proxy may connect.
    """

    target: Target
    addresses: Sequence[Address]
    tls: ssl.SSLContext | None
    proxy_tls: ssl.SSLContext | None = None
    places: Sequence[tuple[str, int]] = ()


async def find_route(target: Target, names: Names, seconds: float) -> DialRoute:
    """Find out how to connect to `target`.

    Args:
        target: where to.
        names: looks host names up.
        seconds: how long the addresses may take, and the certificate files. What takes longer goes on, and the next
            dial has the use of it.

    Raises:
        OSError: the resolver's reason.
        ConnectError: the host cannot be the name of one; its name was not resolved, or a file not read, in time.
        ProxyError: so for the proxy.
        EtcdError: the certificate files cannot be used.
    """
    tls = await _context(target.tls, seconds)
    proxy = target.proxy
    if proxy is None:
        addresses = () if target.path else await _addresses(names, target.host, target.port, seconds)
        return DialRoute(target, addresses, tls)
    try:
        addresses = await _addresses(names, proxy.host, proxy.port, seconds)
    except (OSError, ConnectError) as error:
        raise ProxyError(f"the proxy {proxy.name} cannot be reached: {error}") from error
    proxy_tls = await _context(proxy.tls, seconds)
    places: Sequence[tuple[str, int]] = ((target.host, target.port),)
    if proxy.scheme == "socks5":
        found = await _addresses(names, target.host, target.port, seconds)
        places = [(where[0], target.port) for _, _, _, _, where in _alternating(found)]
    return DialRoute(target, addresses, tls, proxy_tls, places)


async def _context(tls: TLSContext | None, seconds: float) -> ssl.SSLContext | None:
    if tls is None or isinstance(tls, ssl.SSLContext):
        return tls
    limit = TimeLimit(seconds)
    try:
        async with limit:
            return await tls.context()
    except TimeoutError:
        if not limit.expired():
            raise
        raise ConnectError(f"the certificate files were not read within {seconds:g} s") from None


async def _addresses(names: Names, host: str, port: int, seconds: float) -> Sequence[Address]:
    try:
        return await names.addresses(host, port, seconds)
    except UnicodeError as error:  # what IDNA refuses, and no OSError
        raise ConnectError(f"{host!r} cannot be a host name") from error


async def dial(
    route: DialRoute,
    factory: Callable[[], P],
    *,
    over_http1: bool = False,
    on_reached: Callable[[], None] = lambda: None,
) -> tuple[asyncio.Transport, P]:
    """Connect along `route` with a protocol from `factory`. The caller bounds the time.

    Args:
        route: where to.
        factory: makes the protocol.
        over_http1: the protocol is one of HTTP/1; else of HTTP/2. With TLS, the peer must agree.
        on_reached: called once the peer's machine has accepted the connection, before TLS.

    Raises:
        OSError: the operating system's or TLS's reason.
        ProxyError: the proxy does not open the connection.
        TLSError: the peer hung up during the handshake, or did not agree on the version of HTTP.
    """
    try:
        transport, protocol = await _connect(route, factory, on_reached)
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError) as error:
        if route.tls is None:
            raise
        text = (
            "the peer hung up during the TLS handshake: perhaps it was stopped just now, or it does not serve TLS, "
            "or requires a client certificate (TLS(cert=, key=))"
        )
        raise TLSError(text) from error
    if route.tls is not None:
        agreed = _agreed_protocol(transport)
        if over_http1 and agreed == "h2":
            transport.abort()
            raise TLSError("the peer agreed on HTTP/2 by ALPN: the TLS context must offer http/1.1 instead of h2")
        if not over_http1 and agreed != "h2":
            transport.abort()
            raise no_http2_by_alpn(agreed)
        source, tls = route.target.tls, transport.get_extra_info("ssl_object")
        if source is not None and not isinstance(source, ssl.SSLContext) and isinstance(tls, ssl.SSLObject):
            source.on_handshake(tls)
    return transport, protocol


async def _connect(
    route: DialRoute, factory: Callable[[], P], on_reached: Callable[[], None]
) -> tuple[asyncio.Transport, P]:
    loop = asyncio.get_running_loop()
    target, tls = route.target, route.tls
    server_name = target.server_name if tls is not None else None
    if target.path:
        on_reached()  # or it is refused at once
        return await loop.create_unix_connection(
            factory,
            target.path,
            ssl=tls,
            server_hostname=server_name,
            ssl_shutdown_timeout=None if tls is None else _TLS_SHUTDOWN_TIMEOUT,
        )
    if target.proxy is None:
        return await _to_first(route.addresses, factory, tls, server_name, on_reached)
    from etcd_aio.transport.proxy.tunnel import Tunnel, through_proxy  # few clients have a proxy

    proxy = target.proxy
    proxy_name = None if route.proxy_tls is None else proxy.host

    async def reach(make: Callable[[], Tunnel]) -> tuple[asyncio.Transport, Tunnel]:
        return await _to_first(route.addresses, make, route.proxy_tls, proxy_name)

    tunnel = await through_proxy(proxy, route.places, reach)
    on_reached()
    return await tunnel.hand_over(factory, tls, server_name)


async def _to_first(
    addresses: Sequence[Address],
    factory: Callable[[], P],
    tls: ssl.SSLContext | None,
    server_name: str | None,
    on_reached: Callable[[], None] = lambda: None,
) -> tuple[asyncio.Transport, P]:
    """Connect to the first address that answers."""
    loop = asyncio.get_running_loop()
    sock = await _race(addresses)
    on_reached()
    try:
        # The transport owns the socket before this first waits.
        return await loop.create_connection(
            factory,
            sock=sock,
            ssl=tls,
            server_hostname=server_name,
            ssl_shutdown_timeout=None if tls is None else _TLS_SHUTDOWN_TIMEOUT,
        )
    finally:
        # libuv owns the descriptor now. uvloop takes it from the socket object only if the transport lives until here;
        # otherwise the object would close it once more, when it may be another connection's.
        if not isinstance(loop, asyncio.BaseEventLoop):
            sock.detach()


async def _race(addresses: Sequence[Address]) -> socket.socket:
    """A socket connected to the first address that answers (RFC 8305)."""
    if not addresses:
        raise OSError("the host name has no address")
    ways = [partial(_connect_socket, address) for address in _alternating(addresses)]
    return await first_to_succeed(ways, socket.socket.close)


async def _connect_socket(address: Address) -> socket.socket:
    family, kind, protocol, _, where = address
    loop = asyncio.get_running_loop()
    if len(where) == 4 and where[3] and not isinstance(loop, asyncio.BaseEventLoop):
        where = (f"{where[0]}%{where[3]}", *where[1:])  # uvloop takes the scope of an IPv6 address from its text alone
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, where)
    except BaseException:  # also on cancellation: nothing else would close the socket
        sock.close()
        raise
    return sock


def _alternating(addresses: Sequence[Address]) -> deque[Address]:
    """The addresses with their families by turns, so that one broken family costs one delay (RFC 8305, section 4)."""
    families = list(dict.fromkeys(address[0] for address in addresses))
    ranks: Counter[int] = Counter()
    keyed: list[tuple[int, int, Address]] = []
    for address in addresses:
        keyed.append((ranks[address[0]], families.index(address[0]), address))
        ranks[address[0]] += 1
    return deque(address for _, _, address in sorted(keyed, key=lambda entry: entry[:2]))


def _agreed_protocol(transport: asyncio.Transport) -> str | None:
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.selected_alpn_protocol() if isinstance(ssl_object, ssl.SSLObject) else None
