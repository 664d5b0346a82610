"""The clock of a fake: that of the loop, and what tests have let pass besides."""

import asyncio
from collections.abc import Callable
from math import inf


class Clock:
    """The clock, with one timer.

    Args:
        on_due: called when the timer fires.

    Attributes:
        ahead: seconds by which it is ahead of the loop's clock.
    """

    def __init__(self, on_due: Callable[[], None]) -> None:
        self._on_due = on_due
        self._timer: asyncio.TimerHandle | None = None
        self.ahead = 0.0

    def now(self) -> float:
        """The time, in seconds."""
        return asyncio.get_running_loop().time() + self.ahead

    def wake_at(self, due: float) -> None:
        """Set the timer; infinity stops it."""
        if due == inf:
            self.stop()
            return
        at = due - self.ahead
        if self._timer is not None and self._timer.when() == at:
            return
        self.stop()
        self._timer = asyncio.get_running_loop().call_at(at, self._fired)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self) -> None:
        self._timer = None
        self._on_due()
