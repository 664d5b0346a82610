"""A connection to one endpoint over HTTP/1: a pool of sockets for unary calls, and one more for each open stream.

If any dial fails, the connection takes nothing new; what runs may finish, and the owner dials again.

No request is ever sent twice here: a request whose socket ends has an unknown outcome, unless a part of it never left.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from etcd_aio.base.aio import start_background_task
from etcd_aio.base.closing import Unwinding, unwound
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import (
    AttemptFailure,
    ConnectError,
    ConnectionLostError,
    Delivery,
    NoLeaderError,
    StatusCode,
    server_error,
)
from etcd_aio.methods import Cardinality
from etcd_aio.transport.framing import check_prefix
from etcd_aio.transport.gateway.call import HttpCall
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.http1 import request_bytes
from etcd_aio.transport.gateway.json_mapping import GatewayRoute
from etcd_aio.transport.gateway.lines import LineStream
from etcd_aio.transport.gateway.pool import Pool
from etcd_aio.transport.gateway.replies import reply_of, unserved
from etcd_aio.transport.gateway.service import Service
from etcd_aio.transport.gateway.stream import JsonStream
from etcd_aio.transport.gateway.websocket import WebSocketStream
from etcd_aio.transport.interface import Collect, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.liveness import HEAVY_TIMEOUT, Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from etcd_aio.transport.metadata import token_of
from etcd_aio.transport.names import Names
from etcd_aio.transport.request_headers import timeout_text
from etcd_aio.transport.response import closed, expired, lost
from etcd_aio.transport.uploads import LARGE


class GatewayConnection:
    """See `interface.Connection`, `CallOwner` and `PoolOwner`.

    Args:
        target: the server.
        options: limits and times.
        owner: is notified of the connection's end.
        names: resolves host names.
        service: what the server is.

    Attributes:
        engine: the name of the engine.
    """

    engine: Final = "gateway"

    def __init__(
        self, target: Target, options: TransportOptions, owner: ConnectionOwner, names: Names, service: Service
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._options = options
        self._owner = owner
        self._service = service
        self._headers = (
            ("Host", target.authority),
            ("User-Agent", options.user_agent),
            ("Content-Type", "application/json"),
        )
        self._pool = Pool(target, names, options, service, self._get, self)
        self._others: set[Channel] = set()  # of streams
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[HttpCall] = set()
        self._streams: set[JsonStream] = set()
        self._is_established = False
        self._is_draining = False
        self._is_lost = False
        self._end: BaseException | None = None
        self._liveness = Liveness(self._loop.time(), options)
        self._timer = LivenessTimer(self._liveness, self._ping, self.lose)

    async def open(self) -> None:
        """Dial, and check that the peer is the right server. Raises what `Engine.connect` does."""
        try:
            await self._pool.open()
        except BaseException:
            self.close()
            raise
        if self._is_lost:
            raise ConnectError("the peer ended the connection as soon as it was open")
        self._is_established = True

    # See `interface.Connection`.

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
        # Replies come whole, since JSON is parsed whole, so nothing is ever collected.
        now = self._loop.time()
        if deadline <= now:
            raise expired(Delivery.UNSENT)
        self._check_usable()
        route = self._service.routes(path)
        if route is None or route.cardinality is not Cardinality.UNARY:
            raise unserved(path)
        last = deadline if whole_by is None else whole_by
        limit = self._options.max_receive_bytes
        call = HttpCall(
            self,
            self._request(route, route.to_json(payload), metadata, last - now),
            limit=limit,
            deadline=deadline,
            whole_by=last,
            may_move=may_move,
        )
        is_large = len(payload) > LARGE
        liveness = self._liveness
        self._calls.add(call)
        liveness.call_started(now)
        if is_large:
            liveness.upload_began(call, len(payload), now)
        if is_heavy:
            liveness.heavy_began()
        self._pool.start(call)
        self._timer.watch()
        try:
            answer = await call.future
        except BaseException:  # also a cancellation: the request must not outlive its caller
            call.close()
            raise
        finally:
            self._calls.discard(call)
            liveness.call_ended(call.has_begun)
            if is_heavy:
                liveness.heavy_ended()
            if is_large:
                liveness.upload_ended(call, self._loop.time(), is_answered=call.has_begun)
            self._timer.watch()
            del call
            self._close_if_drained()
        reply = reply_of(answer.status, answer.headers, answer.body, route)
        failure = check_prefix(0, len(reply), limit)
        if failure is not None:
            raise failure
        return reply

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> JsonStream:
        del is_quiet  # each stream has a connection of its own here, and etcd's gateway has no stream that is quiet
        if deadline <= self._loop.time():
            raise expired(Delivery.UNSENT)
        self._check_usable()
        route = self._service.routes(path)
        if route is None or route.cardinality is Cardinality.UNARY:
            raise unserved(path)
        if route.cardinality is Cardinality.BIDIRECTIONAL:
            if self._pool.no_streams:
                raise AttemptFailure(StatusCode.UNIMPLEMENTED, self._pool.no_streams, Delivery.ANSWERED)
            await self._probe(metadata, deadline)
        stream = self._make_stream(route, metadata)
        self._streams.add(stream)
        try:
            await self._run(self._open_stream(stream), deadline, f"etcd_aio {path}")
        except BaseException:  # also a cancellation: the stream has no other owner yet
            stream.cancel()
            raise
        return stream

    def close(self) -> Unwinding:
        self._over(None)
        channels = (*self._pool.close(), *self._others)
        for channel in channels:
            channel.abort(None)
        for task in tuple(self._tasks):
            task.cancel()
        return (*(channel.closed for channel in channels), *self._tasks)

    async def aclose(self) -> None:
        await unwound(self.close())

    def drain(self) -> None:
        self._is_draining = True
        self._close_if_drained()

    def give_up(self, reason: str) -> None:
        for call in tuple(self._calls):
            call.give_up(reason)

    # Streams.

    async def _probe(self, metadata: Metadata, deadline: float) -> None:
        """Let the server check first what a WebSocket cannot carry: that a leader is needed, and the token.

        Only that the server would refuse the stream for one of these reasons counts.
        """
        if self._service.probe is None or len(metadata) < 2:  # only the API version
            return
        path, payload = self._service.probe
        try:
            await self.unary(path, payload, metadata, deadline)
        except AttemptFailure as failure:
            if failure.delivery is not Delivery.ANSWERED:
                raise
            if failure.code in (StatusCode.UNAUTHENTICATED, StatusCode.UNAVAILABLE):
                raise

    def _leader_check(self, metadata: Metadata) -> Callable[[JsonStream], None]:
        """Return a check that ends a quiet stream whose member has lost its leader, as the server does for gRPC."""
        needs = tuple(pair for pair in metadata if pair[0] != "token")  # which a stream that is open does not need
        probe = self._service.probe
        if probe is None or not any(name == "hasleader" for name, _ in needs):
            return lambda stream: None
        path, payload = probe

        async def check(stream: JsonStream) -> None:
            try:
                await self.unary(path, payload, needs, self._loop.time() + self._options.keepalive_timeout)
            except AttemptFailure as failure:
                is_answer = failure.delivery is Delivery.ANSWERED
                if is_answer and isinstance(server_error(failure.code, failure.message), NoLeaderError):
                    stream.fail(failure)

        def on_quiet(stream: JsonStream) -> None:
            self.start_task(check(stream), name="etcd_aio leader check")

        return on_quiet

    def _make_stream(self, route: GatewayRoute, metadata: Metadata) -> WebSocketStream | LineStream:
        if route.cardinality is Cardinality.BIDIRECTIONAL:
            token, on_quiet = token_of(metadata), self._leader_check(metadata)
            return WebSocketStream(route, self._target, self._options, token, self._stream_closed, on_quiet)
        limit = self._options.max_receive_bytes
        return LineStream(route, limit, lambda text: self._request(route, text, metadata, NEVER), self._stream_closed)

    async def _open_stream(self, stream: WebSocketStream | LineStream) -> None:
        def on_over(channel: Channel, error: BaseException | None) -> None:
            self._others.discard(channel)

        try:
            channel = await self._pool.connect(on_over)
        except (OSError, ConnectError) as error:
            self.retire(error)
            raise lost(error, Delivery.UNSENT) from error
        self._others.add(channel)
        if isinstance(stream, LineStream):
            stream.begin(channel)
            return
        stream.begin(channel)
        try:
            await asyncio.shield(stream.opened)
        except BaseException:  # also a cancellation
            channel.abort(None)
            raise

    def _stream_closed(self, stream: JsonStream) -> None:
        self._streams.discard(stream)
        self._close_if_drained()

    async def _run(self, work: Coroutine[Any, Any, None], deadline: float, name: str) -> None:
        """Run `work` in a task of its own until the deadline; a cancellation ends it."""
        task = self.start_task(work, name=name)
        timeout = None if deadline == NEVER else max(deadline - self._loop.time(), 0)
        try:
            await asyncio.wait([task], timeout=timeout)
        except BaseException:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise expired(Delivery.UNSENT)
        if task.cancelled():
            raise closed()
        task.result()

    # See `CallOwner` and `PoolOwner`.

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        self._pool.release(channel, keeps_alive=keeps_alive)

    @property
    def is_busy(self) -> bool:
        return bool(self._calls) or bool(self._streams)

    def on_received(self) -> None:
        self._liveness.on_received(self._loop.time())

    def socket_over(self) -> bool:
        if self._is_draining:
            self._close_if_drained()
        return not self._is_draining

    def retire(self, error: BaseException) -> None:
        if self._is_lost:
            return
        is_first = self._end is None
        if is_first:
            self._end = ConnectionLostError(f"the peer takes no further connection: {error}")
            self._end.__cause__ = error
        self._is_draining = True
        self._pool.fail_waiting(lambda call: lost(error, Delivery.UNSENT))
        if is_first and self._is_established:
            self._owner.on_draining(str(self._end))
        self._close_if_drained()

    def lose(self, error: BaseException) -> None:
        self._over(error)
        self.close()

    def start_task(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        task = start_background_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Liveness of the peer, and the end.

    def _ping(self) -> None:
        """Ask for a document, beside the calls that wait: over a socket of its own if need be."""
        # If other sockets are answered, the peer is not dead, and this one must not be kept for nothing.
        seconds = max(self._options.silence_timeout, self._options.keepalive_timeout, HEAVY_TIMEOUT)
        call = HttpCall(self, self._get(self._service.document), limit=LARGE, deadline=self._loop.time() + 2 * seconds)
        self._pool.start_ping(call)

    def _over(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_draining = True
        self._timer.close()
        self._pool.fail_waiting(lambda call: lost(error, call.delivery))
        for call in tuple(self._calls):
            call.fail(lost(error, call.delivery))
        for stream in tuple(self._streams):
            stream.fail(lost(error, Delivery.UNKNOWN))
        if self._is_established:
            self._owner.on_lost(error)

    def _check_usable(self) -> None:
        if self._is_lost or self._is_draining:
            raise closed()

    def _close_if_drained(self) -> None:
        if self._is_draining and not self._is_lost and not self.is_busy:
            self._over(self._end)
            self.close()

    # Requests.

    def _request(self, route: GatewayRoute, text: bytes, metadata: Metadata, seconds: float) -> bytes:
        headers = [*self._headers]
        if seconds != NEVER:
            headers.append(("Grpc-Timeout", timeout_text(int(seconds * 1000) + 1)))
        for name, value in metadata:
            headers.append(("Authorization", value) if name == "token" else (f"Grpc-Metadata-{name}", value))
        return request_bytes("POST", route.path, headers, text)

    def _get(self, path: str) -> bytes:
        return request_bytes("GET", path, self._headers[:2])
