"""The native engine's calls: what the HTTP/2 parser tells a stream, made into gRPC messages.

Knows: gRPC's framing and where a call ends. Never knows: sockets, timers, other calls.

A response's header blocks repeat, and the machine remembers them; what this file concluded from one is noted on it, so
that the second time it costs one comparison.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, MutableSequence
from io import BytesIO
from typing import ClassVar, Final

from etcd_aio.aio import wake
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import HeaderBlock, Http2Stream, RequestHeaders, error_name
from etcd_aio.transport.interface import BEGINNING, Collect
from etcd_aio.transport.pieces import Collected, Pieces
from etcd_aio.transport.response import fields, judge_headers, judge_reset, judge_trailers, unprocessed

PREFIX: Final = struct.Struct(">BI")  # compressed flag and length, before every gRPC message
_EARLY_RETURN: Final = 2**20  # bytes of an unfinished message that are worth a frame to the peer

_HEAD: Final = "fine as response headers"
_TAIL: Final = "fine as trailers"
_WHOLE: Final = "fine as a whole response"


def failure_in(headers: HeaderBlock, *, is_first: bool, ended: bool) -> AttemptFailure | None:
    """The failure that a block carries: as response headers if it is the first, as trailers if it ends the response."""
    role = _HEAD if not ended else _WHOLE if is_first else _TAIL
    if headers.note is role:
        return None
    found = fields(headers.fields)
    failure = judge_headers(found) if role is not _TAIL else None
    if failure is None and ended:
        failure = judge_trailers(found)
    if failure is None:
        headers.note = role
    return failure


class Deframer:
    """Cuts a body into gRPC messages.

    A message of many pieces is put together as they come, in memory that becomes the message itself: its end costs no
    copy, so that not even 50 MB hold up the loop.

    Args:
        limit: largest message.
        begin: makes what a message of many pieces is written to.
        shown: of a message that is too large, so many bytes are shown by the failure.
    """

    __slots__ = ("_begin", "_head", "_limit", "_message", "_missing", "_shown", "_size")

    def __init__(self, limit: int, begin: "Callable[[], Pieces]" = BytesIO, *, shown: int = 0) -> None:
        self._begin = begin
        self._limit = limit
        self._shown = shown
        self._head = b""  # less than a prefix
        self._message: Pieces | None = None
        self._missing = 0
        self._size = 0

    @property
    def partial_size(self) -> int:
        """Bytes of a message that has not come whole, its prefix among them."""
        return len(self._head) if self._message is None else self._size + PREFIX.size - self._missing

    def feed(self, data: bytes, messages: MutableSequence[bytes]) -> AttemptFailure | None:
        """Append what `data` completes to `messages`; a failure if a message is not to be taken, then feed no more."""
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
            failure = _refused(compressed, length, self._limit)
            start = position + PREFIX.size
            if failure is not None:
                failure.beginning = data[start : start + self._shown]
                return failure
            position = start + length
            if position > size:
                self._message = self._begin()
                self._message.write(data[start:])
                self._size = length
                self._missing = position - size
                return None
            messages.append(data[start:position])
        self._head = data[position:]
        return None


class GrpcCall(Http2Stream):
    """What unary calls and streams of messages have in common."""

    __slots__ = ("has_headers",)

    def __init__(self, headers: RequestHeaders, own_headers: RequestHeaders | None = None) -> None:
        super().__init__(headers, own_headers)
        self.has_headers = False

    def may_go_on(self, now: float) -> bool:
        """Whether the call gets another deadline now that one has passed."""
        return False

    def fail(self, failure: AttemptFailure) -> None:
        """The call is over, without a reply."""
        raise NotImplementedError

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        """See `Http2Stream.on_reset`."""
        if by_peer:
            self.fail(judge_reset(code, has_begun=self.has_begun))
        else:
            self.fail(_broken(f"the server broke HTTP/2 on the stream: {error_name(code)}"))

    def on_unprocessed(self, reason: str) -> None:
        """See `Http2Stream.on_unprocessed`."""
        delivery = unprocessed(has_begun=self.has_begun) if self.stream_id else Delivery.UNSENT
        self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery))


class UnaryCall(GrpcCall):
    """One unary attempt. Its future has the reply's payload, or the failure."""

    __slots__ = ("_collect", "_deframer", "_limit", "_message", "deadline", "future", "may_move", "whole_by")

    def __init__(
        self,
        headers: RequestHeaders,
        own_headers: RequestHeaders | None,
        future: "asyncio.Future[bytes]",
        deadline: float,
        limit: int,
        collect: Collect | None = None,
        may_move: bool = False,
        whole_by: float | None = None,
    ) -> None:
        super().__init__(headers, own_headers)
        self.may_move = may_move
        self._collect = collect
        self.future = future
        self.deadline = deadline
        self.whole_by = deadline if whole_by is None else whole_by
        self._limit = limit
        self._message: bytes | None = None
        self._deframer: Deframer | None = None  # of a reply in several pieces

    def is_given_up(self) -> bool:
        """See `Http2Stream.is_given_up`: a cancelled task runs only a turn later, and with it its reset."""
        return self.future.done()

    def may_go_on(self, now: float) -> bool:
        """Whether the call gets another deadline now that one has passed, since its answer has begun."""
        if not self.has_headers or self.whole_by <= now:
            return False
        self.deadline = self.whole_by
        return True

    def fail(self, failure: AttemptFailure) -> None:
        """See `GrpcCall.fail`."""
        if not self.future.done():
            self.future.set_exception(failure)

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        """See `Http2Stream.on_headers`."""
        failure = failure_in(headers, is_first=not self.has_headers, ended=ended)
        if failure is not None:
            self.fail(failure)
        elif ended:
            self._complete()
        elif self.has_headers:
            self.fail(_broken("the server sent response headers twice"))
        else:
            self.has_headers = True

    def on_data(self, data: bytes) -> None:
        """See `Http2Stream.on_data`."""
        if self._deframer is None and self._message is None and self.has_headers and len(data) >= 5:
            compressed, size = PREFIX.unpack_from(data)
            if len(data) == size + 5 and not compressed and size <= self._limit:
                self._message = data[5:]  # the whole reply in one frame, as almost always
                return
        self._take_piece(data)

    def on_ended(self) -> None:
        """See `Http2Stream.on_ended`."""
        self.fail(_cut_short() if self._is_partial else _without_status())

    @property
    def _is_partial(self) -> bool:
        return self._deframer is not None and self._deframer.partial_size > 0

    def _take_piece(self, data: bytes) -> None:
        if self.future.done():
            return  # it failed before, or its caller is gone: this must not fill the memory
        failure: AttemptFailure | None = None
        messages: list[bytes] = []
        if not self.has_headers:
            failure = _without_headers()
        elif self._message is None:
            if self._deframer is None:
                self._deframer = Deframer(self._limit, self._begin)
            failure = self._deframer.feed(data, messages)
        if failure is None and self._message is None and len(messages) == 1 and not self._is_partial:
            self._message = messages[0]
        elif failure is None and (self._message is not None or messages):
            failure = _broken("the server answered a unary call twice")
        if failure is not None:
            self.fail(failure)

    def _begin(self) -> Pieces:
        return BytesIO() if self._collect is None else Collected(self._collect(), self.future)

    def _complete(self) -> None:
        if self._message is None:
            self.fail(_cut_short() if self._is_partial else _broken("the server answered OK without a message"))
        elif not self.future.done():
            self.future.set_result(self._message)


