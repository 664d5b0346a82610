"""Simulations in short: no rule is broken, equal seeds give equal runs, and failures are ended, replayed and shrunk."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation import bounded, run, sabotage
from tests.simulation.bounded import BoundedLoop
from tests.simulation.faults import FAULTS
from tests.simulation.plan import PARTS, Plan, draw
from tests.simulation.reads import Reads
from tests.simulation.shrink import shrink
from tests.simulation.simulate import simulate
from tests.simulation.test_sabotage import simulated
from tests.simulation.trace import Trace
from tests.simulation.world import World

_SEEDS = 2 * len(PARTS)


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """Let later tests of this process log again: `run.prepare` ends that."""
    logger = logging.getLogger("etcd_aio")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_keeps_every_rule(part: str) -> None:
    run.prepare()
    outcomes = [simulate(draw(seed, FAULTS, [part])) for seed in range(_SEEDS // len(PARTS))]
    assert [outcome.violations for outcome in outcomes if outcome.violations] == []
    assert all(outcome.shown for outcome in outcomes)
    assert any(outcome.faults for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "parts"),
    [(5, "work-queue,leases"), *(pytest.param(3, part, marks=pytest.mark.nightly) for part in PARTS)],
)
def test_equal_seeds_give_equal_runs_in_every_process(seed: int, parts: str, tmp_path: Path) -> None:
    traces = []
    for hash_seed in (1, 2):
        trace = tmp_path / f"{hash_seed}.txt"
        done = simulated("--seed", str(seed), "--parts", parts, "--trace", str(trace), hash_seed=hash_seed)
        assert done.returncode == 0, done.stdout + done.stderr
        traces.append((trace.read_bytes(), done.stdout))
    assert traces[0] == traces[1]
    assert traces[0][0].count(b"\n") > 100
    run.prepare()
    again = simulate(draw(seed, FAULTS, parts.split(",")))  # in a process that has run others before
    assert again.digest[:16] in traces[0][1]


def test_other_seeds_give_other_runs() -> None:
    run.prepare()
    plans = [draw(seed, FAULTS) for seed in range(100)]
    assert len({str(plan) for plan in plans}) == 100
    assert {part for plan in plans for part in plan.parts} == set(PARTS)
    assert {fault.name for plan in plans for fault in plan.faults} == FAULTS.keys()
    assert simulate(plans[3]).digest != simulate(plans[4]).digest


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
    from etcd_aio.watch.open_stream import OpenStream

    monkeypatch.setattr(OpenStream, "_create", OpenStream._create)  # restores it
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


def test_a_run_that_spins_is_ended_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def spin(self: Reads) -> None:
        while True:  # noqa: ASYNC110 - it spins
            await asyncio.sleep(0)

    monkeypatch.setattr(Reads, "run", spin)
    run.prepare()
    outcome = simulate(draw(1, [], ["reads"]))
    assert [violation.rule for violation in outcome.violations] == ["spins"]
    assert "turns of the loop" in outcome.violations[0].text


def test_a_run_that_gives_the_loop_no_turn_is_ended_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def spin(self: Reads) -> None:
        while True:
            pass

    monkeypatch.setattr(Reads, "run", spin)
    monkeypatch.setattr(bounded, "MOST_CPU", 0.5)
    run.prepare()
    outcome = simulate(draw(1, [], ["reads"]))
    assert [violation.rule for violation in outcome.violations] == ["spins"]
    assert "of the processor" in outcome.violations[0].text


def test_a_lease_that_ends_is_told_to_what_believes_in_it() -> None:
    """The clocks of the members run faster by the drift, and there is no pause until a lease is looked at."""

    async def body(plan: Plan) -> float:
        world = World(plan, Trace())
        ended: list[float] = []

        def believe(lease: int) -> list[str]:
            ended.append(asyncio.get_running_loop().time())
            return ["it goes on"]

        world.believers.append(believe)
        async with world.fake, world.operator as client:
            began = asyncio.get_running_loop().time()
            await client.leases.grant(10)
            await asyncio.sleep(20.0)
        assert [violation.rule for violation in world.violations] == ["held after its lease"]
        return ended[0] - began

    for drift in (0.0, 0.05):
        plan = replace(draw(1, [], ["leases"]), drift=drift)
        with asyncio.Runner(loop_factory=BoundedLoop) as runner:
            assert runner.run(body(plan)) == pytest.approx(10.0 * (1.0 - drift), abs=0.01)
