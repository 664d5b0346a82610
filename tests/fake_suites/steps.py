"""What the suites have in common: steps of making them, and the outcomes of tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.environments import UnavailableError

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
_MAKING: Final = 1800.0  # seconds
_TESTING: Final = 1800.0


@dataclass(frozen=True)
class Server:
    """What a suite runs on.

    Attributes:
        endpoints: of the members; the first one has port 2379.
        command: starts one more, if it is told `--listen` and `--members`: it prints the endpoints.
    """

    endpoints: Sequence[str]
    command: Sequence[str]


class Suite(Protocol):
    """The tests of another client.

    Attributes:
        name: of the suite.
        members: how many members it needs; 0 if it starts its servers.
        flags: of the real server.
    """

    @property
    def name(self) -> str: ...

    @property
    def members(self) -> int: ...

    @property
    def flags(self) -> Sequence[str]: ...

    def make(self, cache: Path) -> None:
        """Get the tests, and what they need, unless they are there. This needs the network.

        Raises:
            UnavailableError: that is not possible on this machine; the message is the reason.
        """
        ...

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        """Run the tests. Returns "passed", "failed" or "skipped" by test.

        Args:
            cache: where it was made.
            server: where they run.
            log: gets what the tests print.
        """
        ...


def step(command: Sequence[str | Path], *, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Run a step of making a suite. Returns what it prints.

    Raises:
        UnavailableError: it has failed; the message is its last line.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_MAKING,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise UnavailableError(f"{' '.join(map(str, command[:3]))}: {lines[-1]}")
    return done.stdout


def play(
    command: Sequence[str | Path], log: Path, *, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Run tests. Returns what they print, which is added to the log; how they end does not matter."""
    with log.open("ab") as file:
        begin = file.tell()
        try:
            subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=_TESTING,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"ended after {_TESTING:.0f} seconds: {command[0]}", file=sys.stderr)
    return log.read_bytes()[begin:].decode(errors="replace")


def copied(source: Path, folder: Path) -> None:
    """Copy a folder out of a cache of modules, in which nothing can be written; it is whole, or it is not there."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for path in source.rglob("*"):
        copy = part / path.relative_to(source)
        if path.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    part.rename(folder)


def virtualenv(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment with these packages, from wheels. Returns its folder of programs."""
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    made = folder / "made"
    wanted = "\n".join(requirements)
    if not made.exists() or made.read_text() != wanted:
        step([sys.executable, "-m", "venv", "--clear", folder])
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        step([programs / "python", *pip, "--only-binary=:all:", *requirements])
        made.write_text(wanted)
    return programs
