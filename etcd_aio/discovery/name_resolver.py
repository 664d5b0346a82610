"""Endpoints from the addresses of a DNS name, such as a headless service of Kubernetes.

Each address is an endpoint of its own, and is verified by the name. An answer replaces those that are known. No answer,
and one without addresses, are errors, and change nothing: a cluster outlives its DNS.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from etcd_aio.balancer import DnsName, Security
from etcd_aio.discovery.addresses import AddressAnswer, can_be_dialled, kept_addresses
from etcd_aio.discovery.resolver import Resolution
from etcd_aio.errors import DiscoveryError

AddressLookup: TypeAlias = Callable[[str, float], Awaitable[AddressAnswer]]
"""Looks up the addresses of a name, within a timeout in seconds; may raise DiscoveryError."""


class NameResolver:
    """The resolver of one DNS name.

    Args:
        source: the name, the port, and whether they are for TLS.
        lookup: asks DNS; dnspython by default.
    """

    def __init__(self, source: DnsName, lookup: AddressLookup | None = None) -> None:
        self.name = source.name
        self.is_tls = source.security is Security.TLS
        self._source = source
        self._lookup = lookup
        self._known = AddressAnswer()

    async def resolve(self, timeout: float) -> Resolution:
        if self._lookup is None:
            from etcd_aio.discovery.address_lookup import address_lookup

            self._lookup = address_lookup
        answer = await self._lookup(self._source.host, timeout)
        if not answer.addresses:
            raise DiscoveryError(answer.error or f"{self._source.host} has no address: neither A nor AAAA records")
        if not any(map(can_be_dialled, answer.addresses)):
            raise DiscoveryError(f"{self._source.host} has no address of a server: {', '.join(answer.addresses)}")
        self._known = kept_addresses(self._known, answer)
        usable = filter(can_be_dialled, self._known.addresses)
        return Resolution(tuple(map(self._source.at, usable)), answer.ttl)
