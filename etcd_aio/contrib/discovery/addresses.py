"""Addresses: what clients of HTTP need of the endpoints of a service. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from etcd_aio.layers import ServiceEndpoint

_HOST: Final = re.compile(r"[\w.:%-]+")


def is_dialable(endpoint: ServiceEndpoint) -> bool:
    """Whether the address is that of a TCP socket. Entries for gRPC may have others, such as `unix:/run/api`."""
    return _HOST.fullmatch(endpoint.host) is not None


def dialable(endpoints: Iterable[ServiceEndpoint]) -> Iterator[ServiceEndpoint]:
    """The endpoints that are sockets, each address once."""
    seen: set[str] = set()
    for endpoint in endpoints:
        if endpoint.address not in seen and is_dialable(endpoint):
            seen.add(endpoint.address)
            yield endpoint


def server_name_of(endpoint: ServiceEndpoint) -> str | None:
    """The name of the server in its metadata; None if it has none."""
    metadata = endpoint.metadata
    name = metadata.get("server_name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name else None
