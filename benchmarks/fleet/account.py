"""Evaluates the results of a fleet's processes, and whether a storm grew. Pure.

A wait has up to two phases: members are gone, and members are back. In each the first third is compared with the last:
a fleet whose demand falls while it waits leaves the members the time to serve it, and one whose demand grows does not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

KINDS: Final = ("Authenticates", "probes", "dials")
_NEEDED: Final = (1.2, 3.0, 3.0)
"""Of each kind, for each client and phase: about one login, one dial and one question for each member. So many are no
storm, whenever they are sent: while there is no leader, for instance, no login is of any use."""
_SHORTEST: Final = 3.0  # seconds; shorter waits are not judged
_NOISE: Final = 0.05  # per client and second: the tolerance for random differences
_TOLERANCE: Final = 1.1

Sample = Sequence[float]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one process; see `worker.py`."""

    served: Sequence[float]
    errors: Mapping[str, int]
    calls: int
    cpu: float
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True)
class Growth:
    """A storm that grew.

    Attributes:
        phase: "gone" or "back".
        kind: the kind of request.
        first: per client and second, in the first third of the phase.
        last: in the last third.
    """

    phase: str
    kind: str
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One scenario.

    Attributes:
        scenario: its name.
        clients: the number of clients.
        served: the number of clients that were served.
        median: seconds until half of them were served; infinity if they were not.
        all_served: seconds until the last one was; infinity if one was not.
        calls: the number of calls of all clients.
        errors: by class.
        per_client: the requests of each kind, per client.
        cpu: milliseconds of CPU per client.
        grown: the storms that grew.
    """

    scenario: str
    clients: int
    served: int
    median: float
    all_served: float
    calls: int
    errors: Mapping[str, int]
    per_client: Mapping[str, float]
    cpu: float
    grown: Sequence[Growth]

    @property
    def is_good(self) -> bool:
        """Whether all clients were served and no storm grew."""
        return self.served == self.clients and not self.grown


def summary(scenario: str, clients: int, answers: Sequence[Answer], back: float) -> Summary:
    """Sum up a scenario.

    Args:
        scenario: its name.
        clients: the number of clients in all processes.
        answers: the results of the processes.
        back: when the members that were gone were back; 0 if the clients did not wait for any.
    """
    served = sorted(one for answer in answers for one in answer.served)
    errors: Counter[str] = Counter()
    for answer in answers:
        errors.update(answer.errors)
    end = max(answer.samples[-1][0] for answer in answers)
    grown = [*growths("gone", answers, clients, 0.0, min(back, end)), *growths("back", answers, clients, back, end)]
    infinity = float("inf")
    return Summary(
        scenario=scenario,
        clients=clients,
        served=len(served),
        median=served[(clients - 1) // 2] if len(served) * 2 >= clients else infinity,
        all_served=served[-1] if len(served) == clients else infinity,
        calls=sum(answer.calls for answer in answers),
        errors=dict(errors.most_common()),
        per_client={kind: _count(answers, number, end) / clients for number, kind in enumerate(KINDS)},
        cpu=sum(answer.cpu for answer in answers) / clients * 1000,
        grown=grown,
    )


def growths(phase: str, answers: Sequence[Answer], clients: int, start: float, end: float) -> list[Growth]:
    """The storms that grew between two instants."""
    if end - start < _SHORTEST:
        return []
    third = (end - start) / 3
    found = []
    for number, kind in enumerate(KINDS):
        if _count(answers, number, end) - _count(answers, number, start) <= _NEEDED[number] * clients:
            continue
        first, last = (
            (_count(answers, number, begin + third) - _count(answers, number, begin)) / clients / third
            for begin in (start, end - third)
        )
        if last > first * _TOLERANCE + _NOISE:
            found.append(Growth(phase, kind, first, last))
    return found


def _count(answers: Sequence[Answer], number: int, at: float) -> float:
    """The number of requests of a kind that all processes sent before a time."""
    return sum(_at(answer.samples, number + 1, at) for answer in answers)


def _at(samples: Sequence[Sample], column: int, at: float) -> float:
    """The count at a time, interpolated between two samples."""
    before: Sample = (0.0,) * len(samples[0])
    for sample in samples:
        if sample[0] >= at:
            span = sample[0] - before[0]
            share = (at - before[0]) / span if span > 0 else 1.0
            return before[column] + share * (sample[column] - before[column])
        before = sample
    return samples[-1][column]
