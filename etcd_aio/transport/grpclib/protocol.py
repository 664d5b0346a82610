"""The grpclib engine's protocol: grpclib's own classes, with workarounds for their problems.

The problems, and what is done about them:
  - grpclib ends a stream by cancelling the task that waits on it and swallowing that cancellation, which leaves the
    task's cancel count stale. No Wrapper is ever used; a call is notified by `on_failed` and `on_goaway` instead.
  - grpclib's keepalive stays off; `Liveness` pings when the peer is quiet.
  - A dead peer is aborted; grpclib closes, which under TLS or with a full write buffer waits.
  - Reset and GOAWAY reasons are texts in grpclib; here they keep their codes and stream numbers.
  - h2 refuses to go on after GOAWAY; its table of transitions is corrected, so that what is under way may finish.
  - An event that grpclib does not know makes it raise inside the protocol; here it is ignored.
  - h2 does not limit useless frames; `FrameLimits` does.
  - grpclib takes an empty DATA frame for the end of the stream, waits for trailers that a stream ended without, and
    goes on sending to a peer that has answered already.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from grpclib.client import Handler
from grpclib.config import Configuration
from grpclib.protocol import Connection as _LibraryConnection
from grpclib.protocol import H2Protocol
from grpclib.protocol import Stream as _LibraryStream
from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2ConnectionStateMachine
from h2.events import ConnectionTerminated, DataReceived, Event, RemoteSettingsChanged, StreamReset

from etcd_aio.errors import AttemptFailure, ConnectionLostError, printable
from etcd_aio.http2 import error_name
from etcd_aio.transport.grpclib.limits import FrameLimits
from etcd_aio.transport.handshake import Handshake, HandshakingProtocol
from etcd_aio.transport.interface import TransportOptions
from etcd_aio.transport.liveness import Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from etcd_aio.transport.response import judge_reset

_CONNECTION_WINDOW: Final = 2**31 - 1  # an unread stream must never hold up a call beside it
_STREAM_WINDOW: Final = 4 * 2**20
_MAX_DEBUG_DATA: Final = 256  # of a GOAWAY; no more of the server's bytes enters an exception
_H2_CONFIG: Final = H2Configuration(
    client_side=True,
    header_encoding="latin-1",  # decodes whatever comes; one bad byte must not end the connection
    # grpclib's own choice: it sends lower-case ASCII only, and h2 would check every header of every call.
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)


class _StateMachine(H2ConnectionStateMachine):
    """h2's, except that GOAWAY only announces an end: streams up to its number go on (RFC 9113, 6.8)."""

    _transitions = H2ConnectionStateMachine._transitions | {
        (state, ConnectionInputs.RECV_GOAWAY): (None, state)
        for state in (ConnectionState.IDLE, ConnectionState.CLIENT_OPEN)
    }


class _Processors(dict[type[Event], Callable[..., None]]):
    """The handlers of h2's events; events without one are ignored."""

    def __missing__(self, key: type[Event]) -> Callable[..., None]:
        return lambda event: None


