"""Stream verdicts: every combination of facts has exactly one answer, and no stream dies that another could replace."""

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.error_handler.stream_verdict import (
    STREAM_VERDICTS,
    StreamFacts,
    StreamVerdict,
    classify_stream,
    judge_stream,
)
from etcd_aio.errors import Delivery, Remedy

FACTS = st.builds(
    StreamFacts,
    delivery=st.none() | st.sampled_from(Delivery),
    remedy=st.sampled_from(Remedy),
    is_unforeseen=st.booleans(),
    is_final=st.booleans(),
    says_otherwise=st.booleans(),
    has_token=st.booleans(),
)


@given(FACTS)
def test_every_combination_has_one_verdict(facts: StreamFacts) -> None:
    assert judge_stream(facts) is STREAM_VERDICTS[classify_stream(facts)]


@given(FACTS)
def test_a_stream_ends_only_for_what_was_said(facts: StreamFacts) -> None:
    if judge_stream(facts) is StreamVerdict.END:
        assert facts.is_final or facts.delivery is Delivery.ANSWERED


@given(FACTS)
def test_what_this_side_does_not_take_is_never_asked_for_again(facts: StreamFacts) -> None:
    if facts.is_final and not facts.says_otherwise:
        assert judge_stream(facts) is StreamVerdict.END


@given(FACTS)
def test_only_an_answer_is_waited_after(facts: StreamFacts) -> None:
    if judge_stream(facts) in (StreamVerdict.BACKOFF, StreamVerdict.REFRESH_TOKEN):
        assert facts.delivery is Delivery.ANSWERED


@given(FACTS)
def test_without_a_token_none_is_refreshed(facts: StreamFacts) -> None:
    if not facts.has_token:
        assert judge_stream(facts) is not StreamVerdict.REFRESH_TOKEN
