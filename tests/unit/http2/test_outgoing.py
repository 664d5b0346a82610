"""http2/outgoing.py: what leaves, in which order, and how much the peer allows of it."""

import pytest

from etcd_aio.http2 import ErrorCode, LocalProtocolError, frames
from etcd_aio.http2.frames import Setting
from tests.support.http2 import (
    ANSWERED,
    POST,
    Frame,
    Machine,
    Sink,
    answer,
    bodies,
    frame,
    headers,
    ids,
    resets,
    setting,
    u32,
)

E = ErrorCode
MAX_STREAMS, WINDOW = Setting.MAX_CONCURRENT_STREAMS, Setting.INITIAL_WINDOW_SIZE
ONE_AT_A_TIME = setting(MAX_STREAMS, 1)


# --- a call ---


def test_a_call_without_a_body_still_ends() -> None:
    machine = Machine()
    call = machine.open(b"")
    assert machine.take()[-1] == Frame(frames.DATA, frames.END_STREAM, 1, b"")
    assert call.is_sent_whole


def test_ids_are_odd_and_rise() -> None:
    machine = Machine()
    for _ in range(4):
        machine.open()
    assert ids(machine.take()) == [1, 3, 5, 7]


def test_a_block_larger_than_a_frame_is_continued() -> None:
    machine = Machine()
    machine.open(b"x", fields=POST * 40_000)
    sent = machine.take()
    assert [one.kind for one in sent] == [frames.HEADERS, frames.CONTINUATION, frames.CONTINUATION, frames.DATA]
    assert max(len(one.payload) for one in sent) == 16_384


def test_a_long_upload_earns_the_window_updates_that_it_costs() -> None:
    machine = Machine()
    call = machine.open(b"", end=False)
    for _ in range(2_000):
        machine.outgoing.send(call, bytes(16_384), end=False)
        assert bodies(machine.take(), 1) == bytes(16_384)
        machine.receive(frame(8, u32(16_384)) + frame(8, u32(16_384), stream_id=1))
    assert not machine.errors


def test_tiny_window_updates_are_a_flood_however_much_was_sent() -> None:
    machine = Machine()
    machine.open(bytes(60_000), end=False)
    machine.take()
    for _ in range(1_500):
        machine.receive(frame(8, u32(16)))
    assert [error.code for error in machine.errors] == [E.ENHANCE_YOUR_CALM]


# --- flow control, sending ---


def test_a_request_larger_than_the_window_waits_for_both_windows() -> None:
    machine = Machine()
    call = machine.open(bytes(range(256)) * 400)
    sent = machine.take()
    assert len(bodies(sent, 1)) == 65_535
    assert not call.is_sent_whole
    assert call.sent == 0
    machine.receive(frame(8, u32(10**6)))
    assert machine.take() == [], "the stream's own window is empty"
    machine.receive(frame(8, u32(10**6), stream_id=1))
    more = machine.take()
    assert bodies(sent + more, 1) == bytes(range(256)) * 400
    assert more[-1].flags == frames.END_STREAM
    assert call.is_sent_whole
    assert call.sent == 1


def test_what_the_connections_window_lets_through_goes_first_come_first_served() -> None:
    machine = Machine(setting(WINDOW, 10**6))
    first, second, third = [machine.open(bytes(60_000)) for _ in range(3)]
    assert [len(call.unsent) for call in (first, second, third)] == [0, 54_465, 60_000]
    machine.receive(frame(8, u32(60_000)))
    assert [len(call.unsent) for call in (first, second, third)] == [0, 0, 54_465]


def test_a_stream_that_waits_for_its_window_holds_up_no_other() -> None:
    machine = Machine(setting(WINDOW, 10))
    slow = machine.open(b"x" * 20)
    quick = machine.open(b"y" * 10)
    assert (slow.is_sent_whole, quick.is_sent_whole) == (False, True)


