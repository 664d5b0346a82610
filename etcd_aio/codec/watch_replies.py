"""Watch replies that are still arriving: which watch they are for, and decoding them without events that are dropped.

etcd, like all Go programs, writes fields in the order of their numbers: the header, the watch id, what else is known of
the watch, and the events last. So the first bytes of a message say for which watch its events are.
"""

from collections.abc import Callable
from typing import Final

from etcd_aio.codec.fields import LENGTH, VARINT
from etcd_aio.codec.incremental import IncrementalDecoder
from etcd_aio.codec.wire import WireFormatError, read_varint
from etcd_aio.types import WatchReply

_HEADER: Final = b"\x0a"  # the tag of field 1, a message
_WATCH_ID: Final = 0x10  # the tag of field 2, a number
_EVENTS: Final = 0x5A  # the tag of field 11, messages
_BEGINNING: Final = 128  # bytes; more than etcd writes before the first event


def leading_watch_id(beginning: bytes) -> int | None:
    """The watch id of an incomplete `WatchResponse`; None if the bytes end before it."""
    at = 0
    try:
        if beginning.startswith(_HEADER):
            size, at = read_varint(beginning, 1)
            at += size
        if beginning[at] != _WATCH_ID:
            return 0  # which is not written
        return read_varint(beginning, at + 1)[0]
    except (IndexError, WireFormatError):
        return None


def without_events(beginning: bytes) -> bytes | None:
    """An incomplete `WatchResponse` up to its first event; None if it cannot be told where that is."""
    at = 0
    try:
        while beginning[at] != _EVENTS:
            wire_type = beginning[at] & 7
            if wire_type not in {VARINT, LENGTH}:
                return None
            number, at = read_varint(beginning, at + 1)
            if wire_type == LENGTH:
                at += number
    except (IndexError, WireFormatError):
        return None
    return beginning[:at]


class WatchReplyDecoder(IncrementalDecoder[WatchReply]):
    """Decodes one watch reply from pieces; from the moment when its watch drops its events, without them.

    A message may hold several times what a consumer may leave untaken, and the next one is on its way already when the
    watch is cancelled: to decode it for nothing would take as long as the one before.

    Args:
        drops_events: whether the watch with this id drops its events by now.
    """

    __slots__ = ("_beginning", "_drops_events", "_is_dropping", "_watch_id")

    def __init__(self, drops_events: Callable[[int], bool]) -> None:
        super().__init__(WatchReply)
        self._drops_events = drops_events
        self._beginning = b""
        self._watch_id: int | None = None
        self._is_dropping = False

    def feed(self, piece: bytes) -> None:
        """Add the next piece."""
        if self._is_dropping:
            return
        missing = _BEGINNING - len(self._beginning)
        if missing > 0:
            self._beginning += piece[:missing]
            self._watch_id = leading_watch_id(self._beginning)
        super().feed(piece)

    def work(self) -> bool:
        """Decode one step, without the events if they are dropped by now."""
        if not self._is_dropping and self._watch_id is not None and self._drops_events(self._watch_id):
            kept = without_events(self._beginning)
            if kept is not None:
                self._is_dropping = True
                self.restart()
                super().feed(kept)
        return super().work()
