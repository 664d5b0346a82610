"""Probe: asks one member whether it serves, by a read that costs it next to nothing.

Knows: the RPC, and how long to wait. Never knows: why the member is asked, or what follows from its answer.

Only a linearizable read proves that a member reaches the cluster: `Status` names the leader of a second ago.
"""

import asyncio
from typing import Final

from etcd_aio import codec
from etcd_aio.balancer import Health, Metadata, SubConnection
from etcd_aio.errors import (
    AttemptFailure,
    Delivery,
    EtcdError,
    NoLeaderError,
    NotSupportedForLearnerError,
    server_error,
)
from etcd_aio.methods import RANGE
from etcd_aio.pb import RangeRequest

_TIMEOUT: Final = 2.0  # seconds; whoever is silent for so long is found out by its connection's ping
_KEY: Final = b"health"  # the key that etcdctl's health check reads, so that operators may allow it
_LINEARIZABLE: Final = codec.encode(RangeRequest(key=_KEY, keys_only=True))
_SERIALIZABLE: Final = codec.encode(RangeRequest(key=_KEY, keys_only=True, serializable=True))


class HealthProbe:
    """Makes the attempts; the sub-connection itself notes what they show.

    Attributes:
        metadata: of a request that needs a leader; without a token a member refuses, which is an answer too.
    """

    __slots__ = ("metadata",)

    def __init__(self) -> None:
        self.metadata: Metadata = (("hasleader", "true"),)

    async def ask(self, sub_connection: SubConnection, needs_leader: bool) -> None:
        """One attempt; it raises nothing but a cancellation."""
        payload = _LINEARIZABLE if needs_leader else _SERIALIZABLE
        metadata = self.metadata if needs_leader else ()
        deadline = asyncio.get_running_loop().time() + _TIMEOUT
        try:
            await sub_connection.unary(RANGE.path, payload, metadata, deadline, needs_leader=needs_leader)
        except AttemptFailure as failure:
            if failure.delivery is Delivery.ANSWERED:
                note_refusal(sub_connection, server_error(failure.code, failure.message))


def note_refusal(sub_connection: SubConnection, error: EtcdError | None) -> bool:
    """Tell a sub-connection what its member's answer says about the member; returns whether it says anything."""
    if isinstance(error, NoLeaderError):
        sub_connection.refused(Health.NO_LEADER, error.message)
    elif isinstance(error, NotSupportedForLearnerError):
        sub_connection.refused(Health.LEARNER, error.message)
    else:
        return False
    return True
