"""A connection to one endpoint over HTTP/1: a pool of sockets for unary calls, and one more for each open stream.

HTTP/1 sends one request at a time over a socket, so as many calls run at once as there are sockets. At least one is
kept: when the last one ends, as proxies end what is idle, another is dialled and asked who it is, which tells whether
the endpoint is still there. If that or any dial fails, the connection takes nothing new; what runs may finish, and the
owner dials again. If the last socket is reset while nothing else is open, the connection is lost at once.

No request is ever sent twice here: a request whose socket ends has an unknown outcome, unless a part of it never left.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any, Final, cast

from etcd_aio.aio import start_background_task
from etcd_aio.closing import Unwinding, unwound
from etcd_aio.deadline import NEVER
from etcd_aio.errors import (
    AttemptFailure,
    ConnectError,
    ConnectionLostError,
    Delivery,
    StatusCode,
)
from etcd_aio.methods import Cardinality
from etcd_aio.transport.framing import check_prefix
from etcd_aio.transport.gateway.call import Answer, Call
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.http1 import request_bytes
from etcd_aio.transport.gateway.lines import LineStream
from etcd_aio.transport.gateway.mapping import Route
from etcd_aio.transport.gateway.replies import reply_of, unserved
from etcd_aio.transport.gateway.service import Service
from etcd_aio.transport.gateway.socket import WebSocketStream
from etcd_aio.transport.gateway.stream import JsonStream
from etcd_aio.transport.handshake import connect
from etcd_aio.transport.interface import Collect, ConnectionOwner, Metadata, Target, TransportOptions
from etcd_aio.transport.liveness import HEAVY_TIMEOUT, Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from etcd_aio.transport.metadata import token_of
from etcd_aio.transport.names import Names
from etcd_aio.transport.request_headers import timeout_text
from etcd_aio.transport.response import closed, expired, lost
from etcd_aio.transport.uploads import LARGE

MOST_SOCKETS: Final = 64
"""For unary calls to one endpoint; further calls wait. Browsers open 6, Go's HTTP client any number."""

_BUSY_LOOP: Final = 1.0  # seconds; a socket that ends sooner and has served nothing is not replaced


