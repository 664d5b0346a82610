"""Identity: which cluster this client talks to, learnt from the first answer and held to ever after.

Knows: one cluster id, and the RPC that asks a member for its own. Never knows: which endpoints there are.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from etcd_aio import codec
from etcd_aio.balancer import Connection
from etcd_aio.errors import AttemptFailure, ClusterChangedError, ConnectError
from etcd_aio.methods import STATUS
from etcd_aio.pb import StatusRequest

if TYPE_CHECKING:
    from collections.abc import Callable

_VERIFY_TIMEOUT: Final = 2.0  # seconds for one question to one member that was just dialled


class ClusterIdentity:
    """The `cluster_id` that every answer must carry, and the newest raft term that one has carried.

    Attributes:
        cluster_id: the cluster's; 0 before the first answer.
        raft_term: the newest term; a newer one means an election.
        on_term: called after an election was noticed.
    """

    __slots__ = ("cluster_id", "on_term", "raft_term")

    def __init__(self) -> None:
        self.cluster_id = 0
        self.raft_term = 0
        self.on_term: Callable[[], object] | None = None

    def note_term(self, raft_term: int) -> None:
        """Note the term of an answer. Those of members that were cut off are old, and mean nothing."""
        if raft_term > self.raft_term:
            is_change = self.raft_term != 0
            self.raft_term = raft_term
            if is_change and self.on_term is not None:
                self.on_term()

    def check(self, cluster_id: int, endpoint: str) -> None:
        """Accept an answer's cluster id, or raise ClusterChangedError.

        Zero is no id: a txn's inner headers and some servers' error paths carry none.
        """
        if cluster_id == self.cluster_id or not cluster_id:
            return
        if not self.cluster_id:
            self.cluster_id = cluster_id
            return
        raise ClusterChangedError(
            f"endpoint {endpoint} belongs to cluster {cluster_id:x}, this client talks to cluster {self.cluster_id:x}"
        )

    async def verify(self, connection: Connection) -> None:
        """Ask the peer of a connection which cluster it belongs to.

        Raises:
            ClusterChangedError: it belongs to another cluster.
            ConnectError: it did not answer.
            MalformedReplyError: its answer is none.
        """
        deadline = asyncio.get_running_loop().time() + _VERIFY_TIMEOUT
        try:
            raw = await connection.unary(STATUS.path, codec.encode(StatusRequest()), (), deadline)
        except AttemptFailure as failure:
            raise ConnectError(f"the member did not say which cluster it belongs to: {failure.message}") from failure
        self.check(codec.decode(STATUS.reply, raw).header.cluster_id, "that was just dialled")
