"""Addresses: the hosts and ports of endpoints, as clients of HTTP need them. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final, TypeVar

from etcd_aio.errors import InvalidRequestError
from etcd_aio.services import ServiceEndpoint

T = TypeVar("T")

_HOST: Final = re.compile(r"[\w.:%-]+")
_SERVICE: Final = frozenset(":/@ ")  # a host has none of these
_LONGEST: Final = 253  # characters of a name, by DNS


def is_dialable(endpoint: ServiceEndpoint) -> bool:
    """Whether the address is that of a TCP socket. Entries for gRPC may have others, such as `unix:/run/api`."""
    return _is_host(endpoint.host)


@lru_cache(maxsize=1024)  # it is asked for each connection
def _is_host(host: str) -> bool:
    """Whether it is an IP address, or may be a name: entries are written by others."""
    if _HOST.fullmatch(host) is None or len(host) > _LONGEST:
        return False
    try:
        if ":" in host:  # an address with a port that is none is not split, and looks so too
            IPv6Address(host)
        else:
            host.encode("idna")
    except (AddressValueError, UnicodeError):
        return False
    return True


def dialable(endpoints: Iterable[ServiceEndpoint]) -> Iterator[ServiceEndpoint]:
    """The endpoints that are sockets, each address once."""
    seen: set[str] = set()
    for endpoint in endpoints:
        if endpoint.address not in seen and is_dialable(endpoint):
            seen.add(endpoint.address)
            yield endpoint


def by_host(services: Mapping[str, T]) -> dict[str, T]:
    """The services by their hosts as URLs have them: in lower case.

    Raises:
        InvalidRequestError: a name is not a host name, such as one with a port: no request would ever be for it.
    """
    for host in services:
        if not host or not _SERVICE.isdisjoint(host):
            raise InvalidRequestError(f"services: {host!r} is not a host name of a URL, such as 'api'")
    return {host.lower(): service for host, service in services.items()}


def server_name_of(endpoint: ServiceEndpoint) -> str | None:
    """The name of the server in its metadata; None if it has none."""
    metadata = endpoint.metadata
    name = metadata.get("server_name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name else None
