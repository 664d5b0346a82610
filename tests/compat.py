"""The integration suite on one version of etcd after the other, and a table of the results.

python -m tests.compat                      every version
python -m tests.compat 3.4                  only the newest patch of 3.4 that is found
python -m tests.compat 3.5.16 -- -k watch   only this patch, with arguments for pytest
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from etcd_aio.testing import EtcdBinary, available_etcds
from etcd_aio.testing.binaries import BINARY_VARIABLE, fits

SUPPORTED = ("3.4", "3.5", "3.6", "3.7")
NEXT = "3.8"  # which runs, too, where its pre-release is found
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the suite on one etcd; without a binary, that none was found."""

    wanted: str
    binary: EtcdBinary | None = None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    exit_code: int = 0

    @property
    def is_bad(self) -> bool:
        return self.failed > 0 or self.exit_code != 0

    def cells(self) -> tuple[str, ...]:
        if self.binary is None:
            return (self.wanted, "not found: `nox -s servers` says why", "", "", "", "")
        counts = (str(self.passed), str(self.failed), str(self.skipped), f"{self.seconds / 60:.1f}")
        # Without a failed test, the run itself ended badly.
        note = f" (pytest ended with {self.exit_code})" if self.exit_code and not self.failed else ""
        return (self.binary.version, f"{self.binary.path} ({self.binary.source}){note}", *counts)


def choose(wanted: str, binaries: Sequence[EtcdBinary]) -> EtcdBinary | None:
    """The newest binary of a version."""
    fitting = [binary for binary in binaries if fits(wanted, binary.version)]
    return max(fitting, key=lambda binary: binary.version_info, default=None)


def counted(report: Path) -> tuple[int, int, int]:
    """How many tests passed, failed and were skipped. A test that ran twice counts by its last run."""
    if not report.exists():
        return 0, 0, 0
    last: dict[tuple[str, str], str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        kind = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        last[case.get("classname", ""), case.get("name", "")] = kind
    found = Counter(last.values())
    return found["passed"], found["failed"], found["skipped"]


def table(outcomes: Sequence[Outcome]) -> str:
    """The table of all results."""
    rows = [("etcd", "where from", "passed", "failed", "skipped", "minutes"), *(one.cells() for one in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def run(wanted: str, binary: EtcdBinary, arguments: Sequence[str]) -> Outcome:
    """Run the suite on one binary; its output is shown as it comes."""
    print(f"\n===== etcd {binary.version}: {binary.path}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        parallel = ("--numprocesses", "4", "--dist", "worksteal")
        command = [sys.executable, "-m", "pytest", "tests/integration", f"--junitxml={report}", *parallel, *arguments]
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, BINARY_VARIABLE: str(binary.path)}, check=False)
        passed, failed, skipped = counted(report)
    return Outcome(wanted, binary, passed, failed, skipped, time.monotonic() - started, done.returncode)


def main(arguments: Sequence[str]) -> int:
    """The command: 1 if a test failed, a version that was asked for is not there, or none is."""
    versions = list(arguments)
    for_pytest: list[str] = []
    if "--" in versions:
        at = versions.index("--")
        versions, for_pytest = versions[:at], versions[at + 1 :]
    os.environ.pop(BINARY_VARIABLE, None)  # it would stand for every version
    binaries = available_etcds()
    outcomes: list[Outcome] = []
    try:
        for wanted in versions or (*SUPPORTED, NEXT):
            binary = choose(wanted, binaries)
            outcomes.append(Outcome(wanted) if binary is None else run(wanted, binary, for_pytest))
    finally:
        print(f"\n{table(outcomes)}", flush=True)
    missing = [one for one in outcomes if one.binary is None]
    return int(any(one.is_bad for one in outcomes) or len(missing) == len(outcomes) or bool(versions and missing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
