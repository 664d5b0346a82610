"""Limits: how much a peer may ask for without giving anything. Pure.

Knows: a budget of frames. Never knows: what the frames are.

Theory. Every HTTP/2 flood (SETTINGS, PING, empty DATA, RST_STREAM, PRIORITY, unknown frames, informational responses
...) is the same thing: frames that cost us work and bring no call forward. So each such frame takes a token, each
frame that does bring a call forward gives some back, and time gives some back. An honest server pings as often as
data flows (Go probes the bandwidth so), which earns more than it costs.

What an honest server had sent for a stream before it learned that we gave it up is no flood either. A thousand calls
that end by their deadlines together bring a thousand late answers, so each stream given up is worth tokens beyond the
burst.
"""

from typing import Final

BURST: Final = 1000.0
PER_SECOND: Final = 200.0
PER_USEFUL_FRAME: Final = 10.0
PER_STREAM_GIVEN_UP: Final = 256.0  # full frames in a stream's receive window: what may be on its way
MOST: Final = 50 * BURST


class FloodBudget:
    """What the peer may still send for nothing."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, now: float) -> None:
        self._tokens = BURST
        self._at = now

    def useful(self) -> None:
        """A frame brought a call forward."""
        if self._tokens < BURST:
            self._tokens += PER_USEFUL_FRAME

    def gave_up(self) -> None:
        """We ended a stream, and the peer does not know yet."""
        self._tokens = min(self._tokens + PER_STREAM_GIVEN_UP, MOST)

    def spend(self, now: float) -> bool:
        """A frame brought nothing; False if that was one too many."""
        if self._tokens < BURST:
            self._tokens = min(self._tokens + (now - self._at) * PER_SECOND, BURST)
        self._at = now
        self._tokens -= 1
        return self._tokens >= 0
