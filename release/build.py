"""Builds the wheel and the sdist twice, under different conditions, and compares them byte by byte.

The time in both archives is that of the commit (`SOURCE_DATE_EPOCH`). The second build is in a folder with another
name and other file times, with another umask, time zone, locale and hash seed; and it makes the wheel from the
checkout, where the first makes it from the sdist. So whoever has the commit can make the published files again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent


class Conditions(NamedTuple):
    """What differs between two builds: the umask, variables, and how `build` is called."""

    umask: int
    variables: Mapping[str, str]
    runs: Sequence[Sequence[str]]


_FIRST: Final = Conditions(0o022, {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "0"}, [[]])
_SECOND: Final = Conditions(
    0o077,
    {"TZ": "Pacific/Chatham", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "4711"},
    [["--wheel"], ["--sdist"]],
)


class NotReproducibleError(Exception):
    """Two builds of the same files differ."""


def commit_time() -> int:
    """The time of the commit, in seconds since 1970."""
    return int(_git("log", "-1", "--format=%ct"))


def changed_files() -> list[str]:
    """The files that differ from the commit, or are not in it."""
    return _git("status", "--porcelain").splitlines()


def build_twice(target: Path) -> list[Path]:
    """Build into a folder, which is emptied before. Returns the wheel and the sdist.

    Raises:
        NotReproducibleError: the two builds differ.
    """
    epoch = commit_time()
    names = _git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "a"), Path(folder, "a-folder-with-another-name")
        _copy(ROOT, one, names, umask=_FIRST.umask, seconds=0)
        # From the first copy, since files of the checkout may change meanwhile. File systems list files by different
        # orders, one of them that of their creation.
        _copy(one, other, names[::-1], umask=_SECOND.umask, seconds=-86_400 * 365)
        first, second = _build(one, epoch, _FIRST), _build(other, epoch, _SECOND)
        if problems := differences(first, second):
            raise NotReproducibleError("\n".join(problems))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(first, target)
    return sorted(target.iterdir(), key=lambda path: path.suffix != ".whl")


def differences(first: Path, second: Path) -> list[str]:
    """What differs between two folders of archives."""
    names = {path.name for path in first.iterdir()} | {path.name for path in second.iterdir()}
    problems = []
    for name in sorted(names):
        one, other = first / name, second / name
        if not (one.exists() and other.exists()):
            problems.append(f"{name}: built once only")
        elif digest(one) != digest(other):
            before, after = contents(one), contents(other)
            differ = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
            problems.append(f"{name}: {', '.join(differ) or 'the same members in another form'}")
    return problems


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(archive: Path) -> dict[str, tuple[int, str]]:
    """Mode and SHA-256 of each file in a wheel or an sdist, by its name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {
                each.filename: (each.external_attr >> 16, hashlib.sha256(wheel.read(each)).hexdigest())
                for each in wheel.infolist()
            }
    found = {}
    with tarfile.open(archive) as sdist:
        for member in sdist:
            content = sdist.extractfile(member)
            found[member.name] = (member.mode, hashlib.sha256(content.read() if content else b"").hexdigest())
    return found


def _copy(source: Path, target: Path, names: Iterable[str], *, umask: int, seconds: int) -> None:
    """Copy files in this order, with the modes that the umask allows, and with times that are moved by some seconds."""
    for name in names:
        original, copy = source / name, target / name
        if not original.is_file():
            continue  # deleted, and not committed yet
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, copy)
        time = original.stat().st_mtime + seconds
        os.utime(copy, (time, time))
        copy.chmod((0o777 if os.access(original, os.X_OK) else 0o666) & ~umask)


def _build(folder: Path, epoch: int, conditions: Conditions) -> Path:
    """Build the sources in a folder. Returns the folder with the archives."""
    # Of the compiled accelerator the bytes depend on the compiler: what is published from here is pure Python.
    always = {"SOURCE_DATE_EPOCH": str(epoch), "ETCD_AIO_ACCELERATOR": "no"}
    env = {**os.environ, **conditions.variables, **always}
    for arguments in conditions.runs:
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=env, umask=conditions.umask, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"the build failed:\n{done.stdout}\n{done.stderr}")
    return folder / "dist"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
