"""The HTTP/2 machine against everything: an independent peer, any bytes, any cuts, any sequence of blocks."""

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hpack import Decoder, Encoder, HPACKError
from hpack.exceptions import OversizedHeaderListError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etcd_aio.http2 import RemoteProtocolError, frames
from etcd_aio.http2.headers import _MANY_TABLE_SIZES, MAX_HEADER_LIST_SIZE, HeaderDecoder
from tests.support.http2 import TRAILERS, Machine, Sink, data, frame, headers, setting, u32
from tests.support.tiers import nightly_examples

# --- back to back with h2 ---

SIZES = st.sampled_from([0, 1, 5, 16_384, 16_385, 65_535, 65_536, 200_000])
STEPS = st.sampled_from([1, 2, 7, 9, 10, 100, 10**9])


class Peer:
    """A server on h2: it answers each request with its size in the headers, a body, and trailers."""

    def __init__(self, *, window: int, frame_size: int, streams: int, table: int, padding: int) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        changed = {
            SettingCodes.INITIAL_WINDOW_SIZE: window,
            SettingCodes.MAX_FRAME_SIZE: frame_size,
            SettingCodes.MAX_CONCURRENT_STREAMS: streams,
            SettingCodes.HEADER_TABLE_SIZE: table,
        }
        self.h2.local_settings = Settings(client=False, initial_values=changed)
        self.h2.max_inbound_frame_size = frame_size  # h2 would change it at an ACK, and ours has none for it
        self.h2.initiate_connection()
        self.padding = padding
        self.requests: dict[int, bytearray] = {}
        self.paths: dict[int, str] = {}
        self.unsent: dict[int, bytes] = {}
        self.resets: list[int] = []

    def receive(self, raw: bytes) -> None:
        for event in self.h2.receive_data(raw):
            match event:
                case RequestReceived(stream_id=int(stream_id), headers=list(found)):
                    self.requests[stream_id] = bytearray()
                    self.paths[stream_id] = str({str(k): str(v) for k, v in found}[":path"])
                case DataReceived(stream_id=int(stream_id), data=bytes(body), flow_controlled_length=int(size)):
                    self.requests[stream_id] += body
                    if size:
                        self.h2.acknowledge_received_data(size, stream_id)
                case StreamEnded(stream_id=int(stream_id)):
                    self.begin(stream_id)
                case StreamReset(stream_id=int(stream_id)):
                    self.resets.append(stream_id)
                    self.unsent.pop(stream_id, None)
        for stream_id in tuple(self.unsent):
            self.write(stream_id)

    def begin(self, stream_id: int) -> None:
        size = len(self.requests[stream_id])
        self.h2.send_headers(stream_id, [(":status", "200"), ("x-size", str(size))])
        self.unsent[stream_id] = body_for(self.paths[stream_id])

    def write(self, stream_id: int) -> None:
        left = self.unsent[stream_id]
        while left:
            window = self.h2.local_flow_control_window(stream_id)
            space = min(window, self.h2.max_outbound_frame_size) - self.padding - 1
            if space <= 0:
                break
            self.h2.send_data(stream_id, left[:space], pad_length=self.padding or None)
            left = left[space:]
        self.unsent[stream_id] = left
        if not left:
            del self.unsent[stream_id]
            self.h2.send_headers(stream_id, [("grpc-status", "0"), ("x-id", str(stream_id))], end_stream=True)


def body_for(path: str) -> bytes:
    return (path.encode() * 1000)[: int(path[1:])]


def converse(machine: Machine, peer: Peer, step: int) -> None:
    """Carry bytes back and forth, so many at a time, until both are silent."""
    for _ in range(10_000):
        up, down = machine.write(), peer.h2.data_to_send()
        if not up and not down:
            return
        peer.receive(up)
        for start in range(0, len(down), step):
            machine.receive(down[start : start + step])
            machine.check()
    raise AssertionError("they never come to an end")


@given(
    calls=st.lists(st.tuples(SIZES, st.integers(0, 3000)), min_size=1, max_size=8),
    window=st.sampled_from([1_000, 65_535, 10**6]),
    frame_size=st.sampled_from([16_384, 100_000]),
    streams=st.sampled_from([1, 2, 100]),
    table=st.sampled_from([0, 100, 4096, 10_000]),
    padding=st.sampled_from([0, 1, 255]),
    step=STEPS,
)
@nightly_examples(60, default=25)
def test_every_call_to_an_independent_server_is_answered_as_it_was_asked(
    calls: list[tuple[int, int]], window: int, frame_size: int, streams: int, table: int, padding: int, step: int
) -> None:
    machine = Machine(None)
    peer = Peer(window=window, frame_size=frame_size, streams=streams, table=table, padding=padding)
    peer.receive(machine.greeting)
    converse(machine, peer, step)
    for size, reply in calls:
        fields = ((":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", f"/{reply}"))
        machine.open(bytes(size), fields=fields)
    converse(machine, peer, step)
    assert not machine.errors
    for sink, (size, reply) in zip(machine.sinks, calls, strict=True):
        head = ("headers", ((":status", "200"), ("x-size", str(size))))
        body = [("data", body_for(f"/{reply}"))] if reply else []
        tail = ("headers", (("grpc-status", "0"), ("x-id", str(sink.stream_id))))
        assert sink.events == [head, *body, tail, ("ended",)]
    assert [sink.stream_id for sink in machine.sinks] == list(range(1, 2 * len(calls), 2)), "first come first served"
    assert {peer.paths[sink.stream_id] for sink in machine.sinks} == {f"/{reply}" for _, reply in calls}


