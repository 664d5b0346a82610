"""Endpoints: every form in which etcd writes the address of a member, and what the transport dials for it.

    host, host:port, 1.2.3.4:2379, [v6]:2379     TLS if the client has a TLS configuration
    http://host[:port][/]                        plaintext, always
    https://host[:port][/]                       TLS, always
    unix:path, unix:///path                      a unix socket; TLS if configured
    unixs:path, unixs:///path                    a unix socket with TLS
    dns:///name[:port], dns://name[:port]        each address of a DNS name; TLS if configured
    http+dns://name[:port][/]                    the same in plaintext, always
    https+dns://name[:port][/]                   the same with TLS, always

A missing port means 2379, etcd's registered client port. Each endpoint has its own `:authority` and TLS server name, so
that every member is verified as itself. The addresses of a DNS name share both: `dns:///etcd:2379#10.0.0.7` is dialled
at 10.0.0.7, and verified as `etcd`.
"""

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from etcd_aio.arguments import join_host_port, split_host_port
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError
from etcd_aio.transport import Proxy, Target, TLSContext

DEFAULT_PORT: Final = 2379

ProxyFor: TypeAlias = Callable[[str, int, bool], Proxy | None]
"""The proxy for a host and a port, with TLS or without; None to dial the endpoint itself."""

