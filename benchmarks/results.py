"""The numbers of a run: bursts in, medians and ratios out.

Knows: arithmetic, and who could not take part and why. Never knows: processes, tables, clocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.process import Burst
from benchmarks.workload import Case


@dataclass(frozen=True, slots=True)
class Measured:
    """One client in one case, one burst per round."""

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
        """How far apart the slowest and the fastest round were, as a fraction of the median."""
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
        """This client's numbers over the other's: the median of each round's own ratio, so that drift cancels."""
        return Ratio(_median_ratio(self.rates, other.rates), _median_ratio(self.cpus_us, other.cpus_us))


@dataclass(frozen=True, slots=True)
class Ratio:
    """One client over another, in one case: `rate` above 1 is faster, `cpu` below 1 is cheaper."""

    rate: float
    cpu: float


def _median_ratio(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return median(one / other for one, other in zip(mine, theirs, strict=True))


@dataclass(slots=True)
class Results:
    """A run as it grows.

    Attributes:
        cases: what is measured, in the order of the report.
        bursts: (client, case) to one burst per round.
        left_out: (client, case) to the reason why it has no number.
    """

    cases: Sequence[Case]
    bursts: dict[tuple[str, str], list[Burst]] = field(default_factory=dict)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, client: str, case: Case, burst: Burst) -> None:
        """Take one more round's burst."""
        self.bursts.setdefault((client, case.name), []).append(burst)

    def leave_out(self, client: str, cases: Sequence[Case], reason: str) -> None:
        """A client has no number in these cases; what it had of them is dropped, since rounds would not pair."""
        for case in cases:
            self.left_out.setdefault((client, case.name), reason)
            self.bursts.pop((client, case.name), None)

    def is_left_out(self, client: str, case: Case) -> bool:
        """Whether there is a reason not to try."""
        return (client, case.name) in self.left_out

    def of(self, client: str, case: Case) -> Measured | None:
        """The client's numbers in this case, None if it has none."""
        bursts = self.bursts.get((client, case.name))
        return Measured(tuple(bursts)) if bursts else None

    def ratio(self, client: str, case: Case, reference: str) -> Ratio | None:
        """The client's numbers over the reference's, None if either has none."""
        mine, theirs = self.of(client, case), self.of(reference, case)
        return mine.to(theirs) if mine and theirs else None


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and when a run took place: without it the numbers mean nothing.

    Attributes:
        server: etcd's version.
        is_own_server: it was started for the run, on this machine and with fsync off.
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
