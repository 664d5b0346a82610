"""Helpers for tests of the HTTP/2 package: a recording stream, a connection with its callbacks, frames as bytes."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from etcd_aio.http2 import (
    STREAM_WINDOW,
    Fields,
    HeaderBlock,
    Http2Connection,
    Http2Stream,
    RemoteProtocolError,
    RequestHeaders,
    frames,
)

POST: Fields = ((":method", "POST"),)
"""Headers of one byte, which is 0x83."""

PREFACE_SIZE = len(frames.PREFACE)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


class Sink(Http2Stream):
    """Records its calls; neighbouring pieces of a body become one, so that cuts make no difference."""

    ENDS: ClassVar = {"ended", "reset", "unprocessed"}

    def __init__(self, fields: Fields = POST) -> None:
        super().__init__(RequestHeaders(fields))
        self.events: list[tuple[object, ...]] = []
        self.received = 0
        self.sent = 0

    def on_headers(self, headers: HeaderBlock, *, ended: bool) -> None:
        self.events.append(("headers", headers.fields))
        if ended:
            self.events.append(("ended",))

    def on_data(self, data: bytes) -> None:
        self.received += len(data)
        if self.events and self.events[-1][0] == "data":
            data = self.events.pop()[1] + data  # type: ignore[operator]
        self.events.append(("data", data))

    def on_ended(self) -> None:
        self.events.append(("ended",))

    def on_sent(self) -> None:
        self.sent += 1

    def on_reset(self, code: int, *, by_peer: bool) -> None:
        self.events.append(("reset", code, by_peer))

    def on_unprocessed(self, reason: str) -> None:
        self.events.append(("unprocessed", reason))

    @property
    def endings(self) -> int:
        return sum(event[0] in self.ENDS for event in self.events)


class SlowSink(Sink):
    """Returns nothing to the window until its reader takes it."""

    auto_return: ClassVar[bool] = False


class Machine:
    """A connection whose callbacks are remembered."""

    def __init__(self, settings: bytes | None = b"") -> None:
        self.settings = 0
        self.goaways: list[str] = []
        self.errors: list[RemoteProtocolError] = []
        self.http2: Http2Connection[Sink] = Http2Connection(
            0.0, on_settings=self._settled, on_goaway=self.goaways.append, on_over=self._over
        )
        self.outgoing = self.http2.outgoing
        self.sinks: list[Sink] = []
        self.greeting = self.outgoing.data_to_send()
        self._written = b""
        if settings is not None:
            self.receive(frame(frames.SETTINGS, settings))
            self.take()

    def _settled(self) -> None:
        self.settings += 1

    def _over(self, error: RemoteProtocolError) -> None:
        self.errors.append(error)

    def open(self, payload: bytes = b"12345", *, end: bool = True, slow: bool = False, fields: Fields = POST) -> Sink:
        """Open a stream in a turn of the loop of its own: at its end the bytes leave."""
        sink = self.give(payload, end=end, slow=slow, fields=fields)
        self._written += self.outgoing.data_to_send()
        return sink

    def give(self, payload: bytes = b"12345", *, end: bool = True, slow: bool = False, fields: Fields = POST) -> Sink:
        """Open a stream, in a turn that is not over."""
        sink = SlowSink(fields) if slow else Sink(fields)
        self.sinks.append(sink)
        self.outgoing.open(sink, payload, end=end)
        return sink

    def receive(self, data: bytes, now: float = 0.0) -> None:
        self.http2.receive_data(data, now)

    def write(self) -> bytes:
        """What was written since the last time, and what is due."""
        written, self._written = self._written, b""
        return written + self.outgoing.data_to_send()

    def take(self) -> list[Frame]:
        """The same as frames."""
        return list(parse(self.write()))

    @property
    def error(self) -> RemoteProtocolError:
        """The one error that ended it."""
        (error,) = self.errors
        return error

    def check(self) -> None:
        """Check the invariants: no credit is lost, and every stream ends exactly once."""
        http2, outgoing = self.http2, self.outgoing
        assert http2.is_over == bool(self.errors)
        assert len(self.errors) <= 1
        for sink in self.sinks:
            assert sink.endings <= 1
            is_known = sink in outgoing.all_streams()
            assert sink.is_open == is_known
            assert sink.endings == (not is_known)
            if sink.stream_id and is_known and not http2.is_over:
                unread = 0 if sink.auto_return else sink.received
                assert sink.receive_window + sink.to_return + unread == STREAM_WINDOW
                assert sink.receive_window >= 0
        if not http2.is_over:
            assert http2._receive_window + http2._to_return == frames.MAX_WINDOW
            assert len(http2._tail) < frames.HEADER_SIZE + frames.DEFAULT_MAX_FRAME_SIZE
            assert outgoing._blocked.keys() <= outgoing.streams.keys()


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream_id: int = 0) -> bytes:
    """A frame of any kind, allowed or not."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


def parse(data: bytes) -> Iterator[Frame]:
    """Frames of what a machine sent."""
    while data:
        end = 9 + int.from_bytes(data[:3], "big")
        assert len(data) >= end, "a machine sends whole frames"
        yield Frame(data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:end])
        data = data[end:]


def headers(stream_id: int, block: bytes = b"\x88", *, end: bool = False) -> bytes:
    """A block in one HEADERS; `88` is ":status: 200"."""
    return frame(frames.HEADERS, block, flags=frames.END_HEADERS | end, stream_id=stream_id)


def data(stream_id: int, payload: bytes, *, end: bool = False) -> bytes:
    return frame(frames.DATA, payload, flags=int(end), stream_id=stream_id)


def setting(name: int, value: int) -> bytes:
    """One pair of a SETTINGS payload."""
    return name.to_bytes(2, "big") + value.to_bytes(4, "big")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def goaway(last: int, code: int = 0, debug: bytes = b"") -> bytes:
    return frame(frames.GOAWAY, u32(last) + u32(code) + debug)


TRAILERS = b"\x00\x0bgrpc-status\x010"


def answer(stream_id: int, body: bytes = b"body") -> bytes:
    """A whole good response."""
    return headers(stream_id) + data(stream_id, body) + headers(stream_id, TRAILERS, end=True)


ANSWERED = [
    ("headers", ((":status", "200"),)),
    ("data", b"body"),
    ("headers", (("grpc-status", "0"),)),
    ("ended",),
]


def bodies(sent: list[Frame], stream_id: int) -> bytes:
    """What was sent of a request."""
    return b"".join(one.payload for one in sent if one.kind == frames.DATA and one.stream_id == stream_id)


def ids(sent: list[Frame]) -> list[int]:
    """Streams that were opened."""
    return [one.stream_id for one in sent if one.kind == frames.HEADERS]


def resets(sent: list[Frame]) -> list[tuple[int, int]]:
    """Streams that were reset, and with which codes."""
    found = [one for one in sent if one.kind == frames.RST_STREAM]
    return [(one.stream_id, int.from_bytes(one.payload, "big")) for one in found]
