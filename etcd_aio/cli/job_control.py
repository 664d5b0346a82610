"""Job control: the controlling terminal, and what the stop of a command means.

A terminal has one process group in its foreground. That group may read the terminal, and gets SIGINT, SIGQUIT and
SIGTSTP from its keys. The kernel stops another group that reads (SIGTTIN) or sets (SIGTTOU) the terminal. A shell makes
a group of each job, of which some may be all the commands of a script or a pipeline.

The command has a group of its own, so that all of it can be ended. It gets the foreground when it wants the terminal:

    the command stopped by     foreground      what happens
    SIGTTIN, SIGTTOU           our group       it gets the foreground, and continues
    SIGTTIN, SIGTTOU           another one     we stop too, as a job in the background does that wants the terminal
    SIGTSTP                    any             we stop too: without renewals the lease may end, so it is looked at first
                                               when we are continued
    SIGSTOP                    the command's   we stop too, or the terminal would be dead
    SIGSTOP                    another one     nothing: the lease is renewed until the command is continued

Without a controlling terminal we never stop.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import Final

_WANTS_TERMINAL: Final = (signal.SIGTTIN, signal.SIGTTOU)


class Foreground(Enum):
    """The process group in the foreground of the terminal, as this process sees it."""

    OURS = auto()
    COMMANDS = auto()
    ANOTHER = auto()
    NO_TERMINAL = auto()


class Reaction(Enum):
    """The reaction to a stop of the command."""

    GIVE_TERMINAL = auto()
    STOP_TOO = auto()
    NOTHING = auto()


def reaction(number: int, foreground: Foreground) -> Reaction:
    """The reaction when a signal has stopped the command."""
    if foreground is Foreground.NO_TERMINAL:
        return Reaction.NOTHING
    if number in _WANTS_TERMINAL:
        return Reaction.GIVE_TERMINAL if foreground is Foreground.OURS else Reaction.STOP_TOO
    if number == signal.SIGTSTP or foreground is Foreground.COMMANDS:
        return Reaction.STOP_TOO
    return Reaction.NOTHING


class Terminal:
    """The controlling terminal of this process; there may be none."""

    def __init__(self) -> None:
        try:
            self._descriptor: int | None = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:  # cron, systemd, a container without a terminal
            self._descriptor = None

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def group(self) -> int:
        """The process group in the foreground; 0 if there is no terminal, or it was hung up."""
        if self._descriptor is None:
            return 0
        try:
            return os.tcgetpgrp(self._descriptor)
        except OSError:
            return 0

    def foreground(self, command: int) -> Foreground:
        """The owner of the group in the foreground.

        Args:
            command: the group of the command.
        """
        found = self.group()
        if found <= 0:
            return Foreground.NO_TERMINAL
        if found == os.getpgrp():
            return Foreground.OURS
        return Foreground.COMMANDS if found == command else Foreground.ANOTHER

    def is_for(self) -> bool:
        """Whether a command should have the foreground from its beginning, and not only when it wants the terminal.

        Some programs show no progress in the background. But keys signal the foreground alone, so there must be no
        other process in our group that waits for them: we are its leader, and no pipe begins or ends here.
        """
        if self.group() != os.getpgrp() or os.getpgrp() != os.getpid():
            return False
        return all(os.isatty(one) for one in (0, 1))

    def give(self, group: int) -> None:
        """Put a process group into the foreground."""
        if self._descriptor is None:
            return
        with _sigttou_blocked(), suppress(OSError):  # the group has ended, or the terminal was hung up
            os.tcsetpgrp(self._descriptor, group)


@contextmanager
def _sigttou_blocked() -> Iterator[None]:
    """Block SIGTTOU, which would stop a process in the background that sets the foreground."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_for_terminal() -> None:
    """Let the kernel stop this process when it wants the terminal without the foreground.

    Shells let the commands of `$(...)` ignore these signals. Those are in the foreground, as we are; but the command,
    which has a group of its own, would get an error for each read, and no stop would tell us to give it the foreground.
    """
    for number in _WANTS_TERMINAL:
        signal.signal(number, signal.SIG_DFL)


def stop_own_group(number: int) -> None:
    """Stop this process and its group as a key of the terminal does. Returns when it is continued.

    The kernel does not stop a group that no shell could continue. Then this returns at once, too.
    """
    before = signal.signal(number, signal.SIG_IGN)
    try:
        os.killpg(os.getpgrp(), number)  # the others
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_kill(threading.get_ident(), number)  # to this thread, so that the next line runs afterwards
    finally:
        signal.signal(number, before)
