"""The grpclib engine: attempts and streams over grpclib's client protocol.

Knows: grpclib's streams. Never knows: endpoints, retries, etcd. grpclib's `Channel` is not used: it would only dial,
and that is ours (`dial.py`), since the balancer alone decides about another dial.

Every await on grpclib happens in a task of ours, never in the caller's (`_Call.run`): the caller waits for a future
that its deadline, the connection's end or its own cancellation resolve at once, and our task is cancelled behind it.
"""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar, cast

from grpclib.metadata import encode_timeout
from h2.errors import ErrorCodes
from h2.exceptions import NoAvailableStreamIDError

from etcd_aio.aio import start_task
from etcd_aio.closing import Unwinding, unwound
from etcd_aio.deadline import NEVER
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import NeverIndexedHeaderTuple
from etcd_aio.transport.deadline_timer import DeadlineTimer
from etcd_aio.transport.grpclib_protocol import GrpclibProtocol, GrpclibStream
from etcd_aio.transport.handshake import connect
from etcd_aio.transport.interface import BEGINNING, Collect, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.names import Names
from etcd_aio.transport.native_headers import SECRETS
from etcd_aio.transport.ping_pace import PingPace
from etcd_aio.transport.response import fields, is_trailers_only, judge_headers, judge_trailers, unprocessed
from etcd_aio.transport.uploads import LARGE

T = TypeVar("T")

_PREFIX: Final = struct.Struct(">BI")  # compressed flag and length, before every gRPC message
_LONGEST_TIMEOUT: Final = 99_999_999.0  # grpc-timeout has at most eight digits (PROTOCOL-HTTP2)


class GrpclibEngine:
    """Opens connections that run on grpclib and h2."""

    def __init__(self, options: TransportOptions, names: Names | None = None) -> None:
        self._options = options
        self._names = names or Names()
        self._pace = PingPace()

    async def connect(self, target: Target, owner: ConnectionOwner) -> "GrpclibConnection":
        """See `seam.Engine.connect`."""
        options, pace = self._options, self._pace
        slower = pace.factor(target)
        protocol = await connect(target, self._names, options.connect_timeout, lambda: GrpclibProtocol(options, slower))
        return GrpclibConnection(protocol, target, options, owner, pace)


class GrpclibConnection:
    """One connection of the grpclib engine. See `seam.Connection`."""

    def __init__(
        self,
        protocol: GrpclibProtocol,
        target: Target,
        options: TransportOptions,
        owner: ConnectionOwner,
        pace: PingPace,
    ) -> None:
        self.protocol = protocol
        self.max_receive_bytes = options.max_receive_bytes
        self.calls: set[_Call] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._owner = owner
        self._target = target
        self._pace = pace
        self._is_draining = False
        self._end: ConnectionLostError | None = None
        self._pseudo_headers = (
            (":method", "POST"),
            (":scheme", "https" if target.tls is not None else "http"),
            (":authority", target.authority),
        )
        self._headers = (
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", options.user_agent),
        )
        protocol.on_goaway = self._on_goaway
        protocol.on_lost = self._on_lost

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
        """See `seam.Connection.unary`. grpclib gives replies whole, so nothing is ever collected."""
        last = deadline if whole_by is None else whole_by
        call = _Call(self, path, metadata, last, is_unary=True, may_move=may_move)
        if is_heavy:
            self.protocol.liveness.heavy_began()
        try:
            return await call.run(partial(call.exchange, payload), deadline, last)
        finally:
            if is_heavy:
                self.protocol.liveness.heavy_ended()
            call.close()

    async def open_stream(self, path: str, metadata: Metadata, deadline: float) -> "GrpclibMessageStream":
        """See `seam.Connection.open_stream`."""
        call = _Call(self, path, metadata, NEVER, is_unary=False)  # the stream itself has no deadline
        try:
            await call.run(call.open, deadline)
        except BaseException:  # a cancellation too: nobody else could close it
            call.close()
            raise
        return GrpclibMessageStream(call)

    def drain(self) -> None:
        """See `seam.Connection.drain`."""
        self._is_draining = True
        self.close_if_drained()

    def give_up(self, reason: str) -> None:
        """See `seam.Connection.give_up`."""
        for call in tuple(self.calls):
            call.give_up(reason)

    def close(self) -> Unwinding:
        """See `seam.Connection.close`."""
        self.protocol.abort(None)
        return (self.protocol.closed, *self.tasks)

    async def aclose(self) -> None:
        """See `seam.Connection.aclose`."""
        await unwound(self.close())

    # For _Call.

    def request_headers(self, path: str, timeout: float, metadata: Metadata) -> list[tuple[str, str]]:
        """All headers of a request; pseudo-headers come first (RFC 9113, 8.3)."""
        headers = [*self._pseudo_headers, (":path", path), *self._headers]
        if timeout != NEVER:
            headers.append(("grpc-timeout", encode_timeout(min(timeout, _LONGEST_TIMEOUT))))
        return [*headers, *map(_kept_out_of_tables, metadata)]

    def check_usable(self) -> None:
        """Raises AttemptFailure if the connection takes nothing more."""
        if self._is_draining or self.protocol.is_lost:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)

    def close_if_drained(self) -> None:
        """End the connection if that is all it was waiting for."""
        if self._is_draining and not self.calls:
            self.protocol.abort(self._end)

    def retire(self, reason: str, last_stream_id: int) -> None:
        """Take no new streams; those up to `last_stream_id` may finish."""
        is_first = self._end is None
        self._end = self._end or ConnectionLostError(reason)
        self._is_draining = True
        if is_first:
            self._owner.on_draining(reason)
        for call in tuple(self.calls):
            call.fail_unprocessed(reason, last_stream_id)
        self.close_if_drained()

    # Called by the protocol.

    def _on_goaway(self, reason: str, last_stream_id: int) -> None:
        if self._end is None:
            self._pace.went_away(self._target, reason)
        self.retire(reason, last_stream_id)

    def _on_lost(self, error: BaseException | None) -> None:
        text = (
            f"the connection was lost: {str(error) or type(error).__name__}" if error else "the connection was closed"
        )
        for call in tuple(self.calls):
            call.fail_lost(text)
        self._owner.on_lost(error)


