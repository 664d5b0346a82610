"""The sending half of a connection: new streams, the peer's windows, and the bytes to write.

Pure: it knows what the peer allows, and neither the received bytes nor the time.

New streams wait in one queue. A stream gets its id, its headers and its share of the windows only when `data_to_send`
takes its bytes. So the caller has the bytes of every stream that has an id, a stream that is abandoned earlier leaves
no trace on the wire, and streams above the peer's MAX_CONCURRENT_STREAMS just stay in the queue.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from etcd_aio.http2 import frames
from etcd_aio.http2.accelerator import CallsAccelerator
from etcd_aio.http2.errors import LocalProtocolError, RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode
from etcd_aio.http2.headers import HeaderEncoder
from etcd_aio.http2.settings import DEFAULT_TABLE_SIZE, PeerSettings
from etcd_aio.http2.stream import STREAM_WINDOW, Http2Stream

S = TypeVar("S", bound=Http2Stream)

_MAX_UNWRITTEN_REPLIES: Final = 1000  # acks for a peer that does not read them
_pack_header = frames.FRAME_HEADER.pack
_WORTH_AN_UPDATE: Final = 1024  # bytes; smaller WINDOW_UPDATEs count against the flood budget


class Outgoing(Generic[S]):
    """The outgoing bytes and streams. The first methods are for the caller, the others for the receiving half.

    Args:
        greeting: the first bytes to write.
        on_exhausted: called with the reason when no new stream can be opened, since all ids are used.
        on_given_up: called with the id and the remaining receive window of a stream that this side ended; the peer may
            not know yet.
        secrets: names of request headers that must not enter a header compression table.
        accelerator: starts the usual unary calls; None if there is none.
    """

    def __init__(
        self,
        greeting: bytes,
        *,
        on_exhausted: Callable[[str], None],
        on_given_up: Callable[[int, int], None],
        secrets: frozenset[str],
        accelerator: CallsAccelerator | None = None,
    ) -> None:
        self._accelerator = accelerator
        self._on_exhausted = on_exhausted
        self._on_given_up = on_given_up
        self._out = [greeting]
        self.streams: dict[int, S] = {}
        self._queue: OrderedDict[S, None] = OrderedDict()  # not started yet, first come first served
        self._blocked: dict[int, S] = {}  # streams that wait for a window
        self._next_id = 1
        self._encoder = HeaderEncoder(secrets)
        self._send_window = frames.DEFAULT_WINDOW
        self._unreturned = 0  # sent bytes, counted once for the stream's window and once for the connection's
        self._peer = PeerSettings()
        self._owed_replies = 0
        self._takes_streams = True
        self._is_over = False

    @property
    def most_streams(self) -> int:
        """How many streams the peer allows at a time."""
        return self._peer.max_streams

    @property
    def takes_streams(self) -> bool:
        """Whether a new stream can be opened."""
        has_ids = self._next_id + 2 * len(self._queue) <= frames.MAX_STREAM_ID
        return self._takes_streams and has_ids

    def open(self, stream: S, payload: bytes, *, end: bool) -> None:
        """Open a stream with its first bytes at the next write, or when the peer allows another stream.

        Raises:
            LocalProtocolError: the connection takes no new streams.
        """
        queue = self._queue
        stream_id = self._next_id + 2 * len(queue)  # at most: streams before it may still be abandoned
        if not self._takes_streams or stream_id > frames.MAX_STREAM_ID:
            raise LocalProtocolError("the connection takes no new streams")
        stream.unsent = payload
        stream.end_after = end
        queue[stream] = None
        if stream_id + 2 > frames.MAX_STREAM_ID:  # ids are never reused (RFC 9113, 5.1.1)
            self._on_exhausted("all stream ids of the connection are used")

    def send(self, stream: S, payload: bytes, *, end: bool) -> None:
        """Send more on an open stream. `on_sent` is called when all of it was written.

        Raises:
            LocalProtocolError: the stream is over, or its end was already sent.
        """
        if self._is_over or not stream.is_open or stream.end_after:
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

    def reset(self, stream: S, code: ErrorCode = ErrorCode.CANCEL) -> None:
        """End a stream at once, if it is not over. Nothing is sent for a stream that was not started."""
        if not stream.is_open:
            return
        stream.is_open = False
        if not stream.stream_id:
            self._queue.pop(stream, None)
            return
        self._give_up(stream, code)
        self._forget(stream)

    def ping(self, payload: bytes) -> None:
        """Send a PING with these eight bytes, unless the connection is over."""
        if not self._is_over:
            self._out.append(frames.ping(payload))

    def all_streams(self) -> tuple[S, ...]:
        """Every open or queued stream."""
        return (*self.streams.values(), *self._queue)

    def data_to_send(self) -> bytes:
        """Remove and return all outgoing bytes; they count as sent."""
        queue = self._queue
        while queue and not self._is_over and len(self.streams) < self._peer.max_streams:
            if self._start_usual():
                continue
            stream, _ = queue.popitem(last=False)
            if stream.is_given_up():
                stream.is_open = False
            else:
                self._start(stream)
        out = self._out
        if not out:
            return b""
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self._owed_replies = 0
        return data

    @property
    def has_data_to_send(self) -> bool:
        """Whether there are bytes to write."""
        return bool(self._out) or (bool(self._queue) and len(self.streams) < self._peer.max_streams)

    # For the receiving half.

    def write(self, frame: bytes) -> None:
        """Add a frame."""
        self._out.append(frame)

    def owe(self, reply: bytes) -> None:
        """Add a reply to a frame of the peer. Their number is limited, for peers that send and do not read.

        Raises:
            RemoteProtocolError: too many replies are unwritten.
        """
        self._owed_replies += 1
        if self._owed_replies > _MAX_UNWRITTEN_REPLIES:
            raise RemoteProtocolError(
                ErrorCode.ENHANCE_YOUR_CALM, "the peer sends requests and does not read the replies"
            )
        self._out.append(reply)

    def apply(self, settings: bytes) -> None:
        """Apply and acknowledge the payload of the peer's SETTINGS.

        Raises:
            RemoteProtocolError: a value is invalid.
        """
        peer = self._peer
        window = peer.initial_window
        peer.apply(settings)
        if peer.table_size < DEFAULT_TABLE_SIZE:
            self._encoder.give_up_table()
        change = peer.initial_window - window
        if change:
            for stream in self.streams.values():
                stream.send_window += change  # may become negative (RFC 9113, 6.9.2)
                if stream.send_window > frames.MAX_WINDOW:
                    raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a stream window past its maximum")
        self.owe(frames.SETTINGS_ACK)

    def is_return(self, increment: int) -> bool:
        """Count a WINDOW_UPDATE against the bytes sent. Returns whether it returns enough of them to be no flood."""
        if increment < _WORTH_AN_UPDATE or self._unreturned <= 0:
            return False
        self._unreturned -= increment
        return True

    def grant(self, increment: int) -> None:
        """Enlarge the connection's send window.

        Raises:
            RemoteProtocolError: the window exceeds its maximum.
        """
        self._send_window += increment
        if self._send_window > frames.MAX_WINDOW:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a connection window past its maximum")
        self.unblock()

    def grant_stream(self, stream: S, increment: int) -> bool:
        """Enlarge a stream's send window. Returns False if it exceeds its maximum."""
        stream.send_window += increment
        if stream.send_window > frames.MAX_WINDOW:
            return False
        self._send_more(stream)
        return True

    def unblock(self) -> None:
        """Send what the windows now allow."""
        for stream in tuple(self._blocked.values()):
            if self._send_window <= 0:
                return
            self._send_more(stream)

    def was_begun(self, stream_id: int) -> bool:
        """Whether a stream with this id was ever started."""
        return bool(stream_id & 1) and stream_id < self._next_id

    def end(self, stream: S) -> None:
        """The peer ended the stream. If the request was not sent completely, the stream is reset."""
        stream.is_open = False
        if not stream.is_sent_whole:
            self._give_up(stream, ErrorCode.CANCEL)
        self._forget(stream)

    def drop(self, stream: S) -> None:
        """The peer reset the stream."""
        stream.is_open = False
        self._forget(stream)

    def refuse_above(self, last: int) -> tuple[S, ...]:
        """Refuse new streams. Ends and returns those that the peer will not process."""
        self._takes_streams = False
        queued = tuple(self._queue)
        self._queue.clear()
        unprocessed = tuple(stream for stream in self.streams.values() if stream.stream_id > last)
        for stream in (*unprocessed, *queued):
            stream.is_open = False
        for stream in unprocessed:
            self._forget(stream)
        return (*unprocessed, *queued)

    def fail(self, code: ErrorCode) -> None:
        """The peer violated the protocol: send GOAWAY, and nothing after it."""
        self._is_over = True
        self._takes_streams = False
        self._out.append(frames.goaway(code))

    def close(self) -> tuple[S, ...]:
        """End all streams and return them. No callback is called any more."""
        self._is_over = True
        self._takes_streams = False
        self._on_exhausted = lambda reason: None
        streams = self.all_streams()
        for stream in streams:
            stream.is_open = False
        for held in (self.streams, self._queue, self._blocked, self._out):
            held.clear()
        return streams

    # Inside.

    def _start_usual(self) -> bool:
        """Have the accelerator start usual calls from the head of the queue. Returns whether it started any."""
        if self._accelerator is None:
            return False
        queue, streams, peer = self._queue, self.streams, self._peer
        data, started, sent = self._accelerator.start(
            queue,
            streams,
            peer.max_streams - len(streams),
            self._next_id,
            self._encoder.generation,
            peer.initial_window,
            self._send_window,
            peer.max_frame_size,
        )
        if not started:
            return False
        try:
            self._out.append(data)
            self._next_id += 2 * started
            self._send_window -= sent
            self._unreturned += 2 * sent
            if started == len(queue):
                queue.clear()
            else:
                for _ in range(started):
                    queue.popitem(last=False)
        except BaseException:  # such as MemoryError: the calls would be started once more, without their messages
            self._is_over = True
            raise
        return True

    def _start(self, stream: S) -> None:
        stream_id = self._next_id
        self._next_id = stream_id + 2
        stream.stream_id = stream_id
        stream.send_window = self._peer.initial_window
        stream.receive_window = STREAM_WINDOW
        self.streams[stream_id] = stream
        encoder = self._encoder
        headers, own = stream.headers, stream.own_headers
        block = headers.block if headers.generation == encoder.generation else encoder.encode(headers)
        if own is not None:
            block += own.block if own.generation == encoder.generation else encoder.encode(own)
        payload = stream.unsent
        size = len(payload)
        max_frame_size = self._peer.max_frame_size
        room = min(self._send_window, stream.send_window, max_frame_size)
        if stream.end_after and 0 < size <= room and len(block) <= max_frame_size:
            # The fast path of almost every unary call: two frames at once.
            self._send_window -= size
            stream.send_window -= size
            self._unreturned += 2 * size
            stream.unsent = b""
            stream.is_sent_whole = True
            self._out.append(
                _pack_header(len(block) >> 8, len(block) & 0xFF, frames.HEADERS, frames.END_HEADERS, stream_id)
                + block
                + _pack_header(size >> 8, size & 0xFF, frames.DATA, frames.END_STREAM, stream_id)
                + payload
            )
            stream.on_sent()
            return
        self._out.append(frames.headers(stream_id, block, max_frame_size))
        self._send_unsent(stream)

    def _send_more(self, stream: S) -> None:
        """Send more of a stream whose window was enlarged, unless it is over."""
        if stream.unsent and stream.is_open and not stream.is_given_up():
            self._send_unsent(stream)

    def _send_unsent(self, stream: S) -> None:
        """Send as much of a stream as the windows allow."""
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
            # A bytearray removes its head and grows at its end without moving the rest.
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

    def _give_up(self, stream: S, code: ErrorCode) -> None:
        if not self._is_over:
            self._out.append(frames.rst_stream(stream.stream_id, code))
            self._on_given_up(stream.stream_id, stream.receive_window)

    def _forget(self, stream: S) -> None:
        del self.streams[stream.stream_id]
        if self._blocked:
            self._blocked.pop(stream.stream_id, None)
