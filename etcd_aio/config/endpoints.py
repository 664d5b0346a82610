"""Where the endpoints of a client come from: a list, DNS names, DNS SRV records, or etcd's default."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from etcd_aio.balancer import DnsName, Endpoint, Source, parse_sources
from etcd_aio.config.security import EndpointSecurity
from etcd_aio.errors import ConfigError

if TYPE_CHECKING:
    from etcd_aio.discovery import Resolver

_DEFAULT: Final = "127.0.0.1:2379"  # etcd's default client URL
_DOMAIN: Final = re.compile(
    r"(?=.{1,200}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_-]{1,63}\.?", re.ASCII
)


def sources_from(endpoints: str | Iterable[str] | None) -> tuple[Source, ...]:
    """Parse endpoints and DNS names; None is etcd's default endpoint."""
    return parse_sources(_DEFAULT if endpoints is None else endpoints)


def with_resolvers(sources: Iterable[Source]) -> "tuple[Endpoint | Resolver, ...]":
    """The sources, with a resolver for each DNS name.

    Raises:
        ConfigError: there is a DNS name, and dnspython is missing.
    """
    return tuple(_resolver(source) if isinstance(source, DnsName) else source for source in sources)


def _resolver(name: DnsName) -> "Resolver":
    from etcd_aio.discovery import NameResolver, require_dnspython

    require_dnspython(f"the endpoint {name.name}")
    return NameResolver(name)


def srv_resolver_from(
    sources: Sequence[Source], discovery_srv: str, discovery_srv_name: str, security: EndpointSecurity
) -> "Resolver | None":
    """The resolver for the options of `Client` with these names; None if the endpoints are named.

    Raises:
        ConfigError: the options are invalid or contradict each other, or dnspython is missing.
    """
    if not isinstance(discovery_srv, str) or (discovery_srv and not _DOMAIN.fullmatch(discovery_srv)):
        raise ConfigError("discovery_srv must be a DNS name of letters, digits and '-'")
    if not discovery_srv:
        if discovery_srv_name:
            raise ConfigError("discovery_srv_name needs discovery_srv")
        return None
    if sources:
        raise ConfigError("pass either endpoints or discovery_srv, which takes the endpoints from DNS")
    from etcd_aio.discovery import SrvResolver, require_dnspython

    require_dnspython("discovery_srv")
    return SrvResolver(
        discovery_srv.lower().removesuffix("."),
        discovery_srv_name.lower(),
        has_tls=security.has_tls,
        has_own_ca=security.has_own_authorities,
    )
