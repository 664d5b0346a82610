"""The native engine: the asyncio shell around `http2/`.

Knows: asyncio's transports and timers. Never knows: endpoints, retries, etcd.

What makes it fast. A unary call is one stream object and one future: no task, no scope, no queue. The calls of a loop
turn leave in few writes: a write costs as much as a call, but a server that waits for the whole turn is idle while we
compute, and we while it does. So the first call on an idle connection leaves at once, then every `_FLUSH_AT` together,
the rest at the end of the turn. The parser calls the call itself. One timer watches all deadlines of a connection
(`deadlines.py`).

There is one teardown path, `_over`: whatever ends the connection ends there, once.
"""

import asyncio
from typing import Final, cast

from etcd_aio.closing import Unwinding
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import Http2Connection, LocalProtocolError, RemoteProtocolError
from etcd_aio.transport.deadline_timer import DeadlineTimer
from etcd_aio.transport.deadlines import Deadlines
from etcd_aio.transport.handshake import Handshake, HandshakingProtocol, connect
from etcd_aio.transport.interface import Collect, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.liveness import Action, Liveness
from etcd_aio.transport.names import Names
from etcd_aio.transport.native_calls import PREFIX, StreamCall, UnaryCall
from etcd_aio.transport.native_headers import SECRETS, CallHeaders
from etcd_aio.transport.ping_pace import PingPace
from etcd_aio.transport.uploads import LARGE

_NEVER: Final = float("inf")
_MAX_TAKEN_AT_ONCE: Final = 100  # a backlog must not keep the loop from everybody else
_FLUSH_AT: Final = 8  # calls; at 64 in flight a tenth faster than one write a turn, and 4 or 16 are no better


class NativeEngine:
    """Opens connections that run on our own HTTP/2."""

    def __init__(self, options: TransportOptions, names: Names | None = None) -> None:
        self._options = options
        self._names = names or Names()
        self._pace = PingPace()

    async def connect(self, target: Target, owner: ConnectionOwner) -> "NativeConnection":
        """See `seam.Engine.connect`."""
        options, pace = self._options, self._pace
        connection = await connect(
            target, self._names, options.connect_timeout, lambda: NativeConnection(target, options, owner, pace)
        )
        connection.is_owned = True
        return connection


