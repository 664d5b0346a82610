"""Limits: how much a peer may ask for without giving anything. Pure.

Knows: a budget of frames, and what the streams that we gave up may still bring. Never knows: what the frames are.

Theory. Every HTTP/2 flood (SETTINGS, PING, empty DATA, RST_STREAM, PRIORITY, unknown frames, informational responses
...) is the same thing: frames that cost us work and bring no call forward. So each such frame takes a token, each
frame that does bring a call forward gives some back, and time gives some back. An honest server pings as often as
data flows (Go probes the bandwidth so), which earns more than it costs.

What an honest server had sent for a stream before it learned that we gave it up is no flood either. Its data cannot be
more than what was left of the stream's window, and within that costs nothing, in however small frames it comes: a watch
brings a frame for each event. Only the latest such streams are remembered. So each is worth tokens beyond the burst as
well: a thousand calls that end by their deadlines together bring a thousand late answers.
"""

from typing import Final

BURST: Final = 1000.0
PER_SECOND: Final = 200.0
PER_USEFUL_FRAME: Final = 10.0
PER_STREAM_GIVEN_UP: Final = 256.0  # full frames in a stream's receive window: what may be on its way
MOST: Final = 50 * BURST
REMEMBERED: Final = 500  # streams given up


class FloodBudget:
    """What the peer may still send for nothing."""

    __slots__ = ("_at", "_late", "_tokens")

    def __init__(self, now: float) -> None:
        self._tokens = BURST
        self._at = now
        self._late: dict[int, int] = {}  # what is left of the windows of streams given up, the oldest first

    def useful(self) -> None:
        """A frame brought a call forward."""
        if self._tokens < BURST:
            self._tokens += PER_USEFUL_FRAME

    def gave_up(self, stream_id: int, window: int) -> None:
        """We ended a stream for which the peer, who does not know yet, may have sent so many bytes."""
        self._tokens = min(self._tokens + PER_STREAM_GIVEN_UP, MOST)
        self._late[stream_id] = window
        if len(self._late) > REMEMBERED:
            del self._late[next(iter(self._late))]

    def is_late(self, stream_id: int, size: int) -> bool:
        """Whether so many bytes of a stream given up may have been sent before the peer knew; they count as come."""
        left = self._late.get(stream_id, -1) - size
        if left < 0:
            return False
        self._late[stream_id] = left
        return True

    def spend(self, now: float) -> bool:
        """A frame brought nothing; False if that was one too many."""
        if self._tokens < BURST:
            self._tokens = min(self._tokens + (now - self._at) * PER_SECOND, BURST)
        self._at = now
        self._tokens -= 1
        return self._tokens >= 0
