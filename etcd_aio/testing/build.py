"""Builds released etcd servers from their Go modules into the cache that `find_etcd` searches.

Run it with `python -m etcd_aio.testing.build [version ...]`. It needs a Go toolchain, and about half a minute for each
version.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from etcd_aio.testing.binaries import EtcdBinary, cache_directory, version_numbers
from etcd_aio.testing.commands import install_server, report_binaries, run_program, verified
from etcd_aio.testing.errors import EtcdBuildError

RELEASED: Final = ("3.7.3", "3.6.16", "3.5.35", "3.4.25")
"""The newest patch of every minor version that etcd maintains, and one of 3.4."""

UPCOMING: Final = "3.8.0-alpha.0"
"""The newest pre-release of the next minor version: built on request, and used by tests that ask for it only."""

# Before 3.5 the module's path does not end in its major version, so Go resolves these releases by commit only.
_COMMITS: Final[Mapping[str, str]] = {"3.4.25": "v0.5.0-alpha.5.0.20230414071934-94593e63d45c"}

_BUILD_SECONDS = 1200.0  # a first build also downloads and compiles every dependency

_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

_MAIN_3_4 = """package main

import "go.etcd.io/etcd/etcdmain"

func main() { etcdmain.Main() }
"""

_MODULE = """module etcd_aio/testserver

go 1.21

require (
{requirements}
)
"""

# A pre-release of the server's module requires the earlier release of these, so all are named.
_MODULES: Final = ("api", "client/pkg", "client", "pkg", "server")


def build_servers(versions: Sequence[str] = RELEASED, *, cache: Path | None = None) -> tuple[EtcdBinary, ...]:
    """Build etcd servers into the cache, unless they are there already.

    Args:
        versions: released versions, such as "3.6.16". Of those before 3.5 only the one in `RELEASED`.
        cache: the folder to build into; `cache_directory()` by default.

    Returns:
        The servers, in the order of `versions`.

    Raises:
        EtcdBuildError: there is no Go toolchain, or the build failed.
        ValueError: a version is invalid.
    """
    return tuple(_build_one(version, cache) for version in versions)


def _build_one(version: str, cache: Path | None) -> EtcdBinary:
    numbers = version_numbers(version)  # also rejects paths and options, since it becomes a folder and a requirement
    built = (cache or cache_directory()) / "servers" / version / "etcd"
    if built.exists():
        return verified(built, version)
    go = shutil.which("go")
    if go is None:
        raise EtcdBuildError(
            f"building etcd {version} needs a Go toolchain, and there is no `go` on PATH: see https://go.dev/dl"
        )
    if numbers < (3, 5, 0) and version not in _COMMITS:
        raise EtcdBuildError(f"etcd {version} is older than 3.5, and of those only {', '.join(_COMMITS)} can be built")

    def compiled(folder: Path) -> Path:
        main, module = _sources(version)
        (folder / "main.go").write_text(main)
        (folder / "go.mod").write_text(module)
        _run([go, "mod", "tidy"], folder, version)
        _run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", "finished/etcd", "."], folder, version)
        return folder / "finished"

    return install_server(cache, compiled, version=version)


def _sources(version: str) -> tuple[str, str]:
    """`main.go` and `go.mod`."""
    if version in _COMMITS:
        return _MAIN_3_4, _MODULE.format(requirements=f"\tgo.etcd.io/etcd {_COMMITS[version]}")
    lines = (f"\tgo.etcd.io/etcd/{module}/v3 v{version}" for module in _MODULES)
    return _MAIN, _MODULE.format(requirements="\n".join(lines))


def _run(command: Sequence[str], folder: Path, version: str) -> None:
    environment = {"GOFLAGS": "-mod=mod", "GOWORK": "off"}
    run_program(command, folder, environment=environment, seconds=_BUILD_SECONDS, purpose=f"building etcd {version}")


def main(arguments: Sequence[str]) -> int:
    """The command: one line for each server; exit code 1 if one could not be built, after the others."""
    return report_binaries(arguments or RELEASED, lambda version: build_servers([version])[0])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
