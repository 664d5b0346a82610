"""A command that runs only while something is held: a lock, or a leadership.

The command inherits stdin, stdout and stderr. It has a process group of its own, which gets once each signal that ends
programs and was sent to this process; what the keys of a terminal do is in `job_control.py`. When what is held is lost,
the group is terminated, and killed after a grace. On Linux the command also gets SIGTERM when this process is killed.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from etcd_aio.base import now, start_task
from etcd_aio.cli.job_control import (
    Foreground,
    Reaction,
    Terminal,
    reaction,
    stop_for_terminal,
    stop_own_group,
)
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.signals import UNHEEDED, handled
from etcd_aio.concurrency import Leadership, Lock

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PASSED_ON: Final = (*_ENDING, *UNHEEDED, signal.SIGTSTP, signal.SIGWINCH)
_SET_PARENT_DEATH_SIGNAL: Final = 1  # of Linux's prctl
_SIGNALLED: Final = 128  # as shells, which add the number of the signal
_LOOK_EVERY: Final = 0.05  # seconds


async def run_while_held(
    command: Sequence[str],
    environ: Mapping[str, str],
    held: Lock | Leadership,
    *,
    on_lost: str = "term",
    grace: float = 5.0,
) -> None:
    """Run a command until it ends, or the lock or leadership that it needs is lost.

    Args:
        command: the words of the command.
        environ: variables that it gets; they replace those of this process that have the same names.
        held: the lock or leadership that the command needs.
        on_lost: the action on the command when that is lost: "term", "kill" or "ignore".
        grace: seconds between SIGTERM and SIGKILL. So long before the end of the lease it counts as lost.

    Raises:
        Failure: with the command's exit code unless that is 0; 128 and the number of the signal that has ended it; 5 if
            what is held was lost.

    Cancellation kills the command.
    """
    job = ChildJob(held, ends_on_loss=on_lost != "ignore", grace=grace)
    try:
        job.start(command, environ)
        with handled((signal.SIGCHLD,), job.look), handled((signal.SIGCONT,), job.go_on):
            with handled(_PASSED_ON, job.pass_on):
                job.look()  # it may have changed before there was a handler
                await _watched(job, on_lost)
            job.take_terminal()
    finally:
        job.close()
    if job.was_lost:
        error = await held.lost()
        what = "the lock is lost" if error is None else error.message
        went = "the command went on without it" if on_lost == "ignore" else "the command was ended"
        raise Failure(ExitCode.INTERRUPTED, f"{what}; {went}")
    code = job.ended.result()
    if code < 0:
        raise Failure(_SIGNALLED - code, f"signal {-code}", signal=-code, of_terminal=job.had_terminal)
    if code:
        raise Failure(code, f"exit status {code}")


async def _watched(job: "ChildJob", on_lost: str) -> None:
    """Wait for the end of the job; end it when its lock or leadership is lost."""
    loss = start_task(job.held.lost(), name="etcd-aio loss")
    try:
        await asyncio.wait((job.ended, loss), return_when=asyncio.FIRST_COMPLETED)
        if not job.ended.done() and on_lost != "ignore":
            await job.end(kills=on_lost == "kill")
        await asyncio.wait((job.ended,))
    finally:
        loss.cancel()
        if not job.ended.done():
            job.send(signal.SIGKILL)
        await asyncio.wait((job.ended, loss))


class ChildJob:
    """The process group of a command.

    Args:
        held: the lock or leadership that the command needs.
        ends_on_loss: the command may not run without it.
        grace: seconds for which the lease lives on when it counts as lost.

    Attributes:
        held: see above.
        ended: the exit code, or below 0 the signal that has ended the command.
        was_lost: `held` was lost before the command ended.
        had_terminal: the terminal signalled it, and not our group, when it ended.
    """

    def __init__(self, held: Lock | Leadership, *, ends_on_loss: bool, grace: float) -> None:
        self.held = held
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.was_lost = False
        self.had_terminal = False
        self._ends_on_loss = ends_on_loss
        self._grace = grace
        self._terminal = Terminal()
        self._wants_terminal = self._terminal.is_for()
        self._has_terminal = False
        self._is_stopped = False
        self._lease_ends: float | None = None  # by which instant, after we were stopped
        self._child: subprocess.Popen[bytes] | None = None
        self._group = 0

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start the command.

        Raises:
            Failure: the command cannot be started.
        """
        try:
            self._child = subprocess.Popen(  # noqa: S603 - the command of the user
                command,
                env={**os.environ, **environ},
                process_group=0,
                preexec_fn=self._prepared(os.getpid()),
            )
        except OSError as error:
            if self._wants_terminal:
                self._terminal.give(os.getpgrp())
            raise Failure(ExitCode.ERROR, f"{command[0]}: {error.strerror}") from None
        self._group = self._child.pid
        self._has_terminal = self._wants_terminal

    def _prepared(self, parent: int) -> Callable[[], None]:
        """Return the function that the child runs first: it takes the terminal, and ties itself to its parent."""
        tie = _tie_to(parent)
        terminal = self._terminal if self._wants_terminal else None
        may_read = self._terminal.foreground(self._group) is Foreground.OURS

        def prepare() -> None:
            if may_read:
                stop_for_terminal()
            if terminal is not None:
                terminal.give(os.getpgrp())
            if tie is not None:
                tie()

        return prepare

    # What happens to the command.

    def look(self, number: int = 0) -> None:
        """Look whether the command was stopped, was continued, or has ended."""
        while self._child is not None and not self.ended.done():
            try:
                pid, status = os.waitpid(self._group, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:  # SIGCHLD is ignored, so nothing is left to read
                pid, status = self._group, 0
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._is_stopped = True
                self._on_stop(os.WSTOPSIG(status))
            elif os.WIFCONTINUED(status):
                self._is_stopped = False
            else:
                self._child.returncode = code = os.waitstatus_to_exitcode(status)
                self.was_lost = self.held.is_lost
                self.had_terminal = self._has_terminal
                self.ended.set_result(code)

    def _on_stop(self, number: int) -> None:
        match reaction(number, self._terminal.foreground(self._group)):
            case Reaction.GIVE_TERMINAL:
                self._wants_terminal = True
                self.go_on()
            case Reaction.STOP_TOO:
                self._wants_terminal |= number in (signal.SIGTTIN, signal.SIGTTOU)
                self.send(signal.SIGSTOP)  # those of the group that do not heed the other signal
                self._lease_ends = now() + self.held.remaining + self._grace
                self.take_terminal()
                stop_own_group(signal.SIGTSTP if number == signal.SIGSTOP else number)
                self.go_on()
            case Reaction.NOTHING:
                pass

    def go_on(self, number: int = 0) -> None:
        """Continue the command if it may run: we were continued, or it got the terminal."""
        if self._ends_on_loss and self.held.is_lost:
            if self._lease_ends is not None and now() >= self._lease_ends:
                self.send(signal.SIGKILL)  # another holder may be there, so there is no grace
            return
        self._lease_ends = None
        foreground = self._terminal.foreground(self._group)
        self._has_terminal = foreground is Foreground.COMMANDS
        if self._wants_terminal and foreground is Foreground.OURS:
            self._terminal.give(self._group)
            self._has_terminal = True
        self.send(signal.SIGCONT)

    # What is done to it.

    def pass_on(self, number: int) -> None:
        """Send it a signal that this process got."""
        self.send(number)
        if self._is_stopped and number in _ENDING:
            self.go_on()

    async def end(self, *, kills: bool) -> None:
        """Terminate all processes of the group; kill them after the grace, which ends with the lease."""
        until = now() + self._grace
        if self._lease_ends is not None:
            until = min(until, self._lease_ends)
        if not kills:
            self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)
            while self._is_there() and now() < until:  # noqa: ASYNC110 - nothing tells the end of a group
                await asyncio.sleep(_LOOK_EVERY)
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Signal the group; when it is ended, also the job in the foreground of a shell that is the command."""
        groups = {self._group}
        if self._has_terminal and number in (signal.SIGTERM, signal.SIGKILL):
            groups |= {self._terminal.group()} - {0, os.getpgrp(), os.getsid(0), os.getpgid(os.getppid())}
        for group in groups:
            with suppress(ProcessLookupError, PermissionError):  # macOS: of a group that has ended
                os.killpg(group, number)

    def _is_there(self) -> bool:
        try:
            os.killpg(self._group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def take_terminal(self) -> None:
        """Put our group into the foreground, if the command's is there."""
        if self._has_terminal or self._terminal.foreground(self._group) is Foreground.COMMANDS:
            self._terminal.give(os.getpgrp())
            self._has_terminal = False

    def close(self) -> None:
        """Close the terminal."""
        self._terminal.close()


def _tie_to(parent: int) -> Callable[[], None] | None:
    """Return a function for the child, after which it gets SIGTERM when its parent dies; None except on Linux."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None)

    def tie() -> None:
        library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:  # it has died before
            os.kill(os.getpid(), signal.SIGTERM)

    return tie
