"""One socket to a gateway: bytes for whatever uses it at the time, and what has really left this machine."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

from etcd_aio.errors import ConnectionLostError
from etcd_aio.transport.handshake import Handshake, HandshakingProtocol

LONGEST_IDLE: Final = 30.0
"""Seconds after which an idle socket is not used again. A request that meets the peer's end of it has an unknown
outcome; common servers and proxies end idle connections after 60 s or more."""


class ChannelUser(Protocol):
    """A call or stream that has a socket."""

    def on_data(self, data: bytes) -> None:
        """Bytes have come."""

    def on_writable(self) -> None:
        """Everything that was written has left this machine."""

    def on_lost(self, error: BaseException) -> None:
        """The socket is gone."""


class Channel(HandshakingProtocol, asyncio.Protocol):
    """A socket, which one call or stream at a time uses.

    Args:
        on_received: called whenever bytes come.
        on_over: called once, at its end, with the reason; None if this side has ended it.
        on_made: called when it is connected. Without it the connected socket needs no handshake.

    Attributes:
        closed: resolves when the transport is closed.
        user: what the bytes are for; None while it is idle.
        is_lost: it is over.
        is_flushed: everything that was written has left this machine.
        was_used: a request was sent over it.
        has_answered: the peer has told who it is, so that the end of this socket is no reason not to connect.
        since: when it was connected, or became idle.
        longest_idle: seconds for which it may be idle, by the peer's own word or `LONGEST_IDLE`.
    """

    def __init__(
        self,
        on_received: Callable[[], None],
        on_over: Callable[["Channel", BaseException | None], None],
        on_made: "Callable[[Channel], None] | None" = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_received = on_received
        self._on_over = on_over
        self._on_made = on_made
        self._transport: asyncio.Transport | None = None
        self._is_reading = True
        self.handshake = Handshake(over_http1=True)
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.user: ChannelUser | None = None
        self.is_lost = False
        self.is_flushed = True
        self.was_used = False
        self.has_answered = False
        self.since = self._loop.time()
        self.longest_idle = LONGEST_IDLE

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        if self.is_lost:
            self._transport.abort()
            return
        # With room for a byte only, `is_flushed` is false while more waits. With no room, asyncio's TLS always waits.
        self._transport.set_write_buffer_limits(high=1, low=0)
        self.since = self._loop.time()
        if self._on_made is None:
            self.handshake.succeed()
        else:
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        if self.is_lost:
            return
        if not self.handshake.is_over:
            self.handshake.on_bytes(data)
        self._on_received()
        if self.user is None:
            self.abort(ConnectionLostError("the peer sent something unasked"))
        else:
            self.user.on_data(data)

    def eof_received(self) -> None:
        self.abort(ConnectionLostError("the peer closed the connection"))

    def pause_writing(self) -> None:
        self.is_flushed = False

    def resume_writing(self) -> None:
        self.is_flushed = True
        if self.user is not None:
            self.user.on_writable()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._over(exc or ConnectionLostError("the peer closed the connection"))
        self._transport = None  # with TLS a reference cycle
        if not self.closed.done():
            self.closed.set_result(None)

    # Called by users and owners.

    @property
    def takes_calls(self) -> bool:
        return self.has_answered or self.is_open

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent over it."""
        return not self.is_lost and self._transport is not None and not self._transport.is_closing()

    @property
    def unflushed(self) -> int:
        """Bytes that have not left this machine."""
        return 0 if self._transport is None or self.is_flushed else self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Write bytes, now or as soon as the peer takes them."""
        if self._transport is not None and data:
            self._transport.write(data)

    def let_read(self, is_wanted: bool) -> None:
        """Go on reading, or stop, so that the peer has to wait."""
        if self._transport is not None and is_wanted is not self._is_reading and not self._transport.is_closing():
            self._is_reading = is_wanted
            if is_wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def abort(self, error: BaseException | None) -> None:
        """End it at once; its user and owner get `error`."""
        if not self.is_lost:
            self._over(error)
            if self._transport is not None:
                self._transport.abort()
            elif not self.closed.done():
                self.closed.set_result(None)

    def _over(self, error: BaseException | None) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        user, self.user = self.user, None
        if self.has_answered:
            self.handshake.succeed()
        else:
            self.handshake.fail(error)
        if user is not None:
            user.on_lost(error or ConnectionLostError("the connection was closed"))
        self._on_over(self, error)
