"""A call on its way through the fake: what a service needs to know besides the request."""

from dataclasses import dataclass

from etcd_aio.fake.cluster import Node
from etcd_aio.transport import Metadata


@dataclass(slots=True)
class Call:
    """One call.

    Attributes:
        node: the member that got it.
        metadata: its metadata.
        size: bytes of the encoded request.
        now: the time, in seconds.
    """

    node: Node
    metadata: Metadata
    size: int
    now: float