# --- any bytes, in any cuts ---

STREAM_IDS = st.sampled_from([1, 3, 5, 7] * 4 + [0, 2, 9])
ANY_FRAME = st.builds(
    lambda kind, payload, flags, stream_id: frame(kind, payload, flags=flags, stream_id=stream_id),
    st.integers(0, 11),
    st.binary(max_size=20),
    st.sampled_from([0, 1, 4, 5, 8, 12, 0x20, 0x2D]),
    STREAM_IDS,
)
BLOCKS = st.sampled_from(
    [b"\x88", b"\x00\x0bgrpc-status\x010", b"\x40\x01a\x01b", b"\xbe", b"\x08\x03100", b"\x3f\x01"]
)
LIKELY_FRAME = st.one_of(
    st.builds(lambda number, block, end: headers(number, block, end=end), STREAM_IDS, BLOCKS, st.booleans()),
    st.builds(lambda number, size, end: data(number, bytes(size), end=end), STREAM_IDS, SIZES, st.booleans()),
    st.builds(lambda size, number: frame(8, u32(size), stream_id=number), SIZES, STREAM_IDS),
    st.builds(lambda name, value: frame(4, setting(name, value)), st.integers(1, 6), SIZES),
    st.builds(lambda last: frame(7, u32(last) + u32(0)), STREAM_IDS),
    st.builds(lambda number: frame(3, u32(7), stream_id=number), STREAM_IDS),
    st.just(frame(6, bytes(8))),
    st.builds(lambda number, size: headers(number) + data(number, bytes(size)), STREAM_IDS, st.integers(1, 16_384)),
    st.builds(lambda number: headers(number, TRAILERS, end=True), STREAM_IDS),
)
ANYTHING = st.lists(st.one_of(LIKELY_FRAME, LIKELY_FRAME, ANY_FRAME, st.binary(max_size=20)), max_size=30).map(b"".join)


def busy(*, greeted: bool) -> Machine:
    """A machine with a call, an upload that waits, a stream, and one without a reader."""
    machine = Machine(b"" if greeted else None)
    machine.open()
    machine.open(bytes(100_000))
    machine.open(b"", end=False)
    machine.open(b"x", end=False, slow=True)
    return machine


def story(machine: Machine) -> object:
    return (
        [sink.events for sink in machine.sinks],
        machine.settings,
        machine.goaways,
        [(error.code, str(error)) for error in machine.errors],
        machine.write(),
    )


@given(received=ANYTHING, step=STEPS, greeted=st.sampled_from([True, True, True, False]))
@nightly_examples(400)
def test_any_bytes_are_taken_or_end_in_a_remote_protocol_error_however_they_are_cut(
    received: bytes, step: int, greeted: bool
) -> None:
    whole, cut = busy(greeted=greeted), busy(greeted=greeted)
    whole.receive(received)
    whole.check()
    for start in range(0, len(received), step):
        cut.receive(received[start : start + step])
    cut.check()
    assert all(isinstance(error, RemoteProtocolError) for error in whole.errors)
    assert story(whole) == story(cut)


@pytest.mark.slow
def test_the_hardest_bytes_are_reached() -> None:
    """The grammar above is worth something: it gets as far as each of a machine's ends."""
    seen: set[object] = set()

    @given(received=ANYTHING)
    @settings(max_examples=300, database=None, derandomize=True)
    def gather(received: bytes) -> None:
        machine = busy(greeted=True)
        machine.receive(received)
        seen.update(event[0] for sink in machine.sinks for event in sink.events)
        seen.update(error.code.name for error in machine.errors)

    gather()
    assert seen >= {"headers", "data", "ended", "reset", "unprocessed", "PROTOCOL_ERROR", "FRAME_SIZE_ERROR"}


# --- windows ---


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("data"), st.integers(0, 2), st.integers(0, 16_384), st.integers(-1, 255)),
            st.tuples(st.just("read"), st.integers(0, 2), st.integers(1, 2**22), st.just(0)),
        ),
        max_size=200,
    )
)
@nightly_examples(100)
def test_no_credit_is_ever_lost(steps: list[tuple[str, int, int, int]]) -> None:
    machine = Machine()
    sinks = [machine.open(slow=number != 1) for number in range(3)]
    granted: dict[int, int] = dict.fromkeys((1, 3, 5), 2**22)
    for sink in sinks:
        machine.receive(headers(sink.stream_id))
    for kind, which, size, padding in steps:
        sink = sinks[which]
        if kind == "read":
            taken = min(size, sink.received) if not sink.auto_return else 0
            sink.received -= taken
            machine.http2.consumed(sink, taken)
        else:
            payload = bytes(size) if padding < 0 else (bytes([padding]) + bytes(size + padding))[: 2**14]
            if padding >= len(payload) or len(payload) > sink.receive_window:
                continue
            flags = 0 if padding < 0 else frames.PADDED
            machine.receive(frame(0, payload, flags=flags, stream_id=sink.stream_id))
            granted[sink.stream_id] -= len(payload)
        for one in machine.take():
            if one.kind == frames.WINDOW_UPDATE and one.stream_id:
                granted[one.stream_id] += int.from_bytes(one.payload, "big")
        machine.check()
        # What the peer believes is what the machine believes.
        assert granted == {each.stream_id: each.receive_window for each in sinks}


