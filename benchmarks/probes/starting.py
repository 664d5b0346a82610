"""Measures cold processes from start to end, and the time of their imports."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.environments import ROOT

_TIMEOUT = 60.0


def process_seconds(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """The median seconds of each command. They take turns; a first round fills the file caches.

    Raises:
        RuntimeError: one of them failed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            _run(command)
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: median(found) for name, found in seconds.items()}


def import_seconds(python: str, code: str, rounds: int) -> dict[str, float]:
    """The median seconds of the imports of `code` in a new interpreter, by top-level package, longest first."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        packages: dict[str, float] = {}
        for line in _run([python, "-X", "importtime", "-c", code]).splitlines():
            words = line.removeprefix("import time:").split("|")
            if line.startswith("import time:") and words[0].strip().isdecimal():
                package = words[2].strip().partition(".")[0]
                packages[package] = packages.get(package, 0.0) + int(words[0]) / 1e6
        for package, seconds in packages.items():
            found.setdefault(package, []).append(seconds)
    medians = {package: median(seconds) for package, seconds in found.items()}
    return dict(sorted(medians.items(), key=lambda item: -item[1]))


def _run(command: Sequence[str]) -> str:
    """Run one process to its end. Returns its stderr."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        errors = done.stderr.strip().splitlines()
        raise RuntimeError(f"{command[-1]!r} ended with {done.returncode}: {errors[-1] if errors else 'no output'}")
    return done.stderr
