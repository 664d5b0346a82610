"""SRV records: from what DNS says of a service to endpoints. Pure.

Knows: RFC 2782, the names of etcd's client services. Never knows: resolvers, sockets, clocks; chance is an argument.

    _etcd-client-ssl._tcp.example.com        members with TLS: https endpoints
    _etcd-client._tcp.example.com            members without: http endpoints
    _etcd-client-ssl-NAME._tcp.example.com   those of one cluster of several, by its name; without TLS alike

Every record becomes an endpoint, as with etcd's own client: members are equals. Priority and weight give the order,
which tells policies apart that prefer one endpoint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from etcd_aio.balancer import Endpoint, parse_endpoint
from etcd_aio.discovery.resolver import Resolution
from etcd_aio.errors import ConfigError, DiscoveryError


@dataclass(frozen=True, slots=True)
class SrvRecord:
    """One record.

    Attributes:
        priority: lower ones come first.
        weight: among one priority, how likely it comes before others.
        port: TCP port.
        target: host name.
    """

    priority: int
    weight: int
    port: int
    target: str


@dataclass(frozen=True, slots=True)
class SrvAnswer:
    """What DNS has said.

    Attributes:
        records: the records; none if the service does not exist.
        ttl: seconds for which they hold.
    """

    records: tuple[SrvRecord, ...] = ()
    ttl: float = 0.0


def service_name(domain: str, name: str, *, is_tls: bool) -> str:
    """The DNS name of a service."""
    return f"_etcd-client{'-ssl' if is_tls else ''}{f'-{name}' if name else ''}._tcp.{domain}"


def resolution_of(
    answer: SrvAnswer, service: str, *, is_tls: bool, within: str, random: Callable[[], float]
) -> Resolution:
    """The endpoints of an answer, in the order of their priorities and, by chance, of their weights.

    Args:
        answer: what DNS has said.
        service: the service that was asked for, for errors.
        is_tls: whether its members speak TLS.
        within: the domain that every target must belong to; empty if any may do.
        random: returns a number in [0, 1).

    Raises:
        DiscoveryError: no record can be used; the message says why.
    """
    endpoints: dict[str, Endpoint] = {}
    refused: list[str] = []
    for record in _ordered(answer.records, random):
        host = record.target.lower().removesuffix(".")
        if not host:
            refused.append("the service is decidedly not available there (target '.')")
        elif within and host != within and not host.endswith(f".{within}"):
            refused.append(f"{host} is outside of {within}: give the client a TLS configuration with your own CA")
        else:
            try:
                parse_endpoint(f"{host}:{record.port}")  # without a scheme it is that, and nothing more
                endpoint = parse_endpoint(f"{'https' if is_tls else 'http'}://{host}:{record.port}")
            except ConfigError as error:
                refused.append(error.message)
            else:
                endpoints[endpoint.name] = endpoint
    if not endpoints:
        raise DiscoveryError(f"{service} has no record that can be used: {'; '.join(refused) or 'it is empty'}")
    return Resolution(tuple(endpoints.values()), answer.ttl)


def _ordered(records: Sequence[SrvRecord], random: Callable[[], float]) -> list[SrvRecord]:
    """By priority; within one by RFC 2782's draw, in which a record comes next as likely as its weight says."""
    ordered: list[SrvRecord] = []
    for _, group in groupby(sorted(records, key=_priority), key=_priority):
        left = sorted(group, key=lambda record: record.weight)  # those without a weight first: seldom, but not never
        while left:
            chosen = int(random() * (sum(record.weight for record in left) + 1))
            sums = accumulate(record.weight for record in left)
            ordered.append(left.pop(next(index for index, upto in enumerate(sums) if upto >= chosen)))
    return ordered


def _priority(record: SrvRecord) -> int:
    return record.priority
