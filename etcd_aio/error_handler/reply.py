"""Replies: decoding them, large ones in steps, and checking which cluster they come from; for calls and streams."""

import asyncio
from typing import Final

from etcd_aio import codec
from etcd_aio.balancer import ClusterIdentity, SubConnection
from etcd_aio.errors import ClusterChangedError
from etcd_aio.methods import Reply

LARGE: Final = 1 << 14
"""Bytes of the largest reply that is decoded at once: about 1000 small key-values, one millisecond."""


async def decode_in_steps(reply: type[Reply], raw: bytes) -> Reply:
    """Do what `codec.decode` does, and let other tasks run in between: 50 MB take a fifth of a second.

    Raises:
        MalformedReplyError: as `codec.decode`.
    """
    collector = codec.IncrementalDecoder(reply)
    collector.feed(raw)
    return await finish_in_steps(collector)


async def finish_in_steps(collector: "codec.IncrementalDecoder[Reply]") -> Reply:
    """Return the message of a collector that was fed all bytes, and let other tasks run in between.

    Raises:
        MalformedReplyError: as `codec.decode`.
    """
    collector.end()
    while collector.work():  # noqa: ASYNC110 - it works and does not wait
        await asyncio.sleep(0)
    return collector.finish()


def check_cluster(reply: object, identity: ClusterIdentity, sub_connection: SubConnection) -> None:
    """Check that a reply comes from the client's cluster, and note its raft term, which shows elections.

    Raises:
        ClusterChangedError: the reply comes from another cluster; the sub-connection is rejected.
    """
    header = getattr(reply, "header", None)
    if header is None:
        return
    if header.raft_term != identity.raft_term:
        identity.note_term(header.raft_term)
    if header.cluster_id != identity.cluster_id:
        try:
            identity.check(header.cluster_id, sub_connection.endpoint_name)
        except ClusterChangedError as error:
            sub_connection.reject(error)
            raise