class NativeConnection(HandshakingProtocol):
    """One connection. See `seam.Connection`.

    Args:
        target: what was dialled.
        options: limits and times.
        owner: whom it tells of its end.
        pace: what its engine remembers of pings.

    Attributes:
        handshake: resolves when the peer's SETTINGS arrived; fails with the reason if the connection ends before.
        is_owned: its owner is told of its end.
    """

    def __init__(self, target: Target, options: TransportOptions, owner: ConnectionOwner, pace: PingPace) -> None:
        self._loop = asyncio.get_running_loop()
        self.handshake = Handshake()
        self.is_owned = False
        self._owner = owner
        self._target = target
        self._pace = pace
        self._silence_time = options.silence_time
        self._limit = options.max_receive_bytes
        now = self._loop.time()
        self._http2 = Http2Connection(
            now,
            on_settings=self._on_settings,
            on_goaway=self._on_goaway,
            on_over=self._on_protocol_error,
            secrets=SECRETS,
        )
        self._outgoing = self._http2.outgoing
        self._liveness = Liveness(
            now,
            keepalive_time=options.keepalive_time,
            keepalive_timeout=options.keepalive_timeout,
            silence_time=options.silence_time,
            silence_timeout=options.silence_timeout,
            slower=pace.factor(target),
        )
        self._headers = CallHeaders(target, options.user_agent)
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_flush_due = False
        self._unflushed = 0  # calls since the last flush
        self._calls = 0  # unary calls and streams that are not over
        self._is_draining = False
        self._is_lost = False
        self._cause: ConnectionLostError | None = None  # what the peer's GOAWAY said
        self._liveness_timer: asyncio.TimerHandle | None = None
        self._liveness_due = 0.0
        self._deadlines: Deadlines[UnaryCall | StreamCall] = Deadlines()
        self._deadline_timer = DeadlineTimer(self._loop, self._check_deadlines)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected, and TLS is up."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        if self._is_lost:
            self._transport.abort()
            return
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Bytes came; all calls that they complete are resolved before this returns."""
        if self._is_lost:
            return  # it was on its way when we gave up
        now = self._loop.time()
        self._liveness.on_received(now)
        if not self.handshake.is_over:
            self.handshake.on_bytes(data)
        self._http2.receive_data(data, now)
        if self._outgoing.has_data_to_send:
            self._flush()

    def eof_received(self) -> None:
        """The peer sends no more: no call can be answered, and what is unwritten is not worth waiting for."""
        self.abort(ConnectionLostError("the peer closed the connection"))

    def pause_writing(self) -> None:
        """The socket takes no more for now: what is due waits in the machine."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The socket takes bytes again."""
        self._is_paused = False
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._over(exc or ConnectionLostError("the peer closed the connection"))
        self._transport = None  # a circle of 270 KiB with TLS, which must not wait for the collector

    # The seam.

    @property
    def takes_calls(self) -> bool:
        """Whether a new call can be made."""
        if self._is_lost or self._is_draining or self._transport is None:
            return False
        # A socket that failed is closing for a turn of the loop before the protocol is told.
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
        """See `seam.Connection.unary`."""
        loop = self._loop
        now = loop.time()
        if deadline <= now:
            raise _too_late()
        headers = self._headers
        told = deadline if whole_by is None else whole_by
        timeout = headers.timeout(told - now) if told != _NEVER else None
        call = UnaryCall(
            headers.of(path, metadata), timeout, loop.create_future(), deadline, self._limit, collect, may_move, told
        )
        self._open(call, PREFIX.pack(0, len(payload)) + payload, end=True)
        liveness = self._liveness
        liveness.call_started(now)
        is_large = len(payload) > LARGE
        if is_large:
            liveness.upload_began(call, len(payload), now)
        if is_heavy:
            liveness.heavy_began()
        if self._liveness_timer is None or self._liveness_due > now + self._silence_time:
            self._watch_liveness()
        if deadline < self._deadlines.limit:
            self._watch_deadline(call)
        try:
            return await call.future
        except BaseException:  # a cancellation too: the stream must not outlive its caller
            self._close(call)
            raise
        finally:
            liveness.call_ended(call.has_headers)
            if is_heavy:
                liveness.heavy_ended()
            if is_large:
                liveness.upload_ended(call, loop.time(), is_answered=call.has_headers)
                self._watch_liveness()
            del call  # its failure knows this frame, and must not be known by it
            self._calls -= 1
            if self._is_draining:
                self._close_if_drained()

    async def open_stream(self, path: str, metadata: Metadata, deadline: float) -> "NativeStream":
        """See `seam.Connection.open_stream`."""
        now = self._loop.time()
        if deadline <= now:
            raise _too_late()
        call = StreamCall(self._headers.of(path, metadata), self._limit, self._took)
        call.deadline = deadline
        self._open(call, b"", end=False)
        self._liveness.stream_opened(now)
        self._watch_liveness()
        stream = NativeStream(self, call)
        if deadline < self._deadlines.limit:
            self._watch_deadline(call)
        try:
            await call.wait_until_opened()
            call.check()
        except BaseException:  # a cancellation too: nobody else could close it
            stream.cancel()
            raise
        call.deadline = _NEVER
        return stream

    def drain(self) -> None:
        """See `seam.Connection.drain`."""
        self._is_draining = True
        self._close_if_drained()

    def give_up(self, reason: str) -> None:
        """See `seam.Connection.give_up`."""
        for stream in tuple(self._outgoing.all_streams()):
            if isinstance(stream, UnaryCall) and stream.may_move and not stream.has_headers:
                delivery = self._end(stream)
                stream.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery, reason=LocalReason.GIVEN_UP))

    def close(self) -> Unwinding:
        """See `seam.Connection.close`."""
        self.abort(None)
        return ()

    async def aclose(self) -> None:
        """See `seam.Connection.aclose`."""
        self.abort(None)

    def abort(self, error: BaseException | None) -> None:
        """End the connection now; `error` is what its owner is told."""
        transport = self._transport
        self._over(error)
        if transport is not None:
            transport.abort()  # never close(): a dead peer would be waited for

    # For NativeStream.

    def send(self, call: StreamCall, payload: bytes, *, end: bool) -> None:
        """Give a stream more bytes."""
        self._outgoing.send(call, payload, end=end)
        self._schedule_flush()

    def end_stream(self, call: StreamCall) -> None:
        """A stream is over for its owner."""
        self._close(call)
        self._liveness.stream_closed()
        self._calls -= 1
        if self._is_draining:
            self._close_if_drained()

    # Inside: opening and closing.

    def _took(self, call: StreamCall, size: int) -> None:
        self._http2.consumed(call, size)
        if self._outgoing.has_data_to_send:
            self._schedule_flush()

    def _open(self, call: UnaryCall | StreamCall, payload: bytes, *, end: bool) -> None:
        transport = self._transport
        if self._is_lost or self._is_draining or transport is None or transport.is_closing():
            raise _closed()
        self._calls += 1  # first, since the last stream that there is an id for begins the draining
        try:
            self._outgoing.open(call, payload, end=end)
        except LocalProtocolError:
            self._calls -= 1
            raise _closed() from None
        self._unflushed += 1
        if self._calls == 1 or self._unflushed >= _FLUSH_AT:
            self._flush()
        else:
            self._schedule_flush()

    def _close(self, call: UnaryCall | StreamCall) -> None:
        """Reset a call that is still open; one that is over is left alone."""
        if call.is_open and not self._is_lost:
            self._outgoing.reset(call)
            self._schedule_flush()

    def _end(self, call: UnaryCall | StreamCall) -> Delivery:
        """Reset a call that fails on this side. Returns its delivery, which nothing can change any more.

        Both are one step: its task, which would reset it too, runs only later, and a window that opens before that
        would let the rest of the request out.
        """
        delivery = self._delivery(call)
        self._close(call)
        return delivery

    def _close_if_drained(self) -> None:
        if not self._calls:
            self.abort(self._cause)

    def _delivery(self, call: UnaryCall | StreamCall) -> Delivery:
        """Where a request is now. A unary handler runs only once it has the whole message."""
        is_whole = call.is_sent_whole or isinstance(call, StreamCall)
        return Delivery.UNKNOWN if call.stream_id and is_whole else Delivery.UNSENT

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

    # Inside: the machine's word.

    def _on_settings(self) -> None:
        self.handshake.succeed()

    def _on_goaway(self, reason: str) -> None:
        if self._cause is None:
            self._pace.went_away(self._target, reason)
            self._cause = ConnectionLostError(reason)
            self._is_draining = True
            if self.is_owned:
                self._owner.on_draining(reason)
        # Calls that were told that they are unprocessed still unwind; the last of them closes.
        self._close_if_drained()

    def _on_protocol_error(self, error: RemoteProtocolError) -> None:
        self._flush()  # the GOAWAY that tells the peer what it did
        self._over(ConnectionLostError(f"the peer broke HTTP/2: {error}"))
        if self._transport is not None:
            self._loop.call_soon(self._transport.abort)  # uvloop writes at the end of a turn

    # Inside: time.

    def _watch_liveness(self) -> None:
        if self._is_lost or not self._liveness.is_needed:
            return
        due = self._liveness.next_check()
        if self._liveness_timer is not None:
            if self._liveness_due <= due:
                return
            self._liveness_timer.cancel()
        self._liveness_due = due
        # Not for less than a millisecond, since uvloop would run it at once, again and again.
        self._liveness_timer = self._loop.call_at(max(due, self._loop.time() + 0.001), self._check_liveness)

    def _check_liveness(self) -> None:
        self._liveness_timer = None
        if self._is_lost:
            return
        action = self._liveness.check(self._loop.time())
        if action is Action.DEAD:
            self.abort(ConnectionLostError("the peer is silent: it answered neither calls nor a ping"))
            return
        if action is Action.PING:
            self._outgoing.ping(b"liveness")
            self._flush()
        self._watch_liveness()

    def _watch_deadline(self, call: UnaryCall | StreamCall) -> None:
        deadlines = self._deadlines
        earliest = deadlines.next
        deadlines.add(call)
        if deadlines.next < earliest:
            self._deadline_timer.set(deadlines.next)

    def _check_deadlines(self) -> None:
        if self._is_lost:
            return
        for call in self._deadlines.expired(self._loop.time(), self._all_calls):
            if call.is_open and call.may_go_on(self._loop.time()):
                self._watch_deadline(call)
            elif call.is_open:
                text = "the deadline passed before the server answered"
                delivery = self._end(call)
                call.fail(AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, delivery, reason=LocalReason.DEADLINE))
        if self._deadlines.next != _NEVER:
            self._deadline_timer.set(self._deadlines.next)

    def _all_calls(self) -> "tuple[UnaryCall | StreamCall, ...]":
        return cast("tuple[UnaryCall | StreamCall, ...]", self._outgoing.all_streams())

    # The end.

    def _over(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        if self._liveness_timer is not None:
            self._liveness_timer.cancel()
        self._deadline_timer.close()
        streams = self._http2.close()  # which breaks the circle of the two
        if not self.handshake.is_over:
            self.handshake.fail(error)
            return
        text = "the connection was closed"
        if error is not None:
            text = f"the connection was lost: {str(error) or type(error).__name__}"
        for stream in streams:
            call = cast("UnaryCall | StreamCall", stream)
            call.fail(AttemptFailure(StatusCode.UNAVAILABLE, text, self._delivery(call)))
        if self.is_owned:
            self._owner.on_lost(error)


class NativeStream:
    """A stream of messages. See `seam.Stream`."""

    def __init__(self, connection: NativeConnection, call: StreamCall) -> None:
        self._connection = connection
        self._call = call
        self._is_closed = False
        self._taken_at_once = 0  # messages, without a turn for anybody else

    async def send(self, payload: bytes) -> None:
        """See `seam.Stream.send`."""
        await self._send(PREFIX.pack(0, len(payload)) + payload, end=False)

    async def half_close(self) -> None:
        """See `seam.Stream.half_close`."""
        await self._send(b"", end=True)

    async def receive(self) -> bytes | None:
        """See `seam.Stream.receive`."""
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
        """See `seam.Stream.cancel`."""
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
                self.cancel()  # a message sent by half cannot be taken back
                raise
        call.check()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._connection.end_stream(self._call)


def _closed() -> AttemptFailure:
    return AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)


def _too_late() -> AttemptFailure:
    return AttemptFailure(
        StatusCode.DEADLINE_EXCEEDED, "the deadline has passed", Delivery.UNSENT, reason=LocalReason.DEADLINE
    )
