"""DNS SRV records of etcd: their names, their order, and the endpoints that they become. Pure.

    _etcd-client-ssl._tcp.example.com        members with TLS: https endpoints
    _etcd-client._tcp.example.com            members without TLS: http endpoints
    _etcd-client-ssl-NAME._tcp.example.com   the members of the cluster NAME; without TLS likewise

Every record becomes an endpoint, as with etcd's own client. Priority and weight give the order, which matters to
policies that prefer one endpoint.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, groupby

from etcd_aio.balancer import Endpoint, parse_endpoint
from etcd_aio.dataclass import dataclass
from etcd_aio.discovery.resolver import Resolution
from etcd_aio.errors import ConfigError, DiscoveryError


@dataclass(frozen=True, slots=True)
class SrvRecord:
    """One SRV record.

    Attributes:
        priority: lower ones come first.
        weight: among records of one priority, how likely this one comes first.
        port: TCP port.
        target: host name.
    """

    priority: int
    weight: int
    port: int
    target: str


@dataclass(frozen=True, slots=True)
class SrvAnswer:
    """The answer of DNS for one service.

    Attributes:
        records: empty if the service does not exist.
        ttl: seconds for which the answer is valid.
    """

    records: tuple[SrvRecord, ...] = ()
    ttl: float = 0.0


def service_name(domain: str, name: str, *, is_tls: bool) -> str:
    """The DNS name of a service."""
    return f"_etcd-client{'-ssl' if is_tls else ''}{f'-{name}' if name else ''}._tcp.{domain}"


def endpoints_of_answer(
    answer: SrvAnswer, service: str, *, is_tls: bool, within: str, random: Callable[[], float]
) -> Resolution:
    """The endpoints of an answer, in the order of their priorities and, by chance, of their weights.

    Args:
        answer: the answer of DNS.
        service: the name of the service, for errors.
        is_tls: whether its members speak TLS.
        within: the domain that every target must belong to; empty for any.
        random: returns a number in [0, 1).

    Raises:
        DiscoveryError: no record can be used; the message says why.
    """
    endpoints: dict[str, Endpoint] = {}
    refused: list[str] = []
    for record in _ordered(answer.records, random):
        host = record.target.lower().removesuffix(".")
        if not host:
            refused.append("the service is not available (target '.')")
        elif within and host != within and not host.endswith(f".{within}"):
            refused.append(f"{host} is outside of {within}: pass tls=TLS(ca=...) with your own CA")
        else:
            try:
                parse_endpoint(f"{host}:{record.port}")  # the target must be a host and nothing else
                endpoint = parse_endpoint(f"{'https' if is_tls else 'http'}://{host}:{record.port}")
            except ConfigError as error:
                refused.append(error.message)
            else:
                endpoints[endpoint.name] = endpoint
    if not endpoints:
        raise DiscoveryError(f"{service} has no usable record: {'; '.join(refused) or 'the answer is empty'}")
    return Resolution(tuple(endpoints.values()), answer.ttl)


def _ordered(records: Sequence[SrvRecord], random: Callable[[], float]) -> list[SrvRecord]:
    """The records by priority; records of one priority are drawn by weight, as RFC 2782 says."""
    ordered: list[SrvRecord] = []
    for _, group in groupby(sorted(records, key=_priority), key=_priority):
        left = sorted(
            group, key=lambda record: record.weight
        )  # records of weight 0 come first: RFC 2782 gives them a small chance
        while left:
            chosen = int(random() * (sum(record.weight for record in left) + 1))
            sums = accumulate(record.weight for record in left)
            ordered.append(left.pop(next(index for index, upto in enumerate(sums) if upto >= chosen)))
    return ordered


def _priority(record: SrvRecord) -> int:
    return record.priority
