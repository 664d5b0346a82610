"""Health: each piece of evidence, what is none, and that one answer restores."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.health import Health, Service, patience, percentile_99

NOW = 100.0


def waiting_since(began: float) -> Service:
    service = Service(NOW)
    service.begin(began)
    return service


def health(service: Service, now: float, *, newest_elsewhere: float = -inf, ping_silence: float = 0.0) -> Health:
    return service.judge(now, 0.0, newest_elsewhere, ping_silence)[0]


def test_an_attempt_that_was_overtaken_for_longer_than_the_patience_is_silence() -> None:
    service = waiting_since(NOW)
    assert health(service, NOW + 0.25, newest_elsewhere=NOW + 0.1) is Health.HEALTHY
    assert health(service, NOW + 0.26, newest_elsewhere=NOW + 0.1) is Health.SILENT


def test_what_begins_meanwhile_does_not_end_the_silence() -> None:
    service = waiting_since(NOW)
    service.begin(NOW + 0.2)
    assert service.silent_since == NOW


@pytest.mark.parametrize("elsewhere", [-inf, NOW - 1, NOW])
def test_nothing_follows_while_nobody_answers_what_began_later(elsewhere: float) -> None:
    """An election: whoever is asked is silent."""
    assert health(waiting_since(NOW), NOW + 60, newest_elsewhere=elsewhere) is Health.HEALTHY


def test_an_answer_to_anything_ends_the_silence() -> None:
    service = waiting_since(NOW)
    service.begin(NOW + 0.1)
    service.answered(NOW + 0.1, NOW + 0.2)
    assert service.in_flight == 1
    assert health(service, NOW + 0.44, newest_elsewhere=NOW + 0.3) is Health.HEALTHY
    assert health(service, NOW + 0.46, newest_elsewhere=NOW + 0.3) is Health.SILENT


def test_what_waits_for_nothing_is_not_silent() -> None:
    service = waiting_since(NOW)
    service.unanswered(NOW, is_timeout=False)
    assert health(service, NOW + 60, newest_elsewhere=NOW + 59, ping_silence=59.0) is Health.HEALTHY
    service.begin(NOW + 60)
    assert health(service, NOW + 60.1, newest_elsewhere=NOW + 60.05) is Health.HEALTHY, "a new silence begins"


def test_an_unanswered_ping_is_evidence_without_anybody_else() -> None:
    service = waiting_since(NOW)
    assert health(service, NOW + 0.7, ping_silence=0.2) is Health.HEALTHY
    assert health(service, NOW + 0.8, ping_silence=0.26) is Health.SILENT


def test_two_timeouts_in_a_row_while_others_answer_are_failing() -> None:
    service = Service(NOW)
    for began in (NOW, NOW + 1):
        service.begin(began)
        service.unanswered(began, is_timeout=True)
        assert health(service, NOW + 3, newest_elsewhere=NOW - 1) is Health.HEALTHY, "nobody answers"
    assert health(service, NOW + 3, newest_elsewhere=NOW + 2) is Health.FAILING
    service.begin(NOW + 3)
    service.answered(NOW + 3, NOW + 4)
    assert health(service, NOW + 9, newest_elsewhere=NOW + 8) is Health.HEALTHY


def test_a_refusal_is_heard_and_restores_nothing() -> None:
    service = waiting_since(NOW)
    service.change(Health.LEARNER, "it does not vote", NOW)
    service.heard(NOW + 0.2)
    assert (service.health, service.in_flight, service.silent_since) == (Health.LEARNER, 0, NOW + 0.2)
    assert service.newest_answered == -inf, "others are not measured by it"


def test_cancellations_and_lost_connections_are_no_timeouts() -> None:
    service = Service(NOW)
    for _ in range(9):
        service.begin(NOW)
        service.unanswered(NOW, is_timeout=False)
    assert health(service, NOW + 3, newest_elsewhere=NOW + 2) is Health.HEALTHY


def test_one_answer_restores_and_says_so_once() -> None:
    service = waiting_since(NOW)
    service.begin(NOW)
    assert service.change(Health.SILENT, "it says nothing", NOW + 1)
    assert (service.health, service.reason, service.since) == (Health.SILENT, "it says nothing", NOW + 1)
    assert not service.change(Health.SILENT, "again", NOW + 2)
    assert service.answered(NOW, NOW + 3)
    assert (service.health, service.reason, service.since) == (Health.HEALTHY, "", NOW + 3)
    assert not service.answered(NOW, NOW + 4)


def test_a_new_connection_begins_anew_and_old_attempts_may_still_end() -> None:
    service = waiting_since(NOW)
    service.change(Health.NO_LEADER, "etcdserver: no leader", NOW)
    service.reset(NOW + 5)
    assert service.health is Health.HEALTHY
    service.unanswered(NOW, is_timeout=False)
    assert service.in_flight == 0


def test_patience_grows_with_what_is_slow_within_bounds() -> None:
    assert patience(0.0, 0) == patience(0.01, 0) == 0.25
    assert patience(0.2, 0) == pytest.approx(0.4)
    assert patience(60.0, 0) == 2.0


def test_whoever_got_a_burst_gets_time_for_its_queue() -> None:
    assert patience(0.0, 40) == pytest.approx(0.29)
    service = waiting_since(NOW)
    for _ in range(999):
        service.begin(NOW)
    assert health(service, NOW + 1.2, newest_elsewhere=NOW + 1, ping_silence=1.2) is Health.HEALTHY
    assert health(service, NOW + 1.3, newest_elsewhere=NOW + 1) is Health.SILENT
    assert health(service, NOW + 1.3, ping_silence=1.3) is Health.SILENT


def test_the_percentile_is_that_of_all_members() -> None:
    assert percentile_99([Service(NOW)]) == 0.0
    services = [Service(NOW), Service(NOW)]
    for number in range(100):
        services[number % 2].begin(NOW)
        services[number % 2].answered(NOW, NOW + number / 1000)
    assert percentile_99(services) == pytest.approx(0.099)


@given(st.lists(st.sampled_from(["begin", "answered", "timeout", "cancelled"]), max_size=60))
def test_attempts_are_counted_whatever_happens(story: list[str]) -> None:
    service, running = Service(NOW), 0
    for number, what in enumerate(story):
        now = NOW + number
        if what == "begin":
            service.begin(now)
            running += 1
        elif running:
            running -= 1
            if what == "answered":
                service.answered(now - 1, now)
            else:
                service.unanswered(now - 1, is_timeout=what == "timeout")
        assert service.in_flight == running
        assert service.silent_since <= now
