"""Identity: which cluster this client talks to, learnt from the first answer and held to ever after.

Knows: one cluster id, and the RPCs that ask a member for its own. Never knows: which endpoints there are.

A member is asked before it gets any token or password, which may be meant for another cluster. With authentication on,
new releases answer nobody without a token: only the refusal of a watch has a header that says who refuses.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from etcd_aio import codec
from etcd_aio.errors import (
    AttemptFailure,
    AuthError,
    ClusterChangedError,
    ConnectError,
    Delivery,
    NotSupportedForLearnerError,
    server_error,
)
from etcd_aio.methods import STATUS, WATCH
from etcd_aio.pb import StatusRequest, WatchCreateRequest, WatchRequest
from etcd_aio.transport import Connection
from etcd_aio.types import WatchReply

if TYPE_CHECKING:
    from collections.abc import Callable

_VERIFY_TIMEOUT: Final = 2.0  # seconds for the questions to one member that was just dialled


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
            cluster_id = await self._asked(connection, deadline)
        except AttemptFailure as failure:
            raise ConnectError(f"the member did not say which cluster it belongs to: {failure.message}") from failure
        except TimeoutError:
            raise ConnectError("the member did not say which cluster it belongs to: it said nothing") from None
        self.check(cluster_id, "that was just dialled")

    @staticmethod
    async def _asked(connection: Connection, deadline: float) -> int:
        try:
            raw = await connection.unary(STATUS.path, codec.encode(StatusRequest()), (), deadline)
        except AttemptFailure as failure:
            if not _is_refused(failure, AuthError):
                raise
        else:
            return codec.decode(STATUS.reply, raw).header.cluster_id
        return await _asked_by_watch(connection, deadline)


async def _asked_by_watch(connection: Connection, deadline: float) -> int:
    """The cluster id in the answer to a watch that is refused.

    A learner refuses before it looks at the watch. So there it is unknown, and no answer with another id is taken.
    """
    stream = await connection.open_stream(WATCH.path, (), deadline)
    try:
        async with asyncio.timeout_at(deadline):
            await stream.send(codec.encode(WatchRequest(create_request=WatchCreateRequest(key=b"\0"))))
            raw = await stream.receive()
    except AttemptFailure as failure:
        if not _is_refused(failure, NotSupportedForLearnerError):
            raise
        return 0
    finally:
        stream.cancel()
    return 0 if raw is None else codec.decode(WatchReply, raw).header.cluster_id


def _is_refused(failure: AttemptFailure, kind: type[Exception]) -> bool:
    return failure.delivery is Delivery.ANSWERED and isinstance(server_error(failure.code, failure.message), kind)
