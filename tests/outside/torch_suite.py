"""pytorch's tests of rendezvous backends and stores, with Debian's torch: that of PyPI is many times as large.

Some 170 packages of Debian, 150 MB, are unpacked in the cache; nothing is installed. Its torch needs Debian's Python.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError
from tests.fake_suites.steps import ROOT, play, step
from tests.outside.expected import Outcome, parsed
from tests.outside.python_suite import project, put_here
from tests.support.apart import is_apart

_VERSION: Final = "1.13.1"
_PYTHON: Final = Path("/usr/bin/python3.11")
_SOURCE: Final = f"pytorch_{_VERSION}+dfsg.orig.tar.xz"
_SHA256: Final = "d0355588b8528566d477e6ebf1b4d9d036a6fd75711339f66b27472ce5879dc7"  # of that file
_TESTS: Final = f"pytorch-{_VERSION}/test/distributed"
_OURS: Final = Path(__file__).with_name("torch_tests.py")
# Agents tell each other the name of their machine, which no name server knows there.
_NAMED: Final = ("unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "sh")
_JOB: Final = Path(__file__).with_name("torch_job.py")
_JOB_SECONDS: Final = 300.0
_CHOSEN: Final = ("etcd_v3_test.py", "dynamic_rendezvous_test.py", "api_test.py")
_LIBRARIES: Final = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib")


@dataclass(frozen=True)
class TorchSuite:
    """The tests; those of torch's own etcd backend need the v2 API, so there is no run with it."""

    name: str = "torch"
    expected: str = "torch"
    members: int = 1
    kill_every: float = 0.0

    @staticmethod
    def folder(cache: Path) -> Path:
        """The folder of both suites."""
        return cache / "torch"

    def make(self, cache: Path, is_own: bool) -> None:
        if is_own:
            raise UnavailableError("torch's own etcd backend needs the v2 API, which etcd has until 3.5 only")
        if not _PYTHON.exists() or shutil.which("apt-get") is None:
            raise UnavailableError("Debian 12 with its Python 3.11 is needed, for its torch")
        folder = self.folder(cache)
        folder.mkdir(parents=True, exist_ok=True)
        _unpack_torch(folder)
        _unpack_tests(folder)
        python = _environment(folder)
        shutil.rmtree(folder / "client", ignore_errors=True)
        put_here(folder / "client")
        site = step([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        # Behind the packages of the environment, since some of Debian's are old.
        (Path(site) / "debian_torch.pth").write_text(f"{folder / 'root/usr/lib/python3/dist-packages'}\n")

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
        folder = self.folder(cache)
        tests = folder / "tests"
        shutil.copyfile(_OURS, tests / _CHOSEN[0])
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        environ = {**_environ(folder), "JUDGE_ENDPOINT": "127.0.0.1:2379"}
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tests}", f"--junitxml={report}"]
        play([folder / "venv/bin/python", *words, *chosen, *_CHOSEN], log, cwd=tests, environ=environ)
        return parsed(report.read_text(), "tests") if report.exists() else {}


@dataclass(frozen=True)
class TorchAgentsSuite(TorchSuite):
    """Jobs of two agents of `torch.distributed.run`, which fail twice and go on, while leaders of etcd are killed."""

    name: str = "torch-agents"
    expected: str = "torch-agents"
    members: int = 3
    kill_every: float = 5.0
    jobs: int = 10

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
        folder = self.folder(cache)
        environ = {
            **os.environ,
            **_environ(folder),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }
        return {f"job-{number}": self._job(folder, environ, log, number) for number in range(1, self.jobs + 1)}

    def _job(self, folder: Path, environ: Mapping[str, str], log: Path, number: int) -> Outcome:
        done = folder / "done"
        shutil.rmtree(done, ignore_errors=True)
        done.mkdir()
        command = [
            *(_NAMED if is_apart() else ()),
            *(folder / "venv/bin/python", "-m", "etcd_aio.contrib.torch", f"--rdzv_id=job-{number}"),
            *("--rdzv_backend=etcd-v3", "--rdzv_endpoint=127.0.0.1:2379,127.0.0.1:2380,127.0.0.1:2381"),
            *("--nnodes=2", "--nproc_per_node=1", "--max_restarts=5", "--monitor_interval=1"),
            # torch 1.13 reads 0, the default of both, as nothing in Python 3.11, and fails.
            *("--redirects=1", "--tee=1", f"--log_dir={folder / 'logs'}"),
            *(_JOB, done),
        ]
        with log.open("ab") as file:
            agents = [subprocess.Popen(command, cwd=folder, env=environ, stdout=file, stderr=file) for _ in range(2)]
            try:
                codes = [agent.wait(_JOB_SECONDS) for agent in agents]
            except subprocess.TimeoutExpired:
                return Outcome("failed", f"it has not ended within {_JOB_SECONDS:g} seconds")
            finally:
                for agent in agents:
                    agent.kill()
        ranks = sorted(path.name for path in done.iterdir())
        if codes == [0, 0] and ranks == ["0", "1"]:
            return Outcome("passed")
        return Outcome("failed", f"the agents ended with {codes}, of the ranks finished {ranks}")


def _environ(folder: Path) -> dict[str, str]:
    paths = [folder / "root" / path for path in _LIBRARIES]
    libraries = [*paths, paths[0] / "blas", paths[0] / "lapack"]
    return {
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "PYTHONPATH": str(folder / "client"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _unpack_torch(folder: Path) -> None:
    root, packages = folder / "root", folder / "packages"
    if (root / "usr/lib/python3/dist-packages/torch").exists():
        return
    (packages / "partial").mkdir(parents=True, exist_ok=True)
    options = ("-qq", "--yes", "--no-install-recommends", "--download-only", "-o", f"Dir::Cache::archives={packages}")
    step(["apt-get", "install", *options, "python3-torch"])
    found = sorted(packages.glob("*.deb"))
    if not any(path.name.startswith(f"python3-torch_{_VERSION}") for path in found):
        raise UnavailableError(f"Debian's torch is not {_VERSION} here, or is installed already")
    part = folder / "root.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for package in found:
        step(["dpkg-deb", "--extract", package, part])
    part.rename(root)


def _unpack_tests(folder: Path) -> None:
    tests, source = folder / "tests", folder / "source"
    if tests.exists():
        return
    archive = source / _SOURCE
    if not archive.exists():
        (source / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (source / "source.list").write_text(f"deb-src {_debian()} bookworm main\n")
        options = [
            *("-qq", "-o", f"Dir::Etc::sourcelist={source / 'source.list'}", "-o", "Dir::Etc::sourceparts=/dev/null"),
            *("-o", f"Dir::State::Lists={source / 'lists'}", "-o", f"Dir::Cache={source}"),
        ]
        step(["apt-get", *options, "update"])
        # The patches of Debian may be missing on a mirror; they are not needed.
        subprocess.run(
            ["apt-get", *options, "source", "--download-only", f"pytorch={_VERSION}+dfsg-4"],
            cwd=source,
            check=False,
            capture_output=True,
        )
    if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
        raise UnavailableError("the source of Debian's torch cannot be had")
    step(["tar", "xJf", archive, "-C", source, f"{_TESTS}/elastic/rendezvous", f"{_TESTS}/test_store.py"])
    shutil.copyfile(source / _TESTS / "test_store.py", source / _TESTS / "elastic/rendezvous/test_store.py")
    (source / _TESTS / "elastic/rendezvous").rename(tests)


def _debian() -> str:
    """The address of Debian's archive that this machine is set up with."""
    for path in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")):
        for word in path.read_text().split() if path.is_file() else ():
            if word.startswith("http") and word.rstrip("/").endswith("/debian"):
                return word
    return "http://deb.debian.org/debian"


def _environment(folder: Path) -> Path:
    """The Python of an environment for the tests, of Debian's Python."""
    python, made = folder / "venv/bin/python", folder / "venv/made"
    wanted = ["pytest<9", "expecttest==0.1.6", *project()["dependencies"]]
    if not made.exists() or made.read_text() != "\n".join(wanted):
        step([_PYTHON, "-m", "venv", "--clear", folder / "venv"])
        step([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], cwd=ROOT)
        made.write_text("\n".join(wanted))
    return python