class GrpclibStream(_LibraryStream):
    """A grpclib stream that reports its failure instead of cancelling a task.

    Args:
        connection: of grpclib.
        on_failed: called with the failure of the stream.

    Attributes:
        on_failed: see above.
        unsent: bytes of `send_message` that are not written yet.
    """

    def __init__(self, connection: _LibraryConnection, on_failed: Callable[[AttemptFailure], None]) -> None:
        # grpclib offers no public way to give a connection another class of streams.
        super().__init__(connection, connection._connection, connection._transport)
        self.on_failed = on_failed
        self.unsent: memoryview | bytes = b""

    @property
    def is_answered(self) -> bool:
        """Whether the response is complete: whatever happens after that does not change it."""
        return self.trailers is not None

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer."""
        return self.headers is not None

    async def send_message(self, data: bytes, *, end_stream: bool) -> bool:
        """Send `data` as far as the peer takes it; False if the stream or the connection ended before that."""
        http2, stream_id = self._h2_connection, cast("int", self.id)
        rest = self.unsent = memoryview(data)
        # The transport knows of the connection's end a turn of the loop before the protocol.
        while not (self.is_answered or self.connection.is_closing()):
            if not self.connection.write_ready.is_set():
                await self.connection.write_ready.wait()
                continue
            size = min(http2.local_flow_control_window(stream_id), http2.max_outbound_frame_size, len(rest))
            if size <= 0 < len(rest):  # a change of settings can make a window negative (RFC 9113, 6.9.2)
                self.window_updated.clear()
                await self.window_updated.wait()
                continue
            is_last = size == len(rest)
            http2.send_data(stream_id, bytes(rest[:size]), end_stream=end_stream and is_last)
            self.connection.flush()
            rest = self.unsent = rest[size:]
            if is_last:
                return True
        return False

    def __ended__(self) -> None:
        if self.headers is None:
            self.headers = []
            self.headers_received.set()
        if self.trailers is None:
            self.trailers = []
            self.trailers_received.set()
        self.window_updated.set()  # wake a send that still waits
        super().__ended__()


class GrpclibProtocol(H2Protocol, HandshakingProtocol):
    """One HTTP/2 connection of grpclib, with a check of the peer's liveness and the reason of its end.

    Args:
        options: limits and times.
        on_goaway: called with the reason and the id of the last stream that the peer will process.
        on_lost: called once with the reason; None after `abort(None)`.
        slower: factor for the time between pings.

    Attributes:
        closed: resolves when the transport is closed.
        is_lost: whether the connection is over.
        liveness: of the peer.
        liveness_timer: runs its checks.
        is_going_away: whether the peer takes no new streams.
    """

    def __init__(
        self,
        options: TransportOptions,
        on_goaway: Callable[[str, int], None],
        on_lost: Callable[[BaseException | None], None],
        slower: int = 1,
    ) -> None:
        config = Configuration(
            http2_connection_window_size=_CONNECTION_WINDOW, http2_stream_window_size=_STREAM_WINDOW
        ).__for_client__()
        super().__init__(Handler(), config, _H2_CONFIG)
        self._loop = asyncio.get_running_loop()
        self.handshake = Handshake()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._report_goaway = on_goaway
        self._report_lost = on_lost
        self.is_lost = False
        self.is_going_away = False
        self.liveness = Liveness(self._loop.time(), options, slower)
        self.liveness_timer = LivenessTimer(self.liveness, self._ping, self.abort)
        self._transport: asyncio.Transport | None = None
        self._limits: FrameLimits | None = None

    @property
    def most_streams(self) -> int:
        """How many streams the peer allows at a time."""
        return self.connection._connection.remote_settings.max_concurrent_streams

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        super().connection_made(transport)
        http2 = self.connection._connection
        state = http2.state_machine.state
        self._limits = FrameLimits(http2, self._loop.time)
        http2.state_machine = _StateMachine()
        http2.state_machine.state = state
        http2.clear_outbound_data_buffer = lambda: None  # type: ignore[method-assign]  # it is cleared at GOAWAY only
        handlers = _Processors(self.processor.processors)  # type: ignore[arg-type]
        self._settings_changed = handlers[RemoteSettingsChanged]
        self._data_came = handlers[DataReceived]
        handlers[RemoteSettingsChanged] = self._on_settings
        handlers[DataReceived] = self._on_data
        handlers[StreamReset] = self._on_reset
        handlers[ConnectionTerminated] = self._on_goaway
        self.processor.processors = handlers  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.is_lost:
            return
        self.liveness.on_received(self._loop.time())
        if not self.handshake.is_over:
            self.handshake.on_bytes(data)
        try:
            events = self.connection.feed(data)
        except Exception as error:  # h2 lets a few of hpack's and Python's own through
            self.connection.flush()  # h2's GOAWAY with the reason
            self.abort(ConnectionLostError(f"the peer broke HTTP/2: {type(error).__name__}: {error}"))
            return
        for event in events:
            self.processor.process(event)
        self.connection.flush()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.connection.flush()  # resets that were not written while the buffer was full

    def connection_lost(self, exc: BaseException | None) -> None:
        self._over(exc or ConnectionLostError("the peer closed the connection"))
        super().connection_lost(exc)
        if not self.closed.done():
            self.closed.set_result(None)

    # Called by the connection.

    def abort(self, error: BaseException | None) -> None:
        """End the connection at once, unlike close(); its owner gets `error`."""
        if not self.is_lost:
            self._over(error)
            if self._transport is not None:
                self._transport.abort()

    @property
    def takes_calls(self) -> bool:
        return not self.is_lost and not self.is_going_away

    def gave_up(self, stream_id: int) -> None:
        """This side has reset a stream, for which the peer may still send data."""
        if self._limits is not None:
            self._limits.gave_up(stream_id, _STREAM_WINDOW)

    # Inside.

    def _over(self, error: BaseException | None) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        # Received bytes may still be read, and grpclib would acknowledge them on a transport that it has deleted.
        self.connection.flush = lambda: None  # type: ignore[method-assign]
        self.liveness_timer.close()
        if not self.handshake.is_over:
            self.handshake.fail(error)
        elif self.is_established:
            self._report_lost(error)

    def _ping(self) -> None:
        self.connection._connection.ping(b"liveness")  # grpclib has no public method for this
        self.connection.flush()

    def _on_settings(self, event: RemoteSettingsChanged) -> None:
        self._settings_changed(event)
        self.connection.stream_close_waiter.set()  # the peer may allow more streams now
        self.handshake.succeed()

    def _on_data(self, event: DataReceived) -> None:
        if event.flow_controlled_length:
            self._data_came(event)

    def _on_reset(self, event: StreamReset) -> None:
        stream = self.processor.streams.get(event.stream_id)
        if not isinstance(stream, GrpclibStream) or stream.is_answered:
            return
        code, is_begun = int(event.error_code or 0), stream.has_begun
        stream.on_failed(judge_reset(code, has_begun=is_begun, by_peer=bool(event.remote_reset)))

    def _on_goaway(self, event: ConnectionTerminated) -> None:
        self.is_going_away = True
        text = printable((event.additional_data or b"")[:_MAX_DEBUG_DATA].decode("utf-8", "replace"))
        reason = f"the server sent GOAWAY: {error_name(int(event.error_code or 0))}" + (f" ({text})" if text else "")
        if self.is_established:
            self._report_goaway(reason, event.last_stream_id or 0)
