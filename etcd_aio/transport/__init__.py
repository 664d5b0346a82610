"""Transport (layer 3): connections, attempts and streams, with two engines behind one interface.

It dials, enforces the deadline of each attempt, checks that peers are alive, and determines how far a failed attempt
got (`Delivery`). It does not choose endpoints, retry, or interpret messages.
"""

from typing import Final, Literal, TypeAlias

from etcd_aio.transport.document import http_get
from etcd_aio.transport.interface import (
    Collect,
    Collector,
    Connection,
    ConnectionOwner,
    Engine,
    Metadata,
    Stream,
    Target,
    TLSContext,
    TLSSource,
    TransportOptions,
)
from etcd_aio.transport.metadata import RequestMetadata, token_of
from etcd_aio.transport.names import Names

EngineName: TypeAlias = Literal["native", "grpclib"]
ENGINES: Final[tuple[EngineName, ...]] = ("native", "grpclib")


def create_engine(name: EngineName, options: TransportOptions, names: Names | None = None) -> Engine:
    """Create an engine. Each engine is imported only when it is used. Without `names` it resolves host names itself."""
    if name == "native":
        from etcd_aio.transport.native import NativeEngine

        return NativeEngine(options, names)
    from etcd_aio.transport.grpclib_engine import GrpclibEngine

    return GrpclibEngine(options, names)


__all__ = [
    "ENGINES",
    "Collect",
    "Collector",
    "Connection",
    "ConnectionOwner",
    "Engine",
    "EngineName",
    "Metadata",
    "Names",
    "RequestMetadata",
    "Stream",
    "TLSContext",
    "TLSSource",
    "Target",
    "TransportOptions",
    "create_engine",
    "http_get",
    "token_of",
]
