"""Chunks: what is left of a range, as the server streams it (etcd 3.7 and newer).

Knows: the RPC, its request and its reply. Never knows: which chunk comes next, or when to read pages instead.
"""

from typing import TYPE_CHECKING

from etcd_aio import methods
from etcd_aio.call_options import RetryMode, Timeout
from etcd_aio.error_handler import StreamedReply
from etcd_aio.kv import requests
from etcd_aio.kv.operations import RangeOp
from etcd_aio.types import KeyValue

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker


class Chunks:
    """The chunks of one range. See `scan.Chunks`."""

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker
        self._reading = StreamedReply(methods.RANGE_STREAM)

    async def read(self, rest: RangeOp, timeout: Timeout, retry: RetryMode | None) -> tuple[KeyValue, ...] | None:
        """See `scan.Chunks.read`."""
        reply = await self._invoker.read(
            self._reading,
            requests.range_request(rest),
            timeout=timeout,
            retry=retry,
            needs_leader=not rest.serializable,
        )
        if reply is None:
            return None
        return () if reply.range_response is None else reply.range_response.kvs

    def cancel(self) -> None:
        """See `scan.Chunks.cancel`."""
        self._reading.cancel()
