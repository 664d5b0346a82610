"""The members of the cluster."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etcd_aio.compat.etcd3.client import Alarm, MultiEndpointEtcd3Client


class Member:
    """One member of the cluster.

    Attributes:
        id: the member's id.
        name: the member's name; empty until it has started.
        peer_urls: the URLs for other members.
        client_urls: the URLs for clients.
    """

    _etcd_client: "MultiEndpointEtcd3Client"

    def __init__(
        self,
        id: int,
        name: str,
        peer_urls: Sequence[str],
        client_urls: Sequence[str],
        etcd_client: "MultiEndpointEtcd3Client | None" = None,
    ) -> None:
        self.id = id
        self.name = name
        self.peer_urls = peer_urls
        self.client_urls = client_urls
        if etcd_client is not None:
            self._etcd_client = etcd_client

    def __str__(self) -> str:
        return f"Member {self.id}: peer urls: {self.peer_urls}, client urls: {self.client_urls}"

    def remove(self) -> None:
        """Remove the member from the cluster."""
        self._etcd_client.remove_member(self.id)

    def update(self, peer_urls: Sequence[str]) -> None:
        """Give the member other URLs for other members."""
        self._etcd_client.update_member(self.id, peer_urls)

    @property
    def active_alarms(self) -> "Iterator[Alarm]":
        """The alarms of the member."""
        return self._etcd_client.list_alarms(member_id=self.id)
