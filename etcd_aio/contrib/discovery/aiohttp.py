"""EtcdConnector and EtcdResolver: aiohttp's client connects to the endpoints of services in etcd.

aiohttp pools connections by the host in the URL, which is the service here: a pooled connection is used as long as it
lives, also if its endpoint is gone. So the connector knows which connection leads to which endpoint.
"""

import random
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from etcd_aio.contrib.missing import missing

try:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult
except ModuleNotFoundError as _error:
    raise missing(__name__, "aiohttp", _error) from _error

from etcd_aio.contrib.discovery.addresses import by_host, dialable
from etcd_aio.services import Endpoints, ServiceChange

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

_MOST_TRIED: Final = 4
"""Endpoints in an answer: aiohttp tries one after the other, and begins with the next one after 0.25 seconds."""


class EtcdResolver(AbstractResolver):
    """A resolver that knows services: `aiohttp.TCPConnector(resolver=EtcdResolver(...), use_dns_cache=False)`.

    A service resolves to the hosts and ports of its endpoints, in turn; aiohttp connects to the port of the endpoint,
    not to that in the URL, and tries the next endpoint if a connection cannot be made. The name that the certificate
    must have is that in the URL. Without `use_dns_cache=False`, aiohttp uses an endpoint for 10 seconds after it is
    gone.

    `EtcdConnector` also closes the connections to endpoints that are gone.

    Args:
        services: what `client.resolve()` returned for each host that is a service.
        others: the resolver for other hosts, and for endpoints that are names. Default: `aiohttp.DefaultResolver()`,
            made at the first use, and closed with this one.

    Raises:
        InvalidRequestError: a service is no host of a URL.
    """

    def __init__(self, services: Mapping[str, Endpoints], *, others: AbstractResolver | None = None) -> None:
        self._services = by_host(services)
        self._turns = dict.fromkeys(self._services, -1)
        self._others = others
        self._is_owner = others is None
        self._on_resolved: Callable[[str, str, int, str], None] | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The endpoints of a service, or the addresses of another host; called by the connector.

        Raises:
            OSError: the service has no endpoint, or the host has no address.
        """
        service = self._services.get(host)
        if service is None:
            return await self._other().resolve(host, port, family)
        endpoints = tuple(dialable(service.endpoints))
        if not endpoints:
            raise OSError(None, f"the service {host!r} has no endpoint")
        if self._turns[host] < 0:  # clients that start together do not all begin with the same endpoint
            self._turns[host] = random.randrange(len(endpoints))
        self._turns[host] += 1
        turn = self._turns[host] % len(endpoints)
        found: list[ResolveResult] = []
        error: OSError | None = None
        for endpoint in (endpoints[turn:] + endpoints[:turn])[:_MOST_TRIED]:
            try:
                results = await self._addresses(endpoint.host, endpoint.port or port, family)
            except (OSError, UnicodeError) as raised:  # the latter of a name that cannot be one
                error = raised if isinstance(raised, OSError) else OSError(None, f"not a host name: {raised}")
                continue
            for result in results:
                found.append({**result, "hostname": host})
                if self._on_resolved is not None:
                    self._on_resolved(host, result["host"], result["port"], endpoint.address)
        if not found and error is not None:
            raise error
        return found

    async def _addresses(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        for known, kind in (socket.AF_INET, "."), (socket.AF_INET6, ":"):
            if kind in host and _is_numeric(known, host):
                flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
                return [{"hostname": host, "host": host, "port": port, "family": known, "proto": 0, "flags": flags}]
        return await self._other().resolve(host, port, family)

    def _other(self) -> AbstractResolver:
        if self._others is None:
            self._others = aiohttp.DefaultResolver()
        return self._others

    async def close(self) -> None:
        """Close the resolver for other hosts, if it was made here."""
        if self._others is not None and self._is_owner:
            await self._others.close()


class EtcdConnector(aiohttp.TCPConnector):
    """A connector that knows services: `aiohttp.ClientSession(connector=EtcdConnector({"api": service}))`.

    A new connection for `https://api/users` is made to an endpoint of the service, by `EtcdResolver`. When an endpoint
    is gone, its idle connections are closed at once, and those in use after their response. aiohttp balances
    connections, not requests: a request takes any idle connection of the service.

    Make it in the event loop. The services are the caller's: close them later than the session.

    Args:
        services: what `client.resolve()` returned for each host that is a service.
        resolver: for other hosts, and for endpoints that are names. Default: aiohttp's.
        options: others of `aiohttp.TCPConnector`, but `use_dns_cache` and `ttl_dns_cache`.

    Raises:
        InvalidRequestError: a service is no host of a URL.
    """

    def __init__(
        self,
        services: Mapping[str, Endpoints],
        *,
        resolver: AbstractResolver | None = None,
        **options: Any,  # those of the version of aiohttp that is there
    ) -> None:
        known = EtcdResolver(services, others=resolver)
        super().__init__(resolver=known, use_dns_cache=False, **options)
        self._resolver_owner = True  # aiohttp closes it with the connector
        known._on_resolved = self._resolved
        self._addresses: dict[tuple[str, str, int], str] = {}  # of endpoints, by service, IP address and port
        self._leads_to: WeakKeyDictionary[ResponseHandler, tuple[str, str]] = WeakKeyDictionary()
        self._subscriptions = {
            host: service.subscribe(partial(self._on_change, host)) for host, service in known._services.items()
        }

    def _resolved(self, host: str, ip: str, port: int, address: str) -> None:
        self._addresses[host, ip, port] = address

    async def _create_connection(
        self, req: "ClientRequest", traces: "list[Trace]", timeout: "ClientTimeout"
    ) -> "ResponseHandler":
        protocol = await super()._create_connection(req, traces, timeout)
        host = req.url.host or ""
        if host in self._subscriptions and protocol.transport is not None:
            ip, port, *_ = protocol.transport.get_extra_info("peername")
            address = self._addresses.get((host, ip, port))
            if address is None:
                protocol.force_close()  # the endpoint has gone meanwhile: its connection is used once
            else:
                self._leads_to[protocol] = host, address
        return protocol

    def _on_change(self, host: str, change: ServiceChange) -> None:
        """Close the connections to endpoints of a service that are gone."""
        current = {endpoint.address for endpoint in change.endpoints}
        for protocol, (service, address) in tuple(self._leads_to.items()):
            if service == host and address not in current:
                protocol.force_close()  # after the response
                if protocol not in self._acquired:
                    protocol.close()
        self._addresses = {
            key: address for key, address in self._addresses.items() if key[0] != host or address in current
        }

    def _close(self, **options: bool) -> Any:  # what aiohttp calls however it is closed
        for unsubscribe in self._subscriptions.values():
            unsubscribe()
        return super()._close(**options)


def _is_numeric(family: socket.AddressFamily, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
    except OSError:
        return False
    return True
