"""error_handler/retry_verdicts.py: every situation has a verdict, for calls and for streams."""

from itertools import product

import pytest

from etcd_aio.error_handler.retry_verdicts import (
    CALL_VERDICTS,
    STREAM_VERDICTS,
    CallFacts,
    CallSituation,
    RetryVerdict,
    StreamFacts,
    StreamSituation,
    classify_call,
    judge_call,
    judge_stream,
    may_have_been_applied,
)
from etcd_aio.errors import Delivery, RetryHint

UNSENT, UNPROCESSED, UNKNOWN, ANSWERED = Delivery.UNSENT, Delivery.UNPROCESSED, Delivery.UNKNOWN, Delivery.ANSWERED
FAIL, AT_ONCE, BACKOFF, REFRESH_TOKEN = (
    RetryVerdict.FAIL,
    RetryVerdict.AT_ONCE,
    RetryVerdict.BACKOFF,
    RetryVerdict.REFRESH_TOKEN,
)


def facts(
    delivery: Delivery, retry_hint: RetryHint = RetryHint.RAISE, *, repeat: bool, go_on: bool = True, **more: bool
) -> CallFacts:
    return CallFacts(delivery, retry_hint, may_repeat=repeat, may_continue=go_on, **more)


BOTH = (False, True)
EVERY_FACT = [
    CallFacts(
        delivery,
        retry_hint,
        may_repeat=repeat,
        may_continue=go_on,
        has_token=token,
        was_unprocessed=again,
        is_given_up=given_up,
    )
    for delivery, retry_hint in product(Delivery, RetryHint)
    for repeat, go_on, token, again, given_up in product(BOTH, BOTH, BOTH, BOTH, BOTH)
]


def test_every_situation_has_a_verdict_and_can_be_reached() -> None:
    assert set(CALL_VERDICTS) == set(CallSituation)
    assert {classify_call(every) for every in EVERY_FACT} == set(CallSituation)


@pytest.mark.parametrize("delivery", list(Delivery))
@pytest.mark.parametrize("retry_hint", list(RetryHint))
@pytest.mark.parametrize("repeat", [False, True])
def test_nothing_is_tried_once_no_attempt_may_follow(delivery: Delivery, retry_hint: RetryHint, repeat: bool) -> None:
    assert judge_call(facts(delivery, retry_hint, repeat=repeat, go_on=False)) is FAIL


@pytest.mark.parametrize("repeat", [False, True])
def test_an_unsent_or_unprocessed_request_is_tried_at_once(repeat: bool) -> None:
    assert judge_call(facts(UNSENT, repeat=repeat)) is AT_ONCE
    assert judge_call(facts(UNSENT, repeat=repeat, was_unprocessed=True)) is AT_ONCE
    assert judge_call(facts(UNPROCESSED, repeat=repeat)) is AT_ONCE
    assert judge_call(facts(UNPROCESSED, repeat=repeat, was_unprocessed=True)) is BACKOFF


def test_an_attempt_that_was_given_up_is_tried_at_once_if_it_may_run_twice() -> None:
    assert judge_call(facts(UNKNOWN, repeat=True, is_given_up=True)) is AT_ONCE
    assert judge_call(facts(UNKNOWN, repeat=False, is_given_up=True)) is FAIL
    assert judge_call(facts(UNKNOWN, repeat=True, go_on=False, is_given_up=True)) is FAIL


@pytest.mark.parametrize("repeat", [False, True])
def test_a_refused_token_is_refreshed_if_there_is_another(repeat: bool) -> None:
    assert judge_call(facts(ANSWERED, RetryHint.REFRESH_TOKEN, repeat=repeat, has_token=True)) is REFRESH_TOKEN
    assert judge_call(facts(ANSWERED, RetryHint.REFRESH_TOKEN, repeat=repeat, has_token=False)) is FAIL


