"""The native engine: the asyncio shell around `http2/`.

A unary call is one stream object and one future: no task, no scope, no queue, and the parser calls the stream directly.
One timer serves all deadlines of a connection (`deadlines.py`).

Calls of a loop turn share few writes. A write costs as much as a call, but with a single write per turn the server
would be idle while the client computes. So the first call on an idle connection is written at once, then every
`_FLUSH_AT` calls together, and the rest at the end of the turn.

Whatever ends the connection ends in `_over`, once.
"""

import asyncio
from typing import Final, TypeAlias, cast

from etcd_aio.base.closing import Unwinding
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, StatusCode
from etcd_aio.http2 import Http2Connection, LocalProtocolError, RemoteProtocolError
from etcd_aio.transport.deadlines import Deadlines, DeadlineTimer
from etcd_aio.transport.document import http_get
from etcd_aio.transport.framing import PREFIX, frame_message
from etcd_aio.transport.handshake import Handshake, HandshakingProtocol, connect
from etcd_aio.transport.interface import Collect, Collector, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.liveness import Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from etcd_aio.transport.names import Names
from etcd_aio.transport.native.accelerated import ACCELERATOR
from etcd_aio.transport.native.calls import StreamCall, UnaryCall
from etcd_aio.transport.ping_pace import PingPace
from etcd_aio.transport.quiet_streams import check_limit
from etcd_aio.transport.request_headers import SECRETS, CallHeaders
from etcd_aio.transport.response import closed, expired, given_up, lost
from etcd_aio.transport.uploads import LARGE

AnyCall: TypeAlias = UnaryCall | StreamCall

_NEVER: Final = float("inf")
_MAX_TAKEN_AT_ONCE: Final = 100  # messages; a backlog must not block the loop
_READ: Final = 2**16  # bytes of one read; each connection has a buffer of this size
_LARGE_READ: Final = 2**18  # the same while large replies arrive: with TLS, what asyncio takes from the socket at once
_FLUSH_AT: Final = 8  # calls; at 64 in flight a tenth faster than one write a turn, and 4 or 16 are no better


class NativeEngine:
    """Opens connections with the package `http2`."""

    def __init__(self, options: TransportOptions, names: Names | None = None) -> None:
        self._options = options
        self._names = names or Names()
        self._pace = PingPace(options.client)

    async def connect(self, target: Target, owner: ConnectionOwner) -> "NativeConnection":
        options, pace = self._options, self._pace
        self._names.turn(target.host)
        return await connect(target, self._names, options, lambda: NativeConnection(target, options, owner, pace))

    async def http_get(self, target: Target, path: str) -> bytes:
        return await http_get(target, path, self._names)


