"""errors/attempt.py: failed attempts: gRPC status codes, delivery, retry hints, and how peers' texts are shown."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import Attempt, AttemptFailure, Delivery, EtcdError, LocalReason, RetryHint, StatusCode, sanitize
from etcd_aio.errors.attempt import MAX_MESSAGE_BYTES, shown_seconds

# From gRPC's own list of status codes.
NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_every_number_has_grpcs_name(number: int, name: str) -> None:
    assert StatusCode.from_number(number) is StatusCode[name]


def test_there_are_no_others() -> None:
    assert len(StatusCode) == len(NAMES)


@given(st.integers().filter(lambda number: not 0 <= number <= 16))
def test_a_number_that_grpc_does_not_define_is_unknown(number: int) -> None:
    assert StatusCode.from_number(number) is StatusCode.UNKNOWN


@pytest.mark.parametrize(
    ("delivery", "is_definite"),
    [
        (Delivery.UNSENT, True),
        (Delivery.UNPROCESSED, True),
        (Delivery.UNKNOWN, False),
        (Delivery.ANSWERED, False),
    ],
)
def test_only_what_was_not_taken_is_definite(delivery: Delivery, is_definite: bool) -> None:
    assert delivery.is_definite is is_definite


def test_there_are_four_facts() -> None:
    assert len(Delivery) == 4


def test_each_has_words_of_its_own() -> None:
    assert len({delivery.words for delivery in Delivery}) == len(Delivery)


def test_there_are_four_hints() -> None:
    assert [hint.name for hint in RetryHint] == [
        "RAISE",
        "REFRESH_TOKEN",
        "RETRY_ELSEWHERE",
        "RETRY_IF_REPEATABLE",
    ]


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


# Characters of one to four bytes, and what is escaped to more than it was.
@pytest.mark.parametrize("char", ["a", "é", "€", "🦊", "\x00", "\x1b", "\u2028", "\U000e0001", "\ud800"])
@pytest.mark.parametrize(
    "length", [0, 1, 400, MAX_MESSAGE_BYTES - 1, MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES + 1, 100_000]
)
def test_a_text_is_cut_to_its_limit_between_characters(char: str, length: int) -> None:
    text = sanitize(char * length)
    assert len(text.encode()) <= MAX_MESSAGE_BYTES
    whole = sanitize(char) * length
    if len(whole.encode()) <= MAX_MESSAGE_BYTES:
        assert text == whole
    else:
        assert text.endswith("... (cut)")
        assert whole.startswith(text.removesuffix("... (cut)"))
        assert len(text.encode()) > MAX_MESSAGE_BYTES - 4  # no more is lost than a part of one character


def test_an_attempt_failure_carries_no_raw_text() -> None:
    failure = AttemptFailure(StatusCode.UNKNOWN, "one\r\ntwo\x1b[2J" + "x" * 10_000, Delivery.ANSWERED)
    assert failure.message.startswith("one\\r\\ntwo\\x1b[2J")
    assert str(failure).isprintable()
    assert len(failure.message.encode()) <= MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0 ms"), (0.0034, "3 ms"), (0.25, "0.25 s"), (1.9999999, "2 s"), (4.34, "4.3 s"), (75.2, "75 s")],
)
def test_a_duration_is_short(seconds: float, shown: str) -> None:
    assert shown_seconds(seconds) == shown
