"""The native engine's calls: HTTP/2 streams that read gRPC messages, and end with a reply or a failure.

Header blocks repeat, so the result of checking one is cached with the block.
"""

import asyncio
from collections import deque
from enum import Enum
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar, Final, Self

from etcd_aio.base.aio import wake
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.http2 import HeaderBlock, Http2Stream, RequestHeaders
from etcd_aio.transport.framing import PREFIX, Deframer, MessageSink
from etcd_aio.transport.interface import BEGINNING, Collect, Collector
from etcd_aio.transport.response import broken, fields, judge_headers, judge_reset, judge_trailers, unprocessed

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL: Final = 2**14  # bytes of a stream's message that is decoded at once, though it may come in two pieces
_EARLY_RETURN: Final = 2**20  # bytes of an incomplete message that are returned to the peer's window at once


class Role(Enum):
    """The role of a header block in its response."""

    HEADERS = "headers"
    TRAILERS = "trailers"
    WHOLE = "whole"


def failure_in(headers: HeaderBlock, *, is_first: bool, ended: bool) -> AttemptFailure | None:
    """The failure that a header block reports; the result of the check is cached with the block if there is none."""
    role = Role.HEADERS if not ended else Role.WHOLE if is_first else Role.TRAILERS
    if headers.accepted_as is role:
        return None
    pairs = fields(headers.fields)
    failure = judge_headers(pairs) if role is not Role.TRAILERS else None
    if failure is None and ended:
        failure = judge_trailers(pairs)
    if failure is None:
        headers.accepted_as = role
    return failure


class _Waiting:
    """The owner of a stream, while it waits for a message."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        wake(self.future)


class IncrementalSink:
    """Passes the pieces to a collector, which decodes them between the turns of the loop; keeps nothing itself.

    Args:
        collector: the collector.
        may_work: whether this sink is to work now. If not, its owner calls `schedule` later, or does the work itself.
        size: of the message, in bytes.
        on_pause: called when the collector has a part, or no more work after parts. In the first case it does no work
            until the owner has taken the part and called `schedule`. None if the message has no parts.

    Attributes:
        collector, size: see above.
        goes_on: whether the collector had a part, and has work that may give another one.
    """

    __slots__ = ("_is_due", "_may_work", "_on_pause", "collector", "goes_on", "size")

    def __init__(
        self,
        collector: Collector,
        may_work: "Callable[[IncrementalSink], bool]",
        size: int,
        on_pause: "Callable[[], None] | None" = None,
    ) -> None:
        self.collector = collector
        self.size = size
        self._may_work = may_work
        self._on_pause = on_pause
        self._is_due = False
        self.goes_on = False

    def write(self, piece: bytes, /) -> None:
        self.collector.feed(piece)
        self.schedule()

    def getvalue(self) -> Self:
        return self

    def schedule(self) -> None:
        """Work in the next turn of the loop, if it may."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._is_due = False
        if not self._may_work(self):
            return
        collector = self.collector
        has_work = not collector.has_part and collector.work()
        was_divided, self.goes_on = self.goes_on, collector.has_part or (self.goes_on and has_work)
        if self._on_pause is not None and (collector.has_part or (was_divided and not has_work)):
            self._on_pause()
        elif has_work:
            self.schedule()


# What creates a sink does not refer to the call, which has it: a reference cycle would keep messages of many megabytes
# until the garbage collector runs.


def _begin_reply(
    collect: Collect | None, future: "asyncio.Future[bytes]"
) -> "Callable[[int], MessageSink[bytes | IncrementalSink]]":
    """Return what creates the sink of a reply. After the call has ended, its owner does the remaining work."""

    def begin(size: int) -> "MessageSink[bytes | IncrementalSink]":
        return BytesIO() if collect is None else IncrementalSink(collect(), lambda _: not future.done(), size)

    return begin


def _begin_message(
    collect: Collect | None, sinks: deque[IncrementalSink], waiting: _Waiting
) -> "Callable[[int], MessageSink[bytes | IncrementalSink]]":
    """Return what creates the sinks of a stream.

    Only the oldest works: a step of each message that waits would together block the loop.

    Args:
        collect: creates the collectors; None joins the pieces.
        sinks: those whose messages were not taken, the oldest first; empty once the stream is over.
        waiting: the owner of the stream.
    """

    def begin(size: int) -> "MessageSink[bytes | IncrementalSink]":
        if collect is None or size <= _SMALL:
            return BytesIO()
        sink = IncrementalSink(collect(), lambda sink: bool(sinks) and sinks[0] is sink, size, waiting.wake)
        sinks.append(sink)
        return sink

    return begin


