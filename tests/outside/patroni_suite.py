"""Patroni's features: its processes with real servers of Postgres, on etcd with `etcd3aio`, or with its own `etcd3`.

They are in no distribution on PyPI: they come from Debian's source package. Postgres refuses root: then they run as
another user, in a folder and with a Python that this user can read.
"""

import hashlib
import os
import pwd
import shutil
import sys
import tarfile
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme

from benchmarks.environments import UnavailableError
from etcd_aio.testing import find_etcd
from tests.fake_suites.steps import ROOT, play, step
from tests.outside.expected import Outcome, parsed
from tests.outside.patroni_controller import CONTROLLER
from tests.support.certificates import write_ca, write_leaf

_VERSION: Final = "4.0.7"
_SHA256: Final = "2d53ecc208c99afff180954adb6f0f891e56da0fcd4e1ab84912daab5cf39a7e"
_FILE: Final = f"pool/main/p/patroni/patroni_{_VERSION}.orig.tar.gz"
_ARCHIVE: Final = "http://deb.debian.org/debian"
_REQUIREMENTS: Final = (
    *("setuptools<81", "wheel", "behave==1.2.6", "coverage", "psycopg2-binary", "psutil", "PyYAML", "urllib3<3"),
    *("click", "prettytable", "python-dateutil", "cryptography", "ydiff<1.5,!=1.4.0,!=1.4.1"),
    "python-json-logger>=2.0.2",
)
_OWN: Final = ("python-etcd>=0.4.3,<0.5",)
_BEFORE: Final = "class AbstractExternalDcsController("  # the controllers of etcd end there
# etcd has refused since 3.6 what the features give it.
_WRAPPER: Final = """\
#!/bin/sh
[ "$1" = --enable-v2=true ] && shift
exec "$(dirname "$0")/etcd.real" "$@"
"""
_LEFT_OUT: Final = ("--exclude", "citus")  # needs an extension of Postgres


