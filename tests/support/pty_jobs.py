"""Programs in a terminal: a pseudo-terminal with the keys of a user, and a shell with job control.

async with in_terminal(*command, stdin="tty") as job:
    job.press(CTRL_C)
    assert await job.report() == "ended 5"
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.command_line import ROOT
from tests.support.until import PATIENCE, until

CTRL_C: Final = b"\x03"
CTRL_Z: Final = b"\x1a"
_SHELL: Final = Path(__file__).parent / "job_shell.py"
_WITNESS: Final = Path(__file__).parent / "witness.py"


class Job:
    """A job of a shell in a terminal.

    Attributes:
        shell: the shell, which leads the session.
        shown: what the terminal has shown.
    """

    def __init__(self, shell: subprocess.Popen[bytes], keys: int, orders: int, reports: int) -> None:
        self.shell = shell
        self.shown = bytearray()
        self._keys = keys
        self._orders = orders
        self._reports = asyncio.StreamReader()
        self._rest = b""
        loop = asyncio.get_running_loop()
        self._files = {keys: self.shown.extend, reports: self._reports.feed_data}
        for one in self._files:
            os.set_blocking(one, False)
            loop.add_reader(one, self._read, one)
        self._descriptors = {keys, orders, reports}

    def _read(self, descriptor: int) -> None:
        try:
            found = os.read(descriptor, 65536)
        except OSError:  # no process has the terminal any more
            found = b""
        if found:
            self._files[descriptor](found)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._keys, keys)

    def order(self, word: str) -> None:
        """Tell the shell to continue the job, in the foreground ("fg") or in the background ("bg")."""
        os.write(self._orders, word.encode())

    async def report(self) -> str:
        """What the shell says next of its job."""
        async with asyncio.timeout(PATIENCE):
            return (await self._reports.readline()).decode().strip()

    def foreground(self) -> int:
        """The process group in the foreground."""
        return os.tcgetpgrp(self._keys)

    def hang_up(self) -> None:
        """Close the terminal."""
        asyncio.get_running_loop().remove_reader(self._keys)
        self._descriptors.remove(self._keys)
        os.close(self._keys)

    def close(self) -> None:
        """Kill the shell, and close the files."""
        for one in self._descriptors:
            asyncio.get_running_loop().remove_reader(one)
            os.close(one)
        self.shell.kill()
        self.shell.wait()


@asynccontextmanager
async def in_terminal(
    *command: str, stdin: str = "tty", environ: Mapping[str, str] | None = None
) -> AsyncIterator[Job]:
    """A command as the job of a shell in a terminal of its own; all of the session is killed on leaving.

    Args:
        command: its words.
        stdin: "tty", or a path.
        environ: more variables.
    """
    ours, its = os.openpty()
    take_orders, orders = os.pipe()
    reports, make_reports = os.pipe()

    def become_leader() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ETCD", "PYTHONDEVMODE"))}
    shell = subprocess.Popen(  # noqa: ASYNC220 - a moment
        [sys.executable, "-S", "-E", str(_SHELL), stdin, str(take_orders), str(make_reports), *command],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=become_leader,
        pass_fds=(take_orders, make_reports),
        cwd=ROOT,
        env={**clean, "XDG_CONFIG_HOME": os.devnull, **(environ or {})},
    )
    for one in (its, take_orders, make_reports):
        os.close(one)
    job = Job(shell, ours, orders, reports)
    try:
        yield job
    finally:
        for pid in session(shell.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.close()


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def state(pid: int) -> str:
    """The state of a process, as `ps` shows it: "T" is stopped; empty if it has ended."""
    found = _stat(pid)
    return "" if not found or found[0] == "Z" else found[0]


def session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in pids if (found := _stat(pid)) and found[0] != "Z" and int(found[3]) == leader]


class Witness:
    """What a command tells by its file; see `witness.py`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def command(self, *words: str) -> tuple[str, ...]:
        """The words that run it."""
        return (sys.executable, "-S", "-E", str(_WITNESS), str(self._path), *words)

    def lines(self) -> list[str]:
        """All that it has told."""
        return self._path.read_text().splitlines() if self._path.exists() else []

    def told(self) -> list[str]:
        """What it has told of signals, and has read."""
        return [line for line in self.lines() if line != "tick" and not line.startswith(("ready", "child"))]

    async def pid(self, who: str = "ready") -> int:
        """Wait until it runs. Returns its process, or that of its child."""
        await until(lambda: any(line.startswith(f"{who} ") for line in self.lines()))
        return next(int(line.split()[1]) for line in self.lines() if line.startswith(f"{who} "))

    async def told_of(self, word: str) -> None:
        """Wait until it has told a word."""
        await until(lambda: word in self.lines())

    async def goes_on(self) -> None:
        """Wait until it has done something more."""
        before = len(self.lines())
        await until(lambda: len(self.lines()) > before)
