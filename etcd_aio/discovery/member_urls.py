"""Advertised: which of the addresses that members say of themselves a client believes. Pure.

Knows: endpoints, which are local, which are plaintext. Never knows: members, RPCs, connections.

What members advertise comes over the network and ends in connections to wherever it says, so it is checked like any
other input. Not believed is
  - what is no URL that etcd itself would take;
  - plaintext, by a client that has a TLS configuration or an endpoint with TLS;
  - an unspecified address (`0.0.0.0`), on which one listens and to which one does not connect;
  - a loopback address or a unix socket, unless the client was given one itself: etcd advertises `localhost` if nobody
    tells it better, and to others that is another machine, their own.
What the user has named himself is always believed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from etcd_aio.balancer import Endpoint, Security, parse_endpoint
from etcd_aio.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Advertised:
    """What is to be made of advertised URLs.

    Attributes:
        endpoints: those that are believed, those in use first.
        refused: for each that is not, why.
    """

    endpoints: tuple[Endpoint, ...]
    refused: tuple[str, ...] = ()


def advertised_endpoints(
    urls: Iterable[str], *, configured: Sequence[Endpoint], in_use: Sequence[Endpoint], has_tls: bool
) -> Advertised:
    """Judge advertised URLs.

    An endpoint that is in use already keeps its spelling, and with it its connection.

    Args:
        urls: what members advertise.
        configured: the endpoints that the user has named.
        in_use: the endpoints that are connected to.
        has_tls: whether the client has a TLS configuration, which endpoints without a scheme use.
    """
    is_tls_only = has_tls or any(one.security is Security.TLS for one in configured)
    may_be_local = any(_is_local(one) for one in configured)
    spelt = {_place(one, has_tls): one for one in (*configured, *in_use)}
    own = {_place(one, has_tls) for one in configured}
    believed: dict[str, Endpoint] = {}
    refused: list[str] = []
    for url in dict.fromkeys(urls):
        try:
            parsed = parse_endpoint(url)
        except ConfigError as error:
            refused.append(error.message)
            continue
        place = _place(parsed, has_tls)
        reason = "" if place in own else _reason(parsed, is_tls_only, may_be_local)
        if reason:
            refused.append(f"{parsed.name} {reason}")
        else:
            endpoint = spelt.get(place, parsed)
            believed[endpoint.name] = endpoint
    kept = {one.name: one for one in in_use if one.name in believed}
    return Advertised(tuple((kept | believed).values()), tuple(refused))


def _reason(endpoint: Endpoint, is_tls_only: bool, may_be_local: bool) -> str:
    """Why an endpoint is not believed; empty if it is."""
    is_unix = bool(endpoint.path)
    if "://" not in endpoint.name and not is_unix:
        return "is no URL"
    if is_tls_only and endpoint.security is not Security.TLS:
        return "is plaintext, and this client speaks TLS"
    if _is_unspecified(endpoint.host):
        return "is an address to listen on, not one to connect to"
    if _is_local(endpoint) and not may_be_local:
        return "is the member's own machine, not one to connect to from elsewhere"
    return ""


def _place(endpoint: Endpoint, has_tls: bool) -> tuple[str, int, str, bool]:
    """Where it is and how it is spoken to: what two spellings of one endpoint have in common."""
    is_tls = endpoint.security is Security.TLS or (endpoint.security is Security.OPTIONAL and has_tls)
    return endpoint.host, endpoint.port, endpoint.path, is_tls


def _is_local(endpoint: Endpoint) -> bool:
    host = endpoint.host
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
