"""Building etcd: released servers from their published Go modules, into the cache that `find_etcd` looks at.

Knows: a Go module of three lines, and the newest patches. Never knows: how a server is run.

As a command: `python -m etcd_aio.testing.builds [version ...]`. It needs a Go toolchain and takes about half a minute a
version. It is a command first, so the door of the package does not import it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from etcd_aio.testing.binaries import EtcdBinary, cache_directory, read_binary, version_numbers
from etcd_aio.testing.errors import EtcdBuildError, EtcdNotFoundError

RELEASED: Final = ("3.7.3", "3.6.16", "3.5.35")
"""The newest patch of every minor version that etcd maintains."""

_BUILD_SECONDS = 1200.0  # a first build also downloads and compiles every dependency

_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

_MODULE = """module etcd_aio/testserver

go 1.21

require go.etcd.io/etcd/server/v3 v{version}
"""


def build_servers(versions: Sequence[str] = RELEASED, *, cache: Path | None = None) -> tuple[EtcdBinary, ...]:
    """Build etcd servers into the cache; those already there are left alone.

    Several processes may build at once: each builds aside and moves the whole folder into place.

    Args:
        versions: released versions, such as "3.6.16".
        cache: the folder to build into; `cache_directory()` by default.

    Returns:
        The servers, in the order asked for.

    Raises:
        EtcdBuildError: there is no Go toolchain, or it failed.
        ValueError: a version cannot be read.
    """
    return tuple(_build_one(version, (cache or cache_directory()) / "servers") for version in versions)


def _build_one(version: str, servers: Path) -> EtcdBinary:
    version_numbers(version)  # also keeps paths and options out of what becomes a folder and a requirement
    home = servers / version
    if (home / "etcd").exists():
        return _verified(home / "etcd", version)
    go = shutil.which("go")
    if go is None:
        raise EtcdBuildError(
            f"building etcd {version} needs a Go toolchain, and there is no `go` on PATH: see https://go.dev/dl"
        )
    servers.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=servers) as name:
        folder = Path(name)
        (folder / "main.go").write_text(_MAIN)
        (folder / "go.mod").write_text(_MODULE.format(version=version))
        _run([go, "mod", "tidy"], folder, version)
        _run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", "finished/etcd", "."], folder, version)
        _verified(folder / "finished" / "etcd", version)
        try:
            (folder / "finished").rename(home)
        except OSError:
            if not (home / "etcd").exists():
                raise
            # Another process was faster, with the same result.
    return _verified(home / "etcd", version)


def _run(command: Sequence[str], folder: Path, version: str) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    try:
        done = subprocess.run(  # noqa: S603 - the Go toolchain, with our own arguments
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EtcdBuildError(f"building etcd {version} took more than {_BUILD_SECONDS:.0f} seconds") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise EtcdBuildError(f"building etcd {version}: `{' '.join(command[1:3])}` failed:\n{tail}")


def _verified(path: Path, version: str) -> EtcdBinary:
    try:
        binary = read_binary(path, "cache")
    except EtcdNotFoundError as error:
        raise EtcdBuildError(f"the etcd {version} that was built does not run: {error}") from error
    if binary.version != version:
        raise EtcdBuildError(f"{path} should be etcd {version} and says it is {binary.version}")
    return binary


def main(arguments: Sequence[str]) -> int:
    """The command: one line for each server; exit code 1 if one could not be built."""
    for version in arguments or RELEASED:
        try:
            (binary,) = build_servers([version])
        except (EtcdBuildError, ValueError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
        sys.stdout.write(f"{binary.version}  {binary.path}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
