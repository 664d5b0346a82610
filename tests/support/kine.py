"""kine, a server that has a part of etcd's API and stores keys in a database: built on request, and run on SQLite.

`python -m tests.support.kine` builds it into the cache, by Go and gcc, in some minutes. Tests skip where it is missing.
"""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdBuildError
from etcd_aio.testing.binaries import cache_directory
from etcd_aio.testing.commands import run_program
from etcd_aio.testing.ports import free_ports
from etcd_aio.testing.process import ChildProcess

VERSION: Final = "0.17.5"
"""The newest release."""

_BUILD_SECONDS: Final = 1800.0  # it has drivers of many databases
_START_SECONDS: Final = 30.0


def kine_path() -> Path:
    """The program in the cache, whether it is there or not."""
    return cache_directory() / "kine" / VERSION / "kine"


def need_kine() -> None:
    """Skip the test where kine is missing."""
    if not kine_path().exists():
        pytest.skip(f"needs kine {VERSION}, which is not in {kine_path().parent}: `python -m tests.support.kine`")


def build_kine() -> Path:
    """Build it into the cache, unless it is there.

    Raises:
        EtcdBuildError: Go or gcc is missing, or the build failed.
    """
    path = kine_path()
    if path.exists():
        return path
    for program in ("go", "gcc"):
        if shutil.which(program) is None:
            raise EtcdBuildError(f"building kine needs `{program}`, which is not on PATH")
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    making = path.parent.with_name(f".making-{VERSION}")
    making.mkdir(exist_ok=True)
    command = ["go", "install", "-trimpath", "-ldflags=-s -w", f"github.com/k3s-io/kine@v{VERSION}"]
    environment = {"GOBIN": str(making), "CGO_ENABLED": "1", "GOWORK": "off", "GOFLAGS": ""}
    run_program(command, making, environment=environment, seconds=_BUILD_SECONDS, purpose=f"building kine {VERSION}")
    making.rename(path.parent)
    return path


@asynccontextmanager
async def kine(directory: Path) -> AsyncIterator[str]:
    """One kine on a new SQLite database, for as long as the block runs; yields its endpoint."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    command = [
        str(kine_path()),
        f"--listen-address={endpoint}",
        f"--endpoint=sqlite://{directory / 'kine.db'}?_journal=WAL&cache=shared&_busy_timeout=30000",
        "--metrics-bind-address=0",
        "--watch-progress-notify-interval=1s",
    ]
    process = ChildProcess.spawn(command, environment={}, log=directory / "kine.log")
    try:
        async with Client(endpoint, timeout=_START_SECONDS) as client:
            await client.get("ready")
        yield endpoint
    finally:
        process.kill_now()


def main() -> int:
    """The command: one line; 1 if it could not be built."""
    try:
        print(f"kine {VERSION}  {build_kine()}")
    except EtcdBuildError as error:
        print(f"kine {VERSION}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
