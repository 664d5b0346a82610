"""Protection against floods: a budget for frames that cost work without advancing a call. Pure.

All HTTP/2 floods (SETTINGS, PING, empty DATA, RST_STREAM, PRIORITY, unknown frames, informational responses ...)
consist of useless frames. Each of them costs a token; useful frames and time earn tokens. An honest server pings only
as often as data flows (Go measures the bandwidth with pings), which earns more than it costs.

Late data for a stream that this side has ended is no flood. It is free up to the stream's remaining window, in however
small frames it arrives: a watch has a frame for each event. Only the latest such streams are remembered, so each of
them also earns tokens: a thousand calls that time out together bring a thousand late answers.
"""

from typing import Final

BURST: Final = 1000.0
PER_SECOND: Final = 200.0
PER_USEFUL_FRAME: Final = 10.0
PER_STREAM_GIVEN_UP: Final = 256.0  # full frames in a stream's receive window: what may still arrive
MOST: Final = 50 * BURST
REMEMBERED: Final = 500  # ended streams


class FloodBudget:
    """The budget of one connection."""

    def __init__(self, now: float) -> None:
        self._tokens = BURST
        self._at = now
        self._late: dict[int, int] = {}  # remaining windows of ended streams, the oldest first

    def useful(self, frames: int = 1) -> None:
        """Frames advanced calls. Each of them earns tokens, unless there are enough."""
        while frames and self._tokens < BURST:
            self._tokens += PER_USEFUL_FRAME
            frames -= 1

    def earn(self, tokens: float) -> None:
        """Something advanced a call, and is worth so much."""
        if self._tokens < BURST:
            self._tokens = min(self._tokens + tokens, BURST)

    def gave_up(self, stream_id: int, window: int) -> None:
        """This side ended a stream; the peer may still send up to `window` bytes for it."""
        self._tokens = min(self._tokens + PER_STREAM_GIVEN_UP, MOST)
        self._late[stream_id] = window
        if len(self._late) > REMEMBERED:
            del self._late[next(iter(self._late))]

    def is_late(self, stream_id: int, size: int) -> bool:
        """Whether these bytes may have been sent before the peer knew of the stream's end; they are deducted."""
        left = self._late.get(stream_id, -1) - size
        if left < 0:
            return False
        self._late[stream_id] = left
        return True

    def spend(self, now: float, tokens: float = 1.0) -> bool:
        """A frame was useless, or costs so much. Returns False if the budget is exceeded."""
        if self._tokens < BURST:
            self._tokens = min(self._tokens + (now - self._at) * PER_SECOND, BURST)
        self._at = now
        self._tokens -= tokens
        return self._tokens >= 0
