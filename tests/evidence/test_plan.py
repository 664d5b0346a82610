"""The plan of a report follows from its seed, and few seeds cover every way."""

import pytest

from tests.evidence.__main__ import _QUICK
from tests.evidence.plan import ENGINES, FAULTS, LOOPS, WAYS, Size, draw, numbers
from tests.evidence.trouble import FAULTS as MADE

SIZE = Size(1000, 10.0)


def test_equal_seeds_give_equal_plans() -> None:
    assert draw("3.7.3", 7, SIZE) == draw("3.7.3", 7, SIZE)
    assert draw("3.7.3", 7, SIZE) != draw("3.6.16", 7, SIZE)
    assert draw("3.7.3", 7, SIZE).name == "3.7.3-7"


def test_forty_plans_have_everything() -> None:
    plans = [draw("3.7.3", seed, SIZE) for seed in range(40)]
    assert {plan.engine for plan in plans} == set(ENGINES)
    assert {plan.loop for plan in plans} == set(LOOPS)
    assert {(plan.has_auth, plan.has_tls) for plan in plans} == {(a, t) for a in (True, False) for t in (True, False)}
    assert {fault for plan in plans for fault in plan.faults} == set(FAULTS)
    assert all(sorted(plan.ways) == sorted(WAYS) for plan in plans)
    assert {(plan.engine, plan.has_tls) for plan in plans} == {(e, t) for e in ENGINES for t in (True, False)}


def test_the_quick_plans_have_each_engine_both_loops_authentication_and_tls() -> None:
    seeds, size = _QUICK
    plans = [draw("3.7.3", seed, size) for seed in seeds]
    assert {plan.engine for plan in plans} == set(ENGINES)
    assert {plan.loop for plan in plans} == set(LOOPS)
    assert any(plan.has_auth for plan in plans)
    assert any(plan.has_tls for plan in plans)
    assert len(plans) * size.seconds < 90


def test_the_kit_replaces_no_member_that_wants_a_password() -> None:
    plans = [draw("3.7.3", seed, SIZE) for seed in range(100)]
    assert not any(plan.has_auth and "replace" in plan.faults for plan in plans)


def test_without_uvloop_all_plans_are_for_asyncio() -> None:
    assert {draw("3.7.3", seed, SIZE, has_uvloop=False).loop for seed in range(20)} == {"asyncio"}


def test_every_fault_of_a_plan_can_be_made() -> None:
    assert set(FAULTS) == set(MADE)


@pytest.mark.parametrize(("text", "seeds"), [("7", [7]), ("2:4", [2, 3, 4])])
def test_seeds(text: str, seeds: list[int]) -> None:
    assert list(numbers(text)) == seeds
