"""Computes the medians and ratios of a run from its bursts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.process import Burst
from benchmarks.workload import Case


@dataclass(frozen=True, slots=True)
class Measured:
    """The bursts of one client in one case, one per round."""

    bursts: tuple[Burst, ...]

    @property
    def rates(self) -> list[float]:
        """Calls per second, round by round."""
        return [burst.calls / burst.seconds for burst in self.bursts]

    @property
    def rate(self) -> float:
        """Calls per second: the median of the rounds."""
        return median(self.rates)

    @property
    def spread(self) -> float:
        """The difference of the fastest and the slowest round, as a fraction of the median."""
        return (max(self.rates) - min(self.rates)) / self.rate

    @property
    def cpu_us(self) -> float:
        """Microseconds of the client's CPU for each call: the median of the rounds."""
        return median(self.cpus_us)

    @property
    def cpus_us(self) -> list[float]:
        """Microseconds of the client's CPU for each call, round by round."""
        return [burst.cpu / burst.calls * 1e6 for burst in self.bursts]

    def to(self, other: "Measured") -> "Ratio":
        """The ratios to another client: the median of the ratios of each round, so that drift cancels."""
        return Ratio(_median_ratio(self.rates, other.rates), _median_ratio(self.cpus_us, other.cpus_us))


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratios of one client to another in one case. `rate` above 1 is faster, `cpu` below 1 is cheaper."""

    rate: float
    cpu: float


def _median_ratio(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return median(one / other for one, other in zip(mine, theirs, strict=True))


@dataclass(slots=True)
class Results:
    """The results so far.

    Attributes:
        cases: the cases, in the order of the report.
        bursts: (client, case) to one burst per round.
        left_out: (client, case) to the reason why it has no result.
    """

    cases: Sequence[Case]
    bursts: dict[tuple[str, str], list[Burst]] = field(default_factory=dict)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, client: str, case: Case, burst: Burst) -> None:
        """Add the burst of one round."""
        self.bursts.setdefault((client, case.name), []).append(burst)

    def leave_out(self, client: str, cases: Sequence[Case], reason: str) -> None:
        """Leave a client out of these cases. Its earlier bursts are dropped, because rounds must pair."""
        for case in cases:
            self.left_out.setdefault((client, case.name), reason)
            self.bursts.pop((client, case.name), None)

    def is_left_out(self, client: str, case: Case) -> bool:
        """Whether the client was left out of this case."""
        return (client, case.name) in self.left_out

    def of(self, client: str, case: Case) -> Measured | None:
        """The results of a client in a case; None if it has none."""
        bursts = self.bursts.get((client, case.name))
        return Measured(tuple(bursts)) if bursts else None

    def ratio(self, client: str, case: Case, reference: str) -> Ratio | None:
        """The ratios of a client to the reference; None if either has no result."""
        mine, theirs = self.of(client, case), self.of(reference, case)
        return mine.to(theirs) if mine and theirs else None


@dataclass(frozen=True, slots=True)
class Setting:
    """The machine, the server and the date of a run.

    Attributes:
        server: etcd's version.
        is_own_server: whether it was started for the run, on this machine and with fsync off.
        is_apart: whether it had a core of its own, and each client the next one.
    """

    date: str
    cpu: str
    cores: int
    system: str
    server: str
    is_own_server: bool
    endpoints: int
    rounds: int
    seconds: float
    versions: Mapping[str, Mapping[str, str]]
    is_apart: bool = False
