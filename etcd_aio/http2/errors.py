"""Errors of the engine, by blame: the peer's, which end the connection, and ours, which are bugs.

Knows: what to tell the peer. Never knows: gRPC.
"""

from etcd_aio.http2.frames import ErrorCode


class RemoteProtocolError(Exception):
    """The peer broke HTTP/2, or asked for more than the limits allow. The connection is over.

    Attributes:
        code: what the peer is told by GOAWAY.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class LocalProtocolError(Exception):
    """This side used the engine in a way that HTTP/2 does not allow."""
