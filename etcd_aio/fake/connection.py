"""A connection to a fake member within the process, as its client sees it."""

import asyncio
from typing import Final

from etcd_aio.base.closing import Unwinding
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, LocalReason, StatusCode
from etcd_aio.fake.link import Link
from etcd_aio.fake.pieces import PIECE, pieces_of
from etcd_aio.fake.server import FakeServer
from etcd_aio.fake.stream import FakeStream
from etcd_aio.fake.unary_call import FakeUnaryCall
from etcd_aio.transport import (
    Collect,
    ConnectionOwner,
    Metadata,
    TransportOptions,
    check_prefix,
    closed,
    expired,
    lost,
)

_NEVER: Final = float("inf")


class FakeConnection:
    """One connection. See `transport.Connection`."""

    def __init__(self, link: Link, server: FakeServer, options: TransportOptions, owner: ConnectionOwner) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = owner
        self._options = options
        self._is_lost = False
        self._is_draining = False
        self._calls: dict[FakeUnaryCall, None] = {}
        self._streams: dict[FakeStream, bool] = {}  # and whether its silence means nothing
        self._expiry: asyncio.TimerHandle | None = None
        self._silence: asyncio.TimerHandle | None = None
        self.link = link
        self.server = server
        link.add(self)

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
        if deadline <= self._loop.time():
            raise expired(Delivery.UNSENT)
        self._check()
        call = FakeUnaryCall(self, path, payload, metadata, deadline, may_move=may_move)
        self._calls[call] = None
        self.link.post(call.serve)
        self._watch(deadline)
        if self.link.is_silent:
            self.on_pause()
        try:
            reply = await call.future
        finally:
            self._calls.pop(call, None)
            if self._is_draining:
                self._close_if_drained()
        failure = check_prefix(0, len(reply), self._options.max_receive_bytes)
        if failure is not None:
            raise failure
        if collect is None or len(reply) <= PIECE:
            return reply
        collector = collect()
        for piece in pieces_of(reply):
            collector.feed(piece)
            collector.work()
            await asyncio.sleep(0)
        return b""

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> "FakeStream":
        if deadline <= self._loop.time():
            raise expired(Delivery.UNSENT)
        self._check()
        stream = FakeStream(self, path, metadata, self._options.max_receive_bytes, self._stream_over, collect)
        self._streams[stream] = is_quiet
        self.link.post(stream.serve)
        if self.link.is_silent:
            self.on_pause()
        try:
            await asyncio.sleep(0)
        except BaseException:  # a cancellation: the caller gets no stream that it could cancel
            stream.cancel()
            raise
        return stream

    def close(self) -> Unwinding:
        self.lose(None)
        return ()

    async def aclose(self) -> None:
        self.lose(None)

    def drain(self) -> None:
        self._is_draining = True
        self._close_if_drained()

    def give_up(self, reason: str) -> None:
        for call in tuple(self._calls):
            if call.may_move:
                call.fail(AttemptFailure(StatusCode.UNAVAILABLE, reason, Delivery.UNKNOWN, reason=LocalReason.GIVEN_UP))

    # For the host.

    def lose(self, error: BaseException | None) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self.link.discard(self)
        for timer in (self._expiry, self._silence):
            if timer is not None:
                timer.cancel()
        for call in tuple(self._calls):
            call.fail(lost(error, Delivery.UNKNOWN))
        for stream in tuple(self._streams):
            stream.fail(lost(error, Delivery.UNKNOWN))
        self._owner.on_lost(error)

    def go_away(self, reason: str) -> None:
        """Announce that no new calls are taken; those under way finish."""
        if not self._is_draining:
            self._is_draining = True
            self._owner.on_draining(reason)
            self._close_if_drained()

    def on_pause(self) -> None:
        options = self._options
        seconds = _NEVER
        if not all(self._streams.values()):
            seconds = options.keepalive_time + options.keepalive_timeout
        if self._calls:
            seconds = options.silence_time + options.silence_timeout
        if seconds != _NEVER and (self._silence is None or self._silence.when() > self._loop.time() + seconds):
            if self._silence is not None:
                self._silence.cancel()
            self._silence = self._loop.call_later(seconds, self._silent)

    def on_resume(self) -> None:
        for stream in tuple(self._streams):
            stream.on_resume()

    # Inside.

    def _stream_over(self, stream: FakeStream) -> None:
        self._streams.pop(stream, None)
        self._close_if_drained()

    def _check(self) -> None:
        if self._is_lost or self._is_draining:
            raise closed()

    def _close_if_drained(self) -> None:
        if self._is_draining and not self._calls and not self._streams:
            self.lose(None)

    def _silent(self) -> None:
        self._silence = None
        if self.link.is_silent and (self._calls or not all(self._streams.values())):
            self.lose(ConnectionLostError("the peer did not answer a ping"))

    def _watch(self, deadline: float) -> None:
        """Let the timer fire at the earliest deadline: one timer, since almost all calls end long before theirs."""
        if deadline != _NEVER and (self._expiry is None or self._expiry.when() > deadline):
            if self._expiry is not None:
                self._expiry.cancel()
            self._expiry = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        now = self._loop.time()
        for call in tuple(self._calls):
            if call.deadline <= now:
                call.fail(expired(Delivery.UNKNOWN))
        self._watch(min((call.deadline for call in self._calls if call.deadline > now), default=_NEVER))
