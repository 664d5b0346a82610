"""Where the endpoints of a client come from: a list, DNS SRV records, or etcd's default."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from etcd_aio.balancer import Endpoint, parse_endpoints
from etcd_aio.config.security import EndpointSecurity
from etcd_aio.errors import ConfigError

if TYPE_CHECKING:
    from etcd_aio.discovery import Resolver

_DEFAULT: Final = "127.0.0.1:2379"  # etcd's default client URL
_DOMAIN: Final = re.compile(
    r"(?=.{1,200}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_-]{1,63}\.?", re.ASCII
)


def endpoints_from(endpoints: str | Iterable[str] | None) -> tuple[Endpoint, ...]:
    """Parse endpoints; None is etcd's default endpoint."""
    return parse_endpoints(_DEFAULT if endpoints is None else endpoints)


def resolver_from(
    endpoints: tuple[Endpoint, ...], discovery_srv: str, discovery_srv_name: str, security: EndpointSecurity
) -> "Resolver | None":
    """The resolver for the endpoints and the options of `Client` with these names; None if the endpoints are named.

    Raises:
        ConfigError: the options are invalid or contradict each other, or dnspython is missing.
    """
    if not isinstance(discovery_srv, str) or (discovery_srv and not _DOMAIN.fullmatch(discovery_srv)):
        raise ConfigError("discovery_srv must be a DNS name of letters, digits and '-'")
    if not discovery_srv:
        if discovery_srv_name:
            raise ConfigError("discovery_srv_name needs discovery_srv")
        return None
    if endpoints:
        raise ConfigError("pass either endpoints or discovery_srv, which takes the endpoints from DNS")
    from etcd_aio.discovery import SrvResolver, require_dnspython

    require_dnspython()
    return SrvResolver(
        discovery_srv.lower().removesuffix("."),
        discovery_srv_name.lower(),
        has_tls=security.has_tls,
        has_own_ca=security.has_own_authorities,
    )
