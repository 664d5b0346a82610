"""Uploads: for how long what large requests have written may still be on its way. Pure.

Theory. Bytes that were written lie in buffers on their way, of this machine, of a modem, of a proxy, and nothing on
this side shows how many. While they drain, a living peer may have no reason to send a byte, and a ping waits behind
them. The answer to a large request shows that it has arrived, and so how fast the link is at least. What is written
and unanswered therefore gets the time that it needs at this speed, with a wide margin; before the first such answer it
is a slow link's. Flow control bounds it: the first request to a peer writes 64 KiB before the peer has to react.
"""

from collections.abc import Sized
from typing import Final, Protocol

LARGE: Final = 16_384  # bytes; what is smaller takes half a second at 256 kbit/s, and shows no speed
SLOWEST: Final = 16_000.0  # bytes a second: 128 kbit/s
LONGEST: Final = 60.0  # seconds; after so much silence a peer is asked, however much was written
_MARGIN: Final = 4.0


class Upload(Protocol):
    """A large request."""

    @property
    def unsent(self) -> Sized:
        """The bytes that were not written yet."""
        ...


class Uploads:
    """The large requests of one connection that are not answered."""

    def __init__(self) -> None:
        self._under_way: dict[Upload, tuple[int, float]] = {}  # size and beginning
        self._rate = SLOWEST
        self._last = 0.0  # when the last one began
        self._until = 0.0  # when what was written for those that were abandoned has arrived

    def began(self, upload: Upload, size: int, now: float) -> None:
        """A large request was given to the connection."""
        self._under_way[upload] = size, now
        self._last = now

    def ended(self, upload: Upload, now: float, heard: float, *, is_answered: bool) -> None:
        """The request is not under way any more; harmless if it never was.

        Args:
            upload: the request.
            now: the instant.
            heard: when bytes came last.
            is_answered: whether its server has begun to answer it.
        """
        size, began = self._under_way.get(upload, (0, 0.0))
        if not size:
            return
        if not is_answered:
            self._until = self.drained_by(heard)
        elif now > began:
            self._rate = max(SLOWEST, size / (now - began) / _MARGIN)
            self._until = 0.0  # it came behind those that were abandoned before
        del self._under_way[upload]

    def drained_by(self, heard: float) -> float:
        """The instant until which silence proves nothing.

        Args:
            heard: when bytes came last.
        """
        if not self._under_way:
            return self._until
        written = sum(size - len(upload.unsent) for upload, (size, _) in self._under_way.items())
        if written <= 0:
            return self._until
        return max(self._until, max(heard, self._last) + min(written / self._rate, LONGEST))
