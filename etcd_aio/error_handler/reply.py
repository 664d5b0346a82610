"""Replies: decoding them, large ones in steps, and checking which cluster they come from; for calls and streams."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from etcd_aio import codec
from etcd_aio.balancer import ClusterIdentity, Collector, SubConnection
from etcd_aio.errors import ClusterChangedError
from etcd_aio.methods import Reply

LARGE: Final = 1 << 14
"""Bytes of the largest reply that is decoded at once: about 1000 small key-values, one millisecond."""


MakeDecoder: TypeAlias = Callable[[], codec.IncrementalDecoder[Reply]]
"""Makes the decoder of a large message."""


def decoder_of(make_decoder: MakeDecoder[Reply], received: bytes | Collector) -> "codec.IncrementalDecoder[Reply]":
    """Return the decoder of a large message of a stream.

    Args:
        make_decoder: what the stream was opened with, to collect large messages.
        received: the message, or the decoder that gets it while it arrives.
    """
    if not isinstance(received, bytes):
        return cast("codec.IncrementalDecoder[Reply]", received)  # the engine returns what `make_decoder` made
    decoder = make_decoder()
    decoder.feed(received)
    decoder.end()
    return decoder


async def finish_in_steps(decoder: "codec.IncrementalDecoder[Reply]") -> Reply:
    """Return the message of a decoder that was fed all bytes, and let other tasks run in between.

    50 MB take a fifth of a second.

    Raises:
        MalformedReplyError: as `codec.decode`.
    """
    decoder.end()
    while decoder.work():  # noqa: ASYNC110 - it works and does not wait
        await asyncio.sleep(0)
    return decoder.finish()


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
