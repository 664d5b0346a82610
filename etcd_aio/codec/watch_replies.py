"""Watch replies that are still arriving: which watch they are for, decoding them in parts, and without dropped events.

etcd, like all Go programs, writes fields in the order of their numbers: the header, the watch id, what else is known of
the watch, and the events last. So the first bytes of a message say for which watch its events are, and the events that
are here can be handed over before the others, as if the server had sent the message in fragments.
"""

from collections.abc import Callable
from typing import Final

from etcd_aio.codec.compiled import decode
from etcd_aio.codec.incremental import PIECE, IncrementalDecoder
from etcd_aio.codec.wire import LENGTH, VARINT, WireFormatError, read_varint
from etcd_aio.types import WatchReply

_HEADER: Final = b"\x0a"  # the tag of field 1, a message
_WATCH_ID: Final = 0x10  # the tag of field 2, a number
_FRAGMENT: Final = b"\x38\x01"  # field 7, true: the message goes on in another one
_EVENTS: Final = 0x5A  # the tag of field 11, messages
_EVENT: Final = bytes([_EVENTS])
_LONG_TAG: Final = 0x80  # of a field with a number above 15, which etcd does not have: the tag has another byte
_BEGINNING: Final = 128  # bytes; more than etcd writes before the first event
_PART: Final = PIECE // 2  # bytes; to hand over a part takes as long as to decode some hundred events


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
            if wire_type not in {VARINT, LENGTH} or beginning[at] >= _LONG_TAG:
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

    A part is a fragment: a reply with the events that are here; more events of its last revision may follow. `finish`
    returns a reply with at least one event, because a reply without events is a progress notification.

    Args:
        drops_events: whether the watch with this id drops its events by now.
        has_fragments: whether the watch with this id gets fragments from the server. These have no parts: the watch may
            be cancelled between any two fragments, and the rest of the first would have to be sent again.
    """

    __slots__ = ("_beginning", "_drops_events", "_has_fragments", "_head", "_is_dropping", "_watch_id")

    def __init__(self, drops_events: Callable[[int], bool], has_fragments: Callable[[int], bool]) -> None:
        super().__init__(WatchReply)
        self._drops_events = drops_events
        self._has_fragments = has_fragments
        self._beginning = b""
        self._head: bytes | None = None  # what is before the events, once it is needed; empty if there are no parts
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

    def _work(self) -> None:
        """Decode one step, without the events if they are dropped by now."""
        if not self._is_dropping and self._watch_id is not None and self._drops_events(self._watch_id):
            kept = without_events(self._beginning)
            if kept is not None:
                self._is_dropping = True
                self.restart()
                super().feed(kept)
        super()._work()
        if self._head is None and self._decoded >= _PART:
            self._head = self._dividable_head()

    @property
    def has_part(self) -> bool:
        """Whether there are events to hand over, and the message goes on with another one."""
        return (
            self._decoded >= _PART
            and not (self._is_paused or self._has_ended)
            and bool(self._pieces)
            and self._pieces[0][:1] == _EVENT
            and bool(self._head)
        )

    def take_part(self) -> WatchReply | None:
        """Remove the events that are here, and return them as a fragment; None if there is no part."""
        return self._cut(_FRAGMENT, self._head) if self._head and self.has_part else None

    def _dividable_head(self) -> bytes:
        """The fields before the events, or b"" if the reply cannot be divided."""
        head = without_events(self._beginning)
        if head:
            reply = decode(WatchReply, head)
            says_more = reply.created or reply.canceled or reply.compact_revision
            if reply.watch_id and not says_more and not self._has_fragments(reply.watch_id):
                return head
        return b""