# --- header blocks ---

TEXTS = st.sampled_from(["", "0", "1", "a" * 40, "x" * 3000])
NAMES = st.sampled_from(["a", "b", "grpc-status", "grpc-message"])
HONEST = st.lists(
    st.tuples(
        st.lists(st.tuples(NAMES, TEXTS), max_size=4),
        st.sampled_from([None, 0, 40, 80, 4096]),
    ),
    max_size=30,
)


def compare(blocks: list[bytes]) -> None:
    """Our decoder on its way through all blocks, and one that remembers none."""
    ours, fresh = HeaderDecoder(), Decoder(max_header_list_size=MAX_HEADER_LIST_SIZE)
    for block in blocks:
        if _MANY_TABLE_SIZES.match(block):  # which hpack takes
            with pytest.raises(RemoteProtocolError, match="more than two table sizes"):
                ours.decode(block)
            return
        try:
            expected = tuple((str(n, "latin-1"), str(v, "latin-1")) for n, v in fresh.decode(block, raw=True))
        except OversizedHeaderListError:
            assert ours.decode(block).flaw
            return
        except (HPACKError, IndexError):
            with pytest.raises(RemoteProtocolError):
                ours.decode(block)
            return
        assert ours.decode(block).fields == expected


@given(HONEST)
@nightly_examples(200, default=50)
def test_remembered_blocks_mean_what_a_fresh_decoder_reads(
    script: list[tuple[list[tuple[str, str]], int | None]],
) -> None:
    encoder = Encoder()
    blocks = []
    for fields, size in script:
        if size is not None:
            encoder.header_table_size = size
        blocks.append(encoder.encode(fields))
    compare(blocks)


SMALL = st.sampled_from(
    [b"\x40\x01a\x01" + bytes([value]) for value in b"123"]
    + [b"\xbe", b"\xbf", b"\x00\x01c\x01d", b"\x20", b"\x3f\x03", b"\x3f\x25", b"\x88"]
)


@given(st.lists(st.lists(SMALL, max_size=4).map(b"".join) | st.binary(max_size=8), max_size=30))
@nightly_examples(400)
@example([b"\x20\x20\x20"])
def test_blocks_by_hand_mean_the_same_too(blocks: list[bytes]) -> None:
    compare([block for block in blocks for _ in range(2)])


# --- the sending side ---


@given(
    script=st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(0, 2), st.integers(0, 50_000)),
            st.tuples(st.just("window"), st.integers(0, 3), st.integers(1, 100_000)),
            st.tuples(st.just("initial"), st.just(0), st.integers(0, 100_000)),
        ),
        max_size=60,
    )
)
@nightly_examples(150)
def test_what_is_sent_is_what_was_given_and_never_past_a_window(script: list[tuple[str, int, int]]) -> None:
    machine = Machine()
    sinks: list[Sink] = [machine.open(b"", end=False) for _ in range(3)]
    machine.take()
    given_bytes: dict[int, bytes] = {1: b"", 3: b"", 5: b""}
    sent_bytes: dict[int, bytes] = {1: b"", 3: b"", 5: b""}
    initial, connection = 65_535, 65_535
    windows: dict[int, int] = dict.fromkeys((1, 3, 5), initial)
    for position, (kind, which, size) in enumerate(script):
        if kind == "send":
            payload = bytes([position % 251]) * size
            given_bytes[2 * which + 1] += payload
            machine.outgoing.send(sinks[which], payload, end=False)
        elif kind == "window":
            stream_id = 2 * which - 1 if which else 0
            machine.receive(frame(8, u32(size), stream_id=stream_id))
            if stream_id:
                windows[stream_id] += size
            else:
                connection += size
        else:
            machine.receive(frame(4, setting(4, size)))
            windows = {key: value + size - initial for key, value in windows.items()}
            initial = size
        for one in machine.take():
            if one.kind == frames.DATA:
                sent_bytes[one.stream_id] += one.payload
                windows[one.stream_id] -= len(one.payload)
                connection -= len(one.payload)
                assert windows[one.stream_id] >= 0 or not one.payload
        assert connection >= 0
        for sink in sinks:
            left = len(given_bytes[sink.stream_id]) - len(sent_bytes[sink.stream_id])
            assert len(sink.unsent) == left
            assert not left or not connection or windows[sink.stream_id] <= 0, "nothing waits without need"
    assert not machine.errors
    assert all(given_bytes[key].startswith(sent_bytes[key]) for key in given_bytes)
