"""The state of a fake cluster: one store, its leases and users, its members and their leader. Pure.

All members share the store, as if every log were replicated at once; a member that is isolated sees it as it was then.
Time and randomness are passed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.alarms import Alarms
from etcd_aio.fake.leases import LeaseTable
from etcd_aio.fake.node import Isolated, Node
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import Release
from etcd_aio.fake.store import MvccStore
from etcd_aio.fake.txns import StoreWriter
from etcd_aio.fake.users import Users
from etcd_aio.fake.watchers import WatchHub

_REQUEST_TIMEOUT: Final = 7.0  # seconds that a request waits for a leader: five, and two election timeouts
_ELECTION: Final = 1.0  # seconds without a leader until one is elected, and up to as much again; etcd's default


@dataclass(frozen=True, slots=True)
class FakeBackup:
    """The keys, the leases and the place in the log of a cluster at one time; see `FakeEtcd.back_up`."""

    store: MvccStore = field(repr=False)
    leases: LeaseTable = field(repr=False)
    term: int
    index: int


@dataclass(slots=True, eq=False)
class Waiter:
    """A request that waits until its member has a leader.

    Attributes:
        node: the member.
        until: when it gives up.
        go_on: called when there is a leader, with the time.
        give_up: called if there is none by then.
    """

    node: Node
    until: float
    go_on: Callable[[float], None]
    give_up: Callable[[], None]


class FakeCluster:
    """The state.

    Args:
        release: which etcd it is.
        members: how many members it has.
        random_bits: returns a random number of so many bits.

    Attributes:
        writer: runs writes on the store.
        nodes: the members.
        leader: the member that leads; None during an election.
        term: the Raft term.
        index: the index of the last entry of the log.
    """

    def __init__(self, release: Release, members: int, random_bits: Callable[[int], int]) -> None:
        self.release = release
        self.random_bits = random_bits
        self.id = random_bits(63) | 1
        self.store = MvccStore(keeps_tombstone=release.keeps_tombstone)
        self.leases = LeaseTable()
        self.users = Users(release)
        self.alarms = Alarms()
        self.writer = StoreWriter(self.store, release, self.leases.__contains__)
        self.nodes = [
            Node(random_bits(63) | 1, f"fake{number}", WatchHub(self.store)) for number in range(1, members + 1)
        ]
        self.leader: Node | None = self.nodes[0]
        self.term = 2
        self.index = members + 3
        self._election = inf  # when a leader is elected
        self._waiters: dict[Waiter, None] = {}

    # Replies.

    def header(self, node: Node, header: pb.ResponseHeader | None = None) -> pb.ResponseHeader:
        """The header of a member's reply; the revision is the current one, unless `header` has another one."""
        header = pb.ResponseHeader() if header is None else header
        header.cluster_id, header.member_id, header.raft_term = self.id, node.id, self.term_of(node)
        header.revision = header.revision or node.store.revision
        return header

    def term_of(self, node: Node) -> int:
        """The Raft term that a member is in: a member that reaches no other does not begin a new one."""
        return self.term if node.isolated is None else node.isolated.term

    def index_of(self, node: Node) -> int:
        """The index of the last entry of a member's log."""
        return self.index if node.isolated is None else node.isolated.index

    # Writes.

    def committed(self, changes: Sequence[pb.KeyValue]) -> None:
        """Let leases and watchers follow a transaction."""
        self.index += 1
        if changes:
            self.leases.follow(changes)
            for node in self.nodes:
                if node.isolated is None:
                    node.hub.notify(self.store.revision, changes)
                else:
                    node.isolated.missed.append((self.store.revision, changes))

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

    # Backups.

    def back_up(self) -> "FakeBackup":
        """A copy of the disks of the members, but for users and alarms."""
        return FakeBackup(self.store.copy(), self.leases.copy(), self.term, self.index)

    def restore(self, backup: "FakeBackup") -> None:
        """Let the members, none of which runs, have the disks of a backup."""
        self.store.become(backup.store)
        self.leases.become(backup.leases)
        self.term, self.index = backup.term, backup.index

    # Members.

    def leader_of(self, node: Node) -> Node | None:
        """The leader, as a member knows it."""
        return self.leader if node.isolated is None else None

    def elect(self, node: Node, now: float) -> None:
        """Let a member lead from now on, in a new term. All leases last for their whole TTL again."""
        self.leader = node
        self.term += 1
        self._election = inf
        self.leases.renew_all(now)
        self._go_on(now)

    def may_lead(self, node: Node) -> bool:
        """Whether a member could win an election."""
        return node.is_available and self._has_majority

    @property
    def _has_majority(self) -> bool:
        return 2 * sum(node.is_available for node in self.nodes) > len(self.nodes)

    def isolate(self, node: Node, now: float) -> None:
        """Cut a member off from the others. Streams that need a leader end."""
        if node.isolated is None:
            node.isolated = Isolated(self.term, self.index)
            node.hub.store = self.store.copy()
            self.availability_changed(now)

    def heal(self, node: Node, now: float) -> None:
        """Let a member reach the others again. It takes what it has missed one after the other, also if compacted."""
        if node.isolated is not None:
            for revision, changes in node.isolated.missed:
                node.store.follow(revision, changes)
                node.hub.notify(revision, changes)
            node.isolated = None
            node.hub.store = self.store
            self.availability_changed(now)

    def availability_changed(self, now: float) -> None:
        """Look whether there is still a leader and a majority for it; if not, begin an election."""
        has_majority = self._has_majority
        if self.leader is not None and not (self.leader.is_available and has_majority):
            self.leader = None
        if self.leader is not None or not has_majority:
            self._election = inf
        elif self._election == inf:
            self._election = now + _ELECTION * (1 + self.random_bits(20) / 2**20)
        for node in self.nodes:
            if self.leader_of(node) is None:
                for stream in [stream for stream in node.streams if stream.needs_leader]:
                    stream.end(Refusal(Reason.NO_LEADER))
        self._go_on(now)

    def wait_for_leader(
        self, node: Node, now: float, go_on: Callable[[float], None], give_up: Callable[[], None]
    ) -> None:
        """Let a request wait until its member has a leader, as long as etcd does; see `Waiter`."""
        self._waiters[Waiter(node, now + _REQUEST_TIMEOUT, go_on, give_up)] = None

    def forget_waiters(self) -> None:
        """Forget the requests of a loop that has ended."""
        self._waiters.clear()

    def _go_on(self, now: float) -> None:
        for waiter in tuple(self._waiters):
            if waiter.node.is_running and self.leader_of(waiter.node) is not None:
                del self._waiters[waiter]
                waiter.go_on(now)

    # Time.

    def due(self) -> float:
        """When to call `tick` next; infinity if nothing is to be done."""
        return min(
            self._election,
            self.leases.next_look() if self.leader is not None else inf,
            *(node.hub.due() for node in self.nodes),
            *(stream.due for node in self.nodes for stream in node.streams),
            *(waiter.until for waiter in self._waiters if waiter.node.is_running),
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
            for stream in tuple(node.streams):
                stream.tick(now)
        for waiter in tuple(self._waiters):
            if waiter.node.is_running and waiter.until <= now:
                self._waiters.pop(waiter, None)
                waiter.give_up()
