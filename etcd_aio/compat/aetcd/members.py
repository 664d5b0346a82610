"""Members of the cluster."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etcd_aio.compat.aetcd.client import Alarm, Client


class Member:
    """A member of the cluster.

    Attributes:
        id: its number.
        name: its name; empty before its first start.
        peer_urls: its URLs for other members.
        client_urls: its URLs for clients.
    """

    def __init__(
        self, id: int, name: str, peer_urls: Iterable[str], client_urls: Iterable[str], etcd_client: "Client"
    ) -> None:
        self.id = id
        self.name = name
        self.peer_urls = list(peer_urls)
        self.client_urls = list(client_urls)
        self._etcd_client = etcd_client

    def __str__(self) -> str:
        return f"member {self.id}, peer URLs: {self.peer_urls}, client URLs: {self.client_urls}"

    async def remove(self) -> None:
        """Remove it from the cluster."""
        await self._etcd_client.remove_member(self.id)

    async def update(self, peer_urls: Iterable[str]) -> None:
        """Change its URLs for other members."""
        await self._etcd_client.update_member(self.id, peer_urls)

    async def active_alarms(self) -> "list[Alarm]":
        """The alarms that it has raised."""
        return [alarm async for alarm in self._etcd_client.list_alarms(member_id=self.id)]
