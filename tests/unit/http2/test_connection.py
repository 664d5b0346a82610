"""http2/connection.py: what it takes, and what it refuses, frame by frame."""

import pytest

from etcd_aio.http2 import STREAM_WINDOW, ErrorCode, LocalProtocolError, frames
from etcd_aio.http2.frames import Setting
from tests.support.http2 import (
    ANSWERED,
    PREFACE_SIZE,
    Frame,
    Machine,
    Sink,
    answer,
    data,
    frame,
    goaway,
    headers,
    ids,
    parse,
    resets,
    setting,
    u32,
)

E = ErrorCode
MAX_STREAMS = Setting.MAX_CONCURRENT_STREAMS


# --- the beginning ---


def test_it_begins_with_the_preface_settings_and_a_wide_window() -> None:
    machine = Machine(None)
    assert machine.greeting.startswith(frames.PREFACE)
    settings, update = parse(machine.greeting[PREFACE_SIZE:])
    said = dict(frames.parse_settings(settings.payload))
    assert said[Setting.ENABLE_PUSH] == 0
    assert said[Setting.INITIAL_WINDOW_SIZE] == STREAM_WINDOW
    assert update == Frame(frames.WINDOW_UPDATE, 0, 0, u32(2**31 - 1 - 65_535))


def test_the_first_settings_are_told_once_and_all_are_acknowledged() -> None:
    machine = Machine(None)
    for _ in range(3):
        machine.receive(frame(frames.SETTINGS))
    assert machine.settings == 1
    assert machine.take() == [Frame(frames.SETTINGS, frames.ACK, 0, b"")] * 3


@pytest.mark.parametrize(
    "first",
    [
        frame(frames.PING, bytes(8)),
        frame(frames.WINDOW_UPDATE, u32(1)),
        goaway(0),
        frame(99),
        frame(frames.CONTINUATION),
        frame(frames.SETTINGS, flags=frames.ACK),
    ],
)
def test_nothing_comes_before_settings(first: bytes) -> None:
    machine = Machine(None)
    machine.receive(first)
    assert machine.error.code is E.PROTOCOL_ERROR


# --- a call ---


def test_a_call_goes_out_in_one_piece_and_its_answer_comes_in() -> None:
    machine = Machine()
    call = machine.open(b"hello", fields=((":method", "POST"), (":scheme", "http")))
    assert call.is_sent_whole
    assert call.sent == 1
    assert machine.take() == [
        Frame(frames.HEADERS, frames.END_HEADERS, 1, b"\x83\x86"),
        Frame(frames.DATA, frames.END_STREAM, 1, b"hello"),
    ]
    machine.receive(answer(1))
    assert call.events == ANSWERED
    machine.check()
    assert machine.take() == []


def test_an_answer_in_any_pieces() -> None:
    for step in (1, 2, 3, 7, 20):
        machine = Machine()
        call = machine.open()
        whole = answer(1)
        for start in range(0, len(whole), step):
            assert not call.endings
            machine.receive(whole[start : start + step])
        assert call.events == ANSWERED


def test_informational_responses_are_passed_over() -> None:
    machine = Machine()
    call = machine.open()
    machine.receive(headers(1, b"\x08\x03100") + headers(1, b"\x08\x03103") + answer(1))
    assert call.events == ANSWERED


def test_a_continued_header_block() -> None:
    machine = Machine()
    call = machine.open()
    machine.receive(frame(frames.HEADERS, b"\x88\x00\x01", flags=frames.END_STREAM, stream_id=1))
    machine.receive(frame(frames.CONTINUATION, b"a", stream_id=1))
    machine.receive(frame(frames.CONTINUATION, b"\x01b", flags=frames.END_HEADERS, stream_id=1))
    assert call.events == [("headers", ((":status", "200"), ("a", "b"))), ("ended",)]


