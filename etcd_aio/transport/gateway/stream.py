"""The common part of the streams of the gateway: a queue of received texts, its end, and the task that waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from etcd_aio.base.aio import wake
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.transport.framing import check_prefix
from etcd_aio.transport.gateway.call import JSON_FACTOR, JSON_SLACK
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.json_mapping import GatewayRoute
from etcd_aio.transport.gateway.replies import streamed
from etcd_aio.transport.interface import BEGINNING
from etcd_aio.transport.response import lost

_MOST_UNREAD: Final = 4 * 2**20  # bytes of JSON; then the peer has to wait, as with an HTTP/2 window
_OVERHEAD: Final = 64  # bytes that a text takes beside its own
_MOST_TAKEN_AT_ONCE: Final = 100  # messages; a backlog must not block the loop


class JsonStream:
    """One stream of messages. See `transport.Stream` and `channel.User`.

    Args:
        route: of the RPC.
        limit: of a message, in bytes.
        on_closed: called once, when it is over for its caller.

    Attributes:
        channel: its socket; None before it has one, and once it is over.
    """

    def __init__(self, route: GatewayRoute, limit: int, on_closed: Callable[["JsonStream"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._route = route
        self._limit = limit
        self._most = limit * JSON_FACTOR + JSON_SLACK
        self._on_closed = on_closed
        self._texts: deque[str | bytes] = deque()
        self._unread = 0
        self._taken_at_once = 0  # messages received without a turn of the loop between
        self._failure: AttemptFailure | None = None  # of receiving, behind the texts
        self._has_ended = False  # well, behind the texts
        self._is_half_closed = False
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self.channel: Channel | None = None

    # See `transport.Stream`.

    async def send(self, payload: bytes) -> None:
        if self._is_over or self._is_half_closed:
            raise self._refusal()
        self.write(self._route.to_json(payload))
        try:
            while not self._is_over and self.channel is not None and not self.channel.is_flushed:
                self._writable = self._loop.create_future()
                await self._writable
            await asyncio.sleep(0)  # a sender that never stops must not hold up the loop
        except BaseException:
            self.cancel()  # half a message cannot be taken back
            raise
        if self._is_over and not self._has_ended and not self._texts:
            raise self._refusal()

    async def receive(self) -> bytes | None:
        self._taken_at_once += 1
        if self._taken_at_once >= _MOST_TAKEN_AT_ONCE:
            self._taken_at_once = 0
            await asyncio.sleep(0)
        while not self._texts:
            if self._has_ended:
                self._close()
                return None
            if self._failure is not None:
                self._close()
                raise self._failure
            self._waiter = self._loop.create_future()
            self._taken_at_once = 0
            try:
                await self._waiter
            finally:
                self._waiter = None
        text = self._texts.popleft()
        self._unread -= len(text) + _OVERHEAD
        if self.channel is not None and self._unread < _MOST_UNREAD // 2:
            self.channel.let_read(True)
        try:
            message = streamed(text, self._route.to_wire)
            failure = check_prefix(0, len(message), self._limit)
            if failure is not None:
                failure.beginning = message[:BEGINNING]
                raise failure
        except AttemptFailure as failure:
            self._texts.clear()
            self._failure, self._has_ended = failure, False
            self._close()
            raise
        return message

    async def half_close(self) -> None:
        self._is_half_closed = True

    def cancel(self) -> None:
        self._texts.clear()
        self.fail(AttemptFailure(StatusCode.CANCELLED, "the stream was cancelled", Delivery.UNKNOWN))
        self._close()

    # For the connection, and for what is made from this.

    @property
    def _is_over(self) -> bool:
        """Whether the stream has ended; buffered messages can still be read."""
        return self._failure is not None or self._has_ended

    @property
    def is_paused(self) -> bool:
        """Whether reading pauses, since too many messages are buffered."""
        return self._unread >= _MOST_UNREAD

    def write(self, text: bytes) -> None:
        """Send the JSON of one message."""
        raise NotImplementedError

    def on_data(self, data: bytes) -> None:
        raise NotImplementedError

    def on_writable(self) -> None:
        wake(self._writable)

    def on_lost(self, error: BaseException) -> None:
        self.channel = None
        self.fail(lost(error, Delivery.UNKNOWN))

    def add(self, text: str | bytes) -> None:
        """The JSON of a message has come."""
        self._texts.append(text)
        self._unread += len(text) + _OVERHEAD
        if self.is_paused and self.channel is not None:
            self.channel.let_read(False)
        wake(self._waiter)

    def end(self) -> None:
        """Note that the server has ended the stream without an error."""
        if not self._is_over:
            self._has_ended = True
            self._let_go()

    def fail(self, failure: AttemptFailure) -> None:
        """End the stream with a failure. Safe to repeat."""
        if not self._is_over:
            self._failure = failure
            self._let_go()

    def _let_go(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.user = None
            self.farewell(channel)
            channel.abort(None)
        wake(self._waiter)
        wake(self._writable)
        self._on_over()

    def farewell(self, channel: Channel) -> None:
        """Say a last word on the socket, which is then closed at once."""

    def _on_over(self) -> None:
        """Stop timers."""

    def _refusal(self) -> AttemptFailure:
        """The reason why nothing more can be sent."""
        if self._failure is None:
            return AttemptFailure(StatusCode.CANCELLED, "the stream takes no more", Delivery.UNKNOWN)
        # A status that has come and waits behind other messages is the better reason.
        if self._texts and self._failure.delivery is not Delivery.ANSWERED:
            try:
                streamed(self._texts[-1], self._route.to_wire)
            except AttemptFailure as failure:
                return failure
        return self._failure

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_closed(self)
