"""The tests of other clients on the fake's server, beside a real one.

python -m tests.fake_suites.run            all suites
python -m tests.fake_suites.run rust node  some of them

What passes on a real server must pass on the fake, or stand in `differences.py` with the reason. A suite that cannot be
had on this machine is skipped, and the reason is printed.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError, default_cache
from tests.fake_suites.differences import KNOWN
from tests.fake_suites.steps import Suite
from tests.fake_suites.table import SUITES
from tests.support.apart import apart, is_apart

_SERVERS: Final = ("real", "fake")
_SECONDS: Final = 2400.0  # for one suite on one server
_PORT: Final = 2379


class RunError(Exception):
    """A suite could not be run to its end."""


def _is_free() -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", _PORT)) != 0


def outcomes_of(suite: Suite, server: str, folder: Path) -> dict[str, str]:
    """Run a suite on a server.

    Raises:
        UnavailableError: the port is taken.
        RunError: the run has not ended as it should.
    """
    if not is_apart() and not _is_free():
        raise UnavailableError(f"port {_PORT} is taken, and this machine has no networks for processes")
    file = folder / f"{suite.name}-{server}.json"
    file.unlink(missing_ok=True)
    log = file.with_suffix(".log")
    log.unlink(missing_ok=True)
    words = [sys.executable, "-m", "tests.fake_suites.inside", suite.name, server, str(folder), str(file)]
    try:
        done = subprocess.run(apart(words), check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RunError(f"the run on the {server} server has no end; see {log}") from None
    if done.returncode or not file.exists():
        raise RunError(f"the run on the {server} server ended with {done.returncode}; see {log}")
    found: dict[str, str] = json.loads(file.read_text())
    return found


def _names(entry: str, test: str) -> bool:
    """Whether an entry of the differences names a test; one that ends with a slash names all below it."""
    return test.startswith(entry) if entry.endswith("/") else test == entry


def judged(real: Mapping[str, str], fake: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """What is wrong with the outcomes of a suite; empty if nothing is."""
    passed = [test for test, outcome in real.items() if outcome == "passed"]
    different = {test: fake.get(test, "missing") for test in passed if fake.get(test) != "passed"}
    wrong = [
        f"DIFFERS: {test}: passed on the real server, {outcome} on the fake"
        for test, outcome in different.items()
        if not any(_names(entry, test) for entry in known)
    ]
    wrong += [
        f"OUTDATED: {entry}: differences.py names it, and it does not differ"
        for entry in known
        if not any(_names(entry, test) for test in different)
    ]
    return wrong if passed else ["nothing has passed on the real server"]


def main(words: Sequence[str]) -> int:
    """The command. Returns 1 if something differs that is not known, or does not differ although it is known."""
    parser = argparse.ArgumentParser(prog="python -m tests.fake_suites.run", description="other clients on the fake")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all by default")
    chosen = parser.parse_args(words).suites or list(SUITES)
    if unknown := [name for name in chosen if name not in SUITES]:
        parser.error(f"no such suite: {', '.join(unknown)}")
    folder = default_cache().parent / "fake_suites"
    folder.mkdir(parents=True, exist_ok=True)
    is_good = True
    for name in chosen:
        began = time.monotonic()
        try:
            SUITES[name].make(folder)
            real, fake = (outcomes_of(SUITES[name], server, folder) for server in _SERVERS)
        except UnavailableError as error:
            print(f"SKIPPED {name}: {error}", flush=True)
            continue
        except RunError as error:
            print(f"FAILED {name}: {error}", flush=True)
            is_good = False
            continue
        known = KNOWN.get(name, {})
        counted = "; ".join(
            f"{server}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(found.values()).items()))
            for server, found in zip(_SERVERS, (real, fake), strict=True)
        )
        print(f"{name}: {counted}; {time.monotonic() - began:.0f} s", flush=True)
        for test, outcome in real.items():
            if outcome == "failed":
                print(f"  failed on the real server too: {test}")
        for test, reason in known.items():
            print(f"  known: {test}: {reason}")
        for line in judged(real, fake, known):
            is_good = False
            print(f"  {line}", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
