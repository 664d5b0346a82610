"""The members of the cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class Alarm:
    """An alarm: `alarm_type` is `etcdrpc.NOSPACE` or `etcdrpc.CORRUPT`."""

    def __init__(self, alarm_type: int, member_id: int) -> None:
        self.alarm_type = alarm_type
        self.member_id = member_id


class MemberCalls(Protocol):
    """The calls of a client that a member makes."""

    def remove_member(self, member_id: int) -> None:
        """Remove a member."""
        ...

    def update_member(self, member_id: int, peer_urls: Iterable[str]) -> None:
        """Give a member other URLs."""
        ...

    def list_alarms(self, member_id: int = 0) -> Iterator[Alarm]:
        """The alarms of a member."""
        ...


class Member:
    """One member of the cluster.

    Attributes:
        id: the member's id.
        name: the member's name; empty until it has started.
        peer_urls: the URLs for other members.
        client_urls: the URLs for clients.
    """

    _etcd_client: MemberCalls

    def __init__(
        self,
        id: int,
        name: str,
        peer_urls: Sequence[str],
        client_urls: Sequence[str],
        etcd_client: MemberCalls | None = None,
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
    def active_alarms(self) -> Iterator[Alarm]:
        """The alarms of the member."""
        return self._etcd_client.list_alarms(member_id=self.id)
