"""Settings: what the peer's SETTINGS frames have said so far.

Knows: which values RFC 9113 allows (section 6.5.2). Never knows: streams.

Theory. A frame counts as a whole: where it names a setting twice the last value is the one that is applied, so that a
frame full of them costs no more than one that names each once.
"""

from typing import Final

from etcd_aio.http2 import frames
from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode, Setting

DEFAULT_TABLE_SIZE: Final = 4096


class PeerSettings:
    """The peer's word.

    Attributes:
        initial_window: bytes a new stream may send before the peer says more.
        max_frame_size: the longest payload the peer takes.
        max_streams: streams it lets us open; until it says otherwise there is no limit.
        table_size: bytes of the HPACK table it keeps for our blocks.
    """

    __slots__ = ("initial_window", "max_frame_size", "max_streams", "table_size")

    def __init__(self) -> None:
        self.initial_window = frames.DEFAULT_WINDOW
        self.max_frame_size = frames.DEFAULT_MAX_FRAME_SIZE
        self.max_streams = frames.MAX_STREAM_ID
        self.table_size = DEFAULT_TABLE_SIZE

    def apply(self, payload: bytes) -> None:
        """Take in a frame's payload; settings that RFC 9113 does not define are ignored.

        Raises:
            RemoteProtocolError: a value that is not allowed.
        """
        for name, value in frames.parse_settings(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW:
                    raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "an initial window past its maximum")
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
