"""Leader: asks members which of them leads.

Knows: the RPC, and how long to wait. Never knows: when to ask, or who wants to know.
"""

import asyncio
from typing import Final

from etcd_aio import codec
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.errors import AttemptFailure, MalformedReplyError
from etcd_aio.methods import STATUS
from etcd_aio.pb import StatusRequest
from etcd_aio.transport import Metadata
from etcd_aio.types import StatusResult

_TIMEOUT: Final = 1.0  # seconds; who does not answer by then does not lead for long


async def find_leader(ready: tuple[SubConnection, ...], metadata: Metadata = ()) -> SubConnection | None:
    """The sub-connection whose member says of itself that it leads, in the newest term that was heard of; or None.

    A member that was cut off may still say so of an old term, or name a leader that is gone.

    Args:
        ready: whom to ask.
        metadata: of the question; with authentication on, nobody is told without a token.
    """
    answers = await asyncio.gather(*(_status(one, metadata) for one in ready))
    newest, leader = 0, None
    for sub_connection, status in zip(ready, answers, strict=True):
        if status is not None and status.raft_term >= newest:
            if status.is_leader or status.raft_term > newest:
                leader = sub_connection if status.is_leader else None
            newest = status.raft_term
    return leader


async def _status(sub_connection: SubConnection, metadata: Metadata) -> StatusResult | None:
    deadline = asyncio.get_running_loop().time() + _TIMEOUT
    try:
        return codec.decode(
            STATUS.reply,
            await sub_connection.unary(
                STATUS.path, codec.encode(StatusRequest()), metadata, deadline, needs_leader=False
            ),
        )
    except (AttemptFailure, MalformedReplyError):
        return None  # it did not say that it leads