class GrpcCall(Http2Stream):
    """Base class of unary calls and streams of messages.

    Attributes:
        deadline: when the call expires.
        has_headers: whether valid response headers arrived.
        may_move: whether the call can be made elsewhere, so that it may be given up.
    """

    __slots__ = ("deadline", "has_headers", "may_move")

    deadline: float
    has_headers: bool
    may_move: bool

    def delivery(self) -> Delivery:
        """Return how far the request got."""
        raise NotImplementedError

    @property
    def is_partial(self) -> bool:
        """Whether a message has begun and not ended."""
        raise NotImplementedError

    def may_go_on(self, now: float) -> bool:
        """Whether the call continues after its deadline, with a later one."""
        return False

    def fail(self, failure: AttemptFailure) -> None:
        """End the call without a reply."""
        raise NotImplementedError

    def complete(self) -> None:
        """End the call with the server's OK."""
        raise NotImplementedError

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        failure = failure_in(headers, is_first=not self.has_headers, ended=ended)
        if failure is not None:
            self.fail(failure)
        elif ended:
            self.complete()
        elif self.has_headers:
            self.fail(broken("the server sent response headers twice"))
        else:
            self.has_headers = True

    def on_ended(self) -> None:
        text = "the response ended without a gRPC status"
        self.fail(_cut_short() if self.is_partial else broken(text, StatusCode.UNKNOWN))

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        self.fail(judge_reset(code, has_begun=self.has_begun, by_peer=by_peer))

    def on_unprocessed(self, reason: str) -> None:
        delivery = unprocessed(has_begun=self.has_begun) if self.stream_id else Delivery.UNSENT
        self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery))


class UnaryCall(GrpcCall):
    """One unary attempt. Its future gets the reply's payload, or the failure."""

    __slots__ = ("_collect", "_deframer", "_limit", "_message", "future", "whole_by")

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
        self.has_headers = False
        self.may_move = may_move
        self._collect = collect
        self.future = future
        self.deadline = deadline
        self.whole_by = deadline if whole_by is None else whole_by
        self._limit = limit
        self._message: bytes | None = None
        self._deframer: Deframer[bytes | IncrementalSink] | None = None  # for a reply in several pieces

    def is_given_up(self) -> bool:
        # A cancelled task resets its stream only a turn later.
        return self.future.done()

    def delivery(self) -> Delivery:
        # The server runs a unary call only when it has the whole message.
        return Delivery.UNKNOWN if self.stream_id and self.is_sent_whole else Delivery.UNSENT

    def may_go_on(self, now: float) -> bool:
        # A reply that has begun gets until `whole_by`.
        if not self.has_headers or self.whole_by <= now:
            return False
        self.deadline = self.whole_by
        return True

    def fail(self, failure: AttemptFailure) -> None:
        if not self.future.done():
            self.future.set_exception(failure)

    def on_data(self, data: bytes) -> None:
        if self._deframer is None and self._message is None and self.has_headers and len(data) >= 5:
            compressed, size = PREFIX.unpack_from(data)
            if len(data) == size + 5 and not compressed and size <= self._limit:
                self._message = data[5:]  # the whole reply in one frame, as usual
                return
        self._take_piece(data)

    @property
    def is_partial(self) -> bool:
        return self._deframer is not None and self._deframer.partial_size > 0

    def _take_piece(self, data: bytes) -> None:
        if self.future.done():
            return  # the call is over: keep no more data
        failure: AttemptFailure | None = None
        messages: list[bytes | IncrementalSink] = []
        if not self.has_headers:
            failure = _without_headers()
        elif self._message is None:
            if self._deframer is None:
                self._deframer = Deframer(self._limit, _begin_reply(self._collect, self.future))
            failure = self._deframer.feed(data, messages)
        if failure is None and self._message is None and len(messages) == 1 and not self.is_partial:
            message = messages[0]
            self._message = message if isinstance(message, bytes) else b""
        elif failure is None and (self._message is not None or messages):
            failure = broken("the server answered a unary call twice")
        if failure is not None:
            self.fail(failure)

    def complete(self) -> None:
        if self._message is None:
            self.fail(_cut_short() if self.is_partial else broken("the server answered OK without a message"))
        elif not self.future.done():
            self.future.set_result(self._message)


