"""Simulations: `python -m tests.simulation.run --seeds 1:300`.

Each seed is a run of the whole client on a fake cluster in virtual time, with faults. The exit status is 1 if a rule
was broken; then the seed is shrunk to the faults that it takes. `--seed 17 --trace trace.txt` replays one run.
"""

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from tests.simulation import sabotage
from tests.simulation.faults import FAULTS
from tests.simulation.plan import PARTS, Plan, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulate import Outcome, simulate

_MOST_SHRUNK: Final = 3  # failing seeds
_SHOWN: Final = 5  # violations of a seed


def prepare(sabotaged: str = "") -> None:
    """Make this process ready: it does not log, and has the defect that is asked for."""
    logging.getLogger("etcd_aio").setLevel(logging.CRITICAL)
    if sabotaged:
        sabotage.ALL[sabotaged]()


def run_seed(seed: int, faults: Collection[str], parts: Collection[str]) -> tuple[Outcome, float]:
    """Run one seed. Returns also the seconds of the processor that it has taken."""
    began = time.process_time()
    return simulate(draw(seed, faults, parts)), time.process_time() - began


def outcomes(
    seeds: Iterable[int], faults: Collection[str], parts: Collection[str], jobs: int, sabotaged: str
) -> Iterator[tuple[Outcome, float]]:
    """Run all seeds, some at a time, in processes of their own; they come as they end, as from `run_seed`."""
    work = partial(run_seed, faults=faults, parts=parts)
    left = iter(seeds)
    with ProcessPoolExecutor(jobs, initializer=prepare, initargs=(sabotaged,), max_tasks_per_child=None) as pool:
        running = {pool.submit(work, seed) for seed in islice(left, 2 * jobs)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, seed) for seed in islice(left, len(done))}
                for future in done:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


def shortest(outcome: Outcome) -> Plan:
    """The plan with as few faults, and as few things that clients do, as break the same rule."""
    rules = {violation.rule for violation in outcome.violations}

    def fails(plan: Plan) -> bool:
        return bool(rules & {violation.rule for violation in simulate(plan).violations})

    plan = outcome.plan
    parts = shrink(plan.parts, lambda kept: bool(kept) and fails(replace(plan, parts=tuple(kept))))
    plan = replace(plan, parts=tuple(parts))
    return plan.with_faults(shrink(plan.faults, lambda kept: fails(plan.with_faults(kept))))


def show(outcome: Outcome) -> None:
    """Print what was wrong."""
    print(f"seed {outcome.plan.seed}: {len(outcome.violations)} violations, trace {outcome.digest[:16]}")
    for violation in outcome.violations[:_SHOWN]:
        print(f"  {violation.rule}: {violation.text}"[:400])


def _range(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description="the client, simulated")
    parser.add_argument("--seeds", type=_range, default=_range("1:300"), help="first:last (default: 1:300)")
    parser.add_argument("--seed", type=int, help="one run alone")
    parser.add_argument("--trace", type=Path, help="where to write the trace of the one run")
    parser.add_argument("--parts", default=",".join(PARTS), help="what clients may do (default: %(default)s)")
    parser.add_argument("--faults", default=",".join(FAULTS), help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no further seed is begun after these")
    parser.add_argument("--sabotage", default="", choices=["", *sabotage.ALL], help="a defect that must be caught")
    parser.add_argument("--no-shrink", action="store_true", help="show the failures as they are")
    given = parser.parse_args(arguments)
    parts, faults = given.parts.split(","), [name for name in given.faults.split(",") if name]
    if given.seed is not None:
        prepare(given.sabotage)
        plan = draw(given.seed, faults, parts)
        print(plan)
        outcome = simulate(plan, keeps_lines=given.trace is not None)
        if given.trace is not None:
            given.trace.write_text("\n".join(outcome.lines) + "\n")
        show(outcome)
        return bool(outcome.violations)
    began = time.monotonic()
    seeds = (seed for seed in given.seeds if time.monotonic() < began + 60 * given.minutes)
    failed: list[Outcome] = []
    runs = calls = 0
    seconds = busy = 0.0
    counts: Counter[str] = Counter()
    for outcome, cpu in outcomes(seeds, faults, parts, given.jobs, given.sabotage):
        busy += cpu
        runs, calls, seconds = runs + 1, calls + outcome.calls, seconds + outcome.seconds
        counts.update(outcome.faults)
        if outcome.violations:
            failed.append(outcome)
            show(outcome)
            if given.sabotage:
                print(f"{given.sabotage} is caught by seed {outcome.plan.seed}, after {runs} runs and {busy:.0f} CPU s")
                break
    took = time.monotonic() - began
    print(f"{runs} seeds, {seconds / 3600:.2f} simulated hours, {calls} calls, {counts.total()} faults in {took:.0f} s")
    print(f"{runs / took:.1f} seeds a second, {runs / busy:.1f} a CPU second; {len(failed)} of them broke a rule")
    if not given.no_shrink and not given.sabotage:
        prepare()
        for outcome in failed[:_MOST_SHRUNK]:
            print(f"\nseed {outcome.plan.seed}, shrunk:\n{shortest(outcome)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