class NativeConnection(HandshakingProtocol, asyncio.BufferedProtocol):
    """One connection of the native engine. See `interface.Connection`.

    Args:
        target: the server.
        options: limits and times.
        owner: is notified of the connection's end.
        pace: the engine's ping intervals.

    Attributes:
        engine: the name of the engine.
    """

    engine: Final = "native"

    def __init__(self, target: Target, options: TransportOptions, owner: ConnectionOwner, pace: PingPace) -> None:
        self._loop = asyncio.get_running_loop()
        self.handshake = Handshake()
        self._received = memoryview(bytearray(_READ))
        self._owner = owner
        self._target = target
        self._pace = pace
        self._silence_time = options.silence_time
        self._limit = options.max_receive_bytes
        now = self._loop.time()
        self._http2: Http2Connection[AnyCall] = Http2Connection(
            now,
            on_settings=self.handshake.succeed,
            on_goaway=self._on_goaway,
            on_over=self._on_protocol_error,
            secrets=SECRETS,
            accelerator=ACCELERATOR,
        )
        self._outgoing = self._http2.outgoing
        self._liveness = Liveness(now, options, pace.factor(target))
        self._liveness_timer = LivenessTimer(self._liveness, self._ping, self.abort)
        self._headers = CallHeaders(target, options.user_agent)
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_flush_due = False
        self._unflushed = 0  # calls since the last flush
        self._calls = 0  # unary calls and streams that are not over
        self._streams = 0  # that are not over
        self._is_draining = False
        self._is_lost = False
        self._cause: ConnectionLostError | None = None  # the text of the peer's GOAWAY
        self._deadlines: Deadlines[AnyCall] = Deadlines()
        self._deadline_timer = DeadlineTimer(self._loop, self._check_deadlines)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected, and TLS is up."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        if self._is_lost:
            self._transport.abort()
            return
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to: one buffer for all reads, since fresh memory for each costs page faults."""
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes were read into the buffer. If they fill it, the next one is larger until the large replies are over.

        That streams are open says nothing: quiet ones always are.
        """
        received = self._received
        self.data_received(received[:nbytes])
        if len(received) == _READ:
            if nbytes == _READ and self._http2.is_amid_frame:
                self._received = memoryview(bytearray(_LARGE_READ))
        elif not self._http2.is_amid_frame and not any(call.is_partial for call in self._outgoing.streams.values()):
            self._received = memoryview(bytearray(_READ))

    def data_received(self, data: bytes | memoryview) -> None:
        """Bytes arrived; the calls that they complete are resolved before this returns."""
        if self._is_lost:
            return  # it arrived after the end
        now = self._loop.time()
        self._liveness.on_received(now)
        if not self.handshake.is_over:
            self.handshake.on_bytes(bytes(data))
        self._http2.receive_data(data, now)
        if self._outgoing.has_data_to_send:
            self._flush()

    def eof_received(self) -> None:
        """The peer sends no more, so no call can be answered any more."""
        self.abort(ConnectionLostError("the peer closed the connection"))

    def pause_writing(self) -> None:
        """The socket's buffer is full: further bytes wait in `http2`."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The socket takes bytes again."""
        self._is_paused = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._over(exc or ConnectionLostError("the peer closed the connection"))
        self._transport = None  # with TLS a reference cycle of 270 KiB, which should not wait for the garbage collector

    # See interface.Connection.

    @property
    def takes_calls(self) -> bool:
        """Whether a new call can be made."""
        if self._is_lost or self._is_draining or self._transport is None:
            return False
        # A socket that failed is closing for a turn of the loop before the protocol is notified.
        return self._outgoing.takes_streams and not self._transport.is_closing()

    async def unary(
        self,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        may_move: bool = False,
        whole_by: float | None = None,
        is_heavy: bool = False,
    ) -> bytes:
        loop = self._loop
        now = loop.time()
        if deadline <= now:
            raise expired(Delivery.UNSENT)
        headers = self._headers
        last = deadline if whole_by is None else whole_by
        timeout = headers.timeout(last - now) if last != _NEVER else None
        call = UnaryCall(
            headers.of(path, metadata), timeout, loop.create_future(), deadline, self._limit, collect, may_move, last
        )
        self._open(call, PREFIX.pack(0, len(payload)) + payload, end=True)
        liveness = self._liveness
        liveness.call_started(now)
        is_large = len(payload) > LARGE
        if is_large:
            liveness.upload_began(call, len(payload), now)
        if is_heavy:
            liveness.heavy_began()
        if self._liveness_timer.due > now + self._silence_time:
            self._liveness_timer.watch()
        if deadline < self._deadlines.limit:
            self._watch_deadline(call)
        try:
            return await call.future
        except BaseException:  # also on cancellation: the stream must not outlive its caller
            self._close(call)
            raise
        finally:
            liveness.call_ended(call.has_headers)
            if is_heavy:
                liveness.heavy_ended()
            if is_large:
                liveness.upload_ended(call, loop.time(), is_answered=call.has_headers)
                self._liveness_timer.watch()
            del call  # a failure's traceback references this frame: avoid the cycle
            self._calls -= 1
            if self._is_draining:
                self._close_if_drained()

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> "NativeStream":
        now = self._loop.time()
        if deadline <= now:
            raise expired(Delivery.UNSENT)
        if is_quiet:
            check_limit(self._outgoing.most_streams)
        call = StreamCall(self._headers.of(path, metadata), self._limit, self._took, collect, is_quiet=is_quiet)
        call.deadline = deadline
        self._open(call, b"", end=False)
        self._streams += 1
        if not is_quiet:
            self._liveness.stream_opened(now)
            self._liveness_timer.watch()
        stream = NativeStream(self, call)
        if deadline < self._deadlines.limit:
            self._watch_deadline(call)
        try:
            await call.wait_until_opened()
            call.check()
        except BaseException:  # also on cancellation: nothing else would close the stream
            stream.cancel()
            raise
        call.deadline = _NEVER
        return stream

    def drain(self) -> None:
        self._is_draining = True
        self._close_if_drained()

    def give_up(self, reason: str) -> None:
        for call in self._outgoing.all_streams():
            if call.may_move and not call.has_headers:
                call.fail(given_up(reason, self._end(call)))

    def close(self) -> Unwinding:
        self.abort(None)
        return ()

    async def aclose(self) -> None:
        self.abort(None)

    def abort(self, error: BaseException | None) -> None:
        """End the connection at once; its owner gets `error`."""
        transport = self._transport
        self._over(error)
        if transport is not None:
            transport.abort()  # not close(), which would wait for a dead peer

    # For NativeStream.

    def send(self, call: StreamCall, payload: bytes, *, end: bool) -> None:
        """Send more bytes on a stream."""
        self._outgoing.send(call, payload, end=end)
        self._schedule_flush()

    def end_stream(self, call: StreamCall) -> None:
        """The owner has finished with a stream."""
        self._close(call)
        if not call.is_quiet:
            self._liveness.stream_closed()
        self._calls -= 1
        self._streams -= 1
        if self._is_draining:
            self._close_if_drained()

    # Inside: opening and closing.

    def _took(self, call: StreamCall, size: int) -> None:
        self._http2.consumed(call, size)
        if self._outgoing.has_data_to_send:
            self._schedule_flush()

    def _open(self, call: AnyCall, payload: bytes, *, end: bool) -> None:
        transport = self._transport
        if self._is_lost or self._is_draining or transport is None or transport.is_closing():
            raise closed()
        self._calls += 1  # first, since the stream with the last id starts the draining
        try:
            self._outgoing.open(call, payload, end=end)
        except LocalProtocolError:
            self._calls -= 1
            raise closed() from None
        self._unflushed += 1
        # A call that is alone does not wait for others. Streams beside it, such as watches, say nothing about that.
        if self._calls == self._streams + 1 or self._unflushed >= _FLUSH_AT:
            self._flush()
        else:
            self._schedule_flush()

    def _close(self, call: AnyCall) -> None:
        """Reset a call if it is still open."""
        if call.is_open and not self._is_lost:
            self._outgoing.reset(call)
            self._schedule_flush()

    def _end(self, call: AnyCall) -> Delivery:
        """Reset a call that the client ends. Returns its delivery, which cannot change any more.

        The reset must not wait for the call's task: a window that opens before would let the rest of the request out.
        """
        delivery = call.delivery()
        self._close(call)
        return delivery

    def _close_if_drained(self) -> None:
        if not self._calls:
            self.abort(self._cause)

    # Inside: writing.

    def _schedule_flush(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._is_flush_due = False
        self._flush()

    def _flush(self) -> None:
        transport = self._transport
        if self._is_paused or self._is_lost or transport is None or transport.is_closing():
            return
        self._unflushed = 0
        data = self._outgoing.data_to_send()
        if data:
            transport.write(data)

    # Inside: called by http2.

    def _on_goaway(self, reason: str) -> None:
        if self._cause is None:
            self._pace.went_away(self._target, reason)
            self._cause = ConnectionLostError(reason)
            self._is_draining = True
            if self.is_established:
                self._owner.on_draining(reason)
        # Unprocessed calls still unwind; the last of them closes the connection.
        self._close_if_drained()

    def _on_protocol_error(self, error: RemoteProtocolError) -> None:
        self._flush()  # the GOAWAY with the reason
        self._over(ConnectionLostError(f"the peer broke HTTP/2: {error}"))
        if self._transport is not None:
            self._loop.call_soon(self._transport.abort)  # uvloop writes at the end of a turn

    # Inside: time.

    def _ping(self) -> None:
        self._outgoing.ping(b"liveness")
        self._flush()

    def _watch_deadline(self, call: AnyCall) -> None:
        deadlines = self._deadlines
        earliest = deadlines.next
        deadlines.add(call)
        if deadlines.next < earliest:
            self._deadline_timer.set(deadlines.next)

    def _check_deadlines(self) -> None:
        if self._is_lost:
            return
        for call in self._deadlines.expired(self._loop.time(), self._outgoing.all_streams):
            if call.is_open and call.may_go_on(self._loop.time()):
                self._watch_deadline(call)
            elif call.is_open:
                call.fail(expired(self._end(call)))
        if self._deadlines.next != _NEVER:
            self._deadline_timer.set(self._deadlines.next)

    # The end.

    def _over(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._liveness_timer.close()
        self._deadline_timer.close()
        calls = self._http2.close()  # which breaks the reference cycle of the two
        if not self.handshake.is_over:
            self.handshake.fail(error)
            return
        for call in calls:
            call.fail(lost(error, call.delivery()))
        if self.is_established:
            self._owner.on_lost(error)


class NativeStream:
    """A stream of messages. See `interface.Stream`."""

    def __init__(self, connection: NativeConnection, call: StreamCall) -> None:
        self._connection = connection
        self._call = call
        self._is_closed = False
        self._taken_at_once = 0  # messages read without a turn of the loop between

    async def send(self, payload: bytes) -> None:
        await self._send(frame_message(payload), end=False)

    async def half_close(self) -> None:
        await self._send(b"", end=True)

    async def receive(self) -> bytes | Collector | None:
        call = self._call
        self._taken_at_once += 1
        if self._taken_at_once >= _MAX_TAKEN_AT_ONCE:
            self._taken_at_once = 0
            await asyncio.sleep(0)
        while True:
            message = call.take()
            if message is not None:
                return message
            try:
                if call.check():
                    self._close()
                    return None
            except AttemptFailure:
                self._close()
                raise
            self._taken_at_once = 0
            await call.wait_for_more()

    def cancel(self) -> None:
        self._call.fail(AttemptFailure(StatusCode.CANCELLED, "the stream was cancelled", Delivery.UNKNOWN))
        self._close()

    async def _send(self, data: bytes, *, end: bool) -> None:
        call = self._call
        if call.check() or call.end_after:
            raise AttemptFailure(StatusCode.CANCELLED, "the stream takes no more", Delivery.UNKNOWN)
        self._connection.send(call, data, end=end)
        if call.unsent:
            try:
                await call.wait_until_sent()
            except BaseException:
                self.cancel()  # half a message cannot be taken back
                raise
        call.check()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._connection.end_stream(self._call)
