"""Members of the cluster, and their alarms."""

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from etcd_aio.compat.aetcd.rpc import AlarmType


class Alarm:
    """An alarm.

    Attributes:
        alarm_type: its kind, as in `rpc`.
        member_id: the member that has raised it.
    """

    def __init__(self, alarm_type: AlarmType, member_id: int) -> None:
        self.alarm_type = alarm_type
        self.member_id = member_id


class MemberCalls(Protocol):
    """The calls of a client about members."""

    async def remove_member(self, member_id: int) -> None:
        """Remove a member."""
        ...

    async def update_member(self, member_id: int, peer_urls: Iterable[str]) -> None:
        """Change the URLs of a member."""
        ...

    def list_alarms(self, member_id: int = 0) -> AsyncIterator[Alarm]:
        """Iterate over the alarms of a member."""
        ...


class Member:
    """A member of the cluster.

    Attributes:
        id: its number.
        name: its name; empty before its first start.
        peer_urls: its URLs for other members.
        client_urls: its URLs for clients.
    """

    def __init__(
        self, id: int, name: str, peer_urls: Iterable[str], client_urls: Iterable[str], etcd_client: MemberCalls
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

    async def active_alarms(self) -> list[Alarm]:
        """The alarms that it has raised."""
        return [alarm async for alarm in self._etcd_client.list_alarms(member_id=self.id)]