def test_padding_is_no_content_but_counts_for_the_window() -> None:
    machine = Machine()
    call = machine.open(slow=True)
    machine.receive(headers(1))
    machine.receive(frame(frames.DATA, b"\x0aabcde" + bytes(10), flags=frames.PADDED, stream_id=1))
    assert call.events[-1] == ("data", b"abcde")
    assert call.receive_window == STREAM_WINDOW - 16
    assert call.to_return == 11, "what its reader will never see is returned for it"
    machine.check()
    machine.receive(frame(frames.DATA, b"\x05" + bytes(5), flags=frames.PADDED, stream_id=1))
    machine.check()


def test_a_body_may_end_without_trailers() -> None:
    machine = Machine()
    one, two = machine.open(), machine.open()
    machine.receive(headers(1) + data(1, b"x", end=True) + headers(3) + data(3, b"", end=True))
    assert one.events[-2:] == [("data", b"x"), ("ended",)]
    assert two.events[-1] == ("ended",)
    machine.check()


# --- malformed responses cost their own stream ---


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(data(1, b"x"), id="DATA before HEADERS"),
        pytest.param(headers(1) + headers(1), id="HEADERS twice"),
        pytest.param(headers(1) + headers(1, b"\x88", end=True), id="trailers with a pseudo-header"),
        pytest.param(headers(1) + headers(1, b"\x08\x03100"), id="informational behind the response"),
        pytest.param(headers(1, b"\x00\x01A\x01b"), id="a name in capitals"),
        pytest.param(headers(1, b"\x88\x84"), id="a request's pseudo-header"),
        pytest.param(headers(1) + headers(1, b"\x00\x01a\x01\n", end=True), id="a line end in trailers"),
    ],
)
def test_a_malformed_response_resets_its_stream_alone(response: bytes) -> None:
    machine = Machine()
    bad, good = machine.open(), machine.open()
    machine.take()
    machine.receive(response)
    assert bad.events[-1] == ("reset", E.PROTOCOL_ERROR, False)
    assert resets(machine.take())[:1] in ([(1, E.PROTOCOL_ERROR)], [])
    machine.receive(answer(3))
    assert good.events == ANSWERED
    machine.check()


@pytest.mark.parametrize("increment", [0, 2**31 - 1])
def test_a_window_update_that_a_stream_cannot_take_resets_it(increment: int) -> None:
    machine = Machine()
    call = machine.open(b"x", end=False)
    machine.receive(frame(frames.WINDOW_UPDATE, u32(increment), stream_id=1))
    code = E.FLOW_CONTROL_ERROR if increment else E.PROTOCOL_ERROR
    assert call.events == [("reset", code, False)]
    assert (1, code) in resets(machine.take())
    assert not machine.errors


# --- what ends the connection ---


