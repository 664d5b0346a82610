"""HTTP/2 (layer 2): a sans-IO client for gRPC. It imports nothing of the project, and neither clock nor socket.

It has frames, header blocks, windows, streams and limits. The meaning of gRPC's headers, deadlines and endpoints belong
to the transport.
"""

from hpack import NeverIndexedHeaderTuple

from etcd_aio.http2.connection import Http2Connection
from etcd_aio.http2.errors import LocalProtocolError, RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode, error_name
from etcd_aio.http2.headers import Fields, HeaderBlock, RequestHeaders
from etcd_aio.http2.outgoing import Outgoing
from etcd_aio.http2.stream import STREAM_WINDOW, Http2Stream

__all__ = [
    "STREAM_WINDOW",
    "ErrorCode",
    "Fields",
    "HeaderBlock",
    "Http2Connection",
    "Http2Stream",
    "LocalProtocolError",
    "NeverIndexedHeaderTuple",
    "Outgoing",
    "RemoteProtocolError",
    "RequestHeaders",
    "error_name",
]
