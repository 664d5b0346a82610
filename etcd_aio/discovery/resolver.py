"""The source of endpoints that are not named themselves, but found by a DNS name."""

from math import inf
from typing import Protocol

from etcd_aio.balancer import Endpoint
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer of a resolver.

    Attributes:
        endpoints: where to connect; at least one.
        ttl: seconds after which to ask again.
    """

    endpoints: tuple[Endpoint, ...]
    ttl: float = inf


class Resolver(Protocol):
    """The source of the endpoints that a DNS name leads to.

    Attributes:
        name: the DNS name that it looks up, for errors.
        is_tls: whether its endpoints have TLS, always.
    """

    name: str

    @property
    def is_tls(self) -> bool: ...

    async def resolve(self, timeout: float) -> Resolution:
        """Find the current endpoints.

        Args:
            timeout: seconds.

        Raises:
            DiscoveryError: there is no answer, or no usable one.
        """
        ...