class _Call:
    """One HTTP/2 stream of a connection, whether it carries a unary call or a stream of messages.

    From its creation until `close` it counts as under way. Both `fail` and `close` may come at any time, from any side.
    Creating one raises AttemptFailure if the connection takes nothing more.
    """

    def __init__(
        self,
        connection: GrpclibConnection,
        path: str,
        metadata: Metadata,
        deadline: float,
        *,
        is_unary: bool,
        may_move: bool = False,
    ) -> None:
        connection.check_usable()
        protocol = connection.protocol
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._metadata = metadata
        self._deadline = deadline
        self._is_unary = is_unary
        self._may_move = may_move
        self._stream: GrpclibStream = protocol.new_stream()
        self._stream.on_failed = self.fail
        self._release: Callable[[], None] | None = None
        self._sent_whole = False
        self._failure: AttemptFailure | None = None
        self._waiters: dict[asyncio.Future[Any], asyncio.Task[Any]] = {}
        self._is_open = True
        connection.calls.add(self)
        (protocol.liveness.call_started if is_unary else protocol.liveness.stream_opened)(self._loop.time())
        protocol.watch_liveness()

    # What runs in tasks of ours.

    async def open(self) -> None:
        """Send the request headers."""
        protocol = self._connection.protocol
        left = max(self._deadline - self._loop.time(), 0.001)
        headers = self._connection.request_headers(self._path, left, self._metadata)
        try:
            self._release = await self._stream.send_request(headers, _processor=protocol.processor)
        except NoAvailableStreamIDError:
            # 2**30 streams were opened; like GOAWAY, but said by ourselves (RFC 9113, 5.1.1).
            self._connection.retire("the connection has used up its stream numbers", 2**31 - 1)
            raise

    async def exchange(self, payload: bytes) -> bytes:
        """A whole unary call."""
        await self.open()
        if len(payload) > LARGE:
            self._connection.protocol.liveness.upload_began(self._stream, len(payload), self._loop.time())
        # If the server answers before it has the whole request, its answer counts.
        self._sent_whole = await self._stream.send_message(_framed(payload), end_stream=True)
        reply = await self.receive()
        if reply is None:
            raise AttemptFailure(StatusCode.INTERNAL, "the server answered OK without a message", Delivery.UNKNOWN)
        if await self.receive() is not None:
            raise AttemptFailure(StatusCode.INTERNAL, "the server answered a unary call twice", Delivery.UNKNOWN)
        return reply

    async def send(self, payload: bytes) -> None:
        """Send one message of a stream."""
        if not await self._stream.send_message(_framed(payload), end_stream=False):
            ending = self._ending() if self._stream.is_answered else None
            raise ending or AttemptFailure(StatusCode.UNAVAILABLE, "the stream has ended", Delivery.UNKNOWN)

    async def half_close(self) -> None:
        """End the request; nothing to say to a server that has ended the stream already."""
        if not self._stream.is_answered:
            await self._stream.end()

    async def receive(self) -> bytes | None:
        """The next message; None after the last one of a stream that ended with OK."""
        failure = judge_headers(fields(await self._stream.recv_headers()))
        if failure is not None:
            raise failure
        prefix = await self._read(_PREFIX.size)
        if not prefix:
            failure = self._ending()
            if failure is not None:
                raise failure
            return None
        compressed, size = _PREFIX.unpack(prefix)
        if compressed:
            raise AttemptFailure(StatusCode.INTERNAL, "the server sent a compressed message unasked", Delivery.UNKNOWN)
        limit = self._connection.max_receive_bytes
        if size > limit:
            text = f"received message of {size} bytes is larger than max_receive_bytes ({limit})"
            failure = AttemptFailure(
                StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNKNOWN, reason=LocalReason.REPLY_TOO_LARGE
            )
            if not self._is_unary:
                with suppress(AttemptFailure):  # the stream may have ended before it came
                    failure.beginning = await self._read(min(size, BEGINNING))
            raise failure
        payload = await self._read(size)
        if len(payload) != size:
            raise self._cut_short()
        return payload

    async def _read(self, size: int) -> bytes:
        try:
            return await self._stream.recv_data(size)
        except AssertionError:  # grpclib raises this when the stream ends inside what it reads
            raise self._cut_short() from None

    def _cut_short(self) -> AttemptFailure:
        ending = self._ending()
        if ending is not None and ending.delivery is Delivery.ANSWERED:
            return ending  # the server says itself why it broke off
        return AttemptFailure(StatusCode.INTERNAL, "the server cut its message short", Delivery.UNKNOWN)

    def _ending(self) -> AttemptFailure | None:
        """What the server said at the end of the response; None for OK."""
        headers = fields(self._stream.headers or ())
        failure = judge_headers(headers)
        if failure is not None:
            return failure
        trailers = fields(self._stream.trailers or ())
        return judge_trailers(headers if not trailers and is_trailers_only(headers) else trailers)

    # What runs in the caller's task.

    async def run(
        self, work: Callable[[], Coroutine[Any, Any, T]], deadline: float, whole_by: float | None = None
    ) -> T:
        """Have `work` done in a task of ours and wait for it, until its deadline. Cancellation ends the call.

        Args:
            work: what is to be done.
            deadline: instant by which it is over, or an answer has begun.
            whole_by: instant by which it is over if an answer has begun; None is `deadline`.
        """
        if deadline <= self._loop.time():
            raise self._expired()
        waiter = self.start(work)

        def expire() -> None:
            if waiter.done():
                return
            if whole_by is not None and self._stream.has_begun and self._loop.time() < whole_by:
                if whole_by != NEVER:
                    timer.set(whole_by)
            else:
                self.fail(self._expired())

        timer = DeadlineTimer(self._loop, expire)
        if deadline != NEVER:
            timer.set(deadline)
        try:
            return await waiter
        except AttemptFailure:
            raise
        except BaseException:
            self.close()  # what was done by half cannot be continued
            raise
        finally:
            timer.close()

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        """Have `work` done in a task of ours; the future has its result, or the failure of the call."""
        if self._failure is not None:
            raise self._failure
        waiter: asyncio.Future[T] = self._loop.create_future()
        task = start_task(work(), name=f"etcd_aio {self._path}")
        self._connection.tasks.add(task)
        self._waiters[waiter] = task
        task.add_done_callback(lambda done: self._settle(waiter, done))
        return waiter

    def fail(self, failure: AttemptFailure) -> None:
        """End the call with `failure`, at once."""
        if self._failure is None:
            self._failure = failure
            self.close()

    def fail_lost(self, text: str) -> None:
        """The connection is gone; a response that is complete still counts."""
        if not self._stream.is_answered:
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, text, self._delivery()))

    def give_up(self, reason: str) -> None:
        """See `seam.Connection.give_up`."""
        if self._may_move and not self._stream.has_begun:
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, self._delivery(), reason=LocalReason.GIVEN_UP))

    def fail_unprocessed(self, reason: str, last_stream_id: int) -> None:
        """The peer processes no stream above `last_stream_id`, and so none that is not open yet."""
        if self._stream.id is None:
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, Delivery.UNSENT))
        elif self._stream.id > last_stream_id and not self._stream.is_answered:
            delivery = unprocessed(has_begun=self._stream.has_begun)
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery))

    def close(self) -> None:
        """Reset the stream if it is still open, and forget it. Waits for nothing; harmless if it is closed."""
        if self._failure is None:
            self._failure = AttemptFailure(StatusCode.CANCELLED, "the stream is over", Delivery.UNKNOWN)
        for waiter, task in self._waiters.items():
            _fail(waiter, self._failure)
            task.cancel()
        if not self._is_open:
            return
        self._is_open = False
        connection = self._connection
        protocol = connection.protocol
        connection.calls.discard(self)
        if self._is_unary:
            protocol.liveness.call_ended(self._stream.is_answered)
            protocol.liveness.upload_ended(self._stream, self._loop.time(), is_answered=self._stream.has_begun)
            protocol.watch_liveness()
        else:
            protocol.liveness.stream_closed()
        if self._release is not None:
            # `closable` looks at the transport, which grpclib deletes with the connection.
            if not protocol.is_lost and self._stream.closable:
                self._stream.reset_nowait(ErrorCodes.CANCEL)
            self._release()
        connection.close_if_drained()

    # Inside.

    def _expired(self) -> AttemptFailure:
        text = "the deadline passed before the server answered"
        return AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, self._delivery(), reason=LocalReason.DEADLINE)

    def _delivery(self) -> Delivery:
        """Where the request is now. A unary handler runs only once it has the whole message."""
        is_sent = self._sent_whole if self._is_unary else self._stream.id is not None
        return Delivery.UNKNOWN if is_sent else Delivery.UNSENT

    def _settle(self, waiter: "asyncio.Future[T]", task: "asyncio.Task[T]") -> None:
        self._connection.tasks.discard(task)
        self._waiters.pop(waiter, None)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            if not waiter.done():
                waiter.set_result(task.result())
        elif isinstance(error, AttemptFailure):
            _fail(waiter, error)
        else:
            # grpclib or h2 failed under us; or somebody cancelled all tasks of the loop.
            failure = AttemptFailure(StatusCode.UNAVAILABLE, f"{type(error).__name__}: {error}", self._delivery())
            failure.__cause__ = error
            _fail(waiter, failure)