@pytest.mark.parametrize(
    ("received", "code"),
    [
        pytest.param(frame(0, bytes(16_385), stream_id=1), E.FRAME_SIZE_ERROR, id="a frame too long"),
        pytest.param(headers(0), E.PROTOCOL_ERROR, id="HEADERS on stream 0"),
        pytest.param(headers(2), E.PROTOCOL_ERROR, id="HEADERS on an even stream"),
        pytest.param(headers(9), E.PROTOCOL_ERROR, id="HEADERS on an idle stream"),
        pytest.param(data(0, b"x"), E.PROTOCOL_ERROR, id="DATA on stream 0"),
        pytest.param(data(2, b"x"), E.PROTOCOL_ERROR, id="DATA on an even stream"),
        pytest.param(data(9, b"x"), E.PROTOCOL_ERROR, id="DATA on an idle stream"),
        pytest.param(frame(0, b"\x01", flags=8, stream_id=1), E.PROTOCOL_ERROR, id="padding without room"),
        pytest.param(frame(0, b"", flags=8, stream_id=1), E.PROTOCOL_ERROR, id="padding without its length"),
        pytest.param(frame(1, b"\x09x", flags=12, stream_id=1), E.PROTOCOL_ERROR, id="HEADERS padded too far"),
        pytest.param(frame(2, bytes(4), stream_id=1), E.FRAME_SIZE_ERROR, id="PRIORITY too short"),
        pytest.param(frame(3, bytes(3), stream_id=1), E.FRAME_SIZE_ERROR, id="RST_STREAM too short"),
        pytest.param(frame(3, bytes(4)), E.PROTOCOL_ERROR, id="RST_STREAM on stream 0"),
        pytest.param(frame(3, bytes(4), stream_id=9), E.PROTOCOL_ERROR, id="RST_STREAM on an idle stream"),
        pytest.param(frame(4, bytes(5)), E.FRAME_SIZE_ERROR, id="SETTINGS of a wrong size"),
        pytest.param(frame(4, bytes(6), flags=1), E.FRAME_SIZE_ERROR, id="SETTINGS in an ACK"),
        pytest.param(frame(4, stream_id=1), E.PROTOCOL_ERROR, id="SETTINGS on a stream"),
        pytest.param(frame(4, setting(2, 1)), E.PROTOCOL_ERROR, id="push enabled"),
        pytest.param(frame(4, setting(4, 2**31)), E.FLOW_CONTROL_ERROR, id="a window too large"),
        pytest.param(frame(4, setting(5, 1)), E.PROTOCOL_ERROR, id="frames too small"),
        pytest.param(frame(5, u32(2) + b"\x88", flags=4, stream_id=1), E.PROTOCOL_ERROR, id="PUSH_PROMISE"),
        pytest.param(frame(6, bytes(7)), E.FRAME_SIZE_ERROR, id="PING too short"),
        pytest.param(frame(6, bytes(8), stream_id=1), E.PROTOCOL_ERROR, id="PING on a stream"),
        pytest.param(frame(7, bytes(7)), E.FRAME_SIZE_ERROR, id="GOAWAY too short"),
        pytest.param(frame(7, bytes(8), stream_id=1), E.PROTOCOL_ERROR, id="GOAWAY on a stream"),
        pytest.param(goaway(1) + goaway(3), E.PROTOCOL_ERROR, id="GOAWAY that rises"),
        pytest.param(frame(8, bytes(3)), E.FRAME_SIZE_ERROR, id="WINDOW_UPDATE too short"),
        pytest.param(frame(8, u32(0)), E.PROTOCOL_ERROR, id="WINDOW_UPDATE of nothing"),
        pytest.param(frame(8, u32(2**31 - 1)), E.FLOW_CONTROL_ERROR, id="WINDOW_UPDATE past the maximum"),
        pytest.param(frame(8, u32(1), stream_id=9), E.PROTOCOL_ERROR, id="WINDOW_UPDATE on an idle stream"),
        pytest.param(frame(9, b"x", flags=4, stream_id=1), E.PROTOCOL_ERROR, id="CONTINUATION out of nowhere"),
        pytest.param(frame(1, b"\x88", stream_id=1) + frame(6, bytes(8)), E.PROTOCOL_ERROR, id="PING inside a block"),
        pytest.param(frame(1, b"\x88", stream_id=1) + frame(1, b"", stream_id=1), E.PROTOCOL_ERROR, id="HEADERS in it"),
        pytest.param(
            frame(1, b"\x88", stream_id=1) + frame(9, b"", flags=4, stream_id=3), E.PROTOCOL_ERROR, id="another's"
        ),
        pytest.param(headers(1, b"\x80"), E.COMPRESSION_ERROR, id="no HPACK"),
        pytest.param(headers(1) + data(1, bytes(16_384)) * 257, E.FLOW_CONTROL_ERROR, id="past the stream's window"),
    ],
)
def test_a_breach_ends_the_connection_with_its_code(received: bytes, code: ErrorCode) -> None:
    machine = Machine()
    machine.open(slow=True)
    machine.open()
    machine.take()
    machine.receive(received)
    assert machine.error.code is code
    *_, last = machine.take()
    assert last == Frame(frames.GOAWAY, 0, 0, u32(0) + u32(code))
    machine.check()


