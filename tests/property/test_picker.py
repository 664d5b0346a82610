"""Pickers: any number of candidates, any sequence of generations and of what is to be avoided."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.picker import Policy


@dataclass(eq=False)
class FakeCandidate:
    endpoint_name: str
    in_flight: int = 0
    latency: float = 0.0
    is_leader: bool = False


def zero() -> float:
    return 0.0


@given(members=st.integers(1, 9), picks=st.integers(0, 60), first_turn=st.integers(0, 1024))
def test_round_robin_is_fair_to_within_one(members: int, picks: int, first_turn: int) -> None:
    candidates = [FakeCandidate(str(number)) for number in range(members)]
    picker = Policy[FakeCandidate]("round_robin", lambda: first_turn / 1024).picker(candidates)
    asked = Counter(picker.pick().endpoint_name for _ in range(picks))
    counts = [asked[candidate.endpoint_name] for candidate in candidates]
    assert max(counts) - min(counts) <= 1


@given(st.lists(st.tuples(st.sets(st.integers(0, 5), min_size=1), st.sets(st.integers(0, 5))), max_size=30))
def test_a_pick_is_ready_and_avoids_what_it_can(generations: list[tuple[set[int], set[int]]]) -> None:
    everyone = [FakeCandidate(str(number)) for number in range(6)]
    policy = Policy[FakeCandidate]("round_robin", zero)
    for ready, avoided in generations:
        chosen = everyone.index(
            policy.picker([everyone[number] for number in sorted(ready)]).pick([everyone[number] for number in avoided])
        )
        assert chosen in (ready - avoided or ready)
