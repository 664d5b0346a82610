"""etcd, etcdctl, etcdutl and etcd's tests of one release, built from Go modules into a folder of the cache.

The tests are built from copies of two modules whose time limits are wider, see `limits.py`.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import etcd_aio
from benchmarks.environments import default_cache
from tests.etcdctl_suite.limits import widen_all

RELEASES: Final = {"3.7": "3.7.3", "3.6": "3.6.16", "3.5": "3.5.35"}
"""The releases whose tests are on the module proxy, by minor version."""

TESTS: Final = "go.etcd.io/etcd/tests/v3"
LEAKS: Final = "go.etcd.io/etcd/client/pkg/v3"  # finds processes that a test has left behind
PROGRAMS: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
    "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
}
_HOURS: Final = 1
_WRAPPER: Final = """\
#!/bin/sh
# etcd-aio under the name that the tests run; contexts of the user do not count.
export PYTHONPATH={sources!r} XDG_CONFIG_HOME={empty!r}
exec {python!r} -P -m etcd_aio "$@"
"""


class BuildError(Exception):
    """A program cannot be built."""


@dataclass(frozen=True, slots=True)
class Built:
    """The programs of a release.

    Attributes:
        folder: has everything.
        version: the release, such as 3.7.3.
    """

    folder: Path
    version: str

    @property
    def source(self) -> Path:
        """The copy of the tests' module."""
        return self.folder / "source"

    def working(self, suite: str) -> Path:
        """Where the tests of a package run: they look for `../fixtures`."""
        return self.source / suite

    def tests(self, suite: str) -> Path:
        """The test program of a package, `e2e` or `common`."""
        return self.folder / f"{suite}.test"

    def programs(self, who: str) -> Path:
        """The folder of the programs whose `etcdctl` is etcdctl or etcd-aio."""
        return self.folder / who

    def log(self, who: str, suite: str, test: str) -> Path:
        """The output of a test function."""
        return self.folder / "logs" / who / suite / f"{test}.txt"


def suites_of(release: str) -> tuple[str, ...]:
    """The packages with tests of etcdctl; the common tests came with 3.6."""
    return ("e2e",) if release == "3.5" else ("e2e", "common")


def build(release: str, cache: Path | None = None) -> Built:
    """Build what is not there yet.

    Raises:
        BuildError: Go is missing, or a module cannot be had or built.
    """
    if shutil.which("go") is None:
        raise BuildError("there is no Go toolchain on PATH")
    version = RELEASES[release]
    made = Built((cache or default_cache().parent) / "etcdctl-suite" / version, version)
    for folder in (made.programs("etcdctl"), made.programs("etcd-aio")):
        folder.mkdir(parents=True, exist_ok=True)
    stamp = made.folder / "made"
    if not stamp.exists() or stamp.read_text() != _digest():
        stamp.unlink(missing_ok=True)
        _build(made, release)
        stamp.write_text(_digest())
    _wrap(made)
    return made


def _digest() -> str:
    here = Path(__file__).parent
    parts = [(here / name).read_bytes() for name in ("build.py", "limits.py")]
    return sha256(b"".join((*parts, _go("version").encode()))).hexdigest()


def _build(made: Built, release: str) -> None:
    module = made.folder / "module"
    module.mkdir(exist_ok=True)
    requires = "".join(f"require {name} v{made.version}\n" for name in (TESTS, LEAKS, *PROGRAMS.values()))
    copies = {TESTS: made.source, LEAKS: made.folder / "leaks"}
    # `replace` lines of the tests' own module do not count here, so everything else is of the release.
    replaces = "".join(f"replace {name} => {folder}\n" for name, folder in copies.items())
    (module / "go.mod").write_text(f"module etcdctlsuite\n\ngo 1.24\n\n{requires}{replaces}")
    (module / "go.sum").unlink(missing_ok=True)
    for name, folder in copies.items():
        original = json.loads(_go("mod", "download", "-json", f"{name}@v{made.version}", within=module))["Dir"]
        _copy(Path(original), folder)
    widen_all(made.source, "e2e/ctl_v3*_test.go", "common/*_test.go")
    widen_all(copies[LEAKS], "testutil/leak.go")
    for name, package in PROGRAMS.items():
        _go("build", "-o", str(made.programs("etcdctl") / name), package, within=module)
    for suite in suites_of(release):
        _go("test", "-c", "-tags", "e2e", "-o", str(made.tests(suite)), f"{TESTS}/{suite}", within=module)


def _copy(module: Path, folder: Path) -> None:
    """Copy a module out of Go's cache, where nothing can be written."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in module.rglob("*"):
        copy = folder / path.relative_to(module)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def _wrap(made: Built) -> None:
    """Make the folder in which etcdctl is etcd-aio."""
    ours = made.programs("etcd-aio")
    for name in ("etcd", "etcdutl"):
        _link(ours / name, made.programs("etcdctl") / name)
    sources = Path(etcd_aio.__file__).parent.parent
    wrapper = ours / "etcdctl"
    empty = str(made.folder / "no-contexts")
    wrapper.write_text(_WRAPPER.format(sources=str(sources), empty=empty, python=sys.executable))
    wrapper.chmod(0o755)


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _go(*words: str, within: Path | None = None) -> str:
    environ = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    command = ["go", *words]
    done = subprocess.run(
        command, cwd=within, env=environ, capture_output=True, text=True, timeout=_HOURS * 3600, check=False
    )
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout
