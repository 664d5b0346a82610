"""What the commands `build` and `debian` share: running other programs, and reporting one line for each server."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from etcd_aio.testing.binaries import EtcdBinary
from etcd_aio.testing.errors import EtcdBuildError

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
        EtcdBuildError: it failed, with the end of its output, or took too long.
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