class StreamCall(GrpcCall):
    """One stream of messages, read at its owner's pace: the peer may send more only as messages are taken."""

    __slots__ = (
        "_deframer",
        "_failure",
        "_has_ended",
        "_messages",
        "_returned_early",
        "_sent",
        "_took",
        "_wakes",
        "deadline",
    )

    auto_return: ClassVar[bool] = False

    def __init__(self, headers: RequestHeaders, limit: int, took: "Callable[[StreamCall, int], None]") -> None:
        super().__init__(headers)
        self.deadline = float("inf")
        self._took = took  # lets the peer send as many bytes more
        self._deframer = Deframer(limit, shown=BEGINNING)
        self._returned_early = 0  # bytes of the next message that the peer got back before it was taken
        self._messages: deque[bytes] = deque()
        self._failure: AttemptFailure | None = None
        self._has_ended = False
        self._wakes: asyncio.Future[None] | None = None  # who waits for a message; there is one owner
        self._sent: asyncio.Future[None] | None = None  # who waits until its bytes are written

    # From the machine.

    def is_given_up(self) -> bool:
        """See `Http2Stream.is_given_up`."""
        return self._failure is not None or (self._sent is not None and self._sent.cancelled())

    def fail(self, failure: AttemptFailure) -> None:
        """See `GrpcCall.fail`."""
        if self._failure is None and not self._has_ended:
            self._failure = failure
        wake(self._wakes)
        wake(self._sent)

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        """See `Http2Stream.on_headers`."""
        failure = failure_in(headers, is_first=not self.has_headers, ended=ended)
        if failure is not None:
            self.fail(failure)
        elif ended and self._deframer.partial_size:
            self.fail(_cut_short())
        elif ended:
            self._has_ended = True
            wake(self._wakes)
            wake(self._sent)
        elif self.has_headers:
            self.fail(_broken("the server sent response headers twice"))
        else:
            self.has_headers = True

    def on_data(self, data: bytes) -> None:
        """See `Http2Stream.on_data`."""
        if self._failure is not None:
            return  # nobody will read it
        if not self.has_headers:
            self.fail(_without_headers())
            return
        failure = self._deframer.feed(data, self._messages)
        if failure is not None:
            self.fail(failure)
        elif self._messages:
            wake(self._wakes)
        else:
            self._return_early()

    def on_ended(self) -> None:
        """See `Http2Stream.on_ended`."""
        self.fail(_cut_short() if self._deframer.partial_size else _without_status())

    def on_sent(self) -> None:
        """See `Http2Stream.on_sent`."""
        wake(self._sent)

    # From the owner.

    def take(self) -> bytes | None:
        """A message that has come; None if there is none yet."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._took(self, len(message) + PREFIX.size - self._returned_early)
        self._returned_early = 0
        self._return_early()
        return message

    def check(self) -> bool:
        """True once the server ended the stream with OK.

        Raises:
            AttemptFailure: the stream is over otherwise.
        """
        if self._failure is not None:
            raise self._failure
        return self._has_ended

    async def wait_for_more(self) -> None:
        """Wait until something has come or the stream is over."""
        self._wakes = asyncio.get_running_loop().create_future()
        try:
            await self._wakes
        finally:
            self._wakes = None

    async def wait_until_opened(self) -> None:
        """Wait until the headers were written, or the stream is over."""
        while not self.stream_id and self._failure is None:
            await self._wait_for_sending()

    async def wait_until_sent(self) -> None:
        """Wait until all bytes given to the stream were written, or the stream is over."""
        while self.unsent and self.is_open and self._failure is None:
            await self._wait_for_sending()

    async def _wait_for_sending(self) -> None:
        self._sent = asyncio.get_running_loop().create_future()
        try:
            await self._sent
        finally:
            self._sent = None

    def _return_early(self) -> None:
        """Let the peer go on with a message that may be larger than its window, unless others wait to be taken."""
        if not self._messages:
            size = self._deframer.partial_size - self._returned_early
            if size >= _EARLY_RETURN:
                self._returned_early += size
                self._took(self, size)


def _refused(compressed: int, size: int, limit: int) -> AttemptFailure | None:
    """Why a message is not taken, judged by its prefix before any of it is kept."""
    if compressed:
        return _broken("the server sent a compressed message unasked")
    if size > limit:
        text = f"received message of {size} bytes is larger than max_receive_bytes ({limit})"
        return AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNKNOWN, reason=LocalReason.REPLY_TOO_LARGE)
    return None


def _cut_short() -> AttemptFailure:
    return _broken("the server cut its message short")


def _without_headers() -> AttemptFailure:
    return _broken("the server sent data before response headers")


def _without_status() -> AttemptFailure:
    return _broken("the response ended without a gRPC status", StatusCode.UNKNOWN)


def _broken(text: str, code: StatusCode = StatusCode.INTERNAL) -> AttemptFailure:
    return AttemptFailure(code, text, Delivery.UNKNOWN)
