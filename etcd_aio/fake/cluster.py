"""The state of a fake cluster: one store, its leases and users, its members and their leader. Pure.

All members share the store, as if every log were replicated at once; a member that is isolated sees it as it was then.
Time and randomness are passed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from etcd_aio import pb
from etcd_aio.fake.alarms import Alarms
from etcd_aio.fake.leases import LeaseTable
from etcd_aio.fake.refusals import Reason, Refusal
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
_ELECTION: Final = 1.0  # seconds without a leader until one is elected, and up to as much again; etcd's default


@dataclass(slots=True, eq=False)
class Node:
    """One member of the cluster.

    Attributes:
        id: its id.
        name: its name, which is its host name too.
        hub: its watchers.
        watch_streams: the streams that they belong to.
        tokens: those that it knows.
        is_running: whether its process runs, and is not frozen.
        isolated_at: the revision at which it lost the others; None if it reaches them.
        served_at: the URLs of its sockets; empty without any.
    """

    id: int
    name: str
    hub: WatchHub
    watch_streams: "dict[WatchStream, None]" = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)
    is_running: bool = True
    isolated_at: int | None = None
    served_at: list[str] = field(default_factory=list)

    @property
    def is_available(self) -> bool:
        """Whether it takes part in elections."""
        return self.is_running and self.isolated_at is None

    @property
    def client_urls(self) -> list[str]:
        """The URLs for clients: those of its sockets, if it has some."""
        return self.served_at or [f"http://{self.name}:{CLIENT_PORT}"]

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
        alarms: the alarms.
        nodes: the members.
        leader: the member that leads; None during an election.
        term: the Raft term.
        index: the index of the last entry of the log.
    """

    def __init__(self, release: Release, members: int, random_bits: Callable[[int], int]) -> None:
        self.release = release
        self.random_bits = random_bits
        self.id = random_bits(63) | 1
        self.store = Store(keeps_tombstone=release.keeps_tombstone)
        self.leases = LeaseTable()
        self.users = Users(release)
        self.alarms = Alarms()
        self.writer = Writer(self.store, release, self.leases.__contains__)
        self.nodes = [
            Node(random_bits(63) | 1, f"fake{number}", WatchHub(self.store)) for number in range(1, members + 1)
        ]
        self.leader: Node | None = self.nodes[0]
        self.term = 2
        self.index = members + 3
        self._election = inf  # when a leader is elected

    # Replies.

    def header(self, node: Node, header: pb.ResponseHeader | None = None) -> pb.ResponseHeader:
        """The header of a member's reply; the revision is the current one, unless `header` has another one."""
        header = pb.ResponseHeader() if header is None else header
        header.cluster_id, header.member_id, header.raft_term = self.id, node.id, self.term
        header.revision = header.revision or self.revision_of(node)
        return header

    def revision_of(self, node: Node) -> int:
        """The revision that a member has."""
        return self.store.revision if node.isolated_at is None else node.isolated_at

    # Writes.

    def committed(self, changes: Sequence[pb.KeyValue]) -> None:
        """Let leases and watchers follow a transaction."""
        self.index += 1
        if changes:
            self.leases.follow(changes)
            for node in self.nodes:
                if node.isolated_at is None:
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

    # Members.

    def leader_of(self, node: Node) -> Node | None:
        """The leader, as a member knows it."""
        return self.leader if node.isolated_at is None else None

    def elect(self, node: Node, now: float) -> None:
        """Let a member lead from now on, in a new term. All leases last for their whole TTL again."""
        self.leader = node
        self.term += 1
        self._election = inf
        self.leases.renew_all(now)

    def isolate(self, node: Node, now: float) -> None:
        """Cut a member off from the others. Streams that need a leader end."""
        if node.isolated_at is None:
            node.isolated_at = self.store.revision
            self.availability_changed(now)

    def heal(self, node: Node, now: float) -> None:
        """Let a member reach the others again; its watchers catch up."""
        if node.isolated_at is not None:
            node.isolated_at = None
            node.hub.fall_behind(now)
            self.availability_changed(now)

    def availability_changed(self, now: float) -> None:
        """Look whether there is still a leader and a majority for it; if not, begin an election."""
        has_majority = 2 * sum(node.is_available for node in self.nodes) > len(self.nodes)
        if self.leader is not None and not (self.leader.is_available and has_majority):
            self.leader = None
        if self.leader is not None or not has_majority:
            self._election = inf
        elif self._election == inf:
            self._election = now + _ELECTION * (1 + self.random_bits(20) / 2**20)
        for node in self.nodes:
            if self.leader_of(node) is None:
                for stream in tuple(node.watch_streams):
                    if stream.needs_leader:
                        stream.end(Refusal(Reason.NO_LEADER))

    # Time.

    def due(self) -> float:
        """When to call `tick` next; infinity if nothing is to be done."""
        return min(
            self._election,
            self.leases.next_look() if self.leader is not None else inf,
            *(node.hub.due() for node in self.nodes),
            *(stream.due for node in self.nodes for stream in node.watch_streams),
        )

    def tick(self, now: float) -> None:
        """Do what is due.

        A leader is elected, expired leases are revoked, watchers catch up, and streams tell how far they are.
        """
        if now >= self._election:
            available = [node for node in self.nodes if node.is_available]
            self.elect(available[self.random_bits(16) % len(available)], now)
        if self.leader is not None:
            for expired in self.leases.expired(now):
                self.revoke(expired)
        for node in self.nodes:
            node.hub.catch_up(now)
            for stream in tuple(node.watch_streams):
                stream.tick(now)
