from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from etcd_aio.balancer.picker import POLICIES, Candidate, Choice, Policy, PolicyName


@dataclass(eq=False)
class FakeCandidate:
    endpoint_name: str
    in_flight: int = 0
    latency: float = 0.0


def candidates(number: int) -> list[FakeCandidate]:
    return [FakeCandidate(f"m{index}:2379") for index in range(number)]


def first(offered: Sequence[Candidate]) -> Candidate:
    return offered[0]


def least_busy(offered: Sequence[Candidate]) -> Candidate:
    return min(offered, key=lambda one: one.in_flight)


EVERY_POLICY: list[PolicyName | Choice] = [*POLICIES, first, least_busy]


# What holds for every policy.


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_a_pick_is_one_of_the_candidates(policy: PolicyName | Choice, number: int) -> None:
    members = candidates(number)
    picker = Policy[FakeCandidate](policy).picker(members)
    for _ in range(20):
        assert picker.pick() in members


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_what_is_to_be_avoided_is_not_picked_while_there_is_another(policy: PolicyName | Choice) -> None:
    members = candidates(4)
    picker = Policy[FakeCandidate](policy).picker(members)
    for _ in range(20):
        assert picker.pick(avoid=members[:3]) is members[3]
        assert picker.pick(avoid={members[1]}) is not members[1]


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_if_all_are_to_be_avoided_one_is_picked_all_the_same(policy: PolicyName | Choice) -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate](policy).picker(members)
    assert picker.pick(avoid=members) in members


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_a_picker_is_a_snapshot(policy: PolicyName | Choice) -> None:
    members = candidates(2)
    picker = Policy[FakeCandidate](policy).picker(members)
    members.clear()
    assert picker.pick().endpoint_name in ("m0:2379", "m1:2379")


# Round robin.


def test_round_robin_is_exact() -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate]("round_robin").picker(members)
    assert [picker.pick().endpoint_name for _ in range(7)] == [f"m{turn % 3}:2379" for turn in range(7)]


def test_round_robin_goes_on_across_generations() -> None:
    # Each generation lives for one pick only: a picker that began anew would ask the first member every time.
    members = candidates(3)
    policy = Policy[FakeCandidate]("round_robin")
    asked = Counter(policy.picker(members).pick().endpoint_name for _ in range(9))
    assert set(asked.values()) == {3}


def test_round_robin_begins_where_it_is_told() -> None:
    members = candidates(3)
    assert Policy[FakeCandidate]("round_robin", first_turn=5).picker(members).pick() is members[2]


# A user's own function.


def test_a_users_function_is_offered_the_candidates_that_are_not_to_be_avoided() -> None:
    offers: list[list[str]] = []

    def choose(offered: Sequence[Candidate]) -> Candidate:
        offers.append([one.endpoint_name for one in offered])
        return offered[-1]

    members = candidates(3)
    picker = Policy[FakeCandidate](choose).picker(members)
    picker.pick()
    picker.pick(avoid=[members[2]])
    picker.pick(avoid=members)
    every = ["m0:2379", "m1:2379", "m2:2379"]
    assert offers == [every, every[:2], every]


def test_a_users_function_cannot_change_what_others_are_offered() -> None:
    kinds: set[type] = set()

    def choose(offered: Sequence[Candidate]) -> Candidate:
        kinds.add(type(offered))
        return offered[0]

    members = candidates(3)
    picker = Policy[FakeCandidate](choose).picker(members)
    picker.pick()
    picker.pick(avoid=[members[0]])
    assert kinds == {tuple}


@pytest.mark.parametrize("wrong", [None, "m0:2379", FakeCandidate("m0:2379")])
def test_a_users_function_that_returns_something_else_is_a_type_error(wrong: Candidate) -> None:
    picker = Policy[FakeCandidate](lambda offered: wrong).picker(candidates(3))
    with pytest.raises(TypeError, match="policy"):
        picker.pick()


def test_a_users_function_may_not_return_what_is_to_be_avoided() -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate](lambda offered: members[0]).picker(members)
    with pytest.raises(TypeError, match="policy"):
        picker.pick(avoid=[members[0]])


def test_an_error_of_a_users_function_is_the_callers() -> None:
    def choose(offered: Sequence[Candidate]) -> Candidate:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Policy[FakeCandidate](choose).picker(candidates(3)).pick()
