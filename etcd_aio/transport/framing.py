"""gRPC's message framing: five bytes before every message. The same for every engine. Pure."""

import struct
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode

if TYPE_CHECKING:
    from collections.abc import Callable, MutableSequence

M_co = TypeVar("M_co", covariant=True)

PREFIX: Final = struct.Struct(">BI")  # compressed flag and length


def frame_message(payload: bytes) -> bytes:
    """A message with its prefix."""
    return PREFIX.pack(0, len(payload)) + payload


def check_prefix(compressed: int, size: int, limit: int) -> AttemptFailure | None:
    """Return the failure of a message that its prefix rules out, before it is received; None if it is accepted."""
    if compressed:
        text = "the server sent a compressed message unasked"
        return AttemptFailure(StatusCode.INTERNAL, text, Delivery.UNKNOWN, reason=LocalReason.MALFORMED)
    if size > limit:
        text = f"received message of {size} bytes is larger than max_receive_bytes ({limit})"
        reason = LocalReason.REPLY_TOO_LARGE
        return AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNKNOWN, reason=reason)
    return None


class MessageSink(Protocol[M_co]):
    """Receives the pieces of a message that comes in several frames."""

    def write(self, piece: bytes, /) -> object:
        """Add a piece."""

    def getvalue(self) -> M_co:
        """The message, or what stands for it."""
        ...


class Deframer(Generic[M_co]):
    """Splits a body into gRPC messages.

    The pieces of a long message are written to memory that becomes the message itself, without a copy at its end, so
    that not even 50 MB block the loop.

    Args:
        limit: largest message.
        begin: creates the sink for a message of several pieces, from its length.
        shown: how many bytes of a message that is too large the failure contains.
    """

    __slots__ = ("_begin", "_head", "_limit", "_message", "_missing", "_shown", "_size")

    def __init__(self, limit: int, begin: "Callable[[int], MessageSink[M_co]]", *, shown: int = 0) -> None:
        self._begin = begin
        self._limit = limit
        self._shown = shown
        self._head = b""  # an incomplete prefix
        self._message: MessageSink[M_co] | None = None
        self._missing = 0
        self._size = 0

    def forget(self) -> None:
        """Keep nothing of an incomplete message: no more will be fed."""
        self._message = None

    @property
    def partial_size(self) -> int:
        """Received bytes of an incomplete message, with its prefix."""
        return len(self._head) if self._message is None else self._size + PREFIX.size - self._missing

    def feed(self, data: bytes, messages: "MutableSequence[bytes | M_co]") -> AttemptFailure | None:
        """Append the messages that `data` completes. Returns a failure if a message is rejected; then feed no more."""
        position = 0
        if self._message is not None:
            position = min(self._missing, len(data))
            self._message.write(data if position == len(data) else data[:position])
            self._missing -= position
            if self._missing:
                return None
            messages.append(self._message.getvalue())
            self._message = None
        elif self._head:
            data = self._head + data
            self._head = b""
        size = len(data)
        while size - position >= PREFIX.size:
            compressed, length = PREFIX.unpack_from(data, position)
            failure = check_prefix(compressed, length, self._limit)
            start = position + PREFIX.size
            if failure is not None:
                failure.beginning = data[start : start + self._shown]
                return failure
            position = start + length
            if position > size:
                self._message = self._begin(length)
                self._message.write(data[start:])
                self._size = length
                self._missing = position - size
                return None
            messages.append(data[start:position])
        self._head = data[position:]
        return None