def test_after_the_end_nothing_is_taken_or_given() -> None:
    machine = Machine()
    call = machine.open(b"", end=False)
    machine.receive(frame(frames.PING))
    machine.take()
    machine.receive(answer(1) + goaway(0))
    machine.outgoing.ping(bytes(8))
    machine.http2.consumed(call, STREAM_WINDOW)
    with pytest.raises(LocalProtocolError):
        machine.outgoing.send(call, b"x", end=True)
    with pytest.raises(LocalProtocolError):
        machine.open()
    machine.outgoing.reset(call)
    assert call.events == []
    assert machine.write() == b""
    assert len(machine.errors) == 1


def test_a_closed_machine_lets_go_of_everything() -> None:
    machine = Machine(setting(MAX_STREAMS, 2))
    calls = (machine.open(), machine.open(bytes(100_000)), machine.give())
    machine.outgoing.ping(bytes(8))
    assert machine.http2.close() == calls
    assert not any(call.is_open or call.events for call in calls), "what to tell them is their shell's to know"
    assert machine.http2.is_over
    assert machine.outgoing.all_streams() == ()
    assert not machine.outgoing.has_data_to_send
    machine.receive(answer(1) + frame(99) * 5_000)
    assert (machine.errors, machine.http2.close()) == ([], ())
    with pytest.raises(LocalProtocolError):
        machine.outgoing.open(Sink(), b"", end=True)


def test_a_machine_may_be_closed_by_what_it_tells() -> None:
    machine = Machine()
    call = machine.open()

    def close(_: str) -> None:
        machine.http2.close()

    machine.http2._on_goaway = close
    machine.receive(goaway(0) + answer(1))
    assert ([event[0] for event in call.events], machine.errors) == (["unprocessed"], [])


# --- late frames ---


def test_frames_for_a_stream_that_is_over_are_ignored() -> None:
    machine = Machine()
    call, other = machine.open(), machine.open()
    machine.outgoing.reset(call)
    assert resets(machine.take()) == [(1, E.CANCEL)]
    machine.receive(answer(1) + frame(8, u32(1), stream_id=1) + frame(3, u32(0), stream_id=1) + answer(3))
    assert call.events == []
    assert other.events == ANSWERED
    assert machine.take() == []


def test_headers_of_a_stream_that_is_over_still_enter_the_table() -> None:
    machine = Machine()
    gone, other = machine.open(), machine.open()
    machine.outgoing.reset(gone)
    machine.receive(headers(1, b"\x88\x40\x01a\x01b", end=True) + headers(3, b"\x88\xbe", end=True))
    assert other.events[0] == ("headers", ((":status", "200"), ("a", "b")))


def test_late_data_is_returned_to_the_connections_window() -> None:
    machine = Machine()
    machine.outgoing.reset(machine.open())
    machine.receive(data(1, bytes(16_384)) * 200)
    machine.sinks.clear()
    machine.check()


def test_a_thousand_late_answers_are_no_flood() -> None:
    machine = Machine()
    calls = [machine.open() for _ in range(2_000)]
    for call in calls:
        machine.outgoing.reset(call)
    machine.receive(b"".join(answer(call.stream_id) for call in calls))
    assert not machine.errors


