"""Verdicts: every combination of facts has exactly one, no mutation is applied twice, no stream ends needlessly."""

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.error_handler.retry_verdicts import (
    CALL_VERDICTS,
    STREAM_VERDICTS,
    CallFacts,
    RetryVerdict,
    StreamFacts,
    classify_call,
    classify_stream,
    judge_call,
    judge_stream,
    may_have_been_applied,
)
from etcd_aio.errors import Delivery, RetryHint

FACTS = st.builds(
    CallFacts,
    delivery=st.sampled_from(Delivery),
    retry_hint=st.sampled_from(RetryHint),
    may_repeat=st.booleans(),
    may_continue=st.booleans(),
    has_token=st.booleans(),
    was_unprocessed=st.booleans(),
)
# What an answer with this hint may say of itself: a request that was refused before it could run has changed nothing.
REFUSED = {RetryHint.REFRESH_TOKEN, RetryHint.RETRY_ELSEWHERE}


@given(FACTS)
def test_every_combination_has_one_verdict(facts: CallFacts) -> None:
    assert judge_call(facts) is CALL_VERDICTS[classify_call(facts)][0 if facts.may_repeat else 1]


@given(FACTS)
def test_what_must_not_run_twice_is_never_sent_again_after_it_may_have_run(facts: CallFacts) -> None:
    is_definite = facts.retry_hint in REFUSED
    if not facts.may_repeat and may_have_been_applied(facts.delivery, is_definite=is_definite):
        assert judge_call(facts) is RetryVerdict.FAIL


@given(FACTS)
def test_nothing_follows_once_nothing_may(facts: CallFacts) -> None:
    if not facts.may_continue:
        assert judge_call(facts) is RetryVerdict.FAIL


@given(FACTS)
def test_what_may_run_twice_is_repeated_wherever_anything_else_is(facts: CallFacts) -> None:
    if_not = CALL_VERDICTS[classify_call(facts)][1]
    if if_not is not RetryVerdict.FAIL:
        assert CALL_VERDICTS[classify_call(facts)][0] is if_not


@given(FACTS)
def test_without_a_token_none_is_refreshed(facts: CallFacts) -> None:
    if not facts.has_token:
        assert judge_call(facts) is not RetryVerdict.REFRESH_TOKEN


# Streams.

STREAM_FACTS = st.builds(
    StreamFacts,
    delivery=st.none() | st.sampled_from(Delivery),
    retry_hint=st.sampled_from(RetryHint),
    is_unforeseen=st.booleans(),
    is_final=st.booleans(),
    will_retry_differently=st.booleans(),
    has_token=st.booleans(),
)


@given(STREAM_FACTS)
def test_every_combination_of_a_stream_has_one_verdict(facts: StreamFacts) -> None:
    assert judge_stream(facts) is STREAM_VERDICTS[classify_stream(facts)]


@given(STREAM_FACTS)
def test_a_stream_ends_only_for_an_answer_or_a_final_failure(facts: StreamFacts) -> None:
    if judge_stream(facts) is RetryVerdict.FAIL:
        assert facts.is_final or facts.delivery is Delivery.ANSWERED


@given(STREAM_FACTS)
def test_what_this_side_does_not_take_is_never_asked_for_again(facts: StreamFacts) -> None:
    if facts.is_final and not facts.will_retry_differently:
        assert judge_stream(facts) is RetryVerdict.FAIL


@given(STREAM_FACTS)
def test_only_an_answer_is_waited_after(facts: StreamFacts) -> None:
    if judge_stream(facts) in (RetryVerdict.BACKOFF, RetryVerdict.REFRESH_TOKEN):
        assert facts.delivery is Delivery.ANSWERED


@given(STREAM_FACTS)
def test_no_stream_refreshes_a_token_that_it_does_not_have(facts: StreamFacts) -> None:
    if not facts.has_token:
        assert judge_stream(facts) is not RetryVerdict.REFRESH_TOKEN
