"""Leases: nothing renews them but `refresh`."""

from typing import Any, Protocol

from etcd_aio.compat.etcd3gw.utils import _decode


class LeaseCalls(Protocol):
    """The calls of a client about leases."""

    def get_url(self, path: str) -> str:
        """The URL of a call."""
        ...

    def post(self, url: str, *, json: Any) -> Any:
        """Make a call."""
        ...


class Lease:
    """A lease.

    Attributes:
        id: its number.
        client: sends the calls.
    """

    def __init__(self, id: int, client: LeaseCalls) -> None:
        self.id = id
        self.client = client

    def revoke(self) -> bool:
        """End it, which deletes its keys. Returns True."""
        self.client.post(self.client.get_url("/kv/lease/revoke"), json={"ID": self.id})
        return True

    def ttl(self) -> int:
        """The seconds that are left; -1 if there is no such lease any more."""
        found = self.client.post(self.client.get_url("/kv/lease/timetolive"), json={"ID": self.id})
        return int(found.get("TTL", 0))

    def refresh(self) -> int:
        """Renew it. Returns the seconds that it lasts from now; -1 if there is no such lease any more."""
        found = self.client.post(self.client.get_url("/lease/keepalive"), json={"ID": self.id})
        return int(found["result"].get("TTL", -1))

    def keys(self) -> list[bytes]:
        """Its keys."""
        request = {"ID": self.id, "keys": True}
        found = self.client.post(self.client.get_url("/kv/lease/timetolive"), json=request)
        return [_decode(key) for key in found.get("keys", ())]
