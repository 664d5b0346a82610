from itertools import product

import pytest

from etcd_aio.error_handler.verdict import VERDICTS, Facts, Situation, Verdict, classify, judge, may_have_been_applied
from etcd_aio.errors import Delivery, Remedy

UNSENT, UNPROCESSED, UNKNOWN, ANSWERED = Delivery.UNSENT, Delivery.UNPROCESSED, Delivery.UNKNOWN, Delivery.ANSWERED
RAISE, AT_ONCE, BACKOFF, REFRESH_TOKEN = Verdict.RAISE, Verdict.AT_ONCE, Verdict.BACKOFF, Verdict.REFRESH_TOKEN


def facts(
    delivery: Delivery, remedy: Remedy = Remedy.RAISE, *, repeat: bool, go_on: bool = True, **more: bool
) -> Facts:
    return Facts(delivery, remedy, may_repeat=repeat, may_continue=go_on, **more)


BOTH = (False, True)
EVERY_FACT = [
    Facts(
        delivery,
        remedy,
        may_repeat=repeat,
        may_continue=go_on,
        has_token=token,
        was_unprocessed=again,
        is_given_up=given_up,
    )
    for delivery, remedy in product(Delivery, Remedy)
    for repeat, go_on, token, again, given_up in product(BOTH, BOTH, BOTH, BOTH, BOTH)
]


def test_every_situation_has_its_row_and_every_row_can_be_reached() -> None:
    assert set(VERDICTS) == set(Situation)
    assert {classify(every) for every in EVERY_FACT} == set(Situation)


@pytest.mark.parametrize("delivery", list(Delivery))
@pytest.mark.parametrize("remedy", list(Remedy))
@pytest.mark.parametrize("repeat", [False, True])
def test_row_deadline_passed_cancelled_or_closed(delivery: Delivery, remedy: Remedy, repeat: bool) -> None:
    assert judge(facts(delivery, remedy, repeat=repeat, go_on=False)) is RAISE


@pytest.mark.parametrize("repeat", [False, True])
def test_row_unsent_or_unprocessed(repeat: bool) -> None:
    assert judge(facts(UNSENT, repeat=repeat)) is AT_ONCE
    assert judge(facts(UNSENT, repeat=repeat, was_unprocessed=True)) is AT_ONCE
    assert judge(facts(UNPROCESSED, repeat=repeat)) is AT_ONCE
    assert judge(facts(UNPROCESSED, repeat=repeat, was_unprocessed=True)) is BACKOFF


def test_row_given_up_for_the_sake_of_the_next() -> None:
    assert judge(facts(UNKNOWN, repeat=True, is_given_up=True)) is AT_ONCE
    assert judge(facts(UNKNOWN, repeat=False, is_given_up=True)) is RAISE
    assert judge(facts(UNKNOWN, repeat=True, go_on=False, is_given_up=True)) is RAISE


@pytest.mark.parametrize("repeat", [False, True])
def test_row_token_refused(repeat: bool) -> None:
    assert judge(facts(ANSWERED, Remedy.REFRESH_TOKEN, repeat=repeat, has_token=True)) is REFRESH_TOKEN
    assert judge(facts(ANSWERED, Remedy.REFRESH_TOKEN, repeat=repeat, has_token=False)) is RAISE


@pytest.mark.parametrize("repeat", [False, True])
def test_row_refused_before_it_could_run(repeat: bool) -> None:
    assert judge(facts(ANSWERED, Remedy.RETRY_ELSEWHERE, repeat=repeat)) is BACKOFF


def test_row_the_rest_of_unavailable() -> None:
    assert judge(facts(ANSWERED, Remedy.RETRY_IF_REPEATABLE, repeat=True)) is BACKOFF
    assert judge(facts(ANSWERED, Remedy.RETRY_IF_REPEATABLE, repeat=False)) is RAISE


def test_row_no_answer() -> None:
    assert judge(facts(UNKNOWN, repeat=True)) is BACKOFF
    assert judge(facts(UNKNOWN, repeat=False)) is RAISE


@pytest.mark.parametrize("repeat", [False, True])
def test_row_answered_for_good(repeat: bool) -> None:
    assert judge(facts(ANSWERED, Remedy.RAISE, repeat=repeat)) is RAISE


@pytest.mark.parametrize("remedy", list(Remedy))
@pytest.mark.parametrize("delivery", [UNSENT, UNPROCESSED, UNKNOWN])
def test_a_remedy_counts_only_if_there_was_an_answer(delivery: Delivery, remedy: Remedy) -> None:
    for repeat in (False, True):
        assert judge(facts(delivery, remedy, repeat=repeat, has_token=True)) is judge(facts(delivery, repeat=repeat))


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
