"""The network between a client and the members."""

from collections.abc import Mapping

from etcd_aio.fake.engine import FakeEngine
from etcd_aio.fake.host import Host
from etcd_aio.fake.link import Link
from etcd_aio.fake.server import FakeServer
from etcd_aio.transport import Engine, TransportOptions


class Network:
    """The links of one client, or of several that share them: `fake.network()`.

    Args:
        hosts: the machines of the members, by authority, or by the path of a unix socket.
        server: answers.

    Attributes:
        links: one to each member, in their order.
    """

    def __init__(self, hosts: Mapping[str, Host], server: FakeServer) -> None:
        self._hosts = hosts
        self._server = server
        self._links = {host: Link(host) for host in hosts.values()}
        self.links = tuple(self._links.values())

    def engine(self, options: TransportOptions) -> Engine:
        """Make an engine that connects through this network: `fake.client(engine=network.engine)`."""
        return FakeEngine(self._link, self._server, options)

    def reset(self) -> None:
        """Break all connections; new ones may be made at once."""
        for link in self.links:
            link.reset()

    def refuse(self) -> None:
        """Break all connections, and refuse new ones."""
        for link in self.links:
            link.refuse()

    def black_hole(self) -> None:
        """Swallow everything, both ways."""
        for link in self.links:
            link.black_hole()

    def heal(self) -> None:
        """Let everything through again."""
        for link in self.links:
            link.heal()

    def forget(self) -> None:
        """Forget the connections of a loop that has ended."""
        for link in self.links:
            link.forget()

    def _link(self, address: str) -> Link | None:
        host = self._hosts.get(address)
        return None if host is None else self._links[host]
