"""HTTP/2: a sans-IO client for gRPC. It imports nothing of the project, and neither clock nor socket.

It has frames, header blocks, windows, streams and limits. The meaning of gRPC's headers, deadlines and endpoints belong
to the transport.
"""

from hpack import NeverIndexedHeaderTuple as NeverIndexedHeaderTuple

from etcd_aio.http2.accelerator import CallsAccelerator as CallsAccelerator
from etcd_aio.http2.connection import Http2Connection as Http2Connection
from etcd_aio.http2.errors import LocalProtocolError as LocalProtocolError
from etcd_aio.http2.errors import RemoteProtocolError as RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode as ErrorCode
from etcd_aio.http2.frames import error_name as error_name
from etcd_aio.http2.headers import Fields as Fields
from etcd_aio.http2.headers import HeaderBlock as HeaderBlock
from etcd_aio.http2.headers import RequestHeaders as RequestHeaders
from etcd_aio.http2.limits import FloodBudget as FloodBudget
from etcd_aio.http2.outgoing import Outgoing as Outgoing
from etcd_aio.http2.stream import RETURN_AFTER as RETURN_AFTER
from etcd_aio.http2.stream import STREAM_WINDOW as STREAM_WINDOW
from etcd_aio.http2.stream import Http2Stream as Http2Stream
