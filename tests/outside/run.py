"""The tests of programs and of other clients, with `etcd_aio` in the place of what they use.

python -m tests.outside.run                  all suites
python -m tests.outside.run etcd3 aetcd      some of them
python -m tests.outside.run etcd3 --own      with the client that the suite is for: whether `expected/` is still right
python -m tests.outside.run etcd3 -- -k lock some tests: more arguments of pytest

What passes with the own client is owed, but for the tests that reach into it, which `expected/` names with the reason.
A suite that cannot be had on this machine is skipped, and the reason is printed.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError, default_cache
from tests.outside.expected import Outcome, changed, counts, expected, judged
from tests.outside.inside import PORT
from tests.outside.table import SUITES
from tests.support.apart import apart, is_apart

_SECONDS: Final = 2400.0  # for one suite


class RunError(Exception):
    """A suite could not be run to its end."""


def _is_free() -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", PORT)) != 0


def outcomes_of(name: str, is_own: bool, folder: Path, chosen: Sequence[str]) -> dict[str, Outcome]:
    """Run a suite.

    Raises:
        UnavailableError: the port is taken, or the suite cannot be had.
        RunError: the run has not ended as it should.
    """
    if not is_apart() and not _is_free():
        raise UnavailableError(f"port {PORT} is taken, and this machine has no networks for processes")
    SUITES[name].make(folder, is_own)
    client = "own" if is_own else "ours"
    file = folder / f"{name}-{client}.json"
    log = file.with_suffix(".log")
    for old in (file, log):
        old.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.outside.inside", name, client, str(folder), str(file), *chosen]
    try:
        done = subprocess.run(apart(command), check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RunError(f"the run has no end; see {log}") from None
    if done.returncode or not file.exists():
        raise RunError(f"the run ended with {done.returncode}; see {log}")
    found = {test: Outcome(*outcome) for test, outcome in json.loads(file.read_text()).items()}
    if not found:
        raise RunError(f"no test has run; see {log}")
    return found


def report(name: str, outcomes: dict[str, Outcome], is_own: bool, seconds: float, *, is_part: bool = False) -> bool:
    """Print what a run of all tests, or of some, has shown. Returns whether all is as it should be."""
    baseline = expected(SUITES[name].expected)
    if is_part:
        baseline = {test: outcome for test, outcome in baseline.items() if test in outcomes}
    client = "its own client" if is_own else "etcd_aio"
    print(f"{name}: {counts(outcomes)} with {client}; {seconds:.0f} s", flush=True)
    if is_own:
        lines = changed(baseline, outcomes)
        is_good = not lines
    else:
        print(f"{name}: {counts(baseline)} with its own client", flush=True)
        verdict = judged(baseline, outcomes)
        lines, is_good = verdict.lines(), not verdict.missing
    for line in lines:
        print(f"  {line}", flush=True)
    return is_good


def main(words: Sequence[str]) -> int:
    """The command. Returns 1 if a test is owed, or, with `--own`, if an outcome is not as expected."""
    words, chosen = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(prog="python -m tests.outside.run", description="suites of others on etcd_aio")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--own", action="store_true", help="with the client that the suite is for")
    options = parser.parse_args(words)
    names = options.suites or list(SUITES)
    if unknown := [name for name in names if name not in SUITES]:
        parser.error(f"no such suite: {', '.join(unknown)}")
    folder = default_cache().parent / "outside"
    folder.mkdir(parents=True, exist_ok=True)
    is_good = True
    for name in names:
        began = time.monotonic()
        try:
            outcomes = outcomes_of(name, options.own, folder, chosen)
        except UnavailableError as error:
            print(f"SKIPPED {name}: {error}", flush=True)
            continue
        except RunError as error:
            print(f"FAILED {name}: {error}", flush=True)
            is_good = False
            continue
        is_good &= report(name, outcomes, options.own, time.monotonic() - began, is_part=bool(chosen))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
