"""transport/native/accelerated.py, http2/accelerator.py: the accelerator of calls does what Python does."""

import asyncio
import gc
import os
import sys
import tracemalloc
from random import Random
from struct import pack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from etcd_aio.base.accelerator import UnusableError
from etcd_aio.http2 import RETURN_AFTER, CallsAccelerator, HeaderBlock, Http2Connection, RequestHeaders
from etcd_aio.transport.native.accelerated import ACCELERATOR, BACKEND, check
from etcd_aio.transport.native.calls import Role, UnaryCall
from tests.support import frame_scripts
from tests.support.frame_scripts import Counted, Disagreement
from tests.support.http2 import frame
from tests.support.reference_counts import mortal

if TYPE_CHECKING:
    from types import ModuleType

SCRIPTS = 50


@pytest.fixture(scope="module")
def accelerator() -> CallsAccelerator:
    if ACCELERATOR is None:
        assert os.environ.get("ETCD_AIO_ACCELERATOR") != "yes", BACKEND
        pytest.skip(f"no accelerator: {BACKEND}")
    return ACCELERATOR


@pytest.mark.parametrize("seed", range(10))
def test_random_scripts_look_alike_with_and_without_it(accelerator: CallsAccelerator, seed: int) -> None:
    counted = Counted(accelerator)
    answers = sum(frame_scripts.run(counted, Random(seed * SCRIPTS + number)) for number in range(SCRIPTS))
    assert answers > SCRIPTS, "most calls are answered"
    assert counted.started > SCRIPTS / 2
    assert counted.read > 3 * SCRIPTS


class Wrong(Counted):
    """An accelerator that does one thing wrong."""

    fault = ""

    def start(self, *arguments: Any) -> tuple[bytes, int, int]:
        data, started, sent = super().start(*arguments)
        if self.fault == "bytes":
            data = data[:-1] + b"!"
        return data, started, sent + (self.fault == "sent")

    def advance(self, *arguments: Any) -> tuple[int, int, int]:
        at, received, useful = super().advance(*arguments)
        if self.fault == "message" and received:
            for call in arguments[2].values():
                if isinstance(call, UnaryCall) and call._message:
                    call._message = b"other"
        return at, received + (self.fault == "received" and received > 0), useful


@pytest.mark.parametrize("fault", ["bytes", "sent", "message", "received"])
def test_the_comparison_finds_an_accelerator_that_differs(accelerator: CallsAccelerator, fault: str) -> None:
    wrong = Wrong(accelerator)
    wrong.fault = fault

    def compare() -> None:
        for number in range(SCRIPTS):
            frame_scripts.run(wrong, Random(number))

    with pytest.raises(Disagreement):
        compare()


# The check at import.


class Python:
    """An accelerator that leaves everything to Python, or has a fault."""

    def __init__(self, fault: str = "") -> None:
        self._fault = fault

    def set_classes(self, *classes: object) -> None:
        if self._fault == "classes":
            raise TypeError("headers is not a slot")

    def start(self, queue: Any, streams: Any, most: int, next_id: int, *limits: int) -> tuple[bytes, int, int]:
        return b"", 0, 0

    def advance(self, data: bytes, at: int, streams: Any, known: Any, room: int) -> tuple[int, int, int]:
        return (len(data), 0, 1) if self._fault == "advance" and len(data) > 20 else (at, 0, 0)


def test_a_sound_module_passes() -> None:
    assert check(cast("ModuleType", Python())) is not None


def test_a_module_whose_exchange_differs_is_not_used() -> None:
    with pytest.raises(UnusableError, match="differs"):
        check(cast("ModuleType", Python("advance")))


def test_a_module_that_cannot_use_the_classes_is_not_used() -> None:
    with pytest.raises(TypeError, match="not a slot"):
        check(cast("ModuleType", Python("classes")))


def test_a_call_with_another_slot_is_noticed(accelerator: CallsAccelerator) -> None:
    from etcd_aio.transport.native import _speedups

    roles = Role.HEADERS, Role.TRAILERS
    with pytest.raises(ValueError, match="once"):
        _speedups.set_classes(UnaryCall, RequestHeaders, HeaderBlock, *roles, 1, 1)
    assert accelerator.start is _speedups.start


