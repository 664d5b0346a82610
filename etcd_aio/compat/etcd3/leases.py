"""Leases, which are not renewed by themselves."""

from collections.abc import Iterator
from typing import Protocol

from etcd_aio.compat.etcd3.etcdrpc import LeaseKeepAliveResponse, LeaseTimeToLiveResponse


class LeaseCalls(Protocol):
    """The calls of a client that a lease makes."""

    def revoke_lease(self, lease_id: int) -> None:
        """End a lease."""
        ...

    def refresh_lease(self, lease_id: int) -> Iterator[LeaseKeepAliveResponse]:
        """Renew a lease."""
        ...

    def get_lease_info(self, lease_id: int) -> LeaseTimeToLiveResponse:
        """Ask how long a lease lasts."""
        ...


class Lease:
    """A lease. It ends by its TTL unless the program calls `refresh`.

    Attributes:
        id: the lease's id.
        ttl: the seconds that it lasts after each `refresh`.
    """

    etcd_client: LeaseCalls

    def __init__(self, lease_id: int, ttl: int, etcd_client: LeaseCalls | None = None) -> None:
        self.id = lease_id
        self.ttl = ttl
        if etcd_client is not None:
            self.etcd_client = etcd_client

    def revoke(self) -> None:
        """End the lease, and delete its keys."""
        self.etcd_client.revoke_lease(self.id)

    def refresh(self) -> list[LeaseKeepAliveResponse]:
        """Renew the lease. Returns one response, whose `TTL` is 0 if the lease does not exist any more."""
        return list(self.etcd_client.refresh_lease(self.id))

    @property
    def remaining_ttl(self) -> int:
        """The seconds until it ends; -1 if it does not exist any more. Asks the server."""
        return self._info().TTL

    @property
    def granted_ttl(self) -> int:
        """The seconds that each renewal gives it. Asks the server."""
        return self._info().grantedTTL

    @property
    def keys(self) -> list[bytes]:
        """The keys that are attached to it. Asks the server."""
        return self._info().keys

    def _info(self) -> LeaseTimeToLiveResponse:
        return self.etcd_client.get_lease_info(self.id)
