"""Outgoing: the half of a connection that sends: streams that begin, the peer's windows, the bytes that are due.

Knows: what the peer allowed so far. Never knows: the bytes that the peer sent, what they mean, or when they came.

Theory of opening. A new stream waits in one queue, and gets its id, its headers and its share of the windows only as
`data_to_send` takes the bytes away. So a stream with an id is one whose bytes the shell has, one given up before leaves
no trace on the wire, and what exceeds the peer's MAX_CONCURRENT_STREAMS is no special case: it stays in the queue.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from etcd_aio.http2 import frames
from etcd_aio.http2.errors import LocalProtocolError, RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode
from etcd_aio.http2.headers import HeaderEncoder
from etcd_aio.http2.settings import DEFAULT_TABLE_SIZE, PeerSettings
from etcd_aio.http2.stream import STREAM_WINDOW, Http2Stream

_MAX_UNWRITTEN_REPLIES: Final = 1000  # acks owed to a peer that does not read them
_WORTH_AN_UPDATE: Final = 1024  # bytes; a WINDOW_UPDATE that returns fewer is chatter


class Outgoing:
    """What leaves. The first part is for the shell, the second for the half that receives.

    Args:
        greeting: what is due before everything else.
        on_exhausted: no new stream can be opened, since all ids are used; with the reason.
        on_given_up: a stream was ended from this side, and the peer may not know yet; with its id and what is
            left of its receive window.
        secrets: names of request headers that no table of compression may hold.
    """

    def __init__(
        self,
        greeting: bytes,
        *,
        on_exhausted: Callable[[str], None],
        on_given_up: Callable[[int, int], None],
        secrets: frozenset[str],
    ) -> None:
        self._on_exhausted = on_exhausted
        self._on_given_up = on_given_up
        self._out = [greeting]
        self.streams: dict[int, Http2Stream] = {}
        self._queue: OrderedDict[Http2Stream, None] = OrderedDict()  # given and not begun, first come first served
        self._blocked: dict[int, Http2Stream] = {}  # have bytes to send and no window for them
        self._next_id = 1
        self._encoder = HeaderEncoder(secrets)
        self._send_window = frames.DEFAULT_WINDOW
        self._unreturned = 0  # bytes of ours, once for their stream's window and once for the connection's
        self._peer = PeerSettings()
        self._owed_replies = 0
        self._takes_streams = True
        self._is_over = False

    @property
    def takes_streams(self) -> bool:
        """Whether a new stream can be opened."""
        has_ids = self._next_id + 2 * len(self._queue) <= frames.MAX_STREAM_ID
        return self._takes_streams and has_ids

    def open(self, stream: Http2Stream, payload: bytes, *, end: bool) -> None:
        """Open a stream with its first bytes, when bytes leave next or when the peer allows another one.

        Raises:
            LocalProtocolError: the connection takes no new streams.
        """
        queue = self._queue
        stream_id = self._next_id + 2 * len(queue)  # at most: of those before it some may still be given up
        if not self._takes_streams or stream_id > frames.MAX_STREAM_ID:
            raise LocalProtocolError("the connection takes no new streams")
        stream.unsent = payload
        stream.end_after = end
        queue[stream] = None
        if stream_id + 2 > frames.MAX_STREAM_ID:  # and ids never begin anew (RFC 9113, 5.1.1)
            self._on_exhausted("all stream ids of the connection are used")

    def send(self, stream: Http2Stream, payload: bytes, *, end: bool) -> None:
        """Send more on an open stream; `on_sent` follows when all of it was written.

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

    def reset(self, stream: Http2Stream, code: ErrorCode = ErrorCode.CANCEL) -> None:
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
        if not self._is_over:
            self._out.append(frames.ping(payload))

    def all_streams(self) -> tuple[Http2Stream, ...]:
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

    # For the half that receives.

    def write(self, frame: bytes) -> None:
        """One frame more is due."""
        self._out.append(frame)

    def owe(self, reply: bytes) -> None:
        """A reply that the peer asked for; a peer that asks and does not read must not fill the memory.

        Raises:
            RemoteProtocolError: too many wait to be written.
        """
        self._owed_replies += 1
        if self._owed_replies > _MAX_UNWRITTEN_REPLIES:
            raise RemoteProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "more questions than answers were read")
        self._out.append(reply)

    def apply(self, settings: bytes) -> None:
        """The payload of the peer's SETTINGS, which are acknowledged.

        Raises:
            RemoteProtocolError: a value that is not allowed.
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
        """Whether a WINDOW_UPDATE gives back what we sent, in a piece worth a frame; it is counted as given back."""
        if increment < _WORTH_AN_UPDATE or self._unreturned <= 0:
            return False
        self._unreturned -= increment
        return True

    def grant(self, increment: int) -> None:
        """The connection may send so many bytes more.

        Raises:
            RemoteProtocolError: its window goes past the maximum.
        """
        self._send_window += increment
        if self._send_window > frames.MAX_WINDOW:
            raise RemoteProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a connection window past its maximum")
        self.unblock()

    def grant_stream(self, stream: Http2Stream, increment: int) -> bool:
        """A stream may send so many bytes more; False if its window goes past the maximum."""
        stream.send_window += increment
        if stream.send_window > frames.MAX_WINDOW:
            return False
        self._send_more(stream)
        return True

    def unblock(self) -> None:
        """Send what the windows now let through."""
        for stream in tuple(self._blocked.values()):
            if self._send_window <= 0:
                return
            self._send_more(stream)

    def was_begun(self, stream_id: int) -> bool:
        """Whether there was, or is, such a stream."""
        return bool(stream_id & 1) and stream_id < self._next_id

    def end(self, stream: Http2Stream) -> None:
        """The peer ended the stream; if our side was not at its end, it is told that the rest is not coming."""
        stream.is_open = False
        if not stream.is_sent_whole:
            self._give_up(stream, ErrorCode.CANCEL)
        self._forget(stream)

    def drop(self, stream: Http2Stream) -> None:
        """The peer reset the stream: there is nobody to tell."""
        stream.is_open = False
        self._forget(stream)

    def refuse_above(self, last: int) -> tuple[Http2Stream, ...]:
        """Take no new streams; returns those that the peer will not process, which are over."""
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
        """The peer broke the protocol: it is told, and nothing else leaves."""
        self._is_over = True
        self._takes_streams = False
        self._out.append(frames.goaway(code))

    def close(self) -> tuple[Http2Stream, ...]:
        """Let go of everything and everybody. Returns the streams that this ends."""
        self._is_over = True
        self._takes_streams = False
        self._on_exhausted = _tell_nobody
        streams = self.all_streams()
        for stream in streams:
            stream.is_open = False
        for held in (self.streams, self._queue, self._blocked, self._out):
            held.clear()
        return streams

    # Inside.

    def _start(self, stream: Http2Stream) -> None:
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

    def _send_more(self, stream: Http2Stream) -> None:
        """A window has opened for a stream; one that was given up, or has ended meanwhile, sends no more."""
        if stream.unsent and stream.is_open and not stream.is_given_up():
            self._send_unsent(stream)

    def _send_unsent(self, stream: Http2Stream) -> None:
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

    def _start_queued(self) -> None:
        """Begin what there is room for and somebody still waits for."""
        while not self._is_over and self._queue and len(self.streams) < self._peer.max_streams:
            stream, _ = self._queue.popitem(last=False)
            if stream.is_given_up():
                stream.is_open = False
            else:
                self._start(stream)

    def _give_up(self, stream: Http2Stream, code: ErrorCode) -> None:
        if not self._is_over:
            self._out.append(frames.rst_stream(stream.stream_id, code))
            self._on_given_up(stream.stream_id, stream.receive_window)

    def _forget(self, stream: Http2Stream) -> None:
        del self.streams[stream.stream_id]
        if self._blocked:
            self._blocked.pop(stream.stream_id, None)


def _tell_nobody(_: str) -> None:
    """What a closed connection calls."""
