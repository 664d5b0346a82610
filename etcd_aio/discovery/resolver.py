"""Resolver: where the endpoints come from that a client begins with. One Protocol, and the fixed list.

Knows: that an answer has endpoints and an age. Never knows: when it is asked again, or what becomes of the answer.
"""

from dataclasses import dataclass
from math import inf
from typing import Protocol

from etcd_aio.balancer import Endpoint


@dataclass(frozen=True, slots=True)
class Resolution:
    """An answer.

    Attributes:
        endpoints: where to connect; at least one.
        ttl: seconds after which it should be asked for again.
    """

    endpoints: tuple[Endpoint, ...]
    ttl: float = inf


class Resolver(Protocol):
    """Finds endpoints.

    Attributes:
        name: what it asks for, as errors show it; empty if it asks nobody.
    """

    name: str

    async def resolve(self, timeout: float) -> Resolution:
        """Find the endpoints of now.

        Args:
            timeout: seconds.

        Raises:
            DiscoveryError: there is no answer, or none that can be used.
        """
        ...


class StaticResolver:
    """The endpoints that the user has named.

    Args:
        endpoints: these.
    """

    name = ""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._resolution = Resolution(endpoints)

    async def resolve(self, timeout: float) -> Resolution:
        """See `Resolver.resolve`; it is always the same."""
        del timeout
        return self._resolution
