"""Simulations in short: no rule is broken, equal seeds give equal runs, and defects are caught, replayed and shrunk."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation import run, sabotage
from tests.simulation.faults import FAULTS
from tests.simulation.plan import PARTS, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulate import simulate

_SEEDS = 2 * len(PARTS)

# A defect of each kind: the part of the load and the faults that show it soon, and the rule that it breaks.
_CAUGHT = {
    "queue-jumped": ("lock", "", "entered before its turn"),
    "event-lost-at-resume": ("watch", "cut-connections,cut-streams", "watched wrongly"),
    "put-repeated": ("watch", "lose-answers", "written wrongly"),
    "stale-cache": ("reads", "cut-off-client", "not linearizable"),
    "every-start-is-own": ("schedule", "", "a tick begun twice"),
}
_CAUGHT_BY_NIGHT = {
    "ended-calls-counted": ("combined-counter", ",".join(FAULTS), "counted wrongly"),
    "counter-without-guard": ("combined-counter", "", "counted wrongly"),
    "block-guessed": ("ids", "lose-answers", "an id given twice"),
    "stale-transaction": ("stm", "", "read another state"),
    "barrier-repeated": ("barriers", "lose-answers", "held"),
    "all-enter": ("barriers", "", "a meeting of another number"),
    "left-alone": ("barriers", "", "a meeting of another number"),
    "member-for-ever": ("group", "outlast-leases", "a member without a key"),
    "epoch-too-old": ("group", "", "seen wrongly"),
    "start-without-guard": ("schedule", "", "a tick begun twice"),
    "tick-forgotten": ("schedule", "", "a tick did not end"),
    "item-repeated": ("queue", "lose-answers", "an item put twice"),
    "take-forgotten": ("queue", "", "an item lost without a word"),
    "own-items-forgotten": ("priority-queue", "", "an item put twice"),
    "job-ended-without-claim": ("work-queue", "outlast-leases", "a job done"),
    "late-claim-kept": ("work-queue", "", "waits for ever"),
}


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """Let later tests of this process log again: `run.prepare` ends that."""
    logger = logging.getLogger("etcd_aio")
    before = logger.level
    yield
    logger.setLevel(before)


def program(*arguments: str, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-m", "tests.simulation.run", *arguments]
    root = Path(__file__).parent.parent.parent
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, check=False, text=True)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_keeps_every_rule(part: str) -> None:
    run.prepare()
    outcomes = [simulate(draw(seed, FAULTS, [part])) for seed in range(_SEEDS // len(PARTS))]
    assert [outcome.violations for outcome in outcomes if outcome.violations] == []
    assert all(outcome.shown for outcome in outcomes)
    assert any(outcome.faults for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, pytest.param(3, marks=pytest.mark.nightly)])
def test_equal_seeds_give_equal_runs_in_every_process(seed: int, tmp_path: Path) -> None:
    traces = []
    for hash_seed in (1, 2):
        trace = tmp_path / f"{hash_seed}.txt"
        done = program("--seed", str(seed), "--trace", str(trace), hash_seed=hash_seed)
        assert done.returncode == 0, done.stdout + done.stderr
        traces.append((trace.read_bytes(), done.stdout))
    assert traces[0] == traces[1]
    assert traces[0][0].count(b"\n") > 100
    run.prepare()
    again = simulate(draw(seed, FAULTS))  # in a process that has run others before
    assert again.digest[:16] in traces[0][1]


def test_other_seeds_give_other_runs() -> None:
    run.prepare()
    plans = [draw(seed, FAULTS) for seed in range(100)]
    assert len({str(plan) for plan in plans}) == 100
    assert {part for plan in plans for part in plan.parts} == set(PARTS)
    assert {fault.name for plan in plans for fault in plan.faults} == FAULTS.keys()
    assert simulate(plans[3]).digest != simulate(plans[4]).digest


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*_CAUGHT, *(pytest.param(name, marks=pytest.mark.nightly) for name in _CAUGHT_BY_NIGHT)]
)
def test_a_defect_is_caught(name: str) -> None:
    part, faults, rule = (_CAUGHT | _CAUGHT_BY_NIGHT)[name]
    seeds = "1:40" if name in _CAUGHT else "1:400"
    done = program("--seeds", seeds, "--parts", part, "--faults", faults, "--sabotage", name, "--jobs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in done.stdout


@pytest.mark.slow
def test_every_sabotage_still_fits() -> None:
    names = ", ".join(map(repr, sabotage.ALL))
    code = f"from tests.simulation import sabotage; [sabotage.ALL[name]() for name in ({names},)]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent.parent)


@pytest.mark.parametrize("needed", [[], [5], [0, 19], [3, 4, 11], list(range(20))])
def test_a_list_is_shrunk_to_what_fails(needed: list[int]) -> None:
    tried = []

    def fails(part: object) -> bool:
        assert isinstance(part, list)
        tried.append(part)
        return set(needed) <= set(part)

    assert shrink(list(range(20)), fails) == needed
    assert len(tried) < 250


@pytest.mark.slow
def test_a_failing_run_is_shrunk_to_the_faults_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    run.prepare()
    from etcd_aio.watch.resuming_stream import WatchStream

    monkeypatch.setattr(WatchStream, "_create", WatchStream._create)  # restores it
    sabotage.ALL["event-lost-at-resume"]()
    failing = next(
        outcome
        for seed in range(1, 40)
        if (outcome := simulate(draw(seed, ["cut-connections", "delay-answers"], ["watch"]))).violations
    )
    plan = run.shortest(failing)
    assert {fault.name for fault in plan.faults} == {"cut-connections"}
    assert len(plan.faults) < len(failing.plan.faults)
    assert simulate(plan).violations
