"""What calls and probes under a fault come to."""

import pytest

from benchmarks.failover.account import (
    PROBE_EVERY,
    SLOW,
    Call,
    Marks,
    buckets,
    calls_from,
    cpu_rate,
    outage,
    summary,
)

MARKS = Marks(fault=2.0, heal=7.0)


def ok(issued: float, wait: float = 0.001, member: int = 1) -> Call:
    return Call(issued, 0.0, wait, "ok", member=member)


def failed(issued: float, wait: float, *, maybe_applied: bool | None = True, name: str = "EtcdTimeoutError") -> Call:
    return Call(issued, 0.0, wait, name, maybe_applied)


def test_recovery_is_the_issue_of_the_last_call_that_failed_or_was_slow() -> None:
    found = summary([ok(2.1), ok(2.5, 0.3), ok(2.6), failed(3.25, 0.1), ok(3.3), ok(6.0)], MARKS)
    assert found.recovery == pytest.approx(1.25)
    assert found.failed == 1
    assert found.over_slow == 1
    assert found.last_error == pytest.approx(1.25)
    assert found.last_error_end == pytest.approx(1.35)


def test_without_failures_recovery_takes_no_time() -> None:
    found = summary([ok(1.0), ok(2.1, SLOW), ok(7.5)], MARKS)
    assert (found.recovery, found.after_heal, found.last_error) == (0.0, 0.0, None)


def test_a_call_in_flight_at_the_fault_does_not_lengthen_recovery() -> None:
    found = summary([failed(1.99, 2.0)], MARKS)
    assert found.recovery == 0.0
    assert found.last_error == pytest.approx(-0.01)
    assert found.maybe_applied == 1


def test_what_the_healing_does_counts_after_it() -> None:
    # Issued before the healing, but it was still good when that came.
    found = summary([ok(6.95, 0.5), ok(7.3, 0.4)], MARKS)
    assert found.recovery == 0.0
    assert found.after_heal == pytest.approx(0.3)


def test_a_call_that_was_slow_already_counts_before_the_healing() -> None:
    found = summary([ok(6.7, 3.0)], MARKS)
    assert found.recovery == pytest.approx(4.7)
    assert found.after_heal == 0.0


def test_a_failure_just_before_the_healing_counts_before_it() -> None:
    assert summary([failed(6.98, 0.01)], MARKS).recovery == pytest.approx(4.98)


def test_a_client_that_never_reports_whether_a_write_was_applied() -> None:
    assert summary([failed(3.0, 5.0, maybe_applied=None)], MARKS).maybe_applied is None
    assert summary([failed(3.0, 5.0, maybe_applied=False)], MARKS).maybe_applied == 0
    assert summary([ok(3.0)], MARKS).maybe_applied == 0


def test_errors_are_counted_by_name() -> None:
    calls = [failed(3.0, 0.1, name="B"), failed(3.1, 0.1, name="A"), failed(3.2, 0.1, name="B")]
    assert summary(calls, MARKS).errors == {"B": 2, "A": 1}


def test_members_are_whole_once_each_has_answered_a_call_issued_after_the_healing() -> None:
    calls = [ok(3.0, member=3), ok(7.1, 0.01, 1), ok(7.2, 0.01, 2), ok(7.6, 0.05, 3), ok(7.7, 0.01, 3)]
    assert summary(calls, MARKS).whole == pytest.approx(0.65)
    assert summary(calls[:3], MARKS).whole is None


def test_departures_are_counted_once_for_each_time_and_end_with_the_last_return() -> None:
    states = [
        (0.0, "a", "READY"),
        (0.0, "b", "READY"),
        (3.0, "a", "TRANSIENT_FAILURE"),
        (3.5, "a", "CONNECTING"),
        (4.0, "b", "CONNECTING"),
        (6.0, "b", "READY"),
        (7.5, "a", "READY"),
    ]
    found = summary([], MARKS, states=states)
    assert (found.departures, found.back) == (2, 0.5)
    assert summary([], MARKS, states=states[:2]).back == 0.0
    assert summary([], MARKS, states=states[:6]).back is None, "one is still away"


