"""The cluster that this client talks to: its id comes from the first answer, and every later answer must carry it.

A member is asked for the cluster id before it gets a token or password, which may be meant for another cluster. With
authentication on, new releases answer nothing without a token. The header of a refused watch has the id all the same.
"""

import asyncio
import random as random_module
from collections.abc import Callable

from etcd_aio import codec, errors
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import (
    AttemptFailure,
    AuthError,
    ClusterChangedError,
    ConnectError,
    Delivery,
    NotSupportedForLearnerError,
)
from etcd_aio.methods import STATUS, WATCH
from etcd_aio.transport import Connection, TimeLimit, shared_patience
from etcd_aio.types import WatchReply


class ClusterIdentity:
    """The `cluster_id` that every answer must carry, and the newest raft term seen in an answer.

    Args:
        on_election: called when an answer shows that there was an election.
        connect_timeout: seconds for the requests to one member that was just dialled.
        is_patient: a member that did not answer them in time has longer, as with dials.
        random: returns a number in [0, 1).

    Attributes:
        cluster_id: 0 before the first answer.
        raft_term: the newest term.
    """

    def __init__(
        self,
        on_election: Callable[[], None],
        connect_timeout: float = 2.0,
        *,
        is_patient: bool = True,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.cluster_id = 0
        self.raft_term = 0
        self._on_election = on_election
        self._connect_timeout = connect_timeout
        self._is_patient = is_patient
        self._random = random

    def note_term(self, raft_term: int) -> None:
        """Note the term of an answer. Members that were cut off have older terms; those are ignored."""
        if raft_term > self.raft_term:
            is_election = self.raft_term != 0
            self.raft_term = raft_term
            if is_election:
                self._on_election()

    def check(self, cluster_id: int, endpoint: str) -> None:
        """Check the cluster id of an answer; the first one is adopted.

        Zero is not an id: a txn's inner headers and some error paths of the server carry none.

        Raises:
            ClusterChangedError: the answer is from another cluster.
        """
        if cluster_id == self.cluster_id or not cluster_id:
            return
        if not self.cluster_id:
            self.cluster_id = cluster_id
            return
        raise ClusterChangedError(
            f"endpoint {endpoint} belongs to cluster {cluster_id:x}, this client talks to cluster {self.cluster_id:x}"
        )

    async def verify(self, connection: Connection, endpoint: str) -> None:
        """Ask the peer of a new connection which cluster it belongs to.

        Raises:
            ClusterChangedError: the peer belongs to another cluster.
            ConnectError: the peer did not answer.
            MalformedReplyError: its answer cannot be decoded.
        """
        clock = asyncio.get_running_loop().time
        began, seconds = clock(), self._connect_timeout
        patience, peer = shared_patience(), ("cluster id", endpoint)
        if self._is_patient:
            seconds = patience.of(peer, seconds, self._random)
        try:
            async with TimeLimit(seconds):
                cluster_id = await _cluster_id_of(connection)
        except AttemptFailure as failure:
            raise ConnectError(f"the member did not report its cluster id: {failure.message}") from failure
        except TimeoutError:
            patience.timed_out(peer, seconds)
            raise ConnectError(f"the member did not report its cluster id within {seconds:.3g} s") from None
        patience.answered(peer, clock() - began)
        self.check(cluster_id, endpoint)


async def _cluster_id_of(connection: Connection) -> int:
    try:
        # Heavy, like a login: members that hash passwords answer this late too, and pings.
        raw = await connection.unary(STATUS.path, codec.write_StatusRequest(), (), NEVER, is_heavy=True)
    except AttemptFailure as failure:
        if not _is_refused(failure, AuthError):
            raise
    else:
        return codec.decode(STATUS.reply, raw).header.cluster_id
    return await _cluster_id_by_watch(connection)


async def _cluster_id_by_watch(connection: Connection) -> int:
    """The cluster id in the header of a refused watch.

    A learner refuses the stream before it looks at the watch. Its cluster id stays unknown (0), and its answers are
    checked like all others.
    """
    stream = await connection.open_stream(WATCH.path, (), NEVER)
    try:
        await stream.send(codec.write_WatchRequest(create_request=codec.write_WatchCreateRequest(key=b"\0")))
        raw = await stream.receive()
    except AttemptFailure as failure:
        if not _is_refused(failure, NotSupportedForLearnerError):
            raise
        return 0
    finally:
        stream.cancel()
    return codec.decode(WatchReply, raw).header.cluster_id if isinstance(raw, bytes) else 0


def _is_refused(failure: AttemptFailure, kind: type[Exception]) -> bool:
    return failure.delivery is Delivery.ANSWERED and isinstance(
        errors.server_error(failure.code, failure.message), kind
    )