def test_an_initial_window_that_shrinks_makes_a_debt() -> None:
    machine = Machine(setting(WINDOW, 100))
    call = machine.open(b"x" * 150)
    assert len(bodies(machine.take(), 1)) == 100
    machine.receive(frame(4, setting(WINDOW, 0)))
    assert call.send_window == -100
    machine.receive(frame(8, u32(100), stream_id=1))
    assert bodies(machine.take(), 1) == b"", "the debt is paid first"
    machine.receive(frame(8, u32(20), stream_id=1))
    assert len(bodies(machine.take(), 1)) == 20
    machine.receive(frame(4, setting(WINDOW, 30)))
    assert len(bodies(machine.take(), 1)) == 30
    assert call.is_sent_whole


def test_an_initial_window_that_grows_too_far_for_a_stream_ends_the_connection() -> None:
    machine = Machine(setting(WINDOW, 100))
    machine.open(b"", end=False)
    machine.receive(frame(8, u32(2**31 - 1 - 100), stream_id=1))
    machine.receive(frame(4, setting(WINDOW, 101)))
    assert machine.error.code is E.FLOW_CONTROL_ERROR


def test_larger_frames_are_used_once_they_are_allowed() -> None:
    machine = Machine(setting(Setting.MAX_FRAME_SIZE, 60_000))
    machine.open(bytes(50_000))
    assert [len(one.payload) for one in machine.take()] == [1, 50_000]


def test_what_is_sent_meanwhile_is_appended_in_order() -> None:
    machine = Machine(setting(WINDOW, 0))
    call = machine.open(b"one ", end=False)
    machine.outgoing.send(call, b"two ", end=False)
    machine.outgoing.send(call, b"three", end=True)
    with pytest.raises(LocalProtocolError):
        machine.outgoing.send(call, b"four", end=False)
    machine.take()
    for _ in range(13):
        assert not call.is_sent_whole
        machine.receive(frame(8, u32(1), stream_id=1))
    sent = machine.take()
    assert bodies(sent, 1) == b"one two three"
    assert [one.flags for one in sent] == [0] * 12 + [frames.END_STREAM]
    assert call.sent == 1


def test_many_small_sends_cost_no_copy_of_what_waits() -> None:
    machine = Machine(setting(WINDOW, 0))
    call = machine.open(b"", end=False)
    machine.outgoing.send(call, b"x", end=False)
    waiting = call.unsent
    for _ in range(1_000):
        machine.outgoing.send(call, bytes(1_000), end=False)
    assert call.unsent is waiting
    machine.receive(frame(8, u32(5_000), stream_id=1))
    assert call.unsent is waiting
    assert len(waiting) == 1 + 1_000_000 - 5_000


def test_an_end_alone_follows() -> None:
    machine = Machine()
    call = machine.open(b"x", end=False)
    machine.take()
    machine.outgoing.send(call, b"", end=True)
    assert machine.take() == [Frame(frames.DATA, frames.END_STREAM, 1, b"")]
    assert call.is_sent_whole


def test_a_stream_that_ends_early_is_told_that_the_rest_is_not_coming() -> None:
    machine = Machine()
    call = machine.open(bytes(100_000))
    machine.take()
    machine.receive(headers(1, b"\x88", end=True))
    assert resets(machine.take()) == [(1, E.CANCEL)]
    assert call.events[-1] == ("ended",)
    machine.receive(frame(3, u32(0), stream_id=1) + frame(8, u32(10**6), stream_id=1) + frame(8, u32(10**6)))
    assert machine.take() == []
    machine.check()


def test_a_stream_reset_while_it_waits_for_its_window_sends_no_more() -> None:
    machine = Machine()
    call = machine.open(bytes(100_000))
    machine.take()
    machine.outgoing.reset(call)
    machine.receive(frame(8, u32(10**6)))
    assert resets(machine.take()) == [(1, E.CANCEL)]


