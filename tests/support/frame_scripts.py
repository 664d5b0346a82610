"""Runs random scripts of calls and frames on two connections, with and without an accelerator, and compares them.

A script opens calls, cancels some, writes, and receives answers of a server that mostly behaves: with other headers,
padding, pings, resets, window updates, settings, cuts anywhere, and in some scripts with bytes that were flipped, lost
or added. After each step everything that can be seen of both connections and of their calls must be equal.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from struct import pack
from typing import Any, Final

from hpack import Encoder

from etcd_aio.errors import AttemptFailure
from etcd_aio.http2 import CallsAccelerator, Http2Connection, LocalProtocolError, RequestHeaders, frames
from etcd_aio.transport.native.calls import StreamCall, UnaryCall
from tests.support.http2 import frame, setting

_METHODS: Final = tuple(((":method", "POST"), (":path", f"/{name}")) for name in ("put", "get"))
_OK: Final = [(":status", "200"), ("content-type", "application/grpc")]
_SIZES: Final = (0, 0, 3, 30, 30, 300, 5000, 16_379, 16_380, 40_000)
_LIMITS: Final = (20, 4000, 1 << 20, 1 << 20, 1 << 20)


class Disagreement(AssertionError):  # noqa: N818 - a failed comparison
    """The two connections differ; the text says where."""


@dataclass
class Counted(CallsAccelerator):
    """An accelerator, and how many calls it has started and frames it has read.

    Attributes:
        started, read: see above.
    """

    accelerator: CallsAccelerator
    started: int = 0
    read: int = 0

    def start(self, *arguments: Any) -> tuple[bytes, int, int]:
        found = self.accelerator.start(*arguments)
        self.started += found[1]
        return found

    def advance(self, *arguments: Any) -> tuple[int, int, int]:
        found = self.accelerator.advance(*arguments)
        self.read += found[2]
        return found


@dataclass
class Side:
    """One connection, with its calls and what was seen of it."""

    http2: Http2Connection[Any]
    headers: list[RequestHeaders]
    events: list[str]
    own: dict[str, RequestHeaders] = field(default_factory=dict)
    calls: list[Any] = field(default_factory=list)
    written: bytes = b""

    @classmethod
    def made(cls, accelerator: CallsAccelerator | None) -> "Side":
        """A connection whose peer has greeted."""
        events: list[str] = []
        http2: Http2Connection[Any] = Http2Connection(
            0.0,
            on_settings=lambda: events.append("settings"),
            on_goaway=events.append,
            on_over=lambda error: events.append(str(error)),
            accelerator=accelerator,
        )
        http2.receive_data(frame(frames.SETTINGS, b""), 0.0)
        return cls(http2, [RequestHeaders(fields) for fields in _METHODS], events)

    def open(self, loop: asyncio.AbstractEventLoop, order: dict[str, Any]) -> None:
        """Open a call."""
        own = None
        if order["timeout"]:
            own = self.own.setdefault(order["timeout"], RequestHeaders((("grpc-timeout", order["timeout"]),)))
        headers = self.headers[order["method"]]
        if order["tracing"]:
            headers = headers.with_own((("traceparent", order["tracing"]),))
        call: UnaryCall | StreamCall
        if order["is_stream"]:
            call = StreamCall(headers, order["limit"], self._took)
        else:
            call = UnaryCall(headers, own, loop.create_future(), 5.0, order["limit"])
        try:
            self.http2.outgoing.open(call, order["payload"], end=not order["is_stream"])
        except LocalProtocolError as error:
            self.events.append(str(error))
        self.calls.append(call)

    def _took(self, call: StreamCall, size: int) -> None:
        self.http2.consumed(call, size)

    def cancel(self, number: int, *, with_reset: bool) -> None:
        """Cancel a call; its task resets it now, or in a later turn."""
        call = self.calls[number]
        if isinstance(call, UnaryCall):
            call.future.cancel()
        if with_reset:
            self.http2.outgoing.reset(call)

    def seen(self) -> dict[str, object]:
        """All that can be seen."""
        http2: Any = self.http2
        outgoing = http2.outgoing
        self.written += outgoing.data_to_send()
        return {
            "written": self.written,
            "events": self.events,
            "over": http2.is_over,
            "tail": http2._tail,
            "windows": (http2._receive_window, http2._to_return, outgoing._send_window, outgoing._unreturned),
            "ids": (outgoing._next_id, sorted(outgoing.streams), sorted(outgoing._blocked), len(outgoing._queue)),
            "budget": (http2._budget._tokens, http2._budget._late),
            "calls": [_of(call) for call in self.calls],
        }


def _of(call: Any) -> tuple[object, ...]:
    windows = call.send_window, call.receive_window, call.to_return
    flags = call.is_open, call.has_begun, call.has_headers, call.is_sent_whole, call.end_after
    end = _outcome(call.future) if isinstance(call, UnaryCall) else (list(call._messages), str(call._failure))
    return call.stream_id, windows, flags, bytes(call.unsent), call.delivery(), call.is_partial, end


def _outcome(future: "asyncio.Future[bytes]") -> object:
    if not future.done():
        return "waits"
    if future.cancelled():
        return "cancelled"
    error = future.exception()
    if isinstance(error, AttemptFailure):
        return error.code, error.message, error.delivery, error.reason
    return future.result()


class Server:
    """Answers the calls of both sides with the same bytes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._encoder = Encoder()
        self._begun: dict[int, list[bytes]] = {}  # frames that are still to be sent, in order
        self._has_few = random.random() < 0.2  # streams at the same time
        self._limited = False

    def sends(self, ids: list[int], *, is_broken: bool) -> bytes:
        """Some frames of the answers to these calls, and some that belong to none."""
        random = self._random
        for stream_id in ids:
            if stream_id not in self._begun:
                self._begun[stream_id] = list(self._answer(stream_id))
        sent: list[bytes] = []
        waiting = [stream_id for stream_id, left in self._begun.items() if left]
        while waiting and random.random() < 0.97:
            stream_id = random.choice(waiting[:3])
            sent.append(self._begun[stream_id].pop(0))
            if self._has_few and not self._limited:
                sent.append(frame(frames.SETTINGS, setting(3, random.randrange(1, 4))))
                self._limited = True
            if not self._begun[stream_id]:
                waiting.remove(stream_id)
            if random.random() < 0.08:
                sent.append(self._aside())
        data = bytearray(b"".join(sent))
        for _ in range(random.choice((1, 1, 2, 5)) if is_broken and data else 0):
            at = random.randrange(len(data) + 1)
            match random.choice(["flip", "flip", "lose", "add"]):
                case "flip" if at < len(data):
                    data[at] = random.randrange(256)
                case "lose":
                    del data[at : at + random.randrange(1, 20)]
                case _:
                    data[at:at] = random.randbytes(random.randrange(1, 12))
        return bytes(data)

    def _answer(self, stream_id: int) -> Iterator[bytes]:
        """The frames of an answer. Header blocks are made when the answer is, so their order is that of the table."""
        random = self._random
        chance = random.random
        body = random.randbytes(random.choice(_SIZES))
        message = pack(">BI", chance() < 0.02, len(body)) + body
        fields = list(_OK)
        if chance() < 0.06:
            fields = [(":status", random.choice(("200", "503", "100", "404"))), ("x", str(random.randrange(5)))]
        first = self._encoder.encode(fields) if chance() < 0.1 else _literal(fields)
        status = "0" if chance() < 0.94 else random.choice(("14", "2", "x"))
        trailers = _literal([("grpc-status", status), ("grpc-message", "")])
        flags = frames.END_HEADERS
        yield frame(frames.HEADERS, first, flags=flags, stream_id=stream_id)
        if chance() < 0.02:
            yield frame(frames.HEADERS, first, flags=flags, stream_id=stream_id)
        pieces = [message[at : at + 16_384] for at in range(0, len(message), 16_384)]
        if chance() < 0.1:
            cut = random.randrange(len(message) + 1)
            pieces = [message[:cut], message[cut:]]
        for piece in pieces:
            if len(piece) > 16_384:
                return
            if chance() < 0.04:
                yield frame(frames.DATA, b"\x04" + piece[:16_000] + bytes(4), flags=frames.PADDED, stream_id=stream_id)
            else:
                odd = random.choice((frames.END_STREAM, 2, 0x40)) if chance() < 0.04 else 0
                yield frame(frames.DATA, piece, flags=odd, stream_id=stream_id)
                if odd == frames.END_STREAM:
                    return
        if chance() < 0.03:
            yield frame(frames.DATA, b"" if chance() < 0.5 else message[:9000], stream_id=stream_id)
        if chance() < 0.04:
            code = random.choice((0, 1, 7, 8, 11))
            yield frame(frames.RST_STREAM, pack(">I", code), stream_id=stream_id)
        elif chance() < 0.04:
            yield frame(frames.DATA, b"", flags=frames.END_STREAM, stream_id=stream_id)
        else:
            yield frame(frames.HEADERS, trailers, flags=flags | frames.END_STREAM, stream_id=stream_id)

    def _aside(self) -> bytes:
        random = self._random
        match random.randrange(6):
            case 0:
                return frame(frames.PING, b"12345678")
            case 1:
                return frame(frames.WINDOW_UPDATE, pack(">I", random.choice((1, 5000, 1 << 20))))
            case 2:
                name = random.choice((1, 3, 4, 5))  # table size, streams, window, largest frame
                value = {1: (0, 4096), 3: (0, 1, 100), 4: (0, 100, 65_535, 1 << 20), 5: (16_384, 20_000)}[name]
                return frame(frames.SETTINGS, setting(name, random.choice(value)))
            case 3:
                stream_id = random.choice((*self._begun, 1, 2, 999))
                return frame(frames.WINDOW_UPDATE, pack(">I", random.choice((0, 7, 40_000))), stream_id=stream_id)
            case 4 if random.random() < 0.1:
                return frame(frames.GOAWAY, pack(">II", random.choice((1, 5, 2**31 - 1)), 0) + b"enough")
            case _:
                return frame(random.choice((2, 9, 10)), b"12345", stream_id=random.choice((0, 1, 3)))


