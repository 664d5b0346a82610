"""Keeps up with which member leads, for the policy `leader_first`."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from etcd_aio import codec, types
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.backoff import Backoff
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.errors import AttemptFailure, MalformedReplyError
from etcd_aio.methods import STATUS
from etcd_aio.transport import Metadata, RequestMetadata

if TYPE_CHECKING:
    from etcd_aio.types import StatusResult

SEARCH_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=1.0, jitter=0.2)
"""Waits between two searches while no leader is found: an election takes about a second."""

_TIMEOUT: Final = 1.0  # seconds; a member that does not answer by then will not lead for long


class LeaderMonitor(TwoPartClose):
    """Owner of the one task that searches for the leader.

    Args:
        ready: returns the READY sub-connections.
        metadata: of the requests; with authentication on, members answer only with a token.
        on_leader: called after every search with the leader, or None.
        random: returns a number in [0, 1), for jitter.
    """

    def __init__(
        self,
        ready: Callable[[], tuple[SubConnection, ...]],
        metadata: RequestMetadata,
        on_leader: Callable[[SubConnection | None], None],
        random: Callable[[], float],
    ) -> None:
        self._ready = ready
        self._metadata = metadata
        self._on_leader = on_leader
        self._random = random
        self._task: asyncio.Task[None] | None = None
        self._is_due = False
        self._is_closed = False

    def search(self) -> None:
        """Find out which member leads: it may have changed."""
        self._is_due = True
        if self._task is None and not self._is_closed:
            self._task = start_background_task(self._search(), name="etcd_aio leader")

    def close(self) -> Unwinding:
        """End the task."""
        task = self._task
        if task is not None and not self._is_closed:
            task.cancel()
        self._is_closed = True
        return () if task is None else (task,)

    async def _search(self) -> None:
        searches = 0
        try:
            while self._is_due and self._ready():
                self._is_due = False
                leader = await find_leader(self._ready(), self._metadata.plain)
                self._on_leader(leader)
                if leader is None:
                    self._is_due = True
                    await asyncio.sleep(SEARCH_BACKOFF.wait(searches, self._random))
                    searches += 1
        finally:
            self._task = None


async def find_leader(ready: tuple[SubConnection, ...], metadata: Metadata = ()) -> SubConnection | None:
    """Ask every one of these members for its status; returns the leader, or None if no member of the newest term leads.

    Args:
        ready: the sub-connections to ask.
        metadata: of the requests.
    """
    answers = await asyncio.gather(*(_status(sub_connection, metadata) for sub_connection in ready))
    return types.newest_leader(
        {member: status for member, status in zip(ready, answers, strict=True) if status is not None}
    )


async def _status(sub_connection: SubConnection, metadata: Metadata) -> "StatusResult | None":
    deadline = asyncio.get_running_loop().time() + _TIMEOUT
    payload = codec.write_StatusRequest()
    try:
        raw = await sub_connection.unary(STATUS.path, payload, metadata, deadline, needs_leader=False)
        return codec.decode(STATUS.reply, raw)
    except (AttemptFailure, MalformedReplyError):
        return None