class StreamCall(GrpcCall):
    """One stream of messages. The peer may send more only as the owner reads."""

    auto_return: ClassVar[bool] = False

    def __init__(
        self,
        headers: RequestHeaders,
        limit: int,
        took: "Callable[[StreamCall, int], None]",
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> None:
        super().__init__(headers)
        self.is_quiet = is_quiet
        self.deadline = float("inf")
        self.has_headers = False
        self.may_move = False
        self._took = took  # returns bytes to the peer's window
        self._sinks: deque[IncrementalSink] = deque()  # of messages that were not taken
        self._waiting = _Waiting()
        begin = _begin_message(collect, self._sinks, self._waiting)
        self._deframer: Deframer[bytes | IncrementalSink] = Deframer(limit, begin, shown=BEGINNING)
        self._returned_early = 0  # bytes of the next message that were returned before it was read
        self._messages: deque[bytes | IncrementalSink] = deque()
        self._failure: AttemptFailure | None = None
        self._has_ended = False
        self._sent: asyncio.Future[None] | None = None  # the owner, waiting until its bytes are written

    # Called by the HTTP/2 connection.

    def is_given_up(self) -> bool:
        return self._failure is not None or (self._sent is not None and self._sent.cancelled())

    def delivery(self) -> Delivery:
        # The server runs a streaming call as soon as it has the headers.
        return Delivery.UNKNOWN if self.stream_id else Delivery.UNSENT

    def fail(self, failure: AttemptFailure) -> None:
        if self._failure is None and not self._has_ended:
            self._failure = failure
            self._deframer.forget()
        self._sinks.clear()  # no more work
        self._waiting.wake()
        wake(self._sent)

    @property
    def is_partial(self) -> bool:
        return self._deframer.partial_size > 0

    def complete(self) -> None:
        if self.is_partial:
            self.fail(_cut_short())
            return
        self._has_ended = True
        self._waiting.wake()
        wake(self._sent)

    def on_data(self, data: bytes) -> None:
        if self._failure is not None:
            return
        if not self.has_headers:
            self.fail(_without_headers())
            return
        failure = self._deframer.feed(data, self._messages)
        if failure is not None:
            self.fail(failure)
        elif self._messages:
            self._waiting.wake()
        else:
            self._return_early()

    def on_sent(self) -> None:
        wake(self._sent)

    # Called by the owner.

    def take(self) -> bytes | Collector | None:
        """Return the next message, or the collector that gets it; None if there is none yet.

        It is removed, except a collector that has a part. A message that was divided while it arrived is divided to its
        end: its consumer gets many parts, one after another, and not one that is very large.
        """
        if self._sinks and (not self._messages or self._messages[0] is self._sinks[0]):
            oldest = self._sinks[0]
            if oldest.collector.has_part:
                return oldest.collector
            oldest.schedule()  # its collector did no work while it had a part
            if oldest.goes_on and not self._has_ended:
                return None
        if not self._messages:
            return None
        message = self._messages.popleft()
        size = len(message) if isinstance(message, bytes) else message.size
        self._took(self, size + PREFIX.size - self._returned_early)
        self._returned_early = 0
        self._return_early()
        if isinstance(message, bytes):
            return message
        if self._sinks:
            self._sinks.popleft()
        if self._sinks:
            self._sinks[0].schedule()
        message.collector.end()
        return message.collector

    def check(self) -> bool:
        """Whether the server ended the stream with OK.

        Raises:
            AttemptFailure: the stream failed.
        """
        if self._failure is not None:
            raise self._failure
        return self._has_ended

    async def wait_for_more(self) -> None:
        """Wait for a message, or for the end of the stream."""
        self._waiting.future = asyncio.get_running_loop().create_future()
        try:
            await self._waiting.future
        finally:
            self._waiting.future = None

    async def wait_until_opened(self) -> None:
        """Wait until the headers were written, or the stream failed."""
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
        """Return the bytes of an incomplete message, which may exceed the window, unless other messages wait."""
        if not self._messages:
            size = self._deframer.partial_size - self._returned_early
            if size >= _EARLY_RETURN:
                self._returned_early += size
                self._took(self, size)


def _cut_short() -> AttemptFailure:
    return broken("the server cut its message short")


def _without_headers() -> AttemptFailure:
    return broken("the server sent data before response headers")
