"""The state of a fake cluster: one store, its leases, and its members. Pure: randomness is passed in.

All members share the store, as if every log were replicated at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from etcd_aio import pb
from etcd_aio.fake.leases import LeaseTable
from etcd_aio.fake.releases import Release
from etcd_aio.fake.store import Store
from etcd_aio.fake.tokens import Tokens
from etcd_aio.fake.txns import Writer
from etcd_aio.fake.users import Users
from etcd_aio.fake.watchers import WatchHub

if TYPE_CHECKING:
    from etcd_aio.fake.watch_stream import WatchStream

PEER_PORT: Final = 2380
CLIENT_PORT: Final = 2379


@dataclass(slots=True, eq=False)
class Node:
    """One member of the cluster.

    Attributes:
        id: its id.
        name: its name, which is its host name too.
        hub: its watchers.
        watch_streams: the streams that they belong to.
        tokens: those that it knows.
    """

    id: int
    name: str
    hub: WatchHub
    watch_streams: "dict[WatchStream, None]" = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def client_url(self) -> str:
        """The URL for clients."""
        return f"http://{self.name}:{CLIENT_PORT}"

    @property
    def peer_url(self) -> str:
        """The URL for other members."""
        return f"http://{self.name}:{PEER_PORT}"


class Cluster:
    """The state.

    Args:
        release: which etcd it is.
        members: how many members it has.
        random_bits: returns a random number of so many bits.

    Attributes:
        store: the keys.
        writer: runs writes on the store.
        leases: the leases.
        users: the users and roles.
        nodes: the members.
        leader: the member that leads.
        term: the Raft term.
    """

    def __init__(self, release: Release, members: int, random_bits: Callable[[int], int]) -> None:
        self.release = release
        self.random_bits = random_bits
        self.id = random_bits(63) | 1
        self.store = Store(keeps_tombstone=release.keeps_tombstone)
        self.leases = LeaseTable()
        self.users = Users(release)
        self.writer = Writer(self.store, release, self.leases.__contains__)
        self.nodes = [
            Node(random_bits(63) | 1, f"fake{number}", WatchHub(self.store)) for number in range(1, members + 1)
        ]
        self.leader = self.nodes[0]
        self.term = 2
        self._index = members + 3

    def header(self, node: Node, header: pb.ResponseHeader | None = None) -> pb.ResponseHeader:
        """The header of a member's reply; the revision is the current one, unless `header` has another one."""
        header = pb.ResponseHeader() if header is None else header
        header.cluster_id, header.member_id, header.raft_term = self.id, node.id, self.term
        header.revision = header.revision or self.store.revision
        return header

    def next_index(self) -> int:
        """The index of the next entry of the log."""
        self._index += 1
        return self._index

    def committed(self, changes: Sequence[pb.KeyValue]) -> None:
        """Let leases and watchers follow a transaction."""
        if changes:
            self.leases.follow(changes)
            for node in self.nodes:
                node.hub.notify(self.store.revision, changes)

    def revoke(self, id: int) -> None:
        """Revoke a lease: its keys are deleted in one revision.

        Raises:
            Refusal: there is none.
        """
        keys = self.leases.remove(id)
        batch = self.store.begin()
        for key in keys:
            batch.delete(key, b"")
        self.committed(batch.commit())

    # Time.

    def due(self) -> float:
        """When to call `tick` next; infinity if nothing is to be done."""
        return min(
            self.leases.next_look(),
            *(node.hub.due() for node in self.nodes),
            *(stream.due for node in self.nodes for stream in node.watch_streams),
        )

    def tick(self, now: float) -> None:
        """Do what is due: expired leases are revoked, watchers catch up, and streams tell how far they are."""
        for expired in self.leases.expired(now):
            self.revoke(expired)
        for node in self.nodes:
            node.hub.catch_up(now)
            for stream in tuple(node.watch_streams):
                stream.tick(now)
