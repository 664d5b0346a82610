"""The tests of python-etcd3 and of aetcd, from their source distributions."""

import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from benchmarks.environments import GoProgram
from tests.fake_suites.steps import Server, play, step, virtualenv


@dataclass(frozen=True)
class PythonClient:
    """One of them.

    Attributes:
        name: of the package on PyPI.
        version: of it.
        requirements: of the package and its tests.
        tests: the folder of those that use a server.
        arguments: of pytest.
        members: how many members it needs.
        flags: of the real server.
    """

    name: str
    version: str
    requirements: tuple[str, ...]
    tests: str
    arguments: tuple[str, ...] = ()
    members: int = 3
    flags: Sequence[str] = ()

    def make(self, cache: Path) -> None:
        folder = cache / self.name
        programs = virtualenv(folder / "venv", *self.requirements)
        source = f"{self.name}-{self.version}"
        if not (folder / source).exists():
            download = ["-m", "pip", "download", "--quiet", "--no-deps", f"--dest={folder}", f"--no-binary={self.name}"]
            step([programs / "python", *download, f"{self.name}=={self.version}"])
            with tarfile.open(folder / f"{source}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
        # Both suites look at the store by etcdctl.
        (built,) = GoProgram("tests/support/etcdctl").prepare(cache)
        (folder / "bin").mkdir(exist_ok=True)
        link = folder / "bin" / "etcdctl"
        link.unlink(missing_ok=True)
        link.symlink_to(built)

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        folder = cache / self.name
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        python = folder / "venv" / "bin" / "python"
        # The version is only compared with older ones, as text.
        environ: Mapping[str, str] = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": "",
            "TEST_ETCD_VERSION": "v3.7.3",
        }
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *self.arguments, self.tests]
        play([python, *words], log, cwd=folder / f"{self.name}-{self.version}", environ=environ)
        return parsed(report.read_text()) if report.exists() else {}


def parsed(report: str) -> dict[str, str]:
    """The outcomes in a report of pytest."""
    outcomes: dict[str, str] = {}
    for case in ET.fromstring(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        if outcomes.get(name) != "failed":  # an error when a fixture ends is a case of its own
            outcomes[name] = outcome
    return outcomes


# Older packages than today's, where these suites need them: the newer refuse what they do.
ETCD3: Final = PythonClient(
    "etcd3",
    "0.12.0",
    ("pytest==7.4.4", "hypothesis==5.40.0", "mock==4.0.3", "six", "tenacity<7", "grpcio", "protobuf==3.20.3"),
    "tests",
)
AETCD: Final = PythonClient(
    "aetcd",
    "1.0.0",
    ("pytest==9.0.3", "pytest-asyncio==1.3.0", "pytest-mock", "pytest-timeout", "grpcio", "protobuf>=5.27.2,<7"),
    "tests/integration",
    ("--with-cluster", "--timeout=120", "-o", "addopts=", "-o", "asyncio_mode=auto"),
)
