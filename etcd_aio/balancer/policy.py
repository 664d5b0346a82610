"""Policies: the words for `Client(policy=)`, and what each of them means. Pure.

Knows: the pickers and what each policy keeps. Never knows: connections, clocks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Generic, Literal, TypeAlias, get_args

from etcd_aio.balancer.connection_set import Keep, keep_all, keep_first, keep_random
from etcd_aio.balancer.picker import C, Choice, LeaderFirst, Picker, PowerOfTwo, RoundRobin, UserChoice

PolicyName: TypeAlias = Literal["round_robin", "power_of_two", "leader_first", "pinned", "random_pinned"]
POLICIES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a policy asks of the balancer.

    Attributes:
        keep: which endpoints are to be connected.
        leader: whether it has to know who leads.
    """

    keep: Keep = keep_all
    leader: bool = False


_NEEDS: Final[dict[str, Needs]] = {
    "round_robin": Needs(),
    "power_of_two": Needs(),
    "leader_first": Needs(leader=True),
    "pinned": Needs(keep_first),
    "random_pinned": Needs(keep_random),
}


class Policy(Generic[C]):
    """Makes a picker for each generation.

    Args:
        policy: a name, or a user's own function.
        random: returns a number in [0, 1). It decides where turns begin too, so that many clients do not begin alike.

    Attributes:
        needs: what it asks of the balancer.
    """

    def __init__(self, policy: PolicyName | Choice, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._turns: Iterator[int] = count(int(random() * 1024))
        self.needs = _NEEDS[policy] if isinstance(policy, str) else Needs()

    def picker(self, candidates: Sequence[C], others: Sequence[C] = ()) -> Picker[C]:
        """The picker of a generation.

        Args:
            candidates: whom to choose from; not empty.
            others: whom to choose from when all candidates are to be avoided: those that look bad.
        """
        if not isinstance(self._policy, str):
            return UserChoice(candidates, others, self._policy)
        if self._policy == "power_of_two":
            return PowerOfTwo(candidates, others, self._random)
        if self._policy == "leader_first":
            return LeaderFirst(candidates, others, self._turns)
        return RoundRobin(candidates, others, self._turns)
