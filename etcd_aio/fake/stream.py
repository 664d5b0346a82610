"""A stream of messages to a fake member."""

import asyncio
from collections.abc import Callable, Iterator

from etcd_aio.base.aio import wake
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.fake.carrier import Carrier
from etcd_aio.fake.pieces import PIECE, pieces_of
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.transport import BEGINNING, Collect, Collector, Metadata, check_prefix


class FakeStream:
    """One stream of messages. See `transport.Stream`.

    As an arrival it stands for its oldest request that was not served yet: only one of a stream is on its way.

    Args:
        limit: bytes of the largest message that is received.
        on_over: called with the stream when it is over for its caller, perhaps repeatedly.
        collect: makes the collector of a large message; None to receive it whole.
    """

    def __init__(
        self,
        connection: Carrier,
        path: str,
        metadata: Metadata,
        limit: int,
        on_over: Callable[["FakeStream"], None],
        collect: Collect | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._metadata = metadata
        self._limit = limit
        self._on_over = on_over
        self._collect = collect
        self._collecting: tuple[Collector, Iterator[bytes]] | None = None  # a large message, and its missing pieces
        self._peer: ServerStream | None = None
        self._requests: list[Callable[[ServerStream], None]] = []
        self._is_on_its_way = True  # its headers are
        self._arrived = 0  # how many replies and ends have come so far, and were not received
        self._is_half_closed = False
        self._failure: AttemptFailure | None = None
        self._is_over = False  # for the sender; what has arrived can still be received
        self._waiter: asyncio.Future[None] | None = None

    async def send(self, payload: bytes) -> None:
        if self._is_over or self._is_half_closed:
            over = AttemptFailure(StatusCode.CANCELLED, "the stream takes no more", Delivery.UNKNOWN)
            raise self._failure or self._refusal() or over
        self._post(lambda peer: self._connection.server.receive(peer, payload))
        try:
            await asyncio.sleep(0)  # a sender that never stops must not hold up the loop
        except BaseException:  # a cancellation ends a stream, as on the other engines
            self.cancel()
            raise

    async def half_close(self) -> None:
        if not self._is_half_closed and not self._is_over:
            self._is_half_closed = True
            self._post(lambda peer: peer.half_close())

    async def receive(self) -> bytes | Collector | None:
        if self._collecting is None:
            message = await self.receive_whole()
            if message is None or self._collect is None or len(message) <= PIECE:
                return message
            self._collecting = self._collect(), pieces_of(message)
        collector, pieces = self._collecting
        for piece in pieces:  # without a turn for other tasks, whose cancellations lose no message
            collector.feed(piece)
            collector.work()
            if collector.has_part:
                return collector
        self._collecting = None
        collector.end()
        return collector

    async def receive_whole(self) -> bytes | None:
        """Receive the next message as `receive` does, but never collect it."""
        while True:
            peer = self._peer
            is_here = self._arrived > 0 and not self._connection.link.is_silent
            if peer is not None and peer.out and is_here:
                if peer.cut_after == 0:
                    peer.out.clear()
                    self._connection.lose(ConnectionResetError("the peer reset the connection"))
                    continue
                if peer.cut_after is not None:
                    peer.cut_after -= 1
                message = peer.out.popleft()
                self._arrived -= 1
                failure = check_prefix(0, len(message), self._limit)
                if failure is not None:
                    failure.beginning = message[:BEGINNING]
                    self.fail(failure)
                    peer.out.clear()
                    raise failure
                return message
            if peer is not None and peer.is_over and is_here:
                self._end()
                refusal = self._refusal()
                if refusal is not None:
                    raise refusal
                return None
            if self._failure is not None:
                self._end()
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def cancel(self) -> None:
        self.fail(AttemptFailure(StatusCode.CANCELLED, "the stream was cancelled", Delivery.UNKNOWN))
        self._end()

    def fail(self, failure: AttemptFailure) -> None:
        """End the stream; what has arrived is still received."""
        if self._failure is None:
            self._failure = failure
            self._is_over = True
            self._close_peer()
            self._wake()

    def on_resume(self) -> None:
        """Receive what has come while nothing came through."""
        self._wake()

    # The way to the server.

    def serve(self) -> None:
        link = self._connection.link
        if link.hold(self.serve):
            return
        self._is_on_its_way = False
        if self._is_over or not link.is_up:
            return
        if self._peer is None:
            self._open()
        elif self._requests:
            self._requests.pop(0)(self._peer)
        if self._requests:
            self._on_its_way()

    def _post(self, request: Callable[[ServerStream], None]) -> None:
        self._requests.append(request)
        if not self._is_on_its_way:
            self._on_its_way()

    def _on_its_way(self) -> None:
        self._is_on_its_way = True
        self._connection.link.post(self.serve)

    def _open(self) -> None:
        try:
            self._peer = self._connection.server.stream(self._connection.link.host.node, self._path, self._metadata)
        except Refusal as refusal:
            self.fail(AttemptFailure(refusal.code, refusal.text, Delivery.ANSWERED))
        else:
            self._peer.on_output = self._on_output

    # Inside.

    def _on_output(self) -> None:
        if self._peer is not None and self._peer.is_over:
            self._is_over = True
        self._connection.link.answer(self._arrive)

    def _arrive(self) -> None:
        self._arrived += 1
        self._wake()

    def _refusal(self) -> AttemptFailure | None:
        """The status that the server has ended the stream with; None for OK."""
        refusal = None if self._peer is None else self._peer.refusal
        return None if refusal is None else AttemptFailure(refusal.code, refusal.text, Delivery.ANSWERED)

    def _wake(self) -> None:
        if self._peer is not None and self._peer.is_over:
            self._is_over = True
        wake(self._waiter)

    def _end(self) -> None:
        self._is_over = True
        self._close_peer()
        self._on_over(self)

    def _close_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
