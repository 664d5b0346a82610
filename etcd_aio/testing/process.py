"""One child process that cannot outlive this one.

It is killed, however this process ends:

    aclose, exception, cancellation     by its owner (`kill_now` needs no await)
    exit of the interpreter             by atexit
    SIGKILL                             by the kernel: PR_SET_PDEATHSIG (Linux only)

PR_SET_PDEATHSIG must be called in the child, but code between fork and exec is unsafe once there are threads. So a
small launcher calls it and then becomes the child: the setting and the pid survive exec. The kernel fires it when the
*thread* that forked ends, so `spawn` belongs in the thread of the event loop, never in a worker thread, which ends when
idle.
"""

import asyncio
import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

_POLL_SECONDS = 0.005
_PAUSE_SECONDS = 0.5  # a stop takes effect within a millisecond, unless a thread sits in an uninterruptible write

_LAUNCHER = """
import ctypes, os, signal, sys
parent, command = int(sys.argv[1]), sys.argv[2:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != parent:
    sys.exit("the parent process ended during the start")
os.execv(command[0], command)
"""

_alive: set["ChildProcess"] = set()


class ChildProcess:
    """A started process. It belongs to no event loop: every loop may wait for it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._owner = os.getpid()
        self._is_paused = False
        _alive.add(self)

    @classmethod
    def spawn(cls, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> Self:
        """Start `command`, its output appended to `log`.

        It gets a session of its own, so that Ctrl-C reaches the tests only and they end it in their own order.

        Raises:
            OSError: it cannot be started.
        """
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - the command is the caller's
                [*_launcher(), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        return cls(process)

    @property
    def pid(self) -> int:
        """The process id; the launcher's is also that of what it becomes."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended; a paused one runs."""
        if self._process.poll() is None:
            return True
        _alive.discard(self)
        return False

    @property
    def is_paused(self) -> bool:
        """Whether the process was paused and not resumed."""
        return self._is_paused and self.is_running

    @property
    def exit_code(self) -> int | None:
        """The exit code, or minus the number of the signal that ended the process; None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if the process has ended."""
        if self.is_running:
            self._process.send_signal(number)

    def kill_now(self) -> None:
        """SIGKILL, paused or not. Does not wait."""
        self.send(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP. On return the process has stopped: not one more byte comes from it."""
        self.send(signal.SIGSTOP)
        self._is_paused = True
        if sys.platform != "linux":
            return  # there is no waitid for it, and the stop is as good as immediate
        until = time.monotonic() + _PAUSE_SECONDS
        with suppress(ChildProcessError):
            while time.monotonic() < until and self.is_running:
                if os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None:
                    return
                time.sleep(_POLL_SECONDS / 10)

    def resume(self) -> None:
        """SIGCONT."""
        self._is_paused = False
        self.send(signal.SIGCONT)

    async def wait(self, timeout: float) -> bool:
        """Wait until it has ended, for at most `timeout` seconds; whether it has. Cancellation leaves it as it is."""
        until = time.monotonic() + timeout
        while self.is_running:
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    def reap(self, timeout: float) -> None:
        """Kill it if it still runs, and block until it is gone: the last resort of a close that was cancelled."""
        if self.is_running:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        _alive.discard(self)

    def kill_at_exit(self) -> None:
        """Kill the process at exit of the one that started it; a forked child must not."""
        if self._owner == os.getpid():
            self.reap(1.0)


def _launcher() -> Sequence[str]:
    if sys.platform != "linux" or not sys.executable:
        return ()
    return (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()))


@atexit.register
def _kill_all() -> None:
    for child in tuple(_alive):
        child.kill_at_exit()
