"""Transport: connections, attempts and streams, with three engines behind one interface.

It dials, enforces the deadline of each attempt, checks that peers are alive, and determines how far a failed attempt
got (`Delivery`). It does not choose endpoints, retry, or interpret messages.
"""

from typing import Final, Literal, TypeAlias

from etcd_aio.transport.crowd import shared_patience as shared_patience
from etcd_aio.transport.document_status import check_document as check_document
from etcd_aio.transport.framing import check_prefix as check_prefix
from etcd_aio.transport.interface import BEGINNING as BEGINNING
from etcd_aio.transport.interface import OF_CLIENT as OF_CLIENT
from etcd_aio.transport.interface import OF_MEMBER as OF_MEMBER
from etcd_aio.transport.interface import CertificateRenewal as CertificateRenewal
from etcd_aio.transport.interface import Collect as Collect
from etcd_aio.transport.interface import Collector as Collector
from etcd_aio.transport.interface import Connection as Connection
from etcd_aio.transport.interface import ConnectionCertificates as ConnectionCertificates
from etcd_aio.transport.interface import ConnectionOwner as ConnectionOwner
from etcd_aio.transport.interface import Engine as Engine
from etcd_aio.transport.interface import EngineFactory as EngineFactory
from etcd_aio.transport.interface import Metadata as Metadata
from etcd_aio.transport.interface import Proxy as Proxy
from etcd_aio.transport.interface import Stream as Stream
from etcd_aio.transport.interface import Target as Target
from etcd_aio.transport.interface import TLSContext as TLSContext
from etcd_aio.transport.interface import TLSSource as TLSSource
from etcd_aio.transport.interface import TransportOptions as TransportOptions
from etcd_aio.transport.metadata import CallHeader as CallHeader
from etcd_aio.transport.metadata import RequestMetadata as RequestMetadata
from etcd_aio.transport.metadata import token_of as token_of
from etcd_aio.transport.metadata import with_headers as with_headers
from etcd_aio.transport.response import closed as closed
from etcd_aio.transport.response import expired as expired
from etcd_aio.transport.response import lost as lost
from etcd_aio.transport.time_limit import TimeLimit as TimeLimit

EngineName: TypeAlias = Literal["native", "grpclib", "gateway", "auto"]
ENGINES: Final[tuple[EngineName, ...]] = ("native", "grpclib", "gateway", "auto")


def alpn_of(engine: EngineName | EngineFactory) -> tuple[str, ...]:
    """The versions of HTTP that an engine offers with TLS."""
    return {"gateway": ("http/1.1",), "auto": ("h2", "http/1.1")}.get(
        engine if isinstance(engine, str) else "", ("h2",)
    )


def create_engine(engine: EngineName | EngineFactory, options: TransportOptions) -> Engine:
    """Create an engine. Each engine of the library is imported only when it is used.

    Raises:
        ConfigError: the engine needs a package that is not installed.
    """
    if callable(engine):
        return engine(options)
    if engine == "native":
        from etcd_aio.transport.native.connection import NativeEngine

        return NativeEngine(options)
    if engine in ("gateway", "auto"):
        _require_websockets(engine)
    if engine == "gateway":
        from etcd_aio.transport.gateway.engine import GatewayEngine

        return GatewayEngine(options)
    if engine == "auto":
        from etcd_aio.transport.auto import AutoEngine

        return AutoEngine(options)
    from etcd_aio.transport.grpclib.engine import GrpclibEngine

    return GrpclibEngine(options)


def _require_websockets(engine: str) -> None:
    from etcd_aio.errors import ConfigError

    try:
        import websockets.client  # noqa: F401 - only to see whether it is installed
    except ImportError as error:
        raise ConfigError(f"engine={engine!r} needs websockets: pip install 'etcd_aio[gateway]'") from error
