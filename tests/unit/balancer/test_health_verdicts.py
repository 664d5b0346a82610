"""balancer/health_verdicts.py: each piece of evidence, what is none, and that one answer restores."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.health_verdicts import (
    Finding,
    ServiceHealth,
    has_served,
    percentile_99,
    refused_health,
    silence_limit,
)
from etcd_aio.errors import (
    AttemptFailure,
    Delivery,
    LeaseNotFoundError,
    NoLeaderError,
    NotSupportedForLearnerError,
    StatusCode,
)
from etcd_aio.types import Health

NOW = 100.0
LIMIT = 0.25


def waiting_since(began: float) -> ServiceHealth:
    service = ServiceHealth(NOW)
    service.begin(began)
    return service


def finding(service: ServiceHealth, now: float, *, elsewhere: float = -inf) -> Finding:
    return service.judge(now, LIMIT, elsewhere)


def asked_at(service: ServiceHealth, now: float, pause: float = 0.25) -> ServiceHealth:
    service.ask(now, pause)
    service.begin(now)
    return service


def doubted_since(now: float) -> ServiceHealth:
    service = asked_at(ServiceHealth(NOW), now)
    service.failed(now)
    service.question_over(now)
    assert finding(service, now + 0.2) is Finding.NOTHING
    assert service.is_doubted
    return service


# What is suspicious.


def test_an_attempt_that_was_overtaken_for_half_the_patience_leads_to_a_question() -> None:
    service = waiting_since(NOW)
    assert finding(service, NOW + 0.12, elsewhere=NOW + 0.1) is Finding.NOTHING
    assert finding(service, NOW + 0.13, elsewhere=NOW + 0.1) is Finding.ASK


def test_what_begins_meanwhile_does_not_end_the_silence() -> None:
    service = waiting_since(NOW)
    service.begin(NOW + 0.2)
    assert service.silent_since == NOW


@pytest.mark.parametrize("elsewhere", [-inf, NOW - 1, NOW])
def test_nothing_follows_while_no_other_member_answers_what_began_later(elsewhere: float) -> None:
    """An election: every member is silent, and the question is, too."""
    service = asked_at(waiting_since(NOW), NOW + 0.25)
    assert finding(service, NOW + 60, elsewhere=elsewhere) is Finding.NOTHING


def test_an_answer_to_anything_ends_the_silence() -> None:
    service = waiting_since(NOW)
    service.begin(NOW + 0.1)
    service.answered(NOW + 0.1, NOW + 0.2)
    assert service.in_flight == 1
    assert finding(service, NOW + 0.32, elsewhere=NOW + 0.3) is Finding.NOTHING
    assert finding(service, NOW + 0.33, elsewhere=NOW + 0.3) is Finding.ASK


def test_a_late_answer_proves_only_what_began_before_it() -> None:
    """During an election all are silent, and one of them is the first to answer again."""
    service = waiting_since(NOW)
    service.begin(NOW + 1.0)
    service.answered(NOW + 1.0, NOW + 1.1)
    service.answered(NOW, NOW + 5.0)
    assert service.newest_answered == NOW + 1.0


def test_where_nothing_waits_nothing_is_silent() -> None:
    service = waiting_since(NOW)
    service.dropped()
    assert finding(service, NOW + 60, elsewhere=NOW + 59) is Finding.NOTHING
    service.begin(NOW + 60)
    assert finding(service, NOW + 60.1, elsewhere=NOW + 60.05) is Finding.NOTHING, "a new silence begins"


def test_waiting_for_all_of_the_patience_leads_to_a_question_without_any_other_traffic() -> None:
    service = waiting_since(NOW)
    assert finding(service, NOW + 0.24) is Finding.NOTHING
    assert finding(service, NOW + 0.25) is Finding.ASK


def test_two_failures_in_a_row_while_others_answer_lead_to_a_question() -> None:
    service = ServiceHealth(NOW)
    for began in (NOW, NOW + 1):
        service.begin(began)
        service.failed(began)
        assert finding(service, NOW + 3, elsewhere=NOW - 1) is Finding.NOTHING, "no other member answers"
    assert finding(service, NOW + 3, elsewhere=NOW + 2) is Finding.ASK
    service.begin(NOW + 3)
    service.answered(NOW + 3, NOW + 4)
    assert finding(service, NOW + 9, elsewhere=NOW + 8) is Finding.NOTHING


def test_cancellations_and_moves_are_no_failures() -> None:
    service = ServiceHealth(NOW)
    for _ in range(9):
        service.begin(NOW)
        service.dropped()
    assert finding(service, NOW + 3, elsewhere=NOW + 2) is Finding.NOTHING


# The question.


def test_a_question_without_an_answer_is_a_verdict_once_another_member_answered_a_later_one() -> None:
    service = asked_at(waiting_since(NOW), NOW + 0.13)
    assert finding(service, NOW + 0.25, elsewhere=NOW + 0.2) is Finding.NOTHING, "it waits for less than its half"
    assert finding(service, NOW + 9, elsewhere=NOW + 0.12) is Finding.NOTHING, "no other member answers any more"
    assert finding(service, NOW + 0.26, elsewhere=NOW + 0.13) is Finding.SILENT
    assert service.verdict(Finding.SILENT, NOW + 0.26) == (
        Health.SILENT,
        "no answer for 0.26 s while other members answered",
    )


def test_a_question_that_failed_is_a_verdict_as_soon_as_another_member_answered_a_later_one() -> None:
    service = ServiceHealth(NOW)
    for _ in range(2):
        service.begin(NOW)
        service.failed(NOW)
    asked_at(service, NOW + 1)
    assert finding(service, NOW + 1.01, elsewhere=NOW + 1) is Finding.NOTHING
    service.failed(NOW + 1)
    service.question_over(NOW + 1)
    assert finding(service, NOW + 1.01, elsewhere=NOW + 0.9) is Finding.NOTHING
    assert finding(service, NOW + 1.01, elsewhere=NOW + 1) is Finding.FAILING
    assert service.verdict(Finding.FAILING, NOW + 1.01)[0] is Health.FAILING


def test_a_question_that_failed_everywhere_is_forgotten_and_leaves_a_doubt() -> None:
    service = asked_at(ServiceHealth(NOW), NOW)
    service.failed(NOW)
    service.question_over(NOW)
    assert not service.is_at_rest
    assert finding(service, NOW + 0.1, elsewhere=NOW - 1) is Finding.NOTHING
    assert service.asked_at == NOW
    assert not service.is_doubted
    assert finding(service, NOW + 0.13, elsewhere=NOW - 1) is Finding.NOTHING
    assert service.asked_at == inf
    assert service.is_doubted
    assert service.unserved_since == NOW
    assert not service.is_at_rest
    assert finding(service, NOW + 9, elsewhere=NOW + 8) is Finding.ASK, "it is too old to be evidence"
    assert service.health is Health.HEALTHY


def test_a_doubt_lasts_until_the_service_answers() -> None:
    service = doubted_since(NOW)
    for later in (1, 4):
        service.ask(NOW + later, pause=0.25)
        service.begin(NOW + later)
        service.failed(NOW + later)
        service.question_over(NOW + later)
        assert finding(service, NOW + later + 0.2, elsewhere=NOW - 1) is Finding.NOTHING
        assert service.unserved_since == NOW, "it is one outage"
    service.ask(NOW + 8, pause=0.25)
    service.begin(NOW + 8)
    assert not service.answered(NOW + 8, NOW + 8.1), "it was healthy all the time"
    assert not service.is_doubted
    assert service.is_at_rest


def test_what_is_known_of_an_outage_is_not_forgotten_when_the_member_says_that_it_has_no_leader() -> None:
    service = doubted_since(NOW)
    service.begin(NOW + 3)
    assert service.change(Health.NO_LEADER, "no leader", NOW + 3)
    service.refused(NOW + 3)
    assert not service.is_doubted, "it is more than that"
    assert service.unserved_since == NOW
    service.begin(NOW + 4)
    assert service.answered(NOW + 4, NOW + 4)
    assert service.unserved_since == inf


def test_an_open_question_is_the_beginning_of_an_outage() -> None:
    service = asked_at(ServiceHealth(NOW), NOW + 1)
    assert service.change(Health.NO_LEADER, "no leader", NOW + 2)
    assert service.unserved_since == NOW + 1


def test_a_member_that_is_alone_is_asked_after_two_failures_and_one_among_silent_others_is_not() -> None:
    service = ServiceHealth(NOW)
    for _ in range(2):
        service.begin(NOW)
        service.failed(NOW)
    assert service.judge(NOW + 0.1, 0.25, -inf) is Finding.NOTHING
    assert service.judge(NOW + 0.1, 0.25, -inf, is_alone=True) is Finding.ASK


@pytest.mark.parametrize(
    ("code", "message", "delivery", "served"),
    [
        (StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED, False),
        (StatusCode.UNAVAILABLE, "etcdserver: request timed out", Delivery.ANSWERED, False),
        (StatusCode.UNAVAILABLE, "etcdserver: rpc not supported for learner", Delivery.ANSWERED, False),
        (StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", Delivery.ANSWERED, False),
        (StatusCode.DEADLINE_EXCEEDED, "too late", Delivery.UNKNOWN, False),
        (StatusCode.UNAVAILABLE, "lost", Delivery.UNSENT, False),
        (StatusCode.PERMISSION_DENIED, "etcdserver: permission denied", Delivery.ANSWERED, True),
        (StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", Delivery.ANSWERED, True),
    ],
)
def test_which_failed_attempts_show_that_the_service_works(
    code: StatusCode, message: str, delivery: Delivery, served: bool
) -> None:
    assert has_served(AttemptFailure(code, message, delivery)) is served


def test_an_answer_to_the_question_speaks_for_all_that_began_before() -> None:
    service = asked_at(waiting_since(NOW), NOW + 0.13)
    service.answered(NOW + 0.13, NOW + 0.14)
    service.question_over(NOW + 0.13)
    assert finding(service, NOW + 0.26, elsewhere=NOW + 0.13) is Finding.NOTHING
    assert finding(service, NOW + 0.38, elsewhere=NOW + 0.14) is Finding.NOTHING, "nothing newer was answered"
    assert finding(service, NOW + 0.38, elsewhere=NOW + 0.15) is Finding.ASK, "newer evidence asks again"


def test_questions_keep_their_distance() -> None:
    service = asked_at(waiting_since(NOW), NOW + 0.13, pause=2.0)
    assert service.questions == 1
    service.answered(NOW + 0.13, NOW + 0.14)
    assert not service.may_be_asked(NOW + 2.1)
    assert finding(service, NOW + 2.1, elsewhere=NOW + 2) is Finding.NOTHING
    assert finding(service, NOW + 2.2, elsewhere=NOW + 2) is Finding.ASK
    asked_at(service, NOW + 2.2)
    assert service.questions == 2
    asked_at(service, NOW + 60)
    assert service.questions == 1, "after a calm"


def test_a_busy_member_may_be_asked_again_at_once() -> None:
    service = asked_at(waiting_since(NOW), NOW + 0.13, pause=2.0)
    service.answered(NOW + 0.13, NOW + 0.14)
    for _ in range(15):
        service.begin(NOW + 0.14)
    assert finding(service, NOW + 0.3, elsewhere=NOW + 0.2) is Finding.NOTHING
    service.begin(NOW + 0.14)
    assert finding(service, NOW + 0.3, elsewhere=NOW + 0.2) is Finding.ASK


def test_the_end_of_an_old_question_says_nothing_of_the_new_one() -> None:
    service = asked_at(ServiceHealth(NOW), NOW)
    asked_at(service, NOW + 1)
    service.question_over(NOW)
    assert finding(service, NOW + 1.01, elsewhere=NOW + 1) is Finding.NOTHING


# What follows.


def test_a_refusal_is_heard_and_restores_nothing() -> None:
    service = asked_at(waiting_since(NOW), NOW + 0.1)
    service.change(Health.LEARNER, "it does not vote", NOW)
    service.refused(NOW + 0.2)
    assert (service.health, service.in_flight, service.silent_since) == (Health.LEARNER, 1, NOW + 0.2)
    assert service.asked_at == inf
    assert service.newest_answered == -inf, "others are not measured by it"


def test_one_answer_restores_and_says_so_once() -> None:
    service = waiting_since(NOW)
    service.begin(NOW)
    assert service.change(Health.SILENT, "it says nothing", NOW + 1)
    assert (service.health, service.reason, service.since) == (Health.SILENT, "it says nothing", NOW + 1)
    assert not service.change(Health.SILENT, "again", NOW + 2)
    assert service.answered(NOW, NOW + 3)
    assert (service.health, service.reason, service.since) == (Health.HEALTHY, "", NOW + 3)
    assert not service.answered(NOW, NOW + 4)


def test_what_an_error_says_of_its_member() -> None:
    assert refused_health(NoLeaderError()) is Health.NO_LEADER
    assert refused_health(NotSupportedForLearnerError()) is Health.LEARNER
    assert refused_health(LeaseNotFoundError()) is None
    assert refused_health(None) is None


# Patience.


def test_patience_grows_with_what_is_slow_within_bounds() -> None:
    assert silence_limit(0.0, 0, 0.0) == silence_limit(0.01, 0, 0.0) == 0.25
    assert silence_limit(0.2, 0, 0.0) == pytest.approx(0.4)
    assert silence_limit(60.0, 0, 0.0) == 2.0


def test_a_burst_gets_time_for_its_queue() -> None:
    assert silence_limit(0.0, 40, 0.0) == pytest.approx(0.29)
    assert silence_limit(0.0, 999, 0.0) == pytest.approx(1.249)


@given(st.floats(0, 10), st.integers(0, 10_000), st.floats(0, 5))
def test_half_of_the_patience_is_always_longer_than_a_round_trip(slow: float, in_flight: int, there: float) -> None:
    assert silence_limit(slow, in_flight, there) / 2 > there


def test_the_percentile_is_that_of_all_members() -> None:
    assert percentile_99([ServiceHealth(NOW)]) == 0.0
    services = [ServiceHealth(NOW), ServiceHealth(NOW)]
    for number in range(100):
        services[number % 2].begin(NOW)
        services[number % 2].answered(NOW, NOW + number / 1000)
    assert percentile_99(services) == pytest.approx(0.099)


# Whatever happens.

STEPS = st.tuples(
    st.sampled_from(["begin", "answered", "refused", "failed", "dropped", "elsewhere", "look", "over"]),
    st.floats(0.001, 1.0),
)


@given(st.lists(STEPS, max_size=200), st.booleans())
def test_every_story_keeps_the_rules(story: list[tuple[str, float]], are_others_silent: bool) -> None:
    service, now, newest, pause = ServiceHealth(NOW), NOW, -inf, 0.5
    running: list[float] = []
    asked: list[float] = []
    begun = 0
    answered_at = -inf
    for what, seconds in story:
        now += seconds
        if what == "begin":
            service.begin(now)
            running.append(now)
            begun += 1
        elif what == "elsewhere" and not are_others_silent:
            newest = now
        elif what == "over" and asked:
            service.question_over(asked[-1])
        elif what in ("answered", "refused", "failed", "dropped") and running:
            began = running.pop(0)
            if what == "answered":
                service.answered(began, now)
                answered_at = now
                assert service.health is Health.HEALTHY, "one answer restores"
            elif what == "refused":
                service.refused(now)
                answered_at = now
            elif what == "failed":
                service.failed(began)
            else:
                service.dropped()
        elif what == "look" and service.health is Health.HEALTHY:
            was_open = service.asked_at
            found = finding(service, now, elsewhere=newest)
            if found is Finding.ASK:
                assert not asked or now - asked[-1] >= pause or begun > 15, "questions keep their distance"
                service.ask(now, pause)
                begun = 0
                asked.append(now)
            elif found is not Finding.NOTHING:
                assert asked, "no verdict without a question"
                assert asked[-1] == was_open
                assert answered_at <= asked[-1] <= newest, "nothing was answered since, and elsewhere something was"
                service.change(service.verdict(found, now)[0], "it looks bad", now)
        assert service.in_flight == len(running)
        assert service.silent_since <= now
        assert not (service.is_at_rest and running)
    if are_others_silent:
        assert service.health is Health.HEALTHY


def test_only_the_member_itself_ends_that_it_does_not_serve() -> None:
    service = ServiceHealth(NOW)
    assert not service.told(True, NOW)
    service.begin(NOW)
    assert service.told(False, NOW + 1)
    assert not service.told(False, NOW + 2)
    assert (service.health, service.since) == (Health.NOT_SERVING, NOW + 1)
    assert "defragments" in service.reason
    assert not service.answered(NOW, NOW + 3)
    assert service.health is Health.NOT_SERVING
    assert not service.is_at_rest, "streams have to leave"
    assert service.told(True, NOW + 4)
    assert (service.health, service.reason) == (Health.HEALTHY, "")
    assert service.is_at_rest


def test_its_word_that_it_serves_mends_no_other_problem() -> None:
    service = ServiceHealth(NOW)
    service.change(Health.LEARNER, "learner", NOW)
    assert not service.told(True, NOW + 1)
    assert service.health is Health.LEARNER
