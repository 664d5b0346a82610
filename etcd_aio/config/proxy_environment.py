"""The proxies that the environment names: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, and NO_PROXY. Pure.

| variable | for |
| --- | --- |
| HTTPS_PROXY | endpoints with TLS |
| HTTP_PROXY | endpoints without TLS |
| ALL_PROXY | endpoints for which the other one is unset |
| NO_PROXY | names, addresses and networks that are dialled directly |

Each has a name in small letters too, which counts before the other. A proxy without a scheme is an HTTP proxy. In a CGI
program (REQUEST_METHOD is set) HTTP_PROXY is the value of a header that the requester chooses: it is ignored.
`localhost` and loopback addresses are always dialled directly, as in Go.

NO_PROXY is a list of entries separated by commas or spaces. `*` is everything. `example.com`, `.example.com` and
`*.example.com` are the same: the name, and all names below it. `10.0.0.1`, `[2001:db8::1]` and `10.0.0.0/8` are
compared with endpoints that are addresses; names are not resolved for this. Each may have a port, as in
`example.com:2379`. Other entries are ignored.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from etcd_aio.config.proxy_url import parse_proxy
from etcd_aio.transport import Proxy

_Network: TypeAlias = IPv4Network | IPv6Network
_Address: TypeAlias = IPv4Address | IPv6Address

_PORT: Final = re.compile(r"(.+?):([0-9]{1,5})")


class NoProxy:
    """The endpoints that are dialled directly.

    Args:
        text: the value of NO_PROXY.
    """

    def __init__(self, text: str) -> None:
        self._entries = [_Entry(part) for part in re.split(r"[,\s]+", text) if part]

    def covers(self, host: str, port: int) -> bool:
        """Whether an endpoint is one of them."""
        name = host.lower().rstrip(".")
        address = _address(name)
        return any(entry.covers(name, address, port) for entry in self._entries)


def proxies_of_environment(environ: Mapping[str, str]) -> Callable[[str, int, bool], Proxy | None]:
    """A function that chooses the proxy for a host and a port, with TLS or without.

    Args:
        environ: all variables.

    Raises:
        ConfigError: a variable is not the URL of a proxy; the message does not repeat it.
    """
    names = {True: ("HTTPS_PROXY", "ALL_PROXY"), False: ("HTTP_PROXY", "ALL_PROXY")}
    proxies = {has_tls: _first(environ, both) for has_tls, both in names.items()}
    no_proxy = NoProxy(environ.get("no_proxy") or environ.get("NO_PROXY") or "")

    def choose(host: str, port: int, has_tls: bool) -> Proxy | None:
        return None if _is_local(host) or no_proxy.covers(host, port) else proxies[has_tls]

    return choose


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> Proxy | None:
    for name in names:
        is_header = name == "HTTP_PROXY" and "REQUEST_METHOD" in environ
        text = environ.get(name.lower()) or ("" if is_header else environ.get(name)) or ""
        if text:
            return parse_proxy(text if "://" in text else f"http://{text}", name)
    return None


def _is_local(host: str) -> bool:
    address = _address(host)
    return host.lower().rstrip(".") == "localhost" if address is None else address.is_loopback


def _address(text: str) -> _Address | None:
    with suppress(ValueError):
        return ip_address(text)
    return None


class _Entry:
    """One entry of NO_PROXY."""

    def __init__(self, text: str) -> None:
        place, self._port = text, None
        found = _PORT.fullmatch(text)
        if found is not None and (":" not in found[1] or found[1].endswith("]")):
            place, self._port = found[1], int(found[2])
        bare = place[1:-1] if place.startswith("[") and place.endswith("]") else place
        self._is_all = place == "*"
        self._network = _network(bare)
        self._name = place.lower().removeprefix("*").removeprefix(".").rstrip(".") if self._network is None else ""

    def covers(self, name: str, address: _Address | None, port: int) -> bool:
        """Whether an endpoint is one of them."""
        if self._port not in (None, port):
            return False
        if self._is_all:
            return True
        if address is not None:
            return self._network is not None and address in self._network
        return bool(self._name) and (name == self._name or name.endswith(f".{self._name}"))


def _network(text: str) -> _Network | None:
    with suppress(ValueError):
        return ip_network(text, strict=False)
    return None