def test_the_late_events_of_a_stream_are_no_flood_within_its_window() -> None:
    machine = Machine()
    gone = machine.open(b"", end=False)
    machine.receive(headers(1) + data(1, bytes(4_000)) * 100)
    machine.outgoing.reset(gone)
    left = gone.receive_window
    machine.receive(data(1, bytes(100)) * (left // 100))
    assert not machine.errors
    machine.receive(data(1, bytes(100)) * 2_000)
    assert machine.error.code is E.ENHANCE_YOUR_CALM


def test_empty_frames_of_a_stream_given_up_are_a_flood() -> None:
    machine = Machine()
    machine.outgoing.reset(machine.open())
    machine.receive(data(1, b"") * 2_000)
    assert machine.error.code is E.ENHANCE_YOUR_CALM


def test_a_thousand_refusals_are_no_flood() -> None:
    machine = Machine()
    calls = [machine.open() for _ in range(5_000)]
    for call in calls:
        machine.receive(frame(frames.RST_STREAM, u32(E.REFUSED_STREAM), stream_id=call.stream_id))
    assert {call.events[0] for call in calls} == {("reset", 7, True)}
    assert not machine.errors


# --- floods ---


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(frame(frames.PING, bytes(8)), id="PING"),
        pytest.param(frame(frames.PING, bytes(8), flags=1), id="PING acks"),
        pytest.param(frame(frames.SETTINGS), id="SETTINGS"),
        pytest.param(frame(frames.SETTINGS, flags=1), id="SETTINGS acks"),
        pytest.param(frame(frames.WINDOW_UPDATE, u32(1)), id="WINDOW_UPDATE"),
        pytest.param(frame(frames.WINDOW_UPDATE, u32(1), stream_id=1), id="WINDOW_UPDATE of a stream"),
        pytest.param(frame(frames.PRIORITY, bytes(5), stream_id=1), id="PRIORITY"),
        pytest.param(frame(10), id="unknown"),
        pytest.param(data(3, b""), id="empty DATA"),
        pytest.param(frame(frames.DATA, b"\x01\0", flags=8, stream_id=3), id="DATA of padding"),
        pytest.param(headers(1, b"\x08\x03100"), id="1xx"),
        pytest.param(goaway(2**31 - 1), id="GOAWAY"),
    ],
)
def test_a_flood_is_cut_off_and_its_replies_are_bounded(one: bytes) -> None:
    machine = Machine()
    machine.open(b"", end=False)
    machine.open()
    machine.receive(headers(3))
    count = 0
    while not machine.errors and count < 3_000:
        machine.receive(one * 10)
        count += 10
    assert machine.error.code is E.ENHANCE_YOUR_CALM
    assert len(machine.write()) < 40_000


def test_questions_at_an_honest_pace_are_answered_for_ever() -> None:
    machine = Machine()
    for second in range(100):
        machine.receive(frame(frames.PING, b"12345678") * 100, float(second))
        assert machine.take() == [Frame(frames.PING, frames.ACK, 0, b"12345678")] * 100


def test_a_peer_that_reads_no_answers_is_cut_off_whatever_it_earns() -> None:
    machine = Machine()
    machine.open(b"", end=False)
    machine.receive(headers(1))
    for _ in range(300):
        machine.receive(frame(frames.PING, bytes(8)) * 5 + data(1, b"x") * 5)
    assert machine.error.code is E.ENHANCE_YOUR_CALM
    assert len(machine.write()) < 20_000


def test_a_header_block_without_an_end_is_cut_off() -> None:
    for piece in (b"", bytes(16_000)):
        machine = Machine()
        machine.open()
        machine.receive(frame(frames.HEADERS, b"\x88", stream_id=1))
        count = 0
        while not machine.errors and count < 2_000:
            machine.receive(frame(frames.CONTINUATION, piece, stream_id=1))
            count += 1
        assert machine.error.code is E.ENHANCE_YOUR_CALM
        assert machine.http2._block_size < 100_000


# --- flow control, receiving ---


