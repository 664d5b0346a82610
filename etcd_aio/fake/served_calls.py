"""The gRPC calls of one HTTP/2 connection over a socket, carried to the server as those of `engine.py` are."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from grpclib.metadata import decode_timeout, encode_grpc_message
from grpclib.protocol import AbstractHandler, Stream
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from etcd_aio import methods
from etcd_aio.base.aio import start_background_task
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.fake.carrier import Carrier
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.stream import FakeStream
from etcd_aio.fake.unary_call import FakeUnaryCall
from etcd_aio.transport import Metadata

_Headers = list[tuple[str, str]]

_ALL: Final = (*methods.ALL, methods.HEALTH_CHECK, methods.HEALTH_WATCH)
_STREAMS: Final = frozenset(row.path for row in _ALL if row.cardinality is not methods.Cardinality.UNARY)
_KNOWN: Final = frozenset(row.path for row in _ALL)
_BEGINNING: Final = [(":status", "200"), ("content-type", "application/grpc")]
_PREFIX: Final = 5  # bytes before each message: the flag of compression, and the length
_NO_LIMIT: Final = 2**32  # bytes of a reply; the other side has its own limit


class ServedCalls(AbstractHandler):
    """The calls of one connection; each has a task.

    Args:
        connection: the connection.
        on_idle: called when a call has ended and no other is under way.

    Attributes:
        last_id: the number of the last HTTP/2 stream that was taken.
        streams: the streams of messages.
    """

    def __init__(self, connection: Carrier, on_idle: Callable[[], None]) -> None:
        self._connection = connection
        self._on_idle = on_idle
        self._tasks: dict[Stream, asyncio.Task[None]] = {}
        self._is_draining = False
        self.last_id = 0
        self.streams: set[FakeStream] = set()

    @property
    def tasks(self) -> list["asyncio.Task[None]"]:
        """The tasks of the calls under way."""
        return list(self._tasks.values())

    def drain(self) -> None:
        """Take no more calls."""
        self._is_draining = True

    # For grpclib.

    def accept(self, stream: Stream, headers: _Headers, release_stream: Callable[[], None]) -> None:
        if self._is_draining:  # the other side knows from the GOAWAY that it is not served
            release_stream()
            return
        self.last_id = stream.id or 0
        path = dict(headers).get(":path", "")
        task = start_background_task(self._serve(stream, path, headers), name=f"etcd_aio.fake.call {path}")
        self._tasks[stream] = task

        def ended(task: "asyncio.Task[None]") -> None:
            del self._tasks[stream]
            release_stream()
            if not self._tasks:
                self._on_idle()

        task.add_done_callback(ended)

    def cancel(self, stream: Stream) -> None:
        task = self._tasks.get(stream)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    # One call.

    async def _serve(self, stream: Stream, path: str, headers: _Headers) -> None:
        with suppress(ProtocolError):  # the other side has ended the stream, and hears nothing more of it
            await self._answer(_Exchange(stream), path, headers)

    async def _answer(self, exchange: "_Exchange", path: str, headers: _Headers) -> None:
        try:
            metadata, timeout = _read(headers)
            async with asyncio.timeout(timeout):
                if path in _STREAMS:
                    await self._stream(exchange, path, metadata)
                else:
                    payload = await exchange.receive() if path in _KNOWN else b""
                    call = FakeUnaryCall(self._connection, path, payload or b"", metadata)
                    self._connection.link.post(call.serve)
                    await exchange.send(await call.future)
            await exchange.end(StatusCode.OK, "")
        except AttemptFailure as failure:
            await exchange.end(failure.code, failure.message)
        except Refusal as refusal:
            await exchange.end(refusal.code, refusal.text)
        except TimeoutError:
            await exchange.end(StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded")

    async def _stream(self, exchange: "_Exchange", path: str, metadata: Metadata) -> None:
        stream = FakeStream(self._connection, path, metadata, _NO_LIMIT, self.streams.discard)
        self._connection.link.post(stream.serve)
        self.streams.add(stream)
        requests = start_background_task(_pass_requests(exchange, stream), name=f"etcd_aio.fake.requests {path}")
        try:
            while (reply := await stream.receive_whole()) is not None:
                await exchange.send(reply)
        finally:
            requests.cancel()
            stream.cancel()


class _Exchange:
    """The messages of one call, on its HTTP/2 stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._has_begun = False

    async def receive(self) -> bytes | None:
        """The next message; None at the end of the requests."""
        prefix = await self._stream.recv_data(_PREFIX)
        if not prefix:
            return None
        if prefix[0]:
            raise Refusal.other(StatusCode.UNIMPLEMENTED, "fake etcd: compressed messages are not taken")
        return await self._stream.recv_data(int.from_bytes(prefix[1:], "big"))

    async def send(self, message: bytes) -> None:
        """Send a message."""
        await self._begin()
        await self._stream.send_data(b"\x00" + len(message).to_bytes(_PREFIX - 1, "big") + message)

    async def end(self, code: StatusCode, text: str) -> None:
        """Send the status."""
        status = [("grpc-status", f"{int(code)}"), ("grpc-message", encode_grpc_message(text))]
        beginning = [] if self._has_begun else _BEGINNING
        await self._stream.send_headers([*beginning, *status], end_stream=True)
        if self._stream.closable:  # the other side might send more
            self._stream.reset_nowait(ErrorCodes.NO_ERROR)

    async def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._stream.send_headers(list(_BEGINNING))


async def _pass_requests(exchange: _Exchange, stream: FakeStream) -> None:
    try:
        while (request := await exchange.receive()) is not None:
            await stream.send(request)
        await stream.half_close()
    except AttemptFailure:
        pass  # the stream has ended meanwhile; its end is told where replies are sent
    except Refusal as refusal:
        stream.fail(AttemptFailure(refusal.code, refusal.text, Delivery.ANSWERED))


def _read(headers: _Headers) -> tuple[Metadata, float | None]:
    """The metadata and the timeout of a request, in seconds.

    Raises:
        Refusal: it is no request of gRPC.
    """
    fields = dict(headers)
    kind = fields.get("content-type", "")
    if fields.get(":method") != "POST" or not kind.startswith("application/grpc"):
        raise Refusal.other(StatusCode.INVALID_ARGUMENT, f'invalid gRPC request content-type "{kind}"')
    metadata = tuple((name, value) for name, value in headers if not name.startswith((":", "grpc-")))
    try:
        return metadata, decode_timeout(fields["grpc-timeout"]) if "grpc-timeout" in fields else None
    except ValueError:
        raise Refusal.other(StatusCode.INTERNAL, "malformed grpc-timeout") from None
