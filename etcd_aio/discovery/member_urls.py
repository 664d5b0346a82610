"""Checks the client URLs that members advertise. Pure.

They come over the network and lead to new connections, so they are checked like any other input. Refused are
  - texts that etcd itself would not accept as a URL;
  - plain-text URLs, if the client has a TLS configuration or an endpoint with TLS;
  - unspecified addresses (`0.0.0.0`), which are for listening only;
  - loopback addresses and unix sockets, unless the client was given one itself: etcd advertises `localhost` by default,
    which on any other machine is that machine.
Endpoints that the user has named are always accepted.
"""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from etcd_aio.balancer import Endpoint, Security, parse_endpoint
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Advertised:
    """Advertised URLs, after the check.

    Attributes:
        endpoints: the accepted ones; first those that are in use already.
        refused: the reasons for the other ones.
    """

    endpoints: tuple[Endpoint, ...]
    refused: tuple[str, ...] = ()


def advertised_endpoints(
    urls: Iterable[str],
    *,
    configured: Sequence[Endpoint],
    in_use: Sequence[Endpoint],
    has_tls: bool,
    requires_tls: bool = False,
) -> Advertised:
    """Check advertised URLs.

    An endpoint that is in use keeps its spelling, and with it its connection.

    Args:
        urls: the URLs that members advertise.
        configured: the endpoints that the user has named.
        in_use: the endpoints in use.
        has_tls: whether the client has a TLS configuration, which endpoints without a scheme use.
        requires_tls: whether plaintext is refused whatever else is configured.
    """
    requires_tls |= has_tls or any(endpoint.security is Security.TLS for endpoint in configured)
    allows_local = any(_is_local(endpoint) for endpoint in configured)
    known = {_place(endpoint, has_tls): endpoint for endpoint in (*configured, *in_use)}
    own = {_place(endpoint, has_tls) for endpoint in configured}
    accepted: dict[str, Endpoint] = {}
    refused: list[str] = []
    for url in dict.fromkeys(urls):
        try:
            parsed = parse_endpoint(url)
        except ConfigError as error:
            refused.append(error.message)
            continue
        place = _place(parsed, has_tls)
        reason = "" if place in own else _reason(parsed, requires_tls, allows_local)
        if reason:
            refused.append(f"{parsed.name} {reason}")
        else:
            endpoint = known.get(place, parsed)
            accepted[endpoint.name] = endpoint
    kept = {endpoint.name: endpoint for endpoint in in_use if endpoint.name in accepted}
    return Advertised(tuple((kept | accepted).values()), tuple(refused))


def _reason(endpoint: Endpoint, requires_tls: bool, allows_local: bool) -> str:
    """The reason for refusing an endpoint; empty if it is accepted."""
    is_unix = bool(endpoint.path)
    if "://" not in endpoint.name and not is_unix:
        return "is no URL"
    if requires_tls and endpoint.security is not Security.TLS:
        return "is plaintext, and this client uses TLS"
    if _is_unspecified(endpoint.host):
        return "is an address to listen on, not one to connect to"
    if _is_local(endpoint) and not allows_local:
        return "is a local address, which other machines cannot connect to"
    return ""


def _place(endpoint: Endpoint, has_tls: bool) -> tuple[str, int, str, bool, str]:
    """The address, and whether it has TLS: equal for two spellings of one endpoint."""
    is_tls = endpoint.security is Security.TLS or (endpoint.security is Security.OPTIONAL and has_tls)
    return endpoint.host, endpoint.port, endpoint.path, is_tls, endpoint.address


def _is_local(endpoint: Endpoint) -> bool:
    host = endpoint.address or endpoint.host
    if endpoint.path or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _is_unspecified(host: str) -> bool:
    try:
        return bool(host) and ip_address(host).is_unspecified
    except ValueError:  # a name
        return False
