"""Stream: one HTTP/2 stream, and the sink that the parser calls directly.

Knows: its own windows, what it still has to send, how far it got. Never knows: other streams, gRPC.

The transport derives its calls from this class, so that a call is one object from the user's await to the wire: the
parser calls `on_headers`, `on_data` and `on_ended` of the call itself, and no event object is ever made.
"""

from typing import ClassVar, Final

from etcd_aio.http2.headers import HeaderBlock, RequestHeaders

STREAM_WINDOW: Final = 4 * 2**20
"""Bytes one stream may send before they are consumed: enough for full speed on any real network."""


class Http2Stream:
    """One stream of ours.

    Attributes:
        headers: what all streams of its kind send first.
        own_headers: what it alone sends behind them; None is nothing.
        stream_id: 0 until its headers were handed out to be written.
        is_sent_whole: END_STREAM was written, so a server has all it needs to act.
        is_open: it is in the connection's table or waits to be.
        has_begun: the response's first header block came, so that the next one is its trailers.
        unsent: what is given and not written; it is empty exactly if nothing waits for a window or for a turn.
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
    """Whether received bytes are returned to the peer's window at once; else when `consumed` is called."""

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
        """Whether its caller waits no longer: nothing more of it is sent. Asked as it begins, and as a window opens."""
        return False

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        """Response headers, or trailers, which are always the last."""

    def on_data(self, data: bytes) -> None:
        """A piece of the body."""

    def on_ended(self) -> None:
        """The body ended without trailers."""

    def on_sent(self) -> None:
        """Everything given to the stream so far was written; also told of what goes out as the stream opens."""

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        """The stream was reset, by the peer or for what the peer did; it is over."""

    def on_unprocessed(self, reason: str) -> None:
        """The peer promises that it did nothing about this stream; it is over."""
