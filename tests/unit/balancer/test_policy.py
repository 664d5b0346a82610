"""Policies: each word has its picker and says what it keeps."""

from dataclasses import dataclass

import pytest

from etcd_aio.balancer.connection_set import keep_all, keep_first, keep_random
from etcd_aio.balancer.picker import LeaderFirst, PowerOfTwo, RoundRobin, UserChoice
from etcd_aio.balancer.policy import POLICIES, Policy, PolicyName


@dataclass(eq=False)
class FakeCandidate:
    endpoint_name: str = "m1:2379"
    in_flight: int = 0
    latency: float = 0.0
    is_leader: bool = False


def zero() -> float:
    return 0.0


TABLE: list[tuple[PolicyName, type, object, bool]] = [
    ("round_robin", RoundRobin, keep_all, False),
    ("power_of_two", PowerOfTwo, keep_all, False),
    ("leader_first", LeaderFirst, keep_all, True),
    ("pinned", RoundRobin, keep_first, False),
    ("random_pinned", RoundRobin, keep_random, False),
]


@pytest.mark.parametrize(("name", "picker", "keep", "leader"), TABLE)
def test_each_word(name: PolicyName, picker: type, keep: object, leader: bool) -> None:
    policy = Policy[FakeCandidate](name, zero)
    assert type(policy.picker([FakeCandidate()])) is picker
    assert policy.needs.keep is keep
    assert policy.needs.leader is leader


def test_the_table_is_whole() -> None:
    assert tuple(row[0] for row in TABLE) == POLICIES


def test_a_users_function_keeps_every_endpoint() -> None:
    policy = Policy[FakeCandidate](lambda offered: offered[0], zero)
    assert isinstance(policy.picker([FakeCandidate()]), UserChoice)
    assert policy.needs.keep is keep_all
