"""The peer's settings, with the values that RFC 9113 allows (section 6.5.2).

If a frame contains a setting twice, only the last value takes effect on the streams, so a frame full of them costs no
more than one with each once.
"""

from typing import Final

from etcd_aio.http2 import frames
from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode, Setting

DEFAULT_TABLE_SIZE: Final = 4096


class PeerSettings:
    """The peer's current settings.

    Attributes:
        initial_window: initial send window of a stream.
        max_frame_size: longest payload of a frame.
        max_streams: maximum of concurrent streams; unlimited by default.
        table_size: size of the peer's HPACK table in bytes.
    """

    def __init__(self) -> None:
        self.initial_window = frames.DEFAULT_WINDOW
        self.max_frame_size = frames.DEFAULT_MAX_FRAME_SIZE
        self.max_streams = frames.MAX_STREAM_ID
        self.table_size = DEFAULT_TABLE_SIZE

    def apply(self, payload: bytes) -> None:
        """Apply a frame's payload; settings that RFC 9113 does not define are ignored.

        Raises:
            RemoteProtocolError: a value is invalid.
        """
        for name, value in frames.parse_settings(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW:
                    raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "an initial window above its maximum")
                self.initial_window = value
            elif name == Setting.MAX_FRAME_SIZE:
                if not frames.DEFAULT_MAX_FRAME_SIZE <= value < 2**24:
                    raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a MAX_FRAME_SIZE out of bounds")
                self.max_frame_size = value
            elif name == Setting.MAX_CONCURRENT_STREAMS:
                self.max_streams = value
            elif name == Setting.HEADER_TABLE_SIZE:
                self.table_size = value
            elif name == Setting.ENABLE_PUSH and value:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a server that enables push")
