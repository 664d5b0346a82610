"""The sans-IO HTTP/2 client for gRPC. It reads the frames that are received; `outgoing` is the sending half.

Pure: it interprets frames, and has neither a socket nor a clock (`now` is an argument).

How a caller uses it:
  - after `receive_data`, and after anything that sends, it writes what `outgoing.data_to_send` returns, in order, at
    least once per turn of its loop;
  - streams are called directly (`Http2Stream.on_...`), the caller by the callbacks given at construction;
  - after `on_over` nothing is accepted or produced except the last GOAWAY.

Windows. The connection's receive window is opened to its maximum, and returned as bytes arrive, read or not. So an
unread stream blocks only itself, by its own window. This bounds the memory of a stream, and of a connection to that
times its streams.

GOAWAY. The peer names the last stream that it will process. Streams above it fail as unprocessed, the others finish,
and new ones are refused. Go's servers send it twice, first with the highest id so that requests under way are still
accepted; both are handled in the same way.
"""

from collections.abc import Callable
from typing import Final, Generic

from etcd_aio.http2 import frames
from etcd_aio.http2.accelerator import CallsAccelerator
from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode, Setting
from etcd_aio.http2.headers import MAX_HEADER_LIST_SIZE, HeaderDecoder
from etcd_aio.http2.limits import FloodBudget
from etcd_aio.http2.outgoing import Outgoing, S
from etcd_aio.http2.stream import RETURN_AFTER, STREAM_WINDOW

_CONNECTION_RETURN_AFTER: Final = 2**28
_MAX_CONTINUATION_BYTES: Final = 2 * MAX_HEADER_LIST_SIZE  # encoded blocks are smaller than what they decode to
# Decoding takes three microseconds for a field, which counts 32 bytes and more. So a block costs by its decoded size.
_HEADERS_FOR_TOKEN: Final = 128  # bytes of a useless block that cost a token
_FREE_HEADERS: Final = 4096  # the same of any block; more than a gRPC server sends
_GREETING: Final = (
    frames.PREFACE
    + frames.settings(
        {
            Setting.ENABLE_PUSH: 0,
            Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            Setting.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_SIZE,
        }
    )
    + frames.window_update(0, frames.MAX_WINDOW - frames.DEFAULT_WINDOW)
)

_unpack_header = frames.FRAME_HEADER.unpack_from