class GatewayConnection:
    """See `interface.Connection`.

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
        self._names = names
        self._service = service
        self._headers = (
            ("Host", target.authority),
            ("User-Agent", options.user_agent),
            ("Content-Type", "application/json"),
        )
        self._channels: set[Channel] = set()  # for unary calls
        self._idle: list[Channel] = []  # of these, the one that was used last comes last
        self._others: set[Channel] = set()  # of streams
        self._dials: set[asyncio.Task[Any]] = set()  # for unary calls
        self._tasks: set[asyncio.Task[Any]] = set()  # all that run
        self._waiting: deque[Call] = deque()
        self._calls: set[Call] = set()
        self._streams: set[JsonStream] = set()
        self._no_streams = ""
        self._is_established = False
        self._is_draining = False
        self._is_lost = False
        self._end: BaseException | None = None
        self._liveness = Liveness(self._loop.time(), options)
        self._timer = LivenessTimer(self._liveness, self._ping, self._dead)
        self._reaper: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Dial, and check that the peer is the right server. Raises what `Engine.connect` does."""
        seconds = self._options.connect_timeout
        try:
            await connect(self._target, self._names, seconds, self._first_channel, over_http1=True)
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
        call = Call(
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
        self._start(call)
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
        reply = reply_of(answer.status, answer.headers, answer.body, route.to_wire)
        failure = check_prefix(0, len(reply), limit)
        if failure is not None:
            raise failure
        return reply

    async def open_stream(self, path: str, metadata: Metadata, deadline: float) -> JsonStream:
        if deadline <= self._loop.time():
            raise expired(Delivery.UNSENT)
        self._check_usable()
        route = self._service.routes(path)
        if route is None or route.cardinality is Cardinality.UNARY:
            raise unserved(path)
        if route.cardinality is Cardinality.BIDIRECTIONAL:
            if self._no_streams:
                raise AttemptFailure(StatusCode.UNIMPLEMENTED, self._no_streams, Delivery.ANSWERED)
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
        channels = (*self._channels, *self._others)
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

    # Calls and their sockets.

    def _start(self, call: Call) -> None:
        channel = self._take_idle()
        if channel is not None:
            call.begin(channel)
            return
        self._waiting.append(call)
        self._dial_more()

    def _take_idle(self) -> Channel | None:
        now = self._loop.time()
        while self._idle:
            channel = self._idle.pop()
            if channel.is_open:
                if now - channel.since < channel.longest_idle:
                    return channel
                self._channels.discard(channel)  # first: another is dialled for the call, not for its end
                channel.abort(None)
        return None

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """See `CallOwner`."""
        if not keeps_alive or self._is_lost:
            channel.abort(None)
        else:
            self._offer(channel)

    def _offer(self, channel: Channel) -> None:
        """Give a free socket to the call that has waited longest; else keep it."""
        while self._waiting:
            call = self._waiting.popleft()
            if not call.future.done():
                call.begin(channel)
                return
        channel.since = self._loop.time()
        self._idle.append(channel)
        if len(self._idle) > 1 and self._reaper is None:
            self._reaper = self._loop.call_later(channel.longest_idle, self._reap)

    def _reap(self) -> None:
        """Close what has been idle for long, except for one."""
        self._reaper = None
        now = self._loop.time()
        old = [channel for channel in self._idle[:-1] if now - channel.since >= channel.longest_idle]
        for channel in old:
            self._idle.remove(channel)
            self._channels.discard(channel)
            channel.abort(None)
        if len(self._idle) > 1:
            self._reaper = self._loop.call_at(self._idle[0].since + self._idle[0].longest_idle, self._reap)

    def _dial_more(self, spare: int = 0) -> None:
        """Dial for the calls that wait, and so many more."""
        room = MOST_SOCKETS + spare - len(self._channels) - len(self._dials)
        if room <= 0:
            return
        # No more than count: many thousand may wait, and each of them comes here.
        waiting = sum(1 for _ in islice((call for call in self._waiting if not call.future.done()), MOST_SOCKETS))
        for _ in range(min(waiting + spare - len(self._dials), room)):
            self._start_dial(self._dial())

    def _start_dial(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._start_task(work, f"etcd_aio dial {self._target.authority}")
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    async def _dial_spare(self) -> None:
        """Dial a socket that nothing waits for, and ask the peer again who it is."""
        try:
            await connect(
                self._target, self._names, self._options.connect_timeout, self._first_channel, over_http1=True
            )
        except (OSError, ConnectError) as error:
            self._retire(error)
            return
        self._dials.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self._dial_more()  # a peer that ends each socket behind an answer has left none for what waits

    async def _dial(self) -> None:
        try:
            channel = await self._connect(self._channel_over)
        except (OSError, ConnectError) as error:
            self._retire(error)
            return
        self._channels.add(channel)
        # At once: if the socket ends in this turn of the loop, no dial must seem to be under way.
        self._dials.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self._offer(channel)

    async def _connect(self, on_over: "Any") -> Channel:
        """A new socket. Raises OSError or ConnectError."""
        seconds = self._options.connect_timeout
        make = lambda: Channel(self._on_received, on_over)  # noqa: E731 - short
        channel = await connect(self._target, self._names, seconds, make, over_http1=True)
        if self._is_lost:
            channel.abort(None)
        if not channel.is_open:
            raise ConnectError("the peer ended the connection as soon as it was open")
        return channel

    def _channel_over(self, channel: Channel, error: BaseException | None) -> None:
        """A socket of unary calls has ended."""
        is_ours = channel in self._channels
        self._channels.discard(channel)
        if channel in self._idle:
            self._idle.remove(channel)
        if not is_ours or self._is_lost or not self._is_established:
            return
        if self._is_draining:
            self._close_if_drained()
        elif self._waiting:
            self._dial_more()
        elif not self._channels and not self._dials:
            if error is not None and not channel.was_used and self._loop.time() - channel.since < _BUSY_LOOP:
                self._retire(error)
            elif error is not None and not self._is_end_of_idle(error):
                self._over(error)
                self.close()
            else:
                self._start_dial(self._dial_spare())

    def _is_end_of_idle(self, error: BaseException) -> bool:
        """Whether a socket has ended in peace, or something else is open: then the endpoint may still be there."""
        return isinstance(error, ConnectionLostError) or bool(self._calls) or bool(self._streams)

    def _first_channel(self) -> Channel:
        """The socket that a new connection begins with: it asks for the document that tells what the peer is."""
        channel = Channel(self._on_received, self._channel_over, self._ask_who)
        self._channels.add(channel)
        return channel

    def _ask_who(self, channel: Channel) -> None:
        def on_answered(channel: Channel, keeps_alive: bool) -> None:
            try:
                self._no_streams = self._service.recognise(call.future.result())
            except ConnectError as error:
                channel.handshake.fail(error)
            else:
                channel.has_answered = True
                channel.handshake.succeed()
            self.release(channel, keeps_alive=keeps_alive)

        call = Call(_Question(on_answered), self._get(self._service.document), limit=LARGE, deadline=NEVER)

        def on_answer(future: "asyncio.Future[Answer]") -> None:
            failure = None if future.cancelled() else future.exception()
            if failure is not None and not channel.handshake.is_over:
                channel.handshake.fail(ConnectError(str(failure)))

        call.future.add_done_callback(on_answer)
        call.begin(channel)

    # Streams.

    async def _probe(self, metadata: Metadata, deadline: float) -> None:
        """Let the server judge what a WebSocket cannot carry: that a leader is needed; and the token, beforehand.

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

    def _make_stream(self, route: Route, metadata: Metadata) -> WebSocketStream | LineStream:
        if route.cardinality is Cardinality.BIDIRECTIONAL:
            return WebSocketStream(route, self._target, self._options, token_of(metadata), self._stream_closed)
        limit = self._options.max_receive_bytes
        return LineStream(route, limit, lambda text: self._request(route, text, metadata, NEVER), self._stream_closed)

    async def _open_stream(self, stream: WebSocketStream | LineStream) -> None:
        def on_over(channel: Channel, error: BaseException | None) -> None:
            self._others.discard(channel)

        try:
            channel = await self._connect(on_over)
        except (OSError, ConnectError) as error:
            self._retire(error)
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
        task = self._start_task(work, name)
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

    # The peer's life, and the end.

    def _on_received(self) -> None:
        self._liveness.on_received(self._loop.time())

    def _ping(self) -> None:
        """Ask for a document, beside the calls that wait: over a socket of its own if need be."""
        # If other sockets are answered, the peer is not dead, and this one must not be kept for nothing.
        seconds = max(self._options.silence_timeout, self._options.keepalive_timeout, HEAVY_TIMEOUT)
        call = Call(self, self._get(self._service.document), limit=LARGE, deadline=self._loop.time() + 2 * seconds)
        channel = self._take_idle()
        if channel is not None:
            call.begin(channel)
        else:
            self._waiting.appendleft(call)
            self._dial_more(spare=1)

    def _dead(self, error: ConnectionLostError) -> None:
        self._over(error)
        self.close()

    def _retire(self, error: BaseException) -> None:
        """Take nothing new, for this reason; what runs may finish."""
        if self._is_lost:
            return
        is_first = self._end is None
        if is_first:
            self._end = ConnectionLostError(f"the peer takes no further connection: {error}")
            self._end.__cause__ = error
        self._is_draining = True
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.fail(lost(error, Delivery.UNSENT))
        if is_first and self._is_established:
            self._owner.on_draining(str(self._end))
        self._close_if_drained()

    def _over(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_draining = True
        self._timer.close()
        if self._reaper is not None:
            self._reaper.cancel()
        for call in (*self._waiting, *self._calls):
            call.fail(lost(error, call.delivery))
        self._waiting.clear()
        for stream in tuple(self._streams):
            stream.fail(lost(error, Delivery.UNKNOWN))
        if self._is_established:
            self._owner.on_lost(error)

    def _check_usable(self) -> None:
        if self._is_lost or self._is_draining:
            raise closed()

    def _close_if_drained(self) -> None:
        if self._is_draining and not self._is_lost and not self._calls and not self._streams:
            self._over(self._end)
            self.close()

    # Requests.

    def _request(self, route: Route, text: bytes, metadata: Metadata, seconds: float) -> bytes:
        headers = [*self._headers]
        if seconds != NEVER:
            headers.append(("Grpc-Timeout", timeout_text(int(seconds * 1000) + 1)))
        for name, value in metadata:
            headers.append(("Authorization", value) if name == "token" else (f"Grpc-Metadata-{name}", value))
        return request_bytes("POST", route.path, headers, text)

    def _get(self, path: str) -> bytes:
        return request_bytes("GET", path, self._headers[:2])

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        task = start_background_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Question:
    """The owner of the call that asks a peer who it is. See `CallOwner`.

    Args:
        on_answered: gets the socket, and whether it can be used again.
    """

    def __init__(self, on_answered: Callable[[Channel, bool], None]) -> None:
        self._on_answered = on_answered

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """See `CallOwner`."""
        self._on_answered(channel, keeps_alive)
