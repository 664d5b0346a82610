"""One request over HTTP/1 with one whole answer: a unary call, or a document."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from etcd_aio.base.deadline import NEVER
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import AttemptFailure, Delivery
from etcd_aio.transport.deadlines import DeadlineTimer
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.http1 import Http1Error, ResponseParser
from etcd_aio.transport.gateway.replies import too_large
from etcd_aio.transport.response import broken, expired, given_up, lost

JSON_FACTOR: Final = 8
"""How much longer than its message a JSON may be: base64 takes a third more, and a key-value of few bytes has the names
of its fields."""
JSON_SLACK: Final = 65_536


@dataclass(frozen=True, slots=True, repr=False)
class HttpAnswer:
    """A whole HTTP response.

    Attributes:
        status: the HTTP status.
        headers: by lower-case name.
        body: the body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class CallOwner(Protocol):
    """The connection, as its calls see it."""

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """A call is done with its socket, which may be used again if it `keeps_alive`."""


class HttpCall:
    """One request. See `channel.User`.

    Args:
        owner: the connection.
        request: its bytes.
        limit: of the reply, in bytes of its message.
        deadline: when it is over, or its answer has begun.
        whole_by: when it is over if its answer has begun.
        may_move: it may end without an answer, since it can be made elsewhere.

    Attributes:
        future: gets the answer, or `AttemptFailure`.
        channel: its socket; None before it has one, and once it is over.
    """

    __slots__ = (
        "_body", "_deadline", "_limit", "_loop", "_most", "_owner", "_parser", "_request", "_size", "_timer",
        "_whole_by", "channel", "future", "may_move",
    )  # fmt: skip

    def __init__(
        self,
        owner: CallOwner,
        request: bytes,
        *,
        limit: int,
        deadline: float,
        whole_by: float = NEVER,
        may_move: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = owner
        self._request = request
        self._limit = limit
        self._most = limit * JSON_FACTOR + JSON_SLACK
        self._deadline = deadline
        self._whole_by = whole_by
        self._body: list[bytes] = []
        self._size = 0
        self._parser = ResponseParser(self._on_body)
        self.may_move = may_move
        self.channel: Channel | None = None
        self.future: asyncio.Future[HttpAnswer] = self._loop.create_future()
        self._timer: DeadlineTimer | None = None
        if deadline != NEVER:
            self._timer = DeadlineTimer(self._loop, self._expire)
            self._timer.set(deadline)

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer."""
        return self._parser.has_begun

    @property
    def unsent(self) -> range:
        """The number of bytes of the request that have not left this machine; see `uploads.Upload`."""
        return range(len(self._request) if self.channel is None else self.channel.unflushed)

    @property
    def delivery(self) -> Delivery:
        """How far the request got. Its JSON ends with its last byte, so that a server cannot run less of it."""
        is_sent = self.has_begun or (self.channel is not None and self.channel.is_flushed)
        return Delivery.UNKNOWN if is_sent else Delivery.UNSENT

    def begin(self, channel: Channel) -> None:
        """Send the request over this socket."""
        self.channel = channel
        channel.user = self
        channel.was_used = True
        channel.write(self._request)

    def fail(self, failure: AttemptFailure) -> None:
        """End it without an answer, and its socket with it, since an answer may still come there."""
        if not self.future.done():
            self.future.set_exception(failure)
            self.future.exception()  # no warning if nothing waits for it any more
        self.close()

    def close(self) -> None:
        """End whatever is left of it. Safe to repeat."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.user = None
            channel.abort(None)

    # Called by the channel.

    def on_data(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except Http1Error as error:
            self.fail(broken(str(error)))
            return
        if self._size > self._most:
            self.fail(too_large(self._limit))
        elif self._parser.is_complete:
            self._answered()

    def on_writable(self) -> None:
        pass

    def on_lost(self, error: BaseException) -> None:
        delivery = self.delivery
        self.channel = None
        if self._parser.feed_end():
            self._answered()
        else:
            self.fail(lost(error, delivery))

    def _on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._body.append(piece)

    def _answered(self) -> None:
        parser = self._parser
        if not self.future.done():  # before its owner hears of it
            self.future.set_result(HttpAnswer(parser.status, parser.headers, b"".join(self._body)))
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.user = None
            if "keep-alive" in parser.headers:
                channel.longest_idle = min(channel.longest_idle, _idle_seconds(parser.headers["keep-alive"]))
            self._owner.release(channel, keeps_alive=parser.keeps_alive and channel.is_flushed)
        self.close()

    def give_up(self, reason: str) -> None:
        """End it if it may move and has no answer yet."""
        if self.may_move and not self.has_begun:
            self.fail(given_up(reason, self.delivery))

    def _expire(self) -> None:
        if self.has_begun and self._loop.time() < self._whole_by:
            if self._whole_by != NEVER and self._timer is not None:
                self._timer.set(self._whole_by)
        else:
            self.fail(expired(self.delivery))


def _idle_seconds(text: str) -> float:
    """The seconds in a `keep-alive` header, with one less for the way; infinity if it has none."""
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "timeout" and value.isascii() and value.isdigit():
            return max(int(value[:9]) - 1.0, 0.0)
    return NEVER