@pytest.mark.parametrize("stream_id", [0, 1], ids=["connection", "stream"])
def test_one_given_up_while_it_waits_for_a_window_sends_no_more(stream_id: int) -> None:
    """Its caller was told that it was not sent, and resets it only as its task runs."""
    machine = Machine(setting(WINDOW, 10**6) if not stream_id else b"")

    class Failing(Sink):
        has_failed = False

        def is_given_up(self) -> bool:
            return self.has_failed

    call = Failing()
    machine.outgoing.open(call, bytes(100_000), end=True)
    machine.take()
    call.has_failed = True
    if stream_id:
        machine.receive(frame(8, u32(10**6)))
    machine.receive(frame(8, u32(10**6), stream_id=stream_id))
    assert machine.take() == []
    assert not call.is_sent_whole
    machine.outgoing.reset(call)
    assert resets(machine.take()) == [(1, E.CANCEL)]


def test_a_stream_ended_by_anothers_news_is_not_written_to() -> None:
    machine = Machine()

    class Canceller(Sink):
        def on_sent(self) -> None:
            machine.outgoing.reset(second)

    first = Canceller()
    machine.outgoing.open(first, bytes(70_000), end=True)
    second = machine.open(bytes(70_000))
    machine.take()
    machine.receive(frame(8, u32(10**6), stream_id=1) + frame(8, u32(10**6), stream_id=3))
    machine.receive(frame(8, u32(10**6)))
    sent = machine.take()
    reset_at = [one.kind for one in sent].index(frames.RST_STREAM)
    assert bodies(sent[reset_at:], 3) == b""


def test_a_smaller_table_is_acknowledged_in_the_next_block_once() -> None:
    machine = Machine(setting(Setting.HEADER_TABLE_SIZE, 100))
    machine.open()
    machine.open()
    machine.receive(frame(4, setting(Setting.HEADER_TABLE_SIZE, 0)))
    machine.open()
    blocks = [one.payload for one in machine.take() if one.kind == frames.HEADERS]
    assert blocks == [b"\x20\x83", b"\x83", b"\x83"]


# --- how many streams ---


def test_what_exceeds_the_limit_waits_and_goes_in_order() -> None:
    machine = Machine(ONE_AT_A_TIME)
    calls = [machine.open(b"%d" % number) for number in range(4)]
    assert ids(machine.take()) == [1]
    for number in range(4):
        machine.receive(answer(calls[number].stream_id))
        assert bodies(machine.take(), 2 * number + 3) == (b"%d" % (number + 1) if number < 3 else b"")
    assert all(call.events == ANSWERED for call in calls)
    machine.check()


def test_the_limit_may_be_nothing_fall_and_rise() -> None:
    machine = Machine(setting(MAX_STREAMS, 0))
    calls = [machine.open() for _ in range(5)]
    assert machine.take() == []
    machine.receive(frame(4, setting(MAX_STREAMS, 3)))
    assert ids(machine.take()) == [1, 3, 5]
    machine.receive(frame(4, setting(MAX_STREAMS, 1)))
    machine.receive(answer(1) + answer(3))
    assert ids(machine.take()) == [], "one is still open"
    machine.receive(answer(5))
    assert ids(machine.take()) == [7]
    assert not calls[4].stream_id


def test_one_that_waits_can_leave() -> None:
    machine = Machine(ONE_AT_A_TIME)
    first, second, third = machine.open(), machine.open(), machine.open()
    machine.take()
    machine.outgoing.reset(second)
    machine.outgoing.reset(second)
    assert machine.take() == []
    machine.receive(answer(first.stream_id))
    machine.take()
    assert (second.stream_id, third.stream_id) == (0, 3)
    machine.sinks.remove(second)
    machine.check()


def test_one_that_comes_while_the_queue_moves_goes_to_its_end() -> None:
    machine = Machine(setting(MAX_STREAMS, 0))

    class Opener(Sink):
        def on_sent(self) -> None:
            machine.open(b"late")

    machine.outgoing.open(Opener(), b"", end=False)
    waiting = machine.open()
    machine.receive(frame(4, setting(MAX_STREAMS, 10)))
    machine.take()
    assert [call.stream_id for call in (waiting, machine.sinks[-1])] == [3, 5]


