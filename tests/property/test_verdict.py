"""Verdicts: every combination of facts has exactly one answer, and none of them applies a mutation twice."""

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.error_handler.verdict import VERDICTS, Facts, Verdict, classify, judge, may_have_been_applied
from etcd_aio.errors import Delivery, Remedy

FACTS = st.builds(
    Facts,
    delivery=st.sampled_from(Delivery),
    remedy=st.sampled_from(Remedy),
    may_repeat=st.booleans(),
    may_continue=st.booleans(),
    has_token=st.booleans(),
    was_unprocessed=st.booleans(),
)
# What an answer with this remedy may say of itself: a request that was refused before it could run has changed nothing.
REFUSED = {Remedy.REFRESH_TOKEN, Remedy.RETRY_ELSEWHERE}


@given(FACTS)
def test_every_combination_has_one_verdict(facts: Facts) -> None:
    assert judge(facts) is VERDICTS[classify(facts)][0 if facts.may_repeat else 1]


@given(FACTS)
def test_what_must_not_run_twice_is_never_sent_again_after_it_may_have_run(facts: Facts) -> None:
    is_definite = facts.remedy in REFUSED
    if not facts.may_repeat and may_have_been_applied(facts.delivery, is_definite=is_definite):
        assert judge(facts) is Verdict.RAISE


@given(FACTS)
def test_nothing_follows_once_nothing_may(facts: Facts) -> None:
    if not facts.may_continue:
        assert judge(facts) is Verdict.RAISE


@given(FACTS)
def test_what_may_run_twice_is_repeated_wherever_anything_else_is(facts: Facts) -> None:
    if_not = VERDICTS[classify(facts)][1]
    if if_not is not Verdict.RAISE:
        assert VERDICTS[classify(facts)][0] is if_not


@given(FACTS)
def test_without_a_token_none_is_refreshed(facts: Facts) -> None:
    if not facts.has_token:
        assert judge(facts) is not Verdict.REFRESH_TOKEN
