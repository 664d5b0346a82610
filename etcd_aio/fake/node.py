"""A member of a fake cluster, and a call that it gets. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.fake.store import MvccStore
from etcd_aio.fake.tokens import Tokens
from etcd_aio.fake.watchers import WatchHub
from etcd_aio.transport import Metadata

MOST_BYTES: Final = 3 * 2**19  # of a write; etcd's default of --max-request-bytes
PEER_PORT: Final = 2380
CLIENT_PORT: Final = 2379


@dataclass(frozen=True, slots=True)
class Isolated:
    """The state of an isolated member, and the changes it has missed.

    Attributes:
        term: the Raft term.
        index: the index of the last entry of the log.
        missed: the revisions and changes of the transactions since then.
    """

    term: int
    index: int
    missed: list[tuple[int, Sequence[pb.KeyValue]]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Node:
    """One member of the cluster.

    Attributes:
        id: its id.
        name: its name, which is its host name too.
        hub: its watchers.
        streams: its open streams of watches and of leases.
        tokens: those that it knows.
        is_running: whether its process runs, and is not frozen.
        isolated: what it knew when it lost the others; None if it reaches them.
        is_serving: whether it says by gRPC's health service that it serves.
        served_at: the URLs of its sockets; empty without any.
    """

    id: int
    name: str
    hub: WatchHub
    streams: dict[ServerStream, None] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)
    is_running: bool = True
    isolated: Isolated | None = None
    is_serving: bool = True
    served_at: list[str] = field(default_factory=list)

    @property
    def is_available(self) -> bool:
        """Whether it takes part in elections."""
        return self.is_running and self.isolated is None

    @property
    def store(self) -> MvccStore:
        """The store, as it knows it."""
        return self.hub.store

    @property
    def client_urls(self) -> list[str]:
        """The URLs for clients: those of its sockets, if it has some."""
        return self.served_at or [f"http://{self.name}:{CLIENT_PORT}"]

    @property
    def peer_url(self) -> str:
        """The URL for other members."""
        return f"http://{self.name}:{PEER_PORT}"


@dataclass(slots=True)
class MemberCall:
    """A call that a member gets, as far as a service needs it besides the request.

    Attributes:
        node: the member that got it.
        metadata: its metadata.
        size: bytes of the encoded request.
        now: the time, in seconds.
    """

    node: Node
    metadata: Metadata
    size: int
    now: float