def _literal(fields: list[tuple[str, str]]) -> bytes:
    """A header block that changes no table, so that it repeats."""
    return b"".join(
        bytes((0, len(name))) + name.encode() + bytes((len(value),)) + value.encode() for name, value in fields
    )


def run(accelerator: CallsAccelerator, random: Random) -> int:
    """Run one script. Returns how many calls were answered.

    Raises:
        Disagreement: the sides differ.
    """
    loop = asyncio.new_event_loop()
    try:
        return _run(loop, accelerator, random)
    finally:
        loop.close()


def _run(loop: asyncio.AbstractEventLoop, accelerator: CallsAccelerator, random: Random) -> int:
    sides = [Side.made(None), Side.made(accelerator)]
    server = Server(random)
    is_broken = random.random() < 0.2
    large = random.choice((60, 60, 20_000))
    for step in range(random.randrange(2, 7)):
        for _ in range(random.randrange(8)):
            order = {
                "method": random.randrange(2),
                "timeout": random.choice(("", "5S", "5S", "4900m")),
                "tracing": str(random.randrange(9)) if random.random() < 0.05 else "",
                "is_stream": random.random() < 0.08,
                "limit": random.choice(_LIMITS),
                "payload": random.randbytes(random.choice((1, 5, 40, 60, 60, large, 15_000, 70_000 if step else 60))),
            }
            for side in sides:
                side.open(loop, order)
        count = len(sides[0].calls)
        for number in range(count):
            if random.random() < 0.05:
                with_reset = random.random() < 0.5
                for side in sides:
                    side.cancel(number, with_reset=with_reset)
        _compare(sides, "written")
        data = server.sends(sorted(sides[0].http2.outgoing.streams), is_broken=is_broken and random.random() < 0.5)
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 4))))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            for side in sides:
                side.http2.receive_data(data[start:end], float(step))
            _compare(sides, "received")
    answers = [call.future for call in sides[1].calls if isinstance(call, UnaryCall)]
    return sum(isinstance(_outcome(future), bytes) for future in answers)


def _compare(sides: list[Side], when: str) -> None:
    python, accelerated = sides[0].seen(), sides[1].seen()
    for name, value in python.items():
        if value != accelerated[name]:
            raise Disagreement(
                f"{when}: {name}: Python {str(value)[-600:]}, accelerated {str(accelerated[name])[-600:]}"
            )