_CONNECTION_URL: Final = re.compile(r"\s*etcds?(\+\w+)?://", re.IGNORECASE)
_PATH_OR_QUERY: Final = re.compile(r"[/?#]")
_DNS_NAME: Final = re.compile(r"(?=.{1,253}\.?$)([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_CREDENTIALS: Final = "an endpoint must not carry credentials: pass auth=(name, password) instead"


class Security(Enum):
    """Whether an endpoint's form asks for TLS."""

    PLAINTEXT = "plaintext"
    OPTIONAL = "optional"
    TLS = "tls"


_SECURITY: Final[Mapping[str, Security]] = {
    "": Security.OPTIONAL,
    "http://": Security.PLAINTEXT,
    "https://": Security.TLS,
}
_DNS_SCHEMES: Final[Mapping[str, tuple[str, Security]]] = {  # what stands before the name, and how to dial
    "dns": ("dns:///", Security.OPTIONAL),
    "http+dns": ("http+dns://", Security.PLAINTEXT),
    "https+dns": ("https+dns://", Security.TLS),
}
_PLAIN_SCHEMES: Final = {security: scheme for scheme, security in _SECURITY.items()}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a member serves its clients.

    Attributes:
        name: the canonical spelling, which errors and statistics use.
        host: host name or IP literal; empty for a unix socket.
        port: TCP port; 0 for a unix socket.
        path: unix socket path; empty for TCP.
        security: whether the form asks for TLS.
        address: the IP address to dial, one of those that the host has in DNS; empty if the host itself is dialled.
    """

    name: str
    host: str
    port: int
    path: str
    security: Security
    address: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def authority(self) -> str:
        """The HTTP/2 `:authority` of this endpoint."""
        return join_host_port(self.host, self.port) if self.host else self._last_segment

    @property
    def server_name(self) -> str:
        """The name that the member's certificate must carry; certificates have no port."""
        return self.host or self._last_segment.partition(":")[0]

    @property
    def _last_segment(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    def target(self, tls: TLSContext | None, proxy_for: ProxyFor | None = None) -> Target:
        """Return the transport's target.

        Args:
            tls: the context to verify with, or its source; None for plaintext.
            proxy_for: chooses the proxy; None for none.

        Raises:
            ConfigError: the endpoint's form and `tls` contradict each other. TLS is never dropped silently.
        """
        if (tls is None and self.security is Security.TLS) or (tls is not None and self.security is Security.PLAINTEXT):
            raise ConfigError(f"endpoint {self.name} cannot be dialled {'without' if tls is None else 'with'} TLS")
        override = "" if tls is None or isinstance(tls, ssl.SSLContext) else tls.server_name
        host = self.address or self.host
        proxy = self._proxy(proxy_for, tls is not None)
        return Target(host, self.port, self.path, self.authority, tls, override or self.server_name, proxy)

    def _proxy(self, proxy_for: ProxyFor | None, is_tls: bool) -> Proxy | None:
        """The proxy, unless the DNS name or the address is one to be dialled without."""
        proxy = None
        if proxy_for is not None and self.host:
            proxy = proxy_for(self.host, self.port, is_tls)
            if proxy is not None and self.address:
                proxy = proxy_for(self.address, self.port, is_tls)
        return proxy


@dataclass(frozen=True, slots=True)
class DnsName:
    """A DNS name of which each address is an endpoint.

    Attributes:
        name: the canonical spelling.
        host: the DNS name; a final dot, if it has one, keeps it from being completed by search domains.
        port: TCP port.
        security: whether the form asks for TLS.
    """

    name: str
    host: str
    port: int
    security: Security

    def at(self, address: str) -> Endpoint:
        """The endpoint at one of its addresses."""
        return Endpoint(f"{self.name}#{address}", self.host.removesuffix("."), self.port, "", self.security, address)


Source: TypeAlias = Endpoint | DnsName
"""One entry of the endpoints that a user names."""


def parse_endpoint(text: str) -> Endpoint:
    """Parse one endpoint.

    Raises:
        ConfigError: the text is not an endpoint; the message never repeats credentials.
    """
    source = parse_source(text)
    if isinstance(source, DnsName):
        raise ConfigError(f"{source.name} may have any number of addresses, so it is not one endpoint")
    return source


def parse_source(text: str) -> Source:
    """Parse one endpoint, or a DNS name whose addresses are endpoints.

    Raises:
        ConfigError: the text is neither; the message never repeats credentials.
    """
    stripped = text.strip()
    if not stripped:
        raise ConfigError("an endpoint must not be empty")
    if ";" in stripped and not _is_unix(stripped):
        raise ConfigError("an endpoint must not contain ';': separate endpoints by commas")
    if not stripped.isprintable() or any(character.isspace() for character in stripped):
        raise ConfigError(
            "an endpoint must not contain white space or control characters: separate endpoints by commas"
        )
    if _is_unix(stripped):
        scheme, _, rest = stripped.partition(":")
        return _unix(scheme.lower(), rest.removeprefix("//"))
    # Checked before any error repeats a part of the text: a password may contain every other delimiter.
    if "@" in stripped:
        raise ConfigError(_CREDENTIALS)
    scheme, separator, rest = stripped.partition("://")
    if not separator:
        scheme, rest = "", stripped
    if scheme.lower() in _DNS_SCHEMES:
        return _dns(scheme.lower(), rest)
    security = _SECURITY.get(scheme.lower() + separator)
    if security is None:
        raise ConfigError(
            f"unknown endpoint scheme {scheme!r}: use http, https, unix, unixs, dns, http+dns or https+dns"
        )
    location = _PATH_OR_QUERY.split(rest, maxsplit=1)[0]
    if not separator and location != rest:
        raise ConfigError("an endpoint without a scheme must be host or host:port")
    host, port = _host_and_port(location)
    if location != rest.removesuffix("/"):
        raise ConfigError(f"endpoint {scheme}://{location} must have no path and no query")
    return Endpoint(f"{scheme.lower()}{separator}{join_host_port(host, port)}", host, port, "", security)


def parse_endpoints(endpoints: str | Iterable[str]) -> tuple[Endpoint, ...]:
    """Parse several endpoints, or one comma-separated text. The order is kept; duplicates are dropped.

    Raises:
        ConfigError: there is no endpoint, or one of them is wrong, or a DNS name whose addresses are not known.
    """
    return tuple(parse_endpoint(source.name) for source in parse_sources(endpoints))


def parse_sources(endpoints: str | Iterable[str]) -> tuple[Source, ...]:
    """Parse endpoints and DNS names, or one comma-separated text. The order is kept; duplicates are dropped.

    Raises:
        ConfigError: there is none, or one of them is wrong.
    """
    if isinstance(endpoints, bytes) or not isinstance(endpoints, Iterable):
        raise ConfigError(
            f"endpoints must be a str such as 'm1:2379,m2:2379', or several, not {type(endpoints).__name__}"
        )
    texts = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
    if not texts:
        raise ConfigError("at least one endpoint is needed")
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"an endpoint must be a str, not {type(text).__name__}")
    if any(_CONNECTION_URL.match(text) for text in texts):
        raise ConfigError("a connection URL (etcd://...) is not an endpoint: use Client.from_url()")
    # Checked before any error repeats a part of the text: it may be one half of a password with a comma in it. Not
    # even an error that is only the context of another may repeat it.
    if any("@" in text and not _is_unix(text) for text in texts):
        raise ConfigError(_CREDENTIALS)
    try:
        return tuple({source.name: source for source in map(parse_source, texts)}.values())
    except ConfigError:
        if not any("@" in text for text in texts):
            raise
    raise ConfigError(_CREDENTIALS)


def _is_unix(text: str) -> bool:
    return text.strip().partition(":")[0].lower() in ("unix", "unixs")


def _unix(scheme: str, path: str) -> Endpoint:
    if not path.strip("/"):
        raise ConfigError(f"a {scheme}: endpoint needs a path")
    security = Security.TLS if scheme == "unixs" else Security.OPTIONAL
    name = f"{scheme}://{path}" if path.startswith("/") else f"{scheme}:{path}"
    return Endpoint(name, "", 0, path, security)


def _dns(scheme: str, rest: str) -> Source:
    """A DNS name, or one of its addresses, which stands after '#'. An IP address needs no DNS."""
    before, security = _DNS_SCHEMES[scheme]
    location, has_address, address = rest.partition("#")
    if scheme == "dns":
        location = location.removeprefix("/")
        if "/" in location:
            raise ConfigError(
                "an endpoint dns://SERVER/NAME would name its DNS server, which is not supported: write dns:///NAME:PORT"
            )
    else:
        location = location.removesuffix("/")
    if _PATH_OR_QUERY.search(location):
        raise ConfigError(f"a {before} endpoint must be a DNS name and a port, with no path and no query")
    host, port = _host_and_port(location)
    if _ip(host):
        if has_address:
            raise ConfigError(
                f"endpoint {before}{join_host_port(host, port)} is an IP address already, and has no other one"
            )
        plain = _PLAIN_SCHEMES[security]
        return Endpoint(f"{plain}{join_host_port(host, port)}", host, port, "", security)
    if not _DNS_NAME.fullmatch(host):
        raise ConfigError(f"a {before} endpoint needs a DNS name: labels of up to 63 characters, separated by dots")
    name = DnsName(f"{before}{host}:{port}", host, port, security)
    if not has_address:
        return name
    canonical = _ip(address)
    if not canonical:
        raise ConfigError(f"endpoint {name.name} must have an IP address after '#'")
    return name.at(canonical)


def _host_and_port(location: str) -> tuple[str, int]:
    try:
        host, port = split_host_port(location)
    except ValueError as error:
        raise ConfigError(f"endpoint {location!r} {error}") from None
    return host, DEFAULT_PORT if port is None else port


def _ip(text: str) -> str:
    """The canonical spelling of an IP address; empty if it is none."""
    from ipaddress import ip_address  # where there is a DNS name

    try:
        address = ip_address(text)
    except ValueError:
        return ""
    return "" if "%" in text else str(address)
