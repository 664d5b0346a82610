"""Picking: which of its endpoints a client uses for the next request. Pure: the clock and randomness are arguments."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from etcd_aio.arguments import one_of
from etcd_aio.errors import InvalidRequestError
from etcd_aio.services import Choice, ServiceEndpoint

PickPolicy: TypeAlias = Literal["round_robin", "random", "power_of_two"]
"""How an endpoint is picked: all in turn; any; or of any two the one with fewer requests under way."""

POLICIES: Final = get_args(PickPolicy)


class Candidate(Protocol):
    """An endpoint to choose, and how busy it is."""

    @property
    def endpoint(self) -> ServiceEndpoint:
        """The endpoint."""
        ...

    @property
    def running(self) -> int:
        """How many requests are under way."""
        ...


class Ejectable(Candidate, Protocol):
    """A candidate that is left out for a while after a failure."""

    @property
    def ejected_until(self) -> float:
        """When it is a candidate again; 0 if it is one."""
        ...


C = TypeVar("C", bound=Candidate)
E = TypeVar("E", bound=Ejectable)


class Picker(Generic[C]):
    """Picks by a policy.

    Args:
        policy: the policy, or a function that gets the endpoints and returns one of them.
        randrange: returns a random number from 0 to below its argument.

    Raises:
        InvalidRequestError: there is no such policy.
    """

    __slots__ = ("_policy", "_randrange", "_turn")

    def __init__(self, policy: PickPolicy | Choice, randrange: Callable[[int], int]) -> None:
        self._policy = one_of(POLICIES, policy, "policy", or_function=True)
        self._randrange = randrange
        self._turn = -1

    def pick(self, candidates: Sequence[C]) -> C:
        """Pick one of the candidates, of which there is at least one.

        Raises:
            InvalidRequestError: the function returned none of their endpoints.
        """
        count = len(candidates)
        if callable(self._policy):
            chosen = self._policy([candidate.endpoint for candidate in candidates])
            for candidate in candidates:
                if candidate.endpoint == chosen:
                    return candidate
            kind = type(chosen).__name__
            raise InvalidRequestError(f"the policy must return one of the endpoints that it gets, not {kind}")
        if self._policy == "round_robin":
            self._turn += 1
            return candidates[self._turn % count]
        first = self._randrange(count)
        if self._policy == "random" or count == 1:
            return candidates[first]
        second = (first + 1 + self._randrange(count - 1)) % count
        return min(candidates[first], candidates[second], key=lambda candidate: candidate.running)


def eligible(candidates: Sequence[E], now: float, tried: Collection[E]) -> Sequence[E]:
    """The candidates that a request may go to: not tried before, and not ejected unless no other is left."""
    left = [candidate for candidate in candidates if candidate not in tried] if tried else candidates
    healthy = [candidate for candidate in left if candidate.ejected_until <= now]
    return healthy or left