def test_a_reader_that_takes_nothing_holds_up_itself_alone() -> None:
    machine = Machine()
    slow, quick = machine.open(slow=True), machine.open()
    machine.take()
    machine.receive(headers(1) + data(1, bytes(16_384)) * 256)
    assert machine.take() == []
    assert slow.receive_window == 0
    machine.receive(answer(3))
    assert quick.events == ANSWERED
    machine.http2.consumed(slow, STREAM_WINDOW // 2)
    assert machine.take() == [Frame(frames.WINDOW_UPDATE, 0, 1, u32(STREAM_WINDOW // 2))]
    slow.received -= STREAM_WINDOW // 2
    machine.check()


def test_credit_is_returned_in_large_pieces() -> None:
    machine = Machine()
    machine.open()
    machine.take()
    machine.receive(headers(1) + data(1, bytes(16_384)) * 100)
    updates = [one for one in machine.take() if one.kind == frames.WINDOW_UPDATE]
    assert len(updates) == 1
    machine.check()


def test_the_connections_window_binds_the_peer_and_is_returned() -> None:
    machine = Machine()
    machine.open()
    machine.take()
    machine.http2._to_return = 2**28 - 10  # as if so much had come
    machine.http2._receive_window = 2**31 - 1 - machine.http2._to_return
    machine.receive(headers(1) + data(1, bytes(10)))
    assert machine.take() == [Frame(frames.WINDOW_UPDATE, 0, 0, u32(2**28))]
    machine.check()
    machine.http2._receive_window = 10
    machine.receive(data(1, bytes(10)))
    assert not machine.errors
    machine.receive(data(1, b"x"))
    assert machine.error.code is E.FLOW_CONTROL_ERROR


# --- GOAWAY and RST_STREAM ---


def test_goaway_parts_the_streams() -> None:
    machine = Machine(setting(MAX_STREAMS, 2))
    kept, above, queued = machine.open(), machine.open(), machine.open()
    machine.take()
    machine.receive(goaway(1, E.ENHANCE_YOUR_CALM, b"too_many_pings\xff"))
    reason = "the server sent GOAWAY: ENHANCE_YOUR_CALM (too_many_pings\ufffd)"
    assert machine.goaways == [reason]
    assert above.events == queued.events == [("unprocessed", reason)]
    assert not machine.outgoing.takes_streams
    assert ids(machine.take()) == [], "none of those that waited is started now"
    machine.receive(answer(1))
    assert kept.events == ANSWERED
    machine.check()


def test_goaway_in_two_steps_and_down_to_nothing() -> None:
    machine = Machine()
    one, two = machine.open(), machine.open()
    machine.receive(goaway(2**31 - 1))
    assert not one.events
    machine.receive(goaway(1))
    assert two.events[0][0] == "unprocessed"
    machine.receive(goaway(1))
    machine.receive(goaway(0))
    assert one.events[0][0] == "unprocessed"
    machine.check()


def test_the_peers_text_in_goaway_is_cut() -> None:
    machine = Machine()
    machine.receive(goaway(0, 0, b"x" * 10_000))
    assert len(machine.goaways[0]) < 200


def test_news_of_goaway_may_reset_another_that_waits() -> None:
    machine = Machine(setting(MAX_STREAMS, 0))

    class Canceller(Sink):
        def on_unprocessed(self, reason: str) -> None:
            super().on_unprocessed(reason)
            machine.outgoing.reset(other)

    machine.outgoing.open(Canceller(), b"", end=True)
    other = machine.open()
    machine.receive(goaway(0))
    assert other.endings == 1


@pytest.mark.parametrize("code", [0, 7, 8, 11, 99, 2**32 - 1])
def test_a_reset_is_told_with_its_code(code: int) -> None:
    machine = Machine()
    call = machine.open()
    machine.take()
    machine.receive(headers(1) + data(1, b"x") + frame(3, u32(code), stream_id=1))
    assert call.events[-1] == ("reset", code, True)
    assert machine.take() == [], "a reset is not answered by one"
    machine.check()


def test_a_ping_of_ours() -> None:
    machine = Machine()
    machine.outgoing.ping(b"liveness")
    assert machine.outgoing.has_data_to_send
    assert machine.take() == [Frame(frames.PING, 0, 0, b"liveness")]
    assert not machine.outgoing.has_data_to_send


def test_the_reserved_bit_and_unknown_flags_mean_nothing() -> None:
    machine = Machine()
    call = machine.open()
    block = b"\x88"
    machine.receive(frame(frames.HEADERS, block, flags=frames.END_HEADERS | 0xC0, stream_id=2**31 + 1))
    machine.receive(frame(8, u32(2**31 + 5), stream_id=1))
    assert call.events == [("headers", ((":status", "200"),))]
    assert call.send_window == 65_535