class GrpclibMessageStream:
    """A stream of messages. See `seam.Stream`."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._receiving: asyncio.Future[bytes | None] | None = None
        self._has_ended = False

    async def send(self, payload: bytes) -> None:
        """See `seam.Stream.send`."""
        await self._call.run(partial(self._call.send, payload), NEVER)

    async def half_close(self) -> None:
        """See `seam.Stream.half_close`."""
        await self._call.run(self._call.half_close, NEVER)

    async def receive(self) -> bytes | None:
        """See `seam.Stream.receive`."""
        if self._has_ended:
            return None
        if self._receiving is None:
            self._receiving = self._call.start(self._call.receive)
        receiving = self._receiving
        await asyncio.wait([receiving])  # a cancelled caller leaves the message for the next one
        self._receiving = None
        try:
            message = receiving.result()
        except AttemptFailure as failure:
            self._call.fail(failure)
            raise
        if message is None:
            self._has_ended = True
            self._call.close()
        return message

    def cancel(self) -> None:
        """See `seam.Stream.cancel`."""
        self._call.close()


def _framed(payload: bytes) -> bytes:
    return _PREFIX.pack(0, len(payload)) + payload


def _fail(waiter: "asyncio.Future[T]", failure: AttemptFailure) -> None:
    if not waiter.done():
        waiter.set_exception(failure)
        waiter.exception()  # whoever waits gets it all the same; whoever has given up need not


def _kept_out_of_tables(pair: tuple[str, str]) -> tuple[str, str]:
    """The same field, marked for h2 if no table of header compression may hold it."""
    return cast("tuple[str, str]", NeverIndexedHeaderTuple(*pair)) if pair[0] in SECRETS else pair
