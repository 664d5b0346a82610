"""Shared by the commands `build` and `debian`: running programs, filling the cache, reporting one line per server."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from etcd_aio.testing.binaries import EtcdBinary, cache_directory, read_binary
from etcd_aio.testing.errors import EtcdBuildError, EtcdNotFoundError

_SHOWN_LINES = 20


def run_program(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str], seconds: float, purpose: str
) -> str:
    """Run a program in `folder` and return its output.

    Args:
        command: the program and its arguments.
        folder: its working directory.
        environment: variables in addition to those of this process.
        seconds: the timeout.
        purpose: begins the error's text, such as "building etcd 3.6.16".

    Raises:
        EtcdBuildError: it failed, with the end of its output, or exceeded the timeout.
    """
    try:
        done = subprocess.run(  # noqa: S603 - go, apt and dpkg, with arguments of this package
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EtcdBuildError(f"{purpose}: `{command[0]}` took more than {seconds:.0f} seconds") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
        raise EtcdBuildError(f"{purpose}: `{' '.join(command)}` failed:\n{tail}")
    return done.stdout


def install_server(cache: Path | None, make: Callable[[Path], Path], *, version: str | None = None) -> EtcdBinary:
    """Put a server into the folder of its version in the cache.

    Several processes may do so at once: each works in a temporary folder and moves the result into place.

    Args:
        cache: the folder to install into; None is `cache_directory()`.
        make: called with the temporary folder; returns the folder in which it has put `etcd`.
        version: the expected version; None accepts any.

    Raises:
        EtcdBuildError: the server does not run, or has another version.
    """
    servers = (cache or cache_directory()) / "servers"
    servers.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=servers) as name:
        made = make(Path(name))
        home = servers / verified(made / "etcd", version).version
        try:
            made.rename(home)
        except OSError as error:
            if not (home / "etcd").exists():  # if it exists, another process was faster
                raise EtcdBuildError(f"{home} cannot be created: {error}") from error
    return verified(home / "etcd", version)


def verified(path: Path, version: str | None) -> EtcdBinary:
    """The server at `path`, which runs and has the expected version.

    Raises:
        EtcdBuildError: it does not run, or has another version.
    """
    try:
        binary = read_binary(path, "cache")
    except EtcdNotFoundError as error:
        raise EtcdBuildError(f"the new server does not run: {error}") from error
    if version not in (None, binary.version):
        raise EtcdBuildError(f"{path} should be etcd {version}, but is {binary.version}")
    return binary


def report_binaries(names: Iterable[str], get: Callable[[str], EtcdBinary]) -> int:
    """Print one line for each server that `get` provides. Returns the exit code: 1 if one failed, after the others."""
    exit_code = 0
    for name in names:
        try:
            binary = get(name)
        except (EtcdBuildError, ValueError) as error:
            sys.stderr.write(f"{name}: {error}\n")
            exit_code = 1
        else:
            note = "" if name == binary.version else f"  ({name})"
            sys.stdout.write(f"{binary.version}  {binary.path}{note}\n")
            sys.stdout.flush()
    return exit_code
