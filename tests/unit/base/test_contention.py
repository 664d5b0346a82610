"""base/contention.py: writers that change the same state in tight loops share it fairly, in simulated rounds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from statistics import median

import pytest

from etcd_aio.base.contention import MOST, Contention

ROUND_TRIP = 0.001
SERVER = ROUND_TRIP / 20  # for one request


@dataclass
class Writer:
    contention: Contention = field(default_factory=Contention)
    left: int = 60
    known: int = -1
    conflicts: int = 0
    began: float = 0.0
    seconds: list[float] = field(default_factory=list)
    end: float = 0.0


class Simulation:
    """Writers make changes under the condition that the revision is the known one; after a wait they read first."""

    def __init__(self, count: int, random: Random) -> None:
        self.random = random
        self.writers = [Writer() for _ in range(count)]
        self.revision = self.requests = 0
        self.is_free_at = 0.0
        self.events: list[tuple[float, int, Callable[[float], None]]] = []

    def at(self, time: float, step: Callable[[float], None]) -> None:
        heappush(self.events, (time, self.requests * 1_000_000 + len(self.events), step))

    def run(self) -> None:
        for writer in self.writers:
            self.at(self.random.random() * ROUND_TRIP, lambda now, w=writer: self.read(w, now))  # type: ignore[misc]
        while self.events:
            time, _, step = heappop(self.events)
            step(time)

    def way(self) -> float:
        return ROUND_TRIP / 2 * (0.8 + 0.4 * self.random.random())

    def serve(self, now: float, then: Callable[[float], None]) -> None:
        self.requests += 1
        self.is_free_at = max(now, self.is_free_at) + SERVER
        self.at(self.is_free_at, then)

    def read(self, writer: Writer, now: float) -> None:
        def answer(now: float) -> None:
            writer.known = self.revision
            self.at(now + self.way(), lambda now: self.write(writer, now))

        self.at(now + self.way(), lambda now: self.serve(now, answer))

    def write(self, writer: Writer, now: float) -> None:
        sent = now

        def answer(now: float) -> None:
            is_won = writer.known == self.revision
            self.revision += is_won
            writer.known = self.revision
            self.at(now + self.way(), lambda now: self.ended(writer, now, now - sent, is_won))

        self.at(now + self.way(), lambda now: self.serve(now, answer))

    def ended(self, writer: Writer, now: float, seconds: float, is_won: bool) -> None:
        contention = writer.contention
        contention.measured(seconds)
        if is_won:
            contention.succeeded(writer.conflicts)
            writer.seconds.append(now - writer.began)
            writer.began, writer.conflicts, writer.left = now, 0, writer.left - 1
            writer.end = now
            if not writer.left:
                return
            wait = contention.before_change(self.random.random)
        else:
            writer.conflicts += 1
            wait = contention.after_conflict(writer.conflicts, self.random.random)
        step = self.read if wait else self.write
        self.at(now + wait, lambda now: step(writer, now))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [16, 32])
def test_writers_in_tight_loops_advance_together(count: int, seed: int) -> None:
    simulation = Simulation(count, Random(seed))
    simulation.run()
    ends = sorted(writer.end for writer in simulation.writers)
    assert ends[0] > 0.5 * ends[-1], "while one does all of its work, the others stand still"
    seconds = sorted(second for writer in simulation.writers for second in writer.seconds)
    assert len(seconds) == 60 * count
    assert seconds[-1] < 16 * median(seconds)
    assert ends[-1] < 3 * len(seconds) * ROUND_TRIP, "mostly there is a success in each round trip or two"
    assert simulation.requests < count * len(seconds), "waits keep most requests apart"


def test_one_writer_never_waits() -> None:
    simulation = Simulation(1, Random(1))
    simulation.run()
    assert simulation.requests == 61
    assert simulation.writers[0].contention.is_over


def test_the_first_conflict_costs_no_wait_and_later_ones_less_and_less() -> None:
    contention = Contention(MOST)
    contention.measured(0.01)
    waits = [contention.after_conflict(conflicts, lambda: 1.0) for conflicts in range(1, 12)]
    assert waits[0] == 0.0
    assert waits[1] == pytest.approx(MOST * 0.01)
    assert waits[1:9] == sorted(waits[1:9], reverse=True)
    assert waits[-1] == waits[-2] > 0.0


def test_contention_is_forgotten_by_changes_without_a_conflict() -> None:
    contention = Contention()
    contention.measured(0.01)
    assert contention.before_change(lambda: 1.0) == 0.0
    for conflicts in range(1, 20):
        contention.after_conflict(conflicts, lambda: 1.0)
    assert contention.before_change(lambda: 1.0) == pytest.approx(2 * MOST * 0.01)
    contention.succeeded(5)
    assert not contention.is_over
    changes = 0
    while not contention.is_over:
        contention.succeeded(0)
        changes += 1
    assert 5 < changes < 30


def test_a_round_trip_that_waited_for_an_election_counts_little() -> None:
    contention = Contention(MOST)
    contention.measured(30.0)
    assert contention.before_change(lambda: 1.0) < 2.0
