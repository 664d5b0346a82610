"""One failed attempt: what it carries and how it reads."""

from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.errors import Attempt, AttemptFailure, Delivery, EtcdError, LocalReason, StatusCode


def test_a_failure_carries_the_facts_that_are_judged() -> None:
    failure = AttemptFailure(
        StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN, pushback=0.5, reason=LocalReason.DEADLINE
    )
    assert failure.code is StatusCode.UNAVAILABLE
    assert failure.message == "gone"
    assert failure.delivery is Delivery.UNKNOWN
    assert failure.pushback == 0.5
    assert failure.reason is LocalReason.DEADLINE


def test_a_failure_is_by_default_neither_ours_nor_final_and_asks_for_no_wait() -> None:
    failure = AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN)
    assert failure.pushback is None
    assert failure.reason is None


def test_a_failure_reads_as_delivery_text_and_status() -> None:
    failure = AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN)
    assert str(failure) == "no answer: gone (UNAVAILABLE)"


def test_a_failure_is_not_what_users_catch() -> None:
    assert not issubclass(AttemptFailure, EtcdError)


def test_an_attempt_says_where_what_and_how_long() -> None:
    attempt = Attempt("m1:2379", StatusCode.UNAVAILABLE, Delivery.ANSWERED, 0.0254, "no leader")
    assert str(attempt) == "m1:2379: answered after 25 ms: no leader (UNAVAILABLE)"


def test_an_attempt_that_found_no_endpoint_says_so() -> None:
    attempt = Attempt("", StatusCode.UNAVAILABLE, Delivery.UNSENT, 0.0, "nothing is ready")
    assert str(attempt) == "no endpoint: not sent after 0 ms: nothing is ready (UNAVAILABLE)"


def test_an_attempt_is_a_value() -> None:
    attempt = Attempt("m1:2379", StatusCode.OK, Delivery.UNKNOWN, 1.0, "")
    assert attempt == Attempt("m1:2379", StatusCode.OK, Delivery.UNKNOWN, 1.0, "")
    with pytest.raises(FrozenInstanceError):
        attempt.endpoint = "m2:2379"  # type: ignore[misc]
