"""The loop of a run, which ends a run that spins: one that does ever more, while its time hardly moves on."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from etcd_aio.fake.time import VirtualTimeLoop

MOST_TURNS: Final = 50_000
"""Turns of the loop in a virtual second; a busy run has some hundred."""

MOST_CPU = 120.0
"""Seconds of the processor for a run, for one that never gives the loop a turn; most take less than one."""


class Spinning(SystemExit):
    """The run spins. No `Exception`, and one that a loop lets through: the client must not survive it."""


class BoundedLoop(VirtualTimeLoop):
    """Virtual time, with a limit for the turns of a second.

    Raises:
        Spinning: from what runs the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._turns = 0
        self._looked = self.time()
        jump = self._jumping.select

        def select(timeout: float | None = None) -> "list[tuple[object, int]]":
            self._turns += 1
            if self._turns > MOST_TURNS:
                self._look()
            return jump(timeout)  # type: ignore[return-value]

        self._jumping.select = select  # type: ignore[assignment,method-assign]

    def _look(self) -> None:
        now = self.time()
        passed, self._turns, self._looked = now - self._looked, 0, now
        if passed < 1.0:
            busy = ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self)))
            raise Spinning(f"{MOST_TURNS} turns of the loop in {passed:.3f} s; tasks: {busy}"[:500])


@contextmanager
def bounded_cpu() -> Iterator[None]:
    """Raise `Spinning` in a block that takes more than `MOST_CPU`, where there are such timers."""
    seconds = MOST_CPU
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise Spinning(f"it has taken {seconds:g} s of the processor")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # again, where something has caught it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
