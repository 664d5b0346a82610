"""Policies and their pickers: which sub-connection takes the next attempt. Pure.

A picker is an immutable snapshot of the READY candidates. The balancer makes a new one whenever the candidates change;
a picker never waits.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from etcd_aio.balancer.connection_set import Keep, keep_all, keep_first, keep_random
from etcd_aio.dataclass import dataclass

_EXPLORE: Final = 1 / 64  # of the picks take the worse candidate: otherwise one slow answer would count for ever

_UNKNOWN_LATENCY: Final = 0.001  # seconds; a new member gets its share of the attempts, not all of them


class Candidate(Protocol):
    """A READY sub-connection, as a policy sees it."""

    @property
    def endpoint_name(self) -> str:
        """Its endpoint."""
        ...

    @property
    def in_flight(self) -> int:
        """The number of attempts under way."""
        ...

    @property
    def latency(self) -> float:
        """The moving average of recent latencies, in seconds; 0.0 before the first answer."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether its member leads the cluster; only known with the policy `leader_first`."""
        ...


C = TypeVar("C", bound=Candidate)

Choice: TypeAlias = Callable[[Sequence[Candidate]], Candidate]
"""A custom policy: takes the READY candidates (never empty) and returns one of them. It must not wait."""


class Picker(Protocol[C]):
    """Chooses among the candidates of one generation."""

    def pick(self, avoid: Collection[C] = ()) -> C:
        """Choose a candidate that is not in `avoid`, even an unhealthy one; if there is none, any candidate."""
        ...


class _Snapshot(Generic[C]):
    """The candidates of one generation.

    Args:
        candidates: the healthy candidates, or all if none is healthy; not empty.
        others: the candidates to fall back to when all of `candidates` are to be avoided.
    """

    def __init__(self, candidates: Sequence[C], others: Sequence[C]) -> None:
        self._candidates = tuple(candidates)
        self._others = tuple(others)

    def _offered(self, avoid: Collection[C]) -> tuple[C, ...]:
        """The candidates that are not in `avoid`; if there is none, the others that are not, or else all candidates."""
        return _without(self._candidates, avoid) or _without(self._others, avoid) or self._candidates


class RoundRobin(_Snapshot[C]):
    """Takes every candidate in turn. The turns go on across generations, so a change favours no candidate."""

    def __init__(self, candidates: Sequence[C], others: Sequence[C], turns: Iterator[int]) -> None:
        super().__init__(candidates, others)
        self._turns = turns

    def pick(self, avoid: Collection[C] = ()) -> C:
        candidates = self._candidates
        chosen = candidates[next(self._turns) % len(candidates)]
        if avoid:
            for _ in candidates:
                if chosen not in avoid:
                    return chosen
                chosen = candidates[next(self._turns) % len(candidates)]
            for other in self._others:
                if other not in avoid:
                    return other
        return chosen


class PowerOfTwo(_Snapshot[C]):
    """Draws two candidates and takes the better one: fewer attempts under way, weighted by latency.

    Drawing two keeps many clients from all choosing the same best member, and costs the same for any number of members.
    """

    def __init__(self, candidates: Sequence[C], others: Sequence[C], random: Callable[[], float]) -> None:
        super().__init__(candidates, others)
        self._random = random

    def pick(self, avoid: Collection[C] = ()) -> C:
        offered = self._offered(avoid) if avoid else self._candidates
        if len(offered) == 1:
            return offered[0]
        first_index = int(self._random() * len(offered))
        second_index = int(self._random() * (len(offered) - 1))
        first, second = offered[first_index], offered[second_index + (second_index >= first_index)]
        is_first_better = _cost(first) <= _cost(second)
        return first if is_first_better is (self._random() >= _EXPLORE) else second


class LeaderFirst(RoundRobin[C]):
    """Takes the leader, which serves linearizable calls without asking another member; without one, all in turn."""

    def __init__(self, candidates: Sequence[C], others: Sequence[C], turns: Iterator[int]) -> None:
        super().__init__(candidates, others, turns)
        self._leader = next((candidate for candidate in candidates if candidate.is_leader), None)

    def pick(self, avoid: Collection[C] = ()) -> C:
        leader = self._leader
        return super().pick(avoid) if leader is None or leader in avoid else leader


class CustomPicker(_Snapshot[C]):
    """Asks a custom policy."""

    def __init__(self, candidates: Sequence[C], others: Sequence[C], choose: Choice) -> None:
        super().__init__(candidates, others)
        self._choose = choose

    def pick(self, avoid: Collection[C] = ()) -> C:
        offered = self._offered(avoid)
        chosen = self._choose(offered)
        for candidate in offered:
            if candidate is chosen:
                return candidate
        raise TypeError("a policy must return one of the candidates that it was given")


def _without(candidates: tuple[C, ...], avoid: Collection[C]) -> tuple[C, ...]:
    return tuple(candidate for candidate in candidates if candidate not in avoid)


def _cost(candidate: Candidate) -> float:
    return (candidate.in_flight + 1) * (candidate.latency or _UNKNOWN_LATENCY)


# Policies.

PolicyName: TypeAlias = Literal["round_robin", "power_of_two", "leader_first", "pinned", "random_pinned"]
POLICIES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)


@dataclass(frozen=True, slots=True)
class PolicyNeeds:
    """The needs of a policy.

    Attributes:
        keep: chooses the endpoints that stay connected.
        leader: whether it needs to know which member leads.
    """

    keep: Keep = keep_all
    leader: bool = False


_NEEDS: Final[dict[str, PolicyNeeds]] = {
    "round_robin": PolicyNeeds(),
    "power_of_two": PolicyNeeds(),
    "leader_first": PolicyNeeds(leader=True),
    "pinned": PolicyNeeds(keep_first),
    "random_pinned": PolicyNeeds(keep_random),
}


class Policy(Generic[C]):
    """Makes a picker for each generation.

    Args:
        policy: a name, or a custom policy.
        random: returns a number in [0, 1). Turns start at random too, so that many clients do not start alike.

    Attributes:
        needs: what it needs from the balancer.
    """

    def __init__(self, policy: PolicyName | Choice, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._turns: Iterator[int] = count(int(random() * 1024))
        self.needs = _NEEDS[policy] if isinstance(policy, str) else PolicyNeeds()

    def picker(self, candidates: Sequence[C], others: Sequence[C] = ()) -> Picker[C]:
        """The picker of one generation; the arguments are those of every picker."""
        if not isinstance(self._policy, str):
            return CustomPicker(candidates, others, self._policy)
        if self._policy == "power_of_two":
            return PowerOfTwo(candidates, others, self._random)
        if self._policy == "leader_first":
            return LeaderFirst(candidates, others, self._turns)
        return RoundRobin(candidates, others, self._turns)