def test_what_is_sent_while_it_waits_goes_with_it() -> None:
    machine = Machine(ONE_AT_A_TIME)
    machine.open()
    waiting = machine.open(b"a", end=False)
    machine.outgoing.send(waiting, b"b", end=True)
    machine.take()
    machine.receive(answer(1))
    assert bodies(machine.take(), 3) == b"ab"
    assert waiting.is_sent_whole


def test_a_stream_that_is_reset_makes_room() -> None:
    machine = Machine(ONE_AT_A_TIME)
    first, second = machine.open(), machine.open()
    machine.outgoing.reset(first)
    assert machine.outgoing.has_data_to_send
    machine.take()
    assert second.stream_id == 3


def test_a_queue_given_up_at_once_never_reaches_the_peer() -> None:
    machine = Machine(ONE_AT_A_TIME)
    calls = [machine.open() for _ in range(100)]
    machine.take()
    for call in calls:
        machine.outgoing.reset(call)
    assert machine.take() == [Frame(frames.RST_STREAM, 0, 1, u32(E.CANCEL))]
    assert not machine.outgoing.has_data_to_send


def test_one_given_up_before_bytes_leave_is_never_heard_of() -> None:
    machine = Machine()
    kept, small, large, stream = machine.give(b"1"), machine.give(), machine.give(bytes(10**5)), machine.give(end=False)
    for call in (small, large, stream):
        machine.outgoing.reset(call)
        assert not call.stream_id
    last = machine.give(b"2")
    assert [(one.kind, one.stream_id) for one in machine.take()] == [(1, 1), (0, 1), (1, 3), (0, 3)]
    assert (kept.stream_id, last.stream_id) == (1, 3)
    machine.outgoing.reset(machine.give())
    assert not machine.outgoing.has_data_to_send
    assert machine.outgoing._send_window == frames.DEFAULT_WINDOW - 2, "it took nothing of the window"


def test_one_that_nobody_waits_for_is_not_begun() -> None:
    machine = Machine()

    class Forgotten(Sink):
        def is_given_up(self) -> bool:
            return True

    forgotten = Forgotten()
    machine.outgoing.open(forgotten, b"x", end=True)
    wanted = machine.give()
    assert ids(machine.take()) == [1]
    assert (forgotten.stream_id, forgotten.is_open, wanted.stream_id) == (0, False, 1)
    assert forgotten.events == [], "who gave it up needs no word"
    machine.outgoing.reset(forgotten)
    assert machine.take() == []
    machine.check()


def test_a_stream_begins_under_the_settings_that_hold_when_its_bytes_leave() -> None:
    machine = Machine()
    machine.give(bytes(100))
    machine.receive(frame(4, setting(WINDOW, 10)))
    assert [(one.kind, len(one.payload)) for one in machine.take()] == [(4, 0), (1, 1), (0, 10)]


def test_nothing_that_waits_is_let_in_after_the_end() -> None:
    machine = Machine(ONE_AT_A_TIME)
    first, second = machine.open(), machine.open()
    machine.take()
    machine.receive(answer(first.stream_id) + frame(frames.PING))
    assert [one.kind for one in machine.take()] == [frames.GOAWAY]
    assert not second.stream_id


def test_ids_run_out_and_those_that_wait_have_theirs() -> None:
    machine = Machine(ONE_AT_A_TIME)
    machine.outgoing._next_id = 2**31 - 5
    first, second = machine.open(), machine.open()
    assert machine.outgoing.takes_streams
    assert machine.goaways == []
    third = machine.open()
    assert not machine.outgoing.takes_streams
    assert machine.goaways == ["all stream ids of the connection are used"]
    with pytest.raises(LocalProtocolError):
        machine.open()
    for call in (first, second, third):
        machine.take()
        machine.receive(answer(call.stream_id))
    assert [call.stream_id for call in (first, second, third)] == [2**31 - 5, 2**31 - 3, 2**31 - 1]
    assert third.events == ANSWERED
