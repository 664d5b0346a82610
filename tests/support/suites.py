"""Runs pytest with the plugin on test files of its own, in a process of its own, as the project of a user would."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final, TypeAlias

from tests.support.interrupts import interruptible

ROOT: Final = Path(__file__).parent.parent.parent

SETTINGS: Final = """
[pytest]
filterwarnings = error
"""
_SCOPE: Final = ("-o", "asyncio_default_fixture_loop_scope=function")  # unset, some versions of pytest-asyncio warn
RUNNERS: Final = {
    "anyio": ("-p", "anyio"),
    "strict": ("-p", "asyncio", *_SCOPE),
    "auto": ("-p", "asyncio", *_SCOPE, "-o", "asyncio_mode=auto"),
    "by module": ("-p", "pytest_asyncio.plugin", *_SCOPE),
    "both": ("-p", "asyncio", "-p", "anyio", *_SCOPE),
    "none": (),
}
_COUNT: Final = re.compile(r"(\d+) (passed|failed|skipped|error|warning|xfailed)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run of pytest.

    Attributes:
        code: its exit code.
        text: what it wrote.
    """

    code: int
    text: str

    @property
    def counts(self) -> dict[str, int]:
        """How many tests passed, failed and so on: the words of the last line, without "s"."""
        return {word: int(number) for number, word in _COUNT.findall(self.text.rstrip().rpartition("\n")[2])}


Suite: TypeAlias = Callable[..., Outcome]


class Project:
    """A folder with tests.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.write("pytest.ini", SETTINGS)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(dedent(text))

    def command(self, *arguments: str, runner: str = "strict") -> list[str]:
        """The command that runs the tests.

        Args:
            arguments: of pytest.
            runner: the plugins for async tests, one of `RUNNERS`.
        """
        plugins = ("-p", "pytest_etcd_aio", "-p", "no:cacheprovider", *RUNNERS[runner])
        return interruptible("-m", "pytest", *plugins, *arguments)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The variables of the process, without those that the plugin reads."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ETCD_", "PYTEST_ADDOPTS", "COV_")) and name != "CI"
        }
        own = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(self.temporary)}
        return {**kept, **own, **more}

    def run(self, *arguments: str, runner: str = "strict", **variables: str) -> Outcome:
        """Run the tests; see `command`.

        Args:
            arguments: of pytest.
            runner: see `command`.
            variables: of the environment.
        """
        done = subprocess.run(
            self.command(*arguments, runner=runner),
            cwd=self.folder,
            env=self.environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        return Outcome(done.returncode, done.stdout)

    def servers(self) -> list[str]:
        """The command lines of the etcd servers that a run has started and that still run. Linux only."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # ended meanwhile
            if f"--data-dir={self.temporary}" in command:
                found.append(command)
        return found

    def leftovers(self) -> list[Path]:
        """The files that servers have left."""
        return [path for path in self.temporary.iterdir() if "etcd" in path.name]
