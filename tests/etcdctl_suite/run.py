"""etcd's own tests of etcdctl, with etcd-aio in its place, on real servers.

python -m tests.etcdctl_suite.run                       the tests of the newest release
python -m tests.etcdctl_suite.run --release 3.6         those of another one; may be repeated
python -m tests.etcdctl_suite.run --both                all of them with etcdctl too, for the figures
python -m tests.etcdctl_suite.run --only 'Lock|Elect'   some of them

A test that etcd-aio does not pass is run with etcdctl as well. The run fails if etcdctl passes it and it is not in
`deviations.py`. Each test function has a process of its own: one that fails would make the next ones skip.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.etcdctl_suite.build import RELEASES, BuildError, Built, build, suites_of
from tests.etcdctl_suite.deviations import known
from tests.etcdctl_suite.outcomes import Comparison, Outcome, counts, outcome_of, table
from tests.support.apart import apart, is_apart

_MINUTES: Final = 60  # for one test function: some run a thousand commands and more


def listed(built: Built, suite: str, only: str) -> list[str]:
    """The test functions of a package."""
    pattern = "^TestCtlV3" if suite == "e2e" else "^Test"
    command = [str(built.tests(suite)), "-test.list", pattern]
    done = subprocess.run(command, cwd=built.working(suite), capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if name.startswith("Test") and re.search(only, name)]


def run_test(built: Built, suite: str, test: str, who: str) -> Outcome:
    """Run one test function with the programs of a folder; its output goes to a file."""
    programs = built.programs(who)
    command = [str(built.tests(suite)), "-test.v", f"-test.run=^{test}$", f"-test.timeout={_MINUTES}m"]
    command += [f"-bin-dir={programs}"]
    log = built.log(who, suite, test)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        try:
            subprocess.run(
                apart(command),
                cwd=built.working(suite),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=_MINUTES * 60 + 60,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome("failed", _MINUTES * 60.0)
    outcome = outcome_of(test, log.read_text(errors="replace"))
    print(f"{outcome.kind:8}{outcome.seconds:7.1f} s  {who:9}{test}", flush=True)
    return outcome


def compare(built: Built, release: str, suite: str, arguments: argparse.Namespace) -> Comparison:
    """Run a package with etcd-aio, and with etcdctl what it does not pass."""
    tests = listed(built, suite, arguments.only)
    result = Comparison({name: reason for name, reason in known(release).items() if name in tests})
    with ThreadPoolExecutor(arguments.jobs if is_apart() else 1) as pool:

        def run_all(who: str, names: Sequence[str]) -> dict[str, Outcome]:
            return dict(zip(names, pool.map(lambda name: run_test(built, suite, name, who), names), strict=True))

        result.ours = run_all("etcd-aio", tests)
        again = tests if arguments.both else [name for name in tests if result.ours[name].kind != "passed"]
        result.theirs = run_all("etcdctl", again)
    return result


def report(built: Built, suite: str, result: Comparison) -> bool:
    """Print what deviates. Returns whether all is as it is known."""
    for test, reason in result.deviations().items():
        if reason:
            print(f"known: {test}: {reason}")
        else:
            print(f"DEVIATES: {test}: see {built.log('etcd-aio', suite, test)}")
            for part in result.ours[test].parts:
                print(f"  {part}")
    for test in result.outdated():
        print(f"OUTDATED: etcd-aio passes {test}, so tests/etcdctl_suite/deviations.py must not name it")
    for test, outcome in result.theirs.items():
        if outcome.kind != "passed":
            print(f"{outcome.kind} with etcdctl too: {test}")
    return not result.unknown() and not result.outdated()


def main(words: Sequence[str]) -> int:
    """The command: 1 if a test deviates that is not known, or a known one does not."""
    parser = argparse.ArgumentParser(prog="python -m tests.etcdctl_suite.run", description="etcd's tests of etcdctl")
    parser.add_argument("--release", action="append", choices=RELEASES, help="minor version; 3.7 by default")
    parser.add_argument("--both", action="store_true", help="run every test with etcdctl too")
    parser.add_argument("--only", default="", help="regular expression for the names of test functions")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time, where each can have its own network")
    arguments = parser.parse_args(words)
    rows: list[tuple[str, ...]] = []
    is_good = True
    began = time.monotonic()
    for release in arguments.release or ["3.7"]:
        try:
            built = build(release)
        except BuildError as error:
            print(f"skipped etcd {release}: {error}")
            continue
        for suite in suites_of(release):
            result = compare(built, release, suite, arguments)
            is_good &= report(built, suite, result)
            rows.append((built.version, suite, "etcd-aio", *counts(result.ours)))
            if arguments.both:
                rows.append(("", "", "etcdctl", *counts(result.theirs)))
    if rows:
        print(f"\n{table(rows)}\n\n{(time.monotonic() - began) / 60:.1f} minutes")
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
