"""The flood limits of the grpclib engine: each frame that h2 takes in costs what it does on the native engine.

h2 has limits of its own: a header list has at most 64 KiB, a header block at most 64 CONTINUATION frames, which cost
nothing here. It does not tell how large a block is that it has decoded for a stream that is gone, so the bytes of the
block count. The headers and trailers of an answer are free, up to h2's limit: five milliseconds for each.
"""

from collections.abc import Callable, Sequence
from typing import Final

from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, ResponseReceived, TrailersReceived
from h2.exceptions import ProtocolError
from hyperframe.frame import DataFrame, Frame, HeadersFrame, RstStreamFrame, WindowUpdateFrame

from etcd_aio.http2 import FloodBudget

_BLOCK_FOR_TOKEN: Final = 4  # encoded bytes of a useless header block: each may stand for a field of 32 bytes and more
_WORTH_AN_UPDATE: Final = 1024  # bytes; smaller returns of the window are no way to return it
_ANSWERS: Final = (ResponseReceived, TrailersReceived)


class FloodError(ProtocolError):
    """The peer sends useless frames. h2 tells it so, and the connection is over."""

    error_code = ErrorCodes.ENHANCE_YOUR_CALM


class FrameLimits:
    """Watches the frames of one connection of h2, from its creation on.

    Args:
        http2: the connection.
        clock: returns the time.
    """

    def __init__(self, http2: H2Connection, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._budget = FloodBudget(clock())
        self._unreturned = 0  # bytes that were sent, for both windows
        self._send_data = http2.send_data
        self._receive_frame = http2._receive_frame
        # h2 offers no public way to see each frame: many bring no event.
        http2._receive_frame = self._received  # type: ignore[method-assign]
        http2.send_data = self._sent  # type: ignore[method-assign, assignment]  # which sends no padding

    def gave_up(self, stream_id: int, window: int) -> None:
        """This side ended a stream; the peer may still send up to `window` bytes for it."""
        self._budget.gave_up(stream_id, window)

    def _sent(self, stream_id: int, data: bytes, end_stream: bool = False) -> None:
        self._send_data(stream_id, data, end_stream=end_stream)
        self._unreturned += 2 * len(data)

    def _received(self, frame: Frame) -> list[Event]:
        events = self._receive_frame(frame)
        cost = self._cost(frame, events)
        if cost is None:
            self._budget.useful()
        elif cost and not self._budget.spend(self._clock(), cost):
            raise FloodError("a flood of useless frames")
        return events

    def _cost(self, frame: Frame, events: Sequence[Event]) -> float | None:
        """The tokens for a frame; None if it advanced a call."""
        if isinstance(frame, DataFrame) and frame.data:
            if any(isinstance(event, DataReceived) for event in events):
                return None
            return 0 if self._budget.is_late(frame.stream_id, len(frame.data)) else 1
        if isinstance(frame, HeadersFrame):
            is_answer = any(isinstance(event, _ANSWERS) for event in events)
            return None if is_answer else 1 + len(frame.data) / _BLOCK_FOR_TOKEN
        if isinstance(frame, WindowUpdateFrame):
            increment = frame.window_increment
            if increment >= _WORTH_AN_UPDATE and self._unreturned > 0:
                self._unreturned -= increment
                return 0
            return 1
        return 0 if isinstance(frame, RstStreamFrame) and events else 1  # a reset that ends a call is its answer
