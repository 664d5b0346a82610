"""LastList: the endpoints that are offered, which are not always those of etcd. Pure.

A service whose list becomes empty all at once has rarely lost all of its servers: their leases have ended in an outage
of etcd, or the entries were deleted by mistake. The servers go on serving, so the last list may be kept for a while.
"""

from etcd_aio.dataclass import dataclass
from etcd_aio.services.endpoint_json import JSONValue, ServiceEndpoint


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """A change of the endpoints of a service.

    Attributes:
        endpoints: the endpoints from now on, in the order of their keys.
        added: the new ones. An endpoint whose metadata or address has changed is in both lists; one that was put again
            with the same, as when another process has taken it over, is in none.
        removed: the endpoints that are gone, as they were.
    """

    endpoints: tuple[ServiceEndpoint, ...]
    added: tuple[ServiceEndpoint, ...]
    removed: tuple[ServiceEndpoint, ...]


def change_between(before: tuple[ServiceEndpoint, ...], after: tuple[ServiceEndpoint, ...]) -> ServiceChange:
    """The change that leads from a list to another one."""
    old, new = _content(before), _content(after)
    added = tuple(endpoint for endpoint in after if old.get(endpoint.key) != new[endpoint.key])
    removed = tuple(endpoint for endpoint in before if new.get(endpoint.key) != old[endpoint.key])
    return ServiceChange(after, added, removed)


def _content(endpoints: tuple[ServiceEndpoint, ...]) -> dict[bytes, tuple[str, JSONValue]]:
    """The address and the metadata by key, without the revision."""
    return {endpoint.key: (endpoint.address, endpoint.metadata) for endpoint in endpoints}


class LastList:
    """The endpoints that are offered.

    Args:
        keep_last: seconds for which the last endpoints stay when etcd has none any more; 0 to give them up at once.
    """

    __slots__ = ("_keep_last", "empty_since", "endpoints")

    def __init__(self, keep_last: float) -> None:
        self._keep_last = keep_last
        self.endpoints: tuple[ServiceEndpoint, ...] = ()
        self.empty_since: float | None = None
        """Since when etcd has no endpoint, while the last ones are kept; None otherwise."""

    def take(self, endpoints: tuple[ServiceEndpoint, ...], now: float) -> None:
        """Etcd has these endpoints."""
        if endpoints or not self.endpoints or not self._keep_last:
            self.endpoints, self.empty_since = endpoints, None
        elif self.empty_since is None:
            self.empty_since = now

    @property
    def due(self) -> float | None:
        """When `give_up` should be called; None if nothing is kept."""
        return None if self.empty_since is None else self.empty_since + self._keep_last

    def give_up(self) -> None:
        """Etcd still has no endpoint, and the time is over."""
        self.endpoints, self.empty_since = (), None
