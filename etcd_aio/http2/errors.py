"""Protocol errors: remote (the peer's fault, fatal for the connection) and local (a bug on this side)."""

from etcd_aio.http2.frames import ErrorCode


class RemoteProtocolError(Exception):
    """The peer violated HTTP/2, or exceeded a limit. The connection is over.

    Attributes:
        code: the code for the GOAWAY.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class LocalProtocolError(Exception):
    """This side used the engine in a way that HTTP/2 does not allow."""
