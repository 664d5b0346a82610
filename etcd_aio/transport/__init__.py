"""Transport (floor 3): connections, attempts and streams, behind one seam with two engines.

What belongs here: dialling, bytes, deadlines of single attempts, liveness of connections, and the one truth about what
became of a failed attempt (`Delivery`). What never does: which endpoint to use, whether to try again, what the bytes
mean.
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
    """The engine called `name`; each is imported only when it is asked for. It has names of its own by default."""
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
