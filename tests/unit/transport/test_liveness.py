"""transport/liveness.py: every reason to ping, every reason to wait, and two promises that always hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.transport import TransportOptions
from etcd_aio.transport.liveness import (
    EARLY_PING_INTERVAL,
    HEAVY_TIMEOUT,
    MIN_PING_INTERVAL,
    STALL_GRACE,
    Action,
    Liveness,
)

START = 100.0


@pytest.fixture
def liveness() -> Liveness:
    return made()


def made(slower: int = 1) -> Liveness:
    return Liveness(
        START,
        TransportOptions(keepalive_time=10.0, keepalive_timeout=3.0, silence_time=0.5, silence_timeout=1.5),
        slower,
    )


def test_idle_is_never_pinged(liveness: Liveness) -> None:
    assert not liveness.is_needed
    for seconds in (0.0, 1.0, 11.0, 1e6):
        assert liveness.check(START + seconds) is Action.NONE


def test_idle_again_after_a_call_is_not_pinged_either(liveness: Liveness) -> None:
    liveness.call_started(START)
    liveness.call_ended(False)
    assert not liveness.is_needed
    assert liveness.check(START + 60.0) is Action.NONE


def test_an_answer_in_the_instant_of_its_call_ends_the_waiting(liveness: Liveness) -> None:
    """Some clocks see milliseconds only."""
    liveness.call_started(START)
    liveness.on_received(START)
    liveness.call_ended(False)
    liveness.call_started(START + 60)
    assert liveness.next_check() == START + 60.5


def test_silence_with_a_call_waiting_is_pinged_and_then_dead(liveness: Liveness) -> None:
    liveness.call_started(START + 1)
    assert liveness.next_check() == START + 1.5
    assert liveness.check(START + 1.49) is Action.NONE
    assert liveness.check(START + 1.5) is Action.PING
    assert liveness.next_check() == START + 3.0
    assert liveness.check(START + 2.99) is Action.NONE
    assert liveness.check(START + 3.0) is Action.DEAD


def test_a_peer_that_computes_for_a_heavy_call_has_longer_to_answer_a_ping(liveness: Liveness) -> None:
    liveness.call_started(START)
    liveness.heavy_began()
    assert liveness.check(START + 0.5) is Action.PING
    assert liveness.next_check() == START + 0.5 + HEAVY_TIMEOUT
    assert liveness.check(START + 4.4) is Action.NONE
    liveness.heavy_ended()
    assert liveness.next_check() == START + 2.0
    liveness.heavy_began()
    assert liveness.check(START + 0.5 + HEAVY_TIMEOUT) is Action.DEAD


def test_with_streams_only_the_keepalive_times_count(liveness: Liveness) -> None:
    liveness.stream_opened(START)
    assert liveness.next_check() == START + 10
    assert liveness.check(START + 9.9) is Action.NONE
    assert liveness.check(START + 10) is Action.PING
    assert liveness.check(START + 12.9) is Action.NONE
    assert liveness.check(START + 13) is Action.DEAD


def test_a_call_beside_a_quiet_stream_shortens_the_wait_from_its_start(liveness: Liveness) -> None:
    liveness.stream_opened(START)
    liveness.on_received(START + 1)
    liveness.call_started(START + 8)
    assert liveness.next_check() == START + 8.5
    liveness.call_ended(False)
    assert liveness.next_check() == START + 18, "counted from when somebody last began to wait"


def test_any_byte_starts_the_silence_anew(liveness: Liveness) -> None:
    liveness.call_started(START)
    liveness.on_received(START + 0.4)
    assert liveness.check(START + 0.5) is Action.NONE
    assert liveness.check(START + 0.9) is Action.PING
    liveness.on_received(START + 2.3)
    assert liveness.check(START + 2.4) is Action.NONE, "the ping was answered in time"
    assert liveness.next_check() == START + 0.9 + MIN_PING_INTERVAL


def test_pings_keep_their_distance(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    liveness.on_received(START + 0.6)
    assert liveness.check(START + 2.0) is Action.NONE
    assert liveness.check(START + 0.5 + MIN_PING_INTERVAL - 0.01) is Action.NONE
    assert liveness.check(START + 0.5 + MIN_PING_INTERVAL) is Action.PING


def test_one_ping_may_come_early_between_two_answered_calls(liveness: Liveness) -> None:
    """So that a member which was pinged, answered and froze then is not believed alive for five seconds more."""
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    liveness.on_received(START + 0.6)
    liveness.call_ended(True)
    liveness.call_started(START + 0.7)
    assert liveness.next_check() == START + 0.5 + EARLY_PING_INTERVAL
    assert liveness.check(START + 1.5) is Action.PING
    liveness.on_received(START + 1.6)  # the ping's answer, and the call's not
    assert liveness.next_check() == START + 1.5 + MIN_PING_INTERVAL
    liveness.call_ended(False)
    liveness.call_started(START + 2)
    assert liveness.next_check() == START + 1.5 + MIN_PING_INTERVAL
    liveness.call_ended(True)
    liveness.call_started(START + 2)
    assert liveness.check(START + 2.5) is Action.PING


def test_a_late_judgement_is_put_off_once(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    assert liveness.check(START + 60) is Action.NONE
    assert liveness.next_check() == START + 60 + STALL_GRACE
    assert liveness.check(START + 60.05) is Action.NONE
    assert liveness.check(START + 90) is Action.DEAD


def test_bytes_that_were_waiting_acquit_after_a_late_judgement(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    assert liveness.check(START + 60) is Action.NONE
    liveness.on_received(START + 60.01)
    assert liveness.check(START + 60.2) is Action.NONE
    assert liveness.check(START + 60.51) is Action.PING
    assert liveness.check(START + 63) is Action.NONE, "the next judgement may be put off again"


def test_a_slightly_late_judgement_stands(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    assert liveness.check(START + 2.0 + STALL_GRACE / 2) is Action.DEAD


def test_callers_who_give_up_early_do_not_hide_the_silence(liveness: Liveness) -> None:
    liveness.on_received(START + 1)
    for tenth in range(10, 15):
        liveness.call_started(START + tenth / 10)
        assert liveness.check(START + tenth / 10 + 0.05) is Action.NONE
        liveness.call_ended(False)
    liveness.call_started(START + 1.5)
    assert liveness.check(START + 1.5) is Action.PING


def test_a_ping_that_nobody_waited_for_any_more_is_still_evidence(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    liveness.call_ended(False)
    assert liveness.check(START + 2.0) is Action.NONE, "with nothing open it is not judged"
    liveness.call_started(START + 3.0)
    assert liveness.next_check() <= START + 3.0
    assert liveness.check(START + 3.0) is Action.NONE, "late, so put off"
    assert liveness.check(START + 3.0 + STALL_GRACE) is Action.DEAD


def test_an_answered_wait_begins_anew(liveness: Liveness) -> None:
    liveness.call_started(START + 1)
    liveness.on_received(START + 1.1)
    liveness.call_ended(False)
    liveness.call_started(START + 9)
    assert liveness.next_check() == START + 9.5


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["received", "call", "end call", "answer", "stream", "end stream", "check", "check"]),
        st.sampled_from([0.0, 0.01, 0.3, 0.5, 1.5, 3.0, 5.0, 10.0, 100.0]),
    ),
    max_size=80,
)


@given(STEPS)
def test_nobody_is_dead_without_an_unanswered_ping_and_no_server_counts_an_abuse(
    steps: list[tuple[str, float]],
) -> None:
    liveness = made()
    now, calls, streams = START, 0, 0
    last_ping: float | None = None
    unanswered: float | None = None
    strikes = 0  # as Go's servers count: the third closes the connection
    for step, seconds in steps:
        now += seconds
        match step:
            case "received":
                liveness.on_received(now)
                unanswered = None
            case "call":
                liveness.call_started(now)
                calls += 1
            case "end call" if calls:
                liveness.call_ended(False)
                calls -= 1
            case "answer" if calls:
                liveness.on_received(now)
                liveness.call_ended(True)
                calls -= 1
                unanswered = last_ping = None
                strikes = 0
            case "stream":
                liveness.stream_opened(now)
                streams += 1
            case "end stream" if streams:
                liveness.stream_closed()
                streams -= 1
            case "check":
                action = liveness.check(now)
                assert liveness.is_needed == bool(calls or streams)
                if action is not Action.NONE:
                    assert calls or streams
                if action is Action.PING:
                    strikes += last_ping is not None and now - last_ping < MIN_PING_INTERVAL
                    assert strikes <= 1
                    assert unanswered is None, "an unanswered ping is judged, not repeated"
                    last_ping = unanswered = now
                if action is Action.DEAD:
                    assert unanswered is not None
                    assert now - unanswered >= (1.5 if calls else 3.0) - 1e-9
                    return


@given(st.floats(0.0, 1e6), st.booleans())
def test_a_peer_that_stays_silent_is_found_dead_by_obeying_the_timer(begin: float, is_call: bool) -> None:
    liveness = made()
    now = START + begin
    (liveness.call_started if is_call else liveness.stream_opened)(now)
    actions = []
    while Action.DEAD not in actions:
        now = max(now, liveness.next_check())
        actions.append(liveness.check(now))
        assert len(actions) < 10
    assert now - START - begin <= (2.0 if is_call else 13.0) + 0.01


# --- uploads ---


class Request:
    unsent = b""


def test_while_a_large_request_drains_the_peer_is_neither_pinged_nor_judged(liveness: Liveness) -> None:
    liveness.call_started(START)
    liveness.upload_began(Request(), 80_000, START)
    assert liveness.next_check() == START + 5
    assert liveness.check(START + 4.9) is Action.NONE
    liveness.on_received(START + 4.9)
    assert liveness.next_check() == START + 9.9
    assert liveness.check(START + 9.9) is Action.PING
    assert liveness.check(START + 11.4) is Action.DEAD


def test_a_ping_that_may_wait_behind_a_large_request_is_no_silence(liveness: Liveness) -> None:
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING
    request = Request()
    liveness.upload_began(request, 80_000, START + 0.6)
    assert liveness.check(START + 2.5) is Action.NONE
    liveness.upload_ended(request, START + 3.0, is_answered=True)
    assert liveness.check(START + 3.0) is Action.NONE, "a judgement that comes late"
    assert liveness.check(liveness.next_check()) is Action.DEAD


def test_where_pings_are_unwelcome_they_are_further_apart_and_never_early() -> None:
    liveness = made(slower=4)
    liveness.call_started(START)
    assert liveness.check(START + 0.5) is Action.PING, "the first one of a connection is never too many"
    liveness.on_received(START + 0.6)
    liveness.call_ended(True)
    liveness.call_started(START + 1)
    assert liveness.next_check() == START + 0.5 + 4 * MIN_PING_INTERVAL
    liveness.call_ended(False)
    liveness.stream_opened(START + 1)
    assert liveness.next_check() == START + 41
