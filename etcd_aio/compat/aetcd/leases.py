"""Leases: nothing renews them but `refresh`."""

from typing import Protocol

from etcd_aio import Header
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LeaseKeepAlive:
    """The answer to a renewal.

    Attributes:
        header: the metadata of the response; None if there is no such lease.
        ID: the lease.
        TTL: the seconds that it lasts from now; 0 if there is no such lease.
    """

    header: Header | None
    ID: int
    TTL: int


@dataclass(frozen=True, slots=True)
class LeaseTimeToLive:
    """How long a lease still lasts.

    Attributes:
        header: the metadata of the response.
        ID: the lease.
        TTL: the seconds that are left; -1 if there is no such lease.
        grantedTTL: the seconds that it was granted for.
        keys: its keys, if requested.
    """

    header: Header
    ID: int
    TTL: int
    grantedTTL: int
    keys: list[bytes]


class LeaseCalls(Protocol):
    """The calls of a client about leases."""

    async def revoke_lease(self, lease_id: int) -> None:
        """End a lease."""
        ...

    async def refresh_lease(self, lease_id: int) -> LeaseKeepAlive:
        """Renew a lease."""
        ...

    async def get_lease_info(self, lease_id: int, *, keys: bool = True) -> LeaseTimeToLive:
        """Get how long a lease still lasts."""
        ...


class Lease:
    """A lease.

    Attributes:
        id: its number.
        ttl: the seconds that it was granted for.
    """

    def __init__(self, lease_id: int, ttl: int, etcd_client: LeaseCalls) -> None:
        self.id = lease_id
        self.ttl = ttl
        self._etcd_client = etcd_client

    async def revoke(self) -> None:
        """End it, which deletes its keys."""
        await self._etcd_client.revoke_lease(self.id)

    async def refresh(self) -> LeaseKeepAlive:
        """Renew it. The `TTL` of the answer is 0 if there is no such lease any more."""
        return await self._etcd_client.refresh_lease(self.id)

    async def remaining_ttl(self) -> int:
        """The seconds that are left; -1 if there is no such lease any more."""
        return (await self._etcd_client.get_lease_info(self.id, keys=False)).TTL

    async def granted_ttl(self) -> int:
        """The seconds that it was granted for."""
        return (await self._etcd_client.get_lease_info(self.id, keys=False)).grantedTTL

    async def keys(self) -> list[bytes]:
        """Its keys."""
        return (await self._etcd_client.get_lease_info(self.id)).keys
