"""The sockets of a connection's unary calls: which of them a call gets, and how many there are.

HTTP/1 sends one request at a time over a socket, so as many calls run at once as there are sockets. At least one is
kept: when the last one ends, as proxies end what is idle, another is dialled and asked who it is, which tells whether
the endpoint is still there. If the last socket is reset while nothing else is open, the connection is lost at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any, Final, Protocol, cast

from etcd_aio.base.aio import start_timer, start_timer_at
from etcd_aio.errors import AttemptFailure, ConnectError, ConnectionLostError
from etcd_aio.transport.gateway.call import HttpCall
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.recognition import Recognition
from etcd_aio.transport.gateway.service import Service
from etcd_aio.transport.handshake import connect
from etcd_aio.transport.interface import Target, TransportOptions
from etcd_aio.transport.names import Names

MOST_SOCKETS: Final = 64
"""For unary calls to one endpoint; further calls wait, and a ping gets one more. Browsers open 6, Go's HTTP client any
number."""

_BUSY_LOOP: Final = 1.0  # seconds; a socket that ends sooner and has served nothing is not replaced


class PoolOwner(Protocol):
    """The connection, as its pool sees it."""

    @property
    def is_busy(self) -> bool:
        """Whether calls or streams are open."""
        ...

    def on_received(self) -> None:
        """Bytes have come over some socket."""

    def socket_over(self) -> bool:
        """A socket of unary calls has ended. Returns whether others may take its place."""
        ...

    def retire(self, error: BaseException) -> None:
        """A dial has failed, so nothing new can be taken."""

    def lose(self, error: BaseException) -> None:
        """The peer is gone."""

    def start_task(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Run `work` in a task that ends with the connection."""
        ...


class Pool:
    """See above. It is used after `open` only, besides `close`.

    Args:
        target: the server.
        names: resolves host names.
        options: limits and times.
        service: what the server should be.
        get: makes the request for a document.
        owner: the connection.

    Attributes:
        no_streams: why the server has no bidirectional streams; empty if it has.
    """

    def __init__(
        self,
        target: Target,
        names: Names,
        options: TransportOptions,
        service: Service,
        get: Callable[[str], bytes],
        owner: PoolOwner,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._names = names
        self._options = options
        self._service = service
        self._get = get
        self._owner = owner
        self._channels: set[Channel] = set()
        self._idle: list[Channel] = []  # of these, the one that was used last comes last
        self._dials: set[asyncio.Task[Any]] = set()
        self._waiting: deque[HttpCall] = deque()
        self._ping: HttpCall | None = None
        self._reaper: asyncio.TimerHandle | None = None
        self._is_open = False
        self._is_closed = False
        self.no_streams = ""

    async def open(self) -> None:
        """Connect the first socket, and check that the peer is the right server. Raises what `connect` does."""
        await self._recognised_socket()
        self._is_open = True

    def close(self) -> tuple[Channel, ...]:
        """End all sockets, and return them. Safe to repeat."""
        self._is_closed = True
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        channels = tuple(self._channels)
        for channel in channels:
            channel.abort(None)
        return channels

    def start(self, call: HttpCall) -> None:
        """Give the call a socket, now or as soon as it is its turn."""
        channel = self._take_idle()
        if channel is not None:
            call.begin(channel)
            return
        self._waiting.append(call)
        self._dial_more()

    def start_ping(self, call: HttpCall) -> None:
        """Give a ping a socket before all calls: one more if need be, which ends with it."""
        channel = self._take_idle()
        if channel is not None:
            call.begin(channel)
            return
        self._ping = call
        self._waiting.appendleft(call)
        self._dial_more(spare=1)

    def fail_waiting(self, failure: Callable[[HttpCall], AttemptFailure]) -> None:
        """End the calls that wait for a socket."""
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.fail(failure(call))

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """See `CallOwner`."""
        if not keeps_alive or self._is_closed:
            channel.abort(None)
        else:
            self._offer(channel)

    async def connect(self, on_over: Callable[[Channel, BaseException | None], None]) -> Channel:
        """A new socket, which is not of the pool. Raises OSError or ConnectError."""
        make = lambda: Channel(self._owner.on_received, on_over)  # noqa: E731 - short
        channel = await connect(self._target, self._names, self._options, make, over_http1=True)
        if self._is_closed:
            channel.abort(None)
        if not channel.is_open:
            raise ConnectError("the peer ended the connection as soon as it was open")
        return channel

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

    def _offer(self, channel: Channel) -> None:
        """Give a free socket to the call that has waited longest; else keep it."""
        if len(self._channels) > MOST_SOCKETS and not self._is_ping_next():
            self._channels.discard(channel)  # first: another is dialled in place of one that has ended
            channel.abort(None)
            return
        while self._waiting:
            call = self._waiting.popleft()
            if not call.future.done():
                call.begin(channel)
                return
        channel.since = self._loop.time()
        self._idle.append(channel)
        if len(self._idle) > 1 and self._reaper is None:
            self._reaper = start_timer(channel.longest_idle, self._reap)

    def _is_ping_next(self) -> bool:
        ping = self._ping
        return ping is not None and not ping.future.done() and bool(self._waiting) and self._waiting[0] is ping

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
            self._reaper = start_timer_at(self._idle[0].since + self._idle[0].longest_idle, self._reap)

    # Dials.

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
        task = self._owner.start_task(work, name=f"etcd_aio dial {self._target.authority}")
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    async def _dial_spare(self) -> None:
        """Dial a socket that nothing waits for, and ask the peer again who it is."""
        try:
            await self._recognised_socket()
        except (OSError, ConnectError) as error:
            self._owner.retire(error)
            return
        self._dials.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self._dial_more()  # a peer that ends each socket behind an answer has left none for what waits

    async def _dial(self) -> None:
        try:
            channel = await self.connect(self._channel_over)
        except (OSError, ConnectError) as error:
            self._owner.retire(error)
            return
        self._channels.add(channel)
        # At once: if the socket ends in this turn of the loop, no dial must seem to be under way.
        self._dials.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        self._offer(channel)

    async def _recognised_socket(self) -> None:
        """A socket that joins the pool once the peer has told who it is."""
        recognition = Recognition(self._service, self._get, self._on_recognised, self)

        def make() -> Channel:
            channel = Channel(self._owner.on_received, self._channel_over, recognition.begin)
            self._channels.add(channel)
            return channel

        await connect(self._target, self._names, self._options, make, over_http1=True)

    def _on_recognised(self, no_streams: str) -> None:
        self.no_streams = no_streams

    def _channel_over(self, channel: Channel, error: BaseException | None) -> None:
        """A socket has ended."""
        is_ours = channel in self._channels
        self._channels.discard(channel)
        if channel in self._idle:
            self._idle.remove(channel)
        if not is_ours or self._is_closed or not self._is_open or not self._owner.socket_over():
            return
        if self._waiting:
            self._dial_more()
        elif not self._channels and not self._dials:
            if error is not None and not channel.was_used and self._loop.time() - channel.since < _BUSY_LOOP:
                self._owner.retire(error)
            elif error is not None and not self._is_end_of_idle(error):
                self._owner.lose(error)
            else:
                self._start_dial(self._dial_spare())

    def _is_end_of_idle(self, error: BaseException) -> bool:
        """Whether a socket has ended in peace, or something else is open: then the endpoint may still be there."""
        return isinstance(error, ConnectionLostError) or self._owner.is_busy
