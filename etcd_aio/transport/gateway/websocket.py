"""A bidirectional stream over a WebSocket: each message is a text of one JSON object. Watches and lease renewals.

Over HTTP/1 a request ends before its answer begins, so nothing else is bidirectional here. What a WebSocket of etcd's
gateway cannot say: metadata besides the token, a half-closed stream, and the end of a stream with OK. A status comes as
the last text, and then the socket just ends.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig, WebSocketException
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, StatusCode
from etcd_aio.http2 import FloodBudget
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.http1 import MOST_HEAD
from etcd_aio.transport.gateway.json_mapping import GatewayRoute
from etcd_aio.transport.gateway.replies import refusal, server_of, too_large
from etcd_aio.transport.gateway.stream import JsonStream
from etcd_aio.transport.interface import Target, TransportOptions
from etcd_aio.transport.liveness import Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from etcd_aio.transport.response import broken, lost

if TYPE_CHECKING:
    import asyncio

# The library would log every header and frame, with tokens and values in them.
_SILENT: Final = logging.Logger("etcd_aio.transport.websocket", logging.CRITICAL + 1)
_SILENT.disabled = True

_MOST_UNFLUSHED: Final = 8 * 2**20  # bytes; more than the largest request as JSON

# Each frame costs the library's parser some microseconds, however little is in it. So a frame costs a token of the
# flood budget, and what it carries earns some: etcd's shortest message has more than a hundred bytes.
_BYTES_FOR_TOKEN: Final = 32
_PIECE: Final = 4096  # bytes that are parsed before the budget is asked again
_FLOOD: Final = "a flood of useless WebSocket frames"

_NO_WEBSOCKETS: Final = (
    "a proxy on the way blocks WebSockets, which watches and lease renewals need over HTTP/1: "
    "it has to forward the Upgrade and Connection headers"
)
_NO_GET: Final = frozenset({405, 501})  # what the gateway says, by release, of a WebSocket that lost its Upgrade header

_BEARER: Final = Subprotocol("Bearer")


class WebSocketStream(JsonStream):
    """See `JsonStream`. After `begin`, `opened` resolves when the server has agreed, or fails.

    Args:
        route: of the RPC.
        target: the server.
        options: limits and times.
        token: that the requests carry; empty for none.
        on_closed: called once, when it is over for its caller.
        on_quiet: called with it when nothing has come for so long that the server is pinged.

    Attributes:
        opened: see above.
    """

    def __init__(
        self,
        route: GatewayRoute,
        target: Target,
        options: TransportOptions,
        token: str,
        on_closed: Callable[[JsonStream], None],
        on_quiet: Callable[[JsonStream], None] = lambda stream: None,
    ) -> None:
        super().__init__(route, options.max_receive_bytes, on_closed)
        self._on_quiet = on_quiet
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self._target = target
        self._user_agent = options.user_agent
        self._websocket = ClientProtocol(
            WebSocketURI(secure=target.tls is not None, host="etcd", port=80, path=route.path, query=""),
            subprotocols=[_BEARER, Subprotocol(token)] if token else None,
            max_size=self._most,
            logger=_SILENT,
        )
        self._text = bytearray()  # of an incomplete message
        self._budget = FloodBudget(self._loop.time())
        self._answer_size = 0  # bytes of the answer to the handshake
        # A socket of its own may die alone, so each has its own check.
        self._liveness = Liveness(self._loop.time(), options)
        self._timer = LivenessTimer(self._liveness, self._ping, self._dead)

    def begin(self, channel: Channel) -> None:
        """Ask for the upgrade on this socket."""
        self.channel = channel
        channel.user = self
        request = self._websocket.connect()
        del request.headers["Host"]
        request.headers["Host"] = self._target.authority
        request.headers["User-Agent"] = self._user_agent
        self._websocket.send_request(request)
        self._flush()
        self._liveness.stream_opened(self._loop.time())
        self._timer.watch()

    def write(self, text: bytes) -> None:
        self._websocket.send_text(text)
        self._flush()

    def on_data(self, data: bytes) -> None:
        now = self._loop.time()
        self._liveness.on_received(now)
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            if not self.opened.done():
                self._answer_size += len(piece)
            self._websocket.receive_data(piece)
            self._take_events(now)
            if not self.opened.done() and self._answer_size > MOST_HEAD:
                self.fail(_not_passed("the answer to the WebSocket handshake is too long"))
            if self._is_over:
                break
        if not self._is_over:
            self._flush()
        if self.channel is not None and self.channel.unflushed > _MOST_UNFLUSHED:
            self.fail(broken("the peer sends pings and does not read the answers"))

    def on_lost(self, error: BaseException) -> None:
        self.channel = None
        if not self._is_over:
            self._websocket.receive_eof()  # an error's body may end here
            self._take_events(self._loop.time())
        super().on_lost(error)

    def _take_events(self, now: float) -> None:
        for event in self._websocket.events_received():
            if isinstance(event, Response):
                self._on_response(event)
            elif isinstance(event, Frame):
                self._on_frame(event, now)
            if self._is_over:
                return
        error = self._websocket.parser_exc
        refused = self._websocket.handshake_exc
        if refused is not None and not isinstance(refused.__cause__, EOFError):  # a response that cannot be read
            self.fail(_not_passed("the answer to the WebSocket handshake is not HTTP/1.1"))
        if isinstance(error, PayloadTooBig):
            self.fail(too_large(self._limit))
        elif isinstance(error, WebSocketException):
            self.fail(broken("the peer broke the WebSocket protocol"))

    def _on_response(self, response: Response) -> None:
        error = self._websocket.handshake_exc
        if error is None:
            if not self.opened.done():
                self.opened.set_result(None)
        elif response.status_code == 101:
            self.fail(broken("the answer to the WebSocket handshake is invalid"))
        else:
            headers = {name.lower(): value for name, value in response.headers.raw_items()}
            self.fail(_refused(response.status_code, headers, bytes(response.body or b"")))

    def _on_frame(self, frame: Frame, now: float) -> None:
        is_data = frame.opcode is Opcode.TEXT or frame.opcode is Opcode.BINARY or frame.opcode is Opcode.CONT
        if is_data:
            self._budget.earn(len(frame.data) / _BYTES_FOR_TOKEN)
        if not self._budget.spend(now):
            self.fail(broken(_FLOOD))
        elif is_data:
            self._text += frame.data
            if frame.fin:
                text, self._text = bytes(self._text), bytearray()
                self.add(text)
        elif frame.opcode is Opcode.CLOSE:
            received = self._websocket.close_rcvd  # `close_code` waits for the end of the socket
            code = None if received is None else received.code
            if code == CloseCode.NORMAL_CLOSURE:
                self.end()
            else:
                reason = f"the server closed the WebSocket: {code}"
                self.fail(lost(ConnectionLostError(reason), Delivery.UNKNOWN))

    def farewell(self, channel: Channel) -> None:
        if self._websocket.state.name == "OPEN":
            self._websocket.send_close(CloseCode.NORMAL_CLOSURE)
        channel.write(b"".join(self._websocket.data_to_send()))

    def _on_over(self) -> None:
        self._timer.close()
        if not self.opened.done():
            self.opened.set_exception(self._failure or broken("the WebSocket ended at once"))
            self.opened.exception()

    def _flush(self) -> None:
        if self.channel is not None:
            self.channel.write(b"".join(self._websocket.data_to_send()))

    def _ping(self) -> None:
        if self.is_paused:  # whatever the peer answers is not read
            self._liveness.on_received(self._loop.time())
        elif self._websocket.state.name == "OPEN":
            self._websocket.send_ping(b"")
            self._flush()
            self._on_quiet(self)

    def _dead(self, error: ConnectionLostError) -> None:
        if self.is_paused:
            self._liveness.on_received(self._loop.time())
            self._timer.watch()
        else:
            self.fail(lost(error, Delivery.UNKNOWN))


def _refused(status: int, headers: Mapping[str, str], body: bytes) -> AttemptFailure:
    """The failure that an answer means which is not the agreement to a WebSocket."""
    shown = f"HTTP status {status}{server_of(headers)}"
    if status in _NO_GET:
        return AttemptFailure(StatusCode.UNIMPLEMENTED, f"{shown}: {_NO_WEBSOCKETS}", Delivery.ANSWERED)
    failure = refusal(status, headers, body)
    return _not_passed(shown) if status == 200 or failure.code is StatusCode.UNKNOWN else failure


def _not_passed(text: str) -> AttemptFailure:
    return AttemptFailure(StatusCode.UNAVAILABLE, f"{text}: {_NO_WEBSOCKETS}", Delivery.UNKNOWN)