def test_the_first_success_is_measured_from_when_a_member_is_up() -> None:
    calls = [ok(6.0, 0.01), ok(6.5, 2.0), ok(8.7, 0.1)]
    assert summary(calls, MARKS, up=8.0).first_success == pytest.approx(0.5)
    assert summary(calls, MARKS).first_success is None


def test_medians_are_taken_before_and_under_the_fault() -> None:
    calls = [ok(0.1 * number, 0.001) for number in range(15)]
    calls += [ok(2.0 + 0.1 * number, 0.003) for number in range(15)]
    found = summary(calls, MARKS)
    assert found.median_before == pytest.approx(0.001)
    assert found.median_during == pytest.approx(0.003)


def test_missed_slots_are_those_before_the_fault() -> None:
    calls = [Call(1.0, 0.05, 0.06, "ok"), Call(1.1, 0.01, 0.02, "ok"), Call(3.0, 0.5, 0.6, "ok")]
    assert summary(calls, MARKS).missed == 1


def test_drivers_send_columns() -> None:
    result: dict[str, object] = {
        "outcomes": [["ok", None, 7], ["EtcdTimeoutError", True, 0]],
        "slot": [0.5, 0.1],
        "late": [0.3, 0.0],
        "took": [0.1, 5.0],
        "outcome": [0, 1],
    }
    late_counts = calls_from(result, is_generator_stopped=False)
    assert late_counts == [Call(0.1, 0.0, 5.0, "EtcdTimeoutError", True, 0), Call(0.5, 0.3, 0.4, "ok", None, 7)]
    assert not late_counts[1].is_good
    stopped = calls_from(result, is_generator_stopped=True)[1]
    assert (stopped.issued, stopped.wait) == (0.8, 0.1)


def letters(*pieces: tuple[str, float]) -> str:
    return "".join(letter * round(seconds / PROBE_EVERY) for letter, seconds in pieces)


def test_the_outage_lasts_while_no_member_answers() -> None:
    probes = {
        "a": letters(("o", 2.0), ("u", 8.0)),
        "b": letters(("o", 2.0), ("s", 1.0), ("o", 7.0)),
        "c": letters(("o", 2.5), ("r", 1.0), ("o", 6.5)),
    }
    found = outage(probes, [], MARKS, ["a"])
    assert found.all_members == pytest.approx(1.0, abs=2 * PROBE_EVERY)
    assert found.target == 0.0


def test_detection_ends_when_the_member_refuses() -> None:
    probes = {"a": letters(("o", 2.0), ("s", 1.5), ("r", 6.5)), "b": letters(("o", 10.0))}
    found = outage(probes, [], MARKS, ["a"])
    assert found.all_members == 0.0
    assert found.target == pytest.approx(1.5, abs=2 * PROBE_EVERY)


def test_probes_that_the_healing_disturbs_do_not_count() -> None:
    probes = {"a": letters(("o", 6.9), ("s", 3.1))}
    found = outage(probes, [], MARKS, ["a"])
    assert (found.all_members, found.target) == (0.0, 0.0)


def test_up_is_the_first_connection_and_served_the_first_answer_after_the_healing() -> None:
    probes = {"a": letters(("o", 2.0), ("u", 6.0), ("s", 1.0), ("o", 1.0))}
    found = outage(probes, [(0.0, "a"), (8.0, "a"), (8.5, "a")], MARKS, ["a"])
    assert found.up == pytest.approx(1.0)
    assert found.served == pytest.approx(2.0, abs=2 * PROBE_EVERY)
    nothing = outage({"a": letters(("u", 10.0))}, [], MARKS, ["a"])
    assert (nothing.up, nothing.served) == (None, None)


def test_buckets_hold_every_call() -> None:
    found = buckets([ok(0.05), ok(0.06, 0.5), failed(0.15, 0.1), ok(99.0)], 0.3)
    assert found == {"issued": [2, 1, 1], "good": [1, 0, 1], "failed": [0, 1, 0]}


def test_cpu_is_taken_between_the_samples_inside() -> None:
    samples = [(0.0, 1.0), (2.0, 1.5), (4.0, 1.6), (6.0, 1.7), (8.0, 5.0)]
    assert cpu_rate(samples, 2.0, 7.0) == pytest.approx(0.05)
    assert cpu_rate(samples, 6.5, 7.0) == 0.0
