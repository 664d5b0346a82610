"""What a seed draws: a world, its load, and the faults. Pure: equal seeds draw equal plans."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.simulation.watch_delivery import RELEASES

CONTENDED: Final = ("lock", "rwlock", "semaphore", "election", "counter")
"""What clients may contend for, or count exactly once."""

PARTS: Final = (
    *CONTENDED,
    *("watch", "reads", "leases"),
    *("combined-counter", "ids", "stm", "barriers", "group", "schedule", "queue", "priority-queue", "work-queue"),
)
"""What clients may do: contend, write and watch, read with and without a cache, keep leases, or use a recipe."""

_VERSIONS: Final = ("3.4", "3.5", "3.6", "3.7")
_FIRST: Final = 1.0  # seconds until the first fault
_BUSY: Final = 0.2  # seconds of rest; as much happens in a short run as in a long one with more rest
_EVERY: Final = 2.5  # seconds from one fault to the next, on average
_QUIET: Final = 0.1  # the part of the runs that have no faults
_DRIFT: Final = 0.05  # half of the margin of a lock


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault.

    Attributes:
        at: seconds from the beginning.
        name: which one.
        seed: of everything that it draws.
    """

    at: float
    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.name}  ({self.seed})"


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        seed: of everything that is not drawn here.
        version: of etcd.
        members: how many.
        latency: seconds of a message on its way, on average.
        clients: how many for each part.
        parts: what they do.
        seconds: for how long there are faults.
        ttl: seconds of the leases.
        rest: seconds from one thing that a contender does to the next, at most.
        late: the part of the mutations of contenders that are applied late, or without an answer.
        long: the part of their claims that last longer than a lease without renewals.
        has_early_marks: reports of progress overtake events, as in old releases of the version.
        lag: seconds by which the events of watches are late.
        divides: messages of watches come in parts.
        spread: whether some ways are much shorter or longer than the average.
        drift: the part of its TTL by which a lease ends early, as if the clocks of the members ran faster.
        faults: the faults, by time.
    """

    seed: int
    version: str
    members: int
    latency: float
    clients: int
    parts: tuple[str, ...]
    seconds: float
    ttl: int
    rest: float
    late: float
    long: float
    has_early_marks: bool
    lag: float
    divides: bool
    spread: bool
    drift: float
    faults: tuple[PlannedFault, ...]

    def __str__(self) -> str:
        version = RELEASES[self.version] if self.has_early_marks else self.version
        drift = f" less {self.drift:.0%}" if self.drift else ""
        way = f"lag {self.lag} s{', in parts' if self.divides else ''}{', spread' if self.spread else ''}"
        head = (
            f"etcd {version}, {self.members} members, latency {self.latency} s, {way}, {self.clients} clients,"
            f" TTL {self.ttl} s{drift}, rest {self.rest} s, late {self.late}, long {self.long},"
            f" {self.seconds:.1f} s of {', '.join(self.parts)}"
        )
        return "\n".join([head, *map(str, self.faults)])

    def with_faults(self, faults: Sequence[PlannedFault]) -> "Plan":
        """The same run with other faults."""
        return replace(self, faults=tuple(faults))


def draw(seed: int, faults: Collection[str], parts: Collection[str] = PARTS) -> Plan:
    """Draw a run.

    Args:
        seed: of all that is drawn.
        faults: the names of the faults.
        parts: what clients may do.
    """
    chance = Random(f"plan {seed}")
    rest = chance.choice((_BUSY, 2.0, 8.0))
    seconds = chance.uniform(8.0, 12.0) if rest == _BUSY else chance.uniform(20.0, 50.0)
    kinds = chance.sample(sorted(faults), chance.randint(1, len(faults))) if faults else []
    planned, at = [], _FIRST
    while kinds and at < seconds:
        planned.append(PlannedFault(at, chance.choice(kinds), chance.getrandbits(32)))
        at += chance.expovariate(1 / _EVERY)
    members, version = chance.choice((1, 3, 3)), chance.choice(_VERSIONS)
    way = Random(f"way {seed}")
    return Plan(
        seed=seed,
        version=version,
        members=members,
        latency=chance.choice((0.0, 0.001, 0.01, 0.05)),
        clients=chance.choice((2, 2, 3)),
        parts=tuple(sorted(chance.sample(sorted(parts), chance.randint(1, min(2, len(parts)))))),
        seconds=seconds,
        ttl=chance.choice((2, 3, 5)),
        rest=rest,
        late=chance.choice((0.0, 0.05, 0.3)),
        long=chance.choice((0.0, 0.05, 0.3)),
        has_early_marks=version in RELEASES and chance.random() < 0.5,
        lag=way.choice((0.0, 0.0, 0.05, 0.3)),
        divides=way.random() < 0.5,
        spread=way.random() < 0.5,
        drift=way.choice((0.0, 0.0, _DRIFT)),
        faults=() if way.random() < _QUIET else tuple(planned),
    )
