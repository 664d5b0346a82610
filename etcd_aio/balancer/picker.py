"""Pickers: who takes the next attempt. Pure.

Knows: a snapshot of READY candidates. Never knows: connections, clocks, waiting. The balancer makes a new picker
whenever the set of READY sub-connections changes; a picker itself never changes and never waits.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar


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


C = TypeVar("C", bound=Candidate)

Choice: TypeAlias = Callable[[Sequence[Candidate]], Candidate]
"""A user's own policy: given the READY candidates (never empty), return one of them. It must not wait."""

PolicyName: TypeAlias = Literal["round_robin"]
POLICIES: Final[tuple[PolicyName, ...]] = ("round_robin",)


class Picker(Protocol[C]):
    """One generation's choice."""

    def pick(self, avoid: Collection[C] = ()) -> C:
        """Choose a candidate, one that is not in `avoid` if there is any other, even one that looks bad."""
        ...


class RoundRobin(Generic[C]):
    """Every candidate in turn. The turns go on across generations, so that a change favours nobody."""

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


class UserChoice(Generic[C]):
    """A user's own function."""

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


class Policy(Generic[C]):
    """Makes a picker for each generation.

    Args:
        policy: a name, or a user's own function.
        first_turn: where round robin begins; chosen by chance, so that many clients do not all begin with one member.
    """

    def __init__(self, policy: PolicyName | Choice, first_turn: int = 0) -> None:
        self._choose = None if isinstance(policy, str) else policy
        self._turns = count(first_turn)

    def picker(self, candidates: Sequence[C], others: Sequence[C] = ()) -> Picker[C]:
        """The picker of a generation.

        Args:
            candidates: whom to choose from; not empty.
            others: whom to choose from when all candidates are to be avoided: those that look bad.
        """
        if self._choose is not None:
            return UserChoice(candidates, others, self._choose)
        return RoundRobin(candidates, others, self._turns)


def _without(candidates: tuple[C, ...], avoid: Collection[C]) -> tuple[C, ...]:
    return tuple(candidate for candidate in candidates if candidate not in avoid)
