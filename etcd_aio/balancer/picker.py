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
        """Choose a candidate, one that is not in `avoid` if there is any other."""
        ...


class RoundRobin(Generic[C]):
    """Every candidate in turn. The turns go on across generations, so that a change favours nobody."""

    __slots__ = ("_candidates", "_turns")

    def __init__(self, candidates: Sequence[C], turns: Iterator[int]) -> None:
        self._candidates = tuple(candidates)
        self._turns = turns

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
        candidates = self._candidates
        chosen = candidates[next(self._turns) % len(candidates)]
        if avoid:
            for _ in candidates:
                if chosen not in avoid:
                    break
                chosen = candidates[next(self._turns) % len(candidates)]
        return chosen


class UserChoice(Generic[C]):
    """A user's own function."""

    __slots__ = ("_candidates", "_choose")

    def __init__(self, candidates: Sequence[C], choose: Choice) -> None:
        self._candidates = tuple(candidates)
        self._choose = choose

    def pick(self, avoid: Collection[C] = ()) -> C:
        """See `Picker.pick`."""
        offered = tuple(candidate for candidate in self._candidates if candidate not in avoid) or self._candidates
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

    def picker(self, candidates: Sequence[C]) -> Picker[C]:
        """The picker of a generation; `candidates` must not be empty."""
        if self._choose is not None:
            return UserChoice(candidates, self._choose)
        return RoundRobin(candidates, self._turns)