class Http2Connection(Generic[S]):
    """One connection's state.

    Args:
        now: the current time.
        on_settings: called when the peer's first SETTINGS arrive: it speaks HTTP/2.
        on_goaway: called with the reason when no new stream can be opened: after a GOAWAY, or when all ids are used.
        on_over: called with the error when the peer violated the protocol.
        secrets: names of request headers that must not enter a header compression table.
        accelerator: processes the usual frames of unary calls; None if there is none.

    Attributes:
        outgoing: the sending half.
        is_over: whether the connection is closed.
    """

    def __init__(
        self,
        now: float,
        *,
        on_settings: Callable[[], None],
        on_goaway: Callable[[str], None],
        on_over: Callable[[RemoteProtocolError], None],
        secrets: frozenset[str] = frozenset(),
        accelerator: CallsAccelerator | None = None,
    ) -> None:
        self._accelerator = accelerator
        self._on_settings = on_settings
        self._on_goaway = on_goaway
        self._on_over = on_over
        self._now = now
        self._budget = FloodBudget(now)
        self.outgoing: Outgoing[S] = Outgoing(
            _GREETING,
            on_exhausted=self._on_goaway,
            on_given_up=self._budget.gave_up,
            secrets=secrets,
            accelerator=accelerator,
        )
        self._streams = self.outgoing.streams
        self._tail = b""
        self._decoder = HeaderDecoder()
        self._receive_window = frames.MAX_WINDOW
        self._to_return = 0
        self._has_settings = False
        self._required: int | None = frames.SETTINGS  # the only frame type allowed now; None for any
        self._goaway_last: int | None = None
        self._block_parts: list[bytes] = []
        self._block_size = 0
        self._block_stream = 0
        self._block_ends = False
        self.is_over = False

    # For the caller.

    @property
    def is_amid_frame(self) -> bool:
        """Whether the received bytes end within a frame, so that more come soon."""
        return bool(self._tail)

    def consumed(self, stream: S, size: int) -> None:
        """Bytes of a stream were read: the peer may send as many more."""
        stream.to_return += size
        if stream.to_return >= RETURN_AFTER and stream.is_open and not self.is_over:
            self.outgoing.write(frames.window_update(stream.stream_id, stream.to_return))
            stream.receive_window += stream.to_return
            stream.to_return = 0

    def close(self) -> tuple[S, ...]:
        """Close the connection: no callback is called any more. Returns the streams that this ends."""
        self.is_over = True
        self._on_settings, self._on_goaway, self._on_over = lambda: None, lambda reason: None, lambda error: None
        return self.outgoing.close()

    # Receiving.

    def receive_data(self, data: bytes | memoryview, now: float) -> None:
        """Process bytes from the peer, which are copied once. Never raises: protocol errors are passed to `on_over`."""
        if self.is_over:
            return
        self._now = now
        buffer = b"".join((self._tail, data)) if self._tail else bytes(data)
        position = 0
        size = len(buffer)
        accelerator = self._accelerator
        try:
            while True:
                if accelerator is not None and self._required is None:
                    position = self._advance(accelerator, buffer, position)
                    if self.is_over:  # a call that was answered has closed the connection
                        return
                if size - position < 9:
                    break
                high, low, kind, flags, stream_id = _unpack_header(buffer, position)
                length = high << 8 | low
                if length > frames.DEFAULT_MAX_FRAME_SIZE:
                    raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
                start = position + 9
                position = start + length
                if position > size:
                    position = start - 9
                    break
                stream_id &= frames.MAX_STREAM_ID
                if self._required is not None and kind != self._required:
                    inside = "inside a header block" if self._has_settings else "before SETTINGS"
                    raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, f"a frame {inside}")
                if kind == frames.DATA:
                    self._on_data(buffer, start, position, flags, stream_id)
                elif kind == frames.HEADERS:
                    self._on_headers(buffer[start:position], flags, stream_id)
                else:
                    self._on_other(kind, buffer[start:position], flags, stream_id)
                if self.is_over:
                    return
        except RemoteProtocolError as error:
            self._fail(error)
            return
        self._tail = buffer[position:] if position < size else b""

    def _advance(self, accelerator: CallsAccelerator, buffer: bytes, position: int) -> int:
        """Have the accelerator process usual frames. Returns where the first other frame begins."""
        room = min(self._receive_window, _CONNECTION_RETURN_AFTER - self._to_return - 1)
        position, received, useful = accelerator.advance(buffer, position, self._streams, self._decoder.known, room)
        self._receive_window -= received
        self._to_return += received
        self._budget.useful(useful)
        return position

    def _on_data(self, buffer: bytes, start: int, end: int, flags: int, stream_id: int) -> None:
        """A DATA frame: account for all of it, find its stream, deliver its content."""
        length = end - start
        self._receive_window -= length
        self._to_return += length
        if self._to_return >= _CONNECTION_RETURN_AFTER or self._receive_window < 0:
            self._return_connection_window()
        if flags & frames.PADDED:
            padding = buffer[start] if length else 256
            if padding >= length:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "padding longer than its frame")
            start += 1
            end -= padding
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            if end == start or not self._budget.is_late(stream_id, length):
                self._spend()
        elif not stream.has_begun:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)
        else:
            self._deliver(stream, buffer[start:end], length, ended=bool(flags & frames.END_STREAM))

    def _return_connection_window(self) -> None:
        if self._receive_window < 0:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        self.outgoing.write(frames.window_update(0, self._to_return))
        self._receive_window += self._to_return
        self._to_return = 0

    def _deliver(self, stream: S, content: bytes, length: int, *, ended: bool) -> None:
        """Pass the content of a DATA frame to its stream.

        Args:
            stream: the stream.
            content: the frame's payload without padding.
            length: size of the payload with padding, which counts for the windows.
            ended: the frame ends the stream.
        """
        stream.receive_window -= length
        if stream.receive_window < 0:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more data than the stream's window")
        returned = length if stream.auto_return else length - len(content)  # padding is never read
        if returned and not ended:
            self.consumed(stream, returned)
        if content:
            self._budget.useful()
            stream.on_data(content)
        else:
            self._spend()
        if ended and stream.is_open:
            self.outgoing.end(stream)
            stream.on_ended()

    def _on_headers(self, payload: bytes, flags: int, stream_id: int) -> None:
        if flags & (frames.PADDED | frames.HAS_PRIORITY):
            bare = frames.without_padding(payload, flags)
            if bare is None:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "padding longer than its frame")
            payload = bare
        if flags & frames.END_HEADERS:
            self._on_block(payload, stream_id, ended=bool(flags & frames.END_STREAM))
            return
        self._required = frames.CONTINUATION
        self._block_parts = [payload]
        self._block_size = len(payload)
        self._block_stream = stream_id
        self._block_ends = bool(flags & frames.END_STREAM)

    def _on_continuation(self, payload: bytes, flags: int, stream_id: int) -> None:
        if self._required is None or stream_id != self._block_stream:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self._block_parts.append(payload)
        self._block_size += len(payload)
        if self._block_size > _MAX_CONTINUATION_BYTES:
            raise RemoteProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a header block without an end")
        self._spend()
        if flags & frames.END_HEADERS:
            self._required = None
            block = b"".join(self._block_parts)
            self._block_parts = []
            self._on_block(block, stream_id, ended=self._block_ends)

    def _on_block(self, block: bytes, stream_id: int, *, ended: bool) -> None:
        decoder = self._decoder
        headers = decoder.decode(block)  # also for streams that are gone, to keep the table in step
        size, decoder.fresh = decoder.fresh, 0
        if size > _FREE_HEADERS:
            self._spend(size / _FREE_HEADERS)
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            self._spend(1 + size / _HEADERS_FOR_TOKEN)
            return
        if stream.has_begun:
            is_malformed = not ended or bool(headers.flaw or headers.status)  # trailers end, and have no status
        elif headers.status[:1] == "1" and not ended:
            self._spend(1 + size / _HEADERS_FOR_TOKEN)  # informational: gRPC does not use it
            return
        else:
            is_malformed = bool(headers.flaw)
            stream.has_begun = True
        if is_malformed:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)  # RFC 9113, 8.1.1
            return
        self._budget.useful()
        if ended:
            self.outgoing.end(stream)
        stream.on_headers(headers, ended=ended)

    def _on_other(self, kind: int, payload: bytes, flags: int, stream_id: int) -> None:
        if kind == frames.WINDOW_UPDATE:
            self._on_window_update(payload, stream_id)
        elif kind == frames.PING:
            self._on_ping(payload, flags, stream_id)
        elif kind == frames.SETTINGS:
            self._on_peer_settings(payload, flags, stream_id)
        elif kind == frames.RST_STREAM:
            self._on_rst_stream(payload, stream_id)
        elif kind == frames.GOAWAY:
            self._on_peer_goaway(payload, stream_id)
        elif kind == frames.CONTINUATION:
            self._on_continuation(payload, flags, stream_id)
        elif kind == frames.PUSH_PROMISE:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE, although push is disabled")
        elif kind == frames.PRIORITY and len(payload) != 5:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a PRIORITY of the wrong size")
        else:
            self._spend()  # unknown frames are ignored (RFC 9113, 5.5)

    def _on_window_update(self, payload: bytes, stream_id: int) -> None:
        if len(payload) != 4:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a WINDOW_UPDATE of the wrong size")
        increment = frames.parse_u32(payload) & frames.MAX_WINDOW
        if not self.outgoing.is_return(increment):  # returning sent bytes is no flood, in however many frames
            self._spend()
        if not stream_id:
            if not increment:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE of zero")
            self.outgoing.grant(increment)
            return
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            return
        if not increment:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)
        elif not self.outgoing.grant_stream(stream, increment):
            self._reset_for_peer(stream, ErrorCode.FLOW_CONTROL_ERROR)

    def _on_ping(self, payload: bytes, flags: int, stream_id: int) -> None:
        if len(payload) != 8:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a PING of the wrong size")
        if stream_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a PING on a stream")
        self._spend()
        if not flags & frames.ACK:
            self.outgoing.owe(frames.ping(payload, ack=True))

    def _on_peer_settings(self, payload: bytes, flags: int, stream_id: int) -> None:
        if stream_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of the wrong size")
        self._spend()
        if flags & frames.ACK:
            if not self._has_settings:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "an ACK before SETTINGS")
            return
        self.outgoing.apply(payload)
        if not self._has_settings:
            self._has_settings = True
            self._required = None
            self._on_settings()
        self.outgoing.unblock()

    def _on_rst_stream(self, payload: bytes, stream_id: int) -> None:
        if len(payload) != 4:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "an RST_STREAM of the wrong size")
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            self._spend()
            return
        self.outgoing.drop(stream)  # it answers a call, so it does not count as a flood
        stream.on_reset(frames.parse_u32(payload), by_peer=True)

    def _on_peer_goaway(self, payload: bytes, stream_id: int) -> None:
        if stream_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a GOAWAY of the wrong size")
        self._spend()
        last, code, debug = frames.parse_goaway(payload)
        if self._goaway_last is not None and last > self._goaway_last:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a GOAWAY that revokes an earlier one")
        self._goaway_last = last
        text = debug[:128].decode("ascii", "replace")
        if not text.isprintable():  # it goes into errors and logs
            text = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
        reason = f"the server sent GOAWAY: {frames.error_name(code)}{f' ({text})' if text else ''}"
        unprocessed = self.outgoing.refuse_above(last)
        self._on_goaway(reason)
        for stream in unprocessed:
            stream.on_unprocessed(reason)

    # Ends.

    def _reset_for_peer(self, stream: S, code: ErrorCode) -> None:
        self.outgoing.reset(stream, code)
        stream.on_reset(code, by_peer=False)

    def _check_was_open(self, stream_id: int) -> None:
        """A frame for a closed stream is late; for a stream that never was it is an error."""
        if not self.outgoing.was_begun(stream_id):
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, f"a frame on stream {stream_id}, which is idle")

    def _spend(self, tokens: float = 1.0) -> None:
        if not self._budget.spend(self._now, tokens):
            raise RemoteProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a flood of useless frames")

    def _fail(self, error: RemoteProtocolError) -> None:
        self.is_over = True
        self._tail = b""
        self.outgoing.fail(error.code)
        self._on_over(error)
