"""Pickers: who takes the next attempt. Pure.

Knows: a snapshot of READY candidates. Never knows: connections, clocks, waiting. The balancer makes a new picker
whenever the candidates change; a picker itself never changes and never waits.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

_EXPLORE: Final = 1 / 64  # of the picks: a member that was slow is asked again now and then, or it would stay slow

_UNKNOWN_LATENCY: Final = 0.001  # seconds; a new member gets its share, not everything


class Candidate(Protocol):
    """What a policy may know of a READY sub-connection."""

    @property
    def endpoint_name(self) -> str:
        """The endpoint it is connected to."""
        ...

    @property
    def in_flight(self) -> int:
        """How many attempts are under way on it."""
        ...

    @property
    def latency(self) -> float:
        """A moving average of its recent latencies, in seconds; 0.0 before the first answer."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether its member leads the cluster; only looked for by the policy `leader_first`."""
        ...


C = TypeVar("C", bound=Candidate)

Choice: TypeAlias = Callable[[Sequence[Candidate]], Candidate]
"""A user's own policy: given the READY candidates (never empty), return one of them. It must not wait."""


class Picker(Protocol[C]):
    """One generation's choice."""

    def pick(self, avoid: Collection[C] = ()) -> C:
        """Choose a candidate, one that is not in `avoid` if there is any other, even one that looks bad."""
        ...


class RoundRobin(Generic[C]):
    """Every candidate in turn. The turns go on across generations, so that a change favours nobody.

    Args:
        candidates: whom to choose from; not empty.
        others: whom to choose from when all candidates are to be avoided: those that look bad.
        turns: numbers, one after the other.
    """

    __slots__ = ("_candidates", "_others", "_turns")

    def __init__(self, candidates: Sequence[C], others: Sequence[C], turns: Iterator[int]) -> None:
        self._candidates = tuple(candidates)
        self._others = tuple(others)
        self._turns = turns

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
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


class PowerOfTwo(Generic[C]):
    """The better of two that are drawn: the one with less work under way, weighted by how long its answers take.

    Drawing two keeps many clients from running after the same best member, and costs the same with any number.

    Args:
        candidates: as `RoundRobin`.
        others: as `RoundRobin`.
        random: returns a number in [0, 1).
    """

    __slots__ = ("_candidates", "_others", "_random")

    def __init__(self, candidates: Sequence[C], others: Sequence[C], random: Callable[[], float]) -> None:
        self._candidates = tuple(candidates)
        self._others = tuple(others)
        self._random = random

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
        offered = self._candidates
        if avoid:
            offered = _without(offered, avoid) or _without(self._others, avoid) or offered
        if len(offered) == 1:
            return offered[0]
        first = int(self._random() * len(offered))
        second = int(self._random() * (len(offered) - 1))
        one, other = offered[first], offered[second + (second >= first)]
        is_better = _cost(one) <= _cost(other)
        return one if is_better is (self._random() >= _EXPLORE) else other


class LeaderFirst(Generic[C]):
    """The leader, which answers what needs the cluster without asking another member; else every one in turn.

    Args:
        candidates: as `RoundRobin`.
        others: as `RoundRobin`.
        turns: as `RoundRobin`.
    """

    __slots__ = ("_leader", "_rest")

    def __init__(self, candidates: Sequence[C], others: Sequence[C], turns: Iterator[int]) -> None:
        self._leader = next((candidate for candidate in candidates if candidate.is_leader), None)
        self._rest = RoundRobin(candidates, others, turns)

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
        leader = self._leader
        return self._rest.pick(avoid) if leader is None or leader in avoid else leader


class UserChoice(Generic[C]):
    """A user's own function.

    Args:
        candidates: as `RoundRobin`.
        others: as `RoundRobin`.
        choose: the function.
    """

    __slots__ = ("_candidates", "_choose", "_others")

    def __init__(self, candidates: Sequence[C], others: Sequence[C], choose: Choice) -> None:
        self._candidates = tuple(candidates)
        self._others = tuple(others)
        self._choose = choose

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
        offered = _without(self._candidates, avoid) or _without(self._others, avoid) or self._candidates
        chosen = self._choose(offered)
        for candidate in offered:
            if candidate is chosen:
                return candidate
        raise TypeError("a policy must return one of the candidates that it was given")


def _without(candidates: tuple[C, ...], avoid: Collection[C]) -> tuple[C, ...]:
    return tuple(candidate for candidate in candidates if candidate not in avoid)


def _cost(candidate: Candidate) -> float:
    return (candidate.in_flight + 1) * (candidate.latency or _UNKNOWN_LATENCY)
