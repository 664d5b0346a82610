"""balancer/picker.py: which sub-connection each policy picks, and what a user's function may return."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from etcd_aio.balancer.connection_set import keep_all, keep_first, keep_random
from etcd_aio.balancer.picker import (
    POLICIES,
    Candidate,
    Choice,
    CustomPicker,
    LeaderFirst,
    Policy,
    PolicyName,
    PowerOfTwo,
    RoundRobin,
)


@dataclass(eq=False)
class FakeCandidate:
    endpoint_name: str
    in_flight: int = 0
    latency: float = 0.0
    is_leader: bool = False


def zero() -> float:
    return 0.0


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
    picker = Policy[FakeCandidate](policy, zero).picker(members)
    for _ in range(20):
        assert picker.pick() in members


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_what_is_to_be_avoided_is_not_picked_while_there_is_another(policy: PolicyName | Choice) -> None:
    members = candidates(4)
    picker = Policy[FakeCandidate](policy, zero).picker(members)
    for _ in range(20):
        assert picker.pick(avoid=members[:3]) is members[3]
        assert picker.pick(avoid={members[1]}) is not members[1]


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_if_all_are_to_be_avoided_one_is_picked_all_the_same(policy: PolicyName | Choice) -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate](policy, zero).picker(members)
    assert picker.pick(avoid=members) in members


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_a_picker_is_a_snapshot(policy: PolicyName | Choice) -> None:
    members = candidates(2)
    picker = Policy[FakeCandidate](policy, zero).picker(members)
    members.clear()
    assert picker.pick().endpoint_name in ("m0:2379", "m1:2379")


# Round robin.


def test_round_robin_is_exact() -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate]("round_robin", zero).picker(members)
    assert [picker.pick().endpoint_name for _ in range(7)] == [f"m{turn % 3}:2379" for turn in range(7)]


def test_round_robin_goes_on_across_generations() -> None:
    # Each generation lives for one pick only: a picker that started over would ask the first member every time.
    members = candidates(3)
    policy = Policy[FakeCandidate]("round_robin", zero)
    asked = Counter(policy.picker(members).pick().endpoint_name for _ in range(9))
    assert set(asked.values()) == {3}


def test_round_robin_begins_where_it_is_told() -> None:
    members = candidates(3)
    assert Policy[FakeCandidate]("round_robin", lambda: 5 / 1024).picker(members).pick() is members[2]


# A user's own function.


def test_a_users_function_is_offered_the_candidates_that_are_not_to_be_avoided() -> None:
    offers: list[list[str]] = []

    def choose(offered: Sequence[Candidate]) -> Candidate:
        offers.append([one.endpoint_name for one in offered])
        return offered[-1]

    members = candidates(3)
    picker = Policy[FakeCandidate](choose, zero).picker(members)
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
    picker = Policy[FakeCandidate](choose, zero).picker(members)
    picker.pick()
    picker.pick(avoid=[members[0]])
    assert kinds == {tuple}


@pytest.mark.parametrize("wrong", [None, "m0:2379", FakeCandidate("m0:2379")])
def test_a_users_function_that_returns_something_else_is_a_type_error(wrong: Candidate) -> None:
    picker = Policy[FakeCandidate](lambda offered: wrong, zero).picker(candidates(3))
    with pytest.raises(TypeError, match="policy"):
        picker.pick()


def test_a_users_function_may_not_return_what_is_to_be_avoided() -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate](lambda offered: members[0], zero).picker(members)
    with pytest.raises(TypeError, match="policy"):
        picker.pick(avoid=[members[0]])


def test_an_error_of_a_users_function_is_the_callers() -> None:
    def choose(offered: Sequence[Candidate]) -> Candidate:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Policy[FakeCandidate](choose, zero).picker(candidates(3)).pick()


# What looks bad.


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_others_are_picked_only_when_all_candidates_are_to_be_avoided(policy: PolicyName | Choice) -> None:
    members = candidates(3)
    picker = Policy[FakeCandidate](policy, zero).picker(members[:2], members)
    for _ in range(12):
        assert picker.pick() is not members[2]
        assert picker.pick(avoid=members[:2]) is members[2]
        assert picker.pick(avoid=members) in members


# The power of two.


def test_the_less_busy_and_faster_of_two_is_picked_almost_always() -> None:
    chances = random.Random(1)
    fast, busy, slow = members = candidates(3)
    fast.latency, busy.latency, slow.latency = 0.002, 0.002, 0.2
    busy.in_flight = 5
    picker = Policy[FakeCandidate]("power_of_two", chances.random).picker(members)
    asked = Counter(picker.pick().endpoint_name for _ in range(3000))
    assert asked[fast.endpoint_name] / 3000 == pytest.approx(2 / 3, abs=0.04)
    assert asked[busy.endpoint_name] / 3000 == pytest.approx(1 / 3, abs=0.04)
    assert 0 < asked[slow.endpoint_name] / 3000 < 0.03, "asked now and then, or it would stay slow for ever"


@pytest.mark.parametrize("better", [0, 1])
def test_of_two_members_the_better_one_is_picked_whatever_its_place(better: int) -> None:
    members = candidates(2)
    members[better].latency, members[1 - better].latency = 0.002, 0.2
    picker = Policy[FakeCandidate]("power_of_two", random.Random(1).random).picker(members)
    asked = Counter(picker.pick().endpoint_name for _ in range(3000))
    assert 0 < asked[members[1 - better].endpoint_name] / 3000 < 0.03


def test_a_member_that_has_not_answered_yet_is_not_given_everything() -> None:
    chances = random.Random(2)
    old, new = members = candidates(2)
    old.latency = 0.002
    picker = Policy[FakeCandidate]("power_of_two", chances.random).picker(members)
    for _ in range(100):
        picker.pick().in_flight += 1
    assert old.in_flight > 20
    assert new.in_flight > 20


# The leader first.


def test_the_leader_is_picked_and_without_it_every_one_in_turn() -> None:
    members = candidates(3)
    policy = Policy[FakeCandidate]("leader_first", zero)
    assert [policy.picker(members).pick() for _ in range(3)] == members
    members[1].is_leader = True
    picker = policy.picker(members)
    assert {picker.pick() for _ in range(9)} == {members[1]}
    assert {picker.pick(avoid=[members[1]]) for _ in range(9)} == {members[0], members[2]}


# What the names mean.

TABLE: list[tuple[PolicyName, type, object, bool]] = [
    ("round_robin", RoundRobin, keep_all, False),
    ("power_of_two", PowerOfTwo, keep_all, False),
    ("leader_first", LeaderFirst, keep_all, True),
    ("pinned", RoundRobin, keep_first, False),
    ("random_pinned", RoundRobin, keep_random, False),
]


@pytest.mark.parametrize(("name", "picker", "keep", "leader"), TABLE)
def test_a_policy_has_its_picker_and_its_needs(name: PolicyName, picker: type, keep: object, leader: bool) -> None:
    policy = Policy[FakeCandidate](name, zero)
    assert type(policy.picker([FakeCandidate("m1:2379")])) is picker
    assert policy.needs.keep is keep
    assert policy.needs.leader is leader


def test_every_policy_name_stands_in_the_table() -> None:
    assert tuple(row[0] for row in TABLE) == POLICIES


def test_a_custom_policy_keeps_every_endpoint_connected() -> None:
    policy = Policy[FakeCandidate](lambda offered: offered[0], zero)
    assert isinstance(policy.picker([FakeCandidate("m1:2379")]), CustomPicker)
    assert policy.needs.keep is keep_all
