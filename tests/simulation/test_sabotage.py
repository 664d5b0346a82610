"""Defects are caught: each by the part of the load that is for it, within so many seeds."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.simulation import sabotage, sabotage_streams
from tests.simulation.faults import FAULTS
from tests.simulation.plan import PARTS

ROOT = Path(__file__).parent.parent.parent
EVERY = ",".join(FAULTS)
WRONG = "watched wrongly"
STALE = "not linearizable"
OUTLIVED = "held after its lease"


@dataclass(frozen=True)
class Case:
    """A defect: what shows it, and the rule that it breaks.

    Attributes:
        part: of the load.
        faults: that show it soon.
        rule: the rule.
        is_quick: whether it is caught within a second or two, so that every run of the tests looks at it.
    """

    part: str
    faults: str
    rule: str
    is_quick: bool = False


CASES = {
    "queue-jumped": Case("lock", "", "entered before its turn", is_quick=True),
    "event-lost-at-resume": Case("watch", "cut-connections,cut-streams", WRONG, is_quick=True),
    "put-repeated": Case("watch", "lose-answers", "written wrongly", is_quick=True),
    "stale-cache": Case("reads", "cut-off-client", STALE, is_quick=True),
    "every-start-is-own": Case("schedule", "", "a tick begun twice", is_quick=True),
    "half-a-revision-kept": Case("watch", "cut-connections", WRONG, is_quick=True),
    "every-mark-believed-at-resume": Case("watch", "cut-connections", WRONG, is_quick=True),
    "part-taken-for-whole": Case("watch", EVERY, WRONG),
    "compaction-not-told": Case("watch", EVERY, WRONG),
    "options-forgotten-at-resume": Case("watch", EVERY, WRONG),
    "events-lost-at-a-pause": Case("watch", EVERY, WRONG),
    "probe-joined-under-way": Case("reads", "", STALE, is_quick=True),
    "age-from-the-answer": Case("reads", EVERY, STALE),
    "deletions-not-counted": Case("reads", EVERY, STALE),
    "cache-goes-on-too-late": Case("reads", EVERY, STALE),
    "deadline-from-the-reply": Case("leases", "outlast-leases", OUTLIVED, is_quick=True),
    "deadline-from-the-grant": Case("leases", "outlast-leases", OUTLIVED),
    "expiry-not-told": Case("leases", "outlast-leases", OUTLIVED),
    "renewed-too-late": Case("leases", "", "a lease was lost without a reason", is_quick=True),
    "lost-a-second-late": Case("lock", "outlast-leases", OUTLIVED, is_quick=True),
    "foreign-slot-not-applied": Case("counter", EVERY, "counted wrongly"),
    "one-permit-too-many": Case("semaphore", "", "entered before its turn", is_quick=True),
    "ended-calls-counted": Case("combined-counter", EVERY, "counted wrongly"),
    "counter-without-guard": Case("combined-counter", "", "counted wrongly"),
    "block-guessed": Case("ids", "lose-answers", "an id given twice"),
    "stale-transaction": Case("stm", "", "read another state"),
    "barrier-repeated": Case("barriers", "lose-answers", "held"),
    "all-enter": Case("barriers", "", "a meeting of another number"),
    "left-alone": Case("barriers", "", "a meeting of another number"),
    "member-for-ever": Case("group", "outlast-leases", "a member without a key"),
    "epoch-too-old": Case("group", "", "seen wrongly"),
    "start-without-guard": Case("schedule", "", "a tick begun twice"),
    "tick-forgotten": Case("schedule", "", "a tick did not end"),
    "item-repeated": Case("queue", "lose-answers", "an item put twice"),
    "take-forgotten": Case("queue", "", "an item lost without a word"),
    "own-items-forgotten": Case("priority-queue", "", "an item put twice"),
    "job-ended-without-claim": Case("work-queue", "outlast-leases", "a job done"),
    "late-claim-kept": Case("work-queue", "", "waits for ever"),
}


def simulated(*arguments: str, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-m", "tests.simulation.run", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=False, text=True)


def test_each_defect_of_the_streams_has_a_case() -> None:
    assert sabotage_streams.ALL.keys() <= CASES.keys() <= sabotage.ALL.keys()
    assert {case.part for case in CASES.values()} <= set(PARTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if case.is_quick else (pytest.mark.nightly,)) for name, case in CASES.items()],
)
def test_a_defect_is_caught(name: str) -> None:
    case = CASES[name]
    seeds = "1:40" if case.is_quick else "1:400"
    done = simulated("--seeds", seeds, "--parts", case.part, "--faults", case.faults, "--sabotage", name, "--jobs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert case.rule in done.stdout


@pytest.mark.slow
def test_every_sabotage_still_fits() -> None:
    names = ", ".join(map(repr, sabotage.ALL))
    code = f"from tests.simulation import sabotage; [sabotage.ALL[name]() for name in ({names},)]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
