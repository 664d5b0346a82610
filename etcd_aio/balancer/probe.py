"""The probe: a cheap read that shows whether a member serves.

Only a linearizable read proves that a member reaches the cluster: `Status` names the leader of a second ago. The probe
carries no token: a refusal for want of one is an answer.
"""

import asyncio
from contextlib import suppress
from typing import Final

from etcd_aio import codec
from etcd_aio.balancer.health_verdicts import has_served
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.errors import AttemptFailure
from etcd_aio.methods import RANGE
from etcd_aio.transport import Connection, Metadata

_TIMEOUT: Final = 2.0  # seconds; a longer silence is found by the connection's ping
_KEY: Final = b"health"  # the key that etcdctl's health check reads, so that operators may permit it
_REQUIRE_LEADER: Final[Metadata] = (("hasleader", "true"),)


async def probe(sub_connection: SubConnection, needs_leader: bool) -> None:
    """Send one member a cheap read; the sub-connection notes what its answer, or silence, shows. Raises no failure.

    Args:
        sub_connection: the member.
        needs_leader: whether to ask for what needs the cluster.
    """
    metadata = _REQUIRE_LEADER if needs_leader else ()
    with suppress(AttemptFailure):
        await sub_connection.unary(RANGE.path, _payload(needs_leader), metadata, _deadline(), needs_leader=needs_leader)


async def probe_cluster_id(connection: Connection) -> int | None:
    """Ask the peer of a connection that is not used yet for what needs the cluster.

    Returns:
        int | None: None if it does not serve; else its cluster id, or 0 if its answer has none.

    Raises:
        MalformedReplyError: its answer cannot be decoded.
    """
    try:
        raw = await connection.unary(RANGE.path, _payload(needs_leader=True), _REQUIRE_LEADER, _deadline())
    except AttemptFailure as failure:
        return 0 if has_served(failure) else None
    return codec.decode(RANGE.reply, raw).header.cluster_id


def _payload(needs_leader: bool) -> bytes:
    return codec.write_RangeRequest(key=_KEY, keys_only=True, serializable=not needs_leader)


def _deadline() -> float:
    return asyncio.get_running_loop().time() + _TIMEOUT
