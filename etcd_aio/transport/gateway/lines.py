"""A stream of replies to one request: a response over HTTP/1 of which each line is a JSON object. Snapshots."""

from collections.abc import Callable

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.http1 import Http1Error, ResponseParser
from etcd_aio.transport.gateway.json_mapping import GatewayRoute
from etcd_aio.transport.gateway.replies import refusal, too_large
from etcd_aio.transport.gateway.stream import JsonStream
from etcd_aio.transport.response import broken


class LineStream(JsonStream):
    """See `JsonStream`. The request is sent with its only message.

    Args:
        route: of the RPC.
        limit: of a message, in bytes.
        request: makes the HTTP request of a message's JSON.
        on_closed: called once, when it is over for its caller.
    """

    def __init__(
        self,
        route: GatewayRoute,
        limit: int,
        request: Callable[[bytes], bytes],
        on_closed: Callable[[JsonStream], None],
    ) -> None:
        super().__init__(route, limit, on_closed)
        self._request = request
        self._parser = ResponseParser(self._on_body)
        self._rest: list[bytes] = []  # of an incomplete line
        self._size = 0
        self._has_sent = False

    def begin(self, channel: Channel) -> None:
        """Use this socket."""
        self.channel = channel
        channel.user = self

    def write(self, text: bytes) -> None:
        if self._has_sent:
            raise AttemptFailure(StatusCode.INTERNAL, "this stream takes one request", Delivery.UNSENT)
        self._has_sent = True
        if self.channel is not None:
            self.channel.write(self._request(text))

    def on_data(self, data: bytes) -> None:
        try:
            self._parser.feed(data)
        except Http1Error as error:
            self.fail(broken(str(error)))
            return
        if self._size > self._most:
            self.fail(too_large(self._limit))
        elif self._parser.is_complete:
            self._finish()

    def on_lost(self, error: BaseException) -> None:
        self.channel = None
        if self._parser.feed_end():
            self._finish()
        super().on_lost(error)

    def _on_body(self, piece: bytes) -> None:
        if self._parser.status != 200:
            self._rest.append(piece)
            self._size += len(piece)
            return
        *lines, rest = piece.split(b"\n")
        for line in lines:
            text = b"".join((*self._rest, line)) if self._rest else line
            self._rest.clear()
            self._size = 0
            if text:
                self.add(text)
        if rest:
            self._rest.append(rest)
            self._size += len(rest)

    def _finish(self) -> None:
        rest = b"".join(self._rest)
        if self._parser.status != 200:
            self.fail(refusal(self._parser.status, self._parser.headers, rest))
            return
        if rest:  # some releases end an error without a newline
            self.add(rest)
        self.end()
