"""The grpclib engine: attempts and streams over grpclib's client protocol.

grpclib's `Channel` is not used: it would only dial, and the balancer decides about dialling (`dial.py`).

Every await on grpclib happens in a task of the engine, never in the caller's (`_GrpclibCall.run`). The caller waits for
a future that its deadline, the connection's end or its own cancellation resolve at once; the task is then cancelled.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar, cast

from grpclib.metadata import encode_timeout
from h2.errors import ErrorCodes
from h2.exceptions import NoAvailableStreamIDError

from etcd_aio.base.aio import start_task
from etcd_aio.base.closing import Unwinding, unwound
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import NeverIndexedHeaderTuple
from etcd_aio.transport.deadlines import DeadlineTimer
from etcd_aio.transport.document import http_get
from etcd_aio.transport.framing import PREFIX, check_prefix, frame_message
from etcd_aio.transport.grpclib.protocol import GrpclibProtocol, GrpclibStream
from etcd_aio.transport.handshake import connect
from etcd_aio.transport.interface import BEGINNING, Collect, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.metadata import CallHeader
from etcd_aio.transport.names import Names
from etcd_aio.transport.ping_pace import PingPace
from etcd_aio.transport.quiet_streams import check_limit
from etcd_aio.transport.request_headers import SECRETS, BaseHeaders
from etcd_aio.transport.response import (
    broken,
    closed,
    expired,
    fields,
    given_up,
    is_trailers_only,
    judge_headers,
    judge_trailers,
    lost,
    unprocessed,
)
from etcd_aio.transport.uploads import LARGE

T = TypeVar("T")

_LONGEST_TIMEOUT: Final = 99_999_999.0  # grpc-timeout has at most eight digits (PROTOCOL-HTTP2)


class GrpclibEngine:
    """Opens connections that run on grpclib and h2."""

    def __init__(self, options: TransportOptions, names: Names | None = None) -> None:
        self._options = options
        self._names = names or Names()
        self._pace = PingPace(options.client)

    async def connect(self, target: Target, owner: ConnectionOwner) -> "GrpclibConnection":
        options, pace = self._options, self._pace
        connection = GrpclibConnection(target, options, owner, pace)
        self._names.turn(target.host)
        await connect(target, self._names, options, lambda: connection.protocol)
        return connection

    async def http_get(self, target: Target, path: str) -> bytes:
        return await http_get(target, path, self._names)


class GrpclibConnection:
    """One connection of the grpclib engine. See `interface.Connection`.

    Args:
        target: the server.
        options: limits and times.
        owner: is notified of the connection's end.
        pace: the engine's ping intervals.

    Attributes:
        engine: the name of the engine.
        protocol: the asyncio protocol, which can be connected.
    """

    engine: Final = "grpclib"

    def __init__(
        self,
        target: Target,
        options: TransportOptions,
        owner: ConnectionOwner,
        pace: PingPace,
    ) -> None:
        self.protocol = GrpclibProtocol(options, self._on_goaway, self._on_lost, slower=pace.factor(target))
        self.max_receive_bytes = options.max_receive_bytes
        self.calls: set[_GrpclibCall] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._owner = owner
        self._target = target
        self._pace = pace
        self._is_draining = False
        self._end: ConnectionLostError | None = None
        self._headers = BaseHeaders(target, options.user_agent)

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
        # grpclib gives replies whole, so nothing is ever collected.
        last = deadline if whole_by is None else whole_by
        call = _GrpclibCall(self, path, metadata, last, is_unary=True, may_move=may_move)
        if is_heavy:
            self.protocol.liveness.heavy_began()
        try:
            return await call.run(partial(call.exchange, payload), deadline, last)
        finally:
            if is_heavy:
                self.protocol.liveness.heavy_ended()
            call.close()

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> "GrpclibMessageStream":
        if is_quiet:
            check_limit(self.protocol.most_streams)
        # The stream itself has no deadline.
        call = _GrpclibCall(self, path, metadata, NEVER, is_unary=False, is_quiet=is_quiet)
        try:
            await call.run(call.open, deadline)
        except BaseException:  # also a cancellation: the connection has no other owner yet
            call.close()
            raise
        return GrpclibMessageStream(call)

    def drain(self) -> None:
        self._is_draining = True
        self.close_if_drained()

    def give_up(self, reason: str) -> None:
        for call in tuple(self.calls):
            call.give_up(reason)

    def close(self) -> Unwinding:
        self.protocol.abort(None)
        return (self.protocol.closed, *self.tasks)

    async def aclose(self) -> None:
        await unwound(self.close())

    # For _GrpclibCall.

    def request_headers(self, path: str, timeout: float, metadata: Metadata) -> list[tuple[str, str]]:
        """All headers of a request."""
        headers = [*self._headers.of(path)]
        if timeout != NEVER:
            headers.append(("grpc-timeout", encode_timeout(min(timeout, _LONGEST_TIMEOUT))))
        return [*headers, *map(_mark_secret, metadata)]

    def check_usable(self) -> None:
        """Raise AttemptFailure if the connection accepts no new calls."""
        if self._is_draining or self.protocol.is_lost:
            raise closed()

    def close_if_drained(self) -> None:
        """End the connection if it is draining and no call is left."""
        if self._is_draining and not self.calls:
            self.protocol.abort(self._end)

    def retire(self, reason: str, last_stream_id: int) -> None:
        """Refuse new streams; those up to `last_stream_id` may finish."""
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
        for call in tuple(self.calls):
            call.fail_lost(error)
        self._owner.on_lost(error)


class _GrpclibCall:
    """One HTTP/2 stream of a connection, for a unary call or a stream of messages.

    It counts as open from its creation until `close`. `fail` and `close` may be called at any time. The constructor
    raises AttemptFailure if the connection accepts no new calls.
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
        is_quiet: bool = False,
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
        self._is_quiet = is_quiet
        self._stream = GrpclibStream(protocol.connection, self.fail)
        self._release: Callable[[], None] | None = None
        self._sent_whole = False
        self._failure: AttemptFailure | None = None
        self._waiters: dict[asyncio.Future[Any], asyncio.Task[Any]] = {}
        self._is_open = True
        connection.calls.add(self)
        if not is_quiet:
            (protocol.liveness.call_started if is_unary else protocol.liveness.stream_opened)(self._loop.time())
            protocol.liveness_timer.watch()

    # Runs in tasks of the engine.

    async def open(self) -> None:
        """Send the request headers."""
        protocol = self._connection.protocol
        left = max(self._deadline - self._loop.time(), 0.001)
        headers = self._connection.request_headers(self._path, left, self._metadata)
        try:
            self._release = await self._stream.send_request(headers, _processor=protocol.processor)
        except NoAvailableStreamIDError:
            # 2**30 streams were opened: treated like a GOAWAY (RFC 9113, 5.1.1).
            self._connection.retire("the connection has used up its stream numbers", 2**31 - 1)
            raise

    async def exchange(self, payload: bytes) -> bytes:
        """A whole unary call."""
        await self.open()
        if len(payload) > LARGE:
            self._connection.protocol.liveness.upload_began(self._stream, len(payload), self._loop.time())
        # If the server answers before it has the whole request, its answer counts.
        self._sent_whole = await self._stream.send_message(frame_message(payload), end_stream=True)
        reply = await self.receive()
        if reply is None:
            raise broken("the server answered OK without a message")
        if await self.receive() is not None:
            raise broken("the server answered a unary call twice")
        return reply

    async def send(self, payload: bytes) -> None:
        """Send one message of a stream."""
        if not await self._stream.send_message(frame_message(payload), end_stream=False):
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
        prefix = await self._read(PREFIX.size)
        if not prefix:
            failure = self._ending()
            if failure is not None:
                raise failure
            return None
        compressed, size = PREFIX.unpack(prefix)
        failure = check_prefix(compressed, size, self._connection.max_receive_bytes)
        if failure is not None:
            if failure.reason is LocalReason.REPLY_TOO_LARGE and not self._is_unary:
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
        return broken("the server cut its message short")

    def _ending(self) -> AttemptFailure | None:
        """The failure in the server's trailers; None for OK."""
        headers = fields(self._stream.headers or ())
        failure = judge_headers(headers)
        if failure is not None:
            return failure
        trailers = fields(self._stream.trailers or ())
        return judge_trailers(headers if not trailers and is_trailers_only(headers) else trailers)

    # Runs in the caller's task.

    async def run(
        self, work: Callable[[], Coroutine[Any, Any, T]], deadline: float, whole_by: float | None = None
    ) -> T:
        """Run `work` in a task of the engine and wait for it until its deadline. Cancellation ends the call.

        Args:
            work: the coroutine function.
            deadline: instant by which it is over, or an answer has begun.
            whole_by: instant by which it is over if an answer has begun; None is `deadline`.
        """
        if deadline <= self._loop.time():
            raise expired(self._delivery())
        waiter = self.start(work)

        def expire() -> None:
            if waiter.done():
                return
            if whole_by is not None and self._stream.has_begun and self._loop.time() < whole_by:
                if whole_by != NEVER:
                    timer.set(whole_by)
            else:
                self.fail(expired(self._delivery()))

        timer = DeadlineTimer(self._loop, expire)
        if deadline != NEVER:
            timer.set(deadline)
        try:
            return await waiter
        except AttemptFailure:
            raise
        except BaseException:
            self.close()  # half-done work cannot be continued
            raise
        finally:
            timer.close()

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        """Run `work` in a task of the engine; the future gets its result, or the failure of the call."""
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

    def fail_lost(self, error: BaseException | None) -> None:
        """The connection was lost; a complete response still counts."""
        if not self._stream.is_answered:
            self.fail(lost(error, self._delivery()))

    def give_up(self, reason: str) -> None:
        if self._may_move and not self._stream.has_begun:
            self.fail(given_up(reason, self._delivery()))

    def fail_unprocessed(self, reason: str, last_stream_id: int) -> None:
        """The peer processes no stream above `last_stream_id`, and so none that is not open yet."""
        if self._stream.id is None:
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, Delivery.UNSENT))
        elif self._stream.id > last_stream_id and not self._stream.is_answered:
            delivery = unprocessed(has_begun=self._stream.has_begun)
            self.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery))

    def close(self) -> None:
        """Reset the stream if it is still open, without waiting. May be called again."""
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
            protocol.liveness_timer.watch()
        elif not self._is_quiet:
            protocol.liveness.stream_closed()
        if self._release is not None:
            # `closable` looks at the transport, which grpclib deletes with the connection.
            if not protocol.is_lost and self._stream.closable:
                self._stream.reset_nowait(ErrorCodes.CANCEL)
                protocol.gave_up(cast("int", self._stream.id))
            self._release()
        connection.close_if_drained()

    # Inside.

    def _delivery(self) -> Delivery:
        """Return how far the request got. A unary handler runs only once it has the whole message."""
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
            # grpclib or h2 failed, or all tasks of the loop were cancelled.
            failure = AttemptFailure(StatusCode.UNAVAILABLE, f"{type(error).__name__}: {error}", self._delivery())
            failure.__cause__ = error
            _fail(waiter, failure)


class GrpclibMessageStream:
    """A stream of messages. See `interface.Stream`."""

    def __init__(self, call: _GrpclibCall) -> None:
        self._call = call
        self._receiving: asyncio.Future[bytes | None] | None = None
        self._has_ended = False

    async def send(self, payload: bytes) -> None:
        await self._call.run(partial(self._call.send, payload), NEVER)

    async def half_close(self) -> None:
        await self._call.run(self._call.half_close, NEVER)

    async def receive(self) -> bytes | None:
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
        self._call.close()


def _fail(waiter: "asyncio.Future[T]", failure: AttemptFailure) -> None:
    if not waiter.done():
        waiter.set_exception(failure)
        waiter.exception()  # no warning if nothing waits for it any more


def _mark_secret(pair: tuple[str, str]) -> tuple[str, str]:
    """The field; if it is secret, or of one call, marked so that h2 keeps it out of header compression tables."""
    is_marked = pair[0] in SECRETS or isinstance(pair, CallHeader)
    return cast("tuple[str, str]", NeverIndexedHeaderTuple(*pair)) if is_marked else pair