@pytest.mark.parametrize("repeat", [False, True])
def test_a_request_refused_before_it_ran_is_tried_after_the_backoff(repeat: bool) -> None:
    assert judge_call(facts(ANSWERED, RetryHint.RETRY_ELSEWHERE, repeat=repeat)) is BACKOFF


def test_an_uncertain_answer_is_tried_again_only_if_it_may_run_twice() -> None:
    assert judge_call(facts(ANSWERED, RetryHint.RETRY_IF_REPEATABLE, repeat=True)) is BACKOFF
    assert judge_call(facts(ANSWERED, RetryHint.RETRY_IF_REPEATABLE, repeat=False)) is FAIL


def test_a_request_without_an_answer_is_tried_again_only_if_it_may_run_twice() -> None:
    assert judge_call(facts(UNKNOWN, repeat=True)) is BACKOFF
    assert judge_call(facts(UNKNOWN, repeat=False)) is FAIL


@pytest.mark.parametrize("repeat", [False, True])
def test_a_final_answer_is_raised(repeat: bool) -> None:
    assert judge_call(facts(ANSWERED, RetryHint.RAISE, repeat=repeat)) is FAIL


@pytest.mark.parametrize("retry_hint", list(RetryHint))
@pytest.mark.parametrize("delivery", [UNSENT, UNPROCESSED, UNKNOWN])
def test_a_remedy_counts_only_if_there_was_an_answer(delivery: Delivery, retry_hint: RetryHint) -> None:
    for repeat in (False, True):
        assert judge_call(facts(delivery, retry_hint, repeat=repeat, has_token=True)) is judge_call(
            facts(delivery, repeat=repeat)
        )


@pytest.mark.parametrize(
    ("delivery", "is_definite", "expected"),
    [
        (UNSENT, False, False),
        (UNSENT, True, False),
        (UNPROCESSED, False, False),
        (UNPROCESSED, True, False),
        (UNKNOWN, False, True),
        (UNKNOWN, True, True),
        (ANSWERED, False, True),
        (ANSWERED, True, False),
    ],
)
def test_what_may_have_been_applied(delivery: Delivery, is_definite: bool, expected: bool) -> None:
    assert may_have_been_applied(delivery, is_definite=is_definite) is expected


# Streams.


def test_every_situation_of_a_stream_has_a_verdict() -> None:
    assert set(STREAM_VERDICTS) == set(StreamSituation)


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (StreamFacts(None), AT_ONCE),
        (StreamFacts(Delivery.UNSENT), AT_ONCE),
        (StreamFacts(Delivery.UNPROCESSED), AT_ONCE),
        (StreamFacts(Delivery.UNKNOWN), AT_ONCE),
        (StreamFacts(Delivery.UNKNOWN, is_final=True), FAIL),
        (StreamFacts(Delivery.UNKNOWN, is_final=True, will_retry_differently=True), AT_ONCE),
        (StreamFacts(ANSWERED), FAIL),
        (StreamFacts(ANSWERED, will_retry_differently=True), AT_ONCE),
        (StreamFacts(ANSWERED, is_unforeseen=True), BACKOFF),
        (StreamFacts(ANSWERED, others_may_serve=True), BACKOFF),
        (StreamFacts(ANSWERED, RetryHint.RETRY_ELSEWHERE), BACKOFF),
        (StreamFacts(ANSWERED, RetryHint.RETRY_IF_REPEATABLE), BACKOFF),
        (StreamFacts(ANSWERED, RetryHint.REFRESH_TOKEN), FAIL),
        (StreamFacts(ANSWERED, RetryHint.REFRESH_TOKEN, has_token=True), RetryVerdict.REFRESH_TOKEN),
        (StreamFacts(Delivery.UNKNOWN, RetryHint.REFRESH_TOKEN, has_token=True), AT_ONCE),
    ],
)
def test_the_verdict_on_a_stream_that_ended(facts: StreamFacts, verdict: RetryVerdict) -> None:
    assert judge_stream(facts) is verdict