# Arguments that `http2` does not pass, references and memory.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((b"", 0, {}, {}), TypeError),
        ((bytearray(), 0, {}, {}, 0), TypeError),
        ((b"", 0, [], {}, 0), TypeError),
        ((b"", 0, {}, [], 0), TypeError),
        ((b"", "0", {}, {}, 0), TypeError),
        ((b"", 0, {}, {}, 1 << 70), OverflowError),
        ((b"", -1, {}, {}, 0), ValueError),
    ],
)
def test_other_arguments_of_advance_are_refused(
    accelerator: CallsAccelerator, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        accelerator.advance(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        (((), [], 1, 1, 0, 0, 0, 0), TypeError),
        ((1, {}, 1, 1, 0, 0, 0, 0), TypeError),
        (((), {}, "1", 1, 0, 0, 0, 0), TypeError),
        (((), {}, 1, 1 << 70, 0, 0, 0, 0), OverflowError),
    ],
)
def test_other_arguments_of_start_are_refused(
    accelerator: CallsAccelerator, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        accelerator.start(*arguments)


@pytest.mark.parametrize("at", [0, 5, 100, 1 << 40])
def test_positions_behind_the_data_are_harmless(accelerator: CallsAccelerator, at: int) -> None:
    assert accelerator.advance(b"12345", at, {}, {}, 0) == (at, 0, 0)


def test_other_streams_are_left_to_python(accelerator: CallsAccelerator) -> None:
    frames = bytes((0, 0, 5, 0, 0, 0, 0, 0, 1)) + bytes(5)
    for stream in (None, object(), UnaryCall.__new__(UnaryCall)):  # the last one has empty slots
        assert accelerator.advance(frames, 0, {1: cast("Any", stream)}, {}, 1 << 20) == (0, 0, 0)
        assert accelerator.start([stream], {}, 1, 1, 0, 1 << 16, 1 << 16, 1 << 14) == (b"", 0, 0)


MESSAGE = b"\0\0\0\0\1r"
HEAD, TAIL = b"\x88\0\x0ccontent-type\x10application/grpc", b"\0\x0bgrpc-status\x010"
IN_FRAME = bytes((0, 0, 6, 0, 0, 0, 0, 0, 1)) + MESSAGE


def call_on_its_way() -> UnaryCall:
    """A call that has response headers, and waits for its message."""
    call = UnaryCall(RequestHeaders(()), None, cast("Any", None), 1.0, 100)
    call.stream_id, call.receive_window = 1, 1000
    call.has_begun = call.has_headers = True
    return call


def advanced(accelerator: CallsAccelerator, call: UnaryCall, room: int = 1000) -> bool:
    found = accelerator.advance(IN_FRAME, 0, {1: call}, {}, room)
    assert found in {(0, 0, 0), (len(IN_FRAME), len(MESSAGE), 1)}
    assert (call._message == b"r") is (found[2] == 1)
    return found[2] == 1


@pytest.mark.parametrize("room", [0, 5, 6])
def test_the_window_of_the_connection_is_respected(accelerator: CallsAccelerator, room: int) -> None:
    assert advanced(accelerator, call_on_its_way(), room) is (room >= 6)


@pytest.mark.parametrize("window", [0, 5, 6])
def test_the_window_of_a_call_is_respected(accelerator: CallsAccelerator, window: int) -> None:
    call = call_on_its_way()
    call.receive_window = window
    assert advanced(accelerator, call) is (window >= 6)


@pytest.mark.parametrize("more", [-7, -6, 0])
def test_bytes_are_returned_to_the_window_by_python(accelerator: CallsAccelerator, more: int) -> None:
    call = call_on_its_way()
    call.to_return = RETURN_AFTER + more
    assert advanced(accelerator, call) is (more < -6)


# Messages in several pieces.

PIECES = (b"\0\0\0\0\6re", b"pl", b"ie")


def call_with_half_a_message() -> UnaryCall:
    """A call that has the first piece."""
    call = call_on_its_way()
    call.future = asyncio.Future(loop=cast("Any", SimpleNamespace(get_debug=lambda: False)))
    call.on_data(PIECES[0])
    assert call.is_partial
    return call


@pytest.mark.parametrize(
    ("attributes", "connection_window", "frames_read"),
    [
        ({}, 4, 2),
        ({}, 3, 1),
        ({}, 1, 0),
        ({"receive_window": 4}, 100, 2),
        ({"receive_window": 3}, 100, 1),
        ({"receive_window": 1}, 100, 0),
        ({"to_return": RETURN_AFTER - 5}, 100, 2),
        ({"to_return": RETURN_AFTER - 4}, 100, 1),
        ({"to_return": RETURN_AFTER - 2}, 100, 0),
        ({"has_begun": False}, 100, 0),
    ],
)
def test_pieces_are_read_within_every_window(
    accelerator: CallsAccelerator, attributes: dict[str, int], connection_window: int, frames_read: int
) -> None:
    call = call_with_half_a_message()
    for name, value in attributes.items():
        setattr(call, name, value)
    window, returned = call.receive_window, call.to_return
    data = b"".join(frame(0, piece, stream_id=1) for piece in PIECES[1:])
    assert accelerator.advance(data, 0, {1: call}, {}, connection_window) == (
        11 * frames_read,
        2 * frames_read,
        frames_read,
    )
    assert call.is_partial is (frames_read < 2)
    assert call._message == (b"replie" if frames_read == 2 else None)
    assert (call.receive_window, call.to_return) == (window - 2 * frames_read, returned + 2 * frames_read)


def test_an_empty_piece_is_left_to_python(accelerator: CallsAccelerator) -> None:
    assert accelerator.advance(frame(0, b"", stream_id=1), 0, {1: call_with_half_a_message()}, {}, 100) == (0, 0, 0)


def test_what_a_call_raises_for_a_piece_is_raised(accelerator: CallsAccelerator) -> None:
    call = call_with_half_a_message()
    call.future = cast("Any", HostileFuture(lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        accelerator.advance(frame(0, b"pl", stream_id=1), 0, {1: call}, {}, 100)


@pytest.mark.parametrize("size", [16_384, 65_536, 262_144])
def test_a_large_reply_looks_alike_with_and_without_it(accelerator: CallsAccelerator, size: int) -> None:
    body = Random(size).randbytes(2_500_000)
    message = pack(">BI", 0, len(body)) + body
    pieces = [message[at : at + 16_384] for at in range(0, len(message), 16_384)]
    reply = frame(1, HEAD, flags=4, stream_id=1) + b"".join(frame(0, piece, stream_id=1) for piece in pieces)
    reply += frame(1, TAIL, flags=5, stream_id=1)
    counted, loop = Counted(accelerator), asyncio.new_event_loop()
    seen: list[tuple[bytes, int, int, int]] = []
    for one in (None, counted):
        http2: Http2Connection[UnaryCall] = Http2Connection(
            0.0, on_settings=lambda: None, on_goaway=lambda reason: None, on_over=lambda error: None, accelerator=one
        )
        http2.receive_data(frame(4, b""), 0.0)
        call = UnaryCall(RequestHeaders(((":method", "POST"),)), None, loop.create_future(), 1.0, 1 << 22)
        http2.outgoing.open(call, MESSAGE, end=True)
        http2.outgoing.data_to_send()
        for at in range(0, len(reply), size):
            http2.receive_data(memoryview(reply)[at : at + size], 0.0)
        assert call.future.result() == body
        seen.append((http2.outgoing.data_to_send(), call.receive_window, call.to_return, http2._receive_window))
    loop.close()
    assert seen[0] == seen[1]
    assert seen[0][2] == len(message) - 2 * RETURN_AFTER, "bytes were returned twice"
    assert counted.read >= len(pieces) - 3, "all but the first, and those that return bytes"


@pytest.mark.parametrize("size", [1 << 40, 1 << 70, -1])
def test_numbers_out_of_bounds_are_left_to_python(accelerator: CallsAccelerator, size: int) -> None:
    for name in ("receive_window", "to_return", "_limit"):
        call = call_on_its_way()
        setattr(call, name, size)
        assert advanced(accelerator, call) is (size == 1 << 40 and name != "to_return")


@pytest.mark.parametrize("ends", [True, False])
def test_a_request_that_goes_on_is_left_to_python(accelerator: CallsAccelerator, ends: bool) -> None:
    headers = RequestHeaders(())
    headers.block, headers.generation = b"block", 0
    call = UnaryCall(headers, None, asyncio.new_event_loop().create_future(), 1.0, 100)
    call.unsent, call.end_after = MESSAGE, ends
    _, started, sent = accelerator.start([call], {}, 1, 1, 0, 1 << 16, 1 << 16, 1 << 14)
    assert (started, sent) == ((1, 6) if ends else (0, 0))
    call.future.get_loop().close()


class HostileFuture:
    """A future whose `done` changes what the accelerator looks at."""

    def __init__(self, change: Any) -> None:
        self._change = change

    def done(self) -> bool:
        self._change()
        return False

    def set_result(self, result: bytes) -> None:
        raise AssertionError("not reached")


def test_what_changes_while_an_answer_is_read_is_left_to_python(accelerator: CallsAccelerator) -> None:
    call = call_on_its_way()
    streams = {1: call}
    call.future = cast("Any", HostileFuture(streams.clear))
    call._message, call.is_sent_whole = b"r", True
    trailers = HeaderBlock((("grpc-status", "0"),))
    trailers.accepted_as = Role.TRAILERS
    ended = bytes((0, 0, 1, 1, 5, 0, 0, 0, 1)) + b"t"
    assert accelerator.advance(ended, 0, streams, {b"t": trailers}, 100) == (0, 0, 0)


def test_what_changes_while_a_call_is_started_is_no_error(accelerator: CallsAccelerator) -> None:
    headers = RequestHeaders(())
    headers.block, headers.generation = b"block", 0
    queue: dict[UnaryCall, None] = {}
    for _ in range(3):
        call = UnaryCall(headers, None, cast("Any", HostileFuture(queue.clear)), 1.0, 100)
        call.unsent, call.end_after = MESSAGE, True
        queue[call] = None
    assert accelerator.start(queue, {}, 3, 1, 0, 1 << 16, 1 << 16, 1 << 14)[1] == 3


@pytest.mark.parametrize("most", [0, 1, 64, 65, 1 << 40, 1 << 70])
def test_the_number_of_calls_that_are_started_is_bounded(accelerator: CallsAccelerator, most: int) -> None:
    headers = RequestHeaders(())
    headers.block, headers.generation = b"block", 0
    with_loop = asyncio.new_event_loop()
    calls = [UnaryCall(headers, None, with_loop.create_future(), 1.0, 100) for _ in range(100)]
    for call in calls:
        call.unsent, call.end_after = MESSAGE, True
    streams: dict[int, Any] = {}
    data, started, sent = accelerator.start(calls, streams, most, 1, 0, 1 << 16, 1 << 16, 1 << 14)
    assert started == min(most, 64) == len(streams) == data.count(MESSAGE)
    assert sent == started * len(MESSAGE)
    with_loop.close()


def test_a_connection_that_cannot_tell_what_was_started_starts_no_more(accelerator: CallsAccelerator) -> None:
    class Full(list[bytes]):
        def append(self, data: bytes) -> None:
            raise MemoryError

    http2: Any = Http2Connection(
        0.0,
        on_settings=lambda: None,
        on_goaway=lambda reason: None,
        on_over=lambda error: None,
        accelerator=accelerator,
    )
    headers, loop = RequestHeaders(((":method", "POST"),)), asyncio.new_event_loop()
    for _ in range(2):  # the first time it changes the table
        http2.outgoing._encoder.encode(headers)
    for _ in range(2):
        http2.outgoing.open(UnaryCall(headers, None, loop.create_future(), 1.0, 100), MESSAGE, end=True)
    http2.outgoing._out = Full()
    with pytest.raises(MemoryError):
        http2.outgoing.data_to_send()
    http2.outgoing._out = []
    assert http2.outgoing.data_to_send() == b""
    loop.close()


def test_rounds_leave_no_reference_and_no_memory(accelerator: CallsAccelerator) -> None:
    counted = mortal(None, True, False, b"", UnaryCall, RequestHeaders, HeaderBlock, *Role)
    for number in range(20):
        frame_scripts.run(accelerator, Random(number))
    tracemalloc.start()
    try:
        gc.collect()
        counts = [sys.getrefcount(one) for one in counted]
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            frame_scripts.run(accelerator, Random(number))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        grown = [sys.getrefcount(one) - count for one, count in zip(counted, counts, strict=True)]
    finally:
        tracemalloc.stop()
    assert max(map(abs, grown)) < 100, grown
    assert after - before < 30_000