@dataclass(frozen=True)
class PatroniSuite:
    """The features.

    Attributes:
        name: of the suite.
        expected: the file of `expected/`.
        members: none: the features start etcd.
        kill_every: never.
    """

    name: str = "patroni"
    expected: str = "patroni"
    members: int = 0
    kill_every: float = 0.0

    def make(self, cache: Path, is_own: bool) -> None:
        """Get Patroni and what it needs, unless it is there. This needs the network.

        Raises:
            UnavailableError: that is not possible on this machine; the message is the reason.
        """
        _postgres()
        user = _user()
        folder = _folder(cache, is_own)
        folder.mkdir(parents=True, exist_ok=True)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wanted = (*_REQUIREMENTS, *(_OWN if is_own else project["dependencies"]))
        made = folder / "made"
        if not made.exists() or made.read_text() != "\n".join(wanted):
            step([_python(user), "-m", "venv", "--clear", folder / "venv"])
            pip = (folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet")
            step([*pip, "--disable-pip-version-check", *wanted])
            made.write_text("\n".join(wanted))
        source = folder / f"patroni-{_VERSION}"
        if not source.exists():
            _unpack(_archive(), folder)
        judge = folder / "judge"
        shutil.rmtree(judge, ignore_errors=True)
        shutil.copytree(source, judge)
        _make_programs(folder)
        if not is_own:
            _make_certificates(folder)
            shutil.copytree(ROOT / "etcd_aio", judge / "etcd_aio", ignore=shutil.ignore_patterns("__pycache__"))
            environment = judge / "features" / "environment.py"
            text = environment.read_text()
            assert text.count(_BEFORE) == 1
            environment.write_text(text.replace(_BEFORE, CONTROLLER + _BEFORE))
            step([folder / "venv" / "bin" / "python", "-m", "etcd_aio.contrib.patroni", "install"], cwd=judge)
        if user is not None:
            for path in (folder, *folder.rglob("*")):
                if "venv" not in path.parts and not path.is_symlink():
                    os.chown(path, user.pw_uid, user.pw_gid)

    def run(self, cache: Path, is_own: bool, log: Path, *chosen: str) -> dict[str, Outcome]:
        """Run the features.

        Args:
            cache: where they were made.
            is_own: whether to run them with `etcd3`.
            log: gets what they print.
            chosen: names of features, instead of all.
        """
        folder = _folder(cache, is_own)
        reports = folder / "reports"
        shutil.rmtree(reports, ignore_errors=True)
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        user = _user()
        if user is not None:
            os.chown(temporary, user.pw_uid, user.pw_gid)
        environ = {
            "PATH": os.pathsep.join(
                [str(folder / "bin"), str(folder / "venv" / "bin"), str(_postgres()), os.environ["PATH"]]
            ),
            "DCS": "etcd3" if is_own else "etcd3aio",
            "ETCD_AIO_CERTS": str(folder / "certs"),
            "HOME": str(temporary),
            "TMPDIR": str(temporary),
            "LC_ALL": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": "",
        }
        which = [f"features/{name}.feature" for name in chosen] or [*_LEFT_OUT, "features"]
        behave = ["-m", "behave", "--no-color", "-f", "plain", "--junit", f"--junit-directory={reports}", *which]
        command: list[str | Path] = [*_as(user), folder / "venv" / "bin" / "python", *behave]
        play(command, log, cwd=folder / "judge", environ=environ)
        found: dict[str, Outcome] = {}
        for report in sorted(reports.glob("*.xml")):
            found.update(parsed(report.read_text(), ""))
        return found


def _user() -> pwd.struct_passwd | None:
    """Whose rights the features have; None if it is this process's own user.

    Raises:
        UnavailableError: that is root, and there is no other one.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise UnavailableError("Postgres refuses root, and there is no user postgres or nobody")


def _as(user: pwd.struct_passwd | None) -> list[str]:
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _folder(cache: Path, is_own: bool) -> Path:
    if os.geteuid() == 0:  # root's home is closed to others
        cache = Path(tempfile.gettempdir(), "etcd_aio-outside")
    return cache / ("patroni-own" if is_own else "patroni")


def _python(user: pwd.struct_passwd | None) -> str:
    """A Python that the user can run.

    Raises:
        UnavailableError: there is none.
    """
    child = "import sys, venv; sys.exit(sys.version_info < (3, 11))"
    # In a child: the first process may have more rights than its user.
    check = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            step([*_as(user), python, "-c", check], cwd=Path("/"))
        except UnavailableError:
            continue
        return python
    raise UnavailableError("there is no Python 3.11 that the user of Postgres can run")


def _postgres() -> Path:
    """The folder of the programs of Postgres.

    Raises:
        UnavailableError: it is not installed.
    """
    for folder in (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *_path()):
        if (folder / "postgres").exists() and (folder / "pg_rewind").exists():
            return folder
    raise UnavailableError("Postgres is missing: apt-get install postgresql")


def _path() -> Iterator[Path]:
    yield from map(Path, os.environ["PATH"].split(os.pathsep))


def _archive() -> bytes:
    """The source.

    Raises:
        UnavailableError: it cannot be got.
    """
    try:
        with urllib.request.urlopen(f"{_ARCHIVE}/{_FILE}", timeout=60) as reply:
            content: bytes = reply.read()
    except OSError as error:
        raise UnavailableError(f"Patroni's source is not at {_ARCHIVE}/{_FILE}: {error}") from error
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise UnavailableError(f"another file than expected is at {_ARCHIVE}/{_FILE}")
    return content


def _unpack(content: bytes, folder: Path) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(folder, filter="data")


def _make_programs(folder: Path) -> None:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    shutil.copy(find_etcd("3.7").path, programs / "etcd.real")
    wrapper = programs / "etcd"
    wrapper.write_text(_WRAPPER)
    wrapper.chmod(0o755)


def _make_certificates(folder: Path, users: Sequence[str] = ("root", "patroni")) -> None:
    certs = folder / "certs"
    certs.mkdir(exist_ok=True)
    authority = trustme.CA()
    write_ca(authority, certs / "ca.pem")
    write_leaf(authority.issue_cert("127.0.0.1", "localhost"), certs, "server")
    for name in users:
        write_leaf(authority.issue_cert(f"{name}.example", common_name=name), certs, name)
