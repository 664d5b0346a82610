"""One HTTP/2 stream, whose methods the parser calls directly.

The transport derives its calls from this class, so a call is one object from the caller's await to the wire, and no
event objects are needed.
"""

from typing import ClassVar, Final

from etcd_aio.http2.headers import HeaderBlock, RequestHeaders

STREAM_WINDOW: Final = 4 * 2**20
"""Bytes that the peer may send on a stream before they are read: enough for full speed on real networks."""
RETURN_AFTER: Final = STREAM_WINDOW // 4
"""Bytes that are returned to the peer's window together; smaller returns would cost too many frames."""


class Http2Stream:
    """One stream.

    Attributes:
        headers: the headers it shares with other streams of its method.
        own_headers: further headers of its own; None for none.
        stream_id: 0 until its headers were taken to be written.
        is_sent_whole: END_STREAM was written, so the server has the complete request.
        is_open: whether it is open, or queued.
        has_begun: the response's first header block arrived, so the next one is its trailers.
        unsent: bytes that wait for a window or for their turn.
    """

    __slots__ = (
        "end_after",
        "has_begun",
        "headers",
        "is_open",
        "is_sent_whole",
        "own_headers",
        "receive_window",
        "send_window",
        "stream_id",
        "to_return",
        "unsent",
    )

    auto_return: ClassVar[bool] = True
    """Whether received bytes are returned to the peer's window at once, or when `consumed` is called."""

    def __init__(self, headers: RequestHeaders, own_headers: RequestHeaders | None = None) -> None:
        self.headers = headers
        self.own_headers = own_headers
        self.stream_id = 0
        self.unsent: bytearray | bytes = b""
        self.end_after = False
        self.has_begun = False
        self.send_window = 0
        self.receive_window = 0
        self.to_return = 0
        self.is_sent_whole = False
        self.is_open = True

    def is_given_up(self) -> bool:
        """Whether the caller no longer waits. Checked before anything is sent; nothing is sent then."""
        return False

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        """Response headers, or trailers, which are always the last."""

    def on_data(self, data: bytes) -> None:
        """A piece of the body."""

    def on_ended(self) -> None:
        """The body ended without trailers."""

    def on_sent(self) -> None:
        """Everything given to the stream so far was written, also when the stream opens."""

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        """The stream was reset, by the peer or because of an error of the peer. It is over."""

    def on_unprocessed(self, reason: str) -> None:
        """The peer promises that it did not process this stream. It is over."""
