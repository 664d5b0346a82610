"""Probe: asks one member whether it serves, by a read that costs it next to nothing.

Knows: the RPC, and how long to wait. Never knows: why the member is asked, or what follows from its answer.

Only a linearizable read proves that a member reaches the cluster: `Status` names the leader of a second ago.
"""

import asyncio
from contextlib import suppress
from typing import Final

from etcd_aio import codec
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.errors import AttemptFailure
from etcd_aio.methods import RANGE
from etcd_aio.pb import RangeRequest
from etcd_aio.transport import Metadata

_TIMEOUT: Final = 2.0  # seconds; whoever is silent for so long is found out by its connection's ping
_KEY: Final = b"health"  # the key that etcdctl's health check reads, so that operators may allow it
_LEADER: Final[Metadata] = (("hasleader", "true"),)


async def probe_health(sub_connection: SubConnection, needs_leader: bool) -> None:
    """One attempt; it raises nothing but a cancellation. It carries no token: a refusal for want of one is an answer.

    Args:
        sub_connection: the member; it notes itself what an answer, or none, shows.
        needs_leader: whether it is asked for what needs the cluster.
    """
    payload = codec.encode(RangeRequest(key=_KEY, keys_only=True, serializable=not needs_leader))
    deadline = asyncio.get_running_loop().time() + _TIMEOUT
    metadata = _LEADER if needs_leader else ()
    with suppress(AttemptFailure):
        await sub_connection.unary(RANGE.path, payload, metadata, deadline, needs_leader=needs_leader)
