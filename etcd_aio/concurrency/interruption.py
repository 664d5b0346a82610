"""Interruption: ends what a task waits for, when its deadline passes or what it needs is lost."""

import asyncio
from collections.abc import Callable

from etcd_aio.base import TaskCanceller
from etcd_aio.errors import EtcdError


class Interruption:
    """Turns a reason into a cancellation of the task that made this, and that cancellation into an error.

    Use: made in the task; `interrupt` at any time; `stop` when nothing more shall interrupt it; then `leave_with`.

    Args:
        timeout: seconds until it interrupts by itself; None for never.
        late: makes the error of that.
    """

    __slots__ = ("_canceller", "_is_over", "_late", "_timer", "error")

    def __init__(self, timeout: float | None, late: Callable[[], EtcdError]) -> None:
        self._canceller = TaskCanceller()
        self._is_over = False
        self._late = late
        self.error: EtcdError | None = None
        loop = asyncio.get_running_loop()
        self._timer = None if timeout is None else loop.call_later(timeout, self._on_time)

    def interrupt(self, error: EtcdError) -> None:
        """Cancel the task, for this reason; the first one counts."""
        if self.error is None and not self._is_over:
            self.error = error
            self._canceller.cancel()

    def _on_time(self) -> None:
        if self.error is None and not self._is_over:
            self.interrupt(self._late())

    def check(self) -> None:
        """Raise the reason of an interruption that could not cancel the task, since the task itself caused it."""
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Interrupt no more. An interruption that was made before still counts."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def leave_with(self, raised: BaseException | None) -> None:
        """Take the cancellation back and raise its reason, unless the task was cancelled for another reason too.

        An error that came at the same time, since the lease is lost for example, becomes the cause.
        """
        error = self.error
        if error is None:
            self._canceller.leave()
        elif isinstance(raised, EtcdError):
            self._canceller.leave()
            raise error from (error.__cause__ or (raised if raised is not error else None))
        else:
            self._canceller.leave_with(error, raised)
