"""SOCKS version 5 (RFC 1928), with name and password (RFC 1929), without IO."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from etcd_aio.arguments import join_host_port
from etcd_aio.errors import ProxyAuthenticationError, ProxyError
from etcd_aio.transport.interface import Proxy
from etcd_aio.transport.proxy.conversation import Conversation, exactly

_VERSION: Final = 5
_OPEN: Final = 0  # no authentication
_PASSWORD: Final = 2
_NONE_ACCEPTABLE: Final = 0xFF
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REASONS: Final[Mapping[int, str]] = {
    1: "it failed",
    2: "its rules do not allow it",
    3: "the network is unreachable",
    4: "the host is unreachable, or its name unknown",
    5: "the connection was refused",
    6: "the time to live has expired",
    7: "it does not know the command",
    8: "it does not know the type of address",
}


def socks5(proxy: Proxy, host: str, port: int) -> Conversation:
    """Ask for a tunnel.

    Args:
        proxy: which proxy.
        host: the endpoint's address, or its name, which the proxy then resolves.
        port: the endpoint's port.

    Raises:
        ProxyAuthenticationError: the proxy wants other credentials.
        ProxyError: there is no tunnel.
    """
    methods = bytes([_OPEN, _PASSWORD] if proxy.user else [_OPEN])
    (version, method), received = yield from exactly(2, b"", bytes([_VERSION, len(methods)]) + methods)
    if version != _VERSION:
        raise ProxyError(f"{proxy.name} does not answer in SOCKS 5: is it a SOCKS proxy?")
    if method == _PASSWORD and proxy.user:
        (_, refused), received = yield from exactly(2, received, _credentials(proxy))
        if refused:
            raise ProxyAuthenticationError(f"the proxy {proxy.name} refused the name and password")
    elif method == _NONE_ACCEPTABLE:
        what = "takes no name and password" if proxy.user else "wants a name and password, and got none"
        raise ProxyAuthenticationError(f"the proxy {proxy.name} {what}")
    elif method != _OPEN:
        raise ProxyError(f"the proxy {proxy.name} chose a way of authentication that was not offered")
    request = bytes([_VERSION, 1, 0]) + _address(host) + port.to_bytes(2, "big")
    (version, code), received = yield from exactly(2, received, request)  # some send no more if they refuse
    place = join_host_port(host, port)
    if version != _VERSION:
        raise ProxyError(f"{proxy.name} does not answer in SOCKS 5: is it a SOCKS proxy?")
    if code:
        reason = _REASONS.get(code, "for an unknown reason")
        raise ProxyError(f"the proxy {proxy.name} cannot connect to {place}: {reason} (SOCKS reply {code})")
    (_, kind), received = yield from exactly(2, received)
    if kind == _NAME:
        (size,), received = yield from exactly(1, received)
    elif kind in (_IPV4, _IPV6):
        size = 4 if kind == _IPV4 else 16
    else:
        raise ProxyError(f"the proxy {proxy.name} answered with an unknown type of address")
    _, received = yield from exactly(size + 2, received)  # its own address and port
    return received


def _credentials(proxy: Proxy) -> bytes:
    user, password = proxy.user.encode(), proxy.password.encode()
    return bytes([1, len(user)]) + user + bytes([len(password)]) + password


def _address(host: str) -> bytes:
    bare = host.partition("%")[0]
    for family, kind in ((socket.AF_INET, _IPV4), (socket.AF_INET6, _IPV6)):
        with suppress(OSError):
            return bytes([kind]) + socket.inet_pton(family, bare)
    name = host.encode()
    if len(name) > 255:
        raise ProxyError("a SOCKS proxy takes host names of at most 255 bytes")
    return bytes([_NAME, len(name)]) + name
