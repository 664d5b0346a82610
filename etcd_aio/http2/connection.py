"""Connection: the sans-IO, client-only HTTP/2 machine that gRPC needs.

Knows: frames, HPACK, windows, streams. Never knows: sockets, clocks (`now` is an argument), gRPC, etcd.

The contract with the shell around it:
  - after `receive_data`, and after anything that sends, the shell writes what `data_to_send` returns, in order, once
    per turn of its loop at the latest;
  - streams are told directly (`Stream.on_...`), the shell by the callbacks given at construction;
  - after `on_over` nothing more is accepted or produced but the GOAWAY that `data_to_send` still holds.

Theory of opening. A new stream waits in one queue, and gets its id, its headers and its share of the windows only as
`data_to_send` takes the bytes away. So a stream with an id is one whose bytes the shell has, one given up before leaves
no trace on the wire, and what exceeds the peer's MAX_CONCURRENT_STREAMS is no special case: it stays in the queue.

Theory of the windows. The connection's receive window is opened to its maximum and returned as bytes arrive, whether
or not anybody reads them: an unread stream holds up itself, by its own window, and never another one. What one stream
may buffer is thereby bounded, and what a connection may buffer is that times its streams.

Theory of GOAWAY. The peer names the last stream it will process. Streams above it were not processed and say so;
those at or below go on to their end; new ones are refused here. Go's servers send it twice (first with the highest
id, so that requests on their way are still taken), and both are handled alike.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from etcd_aio.http2 import frames
from etcd_aio.http2.errors import LocalProtocolError, RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode, Setting
from etcd_aio.http2.headers import MAX_HEADER_LIST_SIZE, HeaderDecoder, HeaderEncoder
from etcd_aio.http2.limits import FloodBudget
from etcd_aio.http2.settings import DEFAULT_TABLE_SIZE, PeerSettings
from etcd_aio.http2.stream import Stream

STREAM_WINDOW: Final = 4 * 2**20
"""Bytes one stream may send before they are consumed: enough for full speed on any real network."""
_RETURN_AFTER: Final = STREAM_WINDOW // 4  # returning every byte at once would cost a frame for each
_CONNECTION_RETURN_AFTER: Final = 2**28
_MAX_CONTINUATION_BYTES: Final = 2 * MAX_HEADER_LIST_SIZE  # encoded blocks are smaller than what they decode to
_MAX_UNWRITTEN_REPLIES: Final = 1000  # acks owed to a peer that does not read them

_WORTH_AN_UPDATE: Final = 1024  # bytes; a WINDOW_UPDATE that returns fewer is chatter

_unpack_header = frames.FRAME_HEADER.unpack_from


class Connection:
    """One connection's state.

    Args:
        now: the instant of its making.
        on_settings: the peer's first SETTINGS arrived: it speaks HTTP/2.
        on_goaway: no new stream can be opened, by the peer's word or since all ids are used; with the reason.
        on_over: the peer broke the protocol; with the error.
        secrets: names of request headers that no table of compression may hold.
    """

    def __init__(
        self,
        now: float,
        *,
        on_settings: Callable[[], None],
        on_goaway: Callable[[str], None],
        on_over: Callable[[RemoteProtocolError], None],
        secrets: frozenset[str] = frozenset(),
    ) -> None:
        self._on_settings = on_settings
        self._on_goaway = on_goaway
        self._on_over = on_over
        self._now = now
        self._out: list[bytes] = [
            frames.PREFACE,
            frames.settings(
                {
                    Setting.ENABLE_PUSH: 0,
                    Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
                    Setting.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_SIZE,
                }
            ),
            frames.window_update(0, frames.MAX_WINDOW - frames.DEFAULT_WINDOW),
        ]
        self._tail = b""
        self.streams: dict[int, Stream] = {}
        self._queue: OrderedDict[Stream, None] = OrderedDict()  # given and not begun, first come first served
        self._blocked: dict[int, Stream] = {}  # have bytes to send and no window for them
        self._next_id = 1
        self._decoder = HeaderDecoder()
        self._encoder = HeaderEncoder(secrets)
        self._budget = FloodBudget(now)
        self._send_window = frames.DEFAULT_WINDOW
        self._unreturned = 0  # bytes of ours, once for their stream's window and once for the connection's
        self._receive_window = frames.MAX_WINDOW
        self._to_return = 0
        self._peer = PeerSettings()
        self._has_settings = False
        self._required: int | None = frames.SETTINGS  # the one kind of frame that may come now; None: any
        self._goaway_last: int | None = None
        self._block_parts: list[bytes] = []
        self._block_size = 0
        self._block_stream = 0
        self._block_ends = False
        self._owed_replies = 0
        self.is_over = False

    # What the shell and the calls use.

    @property
    def takes_streams(self) -> bool:
        """Whether a new stream can be opened."""
        has_ids = self._next_id + 2 * len(self._queue) <= frames.MAX_STREAM_ID
        return not self.is_over and self._goaway_last is None and has_ids

    def open(self, stream: Stream, payload: bytes, *, end: bool) -> None:
        """Open a stream with its first bytes, when bytes leave next or when the peer allows another one.

        Raises:
            LocalProtocolError: the connection takes no new streams.
        """
        queue = self._queue
        stream_id = self._next_id + 2 * len(queue)  # at most: of those before it some may still be given up
        if self.is_over or self._goaway_last is not None or stream_id > frames.MAX_STREAM_ID:
            raise LocalProtocolError("the connection takes no new streams")
        stream.unsent = payload
        stream.end_after = end
        queue[stream] = None
        if stream_id + 2 > frames.MAX_STREAM_ID:  # and ids never begin anew (RFC 9113, 5.1.1)
            self._on_goaway("all stream ids of the connection are used")

    def send(self, stream: Stream, payload: bytes, *, end: bool) -> None:
        """Send more on an open stream; `on_sent` follows when all of it was written.

        Raises:
            LocalProtocolError: the stream is over, or its end was already sent.
        """
        if self.is_over or not stream.is_open or stream.end_after:
            raise LocalProtocolError("the stream takes no more")
        if stream.unsent or not stream.stream_id:
            if not isinstance(stream.unsent, bytearray):
                stream.unsent = bytearray(stream.unsent)
            stream.unsent += payload
            stream.end_after = end
            return
        stream.unsent = payload
        stream.end_after = end
        self._send_unsent(stream)

    def consumed(self, stream: Stream, size: int) -> None:
        """The reader of a stream has taken so many bytes: the peer may send as many more."""
        stream.to_return += size
        if stream.to_return >= _RETURN_AFTER and stream.is_open and not self.is_over:
            self._out.append(frames.window_update(stream.stream_id, stream.to_return))
            stream.receive_window += stream.to_return
            stream.to_return = 0

    def reset(self, stream: Stream, code: ErrorCode = ErrorCode.CANCEL) -> None:
        """End a stream from this side, without waiting; the peer never hears of one that had not begun.

        Harmless if it is over.
        """
        if not stream.is_open:
            return
        stream.is_open = False
        if not stream.stream_id:
            self._queue.pop(stream, None)
            return
        self._give_up(stream, code)
        self._forget(stream)

    def ping(self, payload: bytes) -> None:
        """Send a PING with these eight bytes; a connection that is over sends none."""
        if not self.is_over:
            self._out.append(frames.ping(payload))

    def all_streams(self) -> tuple[Stream, ...]:
        """Every stream that is open, or waits to be."""
        return (*self.streams.values(), *self._queue)

    def data_to_send(self) -> bytes:
        """All bytes that are due; they count as sent from now on."""
        if self._queue:
            self._start_queued()
        out = self._out
        if not out:
            return b""
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self._owed_replies = 0
        return data

    @property
    def has_data_to_send(self) -> bool:
        """Whether anything is due."""
        return bool(self._out) or (bool(self._queue) and len(self.streams) < self._peer.max_streams)

    def close(self) -> tuple[Stream, ...]:
        """The shell is gone: nothing more is taken or told, and nobody is held. Returns the streams that this ends."""
        self.is_over = True
        self._on_settings = self._on_goaway = self._on_over = _tell_nobody
        streams = self.all_streams()
        for stream in streams:
            stream.is_open = False
        for held in (self.streams, self._queue, self._blocked, self._out):
            held.clear()
        return streams

    # Receiving.

    def receive_data(self, data: bytes, now: float) -> None:
        """Take bytes from the peer. Never raises: what the peer did wrong ends in `on_over`."""
        if self.is_over:
            return
        self._now = now
        buffer = self._tail + data if self._tail else data
        position = 0
        size = len(buffer)
        try:
            while size - position >= 9:
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

    def _on_data(self, buffer: bytes, start: int, end: int, flags: int, stream_id: int) -> None:
        length = end - start
        self._receive_window -= length
        if self._receive_window < 0:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        self._to_return += length
        if self._to_return >= _CONNECTION_RETURN_AFTER:
            self._out.append(frames.window_update(0, self._to_return))
            self._receive_window += self._to_return
            self._to_return = 0
        if flags & frames.PADDED:
            padding = buffer[start] if length else 256
            if padding >= length:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "padding longer than its frame")
            start += 1
            end -= padding
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            self._spend()
            return
        if not stream.has_begun:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)
            return
        stream.receive_window -= length
        if stream.receive_window < 0:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more data than the stream's window")
        if end > start:
            self._budget.useful()
            ended = flags & frames.END_STREAM
            if length and not ended and (stream.auto_return or length != end - start):
                self.consumed(stream, length if stream.auto_return else length - (end - start))
            stream.on_data(buffer[start:end])
        else:
            self._spend()
            if length and not flags & frames.END_STREAM:
                self.consumed(stream, length)
        if flags & frames.END_STREAM and stream.is_open:
            self._end(stream)
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
        headers = self._decoder.decode(block)  # also for streams that are gone: the table must follow
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            self._spend()
            return
        if stream.has_begun:
            is_malformed = not ended or bool(headers.flaw or headers.status)  # trailers end, and have no status
        elif headers.status[:1] == "1" and not ended:
            self._spend()  # informational: gRPC has no use for it
            return
        else:
            is_malformed = bool(headers.flaw)
            stream.has_begun = True
        if is_malformed:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)  # RFC 9113, 8.1.1
            return
        self._budget.useful()
        if ended:
            self._end(stream)
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
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE, which was forbidden")
        elif kind == frames.PRIORITY and len(payload) != 5:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a PRIORITY of the wrong size")
        else:
            self._spend()  # unknown frames are ignored (RFC 9113, 5.5)

    def _on_window_update(self, payload: bytes, stream_id: int) -> None:
        if len(payload) != 4:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a WINDOW_UPDATE of the wrong size")
        increment = frames.parse_u32(payload) & frames.MAX_WINDOW
        if increment >= _WORTH_AN_UPDATE and self._unreturned > 0:
            self._unreturned -= increment  # what we sent comes back: no flood, in however many pieces
        else:
            self._spend()
        if not stream_id:
            if not increment:
                raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE of nothing")
            self._send_window += increment
            if self._send_window > frames.MAX_WINDOW:
                raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a connection window past its maximum")
            self._unblock()
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            return
        stream.send_window += increment
        if not increment:
            self._reset_for_peer(stream, ErrorCode.PROTOCOL_ERROR)
        elif stream.send_window > frames.MAX_WINDOW:
            self._reset_for_peer(stream, ErrorCode.FLOW_CONTROL_ERROR)
        elif stream.unsent:
            self._send_unsent(stream)

    def _on_ping(self, payload: bytes, flags: int, stream_id: int) -> None:
        if len(payload) != 8:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a PING of the wrong size")
        if stream_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a PING on a stream")
        self._spend()
        if not flags & frames.ACK:
            self._owe(frames.ping(payload, ack=True))

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
        self._apply(payload)
        self._owe(frames.SETTINGS_ACK)
        if not self._has_settings:
            self._has_settings = True
            self._required = None
            self._on_settings()
        self._unblock()

    def _apply(self, payload: bytes) -> None:
        peer = self._peer
        window = peer.initial_window
        peer.apply(payload)
        if peer.table_size < DEFAULT_TABLE_SIZE:
            self._encoder.give_up_table()
        change = peer.initial_window - window
        if change:
            for stream in self.streams.values():
                stream.send_window += change  # may become negative (RFC 9113, 6.9.2)
                if stream.send_window > frames.MAX_WINDOW:
                    raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a stream window past its maximum")

    def _on_rst_stream(self, payload: bytes, stream_id: int) -> None:
        if len(payload) != 4:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "an RST_STREAM of the wrong size")
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_was_open(stream_id)
            self._spend()
            return
        stream.is_open = False  # which costs nothing: it is the answer to a call, if a bad one
        self._forget(stream)
        stream.on_reset(frames.parse_u32(payload), by_peer=True)

    def _on_peer_goaway(self, payload: bytes, stream_id: int) -> None:
        if stream_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise RemoteProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a GOAWAY of the wrong size")
        self._spend()
        last, code, debug = frames.parse_goaway(payload)
        if self._goaway_last is not None and last > self._goaway_last:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, "a GOAWAY that takes back an earlier one")
        self._goaway_last = last
        text = debug[:128].decode("ascii", "replace")
        reason = f"the server sent GOAWAY: {frames.error_name(code)}{f' ({text})' if text else ''}"
        self._on_goaway(reason)
        queued = tuple(self._queue)
        self._queue.clear()
        unprocessed = [stream for stream in self.streams.values() if stream.stream_id > last]
        for stream in (*unprocessed, *queued):
            stream.is_open = False
        for stream in unprocessed:
            self._forget(stream)
        for stream in (*unprocessed, *queued):
            stream.on_unprocessed(reason)

    # Sending.

    def _start(self, stream: Stream) -> None:
        stream_id = self._next_id
        self._next_id = stream_id + 2
        stream.stream_id = stream_id
        stream.send_window = self._peer.initial_window
        stream.receive_window = STREAM_WINDOW
        self.streams[stream_id] = stream
        block = self._encoder.encode(stream.headers)
        if stream.own_headers is not None:
            block += self._encoder.encode(stream.own_headers)
        payload = stream.unsent
        size = len(payload)
        max_frame_size = self._peer.max_frame_size
        room = min(self._send_window, stream.send_window, max_frame_size)
        if stream.end_after and 0 < size <= room and len(block) <= max_frame_size:
            # The short path of every unary call: two frames, one piece.
            self._send_window -= size
            stream.send_window -= size
            self._unreturned += 2 * size
            stream.unsent = b""
            stream.is_sent_whole = True
            self._out.append(
                frames.frame_header(len(block), frames.HEADERS, frames.END_HEADERS, stream_id)
                + block
                + frames.frame_header(size, frames.DATA, frames.END_STREAM, stream_id)
                + payload
            )
            stream.on_sent()
            return
        self._out.append(frames.headers(stream_id, block, max_frame_size))
        self._send_unsent(stream)

    def _send_unsent(self, stream: Stream) -> None:
        """Write as much of a stream as the windows allow."""
        payload = stream.unsent
        position = 0
        size = len(payload)
        while position < size:
            room = min(self._send_window, stream.send_window, self._peer.max_frame_size, size - position)
            if room <= 0:
                break
            end = position + room
            flags = frames.END_STREAM if end == size and stream.end_after else 0
            self._out.append(frames.frame_header(room, frames.DATA, flags, stream.stream_id))
            self._out.append(bytes(payload[position:end]))
            self._send_window -= room
            stream.send_window -= room
            position = end
            self._unreturned += 2 * room
        if position < size:
            # A bytearray drops its head and grows at its end without moving the rest.
            left = payload if isinstance(payload, bytearray) else bytearray(payload)
            del left[:position]
            stream.unsent = left
            self._blocked[stream.stream_id] = stream
            return
        stream.unsent = b""
        self._blocked.pop(stream.stream_id, None)
        if stream.end_after:
            if not size:
                self._out.append(frames.frame_header(0, frames.DATA, frames.END_STREAM, stream.stream_id))
            stream.is_sent_whole = True
        stream.on_sent()

    def _unblock(self) -> None:
        for stream in tuple(self._blocked.values()):
            if self._send_window <= 0:
                return
            if stream.unsent and stream.is_open:  # an earlier one's on_sent may have changed that
                self._send_unsent(stream)

    def _start_queued(self) -> None:
        """Begin what there is room for and somebody still waits for."""
        while not self.is_over and self._queue and len(self.streams) < self._peer.max_streams:
            stream, _ = self._queue.popitem(last=False)
            if stream.is_given_up():
                stream.is_open = False
            else:
                self._start(stream)

    def _owe(self, reply: bytes) -> None:
        """A reply that the peer asked for; a peer that asks and does not read must not fill the memory."""
        self._owed_replies += 1
        if self._owed_replies > _MAX_UNWRITTEN_REPLIES:
            raise RemoteProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "more questions than answers were read")
        self._out.append(reply)

    # Ends.

    def _end(self, stream: Stream) -> None:
        """The peer ended the stream; if our side was not at its end, it is told that the rest is not coming."""
        stream.is_open = False
        if not stream.is_sent_whole:
            self._give_up(stream, ErrorCode.CANCEL)
        self._forget(stream)

    def _give_up(self, stream: Stream, code: ErrorCode) -> None:
        if not self.is_over:
            self._out.append(frames.rst_stream(stream.stream_id, code))
            self._budget.gave_up()

    def _forget(self, stream: Stream) -> None:
        del self.streams[stream.stream_id]
        if self._blocked:
            self._blocked.pop(stream.stream_id, None)

    def _reset_for_peer(self, stream: Stream, code: ErrorCode) -> None:
        self.reset(stream, code)
        stream.on_reset(code, by_peer=False)

    def _check_was_open(self, stream_id: int) -> None:
        """A frame for no open stream is a late one, unless there never was such a stream."""
        if not stream_id or not stream_id & 1 or stream_id >= self._next_id:
            raise RemoteProtocolError(ErrorCode.PROTOCOL_ERROR, f"a frame on stream {stream_id}, which is idle")

    def _spend(self) -> None:
        if not self._budget.spend(self._now):
            raise RemoteProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a flood of frames that bring nothing")

    def _fail(self, error: RemoteProtocolError) -> None:
        self.is_over = True
        self._tail = b""
        self._out.append(frames.goaway(error.code))
        self._on_over(error)


def _tell_nobody(_: object = None) -> None:
    """What a closed connection calls."""
